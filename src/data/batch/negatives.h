/* negatives.h: negative sampling for sampled losses.
 *
 * A sample is a function of (seed, step, target, number), so it does not depend on thread, shard or backend. Items
 * are sampled uniformly, or with a probability proportional to a power of their count in the training split (Walker's
 * alias method: one random number, one table lookup).
 *
 * Negatives are sampled per target (`count`), or once per step and shared by all targets (`shared`), which then also
 * use the other items of their shard as in-batch negatives. Scores under such sampling are biased towards items that
 * are rarely among the candidates; the logQ correction, -log of the probability of being a candidate, removes the
 * bias (Bengio and Senecal 2008; Yang et al. 2020).
 */
#ifndef LP_NEGATIVES_H
#define LP_NEGATIVES_H

#include "data/dataset/dataset.h"

typedef enum lp_negative_sampling {
    LP_NEGATIVES_UNIFORM,
    LP_NEGATIVES_POPULARITY,
    LP_NEGATIVES_IN_BATCH /* of a target: targets of other positions of the shard, and its own by chance */
} lp_negative_sampling;

/* "uniform", "popularity", "in-batch", NULL */
extern const char *const lp_negative_names[];

typedef struct lp_negatives {
    lp_negative_sampling sampling;
    int count;      /* samples per target */
    int shared;     /* samples per step, shared by all targets */
    bool corrected; /* scores get the logQ correction */
    bool unseen;    /* reject items that occur in the sequence of the target */
    int64_t items;  /* size of the catalogue */
    uint64_t seed;
    float *acceptance;  /* [items]: alias method: probability to accept the item instead of its alias; NULL: uniform;
                       * owned */
    int32_t *alias;     /* [items]; owned */
    float *probability; /* [items]: probability of an item per sample; NULL: uniform; owned */
    float *frequency;   /* [items]: fraction of the training events, where scores are corrected; owned */
} lp_negatives;

/* Items are sampled with a probability proportional to (count in the training split) ^ power. The caller sets
 * sampling, count, shared, corrected, unseen, items and seed before. `type` holds the item of every event of the
 * dataset. */
lapse_status lp_negatives_init(lp_negatives *negatives, const lapse_dataset *dataset, const uint8_t *split,
                               const int32_t *type, double power, lapse_error *error);
void lp_negatives_clear(lp_negatives *negatives);

/* Negative `number` of target `target` in step `step`; attempt 0, 1, ... gives independent samples, for rejection
 * sampling. */
int32_t lp_negatives_sample(const lp_negatives *negatives, uint32_t step, uint64_t target, int number,
                            uint32_t attempt);

/* Attempt 0 of all negatives of `targets` targets from `target` on: [targets x count]. */
void lp_negatives_fill(const lp_negatives *negatives, uint32_t step, uint64_t target, int targets, int32_t *items);

/* Shared samples number `first` .. first + count - 1: [count]. */
void lp_negatives_shared(const lp_negatives *negatives, uint32_t step, int first, int count, int32_t *items);

/* The logQ correction: -log of the probability that an item is among the shared samples or `events` events of the
 * training split. */
float lp_negatives_logq(const lp_negatives *negatives, int32_t item, int events);

#endif
