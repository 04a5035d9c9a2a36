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
    bool arranged;       /* made for the moments that a backend chose */
} lp_plan;

/* When a node runs. Nodes of one moment run side by side, or as one, or in their order; those of later moments after them. One that runs
 * in pieces has more than one moment. */
typedef struct lp_schedule_level {
    int first, last;
} lp_schedule_level;

/* Sets value->offset of every LP_STORAGE_WORK value. The graph must be complete. moments: of every node, where a backend does not run them
 * in their order; NULL: node i runs at moment i. rest: for so many moments nobody uses the bytes that a value has left. What follows
 * then seldom has to wait only because it writes where others read, and may run side by side with them where a backend can do that.
 * lp_plan_make: in order and without rest, which takes the least room. */
lapse_status lp_plan_make_at(lp_plan *plan, lp_graph *graph, const lp_extent *largest, size_t real_size,
                             const lp_schedule_level *moments, int rest, lapse_error *error);
lapse_status lp_plan_make(lp_plan *plan, lp_graph *graph, const lp_extent *largest, size_t real_size,
                          lapse_error *error);

/* Bytes of one element. */
static inline size_t lp_type_size(lp_type type, size_t real_size)
{
    return type == LP_TYPE_REAL ? real_size : type == LP_TYPE_INT32 ? 4 : 8;
}

#endif
