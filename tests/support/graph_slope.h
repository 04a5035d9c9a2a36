/* graph_slope.h: the gradients of a graph's parameters against finite differences in double, to a relative 1e-5. */
#ifndef LP_GRAPH_SLOPE_H
#define LP_GRAPH_SLOPE_H

#include "support/graph_case.h"

/* Checks every `every`-th element of every trained parameter. Fails the test, naming `what`, if they differ. */
void graph_slope_check(graph_case *this, const char *what, int every);

#endif
