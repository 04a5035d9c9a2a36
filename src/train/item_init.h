/* item_init.h: a recommender whose item embedding is initialized with pre-trained vectors, and which knows items that never occur
 * in training (cold items).
 *
 * The items of the model are the dataset's, then those that only the vectors file has. All are initialized with their vectors.
 * Training moves the rows of items that occur and leaves the others behind, so at its end a ridge regression from vectors to
 * learned rows is fitted on the items that occur, and applied to the vectors of the others. Their bias is that of the rarest item
 * that occurs.
 */
#ifndef LP_ITEM_INIT_H
#define LP_ITEM_INIT_H

#include "data/dataset/intern.h"
#include "train/train_options.h"

typedef struct lp_item_init {
    lapse_vectors *vectors; /* owned; NULL: there are none, and the model's items are the dataset's */
    lp_intern names;        /* of the model's items */
    int32_t *row;           /* [names.count]: row of the item's vector; -1: none, or a vector of zeros; owned */
    int32_t *count;         /* [names.count]: occurrences in the training split; owned */
} lp_item_init;

/* Takes over the vectors that the resolved options name; NULL: there are none, and *init stays empty. Vectors of another width
 * than the model's, and vectors learned from events that this run holds out, are refused. */
lapse_status lp_item_init_open(lp_item_init *init, lapse_vectors *vectors, const lapse_dataset *dataset,
                               const uint8_t *split, const lapse_train_options *options, lapse_error *error);
void lp_item_init_clear(lp_item_init *init);

/* Fills the item tables of a model's initial parameters with the vectors, if there are any. */
void lp_item_init_fill(const lp_item_init *init, lapse_model *model);

/* Gives the items that never occur in training their rows and biases, in a trained model. */
lapse_status lp_item_init_place(const lp_item_init *init, lapse_model *model, lapse_error *error);

#endif
