/* op_basic.c: add, embed, gather, relu, dropout. */
#include "graph/op_rows.h"

static void add_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *dy = node->outputs[0]->gradient;
    lp_graph_gradient_pass(graph, node->inputs[0], dy);
    lp_graph_gradient_pass(graph, node->inputs[1], dy);
}

static lp_value *add_example(lp_graph *graph, lp_random *random)
{
    int cols = 1 + (int)lp_random_below(random, 9);
    lp_value *a = lp_example_tokens(graph, "a", cols), *b = lp_example_tokens(graph, "b", cols);
    /* a is used twice, so that its gradient accumulates. */
    lp_value *sum = lp_add(graph, lp_add(graph, a, b), a);
    return lp_add(graph, sum, sum);
}

lp_value *lp_add(lp_graph *graph, lp_value *a, lp_value *b)
{
    return lp_graph_node(graph, &lp_op_add, (lp_value *[]){a, b}, NULL);
}

/* With one input it copies, or adds if its output accumulates: how gradients are summed. */
const lp_op lp_op_add = {.id = LP_OP_ADD,
                         .name = "add",
                         .input_count = 2,
                         .output_count = 1,
                         .shape = lp_op_shape_binary,
                         .gradient = add_gradient,
                         .cost = lp_op_cost_elementwise,
                         .element_flop = 1,
                         .example = add_example};

static void embed_shape(lp_graph *graph, lp_node *node)
{
    lp_value *table = node->inputs[0], *ids = node->inputs[1];
    if (!table || !ids || ids->type != LP_TYPE_INT32 || ids->cols != 1) {
        lp_graph_fail(graph, "embed needs a table and one id per row");
        return;
    }
    lp_op_limit(ids, table);
    lp_op_output(graph, node, 0, LP_TYPE_REAL, ids->rows_of, ids->rows, table->cols);
}

static void embed_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->outputs[0]->gradient, node->inputs[1]};
    lp_graph_gradient_node(graph, &lp_op_embed_gradient, inputs, NULL, &node->inputs[0]);
}

static lp_cost cost_copy(const lp_node *node, const lp_extent *extent)
{
    return (lp_cost){0, 2 * lp_value_bytes(node->outputs[0], extent)};
}

/* Of embed_pair and embed_gradient: one addition per element of y or dy. */
static lp_cost cost_add_rows(const lp_node *node, const lp_extent *extent)
{
    double bytes = lp_value_bytes(node->op == &lp_op_embed_pair ? node->outputs[0] : node->inputs[0], extent);
    return (lp_cost){bytes / 4, 3 * bytes};
}

static lp_value *embed_example(lp_graph *graph, lp_random *random)
{
    int rows = 1 + (int)lp_random_below(random, 6), cols = 1 + (int)lp_random_below(random, 9);
    bool own = lp_random_below(random, 2); /* the table is a matrix of tokens, read at the target positions */
    lp_value *table = own ? lp_example_tokens(graph, "x", cols) : lp_example_fixed(graph, "table", rows, cols);
    lp_value *ids = lp_graph_input(graph, "ids", LP_TYPE_INT32, own ? LP_ROWS_TARGETS : LP_ROWS_TOKENS, 0, 1);
    return lp_embed(graph, table, ids);
}

lp_value *lp_embed(lp_graph *graph, lp_value *table, lp_value *ids)
{
    return lp_graph_node(graph, &lp_op_embed, (lp_value *[]){table, ids}, NULL);
}

const lp_op lp_op_embed = {.id = LP_OP_EMBED,
                           .name = "embed",
                           .input_count = 2,
                           .output_count = 1,
                           .shape = embed_shape,
                           .gradient = embed_gradient,
                           .cost = cost_copy,
                           .example = embed_example};

static void place_columns_shape(lp_graph *graph, lp_node *node)
{
    const lp_value *x = node->inputs[0];
    if (!x || x->type != LP_TYPE_REAL || node->attributes.cols < 1)
        lp_graph_fail(graph, "place_columns needs a value and a number of columns");
    else
        lp_op_output(graph, node, 0, LP_TYPE_REAL, x->rows_of, x->rows, node->attributes.cols);
}

static void place_columns_gradient(lp_graph *graph, lp_node *node)
{
    lp_attributes back = {.first = -node->attributes.first, .cols = node->inputs[0]->cols};
    lp_graph_gradient_node(graph, &lp_op_place_columns, &node->outputs[0]->gradient, &back, &node->inputs[0]);
}

static lp_value *place_columns_example(lp_graph *graph, lp_random *random)
{
    lp_value *x = lp_example_tokens(graph, "x", 1 + (int)lp_random_below(random, 9));
    int first = (int)lp_random_below(random, 9) - 4, cols = 1 + (int)lp_random_below(random, 9);
    /* x is used twice, so that a gradient is added to. */
    return lp_add(graph, lp_place_columns(graph, x, first, cols), lp_place_columns(graph, x, 0, cols));
}

lp_value *lp_place_columns(lp_graph *graph, lp_value *x, int first, int cols)
{
    return lp_graph_node(graph, &lp_op_place_columns, &x, &(lp_attributes){.first = first, .cols = cols});
}

const lp_op lp_op_place_columns = {.id = LP_OP_PLACE_COLUMNS,
                                   .name = "place_columns",
                                   .input_count = 1,
                                   .output_count = 1,
                                   .shape = place_columns_shape,
                                   .gradient = place_columns_gradient,
                                   .cost = lp_op_cost_elementwise,
                                   .example = place_columns_example};

static void embed_pair_shape(lp_graph *graph, lp_node *node)
{
    lp_value *const *in = node->inputs;
    for (int k = 0; k < 4; k += 2)
        if (!in[k] || !in[k + 1] || in[k + 1]->type != LP_TYPE_INT32 || in[k + 1]->cols != 1 ||
            in[k]->cols != in[0]->cols || !lp_value_same_shape(in[k + 1], in[1])) {
            lp_graph_fail(graph, "embed_pair needs two tables of the same width and an id per row for each");
            return;
        }
    lp_op_limit(in[1], in[0]);
    lp_op_limit(in[3], in[2]);
    lp_op_output(graph, node, 0, LP_TYPE_REAL, in[1]->rows_of, in[1]->rows, in[0]->cols);
}

lp_value *lp_embed_pair(lp_graph *graph, lp_value *a, lp_value *i, lp_value *b, lp_value *j)
{
    return lp_graph_node(graph, &lp_op_embed_pair, (lp_value *[]){a, i, b, j}, NULL);
}

const lp_op lp_op_embed_pair = {.id = LP_OP_EMBED_PAIR,
                                .name = "embed_pair",
                                .input_count = 4,
                                .output_count = 1,
                                .shape = embed_pair_shape,
                                .cost = cost_add_rows};

/* (dy [T x a], ids [T x 1]) -> dtable [V x a]: row v is the sum of dy over the tokens whose id is v, in their order */
const lp_op lp_op_embed_gradient = {
    .id = LP_OP_EMBED_GRADIENT, .name = "embed_gradient", .input_count = 2, .output_count = 1, .cost = cost_add_rows};

static void gather_shape(lp_graph *graph, lp_node *node)
{
    lp_value *table = node->inputs[0], *rows = node->inputs[1];
    if (!table || !rows || rows->type != LP_TYPE_INT32 || rows->cols != 1 || rows->rows_of != LP_ROWS_ITEMS ||
        table->storage != LP_STORAGE_PARAMETER || table->offset >= graph->table_size) {
        lp_graph_fail(graph, "gather needs a table and the rows of the shard's items");
        return;
    }
    lp_op_limit(rows, table);
    lp_op_output(graph, node, 0, LP_TYPE_REAL, LP_ROWS_ITEMS, 0, table->cols);
}

/* The rows are distinct, so the gradient of the output is the row gradient. */
static void gather_gradient(lp_graph *graph, lp_node *node)
{
    lp_graph_gradient_pass(graph, node->inputs[0], node->outputs[0]->gradient);
}

static lp_value *gather_example(lp_graph *graph, lp_random *random)
{
    int rows = 1 + (int)lp_random_below(random, 6), cols = 1 + (int)lp_random_below(random, 9);
    lp_value *table = lp_graph_table(graph, "table", rows, cols, LP_INIT_NORMAL, 1);
    lp_value *ids = lp_graph_input(graph, "rows", LP_TYPE_INT32, LP_ROWS_ITEMS, 0, 1);
    return lp_gather(graph, table, ids);
}

lp_value *lp_gather(lp_graph *graph, lp_value *table, lp_value *rows)
{
    return lp_graph_node(graph, &lp_op_gather, (lp_value *[]){table, rows}, NULL);
}

const lp_op lp_op_gather = {.id = LP_OP_GATHER,
                            .name = "gather",
                            .input_count = 2,
                            .output_count = 1,
                            .shape = gather_shape,
                            .gradient = gather_gradient,
                            .cost = cost_copy,
                            .example = gather_example};

static void relu_gradient(lp_graph *graph, lp_node *node)
{
    lp_value *inputs[] = {node->outputs[0], node->outputs[0]->gradient};
    lp_graph_gradient_node(graph, &lp_op_relu_gradient, inputs, NULL, &node->inputs[0]);
}

static lp_value *relu_example(lp_graph *graph, lp_random *random)
{
    return lp_relu(graph, lp_example_tokens(graph, "x", 1 + (int)lp_random_below(random, 9)));
}

lp_value *lp_relu(lp_graph *graph, lp_value *x)
{
    return lp_graph_node(graph, &lp_op_relu, &x, NULL);
}

const lp_op lp_op_relu = {.id = LP_OP_RELU,
                          .name = "relu",
                          .input_count = 1,
                          .output_count = 1,
                          .shape = lp_op_shape_unary,
                          .gradient = relu_gradient,
                          .cost = lp_op_cost_elementwise,
                          .element_flop = 1,
                          .example = relu_example};

/* (y, dy) -> dx = dy where y > 0 */
const lp_op lp_op_relu_gradient = {.id = LP_OP_RELU_GRADIENT,
                                   .name = "relu_gradient",
                                   .input_count = 2,
                                   .output_count = 1,
                                   .cost = lp_op_cost_elementwise,
                                   .element_flop = 1};

/* The mask is a function of (seed, step, stream, element): the gradient regenerates it instead of storing it. */
static void dropout_gradient(lp_graph *graph, lp_node *node)
{
    lp_graph_gradient_node(graph, &lp_op_dropout, &node->outputs[0]->gradient, &node->attributes, &node->inputs[0]);
}

static lp_value *dropout_example(lp_graph *graph, lp_random *random)
{
    lp_value *x = lp_example_tokens(graph, "x", 1 + (int)lp_random_below(random, 20));
    return lp_dropout(graph, x, 0.3);
}

lp_value *lp_dropout(lp_graph *graph, lp_value *x, double rate)
{
    if (rate <= 0)
        return x;
    lp_attributes attributes = {.rate = rate, .stream = lp_graph_stream(graph)};
    return lp_graph_node(graph, &lp_op_dropout, &x, &attributes);
}

const lp_op lp_op_dropout = {.id = LP_OP_DROPOUT,
                             .name = "dropout",
                             .input_count = 1,
                             .output_count = 1,
                             .shape = lp_op_shape_unary,
                             .gradient = dropout_gradient,
                             .cost = lp_op_cost_elementwise,
                             .element_flop = 8,
                             .example = dropout_example};
