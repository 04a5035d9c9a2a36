/* bench_launches.h: the launches of a device, one by one: which nodes each stands for, and its least time over rounds. */
#ifndef LP_BENCH_LAUNCHES_H
#define LP_BENCH_LAUNCHES_H

#include "backend/backend.h"

typedef struct lp_bench_launch {
    const char *type;
    int first, count;      /* the first of its nodes, and how many there are */
    int64_t taken, calls;  /* in the round at hand; in the one before */
    double seconds, least; /* of the round at hand; of all */
} lp_bench_launch;

typedef struct lp_bench_launches {
    lp_bench_launch *all; /* by number; owned */
    int count, capacity;
    int *counted_in; /* [nodes]: the launch that a node's work counts for, -1 at first; owned */
    bool lost;       /* out of memory: some are missing */
} lp_bench_launches;

lapse_status lp_bench_launches_init(lp_bench_launches *launches, int nodes, lapse_error *error);
void lp_bench_launches_clear(lp_bench_launches *launches);

/* lp_profiler.on_launch; the context is the lp_bench_launches. A round may have several runs: a launch's times add up. */
void lp_bench_launches_take(void *context, const lp_launch *launch);

/* At the end of a round: what is shorter than before is kept. */
void lp_bench_launches_keep(lp_bench_launches *launches, bool first);

/* Fills a row for each launch, in their order. costs: of all nodes, in a round. */
void lp_bench_launches_rows(const lp_bench_launches *launches, const lp_graph *graph, const lp_cost *costs,
                            lapse_bench_row *rows);

#endif
