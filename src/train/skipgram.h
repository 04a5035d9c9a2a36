/* skipgram.h: shallow vectors of items from what occurs near what (skip-gram with negative sampling), and from what a
 * catalogue tells of the items.
 *
 *   vector of item i      h_i = own_i + sum of the vectors of its features
 *   item o near item i    log sigma(h_i . c_o) + sum over negatives n of log sigma(-h_i . c_n)     is made large
 *
 * A described item's own part begins at 0, so it is what the item has learned beyond its description, and an item that never
 * occurred has exactly the sum of its features. A feature that no item of the training split has stays 0 likewise.
 *
 * Updates are done one after the other in an order that the seed fixes: vectors depend on no number of threads.
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
    double session_gap; /* seconds: events further apart are not near each other; 0: no matter how far */
    double learning_rate, power;
    uint64_t seed;

    int stride;        /* dims rounded up, the rest zeros: rows are whole vectors of the machine */
    float *own;        /* [items x stride], owned */
    float *features;   /* [features x stride], owned */
    float *contexts;   /* [known items x stride], owned */
    int32_t *counts;   /* [items]: occurrences in the training split; owned */
    int64_t *order;    /* [sequences]: of the current epoch; owned */
    float *sum, *step; /* [stride], owned: h of the item being read, and what is to be added to its parts */
    int32_t *others;   /* [2 window (1 + negative_count)], owned: items that one is told from or towards */
    lp_negatives negatives;
    lp_random random;     /* of the epoch: how far each item looks */
    int64_t events, done; /* of the training split, and read in all epochs so far */
    double loss;          /* of the epoch so far, summed over pairs */
    int64_t pairs;        /* of the epoch so far */
} lp_skipgram;

/* What stands before `stride` must be filled in. */
lapse_status lp_skipgram_init(lp_skipgram *skipgram, lapse_error *error);
void lp_skipgram_clear(lp_skipgram *skipgram);

/* Lays out an epoch (from 0); then reads the sequences at places first .. end - 1 of its order. */
void lp_skipgram_epoch(lp_skipgram *skipgram, int epoch);
void lp_skipgram_read(lp_skipgram *skipgram, int64_t first, int64_t end, int epoch);

/* The vector of an item: dims numbers. */
void lp_skipgram_vector(const lp_skipgram *skipgram, int64_t item, float *vector);

#endif
