/* op.h: the op table, and one builder function per op.
 *
 * An op is a row of lp_op_table (op_*.c define the rows by family): its name, numbers of inputs and outputs, shape rule,
 * gradient rule, cost and an example for the tests. Backends index their kernels by the same lp_op_id. To add an op, add a
 * row and a kernel per backend; no code switches over ops.
 *
 * Shapes below: T tokens, A target positions, I items of the shard, H heads, a and b columns, F frequencies.
 */
#ifndef LP_OP_H
#define LP_OP_H

#include "base/random.h"
#include "graph/graph.h"

/* The list of ops: X(id without LP_OP_, row without lp_op_, kernels of the CPU). FAST: the op has a SIMD kernel in backend/cpu/fast. PLAIN:
 * it has none, because the reference kernel is fast enough. An op without a CUDA launcher has none on a GPU (cuda.h). */
#define LP_OPS(X)                                                     \
    X(ADD, add, FAST)                                                 \
    X(LINEAR, linear, FAST)                                           \
    X(LINEAR_OUTER, linear_outer, FAST)                               \
    X(COLUMN_SUM, column_sum, FAST)                                   \
    X(COLUMN_DOT, column_dot, FAST)                                   \
    X(SCALE_COLUMNS, scale_columns, FAST)                             \
    X(TRANSPOSE, transpose, PLAIN)                                    \
    X(EMBED, embed, FAST)                                             \
    X(EMBED_GRADIENT, embed_gradient, FAST)                           \
    X(EMBED_PAIR, embed_pair, FAST)                                   \
    X(GATHER, gather, FAST)                                           \
    X(RELU, relu, FAST)                                               \
    X(RELU_GRADIENT, relu_gradient, FAST)                             \
    X(DROPOUT, dropout, FAST)                                         \
    X(LAYER_NORM, layer_norm, FAST)                                   \
    X(LAYER_NORM_GRADIENT, layer_norm_gradient, FAST)                 \
    X(HARMONICS, harmonics, PLAIN)                                    \
    X(HARMONICS_GRADIENT, harmonics_gradient, PLAIN)                  \
    X(BASIS, basis, FAST)                                             \
    X(BASIS_GRADIENT, basis_gradient, FAST)                           \
    X(REFLECT, reflect, FAST)                                         \
    X(REFLECT_GRADIENT, reflect_gradient, FAST)                       \
    X(ATTENTION, attention, FAST)                                     \
    X(ATTENTION_GRADIENT, attention_gradient, FAST)                   \
    X(ATTENTION_CACHED, attention_cached, FAST)                       \
    X(CROSS_ENTROPY, cross_entropy, FAST)                             \
    X(CROSS_ENTROPY_GRADIENT, cross_entropy_gradient, FAST)           \
    X(SOFTMAX_LOSS, softmax_loss, FAST)                               \
    X(SOFTMAX_LOSS_GRADIENT, softmax_loss_gradient, FAST)             \
    X(SAMPLED_LOSS, sampled_loss, FAST)                               \
    X(SAMPLED_LOSS_GRADIENT, sampled_loss_gradient, FAST)             \
    X(TIME_LOSS, time_loss, PLAIN)                                    \
    X(TIME_LOSS_GRADIENT, time_loss_gradient, PLAIN)                  \
    X(SOFTMAX, softmax, FAST)                                         \
    X(SOFTMAX_GRADIENT, softmax_gradient, PLAIN)                      \
    X(SOFT_LOSS, soft_loss, PLAIN)                                    \
    X(SOFT_LOSS_GRADIENT, soft_loss_gradient, PLAIN)                  \
    X(NOISE, noise, PLAIN)                                            \
    X(MULTIPLY, multiply, PLAIN)                                      \
    X(AFFINE, affine, FAST)                                           \
    X(EXP, exp, PLAIN)                                                \
    X(TANH, tanh, PLAIN)                                              \
    X(TANH_GRADIENT, tanh_gradient, PLAIN)                            \
    X(LOG_ABS, log_abs, PLAIN)                                        \
    X(LOG_ABS_GRADIENT, log_abs_gradient, PLAIN)                      \
    X(MASK, mask, PLAIN)                                              \
    X(SHIFT_ROWS, shift_rows, FAST)                                   \
    X(PLACE_COLUMNS, place_columns, PLAIN)                            \
    X(RNN, rnn, PLAIN)                                                \
    X(RNN_GRADIENT, rnn_gradient, PLAIN)                              \
    X(LSTM, lstm, FAST)                                               \
    X(LSTM_GRADIENT, lstm_gradient, FAST)                             \
    X(GRU, gru, FAST)                                                 \
    X(GRU_GRADIENT, gru_gradient, FAST)                               \
    X(ADDITIVE_ATTENTION, additive_attention, FAST)                   \
    X(ADDITIVE_ATTENTION_GRADIENT, additive_attention_gradient, FAST) \
    X(FOLD, fold, FAST)                                               \
    X(UNFOLD, unfold, FAST)                                           \
    X(MAX_ROWS, max_rows, FAST)                                       \
    X(MAX_ROWS_GRADIENT, max_rows_gradient, FAST)                     \
    X(VERTICAL_CONV, vertical_conv, FAST)                             \
    X(VERTICAL_CONV_GRADIENT, vertical_conv_gradient, FAST)           \
    X(VERTICAL_CONV_PRODUCTS, vertical_conv_products, FAST)           \
    X(MIXTURE_LOSS, mixture_loss, FAST)                               \
    X(MIXTURE_LOSS_GRADIENT, mixture_loss_gradient, FAST)             \
    X(ATTENTION_AT, attention_at, FAST)

#define LP_OP_ID(id, row, cpu) LP_OP_##id,
typedef enum lp_op_id { LP_OPS(LP_OP_ID) LP_OP_COUNT } lp_op_id;
#undef LP_OP_ID

/* Maximum query rows of an attention tile: the scratch is sized for it. */
enum { LP_ATTENTION_ROWS = 16 };

/* Maximum number of segments that a recurrent scan advances together: the scratch is sized for it. */
enum { LP_RECURRENT_SEGMENTS = 96 };

/* Largest hidden size of a recurrent layer, and columns of additive attention: a CUDA block has a thread for each column. */
enum { LP_RECURRENT_HIDDEN = 1024 };

/* Maximum tile of logits of softmax_loss. Rows of items are an odd number of cache lines apart, so that they do not map to the same
 * cache sets. */
enum { LP_SOFTMAX_ROWS = 96, LP_SOFTMAX_ITEMS = 496 };

/* The sizes of a shard, for memory and cost. */
typedef struct lp_extent {
    int64_t rows[LP_ROWS_COUNT]; /* by lp_rows; LP_ROWS_FIXED unused */
    int64_t pairs;               /* (query, key) pairs of causal attention, over all segments */
    int longest;                 /* tokens of the longest segment */
} lp_extent;

typedef struct lp_cost {
    double flop, bytes;
} lp_cost;

typedef struct lp_op {
    lp_op_id id;
    const char *name;
    int input_count, output_count;
    /* Checks the inputs and creates the outputs with lp_op_output, or calls lp_graph_fail. */
    void (*shape)(lp_graph *graph, lp_node *node);
    /* Appends the nodes that compute the gradients of the inputs from those of the outputs. NULL: the op is part of a
     * gradient itself, or inference-only. */
    void (*gradient)(lp_graph *graph, lp_node *node);
    /* Floating-point operations, and minimum memory traffic in bytes. */
    lp_cost (*cost)(const lp_node *node, const lp_extent *extent);
    double element_flop; /* for lp_op_cost_elementwise: operations per element of the first output */
    /* Bytes of scratch memory of its kernels for a shard of this extent; NULL: 0. */
    size_t (*scratch)(const lp_node *node, const lp_extent *extent, size_t real_size);
    /* Builds a random instance, with its own parameters and inputs, for the tests. NULL for gradient ops, which are
     * tested through the forward op. */
    lp_value *(*example)(lp_graph *graph, lp_random *random);
} lp_op;

/* By lp_op_id. */
extern const lp_op *const lp_op_table[LP_OP_COUNT];

/* ---- builders ------------------------------------------------------------------------------------------------ */

/* a + b  [T x a] */
lp_value *lp_add(lp_graph *graph, lp_value *a, lp_value *b);

/* Linear layer, per head h; weight [H*a x b]:
 *     transpose:   x [T x H*b] -> x_h W_h^T  [T x H*a]      (heads = 1: the usual linear layer, weight is out x in)
 *     otherwise:   x [T x H*a] -> x_h W_h    [T x H*b]
 * plus bias [1 x columns] and add [T x columns]; both may be NULL. */
lp_value *lp_linear(lp_graph *graph, lp_value *x, lp_value *weight, lp_value *bias, lp_value *add, int heads,
                    bool transpose);

/* W_h^T per head   weight [H*a x b] -> [H*b x a]. Inference only. */
lp_value *lp_transpose(lp_graph *graph, lp_value *weight, int heads);

/* x[r][c] * scale[c]   x [rows x a], scale [1 x a] */
lp_value *lp_scale_columns(lp_graph *graph, lp_value *x, lp_value *scale);

/* table[ids[t]]   table [V x a] or with any lp_rows, ids [T x 1] with any lp_rows -> [T x a] */
lp_value *lp_embed(lp_graph *graph, lp_value *table, lp_value *ids);

/* a[i[t]] + b[j[t]]   a [V x c], b [W x c], i and j [T x 1] -> [T x c]. Inference only. */
lp_value *lp_embed_pair(lp_graph *graph, lp_value *a, lp_value *i, lp_value *b, lp_value *j);

/* table[rows[i]], the table rows of the batch vocabulary   table [V x a], rows [I x 1], distinct -> [I x a] */
lp_value *lp_gather(lp_graph *graph, lp_value *table, lp_value *rows);

lp_value *lp_relu(lp_graph *graph, lp_value *x);

/* Inverted dropout with probability `rate`; returns x if rate is 0. */
lp_value *lp_dropout(lp_graph *graph, lp_value *x, double rate);

/* (x - mean) / sqrt(variance + epsilon) * weight + bias, per row */
lp_value *lp_layer_norm(lp_graph *graph, lp_value *x, lp_value *weight, lp_value *bias, double epsilon);

/* Angular frequencies 2 pi j / exp(log_period[i]), j = 1 .. harmonics; the harmonics of a period are adjacent.
 * log_period [1 x n] -> [1 x n*harmonics] in double. */
lp_value *lp_harmonics(lp_graph *graph, lp_value *log_period, int harmonics);

/* u(t) = (cos w_1 t .. cos w_F t, sin w_1 t .. sin w_F t)   time [T x 1], frequency [1 x F] -> [T x 2F] */
lp_value *lp_basis(lp_graph *graph, lp_value *time, lp_value *frequency);

/* The same with the frequencies of `known`, a basis at other times. Kernels may copy rows of `known` where the times are
 * equal, as when `time` is mostly the time of the next event. Inference only. */
lp_value *lp_basis_after(lp_graph *graph, lp_value *time, lp_value *known_time, lp_value *known);

/* The matrix M(t') with M(t') u(t) = u(t' - t), applied to each head of x: given u = u(t'), row by row,
 *     (c, s) -> (c cos w t' + s sin w t',  c sin w t' - s cos w t')      x [T x H*2F], u [T x 2F]
 * M is symmetric and its own inverse: the same op transforms queries before attention and outputs after it. */
lp_value *lp_reflect(lp_graph *graph, lp_value *x, lp_value *u);

/* Causal attention within segments, per head:
 *     p(q, i) = softmax over i <= q of scale * ( query_q . key_i  +  time_query_q . basis_i )
 *     out_q = sum p key-value rows;  time_out_q = sum p basis_i
 * query, key, value [T x H*d]; time_query [T x H*E], basis [T x E] common to all heads; the last two may be NULL.
 * *time_out is set to time_out [T x H*E] if time_query is given. */
lp_value *lp_attention(lp_graph *graph, lp_value *query, lp_value *key, lp_value *value, lp_value *time_query,
                       lp_value *basis, int heads, double scale, double rate, lp_value **time_out);

/* The same rows of causal attention, at `positions` alone: row a has the query of the token positions[a], in any order. Keys and values
 * have columns per head, or are shared by all heads. Inference only, without dropout.
 * query [A x H*d]; key and value [T x H*d] or [T x d]; time_query [A x H*E], basis [T x E]; positions [A x 1] int32 -> [A x H*d],
 * *time_out [A x H*E] */
lp_value *lp_attention_at(lp_graph *graph, lp_value *query, lp_value *key, lp_value *value, lp_value *time_query,
                          lp_value *basis, lp_value *positions, int heads, double scale, lp_value **time_out);

/* Makes the producer of `value` write its rows directly into a cache matrix of the caller, after the LP_ROWS_PAST rows of
 * earlier runs. value becomes an input of the graph, whose pointer is the row of the first new token; the cached rows
 * precede it. Returns value. Inference only. */
lp_value *lp_cache_rows(lp_graph *graph, lp_value *value);

/* The KV cache of one attention block: rows of lp_cache_rows. Keys may be the values. The basis is NULL where scores do not depend
 * on lags. */
typedef struct lp_kv_cache {
    lp_value *key, *value, *basis;
} lp_kv_cache;

/* Causal attention of the last T events of one segment over the cache, which holds all events of the segment; or of the newest events
 * of T branches (lp_run_branches) over the cache and the rows of their branches. Keys and
 * values have columns per head, or are shared by all heads. query_time is the basis of the query times: time_query is
 * reflected by it before, time_out after. time_query and time_out may be NULL; query_time may be NULL: no reflection. */
lp_value *lp_attention_cached(lp_graph *graph, lp_value *query, lp_value *time_query, lp_value *query_time,
                              const lp_kv_cache *memory, int heads, double scale, lp_value **time_out);

/* sum over rows of -log softmax(logits)[target]   logits [A x C], target [A x 1] -> [1 x 1] */
lp_value *lp_cross_entropy(lp_graph *graph, lp_value *logits, lp_value *target);

/* The same for the logits s = z items^T + bias + logq, which are never stored; the gradient recomputes them.
 * z [A x a]; items [C x a] or [I x a]; bias and logq one number per item; logq, the logQ correction, may be NULL and is
 * not trained; target [A x 1] -> [1 x 1] */
lp_value *lp_softmax_loss(lp_graph *graph, lp_value *z, lp_value *items, lp_value *bias, lp_value *logq,
                          lp_value *target);

/* Losses of the target against N sampled negatives, with scores s as above without logq, or by another rule (formula/loss.h); r is the target's score, s_j that of
 * negative j, w the softmax of the s_j over the negatives, g the sigmoid. Summed over rows.
 *     bce        -log g(r) - sum of log g(-s_j)
 *     bpr        -1/N sum of log g(r - s_j)                                 Rendle et al. 2009
 *     bpr-max    -log sum of w_j g(r - s_j) + regularization sum of w_j s_j^2      Hidasi and Karatzoglou 2018
 *     top1       1/N sum of g(s_j - r) + g(s_j^2)                               Hidasi et al. 2016
 *     top1-max   sum of w_j (g(s_j - r) + g(s_j^2))                          the same
 * negative [A x N] */
lp_value *lp_sampled_loss(lp_graph *graph, lp_value *z, lp_value *items, lp_value *bias, lp_value *target,
                          lp_value *negative, lp_loss type, double regularization, lp_score_rule score);

/* Negative log-likelihood of the time d to the next event, whose intensity is exp(score + slope d) at the time d after the last
 * event, summed over rows:
 *     -score - slope d + L,   L = exp(score) (exp(slope d) - 1) / slope, or exp(score) d for the slope 0
 * and L alone for a right-censored gap, a negative number -c: no event came within c seconds.
 * d = |gap| / unit; gap and unit in seconds.   score [A x 1], slope [1 x 1], gap [A x 1] double -> [1 x 1]
 * L and its derivatives are taken at exp(LP_HAZARD_MOST), where log L is larger, so that no gap makes them infinite. */
lp_value *lp_time_loss(lp_graph *graph, lp_value *score, lp_value *slope, lp_value *gap, double unit);

/* Negative log-likelihood of the time to the next event under a mixture of K log-normals (formula/mixture.h), summed over rows: of
 * y = (log(max(gap, floor)) - mean) / deviation under the mixture of normals; for a right-censored gap, a negative number -c, that of
 * the survival at y = (log(c) - mean) / deviation. With a background season has the integral of its profile over the gap, in seconds,
 * and the level at its end; otherwise it is NULL.
 * mixture [A x 3K], or [A x 3K + 1] with a background; gap [A x 1] double, in seconds; season [A x 2] double -> [1 x 1] */
lp_value *lp_mixture_loss(lp_graph *graph, lp_value *mixture, lp_value *gap, lp_value *season, double floor,
                          double mean, double deviation);

/* exp(x) / sum of exp(x), per row   x [T x a] */
lp_value *lp_softmax(lp_graph *graph, lp_value *x);

/* Cross-entropy with soft targets: sum over rows of -target . log softmax(logits)   logits and target [A x C] -> [1 x 1]
 * The target has no gradient. */
lp_value *lp_soft_loss(lp_graph *graph, lp_value *logits, lp_value *target);

/* Samples of the standard normal distribution, or of the uniform one on (0, 1): independent, or stratified, one from each of
 * rows * cols strata of equal probability, in increasing order. A function of (seed, stream, step) only, so the same in all
 * shards. [rows x cols] */
lp_value *lp_noise(lp_graph *graph, int rows, int cols, bool uniform, bool independent, uint32_t stream);

/* a * b  elementwise */
lp_value *lp_multiply(lp_graph *graph, lp_value *a, lp_value *b);

/* scale * x + shift */
lp_value *lp_affine(lp_graph *graph, lp_value *x, double scale, double shift);

lp_value *lp_exp(lp_graph *graph, lp_value *x);

/* bound * tanh(x / bound) */
lp_value *lp_tanh(lp_graph *graph, lp_value *x, double bound);

/* log sqrt(x^2 + least^2): the logarithm of |x|, finite at 0 */
lp_value *lp_log_abs(lp_graph *graph, lp_value *x, double least);

/* Masks a weight [to x from] or bias [1 x to] of a masked autoregressive network (MADE, Germain et al. 2015) whose inputs
 * and outputs are the `units` variables of a flow, one column each. Every unit has a degree, and a unit of degree a is
 * connected to those of degree b <= a:
 *                   inputs                  hidden                   outputs
 *   AUTOREGRESSIVE  i + 1                   1 + k mod (units - 1)    i
 *   COUPLING        seen half 1, other 2    1                        seen half 0, other 1
 * so that an output depends on strictly earlier inputs. A bias counts as a unit of degree 1: outputs of degree 0 have
 * none. */
lp_value *lp_mask(lp_graph *graph, lp_value *x, int units, lp_order order, lp_mask_layer layer);

/* x[t - k] where that token lies in the segment of t, otherwise zeros; k may be negative   x [T x a] */
lp_value *lp_shift_rows(lp_graph *graph, lp_value *x, int k);

/* The columns of x from column `first` on, in a row of `cols` columns; the others are zeros. A negative `first` drops columns of x.
 * x [T x a] -> [T x cols] */
lp_value *lp_place_columns(lp_graph *graph, lp_value *x, int first, int cols);

/* A plain recurrent layer over each segment, from a zero state: h_t = max(0, x_t + weight_hh h_{t-1})
 * x [T x H] holds the input part with its bias, weight_hh [H x H]. Returns the hidden states h [T x H]. */
lp_value *lp_rnn(lp_graph *graph, lp_value *x, lp_value *weight_hh);

/* A long short-term memory over each segment, from a zero state. Gates in PyTorch's order (i, f, g, o):
 *     (i, f, g, o)_t = x_t + weight_hh h_{t-1};  c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g);  h_t = sigmoid(o) tanh(c_t)
 * x [T x 4H] holds the input part of the gates with both biases, weight_hh [4H x H]. Returns the hidden states h [T x H]. */
lp_value *lp_lstm(lp_graph *graph, lp_value *x, lp_value *weight_hh);

/* A gated recurrent unit over each segment, from a zero state. Gates in PyTorch's order (r, z, n):
 *     a = weight_hh h_{t-1} + bias_hh;  r = sigmoid(x_r + a_r);  z = sigmoid(x_z + a_z);  n = tanh(x_n + r a_n)
 *     h_t = (1 - z) n + z h_{t-1}
 * x [T x 3H] holds the input part of the gates with its bias, weight_hh [3H x H], bias_hh [1 x 3H]. Returns h [T x H]. */
lp_value *lp_gru(lp_graph *graph, lp_value *x, lp_value *weight_hh, lp_value *bias_hh);

/* Causal additive attention within segments, without a softmax:
 *     out_t = sum over j <= t of (weight . sigmoid(query_t + key_j)) value_j
 * query and key [T x a], value [T x b], weight [1 x a] -> [T x b]; a and b at most LP_RECURRENT_HIDDEN. */
lp_value *lp_additive_attention(lp_graph *graph, lp_value *query, lp_value *key, lp_value *value, lp_value *weight);

/* Adds what the columns of tap m say to the row m tokens later in the segment: with x = z W^T, W [height*a x b], a causal convolution
 * of z whose kernel is `height` tokens high.
 *     y_t = bias + sum over m < height of x_{t-m}[m*a .. m*a+a]      x [T x height*a], bias [1 x a] or NULL -> [T x a] */
lp_value *lp_fold(lp_graph *graph, lp_value *x, lp_value *bias, int height);

/* The maximum of each column over the last `height` tokens of the segment that exist   x [T x a] */
lp_value *lp_max_rows(lp_graph *graph, lp_value *x, int height);

/* Sums of the last `height` tokens of the segment, weighted by `filters` filters that all columns share:
 *     y_t[j*a + c] = sum over m of weight[j*height + m] x_{t-m}[c]      x [T x a], weight [1 x filters*height] -> [T x filters*a] */
lp_value *lp_vertical_conv(lp_graph *graph, lp_value *x, lp_value *weight, int height);

/* ---- for the files that define the rows ------------------------------------------------------------------------ */

/* Shape rules of elementwise ops of one real input, and of two of the same shape. */
void lp_op_shape_unary(lp_graph *graph, lp_node *node);
void lp_op_shape_binary(lp_graph *graph, lp_node *node);
/* For shape rules: creates output i. */
lp_value *lp_op_output(lp_graph *graph, lp_node *node, int i, lp_type type, lp_rows rows_of, int rows, int cols);
lp_value *lp_op_output_like(lp_graph *graph, lp_node *node, int i, const lp_value *like);
/* Bytes of a value in a shard of this extent. */
double lp_value_bytes(const lp_value *value, const lp_extent *extent);
int64_t lp_value_rows(const lp_value *value, const lp_extent *extent);
/* Bytes of all inputs and outputs, and element_flop operations per element of the first output. */
lp_cost lp_op_cost_elementwise(const lp_node *node, const lp_extent *extent);
/* Sets the bound of ids to the rows of `table`. */
void lp_op_limit(lp_value *ids, const lp_value *table);
/* Leaves of examples. */
lp_value *lp_example_rows(lp_graph *graph, const char *name, lp_rows rows_of, int cols); /* requires_grad */
lp_value *lp_example_tokens(lp_graph *graph, const char *name, int cols);                /* requires_grad, [T x cols] */
lp_value *lp_example_fixed(lp_graph *graph, const char *name, int rows, int cols); /* requires_grad, [rows x cols] */

#endif
