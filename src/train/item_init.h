/* item_init.h: a recommender that starts from item vectors, and has a place for items that it never meets.
 *
 * The items of the model are the dataset's, then those that only the vectors know. All start from their vectors. Training then moves the rows of items that occur and leaves the others behind;
 * so at its end those are put where items described like them have come to stand: the map from vectors to learned rows that
 * fits the met items best (least squares) is applied to the vectors of the others. Their bias is that of the rarest met.
 */
#ifndef LP_ITEM_INIT_H
#define LP_ITEM_INIT_H

#include "data/dataset/intern.h"
#include "model/vectors.h"

typedef struct lp_item_init {
    lapse_vectors *vectors; /* owned; NULL: there are none, and the model's items are the dataset's */
    lp_intern names;        /* of the model's items */
    int32_t *row;           /* [names.count]: which vector is the item's; -1: none, or one that tells nothing; owned */
    int32_t *count;         /* [names.count]: occurrences in the training split; owned */
} lp_item_init;

/* Reads the vectors that the resolved options name, if any. Other dims than the model's, and vectors learned from what this
 * run holds out, are refused. */
lapse_status lp_item_init_open(lp_item_init *start, const lapse_dataset *dataset, const lapse_train_options *options,
                               lapse_error *error);
void lp_item_init_clear(lp_item_init *start);

/* Counts the items of the training split. */
void lp_item_init_count(lp_item_init *start, const lapse_dataset *dataset, const uint8_t *split);

/* Puts the vectors into a table [names.count x dims] of starting values, whose elements then have this deviation. */
void lp_item_init_fill(const lp_item_init *start, double deviation, float *table);

/* Puts the items never met where their vectors say, in a learned table [names.count x dims]. */
lapse_status lp_item_init_place(const lp_item_init *start, float *table, lapse_error *error);

/* Gives the items never met the mean of what the rarest met ones have learned in bias [names.count x 1]. */
void lp_item_init_bias(const lp_item_init *start, float *bias);

#endif
