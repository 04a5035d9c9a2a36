/* hoist.h: takes out of the way from events to an answer what is the same for all of them. */
#ifndef LP_HOIST_H
#define LP_HOIST_H

#include "graph/graph.h"

/* Rewrites a graph that answers, and computes the same:
 *
 *     f(table[ids]) = f(table)[ids]      where f works row by row and sees parameters alone besides: a product with the
 *                                        vectors of places, or of few event types, becomes a look at a table
 *     x W^T = x (W^T)                    with the weight turned beforehand: products read it in place then
 *
 * The nodes that make such tables and weights see parameters alone; a caller that orders them first need run them but once.
 * Tables have at most `room` elements together; what does not fit stays as it is. Nodes that nothing wants are left out, so
 * the values that are read after a run must be marked as kept by now. */
lapse_status lp_graph_hoist(lp_graph *graph, size_t room, lapse_error *error);

/* Whether a value is a parameter, or made of parameters alone. */
bool lp_value_is_fixed(const lp_value *value);

#endif
