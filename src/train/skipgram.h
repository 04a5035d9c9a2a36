/* skipgram.h: item vectors by skip-gram with negative sampling (word2vec), with item features from a catalogue.
 *
 *   vector of item i      h_i = own_i + sum of the vectors of its features
 *   loss of item o in the context window of item i
 *                         -log sigma(h_i . c_o) - sum over negatives n of log sigma(-h_i . c_n)
 *
 * The own vector of an item with features is initially 0, so an item without training events has the sum of its
 * features. A feature without items in the training split stays 0.
 *
 * Updates are sequential, in an order given by the seed. The result does not depend on threads.
 */
#ifndef LP_SKIPGRAM_H
#define LP_SKIPGRAM_H

#include "base/random.h"
#include "data/import/catalogue.h"
#include "data/batch/negatives.h"

typedef struct lp_skipgram {
    const lapse_dataset *dataset;
    const uint8_t *split; /* only events of the training split are read */
    const lp_catalogue *catalogue;
    int dims, window, negative_count, epochs;
    double session_gap; /* seconds: events further apart are in no common window; 0: no limit */
    double learning_rate, power;
    uint64_t seed;

    int stride;        /* dims rounded up to SIMD width, padded with zeros */
    float *own;        /* [items x stride], owned */
    float *features;   /* [features x stride], owned */
    float *contexts;   /* [known items x stride], owned */
    int32_t *counts;   /* [items]: occurrences in the training split; owned */
    int64_t *order;    /* [sequences]: of the current epoch; owned */
    float *sum, *step; /* [stride], owned: h of the current item, and the update of its vectors */
    float norm;        /* of h */
    int32_t *others;   /* [2 window (1 + negative_count)], owned: positive and negative items of an event */
    lp_negatives negatives;
    lp_random random;     /* of the epoch: window sizes */
    int64_t events, done; /* of the training split; processed in all epochs so far */
    double loss;          /* of the epoch so far, summed over pairs */
    int64_t pairs;        /* of the epoch so far */
} lp_skipgram;

/* The members before `stride` must be set. */
lapse_status lp_skipgram_init(lp_skipgram *skipgram, lapse_error *error);
void lp_skipgram_clear(lp_skipgram *skipgram);

/* Shuffles the sequences for an epoch (from 0). lp_skipgram_train then processes the sequences first .. end - 1 of the
 * order. */
void lp_skipgram_epoch(lp_skipgram *skipgram, int epoch);
void lp_skipgram_train(lp_skipgram *skipgram, int64_t first, int64_t end, int epoch);

/* The vector of an item: dims numbers. */
void lp_skipgram_vector(const lp_skipgram *skipgram, int64_t item, float *vector);

#endif
