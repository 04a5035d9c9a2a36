/* inverse_cdf.c: learned maps from noise to frequencies: an MLP per number, or a flow of all numbers. */
#include "nn/inverse_cdf.h"

#include "nn/flow.h"

/* ------------------------------------------------------------------------------------------- --- MLPs ----- */

static lp_value *layer(lp_graph *graph, const char *weight_name, const char *bias_name, lp_value *x, int out,
                       double bound)
{
    if (!x)
        return NULL;
    lp_value *weight = lp_graph_parameter(graph, weight_name, out, x->cols, LP_INIT_UNIFORM, bound);
    lp_value *bias = lp_graph_parameter(graph, bias_name, 1, out, LP_INIT_UNIFORM, 1 / sqrt((double)x->cols));
    return lp_linear(graph, x, weight, bias, NULL, 1, true);
}

/* MLP 1 -> hidden -> hidden -> 1. The bound sqrt(6 / inputs) preserves the variance through a relu (He initialization).
 * output_scale multiplies the bound of the last layer. */
static lp_value *mlp_of(lp_graph *graph, lp_value *noise, int hidden, double output_scale)
{
    double bound = sqrt(6.0 / hidden);
    lp_value *h = layer(graph, "time.inverse.first.weight", "time.inverse.first.bias", noise, hidden, sqrt(6.0));
    h = layer(graph, "time.inverse.second.weight", "time.inverse.second.bias", lp_relu(graph, h), hidden, bound);
    return layer(graph, "time.inverse.third.weight", "time.inverse.third.bias", lp_relu(graph, h), 1,
                 output_scale * bound);
}

static lp_value *build_mlp(lp_graph *graph, lp_value *noise, int hidden)
{
    return mlp_of(graph, noise, hidden, 1);
}

/* noise + MLP, with small initial weights: the map is initially near the identity. */
static lp_value *build_mlp_residual(lp_graph *graph, lp_value *noise, int hidden)
{
    return lp_add(graph, noise, mlp_of(graph, noise, hidden, 0.1));
}

/* ------------------------------------------------------------------------------------------------- flows ----- */

static lp_value *build_flow(lp_graph *graph, const lp_flow_type *type, lp_value *noise, int hidden)
{
    lp_flow flow;
    if (!noise)
        return NULL;
    lp_flow_declare(graph, type, noise->cols, hidden, &flow);
    return lp_flow_forward(graph, &flow, noise, NULL);
}

static lp_value *build_maf(lp_graph *graph, lp_value *noise, int hidden)
{
    return build_flow(graph, &lp_flow_maf, noise, hidden);
}

static lp_value *build_iaf(lp_graph *graph, lp_value *noise, int hidden)
{
    return build_flow(graph, &lp_flow_iaf, noise, hidden);
}

static lp_value *build_nvp(lp_graph *graph, lp_value *noise, int hidden)
{
    return build_flow(graph, &lp_flow_nvp, noise, hidden);
}

/* ------------------------------------------------------------------------------------------------- table ----- */

static const lp_inverse_cdf mlp = {"mlp", "an MLP of three layers", true, false, build_mlp};
static const lp_inverse_cdf mlp_residual = {"mlp-residual", "noise + MLP (residual)", true, false, build_mlp_residual};
static const lp_inverse_cdf maf = {"maf", "masked autoregressive flow", false, true, build_maf};
static const lp_inverse_cdf iaf = {"iaf", "inverse autoregressive flow", false, true, build_iaf};
static const lp_inverse_cdf nvp = {"nvp", "RealNVP: affine coupling of alternate halves", false, true, build_nvp};

const lp_inverse_cdf *const lp_inverse_cdfs[] = {&mlp, &mlp_residual, &maf, &iaf, &nvp, NULL};
