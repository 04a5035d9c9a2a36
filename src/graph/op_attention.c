/* op_attention.c: causal attention over packed segments (equation 1 of the paper, with the exact-lag time columns). The
 * matrix of probabilities is never stored: the gradient recomputes it from the log-sum-exp of each row. */
#include "graph/op_rows.h"

enum { QUERY, KEY, VALUE, TIME_QUERY, BASIS };

static void attention_shape(lp_graph *graph, lp_node *node)
{
    lp_value *query = node->inputs[QUERY], *key = node->inputs[KEY], *value = node->inputs[VALUE];
    lp_value *time_query = node->inputs[TIME_QUERY], *basis = node->inputs[BASIS];
    int heads = node->attributes.heads;
    if (!query || !key || !value || query->rows_of != LP_ROWS_TOKENS || !lp_value_same_shape(query, key) ||
        !lp_value_same_shape(query, value) || heads < 1 || query->cols % heads) {
        lp_graph_fail(graph, "attention needs query, key and value of the same shape, divided by the heads");
        return;
    }
    if (!time_query != !basis || (basis && time_query->cols != heads * basis->cols)) {
        lp_graph_fail(graph, "attention needs a time query for each head and column of the basis");
        return;
    }
    lp_op_output_like(graph, node, 0, query);
    lp_op_output(graph, node, 1, LP_TYPE_REAL, query->rows_of, 0, heads);
    if (time_query)
        lp_op_output_like(graph, node, 2, time_query);
}

static void attention_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *time_out = node->outputs[2];
    lp_value *inputs[] = {node->inputs[QUERY],
                          node->inputs[KEY],
                          node->inputs[VALUE],
                          node->inputs[TIME_QUERY],
                          node->inputs[BASIS],
                          node->outputs[1],
                          node->outputs[0],
                          node->outputs[0]->gradient,
                          time_out,
                          time_out ? time_out->gradient : NULL};
    if (!node->outputs[0]->gradient || (time_out && !time_out->gradient))
        lp_graph_fail(graph, "attention: both outputs must be used");
    else
        lp_graph_gradient_node(graph, &lp_op_attention_gradient, inputs, &node->attributes, node->inputs);
}

/* Two products of query-key pairs forward, five backward. */
static lp_cost attention_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    double columns = node->inputs[QUERY]->cols + (node->inputs[TIME_QUERY] ? node->inputs[TIME_QUERY]->cols : 0);
    double tokens = (double)extent->rows[LP_ROWS_TOKENS], rows = (double)lp_value_rows(node->inputs[QUERY], extent);
    double pairs = tokens > 0 ? (double)extent->pairs * rows / tokens : 0;
    cost.flop = (node->op == &lp_op_attention ? 4.0 : 10.0) * pairs * columns;
    return cost;
}

/* Two [longest x longest] matrices, probabilities and their gradient; the transposed key, value and basis of a head; and for
 * a tile of rows 16 random bits per pair and the 8-byte block number of every 8 pairs. */
static size_t attention_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    size_t stride = ((size_t)extent->longest + 15) / 16 * 16;
    size_t transposed = 2 * (size_t)(node->inputs[KEY]->cols / node->attributes.heads);
    transposed += node->inputs[BASIS] ? (size_t)node->inputs[BASIS]->cols : 0;
    return (2 * stride + transposed) * stride * real_size + 3 * stride * LP_ATTENTION_ROWS;
}

static lp_value *attention_example(lp_graph *graph, lp_random *random)
{
    int heads = 1 + (int)lp_random_below(random, 3), cols = heads * (1 + (int)lp_random_below(random, 6));
    int extra = (int)lp_random_below(random, 3) * (1 + (int)lp_random_below(random, 5));
    lp_value *query = lp_example_tokens(graph, "query", cols), *key = lp_example_tokens(graph, "key", cols);
    lp_value *value = lp_example_tokens(graph, "value", cols);
    lp_value *time_query = extra ? lp_example_tokens(graph, "time_query", heads * extra) : NULL;
    lp_value *basis = extra ? lp_example_tokens(graph, "basis", extra) : NULL;
    double rate = lp_random_below(random, 2) ? 0.25 : 0;
    lp_value *time_out;
    return lp_attention(graph, query, key, value, time_query, basis, heads, 0.7, rate, &time_out);
}

lp_value *lp_attention(lp_graph *graph, lp_value *query, lp_value *key, lp_value *value, lp_value *time_query,
                       lp_value *basis, int heads, double scale, double rate, lp_value **time_out)
{
    lp_attributes attributes = {.heads = heads, .scale = scale, .rate = rate};
    attributes.stream = rate > 0 ? lp_graph_stream(graph) : 0;
    lp_value *inputs[] = {query, key, value, time_query, basis};
    lp_value *out = lp_graph_node(graph, &lp_op_attention, inputs, &attributes);
    if (time_out)
        *time_out = out ? out->producer->outputs[2] : NULL;
    return out;
}

/* (query, key, value, time_query?, basis?) -> out [T x H*d], log-sum-exp of each row [T x H], time_out [T x H*E] */
const lp_op lp_op_attention = {.id = LP_OP_ATTENTION,
                               .name = "attention",
                               .input_count = 5,
                               .output_count = 3,
                               .shape = attention_shape,
                               .gradient = attention_gradient,
                               .cost = attention_cost,
                               .scratch = attention_scratch,
                               .example = attention_example};

/* (query, key, value, time_query?, basis?, log-sum-exp, out, dout, time_out?, dtime_out?)
 *     -> dquery, dkey, dvalue, dtime_query, dbasis */
const lp_op lp_op_attention_gradient = {.id = LP_OP_ATTENTION_GRADIENT,
                                        .name = "attention_gradient",
                                        .input_count = 10,
                                        .output_count = 5,
                                        .cost = attention_cost,
                                        .scratch = attention_scratch};

/* ---------------------------------------------------------------------------------------------- positions ---- */

/* Attention from some rows of a window alone, for an evaluation with few targets in each (leave-one-out has one). The keys are the block's
 * input, so no keys and values are computed, as in a decoder; with the projection mlp they are, for all tokens. Where targets are many, keys and values that are computed once cost less, and the block attends from all tokens. */
enum { POSITIONS = BASIS + 1 };

static void attention_at_shape(lp_graph *graph, lp_node *node)
{
    lp_value *const *in = node->inputs;
    const lp_value *query = in[QUERY], *key = in[KEY], *positions = in[POSITIONS];
    int heads = node->attributes.heads;
    if (!query || !key || !in[VALUE] || !positions || positions->type != LP_TYPE_INT32 || positions->cols != 1 ||
        positions->rows_of != query->rows_of || key->rows_of != LP_ROWS_TOKENS ||
        !lp_value_same_shape(key, in[VALUE]) || heads < 1 || query->cols % heads ||
        (query->cols != key->cols && query->cols != key->cols * heads))
        lp_graph_fail(graph, "attention_at needs a query for each position, divided by the heads, and keys and values "
                             "with its columns or those of one head");
    else if (!in[TIME_QUERY] != !in[BASIS] || (in[BASIS] && (in[TIME_QUERY]->cols != heads * in[BASIS]->cols ||
                                                             in[TIME_QUERY]->rows_of != query->rows_of)))
        lp_graph_fail(graph, "attention_at needs a time query for each position, head and column of the basis");
    else {
        lp_op_limit(in[POSITIONS], key);
        lp_op_output_like(graph, node, 0, query);
        if (in[TIME_QUERY])
            lp_op_output_like(graph, node, 2, in[TIME_QUERY]);
    }
}

/* As if a position saw all of its segment. */
static lp_cost attention_at_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    double columns = node->inputs[QUERY]->cols + (node->inputs[TIME_QUERY] ? node->inputs[TIME_QUERY]->cols : 0);
    double tokens = (double)extent->rows[LP_ROWS_TOKENS], keys = tokens > 0 ? 2 * (double)extent->pairs / tokens : 0;
    cost.flop = 4 * (double)lp_value_rows(node->inputs[QUERY], extent) * keys * columns;
    return cost;
}

/* The scores of a position, for each head. */
static size_t attention_at_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    size_t stride = ((size_t)extent->longest + 15) / 16 * 16;
    return (size_t)node->attributes.heads * stride * real_size;
}

static lp_value *attention_at_example(lp_graph *graph, lp_random *random)
{
    int heads = 1 + (int)lp_random_below(random, 3), cols = 1 + (int)lp_random_below(random, 40);
    int extra = (int)lp_random_below(random, 3) * (1 + (int)lp_random_below(random, 30));
    int keys = lp_random_below(random, 2) ? cols : heads * cols;
    lp_value *query = lp_graph_input(graph, "query", LP_TYPE_REAL, LP_ROWS_TARGETS, 0, heads * cols);
    lp_value *key = lp_graph_input(graph, "key", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, keys);
    lp_value *value = lp_graph_input(graph, "value", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, keys);
    lp_value *time_query =
        extra ? lp_graph_input(graph, "time_query", LP_TYPE_REAL, LP_ROWS_TARGETS, 0, heads * extra) : NULL;
    lp_value *basis = extra ? lp_graph_input(graph, "basis", LP_TYPE_REAL, LP_ROWS_TOKENS, 0, extra) : NULL;
    lp_value *positions = lp_graph_input(graph, "positions", LP_TYPE_INT32, LP_ROWS_TARGETS, 0, 1);
    return lp_attention_at(graph, query, key, value, time_query, basis, positions, heads, 0.4, NULL);
}

lp_value *lp_attention_at(lp_graph *graph, lp_value *query, lp_value *key, lp_value *value, lp_value *time_query,
                          lp_value *basis, lp_value *positions, int heads, double scale, lp_value **time_out)
{
    lp_value *inputs[] = {query, key, value, time_query, basis, positions};
    lp_value *out = lp_graph_node(graph, &lp_op_attention_at, inputs, &(lp_attributes){.heads = heads, .scale = scale});
    if (time_out)
        *time_out = out ? out->producer->outputs[2] : NULL;
    return out;
}

/* (query, key, value, time_query?, basis?, positions) -> out [A x H*d], nothing, time_out [A x H*E]: the outputs of attention without the
 * log-sum-exp. An op of its own, because it has no gradient and no dropout. */
const lp_op lp_op_attention_at = {.id = LP_OP_ATTENTION_AT,
                                  .name = "attention_at",
                                  .input_count = 6,
                                  .output_count = 3,
                                  .shape = attention_at_shape,
                                  .cost = attention_at_cost,
                                  .scratch = attention_at_scratch,
                                  .example = attention_at_example};
