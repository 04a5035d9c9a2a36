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
 * That is the paper's section 6 with time concatenated and linear projections. Two choices vary it:
 *
 *   added         time enters as Z + E Phi with one E for the whole block: Wqt, Wkt, Wvt are then Wq E, Wk E, Wv E, and all
 *                 of the above holds
 *   mlp-query     query = relu(the above) W^T + b. Nothing else changes: lags stay exact
 *   mlp           key and value likewise. An MLP of Phi(t' - t_i) does not factor, so features belong to tokens here:
 *                 Phi(t_i - anchor), the anchor being the window's last moment, as in the authors' code
 *
 * A live network that answers for the newest event alone has one query in its last block. Keys and values are linear in Z and
 * in the features there (but for mlp), and are not made: with Wk^T query_q in the query's place, Z itself is the key, and Wv
 * comes after the sum. What bk adds is the same for all i, which a softmax does not see; the shares add up to 1 for bv.
 *
 *     query_q . (Z_i Wk^T + bk)  =  Z_i . Wk^T query_q + ..       sum_i p (Z_i Wv^T + bv)  =  (sum_i p Z_i) Wv^T + bv
 *
 * Then Y = N + out, H = norm(Y), and the block gives H + dropout(W2 dropout(relu(W1 H + b1)) + b2).
 */
#include "nn/attention_block.h"

#include <stdio.h>

enum { NAME_SIZE = 96 };

const char *const lp_projection_names[] = {
    [LP_PROJECTION_LINEAR] = "linear", [LP_PROJECTION_MLP_QUERY] = "mlp-query", [LP_PROJECTION_MLP] = "mlp", NULL};
const char *const lp_combine_names[] = {[LP_COMBINE_CONCATENATE] = "concatenate", [LP_COMBINE_ADD] = "add", NULL};

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
    lp_value *gain = lp_graph_parameter(graph, full, 1, x->cols, LP_INIT_ONES, 0);
    snprintf(full, sizeof full, "%s.shift", name);
    lp_value *shift = lp_graph_parameter(graph, full, 1, x->cols, LP_INIT_ZEROS, 0);
    return lp_layer_norm(graph, x, gain, shift, 1e-5);
}

lp_value *lp_layer(lp_graph *graph, const char *name, lp_value *x, int out, lp_value *add)
{
    char full[NAME_SIZE];
    if (!x)
        return NULL;
    double spread = uniform_spread(x->cols);
    snprintf(full, sizeof full, "%s.weight", name);
    lp_value *weight = lp_graph_parameter(graph, full, out, x->cols, LP_INIT_UNIFORM, spread);
    snprintf(full, sizeof full, "%s.bias", name);
    lp_value *bias = lp_graph_parameter(graph, full, 1, out, LP_INIT_UNIFORM, spread);
    return lp_linear(graph, x, weight, bias, add, 1, true);
}

/* One block being built. */
typedef struct block {
    lp_graph *graph;
    const lp_block_config *config;
    int index;
    const lp_features *features;
    lp_value *shared;    /* E [dims x columns] where time is added */
    lp_kv_cache *memory; /* NULL: all events are there */
} block;

/* Query, key or value: how it sees events, and how it sees time. */
typedef struct role {
    const char *name;
    lp_value *event_weight; /* [dims x dims] */
    lp_value *bias;         /* [1 x dims] */
    lp_value *time_weight;  /* [dims x columns of the features], scaled by the amplitudes; NULL: it sees none */
    lp_value *value;        /* [T x dims]: as far as it belongs to a token; NULL: nobody makes it */
} role;

static lp_value *parameter(const block *b, const char *name, const char *part, int rows, int cols, int inputs)
{
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "block.%d.%s.%s", b->index, name, part);
    return lp_graph_parameter(b->graph, full, rows, cols, LP_INIT_UNIFORM, uniform_spread(inputs));
}

/* The weight [rows x columns of the features] of what is seen of time, amplitudes included. */
static lp_value *feature_weight(const block *b, const char *name, const char *part, int cols)
{
    lp_value *weight = parameter(b, name, part, b->config->dims, cols, cols), *amplitude = b->features->amplitude;
    return amplitude ? lp_scale_columns(b->graph, weight, amplitude) : weight;
}

/* The weight by which a role sees `cols` features. Added time goes through the event's weight. */
static lp_value *time_weight(const block *b, const role *r, int cols)
{
    if (b->shared)
        return lp_linear(b->graph, r->event_weight, b->shared, NULL, NULL, 1, false);
    return feature_weight(b, r->name, "time.weight", cols);
}

/* `token` is what the role sees of time by itself (NULL: nothing, or only through pairs). */
static role declare(const block *b, const char *name, const lp_value *token)
{
    int dims = b->config->dims;
    role r = {.name = name};
    r.event_weight = parameter(b, name, "event.weight", dims, dims, dims);
    r.bias = parameter(b, name, "event.bias", 1, dims, dims);
    const lp_value *seen = token ? token : b->features->basis;
    if (seen)
        r.time_weight = time_weight(b, &r, seen->cols);
    return r;
}

static role project(const block *b, const char *name, lp_value *z, lp_value *token, bool mlp)
{
    role r = declare(b, name, token);
    r.value = lp_linear(b->graph, z, r.event_weight, r.bias, NULL, 1, true);
    if (token)
        r.value = lp_linear(b->graph, token, r.time_weight, NULL, r.value, 1, true);
    if (mlp) {
        char full[NAME_SIZE];
        snprintf(full, sizeof full, "block.%d.%s.outer", b->index, name);
        r.value = lp_layer(b->graph, full, lp_relu(b->graph, r.value), b->config->dims, NULL);
    }
    return r;
}

static double score_scale(const block *b)
{
    return 1 / sqrt((double)b->config->dims / b->config->heads);
}

/* What a query wants of the features of a pair, or of an event. */
static lp_value *time_query_of(const block *b, const role *query, const role *key)
{
    return lp_linear(b->graph, query->value, key->time_weight, NULL, NULL, b->config->heads, false);
}

/* Attention to all events. time_query, which is NULL without exact lags, comes unturned and *time_out turned back. */
static lp_value *attention(const block *b, lp_value *query, lp_value *key, lp_value *value, lp_value *time_query,
                           lp_value **time_out)
{
    const lp_block_config *config = b->config;
    lp_value *basis = b->features->basis, *query_time = b->features->query_time;
    lp_kv_cache *memory = b->memory;
    if (memory) {
        memory->key = lp_cache_append(b->graph, key, config->capacity);
        memory->value = lp_cache_rows(b->graph, value);
        return lp_attention_cached(b->graph, query, time_query, query_time, memory, config->heads, score_scale(b),
                                   time_out);
    }
    lp_value *transposed = time_query ? lp_reflect(b->graph, time_query, query_time) : NULL;
    lp_value *out = lp_attention(b->graph, query, key, value, transposed, basis, config->heads, score_scale(b),
                                 config->dropout, time_out);
    if (time_query)
        *time_out = lp_reflect(b->graph, *time_out, query_time);
    return out;
}

/* The same for one query after all events: it goes to what keys and values would be made of, instead of these being made for
 * every event. */
static lp_value *attend_newest(const block *b, const role *query, const role *key, const role *value, lp_value *z,
                               lp_value *normal)
{
    lp_graph *graph = b->graph;
    int heads = b->config->heads;
    lp_kv_cache *memory = b->memory;
    lp_value *event_query = lp_linear(graph, query->value, key->event_weight, NULL, NULL, heads, false);
    lp_value *time_query = key->time_weight ? time_query_of(b, query, key) : NULL, *time_out;
    memory->key = lp_cache_append(graph, z, b->config->capacity);
    memory->value = lp_cache_rows(graph, z);
    lp_value *out = lp_attention_cached(graph, event_query, time_query, b->features->query_time, memory, heads,
                                        score_scale(b), time_query ? &time_out : NULL);
    lp_value *sum = lp_linear(graph, out, value->event_weight, value->bias, normal, heads, true);
    return time_query ? lp_linear(graph, time_out, value->time_weight, NULL, sum, heads, true) : sum;
}

static lp_value *attend(block *b, lp_value *z, lp_value *normal)
{
    lp_graph *graph = b->graph;
    const lp_block_config *config = b->config;
    lp_value *token = b->features->token, *basis = b->features->basis;
    lp_value *own = basis ? b->features->lag : token; /* u(t' - t_q) */
    if (config->combine == LP_COMBINE_ADD && own)
        b->shared = feature_weight(b, "time", "weight", own->cols);
    bool all = config->projection == LP_PROJECTION_MLP;
    role query = project(b, "query", normal, own, all || config->projection == LP_PROJECTION_MLP_QUERY);
    if (b->memory && config->newest && !all) {
        role key = declare(b, "key", token), value = declare(b, "value", token);
        return attend_newest(b, &query, &key, &value, z, normal);
    }
    role key = project(b, "key", z, token, all), value = project(b, "value", z, token, all);
    if (!basis)
        return lp_add(graph, normal, attention(b, query.value, key.value, value.value, NULL, NULL));
    lp_value *time_out;
    lp_value *out = attention(b, query.value, key.value, value.value, time_query_of(b, &query, &key), &time_out);
    return lp_linear(graph, time_out, value.time_weight, NULL, lp_add(graph, normal, out), config->heads, true);
}

/* Lag features as token features, measured from the window's last moment, which is 0. */
static lp_features anchored(const lp_features *features)
{
    lp_features tokens = *features;
    if (features->basis)
        tokens.token = features->basis;
    tokens.basis = tokens.query_time = NULL;
    return tokens;
}

lp_value *lp_attention_block(lp_graph *graph, const lp_block_config *config, int index, lp_value *z,
                             lp_features *features, lp_kv_cache *memory)
{
    char full[NAME_SIZE];
    if (features->basis && !features->lag && config->projection != LP_PROJECTION_MLP)
        features->lag = lp_reflect(graph, features->basis, features->query_time);
    lp_features seen = config->projection == LP_PROJECTION_MLP ? anchored(features) : *features;
    block b = {.graph = graph, .config = config, .index = index, .features = &seen, .memory = memory};
    snprintf(full, sizeof full, "block.%d.norm", index);
    lp_value *mixed = attend(&b, z, lp_norm(graph, full, z));
    snprintf(full, sizeof full, "block.%d.forward.norm", index);
    lp_value *hidden = lp_norm(graph, full, mixed);
    snprintf(full, sizeof full, "block.%d.forward.inner", index);
    /* Dropout and relu may change places, bit by bit: this way one value less is kept for the gradient. */
    lp_value *inner =
        lp_relu(graph, lp_dropout(graph, lp_layer(graph, full, hidden, config->dims, NULL), config->dropout));
    snprintf(full, sizeof full, "block.%d.forward.outer", index);
    if (config->dropout <= 0)
        return lp_layer(graph, full, inner, config->dims, hidden);
    return lp_add(graph, hidden, lp_dropout(graph, lp_layer(graph, full, inner, config->dims, NULL), config->dropout));
}
