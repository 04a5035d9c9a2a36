/* score.h: how the score of an item follows from a state and the item's vector, for kernels of all backends (row_lanes.h, which defines
 * `real`). A score is the sum of a term for each column, plus the item's bias.
 */
#ifndef LP_SCORE_H
#define LP_SCORE_H

#include "base/random.h"
#include "formula/loss.h"

#include <math.h>

LP_INLINE real lp_score_term(lp_score_rule rule, real z, real item)
{
    real d = z - item;
    return rule == LP_SCORE_PRODUCT ? z * item : rule == LP_SCORE_L2 ? -(d * d) : -(d < 0 ? -d : d);
}

/* The derivative of the term of a distance by the item's column; that by the state's column is its negative. */
LP_INLINE real lp_distance_slope(lp_score_rule rule, real z, real item)
{
    real d = z - item;
    return rule == LP_SCORE_L2 ? 2 * d : (real)((d > 0) - (d < 0));
}

LP_INLINE real lp_score_by_item(lp_score_rule rule, real z, real item)
{
    return rule == LP_SCORE_PRODUCT ? z : lp_distance_slope(rule, z, item);
}

LP_INLINE real lp_score_by_state(lp_score_rule rule, real z, real item)
{
    return rule == LP_SCORE_PRODUCT ? item : -lp_distance_slope(rule, z, item);
}

#endif
