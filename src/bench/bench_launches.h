/* bench_launches.h: the kernel launches of a device: the nodes of each, and its minimum time over rounds. */
#ifndef LP_BENCH_LAUNCHES_H
#define LP_BENCH_LAUNCHES_H

#include "backend/backend.h"
#include "lapse_lab.h"

typedef struct lp_bench_launch {
    const char *type;
    int first, count;            /* its first node, and the number of its nodes */
    int64_t new_calls, calls;    /* in the current round; in the previous one */
    double seconds, min_seconds; /* of the current round; minimum over the rounds */
} lp_bench_launch;

typedef struct lp_bench_launches {
    lp_bench_launch *all; /* by launch index; owned */
    int count, capacity;
    int *counted_in;    /* [nodes]: the launch that the node's cost is attributed to; -1: none; owned */
    bool out_of_memory; /* some launches are missing */
} lp_bench_launches;

lapse_status lp_bench_launches_init(lp_bench_launches *launches, int nodes, lapse_error *error);
void lp_bench_launches_clear(lp_bench_launches *launches);

/* lp_profiler.on_launch with an lp_bench_launches as context. The times of a launch are summed over the runs of a
 * round. */
void lp_bench_launches_record(void *context, const lp_launch *launch);

/* Ends a round and updates the minimum times. */
void lp_bench_launches_end_round(lp_bench_launches *launches, bool first);

/* Fills one row per launch. costs: of all nodes in a round. */
void lp_bench_launches_rows(const lp_bench_launches *launches, const lp_graph *graph, const lp_cost *costs,
                            lapse_bench_row *rows);

#endif
