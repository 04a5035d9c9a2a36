/* vectors.h: named vectors of items, and the file that holds them (docs/item-vectors.md): the same container as a model's.
 *
 *   item.vector                F32 [count x dims]
 *   item.count                 I32 [1 x count]     occurrences in the training split; 0: known from its description alone
 *   vocabulary.item.offset     U64 [1 x count + 1]
 *   vocabulary.item.bytes      U8  [1 x offset[count]]
 *
 * A vector of zeros says that nothing is known of the item.
 */
#ifndef LP_VECTORS_H
#define LP_VECTORS_H

#include "model/container.h"

struct lapse_vectors {
    int64_t count;
    int dims;
    lp_names names;
    float *vector;   /* [count x dims] */
    int32_t *counts; /* [count] */
    void *blocks[4]; /* owned: what the above point to */
    lp_arena arena;  /* of the properties */
    const char **property_name, **property_value;
    int property_count;
};

/* Vectors of these names, all zeros; the names are copied. NULL when out of memory. */
lapse_vectors *lp_vectors_new(const lp_names *names, int dims);

/* Adds to what is known about them. */
lapse_status lp_vectors_property_set(lapse_vectors *vectors, lapse_error *error, const char *name, const char *format,
                                     ...) __attribute__((format(printf, 4, 5)));

/* Whether item i has a vector that says anything. */
bool lp_vectors_tell(const lapse_vectors *vectors, int64_t item);

#endif
