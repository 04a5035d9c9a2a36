/* inverse_cdf.h: learned maps from noise to the frequencies of bochner-invcdf. A map is a row of lp_inverse_cdfs. */
#ifndef LP_INVERSE_CDF_H
#define LP_INVERSE_CDF_H

#include "graph/op.h"

typedef struct lp_inverse_cdf {
    const char *name;
    const char *summary; /* one line for help texts */
    bool uniform;        /* uniform noise; otherwise standard normal */
    bool joint;          /* maps all numbers jointly, [1 x count]; otherwise each number separately, [count x 1] */
    /* Declares parameters time.… and builds the map. The output has the noise's shape and initially about the spread of
     * a standard normal. Uniform noise is scaled to (-2, 2). */
    lp_value *(*build)(lp_graph *graph, lp_value *noise, int hidden);
} lp_inverse_cdf;

/* In the order of preference, NULL-terminated. */
extern const lp_inverse_cdf *const lp_inverse_cdfs[];

#endif
