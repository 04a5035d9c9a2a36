/* recurrent.h: recurrent layers with their parameters, as PyTorch's nn.LSTM and nn.GRU compute them: the weights of the input for
 * all tokens at once, then a scan over each sequence from a zero state. */
#ifndef LP_RECURRENT_H
#define LP_RECURRENT_H

#include "graph/op.h"

/* x [T x in] -> hidden states [T x hidden]. Parameters <name>.<layer>.weight_ih [4*hidden x in], weight_hh [4*hidden x hidden],
 * bias_ih and bias_hh [1 x 4*hidden], which start uniform in +-1 / sqrt(hidden). */
lp_value *lp_lstm_layer(lp_graph *graph, const char *name, int layer, lp_value *x, int hidden);

/* h_t = max(0, x_t weight_ih^T + h_{t-1} weight_hh^T + bias_ih) */
lp_value *lp_rnn_layer(lp_graph *graph, const char *name, int layer, lp_value *x, int hidden);

/* The same with three gates. */
lp_value *lp_gru_layer(lp_graph *graph, const char *name, int layer, lp_value *x, int hidden);

/* Checks that a recurrent layer of this hidden size can be built; option names it. */
lapse_status lp_recurrent_check(int hidden, const char *option, lapse_error *error);

#endif
