/* op_additive_attention.c: additive attention without a softmax, over packed sequences. */
#include "graph/op_rows.h"

static bool is_rows(const lp_value *x, int cols)
{
    return x && x->type == LP_TYPE_REAL && x->rows_of == LP_ROWS_TOKENS && (cols == 0 || x->cols == cols) &&
           x->cols <= LP_RECURRENT_HIDDEN;
}

static void shape(lp_graph *graph, lp_node *node)
{
    const lp_value *query = node->inputs[0], *key = node->inputs[1], *value = node->inputs[2],
                   *weight = node->inputs[3];
    if (!is_rows(query, 0) || !is_rows(key, query->cols) || !is_rows(value, 0) || !weight ||
        weight->rows_of != LP_ROWS_FIXED || weight->rows != 1 || weight->cols != query->cols)
        lp_graph_fail(graph,
                      "additive_attention needs query and key [T x a], value [T x b] and weight [1 x a], a and b at "
                      "most %d",
                      (int)LP_RECURRENT_HIDDEN);
    else
        lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_TOKENS, 0, value->cols);
}

static void gradient(lp_graph *graph, lp_node *node)
{
    lp_value *const *in = node->inputs;
    lp_value *inputs[] = {in[0], in[1], in[2], in[3], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_additive_attention_gradient, inputs, NULL, node->inputs);
}

/* Per pair, `sigmoid` operations for each column of the query and `product` for each of the value. */
static lp_cost pair_cost(const lp_node *node, const lp_extent *extent, int sigmoid, int product)
{
    lp_cost cost = lp_op_cost_elementwise(node, extent);
    cost.flop = (double)extent->pairs * (sigmoid * node->inputs[0]->cols + product * node->inputs[2]->cols);
    return cost;
}

static lp_cost forward_cost(const lp_node *node, const lp_extent *extent)
{
    return pair_cost(node, extent, 6, 2);
}

static lp_cost gradient_cost(const lp_node *node, const lp_extent *extent)
{
    return pair_cost(node, extent, 14, 4);
}

/* A row of the key's sigmoids and of the gradients of query, key, weight and value. */
static size_t gradient_scratch(const lp_node *node, const lp_extent *extent, size_t real_size)
{
    (void)extent;
    return (4 * (size_t)node->inputs[0]->cols + (size_t)node->inputs[2]->cols) * real_size;
}

static lp_value *example(lp_graph *graph, lp_random *random)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 11, 33};
    int a = sizes[lp_random_below(random, 7)], b = sizes[lp_random_below(random, 7)];
    int given = (int)lp_random_below(random, 8); /* the input that requires no gradient, if below 4 */
    static const char *const names[] = {"query", "key", "value"};
    lp_value *rows[3];
    for (int i = 0; i < 3; i++) {
        int cols = i < 2 ? a : b;
        rows[i] = given == i ? lp_graph_input(graph, names[i], LP_TYPE_REAL, LP_ROWS_TOKENS, 0, cols)
                             : lp_example_tokens(graph, names[i], cols);
    }
    lp_value *weight = given == 3 ? lp_graph_input(graph, "weight", LP_TYPE_REAL, LP_ROWS_FIXED, 1, a)
                                  : lp_example_fixed(graph, "weight", 1, a);
    lp_value *out = lp_additive_attention(graph, rows[0], rows[1], rows[2], weight);
    /* Used again with the same inputs, so that gradients are added to; and with one value as query and key. */
    if (lp_random_below(random, 2))
        out = lp_add(graph, out, lp_additive_attention(graph, rows[0], rows[0], rows[2], weight));
    return lp_random_below(random, 2) ? lp_add(graph, out, rows[2]) : out;
}

lp_value *lp_additive_attention(lp_graph *graph, lp_value *query, lp_value *key, lp_value *value, lp_value *weight)
{
    return lp_graph_node(graph, &lp_op_additive_attention, (lp_value *[]){query, key, value, weight}, NULL);
}

const lp_op lp_op_additive_attention = {.id = LP_OP_ADDITIVE_ATTENTION,
                                        .name = "additive_attention",
                                        .input_count = 4,
                                        .output_count = 1,
                                        .shape = shape,
                                        .gradient = gradient,
                                        .cost = forward_cost,
                                        .example = example};

/* (query, key, value, weight, dout) -> dquery, dkey, dvalue, dweight */
const lp_op lp_op_additive_attention_gradient = {.id = LP_OP_ADDITIVE_ATTENTION_GRADIENT,
                                                 .name = "additive_attention_gradient",
                                                 .input_count = 5,
                                                 .output_count = 4,
                                                 .cost = gradient_cost,
                                                 .scratch = gradient_scratch};
