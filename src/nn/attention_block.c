/* attention_block.c: one block.
 *
 * With Z the block's input, N = norm(Z), and Phi(s) = D u(s) the encoding of a lag s (D: amplitudes), for the question
 * at t' after event q and every event i <= q:
 *
 *     query_q    = N_q Wq^T + Phi(t' - t_q) Wqt^T + bq
 *     key(q,i)   = Z_i Wk^T + Phi(t' - t_i) Wkt^T + bk          value(q,i) likewise with Wv, Wvt, bv
 *     out_q      = sum_i softmax_i( query_q . key(q,i) / sqrt(d_head) ) value(q,i)
 *
 * Keys and values belong to pairs, but never take memory for pairs: u(t' - t_i) = M(t') u(t_i) with M symmetric, so
 *
 *     Wkt Phi(t' - t_i) . query_q  =  u(t_i) . M(t') D Wkt^T query_q
 *     sum_i p Wvt Phi(t' - t_i)    =  Wvt D M(t') sum_i p u(t_i)
 *
 * and attention is the ordinary one with the basis as further columns of keys and values. D is folded into the weights.
 *
 * Token features P (positions) are simply joined to Z: query, key and value each get P W^T.
 *
 * Then Y = N + out, H = norm(Y), and the block gives H + dropout(W2 dropout(relu(W1 H + b1)) + b2).
 */
#include "nn/attention_block.h"

#include <stdio.h>

enum { NAME_SIZE = 96 };

static double uniform_spread(int inputs)
{
    return 1 / sqrt((double)inputs);
}

lp_value *lp_norm(lp_graph *graph, const char *name, lp_value *x)
{
    char full[NAME_SIZE];
    if (!x)
        return NULL;
    snprintf(full, sizeof full, "%s.gain", name);
    lp_value *gain = lp_graph_parameter(graph, full, 1, x->cols, LP_START_ONES, 0);
    snprintf(full, sizeof full, "%s.shift", name);
    lp_value *shift = lp_graph_parameter(graph, full, 1, x->cols, LP_START_ZEROS, 0);
    return lp_layer_norm(graph, x, gain, shift, 1e-5);
}

lp_value *lp_layer(lp_graph *graph, const char *name, lp_value *x, int out, lp_value *add)
{
    char full[NAME_SIZE];
    if (!x)
        return NULL;
    double spread = uniform_spread(x->cols);
    snprintf(full, sizeof full, "%s.weight", name);
    lp_value *weight = lp_graph_parameter(graph, full, out, x->cols, LP_START_UNIFORM, spread);
    snprintf(full, sizeof full, "%s.bias", name);
    lp_value *bias = lp_graph_parameter(graph, full, 1, out, LP_START_UNIFORM, spread);
    return lp_linear(graph, x, weight, bias, add, 1, true);
}

/* The weight by which query, key or value sees the features: [dims x columns], scaled by the amplitudes. */
static lp_value *feature_weight(lp_graph *graph, int index, const char *role, int dims, int cols,
                                const lp_features *features)
{
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "block.%d.%s.time.weight", index, role);
    lp_value *weight = lp_graph_parameter(graph, full, dims, cols, LP_START_UNIFORM, uniform_spread(cols));
    return features->amplitude ? lp_scale_columns(graph, weight, features->amplitude) : weight;
}

/* Query, key or value as far as it belongs to a token: the event's part, and that of token features. `own` is what the
 * role sees of lags by itself: only the query has that. */
static lp_value *project(lp_graph *graph, const lp_block_config *config, int index, const char *role, lp_value *z,
                         const lp_features *features, lp_value *own)
{
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "block.%d.%s.event", index, role);
    lp_value *sum = lp_layer(graph, full, z, config->dims, NULL);
    lp_value *seen = features->token ? features->token : own;
    if (!seen)
        return sum;
    lp_value *weight = feature_weight(graph, index, role, config->dims, seen->cols, features);
    return lp_linear(graph, seen, weight, NULL, sum, 1, true);
}

static lp_value *attend(lp_graph *graph, const lp_block_config *config, int index, lp_value *z, lp_value *normal,
                        const lp_features *features)
{
    lp_value *basis = features->basis, *until = features->until;
    lp_value *own = basis ? lp_reflect(graph, basis, until) : NULL; /* u(t' - t_q) */
    lp_value *query = project(graph, config, index, "query", normal, features, own);
    lp_value *key = project(graph, config, index, "key", z, features, NULL);
    lp_value *value = project(graph, config, index, "value", z, features, NULL);
    double scale = 1 / sqrt((double)config->dims / config->heads);
    if (!basis) {
        lp_value *out = lp_attention(graph, query, key, value, NULL, NULL, config->heads, scale, config->dropout, NULL);
        return lp_add(graph, normal, out);
    }
    lp_value *key_weight = feature_weight(graph, index, "key", config->dims, basis->cols, features);
    lp_value *value_weight = feature_weight(graph, index, "value", config->dims, basis->cols, features);
    lp_value *time_query =
        lp_reflect(graph, lp_linear(graph, query, key_weight, NULL, NULL, config->heads, false), until);
    lp_value *time_out;
    lp_value *out = lp_attention(graph, query, key, value, time_query, basis, config->heads, scale, config->dropout,
                                 &time_out);
    return lp_linear(graph, lp_reflect(graph, time_out, until), value_weight, NULL, lp_add(graph, normal, out),
                     config->heads, true);
}

lp_value *lp_attention_block(lp_graph *graph, const lp_block_config *config, int index, lp_value *z,
                             const lp_features *features)
{
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "block.%d.norm", index);
    lp_value *mixed = attend(graph, config, index, z, lp_norm(graph, full, z), features);
    snprintf(full, sizeof full, "block.%d.forward.norm", index);
    lp_value *hidden = lp_norm(graph, full, mixed);
    snprintf(full, sizeof full, "block.%d.forward.inner", index);
    lp_value *inner = lp_dropout(graph, lp_relu(graph, lp_layer(graph, full, hidden, config->dims, NULL)), config->dropout);
    snprintf(full, sizeof full, "block.%d.forward.outer", index);
    if (config->dropout <= 0)
        return lp_layer(graph, full, inner, config->dims, hidden);
    return lp_add(graph, hidden, lp_dropout(graph, lp_layer(graph, full, inner, config->dims, NULL), config->dropout));
}
