/* vectors.h: named item vectors and their file (docs/item-vectors.md), a container as for models.
 *
 *   item.vector                F32 [count x dims]
 *   item.count                 I32 [1 x count]     occurrences in the training split
 *   vocabulary.item.offset     U64 [1 x count + 1]
 *   vocabulary.item.bytes      U8  [1 x offset[count]]
 *
 * A vector of zeros means that nothing is known about the item.
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
    void *blocks[4]; /* owned: the memory of names, vector and counts */
    lp_arena arena;  /* of the properties */
    const char **property_name, **property_value;
    int property_count;
};

/* Vectors of these names, all zeros; the names are copied. NULL when out of memory. */
lapse_vectors *lp_vectors_new(const lp_names *names, int dims);

/* Adds a property: a name with a text. */
lapse_status lp_vectors_property_set(lapse_vectors *vectors, lapse_error *error, const char *name, const char *format,
                                     ...) __attribute__((format(printf, 4, 5)));

/* Whether the item has a vector other than zeros. */
bool lp_vectors_known(const lapse_vectors *vectors, int64_t item);

#endif
