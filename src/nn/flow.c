/* flow.c: normalizing flows as graphs: masked networks, and the two directions of a layer. */
#include "nn/flow.h"

#include <stdio.h>

const lp_flow_type lp_flow_maf = {1, {LP_ORDER_AUTOREGRESSIVE}, false};
const lp_flow_type lp_flow_iaf = {1, {LP_ORDER_AUTOREGRESSIVE}, true};
const lp_flow_type lp_flow_nvp = {2, {LP_ORDER_COUPLING_UPPER, LP_ORDER_COUPLING_LOWER}, false};

/* A layer scales a variable by e^3 at most, so that a large optimizer step cannot overflow. */
static const double MAX_LOG_SCALE = 3;

static lp_value *parameter(lp_graph *graph, int layer, const char *part, int rows, int cols, double spread)
{
    char name[64];
    snprintf(name, sizeof name, "time.flow.%d.%s", layer, part);
    return lp_graph_parameter(graph, name, rows, cols, spread > 0 ? LP_INIT_UNIFORM : LP_INIT_ZEROS, spread);
}

static void declare_layer(lp_graph *graph, int index, lp_order order, int units, int hidden, lp_flow_layer *layer)
{
    double first_bound = 1 / sqrt((double)units), second_bound = 1 / sqrt((double)hidden),
           output_bound = 0.1 * second_bound;
    lp_value *first = parameter(graph, index, "first.weight", hidden, units, first_bound);
    layer->first_bias = parameter(graph, index, "first.bias", 1, hidden, first_bound);
    lp_value *second = parameter(graph, index, "second.weight", hidden, hidden, second_bound);
    layer->second_bias = parameter(graph, index, "second.bias", 1, hidden, second_bound);
    lp_value *shift = parameter(graph, index, "shift.weight", units, hidden, output_bound);
    layer->shift_bias = parameter(graph, index, "shift.bias", 1, units, 0);
    lp_value *scale = parameter(graph, index, "scale.weight", units, hidden, output_bound);
    layer->scale_bias = parameter(graph, index, "scale.bias", 1, units, 0);
    layer->order = order;
    layer->first_weight = lp_mask(graph, first, units, order, LP_LAYER_FIRST);
    layer->second_weight = lp_mask(graph, second, units, order, LP_LAYER_MIDDLE);
    layer->shift_weight = lp_mask(graph, shift, units, order, LP_LAYER_LAST);
    layer->scale_weight = lp_mask(graph, scale, units, order, LP_LAYER_LAST);
    /* The first autoregressive variable may have a constant shift and scale. The unchanged half of a coupling layer may
     * not. */
    if (order == LP_ORDER_AUTOREGRESSIVE)
        return;
    layer->shift_bias = lp_mask(graph, layer->shift_bias, units, order, LP_LAYER_BIAS);
    layer->scale_bias = lp_mask(graph, layer->scale_bias, units, order, LP_LAYER_BIAS);
}

void lp_flow_declare(lp_graph *graph, const lp_flow_type *type, int units, int hidden, lp_flow *flow)
{
    *flow = (lp_flow){.type = type, .units = units};
    for (int i = 0; i < type->layers; i++)
        declare_layer(graph, i, type->order[i], units, hidden, &flow->layers[i]);
}

/* Returns m(x); *log_scale is s(x). */
static lp_value *shift_and_scale(lp_graph *graph, const lp_flow_layer *layer, lp_value *x, lp_value **log_scale)
{
    lp_value *h = lp_relu(graph, lp_linear(graph, x, layer->first_weight, layer->first_bias, NULL, 1, true));
    h = lp_relu(graph, lp_linear(graph, h, layer->second_weight, layer->second_bias, NULL, 1, true));
    lp_value *scale = lp_linear(graph, h, layer->scale_weight, layer->scale_bias, NULL, 1, true);
    *log_scale = lp_tanh(graph, scale, MAX_LOG_SCALE);
    return lp_linear(graph, h, layer->shift_weight, layer->shift_bias, NULL, 1, true);
}

/* After pass n the variables of degree up to n are final. */
static lp_value *generate(lp_graph *graph, const lp_flow_layer *layer, int units, lp_value *z, lp_value **log_scale)
{
    lp_value *x = z;
    for (int pass = 0; pass < (layer->order == LP_ORDER_AUTOREGRESSIVE ? units : 1); pass++) {
        lp_value *shift = shift_and_scale(graph, layer, x, log_scale);
        x = lp_add(graph, lp_multiply(graph, z, lp_exp(graph, *log_scale)), shift);
    }
    return x;
}

static lp_value *normalize(lp_graph *graph, const lp_flow_layer *layer, lp_value *x, lp_value **log_scale)
{
    lp_value *scale, *shift = shift_and_scale(graph, layer, x, &scale);
    *log_scale = lp_affine(graph, scale, -1, 0);
    return lp_multiply(graph, lp_add(graph, x, lp_affine(graph, shift, -1, 0)), lp_exp(graph, *log_scale));
}

static lp_value *step(lp_graph *graph, const lp_flow *flow, int index, bool normalizes, lp_value *x,
                      lp_value *log_scales[LP_FLOW_LAYERS])
{
    const lp_flow_layer *layer = &flow->layers[index];
    lp_value *log_scale = NULL;
    x = normalizes ? normalize(graph, layer, x, &log_scale) : generate(graph, layer, flow->units, x, &log_scale);
    if (log_scales)
        log_scales[index] = log_scale;
    return x;
}

lp_value *lp_flow_forward(lp_graph *graph, const lp_flow *flow, lp_value *x, lp_value *log_scales[LP_FLOW_LAYERS])
{
    for (int i = 0; i < flow->type->layers; i++)
        x = step(graph, flow, i, flow->type->normalizes, x, log_scales);
    return x;
}

lp_value *lp_flow_inverse(lp_graph *graph, const lp_flow *flow, lp_value *x, lp_value *log_scales[LP_FLOW_LAYERS])
{
    for (int i = flow->type->layers - 1; i >= 0; i--)
        x = step(graph, flow, i, !flow->type->normalizes, x, log_scales);
    return x;
}
