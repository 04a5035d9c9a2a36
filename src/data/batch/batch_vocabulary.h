/* batch_vocabulary.h: a shard's own small catalogue: the distinct items that occur in it.
 *
 * With a sampled loss a step needs the rows of the items that its events, targets and negatives name, and no others. The
 * batch vocabulary of a shard lists them in the order of their first occurrence; ids of the batch then are places in it, and
 * everything but the op `gather` and the optimizer works on the list. So a step costs the same whether the catalogue has
 * thousands of items or millions.
 */
#ifndef LP_BATCH_VOCABULARY_H
#define LP_BATCH_VOCABULARY_H

#include "data/batch/batch.h"
#include "data/batch/negatives.h"

/* Where an item was last seen. One look-up in memory finds all of it. */
typedef struct lp_mark {
    uint32_t list;  /* the number of the list it stands in */
    int32_t place;  /* its place there */
    uint32_t owner; /* the number of the window whose sequence has it */
} lp_mark;

/* What making lists needs: a mark for every item, for each of the threads that make them. */
typedef struct lp_batch_vocabulary {
    const lp_negatives *negatives;
    const lapse_dataset *dataset;
    const int32_t *type; /* of the dataset's events, in the model's numbers */
    int64_t items;
    int threads;
    lp_mark **marks;          /* [threads][items]; owned */
    uint32_t *lists, *owners; /* [threads]: numbers given out; owned */
} lp_batch_vocabulary;

/* items, threads, negatives, dataset and event type must be filled in. */
lapse_status lp_batch_vocabulary_init(lp_batch_vocabulary *lists, lapse_error *error);
void lp_batch_vocabulary_clear(lp_batch_vocabulary *lists);

/* Draws the negatives of a shard of a filled batch, lists its items, and renumbers its ids. Shards may be done at once,
 * each thread with a worker number of its own. */
void lp_batch_vocabulary_make(lp_batch_vocabulary *lists, lp_batch *batch, int shard, int worker, uint32_t step);

/* Which rows the shards of a batch have in common: for the sum of their gradients. */
typedef struct lp_union {
    int count;
    int32_t *row;   /* [count]: item */
    int32_t *first; /* [count + 1]: where its places begin */
    int32_t *place; /* shard * item_capacity + place in its list, in the order of shards */
} lp_union;

/* Room for any batch like this one. */
lapse_status lp_union_init(lp_union *rows, const lp_batch *batch, lapse_error *error);
void lp_union_clear(lp_union *rows);
void lp_union_make(lp_union *rows, lp_batch_vocabulary *lists, const lp_batch *batch);

#endif
