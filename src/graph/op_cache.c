/* op_cache.c: causal attention with a KV cache, for incremental decoding.
 *
 * Keys, values and bases do not depend on the query time, so a session computes them once per event; a query then costs one
 * row per block. Their producers write the rows of new events into the session's cache matrices, and `attention_cached` reads all of
 * them. Each is stored once, by rows: kernels transpose keys in registers. Time queries are reflected by the query times (op
 * reflect), and time outputs reflected back, in the kernel, while they are in cache.
 *
 * A separate op from `attention`: inference only, without dropout, and one segment, or branches of one. */
#include "graph/op_rows.h"

lp_value *lp_cache_rows(lp_graph *graph, lp_value *value)
{
    if (!value || value->storage != LP_STORAGE_WORK)
        return value;
    value->storage = LP_STORAGE_INPUT;
    value->slot = graph->input_count++;
    return value;
}

enum { QUERY, KEY, VALUE, TIME_QUERY, BASIS, QUERY_TIME };

static bool is_cached_rows(const lp_value *value, int cols)
{
    return value && value->storage == LP_STORAGE_INPUT && value->rows_of == LP_ROWS_TOKENS && value->cols == cols;
}

static void attention_cached_shape(lp_graph *graph, lp_node *node)
{
    lp_value *const *in = node->inputs;
    int heads = node->attributes.heads, extra = in[TIME_QUERY] && heads > 0 ? in[TIME_QUERY]->cols / heads : 0;
    int cols = in[KEY] ? in[KEY]->cols : 0;
    if (!in[QUERY] || in[QUERY]->rows_of != LP_ROWS_TOKENS || heads < 1 || in[QUERY]->cols % heads ||
        (in[QUERY]->cols != cols && in[QUERY]->cols != cols * heads) || !is_cached_rows(in[KEY], cols) ||
        !is_cached_rows(in[VALUE], cols))
        lp_graph_fail(graph, "attention_cached needs cached keys and values with the columns of the query, divisible "
                             "by the heads, or of one head");
    else if (in[TIME_QUERY] ? !is_cached_rows(in[BASIS], extra) : in[BASIS] != NULL)
        lp_graph_fail(graph, "attention_cached needs a time query per head and column of the cached basis");
    else if (in[QUERY_TIME] && (!in[TIME_QUERY] || extra % 2 || !lp_value_same_shape(in[QUERY_TIME], in[BASIS])))
        lp_graph_fail(graph, "attention_cached needs the query times as a basis");
    else {
        lp_op_output_like(graph, node, 0, in[QUERY]);
        if (in[TIME_QUERY])
            lp_op_output_like(graph, node, 1, in[TIME_QUERY]);
    }
}

static lp_cost attention_cached_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    double tokens = (double)extent->rows[LP_ROWS_TOKENS], past = (double)extent->rows[LP_ROWS_PAST];
    double cols = node->inputs[QUERY]->cols + (node->inputs[TIME_QUERY] ? node->inputs[TIME_QUERY]->cols : 0);
    cost.flop = 4 * tokens * (past + (tokens + 1) / 2) * cols;
    return cost;
}

/* Scores of a tile of rows, padded to whole vectors, and their reflected time queries; keys and bases transposed. */
static size_t attention_cached_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    enum { PADDING = 16 };
    size_t keys = (size_t)(extent->rows[LP_ROWS_TOKENS] + extent->rows[LP_ROWS_PAST]) + PADDING;
    size_t rows = LP_ATTENTION_ROWS * (size_t)node->attributes.heads;
    size_t extra = node->inputs[BASIS] ? (size_t)node->inputs[BASIS]->cols : 0;
    return (rows * (keys + extra) + ((size_t)node->inputs[KEY]->cols + extra) * keys) * real_size;
}

lp_value *lp_attention_cached(lp_graph *graph, lp_value *query, lp_value *time_query, lp_value *query_time,
                              const lp_kv_cache *memory, int heads, double scale, lp_value **time_out)
{
    lp_attributes attributes = {.heads = heads, .scale = scale};
    bool timed = time_query != NULL;
    lp_value *inputs[] = {
        query, memory->key, memory->value, time_query, timed ? memory->basis : NULL, timed ? query_time : NULL};
    lp_value *out = lp_graph_node(graph, &lp_op_attention_cached, inputs, &attributes);
    if (time_out)
        *time_out = out ? out->producer->outputs[1] : NULL;
    return out;
}

/* (query, key, value, time_query?, basis?, query_time?) -> out [T x H*d], time_out [T x H*E] */
const lp_op lp_op_attention_cached = {.id = LP_OP_ATTENTION_CACHED,
                                      .name = "attention_cached",
                                      .input_count = 6,
                                      .output_count = 2,
                                      .shape = attention_cached_shape,
                                      .cost = attention_cached_cost,
                                      .scratch = attention_cached_scratch};
