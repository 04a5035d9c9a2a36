/* graph_samples.h: graphs of several ops, by size, for tests that want gradients to meet and shapes to be odd. */
#ifndef LP_GRAPH_SAMPLES_H
#define LP_GRAPH_SAMPLES_H

#include "graph/op.h"

/* Builds on leaves of its own and returns the last node. cols: columns of a head; extra: of other things. */
typedef struct graph_sample {
    const char *name;
    lp_node *(*build)(lp_graph *graph, int cols, int heads, int extra);
} graph_sample;

extern const graph_sample graph_samples[];
extern const int graph_sample_count;

#endif
