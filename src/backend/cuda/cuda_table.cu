/* cuda_table.cu: the launcher of every op. */
#include "backend/cuda/cuda_reduction.h"

/* Filled by a constexpr function, because C++17 has no designated initializers for arrays. */
struct kernel_table {
    lp_cuda_kernel by_op[LP_OP_COUNT];
};

static constexpr kernel_table make_table()
{
    kernel_table table = {};
    table.by_op[LP_OP_ADD] = lp_cuda_elementwise<LP_OP_ADD>;
    table.by_op[LP_OP_LINEAR] = lp_cuda_linear;
    table.by_op[LP_OP_LINEAR_OUTER] = lp_cuda_reduce_node;
    table.by_op[LP_OP_COLUMN_SUM] = lp_cuda_reduce_node;
    table.by_op[LP_OP_COLUMN_DOT] = lp_cuda_reduce_node;
    table.by_op[LP_OP_SCALE_COLUMNS] = lp_cuda_row_node;
    table.by_op[LP_OP_EMBED] = lp_cuda_row_node;
    table.by_op[LP_OP_EMBED_GRADIENT] = lp_cuda_embed_gradient;
    table.by_op[LP_OP_GATHER] = lp_cuda_row_node;
    table.by_op[LP_OP_RELU] = lp_cuda_elementwise<LP_OP_RELU>;
    table.by_op[LP_OP_RELU_GRADIENT] = lp_cuda_elementwise<LP_OP_RELU_GRADIENT>;
    table.by_op[LP_OP_DROPOUT] = lp_cuda_row_node;
    table.by_op[LP_OP_LAYER_NORM] = lp_cuda_row_node;
    table.by_op[LP_OP_LAYER_NORM_GRADIENT] = lp_cuda_row_node;
    table.by_op[LP_OP_HARMONICS] = lp_cuda_harmonics;
    table.by_op[LP_OP_HARMONICS_GRADIENT] = lp_cuda_harmonics_gradient;
    table.by_op[LP_OP_BASIS] = lp_cuda_row_node;
    table.by_op[LP_OP_BASIS_GRADIENT] = lp_cuda_reduce_node;
    table.by_op[LP_OP_REFLECT] = lp_cuda_row_node;
    table.by_op[LP_OP_REFLECT_GRADIENT] = lp_cuda_row_node;
    table.by_op[LP_OP_ATTENTION] = lp_cuda_attention;
    table.by_op[LP_OP_ATTENTION_GRADIENT] = lp_cuda_attention_gradient;
    table.by_op[LP_OP_ATTENTION_AT] = lp_cuda_attention_at;
    table.by_op[LP_OP_ATTEND_SELF] = lp_cuda_attend_self;
    table.by_op[LP_OP_ATTEND_SELF_GRADIENT] = lp_cuda_attend_self_gradient;
    table.by_op[LP_OP_CROSS_ENTROPY] = lp_cuda_cross_entropy;
    table.by_op[LP_OP_CROSS_ENTROPY_GRADIENT] = lp_cuda_cross_entropy_gradient;
    table.by_op[LP_OP_SOFTMAX_LOSS] = lp_cuda_softmax_loss;
    table.by_op[LP_OP_SOFTMAX_LOSS_GRADIENT] = lp_cuda_softmax_loss_gradient;
    table.by_op[LP_OP_SAMPLED_LOSS] = lp_cuda_sampled_loss;
    table.by_op[LP_OP_SAMPLED_LOSS_GRADIENT] = lp_cuda_sampled_loss_gradient;
    table.by_op[LP_OP_TIME_LOSS] = lp_cuda_time_loss;
    table.by_op[LP_OP_TIME_LOSS_GRADIENT] = lp_cuda_time_loss_gradient;
    table.by_op[LP_OP_MIXTURE_LOSS] = lp_cuda_mixture_loss;
    table.by_op[LP_OP_MIXTURE_LOSS_GRADIENT] = lp_cuda_mixture_loss_gradient;
    table.by_op[LP_OP_SOFTMAX] = lp_cuda_softmax;
    table.by_op[LP_OP_SOFTMAX_GRADIENT] = lp_cuda_softmax_gradient;
    table.by_op[LP_OP_SOFT_LOSS] = lp_cuda_soft_loss;
    table.by_op[LP_OP_SOFT_LOSS_GRADIENT] = lp_cuda_soft_loss_gradient;
    table.by_op[LP_OP_NOISE] = lp_cuda_noise;
    table.by_op[LP_OP_MULTIPLY] = lp_cuda_elementwise<LP_OP_MULTIPLY>;
    table.by_op[LP_OP_AFFINE] = lp_cuda_elementwise<LP_OP_AFFINE>;
    table.by_op[LP_OP_EXP] = lp_cuda_elementwise<LP_OP_EXP>;
    table.by_op[LP_OP_TANH] = lp_cuda_elementwise<LP_OP_TANH>;
    table.by_op[LP_OP_TANH_GRADIENT] = lp_cuda_elementwise<LP_OP_TANH_GRADIENT>;
    table.by_op[LP_OP_LOG_ABS] = lp_cuda_elementwise<LP_OP_LOG_ABS>;
    table.by_op[LP_OP_LOG_ABS_GRADIENT] = lp_cuda_elementwise<LP_OP_LOG_ABS_GRADIENT>;
    table.by_op[LP_OP_MASK] = lp_cuda_mask;
    table.by_op[LP_OP_SHIFT_ROWS] = lp_cuda_shift_rows;
    table.by_op[LP_OP_LSTM] = lp_cuda_lstm;
    table.by_op[LP_OP_LSTM_GRADIENT] = lp_cuda_lstm_gradient;
    table.by_op[LP_OP_GRU] = lp_cuda_gru;
    table.by_op[LP_OP_GRU_GRADIENT] = lp_cuda_gru_gradient;
    table.by_op[LP_OP_ADDITIVE_ATTENTION] = lp_cuda_additive_attention;
    table.by_op[LP_OP_ADDITIVE_ATTENTION_GRADIENT] = lp_cuda_additive_attention_gradient;
    table.by_op[LP_OP_FOLD] = lp_cuda_fold;
    table.by_op[LP_OP_UNFOLD] = lp_cuda_unfold;
    table.by_op[LP_OP_MAX_ROWS] = lp_cuda_max_rows;
    table.by_op[LP_OP_MAX_ROWS_GRADIENT] = lp_cuda_max_rows_gradient;
    table.by_op[LP_OP_VERTICAL_CONV] = lp_cuda_vertical_conv;
    table.by_op[LP_OP_VERTICAL_CONV_GRADIENT] = lp_cuda_vertical_conv_gradient;
    table.by_op[LP_OP_VERTICAL_CONV_PRODUCTS] = lp_cuda_vertical_conv_products;
    return table;
}

static constexpr kernel_table table = make_table();

lp_cuda_kernel lp_cuda_kernel_of(lp_op_id id)
{
    return table.by_op[id];
}
