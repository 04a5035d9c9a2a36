/* fast.h: SIMD float kernels, written once and compiled for each instruction-set level.
 *
 * The files of this folder are plain C that the compiler vectorizes: they are built for the compiler's baseline
 * ("portable") and, on x86-64, again with AVX2 and with AVX-512. cpu_level.c selects one build at run time. Two rules make
 * results bit-identical for any number of threads:
 *   - the order of a sum depends on shapes only, never on memory alignment;
 *   - matrix products are single-threaded.
 * The kernels of reference/ define each op; comments here explain only what differs from them.
 */
#ifndef LP_FAST_H
#define LP_FAST_H

#include "backend/cpu/cpu.h"

#ifndef LP_LEVEL
#define LP_LEVEL portable
#endif

#define LP_FAST_PASTE(name, level) lp_fast_##name##_##level
#define LP_FAST_EXPAND(name, level) LP_FAST_PASTE(name, level)
#define LP_FAST(name) LP_FAST_EXPAND(name, LP_LEVEL)

/* The ops that have a SIMD kernel, as in LP_OPS; for the others the reference kernel is fast enough. */
#define LP_FAST_OPS(X)                                          \
    X(ADD, add)                                                 \
    X(LINEAR, linear)                                           \
    X(LINEAR_OUTER, linear_outer)                               \
    X(COLUMN_SUM, column_sum)                                   \
    X(COLUMN_DOT, column_dot)                                   \
    X(SCALE_COLUMNS, scale_columns)                             \
    X(EMBED, embed)                                             \
    X(EMBED_GRADIENT, embed_gradient)                           \
    X(EMBED_PAIR, embed_pair)                                   \
    X(GATHER, gather)                                           \
    X(AFFINE, affine)                                           \
    X(RELU, relu)                                               \
    X(RELU_GRADIENT, relu_gradient)                             \
    X(DROPOUT, dropout)                                         \
    X(LAYER_NORM, layer_norm)                                   \
    X(LAYER_NORM_GRADIENT, layer_norm_gradient)                 \
    X(BASIS, basis)                                             \
    X(BASIS_GRADIENT, basis_gradient)                           \
    X(REFLECT, reflect)                                         \
    X(REFLECT_GRADIENT, reflect_gradient)                       \
    X(ATTENTION, attention)                                     \
    X(ATTENTION_GRADIENT, attention_gradient)                   \
    X(CACHE_APPEND, cache_append)                               \
    X(ATTENTION_CACHED, attention_cached)                       \
    X(CROSS_ENTROPY, cross_entropy)                             \
    X(CROSS_ENTROPY_GRADIENT, cross_entropy_gradient)           \
    X(SOFTMAX_LOSS, softmax_loss)                               \
    X(SOFTMAX_LOSS_GRADIENT, softmax_loss_gradient)             \
    X(SAMPLED_LOSS, sampled_loss)                               \
    X(SAMPLED_LOSS_GRADIENT, sampled_loss_gradient)             \
    X(SOFTMAX, softmax)                                         \
    X(SHIFT_ROWS, shift_rows)                                   \
    X(LSTM, lstm)                                               \
    X(LSTM_GRADIENT, lstm_gradient)                             \
    X(GRU, gru)                                                 \
    X(GRU_GRADIENT, gru_gradient)                               \
    X(ADDITIVE_ATTENTION, additive_attention)                   \
    X(ADDITIVE_ATTENTION_GRADIENT, additive_attention_gradient) \
    X(FOLD, fold)                                               \
    X(UNFOLD, unfold)                                           \
    X(MAX_ROWS, max_rows)                                       \
    X(MAX_ROWS_GRADIENT, max_rows_gradient)                     \
    X(VERTICAL_CONV, vertical_conv)                             \
    X(VERTICAL_CONV_GRADIENT, vertical_conv_gradient)           \
    X(VERTICAL_CONV_PRODUCTS, vertical_conv_products)           \
    X(ATTEND_SELF, attend_self)                                 \
    X(ATTEND_SELF_GRADIENT, attend_self_gradient)               \
    X(MIXTURE_LOSS, mixture_loss)                               \
    X(MIXTURE_LOSS_GRADIENT, mixture_loss_gradient)             \
    X(ATTENTION_AT, attention_at)

#define LP_FAST_KERNEL(id, row) void LP_FAST(row)(const lp_node *node, const lp_run *run);
LP_FAST_OPS(LP_FAST_KERNEL)
#undef LP_FAST_KERNEL

/* lp_ranking_kernels */
void LP_FAST(scores)(int cases, int items, int dims, const float *state, const float *table, const float *bias,
                     float *scores);
int LP_FAST(count_at_least)(int count, const float *scores, float threshold);
void LP_FAST(row_scores)(int items, int dims, const float *state, const float *table, const float *bias, float *scores);
void LP_FAST(transposed_scores)(int items, int dims, const float *state, const float *transposed, size_t stride,
                                const float *bias, float *scores);
void LP_FAST(many_scores)(int cases, int items, int dims, const float *state, const float *table,
                          const float *transposed, size_t stride, const float *bias, float *scores);
double LP_FAST(log_sum)(int count, const float *scores);

/* lp_cpu_adam */
float LP_FAST(adam_norm)(size_t count, float l2, const float *parameters, float *gradients);
void LP_FAST(adam_add)(size_t count, float *sum, const float *a, const float *b);
void LP_FAST(adam_step)(size_t count, const lp_adam_factors *factors, float rate, float *parameters, float *moment1,
                        float *moment2, const float *gradients);
/* lp_cpu_fma_loop */
double LP_FAST(fma_loop)(int turns, float *sink);

/* Data of input or output i of `node`; NULL if absent or unused. */
#define INPUT(i) ((const float *)(node->inputs[i] ? lp_run_data(run, node->inputs[i]) : NULL))
#define OUTPUT(i) ((float *)(node->outputs[i] ? lp_run_data(run, node->outputs[i]) : NULL))
/* Whether output i accumulates. */
#define ADDED(i) ((node->accumulate >> (i)&1) != 0)

#endif
