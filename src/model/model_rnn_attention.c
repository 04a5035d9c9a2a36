/* model_rnn_attention.c: a GRU with attention over its own states (NARM, Li et al. 2017). It does not see times, except
 * the lag to the predicted event with an encoding (target_lag.h).
 *
 *     X = dropout(input layer)                                    [T x dims]      input_layer.h
 *     H = gru(X)                                                  [T x dims]      nn/recurrent.h, `layers` times with dropout between
 *     C_t = sum over j <= t of (v . sigmoid(A1 H_t + A2 H_j)) H_j [T x dims]      op additive_attention
 *     S = dropout([H ; C]) B^T at the target positions            [targets x dims]
 *     catalogue scores of S                                                       output_layer.h
 *
 * The bilinear score of item i, [H_t ; C_t] B^T . items_i, is the product of S with the item's vector. B is two matrices, one for
 * each half of the joined vector.
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "model/recurrent_options.h"
#include "nn/layer.h"
#include "nn/recurrent.h"

/* x W^T + add, without a bias. */
static lp_value *project(lp_builder *b, const char *name, lp_value *x, lp_value *add)
{
    int dims = b->config->dims;
    lp_value *weight = lp_graph_parameter(b->graph, name, dims, dims, LP_INIT_UNIFORM, lp_uniform_bound(dims));
    return lp_linear(b->graph, x, weight, NULL, add, 1, true);
}

static void build(lp_builder *b)
{
    const lp_recurrent_settings *settings = lp_recurrent_settings_of(b->config);
    int dims = b->config->dims;
    lp_value *h = lp_input_layer(b);
    for (int layer = 0; layer < settings->layers; layer++)
        h = lp_gru_layer(b->graph, "gru", layer, lp_dropout(b->graph, h, b->dropout), dims);
    lp_value *query = project(b, "local.query.weight", h, NULL), *key = project(b, "local.key.weight", h, NULL);
    lp_value *score =
        lp_graph_parameter(b->graph, "local.score.weight", 1, dims, LP_INIT_UNIFORM, lp_uniform_bound(dims));
    lp_value *local = lp_at_targets(b, lp_additive_attention(b->graph, query, key, h, score));
    lp_value *state = project(b, "state.global.weight", lp_dropout(b->graph, lp_at_targets(b, h), b->dropout), NULL);
    state = project(b, "state.local.weight", lp_dropout(b->graph, local, b->dropout), state);
    lp_output_layer(b, lp_target_lag(b, state));
}

const lp_model_row lp_model_rnn_attention = {
    .name = "rnn-attention",
    .summary = "recurrent network (GRU) with attention over its states",
    .tasks = 1 << LP_TASK_RECOMMEND,
    .options = {lp_target_lag_options, lp_encoding_options, lp_recurrent_options},
    .resolve = lp_recurrent_resolve,
    .validate = lp_recurrent_validate,
    .build = build};
