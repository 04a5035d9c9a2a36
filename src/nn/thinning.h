/* thinning.h: fewer frequencies for a history that is short beside their periods.
 *
 * Over lags from 0 to `span`, a cosine or sine that is slow there is a sum of a few other slow ones, to within rounding. So the
 * basis u of all frequencies is a fixed matrix times the basis u' of some of them,
 *
 *     u(s) = change u'(s)        0 <= s <= span
 *
 * and a network that sees time through W u(s) sees the same through (W change) u'(s): fewer columns in every product and
 * in attention. The frequencies that stay are frequencies of the model, and lags stay exact among them.
 */
#ifndef LP_THINNING_H
#define LP_THINNING_H

#include "base/error.h"

typedef struct lp_thinning {
    int count;         /* frequencies there were; */
    int kept;          /* and are */
    double *frequency; /* [kept], in the order they had; owned */
    float *change;     /* [2 count x 2 kept], cosines before sines on both sides; owned */
    double error;      /* the largest seen of any element of u, at places all over the span */
} lp_thinning;

/* The most that an element of u may be off. Its own rounding is a tenth of that. */
#define LP_THINNING_ERROR 1e-6

/* All `count` stay where that is not to be had with less. */
lapse_status lp_thinning_make(lp_thinning *thinning, int count, const double *frequency, double span,
                              lapse_error *error);
void lp_thinning_clear(lp_thinning *thinning);

#endif
