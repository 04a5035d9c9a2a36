/* op_table.c: the op table, and helpers shared by the op families. */
#include "graph/op_rows.h"

const lp_op *const lp_op_table[LP_OP_COUNT] = {
    [LP_OP_ADD] = &lp_op_add,
    [LP_OP_LINEAR] = &lp_op_linear,
    [LP_OP_LINEAR_OUTER] = &lp_op_linear_outer,
    [LP_OP_COLUMN_SUM] = &lp_op_column_sum,
    [LP_OP_COLUMN_DOT] = &lp_op_column_dot,
    [LP_OP_SCALE_COLUMNS] = &lp_op_scale_columns,
    [LP_OP_TRANSPOSE] = &lp_op_transpose,
    [LP_OP_EMBED] = &lp_op_embed,
    [LP_OP_EMBED_GRADIENT] = &lp_op_embed_gradient,
    [LP_OP_EMBED_PAIR] = &lp_op_embed_pair,
    [LP_OP_GATHER] = &lp_op_gather,
    [LP_OP_RELU] = &lp_op_relu,
    [LP_OP_RELU_GRADIENT] = &lp_op_relu_gradient,
    [LP_OP_DROPOUT] = &lp_op_dropout,
    [LP_OP_LAYER_NORM] = &lp_op_layer_norm,
    [LP_OP_LAYER_NORM_GRADIENT] = &lp_op_layer_norm_gradient,
    [LP_OP_HARMONICS] = &lp_op_harmonics,
    [LP_OP_HARMONICS_GRADIENT] = &lp_op_harmonics_gradient,
    [LP_OP_BASIS] = &lp_op_basis,
    [LP_OP_BASIS_GRADIENT] = &lp_op_basis_gradient,
    [LP_OP_REFLECT] = &lp_op_reflect,
    [LP_OP_REFLECT_GRADIENT] = &lp_op_reflect_gradient,
    [LP_OP_ATTENTION] = &lp_op_attention,
    [LP_OP_ATTENTION_GRADIENT] = &lp_op_attention_gradient,
    [LP_OP_CACHE_APPEND] = &lp_op_cache_append,
    [LP_OP_ATTENTION_CACHED] = &lp_op_attention_cached,
    [LP_OP_CROSS_ENTROPY] = &lp_op_cross_entropy,
    [LP_OP_CROSS_ENTROPY_GRADIENT] = &lp_op_cross_entropy_gradient,
    [LP_OP_SOFTMAX_LOSS] = &lp_op_softmax_loss,
    [LP_OP_SOFTMAX_LOSS_GRADIENT] = &lp_op_softmax_loss_gradient,
    [LP_OP_BCE_LOSS] = &lp_op_bce_loss,
    [LP_OP_BCE_LOSS_GRADIENT] = &lp_op_bce_loss_gradient,
    [LP_OP_NOISE] = &lp_op_noise,
    [LP_OP_MULTIPLY] = &lp_op_multiply,
    [LP_OP_AFFINE] = &lp_op_affine,
    [LP_OP_EXP] = &lp_op_exp,
    [LP_OP_TANH] = &lp_op_tanh,
    [LP_OP_TANH_GRADIENT] = &lp_op_tanh_gradient,
    [LP_OP_MASK] = &lp_op_mask,
};

int64_t lp_value_rows(const lp_value *value, const lp_extent *extent)
{
    return value->rows_of == LP_ROWS_FIXED ? value->rows : extent->rows[value->rows_of];
}

double lp_value_bytes(const lp_value *value, const lp_extent *extent)
{
    double size = value->type == LP_TYPE_DOUBLE ? 8 : 4;
    return (double)lp_value_rows(value, extent) * value->cols * size;
}

lp_cost lp_op_cost_elementwise(const lp_node *node, const lp_extent *extent, double each)
{
    lp_cost cost = {0};
    for (int i = 0; i < node->op->input_count; i++)
        if (node->inputs[i])
            cost.bytes += lp_value_bytes(node->inputs[i], extent);
    for (int i = 0; i < node->op->output_count; i++) {
        if (!node->outputs[i])
            continue;
        cost.bytes += lp_value_bytes(node->outputs[i], extent);
        if (cost.flop == 0)
            cost.flop = each * (double)lp_value_rows(node->outputs[i], extent) * node->outputs[i]->cols;
    }
    return cost;
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
