/* op_recall.c: causal attention of a history's newest events, where the keys and values of the older ones are kept.
 *
 * Keys, values and bases never depend on the moment asked about, so a live history computes them once an event; what is
 * left of a question is one row of queries in each block. An op of its own rather than further inputs of `attention`:
 * nothing is learned here, nothing dropped, there is one segment, and the kernels are shaped for few rows. */
#include "graph/op_rows.h"

enum { QUERY, KEY, VALUE, TIME_QUERY, BASIS, PAST_KEY, PAST_VALUE, PAST_BASIS };

static bool fits_past(const lp_value *past, const lp_value *now)
{
    return !past == !now && (!past || (past->rows_of == LP_ROWS_PAST && past->cols == now->cols));
}

static void recall_shape(lp_graph *graph, lp_node *node)
{
    lp_value *const *in = node->inputs;
    int heads = node->with.heads;
    if (!in[QUERY] || !in[KEY] || !in[VALUE] || in[QUERY]->rows_of != LP_ROWS_TOKENS ||
        !lp_value_same_shape(in[QUERY], in[KEY]) || !lp_value_same_shape(in[QUERY], in[VALUE]) || heads < 1 ||
        in[QUERY]->cols % heads)
        lp_graph_mistake(graph, "recall wants query, key and value of one shape, divided by the heads");
    else if (!in[TIME_QUERY] != !in[BASIS] || (in[BASIS] && in[TIME_QUERY]->cols != heads * in[BASIS]->cols))
        lp_graph_mistake(graph, "recall wants a time query for each head and column of the basis");
    else if (!fits_past(in[PAST_KEY], in[KEY]) || !fits_past(in[PAST_VALUE], in[VALUE]) ||
             !fits_past(in[PAST_BASIS], in[BASIS]))
        lp_graph_mistake(graph, "recall wants past keys, values and basis as wide as those of now");
    else {
        lp_op_output_like(graph, node, 0, in[QUERY]);
        if (in[TIME_QUERY])
            lp_op_output_like(graph, node, 1, in[TIME_QUERY]);
    }
}

static lp_cost recall_cost(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent, 0);
    double tokens = (double)extent->rows[LP_ROWS_TOKENS], past = (double)extent->rows[LP_ROWS_PAST];
    double cols = node->inputs[QUERY]->cols + (node->inputs[TIME_QUERY] ? node->inputs[TIME_QUERY]->cols : 0);
    cost.flop = 4 * tokens * (past + (tokens + 1) / 2) * cols;
    return cost;
}

/* Scores of a block of rows, each padded to whole vectors. */
static size_t recall_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    (void)node;
    size_t keys = (size_t)(extent->rows[LP_ROWS_TOKENS] + extent->rows[LP_ROWS_PAST]);
    return LP_ATTENTION_ROWS * (keys + 16) * real_size;
}

lp_value *lp_recall(lp_graph *graph, lp_value *query, lp_value *key, lp_value *value, lp_value *time_query,
                    lp_value *basis, const lp_past *past, int heads, double scale, lp_value **time_out)
{
    lp_attributes with = {.heads = heads, .scale = scale};
    lp_value *inputs[] = {query, key, value, time_query, basis, past->key, past->value, past->basis};
    lp_node *node = lp_graph_node(graph, &lp_op_recall, inputs, &with);
    if (time_out)
        *time_out = node ? node->outputs[1] : NULL;
    return node ? node->outputs[0] : NULL;
}

/* (query, key, value, time_query?, basis?, past_key, past_value, past_basis?) -> out [T x H*d], time_out [T x H*E] */
const lp_op lp_op_recall = {.id = LP_OP_RECALL,
                            .name = "recall",
                            .input_count = 8,
                            .output_count = 2,
                            .shape = recall_shape,
                            .cost = recall_cost,
                            .scratch = recall_scratch};
