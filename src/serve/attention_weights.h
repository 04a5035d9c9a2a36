/* attention_weights.h: the probabilities with which the newest event of a history attends to the events of its window.
 *
 * Kernels never store them. They are computed here, in double, from the inputs of an attention node, and only when they are
 * needed: a prediction costs nothing more. */
#ifndef LP_ATTENTION_WEIGHTS_H
#define LP_ATTENTION_WEIGHTS_H

#include "backend/backend.h"

/* The index of the attention node of a block, from 0; the number of nodes of the graph if it has no such block. Attention
 * without a softmax (additive_attention) has no probabilities and does not count. */
int lp_attention_node(const lp_graph *graph, int block);

/* Adds factor * p(newest event, i) of one head to weights[i], for every event i of the window. The run has run every node
 * before this one, for one segment in host memory; `scores` has an element for each event. */
void lp_attention_add(const lp_node *node, const lp_run *run, int head, double factor, double *scores, double *weights);

#endif
