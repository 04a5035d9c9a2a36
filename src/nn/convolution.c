/* convolution.c: causal convolution layers with their parameters. */
#include "nn/convolution.h"

#include "nn/layer.h"

#include <stdio.h>

lp_value *lp_conv1d_layer(lp_graph *graph, const char *name, lp_value *x, int height, int filters)
{
    char full[LP_PARAMETER_NAME_SIZE];
    if (!x)
        return NULL;
    double bound = lp_uniform_bound(height * x->cols);
    snprintf(full, sizeof full, "%s.%d.weight", name, height);
    lp_value *weight = lp_graph_parameter(graph, full, height * filters, x->cols, LP_INIT_UNIFORM, bound);
    snprintf(full, sizeof full, "%s.%d.bias", name, height);
    lp_value *bias = lp_graph_parameter(graph, full, 1, filters, LP_INIT_UNIFORM, bound);
    return lp_fold(graph, lp_linear(graph, x, weight, NULL, NULL, 1, true), bias, height);
}
