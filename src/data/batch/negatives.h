/* negatives.h: items that did not happen, drawn to be told from those that did.
 *
 * A draw is a function of (seed, step, place, number), so it depends on no thread, shard or backend. Items are drawn evenly,
 * or by the power of how often they occur in the training split (Walker's alias method: one number, one look-up).
 *
 * Negatives are drawn for each place (`count`), or once for all places of a step (`shared`), which then have the other items
 * of their shard for negatives too. What an item's score in such a choice says depends on how often it is there to be chosen: the
 * correction is -log of that chance (Bengio and Senecal 2008; Yang and others 2020).
 */
#ifndef LP_NEGATIVES_H
#define LP_NEGATIVES_H

#include "data/dataset/dataset.h"

typedef enum lp_negative_sampling {
    LP_NEGATIVES_UNIFORM,
    LP_NEGATIVES_POPULARITY,
    LP_NEGATIVES_IN_BATCH
} lp_negative_sampling;

/* "uniform", "popularity", "in-batch", NULL */
extern const char *const lp_negative_names[];

typedef struct lp_negatives {
    lp_negative_sampling how;
    int count;      /* for each place */
    int shared;     /* for all places of a step together */
    bool corrected; /* items are told how to correct their scores */
    bool unseen;    /* never an item of the sequence that is asked about */
    int64_t items;  /* there are */
    uint64_t seed;
    float *chance;    /* [items]: of staying with the item looked at, instead of its alias; NULL: drawn evenly; owned */
    int32_t *alias;   /* [items]; owned */
    float *share;     /* [items]: the chance of one draw; NULL: even; owned */
    float *frequency; /* [items]: the part of the training split's events, where scores are corrected; owned */
} lp_negatives;

/* Item i is drawn with a chance that grows as (occurrences in the training split) ^ power. how, count, shared, corrected,
 * unseen, items and seed must be filled in. `event type` gives the items of the dataset's events. */
lapse_status lp_negatives_init(lp_negatives *negatives, const lapse_dataset *dataset, const uint8_t *split,
                               const int32_t *type, double power, lapse_error *error);
void lp_negatives_clear(lp_negatives *negatives);

/* Draw number `attempt` (0, 1, ...) for negative `number` of place `place` in step `step`. */
int32_t lp_negatives_draw(const lp_negatives *negatives, uint32_t step, uint64_t place, int number, uint32_t attempt);

/* The first draws for all negatives of `places` places from `place` on: [places x count]. */
void lp_negatives_fill(const lp_negatives *negatives, uint32_t step, uint64_t place, int places, int32_t *items);

/* The shared draws from number `first` on: [count]. */
void lp_negatives_shared(const lp_negatives *negatives, uint32_t step, int first, int count, int32_t *items);

/* -log of the chance that an item is among the shared draws or `events` events of the training split. */
float lp_negatives_logq(const lp_negatives *negatives, int32_t item, int events);

#endif
