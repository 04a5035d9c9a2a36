/* layer.h: layers with their parameters: layer norm and linear. */
#ifndef LP_LAYER_H
#define LP_LAYER_H

#include "graph/op.h"

/* Buffer size of a parameter's name. */
enum { LP_PARAMETER_NAME_SIZE = 96 };

/* Bound of the uniform initialization of a layer, as in torch.nn.Linear: 1 / sqrt(inputs). */
double lp_uniform_bound(int inputs);

/* Layer norm with parameters <name>.weight (ones) and <name>.bias (zeros). */
lp_value *lp_norm(lp_graph *graph, const char *name, lp_value *x);

/* x W^T + b + add with parameters <name>.weight [out x in] and <name>.bias [1 x out]. add may be NULL. */
lp_value *lp_layer(lp_graph *graph, const char *name, lp_value *x, int out, lp_value *add);

#endif
