/* plan.h: places for a graph's values, decided once.
 *
 * Every value in the work buffer lives from the node that first writes it to the last that touches it. The planner
 * lays values whose lives overlap side by side and lets others share bytes, for the largest shard a run may meet.
 * A worker owns one such buffer and takes one shard after another through it.
 */
#ifndef LP_PLAN_H
#define LP_PLAN_H

#include "graph/op.h"

typedef struct lp_plan {
    const lp_graph *graph;
    size_t real_size;    /* bytes of LP_TYPE_REAL in the backend planned for */
    lp_extent largest;   /* shard */
    size_t work_size;    /* bytes of the work buffer */
    size_t scratch_size; /* bytes of the scratch buffer */
} lp_plan;

/* Sets value->offset of every LP_PLACE_WORK value. The graph must be complete. rest: for so many nodes nobody uses the bytes that
 * a value has left. Nodes that follow each other then seldom have to wait only because one writes where the other reads, and
 * may run side by side where a backend can do that. lp_plan_make: 0, which takes the least room. */
lapse_status lp_plan_make_rested(lp_plan *plan, lp_graph *graph, const lp_extent *largest, size_t real_size, int rest,
                                 lapse_error *error);
lapse_status lp_plan_make(lp_plan *plan, lp_graph *graph, const lp_extent *largest, size_t real_size,
                          lapse_error *error);

/* Bytes of one element. */
static inline size_t lp_type_size(lp_type type, size_t real_size)
{
    return type == LP_TYPE_REAL ? real_size : type == LP_TYPE_INT32 ? 4 : 8;
}

#endif
