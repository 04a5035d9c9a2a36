/* hoist.h: constant folding for inference graphs: hoists computations that depend on parameters only. */
#ifndef LP_HOIST_H
#define LP_HOIST_H

#include "graph/graph.h"

/* Rewrites a forward graph into an equivalent one:
 *
 *     f(table[ids]) = f(table)[ids]      for row-wise f with constant other inputs: a product with position or event
 *                                        embeddings becomes a lookup in a precomputed table
 *     x W^T = x (W^T)                    with the weight transposed in advance, as products read it fastest
 *
 * The nodes that compute such tables and weights have constant inputs, so a caller that runs them first runs them once.
 * All tables together have at most `max_elements`; a rewrite that would exceed it is skipped. Nodes whose outputs are
 * unused are removed, so mark the values to be read after a run as retained before. */
lapse_status lp_graph_hoist(lp_graph *graph, size_t max_elements, lapse_error *error);

/* Whether a value is a parameter or constant input, or computed from these only: the same in every run. */
bool lp_value_is_constant(const lp_value *value);

#endif
