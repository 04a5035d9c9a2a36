/* convolution.h: causal convolution layers over packed sequences: the ops of graph/op_convolution.c with their parameters. */
#ifndef LP_CONVOLUTION_H
#define LP_CONVOLUTION_H

#include "graph/op.h"

/* As torch.nn.Conv1d of kernel size `height` computes it over each sequence with height - 1 zeros before its start:
 * x [T x a] -> [T x filters]. Declares <name>.<height>.weight [height*filters x a], whose first rows are those of the newest event, and
 * <name>.<height>.bias [1 x filters]. */
lp_value *lp_conv1d_layer(lp_graph *graph, const char *name, lp_value *x, int height, int filters);

#endif
