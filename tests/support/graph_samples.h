/* graph_samples.h: graphs of several ops, by size, with accumulating gradients and odd shapes. */
#ifndef LP_GRAPH_SAMPLES_H
#define LP_GRAPH_SAMPLES_H

#include "graph/op.h"

/* Creates its own leaves and returns the last node. cols: columns per head; extra: other columns. */
typedef struct graph_sample {
    const char *name;
    lp_node *(*build)(lp_graph *graph, int cols, int heads, int extra);
} graph_sample;

extern const graph_sample graph_samples[];
extern const int graph_sample_count;

#endif
