/* attention_block.c: one block of self-attention with exact lags.
 *
 * With Z the block's input, N = norm(Z), and Phi(s) = D u(s) the encoding of a lag s (D: amplitudes), for the query
 * time t' of position q and every event i <= q:
 *
 *     query_q    = N_q Wq^T + Phi(t' - t_q) Wqt^T + bq
 *     key(q,i)   = Z_i Wk^T + Phi(t' - t_i) Wkt^T + bk          value(q,i) likewise with Wv, Wvt, bv
 *     out_q      = sum_i softmax_i( query_q . key(q,i) / sqrt(d_head) ) value(q,i)
 *
 * Keys and values belong to pairs (q, i), but no matrix of pairs is stored: u(t' - t_i) = M(t') u(t_i) with M
 * symmetric, so
 *
 *     Wkt Phi(t' - t_i) . query_q  =  u(t_i) . M(t') D Wkt^T query_q
 *     sum_i p Wvt Phi(t' - t_i)    =  Wvt D M(t') sum_i p u(t_i)
 *
 * and this is causal attention with the basis u(t_i) as further columns of keys and values. D is folded into the
 * weights. The op `reflect` applies M(t') to the time query before attention and to the time output after it.
 *
 * Token features P (positions) are concatenated to Z: query, key and value each get P W^T.
 *
 * This is the paper's section 6 with concatenated time and linear projections. The variants:
 *
 *   add           time enters as Z + E Phi with one E for the whole block: Wqt, Wkt, Wvt are then Wq E, Wk E, Wv E
 *   mlp-query     query = relu(the above) W^T + b; lags stay exact
 *   mlp           key and value likewise. An MLP of Phi(t' - t_i) does not factor, so features belong to tokens:
 *                 Phi(t_i - anchor), where the anchor is the window's last query time, as in the authors' code
 *
 * In the last block of a decoding graph only the newest position has a query, and so have only the targets in evaluation where these are
 * few (few_targets). Keys and values are linear in Z there (unless mlp) and are not computed: with Wk^T query_q as the query,
 * Z itself is the key, and Wv is applied after the weighted sum. bk adds the same constant to the scores of all i, which
 * cancels in the softmax; the probabilities sum to 1, so bv is added once.
 *
 *     query_q . (Z_i Wk^T + bk)  =  Z_i . Wk^T query_q + ..       sum_i p (Z_i Wv^T + bv)  =  (sum_i p Z_i) Wv^T + bv
 *
 * Then Y = N + out, H = norm(Y), and the block's output is H + dropout(W2 dropout(relu(W1 H + b1)) + b2). In the last
 * block outside training H and the output are computed at the target positions alone.
 */
#include "nn/attention_block.h"

#include "nn/layer.h"

#include <math.h>
#include <stdio.h>

enum { NAME_SIZE = LP_PARAMETER_NAME_SIZE };

const char *const lp_projection_names[] = {
    [LP_PROJECTION_LINEAR] = "linear", [LP_PROJECTION_MLP_QUERY] = "mlp-query", [LP_PROJECTION_MLP] = "mlp", NULL};
const char *const lp_combine_names[] = {[LP_COMBINE_CONCATENATE] = "concatenate", [LP_COMBINE_ADD] = "add", NULL};

typedef struct block {
    lp_graph *graph;
    const lp_block_config *config;
    int index;
    const lp_features *features;
    lp_value *positions;   /* that have a query, in evaluation with few targets; NULL: all have */
    lp_value *time_weight; /* E [dims x columns] of combine add; otherwise NULL */
    lp_kv_cache *cache;    /* of a decoding graph; otherwise NULL */
} block;

/* Query, key or value, with its weights for the event and for time. */
typedef struct role {
    const char *name;
    lp_value *event_weight; /* [dims x dims] */
    lp_value *bias;         /* [1 x dims] */
    lp_value *time_weight;  /* [dims x feature columns], scaled by the amplitudes; NULL: there are no features */
    lp_value *value;        /* [T x dims]: the part that belongs to a token; NULL: not computed */
} role;

static lp_value *parameter(const block *b, const char *name, const char *part, int rows, int cols, int inputs)
{
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "block.%d.%s.%s", b->index, name, part);
    return lp_graph_parameter(b->graph, full, rows, cols, LP_INIT_UNIFORM, lp_uniform_bound(inputs));
}

/* A weight [dims x feature columns], with the amplitudes folded in. */
static lp_value *feature_weight(const block *b, const char *name, const char *part, int cols)
{
    lp_value *weight = parameter(b, name, part, b->config->dims, cols, cols), *amplitude = b->features->amplitude;
    return amplitude ? lp_scale_columns(b->graph, weight, amplitude) : weight;
}

/* The weight of `cols` time features. With combine add it is the event's weight times E. */
static lp_value *time_weight(const block *b, const role *r, int cols)
{
    if (b->time_weight)
        return lp_linear(b->graph, r->event_weight, b->time_weight, NULL, NULL, 1, false);
    return feature_weight(b, r->name, "time.weight", cols);
}

/* token: features that belong to tokens; NULL: there are none, or they belong to pairs. */
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

static lp_value *outer_layer(const block *b, const char *name, lp_value *inner)
{
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "block.%d.%s.outer", b->index, name);
    return lp_layer(b->graph, full, lp_relu(b->graph, inner), b->config->dims, NULL);
}

static role project(const block *b, const char *name, lp_value *z, lp_value *token, bool mlp)
{
    role r = declare(b, name, token);
    r.value = lp_linear(b->graph, z, r.event_weight, r.bias, NULL, 1, true);
    if (token)
        r.value = lp_linear(b->graph, token, r.time_weight, NULL, r.value, 1, true);
    if (mlp)
        r.value = outer_layer(b, name, r.value);
    return r;
}

/* The rows of the positions, or all if they are NULL. */
static lp_value *at_positions(const block *b, lp_value *positions, lp_value *x)
{
    return positions && x ? lp_embed(b->graph, x, positions) : x;
}

static lp_value *norm_of(const block *b, lp_value *z)
{
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "block.%d.norm", b->index);
    return lp_norm(b->graph, full, z);
}

static double score_scale(const block *b)
{
    return 1 / sqrt((double)b->config->dims / b->config->heads);
}

/* The query's product with the key's time weight: its scores against time features. */
static lp_value *time_query_of(const block *b, const role *query, const role *key)
{
    return lp_linear(b->graph, query->value, key->time_weight, NULL, NULL, b->config->heads, false);
}

/* Attention over all events; positions: of the queries, NULL: every token has one. time_query is NULL without time columns; it is
 * reflected here by query_basis, the basis of the query times, unless that is NULL, and so is *time_out. basis: that of the keys. */
static lp_value *attention(const block *b, lp_value *query, lp_value *key, lp_value *value, lp_value *time_query,
                           lp_value *basis, lp_value *query_basis, lp_value *positions, lp_value **time_out)
{
    const lp_block_config *config = b->config;
    lp_kv_cache *cache = b->cache;
    if (cache) {
        cache->key = lp_cache_rows(b->graph, key);
        cache->value = lp_cache_rows(b->graph, value);
        return lp_attention_cached(b->graph, query, time_query, query_basis, cache, config->heads, score_scale(b),
                                   time_out);
    }
    bool reflects = time_query && query_basis;
    query_basis = at_positions(b, positions, query_basis);
    if (reflects)
        time_query = lp_reflect(b->graph, time_query, query_basis);
    lp_value *out = positions ? lp_attention_at(b->graph, query, key, value, time_query, basis, positions,
                                                config->heads, score_scale(b), time_out)
                              : lp_attention(b->graph, query, key, value, time_query, basis, config->heads,
                                             score_scale(b), config->dropout, time_out);
    if (reflects)
        *time_out = lp_reflect(b->graph, *time_out, query_basis);
    return out;
}

/* Attention over the block's input Z, without computing keys and values (see the top of this file), added to `normal`. */
static lp_value *attend_input(const block *b, const role *query, const role *key, const role *value, lp_value *z,
                              lp_value *normal)
{
    lp_graph *graph = b->graph;
    const lp_features *features = b->features;
    int heads = b->config->heads;
    lp_value *event_query = lp_linear(graph, query->value, key->event_weight, NULL, NULL, heads, false);
    lp_value *time_query = key->time_weight ? time_query_of(b, query, key) : NULL, *time_out;
    lp_value *out = attention(b, event_query, z, z, time_query, features->basis ? features->basis : features->token,
                              features->query_basis, b->positions, time_query ? &time_out : NULL);
    lp_value *sum = lp_linear(graph, out, value->event_weight, value->bias, normal, heads, true);
    return time_query ? lp_linear(graph, time_out, value->time_weight, NULL, sum, heads, true) : sum;
}

/* The features of the rows that have a query: u(t' - t_q), or those of the token. */
static lp_value *own_features(const block *b)
{
    const lp_features *f = b->features;
    if (f->basis && !f->lag)
        return lp_reflect(b->graph, at_positions(b, b->positions, f->basis),
                          at_positions(b, b->positions, f->query_basis));
    return at_positions(b, b->positions, f->basis ? f->lag : f->token);
}

static lp_value *attend(block *b, lp_value *z)
{
    const lp_block_config *config = b->config;
    lp_value *token = b->features->token, *basis = b->features->basis;
    bool all = config->projection == LP_PROJECTION_MLP;
    lp_value *normal = norm_of(b, at_positions(b, b->positions, z)), *own = own_features(b);
    if (config->combine == LP_COMBINE_ADD && own)
        b->time_weight = feature_weight(b, "time", "weight", own->cols);
    role query = project(b, "query", normal, own, config->projection != LP_PROJECTION_LINEAR);
    if (!all && (b->positions || (b->cache && config->last_row_only))) {
        role key = declare(b, "key", token), value = declare(b, "value", token);
        return attend_input(b, &query, &key, &value, z, normal);
    }
    role key = project(b, "key", z, token, all), value = project(b, "value", z, token, all);
    lp_value *time_query = basis ? time_query_of(b, &query, &key) : NULL, *time_out;
    lp_value *out = attention(b, query.value, key.value, value.value, time_query, basis, b->features->query_basis,
                              b->positions, basis ? &time_out : NULL);
    out = lp_add(b->graph, normal, out);
    return basis ? lp_linear(b->graph, time_out, value.time_weight, NULL, out, config->heads, true) : out;
}

/* Lag features as token features, measured from the window's last query time, which is 0. */
static lp_features anchored(const lp_features *features)
{
    lp_features tokens = *features;
    if (features->basis)
        tokens.token = features->basis;
    tokens.basis = tokens.query_basis = NULL;
    return tokens;
}

lapse_status lp_heads_check(int heads, int dims, lapse_error *error)
{
    if (dims % heads)
        return lp_fail(error, LAPSE_ERROR_USAGE, "heads (%d) must divide dims (%d)", heads, dims);
    return LAPSE_OK;
}

/* The rest of the block, after attention. */
static lp_value *feed_forward(const block *b, lp_value *mixed)
{
    lp_graph *graph = b->graph;
    const lp_block_config *config = b->config;
    char full[NAME_SIZE];
    snprintf(full, sizeof full, "block.%d.forward.norm", b->index);
    lp_value *hidden = lp_norm(graph, full, mixed);
    snprintf(full, sizeof full, "block.%d.forward.inner", b->index);
    /* Dropout before relu equals relu before dropout, bit for bit, and stores one value less for the gradient. */
    lp_value *inner =
        lp_relu(graph, lp_dropout(graph, lp_layer(graph, full, hidden, config->dims, NULL), config->dropout));
    snprintf(full, sizeof full, "block.%d.forward.outer", b->index);
    if (config->dropout <= 0)
        return lp_layer(graph, full, inner, config->dims, hidden);
    return lp_add(graph, hidden, lp_dropout(graph, lp_layer(graph, full, inner, config->dims, NULL), config->dropout));
}

lp_value *lp_attention_block(lp_graph *graph, const lp_block_config *config, int index, lp_value *z,
                             lp_features *features, lp_kv_cache *cache)
{
    block b = {.graph = graph, .config = config, .index = index, .cache = cache};
    b.positions = config->few_targets ? config->targets : NULL;
    if (features->basis && !features->lag && config->projection != LP_PROJECTION_MLP && !b.positions)
        features->lag = lp_reflect(graph, features->basis, features->query_basis);
    lp_features seen = config->projection == LP_PROJECTION_MLP ? anchored(features) : *features;
    b.features = &seen;
    lp_value *out = attend(&b, z);
    return feed_forward(&b, at_positions(&b, b.positions ? NULL : config->targets, out));
}
