/* flow.h: normalizing flows: invertible maps of one row of variables, made of networks, with their log-determinants.
 *
 * A layer has a masked network (op mask) that gives a shift m and a log scale s for each variable, computed from earlier
 * variables alone. It can be read in two directions:
 *     generate    x = z exp(s(x)) + m(x)       one pass after another, until every variable has what it depends on
 *     normalize   z = (x - m(x)) exp(-s(x))    at once
 * which are inverse to one another. The event types, named as in TensorFlow Probability, differ in who sees whom and in which
 * direction is called forward:
 *     maf   each variable sees those before it; forward generates, in as many passes as there are variables
 *     iaf   the same; forward normalizes
 *     nvp   two layers, in which one half sees the other, the halves changing places; forward generates, and one
 *           pass is enough, because the half that is seen stays as it is
 */
#ifndef LP_FLOW_H
#define LP_FLOW_H

#include "graph/op.h"

enum { LP_FLOW_LAYERS = 2 };

typedef struct lp_flow_type {
    int layers;
    lp_order order[LP_FLOW_LAYERS];
    bool normalizes; /* forward */
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

/* Declares the parameters time.flow.<layer>.… of a flow on `units` variables with two hidden layers of `hidden` units. It
 * starts close to the identity. */
void lp_flow_declare(lp_graph *graph, const lp_flow_type *type, int units, int hidden, lp_flow *flow);

/* x [1 x units] -> [1 x units]. The logarithm of the map's determinant is the sum of all elements of log_scales (one
 * [1 x units] a layer), which may be NULL. */
lp_value *lp_flow_forward(lp_graph *graph, const lp_flow *flow, lp_value *x, lp_value *log_scales[LP_FLOW_LAYERS]);
lp_value *lp_flow_inverse(lp_graph *graph, const lp_flow *flow, lp_value *x, lp_value *log_scales[LP_FLOW_LAYERS]);

#endif
