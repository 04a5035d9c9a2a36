/* layer.c: layer norm and linear layers with their parameters. */
#include "nn/layer.h"

#include <math.h>
#include <stdio.h>

double lp_uniform_bound(int inputs)
{
    return 1 / sqrt((double)inputs);
}

lp_value *lp_norm(lp_graph *graph, const char *name, lp_value *x)
{
    char full[LP_PARAMETER_NAME_SIZE];
    if (!x)
        return NULL;
    snprintf(full, sizeof full, "%s.weight", name);
    lp_value *weight = lp_graph_parameter(graph, full, 1, x->cols, LP_INIT_ONES, 0);
    snprintf(full, sizeof full, "%s.bias", name);
    lp_value *bias = lp_graph_parameter(graph, full, 1, x->cols, LP_INIT_ZEROS, 0);
    return lp_layer_norm(graph, x, weight, bias, 1e-5);
}

lp_value *lp_layer(lp_graph *graph, const char *name, lp_value *x, int out, lp_value *add)
{
    char full[LP_PARAMETER_NAME_SIZE];
    if (!x)
        return NULL;
    double bound = lp_uniform_bound(x->cols);
    snprintf(full, sizeof full, "%s.weight", name);
    lp_value *weight = lp_graph_parameter(graph, full, out, x->cols, LP_INIT_UNIFORM, bound);
    snprintf(full, sizeof full, "%s.bias", name);
    lp_value *bias = lp_graph_parameter(graph, full, 1, out, LP_INIT_UNIFORM, bound);
    return lp_linear(graph, x, weight, bias, add, 1, true);
}
