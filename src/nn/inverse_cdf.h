/* inverse_cdf.h: learned maps from noise to the frequencies of bochner-invcdf. A map is a row of lp_inverse_cdfs. */
#ifndef LP_INVERSE_CDF_H
#define LP_INVERSE_CDF_H

#include "graph/op.h"

typedef struct lp_inverse_cdf {
    const char *name;
    const char *summary; /* for people */
    bool uniform;        /* its noise, otherwise standard normal */
    bool joint;          /* maps all numbers together, [1 x count]; otherwise each by itself, [count x 1] */
    /* Declares parameters time.… and builds the map, to values of the noise's shape that begin about as spread as a
     * standard normal. Uniform noise comes scaled to (-2, 2). */
    lp_value *(*build)(lp_graph *graph, lp_value *noise, int hidden);
} lp_inverse_cdf;

/* In the order of preference, NULL-terminated. */
extern const lp_inverse_cdf *const lp_inverse_cdfs[];
const lp_inverse_cdf *lp_inverse_cdf_find(const char *name);

#endif
