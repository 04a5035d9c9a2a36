/* batch_vocabulary.h: the distinct items of a shard, so that a sampled loss gathers only the rows it uses.
 *
 * A step with a sampled loss needs the table rows of the items that its events, targets and negatives name, and no
 * others. The batch vocabulary of a shard lists these items in the order of their first occurrence; the ids of the
 * batch become indices into it, and everything but the op `gather` and the optimizer works on the list. So the cost
 * of a step does not grow with the catalogue.
 */
#ifndef LP_BATCH_VOCABULARY_H
#define LP_BATCH_VOCABULARY_H

#include "data/batch/batch.h"
#include "data/batch/negatives.h"

/* Per-item state of a thread, in one struct so that one cache miss fetches all of it. */
typedef struct lp_mark {
    uint32_t list;     /* stamp of the last list that has the item */
    int32_t index;     /* its index in that list */
    uint32_t sequence; /* stamp of the last sequence that has the item */
} lp_mark;

/* The builder of batch vocabularies: one mark per item for each thread that uses it. */
typedef struct lp_batch_vocabulary {
    const lp_negatives *negatives;
    const lapse_dataset *dataset;
    const int32_t *type; /* [event_count]: the model's ids of the dataset's events */
    int64_t items;
    int threads;
    lp_mark **marks;             /* [threads][items]; owned */
    uint32_t *lists, *sequences; /* [threads]: last stamp used for lists and for sequences; owned */
} lp_batch_vocabulary;

/* The caller sets items, threads, negatives, dataset and type before init. */
lapse_status lp_batch_vocabulary_init(lp_batch_vocabulary *lists, lapse_error *error);
void lp_batch_vocabulary_clear(lp_batch_vocabulary *lists);

/* Samples the negatives of a shard of a filled batch, lists its items, and replaces its ids by indices into the list.
 * Shards may run in parallel, each thread with its own `worker` index. */
void lp_batch_vocabulary_make(lp_batch_vocabulary *lists, lp_batch *batch, int shard, int worker, uint32_t step);

/* Deduplicated table rows over the item lists of all shards (like torch.unique with inverse indices), for summing the
 * gradients of a row over the shards. Compressed rows: entries first[i] .. first[i + 1] - 1 of item_index belong to
 * row[i]. */
typedef struct lp_row_union {
    int count;
    int32_t *row;        /* [count]: item id */
    int32_t *first;      /* [count + 1]: first entry of each row */
    int32_t *item_index; /* shard * item_capacity + index in the shard's list, in the order of shards */
} lp_row_union;

/* Allocates for any batch with the capacity of this one. */
lapse_status lp_row_union_init(lp_row_union *rows, const lp_batch *batch, lapse_error *error);
void lp_row_union_clear(lp_row_union *rows);
/* The union of lists: list l has the counts[l] items from items + l * stride on. Rows are in the order of their first occurrence, and
 * item_index is l * stride + index in the list. */
void lp_row_union_of_lists(lp_row_union *rows, lp_batch_vocabulary *lists, int lists_count, int stride,
                           const int32_t *items, const int *counts);
void lp_row_union_make(lp_row_union *rows, lp_batch_vocabulary *lists, const lp_batch *batch);

#endif
