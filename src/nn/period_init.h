/* period_init.h: initializers of learned periods, between the shortest and the longest. An initializer is a row of
 * lp_period_inits. */
#ifndef LP_PERIOD_INIT_H
#define LP_PERIOD_INIT_H

#include "graph/graph.h"

typedef struct lp_period_init {
    const char *name;
    const char *summary; /* one line for help texts */
    /* Declares a parameter [1 x count] of log periods in seconds. */
    lp_value *(*declare)(lp_graph *graph, const char *name, int count, double low, double high);
} lp_period_init;

/* In the order of preference, NULL-terminated. */
extern const lp_period_init *const lp_period_inits[];

#endif
