/* flow.h: normalizing flows: invertible neural maps of one row of variables, with their log-determinants.
 *
 * A layer has a masked network (op mask) that computes a shift m and a log scale s of each variable from earlier
 * variables. It has two directions, inverse to each other:
 *     generate    x = z exp(s(x)) + m(x)       one pass per autoregressive degree
 *     normalize   z = (x - m(x)) exp(-s(x))    one pass
 * The flows, named as in TensorFlow Probability, differ in the mask and in the direction that is called forward:
 *     maf   masked autoregressive: a variable depends on those before it; forward generates, one pass per variable
 *     iaf   inverse autoregressive: the same mask; forward normalizes
 *     nvp   RealNVP: two coupling layers, where one half depends on the other, alternately; forward generates in one
 *           pass, because the other half is unchanged
 */
#ifndef LP_FLOW_H
#define LP_FLOW_H

#include "graph/op.h"

enum { LP_FLOW_LAYERS = 2 };

typedef struct lp_flow_type {
    int layers;
    lp_order order[LP_FLOW_LAYERS];
    bool normalizes; /* forward normalizes; otherwise it generates */
} lp_flow_type;

extern const lp_flow_type lp_flow_maf, lp_flow_iaf, lp_flow_nvp;

typedef struct lp_flow_layer {
    lp_order order;
    lp_value *first_weight, *first_bias;   /* [h x units], [1 x h] */
    lp_value *second_weight, *second_bias; /* [h x h], [1 x h] */
    lp_value *shift_weight, *shift_bias;   /* [units x h], [1 x units] */
    lp_value *scale_weight, *scale_bias;   /* [units x h], [1 x units] */
} lp_flow_layer;

typedef struct lp_flow {
    const lp_flow_type *type;
    int units;
    lp_flow_layer layers[LP_FLOW_LAYERS];
} lp_flow;

/* Declares the parameters time.flow.<layer>.… of a flow on `units` variables with two hidden layers of `hidden` units.
 * It is initially close to the identity. */
void lp_flow_declare(lp_graph *graph, const lp_flow_type *type, int units, int hidden, lp_flow *flow);

/* x [1 x units] -> [1 x units]. The log-determinant is the sum of all elements of log_scales, one [1 x units] per
 * layer; log_scales may be NULL. */
lp_value *lp_flow_forward(lp_graph *graph, const lp_flow *flow, lp_value *x, lp_value *log_scales[LP_FLOW_LAYERS]);
lp_value *lp_flow_inverse(lp_graph *graph, const lp_flow *flow, lp_value *x, lp_value *log_scales[LP_FLOW_LAYERS]);

#endif
