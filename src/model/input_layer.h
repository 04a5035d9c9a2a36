/* input_layer.h: how a network reads events: the embedding of the event, its action, fields and gap, and the item vectors of
 * a recommender. Every network uses it, so that these enter all of them alike. */
#ifndef LP_INPUT_LAYER_H
#define LP_INPUT_LAYER_H

#include "model/model.h"

/* The vector of each event [T x dims], before dropout:
 *
 *     Z = E_k + F1_a W1^T + .. + x1 w1^T + .. + max(0, g Wg^T + bg) Vg^T
 *
 * E_k is the embedding of event type k, F_a that of a categorical field, x a standardized number. This is the paper's joint
 * vector [E_k, F1_a, .., x1, ..] projected to dims: a projection of joined vectors is the sum of each one's own, and that of E_k
 * is left out, since E is learned. So fields make no layer wider.
 *
 * g is the row of the event's gap (lp_gap_row), where the model reads gaps. It goes through a perceptron, because the effect of a
 * gap is not linear in its logarithm.
 *
 * A recommender's embedding is scaled by sqrt(dims), because the same vectors serve as output vectors, which must be small. Sets
 * network->items and network->bias of a recommender. Declares its tables, so it comes before all other parameters. */
lp_value *lp_input_layer(lp_builder *builder);

#endif
