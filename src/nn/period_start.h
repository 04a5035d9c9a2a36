/* period_start.h: where learned periods begin, between the shortest and the longest. A way is a row of lp_period_starts. */
#ifndef LP_PERIOD_START_H
#define LP_PERIOD_START_H

#include "graph/graph.h"

typedef struct lp_period_start {
    const char *name;
    const char *summary; /* for people */
    /* Declares a parameter [1 x count] of log periods in seconds. */
    lp_value *(*declare)(lp_graph *graph, const char *name, int count, double low, double high);
} lp_period_start;

/* In the order of preference, NULL-terminated. */
extern const lp_period_start *const lp_period_starts[];
const lp_period_start *lp_period_start_find(const char *name);

#endif
