/* plan.h: static memory planning of the work buffer.
 *
 * A value in the work buffer is live from the first node that writes it to the last node that uses it. Values with
 * overlapping live ranges get disjoint bytes, others may share bytes. Sizes are those of the largest shard of any run. Each
 * thread has one work buffer, which it reuses for all shards. An optional value gets bytes only if it is small, and not where
 * a backend has a schedule: a device stores what it needs in memory of its own.
 */
#ifndef LP_PLAN_H
#define LP_PLAN_H

#include "graph/op.h"

/* value->offset of an optional value without bytes, for which lp_run_data returns NULL; the bytes of a small one, at most. */
#define LP_LEFT_OUT SIZE_MAX
enum { LP_OPTIONAL_BYTES = 32 << 20 };

typedef struct lp_plan {
    const lp_graph *graph;
    size_t real_size;    /* bytes of LP_TYPE_REAL in the backend planned for */
    lp_extent largest;   /* shard */
    size_t work_size;    /* bytes of the work buffer */
    size_t scratch_size; /* bytes of the scratch buffer */
    bool scheduled;      /* planned for levels that a backend chose */
} lp_plan;

/* The schedule levels of a node. Nodes of one level may run concurrently or fused; a level starts after the levels before
 * it. A node that runs in several parts spans several levels. */
typedef struct lp_schedule_level {
    int first, last;
} lp_schedule_level;

/* Sets value->offset of every LP_STORAGE_WORK value of a complete graph.
 *   levels       of every node; NULL: node i runs at level i
 *   reuse_delay  levels before the bytes of a dead value are reused. A larger delay avoids write-after-read dependencies
 *                between levels, so that a backend can run more nodes concurrently, but needs more memory.
 * lp_plan_make: nodes in order and no delay, which needs the least memory. */
lapse_status lp_plan_make_at(lp_plan *plan, lp_graph *graph, const lp_extent *largest, size_t real_size,
                             const lp_schedule_level *levels, int reuse_delay, lapse_error *error);
lapse_status lp_plan_make(lp_plan *plan, lp_graph *graph, const lp_extent *largest, size_t real_size,
                          lapse_error *error);

/* Bytes of one element. */
static inline size_t lp_type_size(lp_type type, size_t real_size)
{
    return type == LP_TYPE_REAL ? real_size : type == LP_TYPE_INT32 ? 4 : 8;
}

#endif
