/* op_table.c: the op table, and helpers shared by the op families. */
#include "graph/op_rows.h"

#define LP_OP_ENTRY(id, row, cpu) [LP_OP_##id] = &lp_op_##row,
const lp_op *const lp_op_table[LP_OP_COUNT] = {LP_OPS(LP_OP_ENTRY)};

int64_t lp_value_rows(const lp_value *value, const lp_extent *extent)
{
    return value->rows_of == LP_ROWS_FIXED ? value->rows : extent->rows[value->rows_of];
}

double lp_value_bytes(const lp_value *value, const lp_extent *extent)
{
    double size = value->type == LP_TYPE_DOUBLE ? 8 : 4;
    return (double)lp_value_rows(value, extent) * value->cols * size;
}

lp_cost lp_op_cost_elementwise(const lp_node *node, const lp_extent *extent)
{
    lp_cost cost = {0};
    for (int i = 0; i < node->op->input_count; i++)
        if (node->inputs[i] && !node->inputs[i]->optional)
            cost.bytes += lp_value_bytes(node->inputs[i], extent);
    for (int i = 0; i < node->op->output_count; i++) {
        if (!node->outputs[i] || node->outputs[i]->optional)
            continue;
        cost.bytes += lp_value_bytes(node->outputs[i], extent);
        if (cost.flop == 0)
            cost.flop =
                node->op->element_flop * (double)lp_value_rows(node->outputs[i], extent) * node->outputs[i]->cols;
    }
    return cost;
}

void lp_op_shape_unary(lp_graph *graph, lp_node *node)
{
    if (!node->inputs[0] || node->inputs[0]->type != LP_TYPE_REAL)
        lp_graph_fail(graph, "%s needs a real value", node->op->name);
    else
        lp_op_output_like(graph, node, 0, node->inputs[0]);
}

void lp_op_shape_binary(lp_graph *graph, lp_node *node)
{
    lp_value *a = node->inputs[0], *b = node->inputs[1];
    if (!a || !b || a->type != LP_TYPE_REAL || b->type != LP_TYPE_REAL || !lp_value_same_shape(a, b))
        lp_graph_fail(graph, "%s needs two values of the same shape", node->op->name);
    else
        lp_op_output_like(graph, node, 0, a);
}

void lp_op_limit(lp_value *ids, const lp_value *table)
{
    if (table->rows_of != LP_ROWS_FIXED)
        ids->limit_of = table->rows_of;
    else if (ids->limit == 0 || ids->limit > table->rows)
        ids->limit = table->rows;
}

lp_value *lp_example_rows(lp_graph *graph, const char *name, lp_rows rows_of, int cols)
{
    lp_value *value = lp_graph_input(graph, name, LP_TYPE_REAL, rows_of, 0, cols);
    if (value)
        value->requires_grad = true;
    return value;
}

lp_value *lp_example_tokens(lp_graph *graph, const char *name, int cols)
{
    return lp_example_rows(graph, name, LP_ROWS_TOKENS, cols);
}

lp_value *lp_example_fixed(lp_graph *graph, const char *name, int rows, int cols)
{
    return lp_graph_parameter(graph, name, rows, cols, LP_INIT_NORMAL, 1);
}
