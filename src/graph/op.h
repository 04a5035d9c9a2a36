/* op.h: the op table, and one builder for each op a model may use.
 *
 * An op is a row of lp_op_table (op_*.c hold the rows by family): its name, how many values go in and out, its shape
 * rule, its gradient rule, its cost and an example for the tests. Kernels are looked up by the same index in a backend. Adding an op is adding a row
 * here and a kernel to each backend; nothing switches over event types of ops.
 *
 * Shapes below: T tokens, A target positions, I items of the shard, H heads, a and b columns, F frequencies.
 */
#ifndef LP_OP_H
#define LP_OP_H

#include "base/random.h"
#include "graph/graph.h"

typedef enum lp_op_id {
    LP_OP_ADD,
    LP_OP_LINEAR,
    LP_OP_LINEAR_OUTER,
    LP_OP_COLUMN_SUM,
    LP_OP_COLUMN_DOT,
    LP_OP_SCALE_COLUMNS,
    LP_OP_TRANSPOSE,
    LP_OP_EMBED,
    LP_OP_EMBED_GRADIENT,
    LP_OP_EMBED_PAIR,
    LP_OP_GATHER,
    LP_OP_RELU,
    LP_OP_RELU_GRADIENT,
    LP_OP_DROPOUT,
    LP_OP_LAYER_NORM,
    LP_OP_LAYER_NORM_GRADIENT,
    LP_OP_HARMONICS,
    LP_OP_HARMONICS_GRADIENT,
    LP_OP_BASIS,
    LP_OP_BASIS_GRADIENT,
    LP_OP_REFLECT,
    LP_OP_REFLECT_GRADIENT,
    LP_OP_ATTENTION,
    LP_OP_ATTENTION_GRADIENT,
    LP_OP_CACHE_APPEND,
    LP_OP_ATTENTION_CACHED,
    LP_OP_CROSS_ENTROPY,
    LP_OP_CROSS_ENTROPY_GRADIENT,
    LP_OP_SOFTMAX_LOSS,
    LP_OP_SOFTMAX_LOSS_GRADIENT,
    LP_OP_BCE_LOSS,
    LP_OP_BCE_LOSS_GRADIENT,
    LP_OP_NOISE,
    LP_OP_MULTIPLY,
    LP_OP_AFFINE,
    LP_OP_EXP,
    LP_OP_TANH,
    LP_OP_TANH_GRADIENT,
    LP_OP_MASK,
    LP_OP_COUNT
} lp_op_id;

/* The most queries that attention takes at a time: what its scratch is sized for. */
enum { LP_ATTENTION_ROWS = 16 };

/* A tile of the logits that softmax_loss makes at a time. */
enum { LP_SOFTMAX_ROWS = 96, LP_SOFTMAX_ITEMS = 512 };

/* How large a shard is, for costs. */
typedef struct lp_extent {
    int64_t rows[LP_ROWS_COUNT]; /* of each event type that is not FIXED */
    int64_t pairs;               /* (query, key) pairs that causal attention looks at, over all segments */
    int longest;                 /* tokens of the longest segment */
} lp_extent;

typedef struct lp_cost {
    double flop, bytes;
} lp_cost;

typedef struct lp_op {
    lp_op_id id;
    const char *name;
    int input_count, output_count;
    /* Checks the inputs and makes the outputs with lp_op_output, or reports a mistake. */
    void (*shape)(lp_graph *graph, lp_node *node);
    /* Adds the nodes for the gradients of the inputs, given those of the outputs. NULL: the op is itself part of a
     * gradient, or stands only in networks that answer. */
    void (*gradient)(lp_graph *graph, lp_node *node);
    /* Floating-point operations and bytes moved at the least. */
    lp_cost (*cost)(const lp_node *node, const lp_extent *extent);
    /* Bytes of scratch its kernels may use for a shard of this extent; NULL: none. */
    size_t (*scratch)(const lp_node *node, const lp_extent *extent, size_t real_size);
    /* Builds a random instance for the tests on parameters and inputs of its own; NULL for gradient ops, which are
     * tested through their op. */
    lp_node *(*example)(lp_graph *graph, lp_random *random);
} lp_op;

/* The rows, by id. */
extern const lp_op *const lp_op_table[LP_OP_COUNT];

/* ---- builders ------------------------------------------------------------------------------------------------ */

/* a + b  [T x a] */
lp_value *lp_add(lp_graph *graph, lp_value *a, lp_value *b);

/* A product for each head h, weight [H*a x b]:
 *     transpose:   x [T x H*b] -> x_h W_h^T  [T x H*a]      (heads = 1: the usual linear layer, weight is out x in)
 *     otherwise:   x [T x H*a] -> x_h W_h    [T x H*b]
 * plus bias [1 x columns] and add [T x columns], each of which may be NULL. */
lp_value *lp_linear(lp_graph *graph, lp_value *x, lp_value *weight, lp_value *bias, lp_value *add, int heads,
                    bool transpose);

/* W_h^T for each head   weight [H*a x b] -> [H*b x a]. Only for networks that answer. */
lp_value *lp_transpose(lp_graph *graph, lp_value *weight, int heads);

/* x[r][c] * scale[c]   x [rows x a], scale [1 x a] */
lp_value *lp_scale_columns(lp_graph *graph, lp_value *x, lp_value *scale);

/* table[ids[t]]   table [V x a] or rows of any event type, ids [T x 1] of rows of any event type -> [T x a] */
lp_value *lp_embed(lp_graph *graph, lp_value *table, lp_value *ids);

/* a[i[t]] + b[j[t]]   a [V x c], b [W x c], i and j [T x 1] -> [T x c]. Only for networks that answer. */
lp_value *lp_embed_pair(lp_graph *graph, lp_value *a, lp_value *i, lp_value *b, lp_value *j);

/* table[rows[i]], the rows of a table that a shard needs   table [V x a], rows [I x 1], all different -> [I x a] */
lp_value *lp_gather(lp_graph *graph, lp_value *table, lp_value *rows);

lp_value *lp_relu(lp_graph *graph, lp_value *x);

/* Drops elements with this chance and scales the rest up; x itself where rate is 0. */
lp_value *lp_dropout(lp_graph *graph, lp_value *x, double rate);

/* (x - mean) / sqrt(variance + epsilon) * gain + shift, each row by itself */
lp_value *lp_layer_norm(lp_graph *graph, lp_value *x, lp_value *gain, lp_value *shift, double epsilon);

/* Angular frequencies 2 pi j / exp(log_period[i]), j = 1 .. harmonics; harmonics of one period stand together.
 * log_period [1 x n] -> [1 x n*harmonics] in double. */
lp_value *lp_harmonics(lp_graph *graph, lp_value *log_period, int harmonics);

/* u(t) = (cos w_1 t .. cos w_F t, sin w_1 t .. sin w_F t)   time [T x 1], frequency [1 x F] -> [T x 2F] */
lp_value *lp_basis(lp_graph *graph, lp_value *time, lp_value *frequency);

/* The same with the frequencies of a basis that is known at other times: of events, where `time` is mostly that of the next
 * one. Only for networks that answer. */
lp_value *lp_basis_after(lp_graph *graph, lp_value *time, lp_value *known_time, lp_value *known);

/* The matrix M(t') with M(t') u(t) = u(t' - t), applied to each head of x: given u = u(t'), row by row,
 *     (c, s) -> (c cos w t' + s sin w t',  c sin w t' - s cos w t')      x [T x H*2F], u [T x 2F]
 * M is symmetric and its own inverse: the same op turns queries before attention and outputs after it. */
lp_value *lp_reflect(lp_graph *graph, lp_value *x, lp_value *u);

/* Causal attention within segments, for each head:
 *     p(q, i) = softmax over i <= q of scale * ( query_q . key_i  +  time_query_q . basis_i )
 *     out_q = sum p key-value rows;  time_out_q = sum p basis_i
 * query, key, value [T x H*d]; time_query [T x H*E], basis [T x E], shared by the heads; the last two may be NULL.
 * time_out [T x H*E] is stored through the pointer where time_query is given. */
lp_value *lp_attention(lp_graph *graph, lp_value *query, lp_value *key, lp_value *value, lp_value *time_query,
                       lp_value *basis, int heads, double scale, double rate, lp_value **time_out);

/* The rows of a value are kept by the caller from run to run: whoever makes it writes them behind those of the past, as many as
 * LP_ROWS_PAST says. It becomes an input of the graph, a matrix of which the caller gives the place of the first token's row;
 * the rows of the past lie before it. Returns value. Only for networks that answer. */
lp_value *lp_cache_rows(lp_graph *graph, lp_value *value);

/* The same on its side, [a x stride], where the caller gives the place of the first column of the past: x [T x a] is copied
 * there. The stride is that of `capacity` events. LP_CACHE_PADDING elements behind the last row are read and never used. */
lp_value *lp_cache_append(lp_graph *graph, lp_value *x, int capacity);
enum { LP_CACHE_PADDING = 16 };

/* What is kept of events: key and basis_transposed by lp_cache_append, value and basis by lp_cache_rows; bases where time belongs to pairs. */
typedef struct lp_kv_cache {
    lp_value *key, *value, *basis_transposed, *basis;
} lp_kv_cache;

/* Attention of the last T events of one segment, all of whose events are kept. Keys and values have columns for each head of the
 * query, or the heads share them as they share the basis. time_query and time_out, one turned before and the other after by
 * the moments whose basis is `until`, may be NULL; so may `until`: nothing is turned. */
lp_value *lp_attention_cached(lp_graph *graph, lp_value *query, lp_value *time_query, lp_value *query_time,
                              const lp_kv_cache *memory, int heads, double scale, lp_value **time_out);

/* sum over rows of -log softmax(logits)[target]   logits [A x C], target [A x 1] -> [1 x 1] */
lp_value *lp_cross_entropy(lp_graph *graph, lp_value *logits, lp_value *target);

/* The same of the logits s = z items^T + bias + shift, which are never stored; the gradient makes them again.
 * z [A x a], items [C x a] or [I x a], bias and shift (which may be NULL, and is not learned) a number an item,
 * target [A x 1] -> [1 x 1] */
lp_value *lp_softmax_loss(lp_graph *graph, lp_value *z, lp_value *items, lp_value *bias, lp_value *shift,
                          lp_value *target);

/* A choice between the target and some other items, the negatives, with s as above for these alone:
 *     -log sigmoid(s_target) - sum over negatives of log sigmoid(-s)
 * summed over rows.   negative [A x N] */
lp_value *lp_bce_loss(lp_graph *graph, lp_value *z, lp_value *items, lp_value *bias, lp_value *target,
                      lp_value *negative);

/* One number from each of rows * cols slices of equal chance of the standard normal distribution, or of the uniform
 * one on (0, 1), from the lowest to the highest: together they follow it, and each keeps its place from step to step. A
 * function of (seed, stream, step) alone, so the same in all shards.  [rows x cols] */
lp_value *lp_noise(lp_graph *graph, int rows, int cols, bool uniform, uint32_t stream);

/* a * b  elementwise */
lp_value *lp_multiply(lp_graph *graph, lp_value *a, lp_value *b);

/* scale * x + shift */
lp_value *lp_affine(lp_graph *graph, lp_value *x, double scale, double shift);

lp_value *lp_exp(lp_graph *graph, lp_value *x);

/* bound * tanh(x / bound): x near 0, never beyond the bound */
lp_value *lp_tanh(lp_graph *graph, lp_value *x, double bound);

/* x without the elements that would let a variable see one it must not. x is a matrix [to x from] or a bias [1 x to]
 * of a network whose inputs and outputs are the `units` variables of a flow, one column each. Every unit has a degree, and
 * one of degree a sees those of degree b <= a:
 *                 inputs                  hidden                   outputs
 *   EACH          i + 1                   1 + k mod (units - 1)    i
 *   UPPER, LOWER  seen half 1, other 2    1                        seen half 0, other 1
 * so that an output depends on strictly earlier inputs. A bias is that of a unit of degree 1: it keeps the outputs of
 * degree 1 and more. */
lp_value *lp_mask(lp_graph *graph, lp_value *x, int units, lp_order order, lp_mask_layer layer);

/* ---- for the files that hold the rows ------------------------------------------------------------------------ */

/* Output i of a node being shaped. */
lp_value *lp_op_output(lp_graph *graph, lp_node *node, int i, lp_type type, lp_rows rows_of, int rows, int cols);
lp_value *lp_op_output_like(lp_graph *graph, lp_node *node, int i, const lp_value *like);
/* Bytes of a value in a shard of this extent. */
double lp_value_bytes(const lp_value *value, const lp_extent *extent);
int64_t lp_value_rows(const lp_value *value, const lp_extent *extent);
/* Bytes of all inputs and outputs, and `each` operations for every element of output 0. */
lp_cost lp_op_cost_elementwise(const lp_node *node, const lp_extent *extent, double each);
/* Whether the mask of a node keeps this element. */
bool lp_mask_keeps(const lp_attributes *with, int row, int col);
/* Says of ids that they are rows of `table`. */
void lp_op_limit(lp_value *ids, const lp_value *table);
/* Leaves for examples. */
lp_value *lp_example_rows(lp_graph *graph, const char *name, lp_rows rows_of, int cols); /* learned */
lp_value *lp_example_tokens(lp_graph *graph, const char *name, int cols);                /* learned, [T x cols] */
lp_value *lp_example_fixed(lp_graph *graph, const char *name, int rows, int cols);       /* learned, [rows x cols] */

#endif
