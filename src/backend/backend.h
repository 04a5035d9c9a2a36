/* backend.h: the backend interface: a table of functions that own memory and run planned graphs.
 *
 *   cpu               the fastest kernels for this machine's CPU
 *   reference         plain C kernels in float, which the fast ones are tested against
 *   reference-double  the same kernels in double, for gradient checks
 *   cuda              an NVIDIA GPU; only lp_backend_open returns it
 */
#ifndef LP_BACKEND_H
#define LP_BACKEND_H

#include "backend/adam.h"
#include "backend/rank_counts.h"
#include "graph/plan.h"

#include <string.h>

/* Rounding of the factors of matrix products, where a backend has a choice. Products are always accumulated in float. */
typedef enum lp_precision {
    LP_PRECISION_FP32,
    LP_PRECISION_TF32, /* 10-bit mantissa */
    LP_PRECISION_BF16  /* 7-bit mantissa */
} lp_precision;

extern const char *const lp_precision_names[]; /* ends with NULL */

/* Of a decoding run whose tokens are the newest rows of branches: continuations of the cached rows, of which each sees the cached rows
 * and its own earlier ones. */
typedef struct lp_run_branches {
    const int32_t *branch; /* [tokens]: index of the token's branch */
    const int32_t *length; /* [tokens]: rows that the branch already has */
    int capacity;          /* rows of a branch */
    void *const *
        rows; /* by the slot of a cached matrix: the branches' rows of it, [branches x capacity x columns of an event] */
    void *const *cached; /* by the slot: the first cached row */
} lp_run_branches;

/* Memory for a transposed copy of the basis of a history's events, [columns x stride]. attention_cached makes the columns that are
 * missing. */
typedef struct lp_run_transposed {
    float *data;
    int stride, filled; /* events 0 .. filled - 1 are there */
} lp_run_transposed;

/* The cached rows of one history, of a decoding run whose tokens belong to several. */
typedef struct lp_run_history {
    void *const *rows; /* by the slot of a cached matrix: the first cached row */
    int past;          /* cached rows before the token's, which the run appends */
} lp_run_history;

/* One shard and the buffers to run a planned graph with. Inputs and segments are in host memory, all other pointers in
 * the backend's memory. */
typedef struct lp_run {
    const lp_plan *plan;
    char *work, *scratch;   /* the thread's own, of plan->work_size and plan->scratch_size bytes */
    void *const *inputs;    /* by slot; rows of LP_ROWS_TOKENS inputs are this shard's */
    const void *parameters; /* graph->parameter_size reals */
    void *gradients;        /* the shard's gradients of the dense parameters; NULL if the graph has no gradients */
    void *row_gradients; /* the shard's gradients of table rows: [largest.rows[LP_ROWS_ITEMS] x table_cols], by table */
    int rows[LP_ROWS_COUNT]; /* the shard's rows, by lp_rows (LP_ROWS_FIXED unused); a shard may be empty */
    int segments;
    const int32_t
        *segment; /* [segments + 1] first tokens; segment[0] == 0 and segment[segments] == rows[LP_ROWS_TOKENS] */
    int first_node, end_node; /* runs nodes first_node .. end_node - 1 (end_node 0: to the last); the outputs of earlier
                               * nodes are still in the work buffer from a previous run */
    uint64_t seed;            /* of dropout */
    uint32_t step;
    uint64_t first_token; /* index in the batch of the shard's first token: dropout masks do not depend on sharding */
    lp_precision precision;
    int64_t *times;                  /* [nodes] nanoseconds, added to by host backends; may be NULL */
    const lp_run_branches *branches; /* NULL: the tokens are one continuation of the cached rows */
    /* [tokens] of a decoding run: each token is the next event of a history of its own, which no other token has. NULL: the tokens are
     * of one history. */
    const lp_run_history *histories;
    lp_run_transposed *basis; /* of a decoding run about one history; NULL: none */
    bool rows_alone; /* of a decoding run: a row of every value has the bits that it has in a run of this token alone */
} lp_run;

/* The optimizer step that follows a run. */
typedef struct lp_train_step {
    const lp_adam *adam;
    uint64_t step;            /* from 1 */
    const lp_row_union *rows; /* table rows that occurred in the batch; NULL if there are no tables */
    float *parameters;
    const lp_value *loss; /* of the run's graph */
    float *loss_to;       /* in pinned_new's memory; valid after the next sync */
} lp_train_step;

typedef void (*lp_kernel)(const lp_node *node, const lp_run *run);

/* A node, or some of its outputs, within a launch. */
typedef struct lp_launch_part {
    int node;    /* index in the graph */
    bool counts; /* whether the node's cost is attributed to this launch: the one that writes its first output */
} lp_launch_part;

/* One timed kernel launch, which computes one or more nodes. */
typedef struct lp_launch {
    int number;                  /* in a run, from 0; the same in every run with one plan and precision */
    const char *type;            /* such as "node" or "fused" */
    const lp_launch_part *parts; /* in the order of their nodes; valid until the callback returns */
    int count;
    double seconds;
} lp_launch;

typedef struct lp_profiler {
    void (*on_launch)(void *context, const lp_launch *launch);
    void *context;
} lp_profiler;

/* The number of scores that are not below the threshold. NaN scores count; with a NaN threshold all count. */
typedef int (*lp_count_kernel)(int count, const float *scores, float threshold);

enum { LP_SCORE_BLOCK = 64 };

/* Kernels that score a catalogue. All pointers are in host memory. */
typedef struct lp_ranking_kernels {
    /* scores [cases x items] = state [cases x dims] table [items x dims]^T + bias [items]; bias may be NULL. A score has
     * the same bits whatever the other cases and items are, so scores of separate calls can be compared for ties. */
    void (*scores)(int cases, int items, int dims, const float *state, const float *table, const float *bias,
                   float *scores);
    lp_count_kernel count_at_least;
    /* scores [items] of one state [dims], without copying the table. Not the same bits as `scores`. */
    void (*row_scores)(int items, int dims, const float *state, const float *table, const float *bias, float *scores);
    /* The same with the transposed table, [dims x stride]: a third faster, because no sum crosses a vector's lanes. */
    void (*transposed_scores)(int items, int dims, const float *state, const float *transposed, size_t stride,
                              const float *bias, float *scores);
    /* Scores [cases x items] of several states [cases x dims], each row with the bits of transposed_scores or, where `transposed`
     * is NULL, of row_scores. */
    void (*many_scores)(int cases, int items, int dims, const float *state, const float *table, const float *transposed,
                        size_t stride, const float *bias, float *scores);
    /* log-sum-exp of `count` >= 1 scores, computed in double. */
    double (*log_sum)(int count, const float *scores);
    /* The same as `scores` by the rule of a distance. */
    void (*distances)(lp_score_rule rule, int cases, int items, int dims, const float *state, const float *table,
                      const float *bias, float *scores);
    /* largest[b] is the largest of scores [count] in block b of LP_SCORE_BLOCK scores; NaN is left out, and -infinity if all are. */
    void (*largest)(int count, const float *scores, float *largest);
    /* index [returned number] of the scores that are at least `limit`, in ascending order. */
    int (*find_at_least)(int count, const float *scores, float limit, int32_t *index);
} lp_ranking_kernels;

/* Scores by a rule: lp_ranking_kernels.scores or distances. */
static inline void lp_item_scores(const lp_ranking_kernels *kernels, lp_score_rule rule, int cases, int items, int dims,
                                  const float *state, const float *table, const float *bias, float *scores)
{
    if (rule == LP_SCORE_PRODUCT)
        kernels->scores(cases, items, dims, state, table, bias, scores);
    else
        kernels->distances(rule, cases, items, dims, state, table, bias, scores);
}

typedef struct lp_backend {
    const char *name; /* first member: lp_find_by_name */
    void *context;    /* first argument of every function below; NULL for the host backends, which have no state */
    size_t real_size; /* bytes of LP_TYPE_REAL */
    /* Device memory, zeroed; NULL when out of memory. */
    void *(*buffer_new)(void *context, size_t size);
    void (*buffer_free)(void *context, void *buffer);
    void (*copy_to_device)(void *context, void *buffer, const void *host, size_t size);
    /* Waits for all earlier calls. The asynchronous copy needs pinned memory, which is valid after the next sync. */
    void (*copy_to_host)(void *context, void *host, const void *buffer, size_t size);
    void (*copy_to_host_async)(void *context, void *host, const void *buffer, size_t size);
    /* Pinned (page-locked) host memory. */
    void *(*pinned_new)(void *context, size_t size);
    void (*pinned_free)(void *context, void *host);
    /* The number of threads that may call `run` at once, at most `wanted`. */
    int (*max_threads)(void *context, int wanted);
    /* Runs all nodes for one shard. Each thread has its own work and scratch buffers. The call may return before the
     * nodes have run; later calls are ordered after it. Inputs may be overwritten as soon as it returns. */
    void (*run)(void *context, const lp_run *run);
    /* The same, synchronizing after every launch and reporting its time. NULL: lp_run.times is filled instead. */
    void (*run_profiled)(void *context, const lp_run *run, const lp_profiler *profiler);
    /* Measures the peak rates: flop/s of fused multiply-adds in this precision, and bytes/s read and written by copies
     * from one half of `size` bytes to the other. 0: unknown. NULL on host backends (bench_machine.h). */
    void (*measure_peak)(void *context, lp_precision precision, size_t size, double *operations, double *bytes);
    /* Adds the gradients of the shards adam->first_shard to end_shard - 1 along the tree of reduce.h. The sums of dense parameters replace the
     * gradients of the first of them, the sum of a table row that of its first entry in `rows` that is of these shards (NULL if there are
     * no tables); other gradients stay. NULL: a batch has one
     * shard. The result does not depend on the number of threads. */
    void (*reduce)(void *context, const lp_adam *adam, const lp_row_union *rows);
    /* Step number `step` (from 1) of the optimizer, with the sums of `reduce`: adds the L2 term, clips and updates. The result does not
     * depend on the number of threads. */
    void (*adam_step)(void *context, const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters);
    /* A run of a batch with one shard, the optimizer step and the copy of the loss as one submission. NULL: the caller
     * calls run, copy_to_host_async, reduce and adam_step, with the same result. */
    void (*train_step)(void *context, const lp_run *run, const lp_train_step *step);
    /* Returns when all earlier calls have completed. */
    void (*sync)(void *context);
    /* The first error of the device since it was opened, or NULL. Results after an error are invalid. NULL: cannot fail. */
    const char *(*device_error)(void *context);
    /* Fills the levels of every node of a graph; false: out of memory. NULL: nodes run in their order. */
    bool (*schedule)(void *context, const lp_graph *graph, lp_schedule_level *levels);
    int reuse_delay; /* levels before freed bytes of the work buffer are reused: lp_plan_make_at */
    /* Counts what the ranks of cases follow from. NULL on host backends, which rank by the kernels that follow. */
    void (*count_ranks)(void *context, const lp_rank_job *job);
    /* Ranking kernels. NULL: the backend has none (lp_backend_ranking). */
    const lp_ranking_kernels *(*ranking)(void *context);
    bool host; /* device memory is host memory, and every call is synchronous */
} lp_backend;

/* A CPU backend by name, or NULL. */
const lp_backend *lp_backend_find(const char *name);

/* A device that can be chosen by name. */
typedef struct lp_device {
    const char *name;       /* that of its backend */
    lp_precision precision; /* of products, by default */
    bool precisions;        /* products have a choice of precisions */
    bool host;              /* lp_backend.host */
} lp_device;

enum { LP_DEVICES = 2 };
extern const lp_device lp_devices[LP_DEVICES]; /* the first is the CPU */

/* The names of lp_devices by index, then "auto", NULL. */
const char *const *lp_device_names(void);

/* The device of an open backend. */
int lp_device_of(const lp_backend *backend);

/* Fails unless a device has this name, or it is "auto". */
lapse_status lp_device_check(const char *name, lapse_error *error);

/* Opens a device: "cpu"; "cuda", an NVIDIA GPU through the plugin liblapse_cuda.so, which is loaded at the first call that
 * needs it; "auto": cuda if it works, otherwise cpu. The plugin is the file at the path in the environment variable LAPSE_CUDA_PLUGIN, or
 * else the one beside the library (or the program that contains it, or in the library folder of its installed tree). */
lapse_status lp_backend_open(const char *device, const lp_backend **backend, lapse_error *error);

/* Plans a graph for runs on this backend. */
lapse_status lp_backend_plan(const lp_backend *backend, lp_plan *plan, lp_graph *graph, const lp_extent *largest,
                             lapse_error *error);

/* Fails if the device has failed since it was opened: results after that are invalid. */
lapse_status lp_backend_check(const lp_backend *backend, lapse_error *error);

/* The backend's ranking kernels, or those of the cpu backend where it has none. */
const lp_ranking_kernels *lp_backend_ranking(const lp_backend *backend);

/* The address of a value's data in this run. */
static inline void *lp_run_data(const lp_run *run, const lp_value *value)
{
    size_t real_size = run->plan->real_size;
    switch (value->storage) {
    case LP_STORAGE_INPUT:
        return run->inputs[value->slot];
    case LP_STORAGE_PARAMETER:
        return (char *)(uintptr_t)run->parameters + value->offset * real_size;
    case LP_STORAGE_GRADIENT:
        return (char *)run->gradients + value->offset * real_size;
    case LP_STORAGE_TABLE_ROWS:
        return (char *)run->row_gradients + value->offset * (size_t)run->plan->largest.rows[LP_ROWS_ITEMS] * real_size;
    case LP_STORAGE_WORK:
        break;
    }
    return value->offset == LP_LEFT_OUT ? NULL : run->work + value->offset;
}

/* The rows that a branch has of a cached matrix, from row `from` on; of the branch of a token. */
static inline void *lp_run_branch_rows(const lp_run *run, const lp_value *value, int token, int from)
{
    const lp_run_branches *branches = run->branches;
    size_t row = (size_t)branches->branch[token] * (size_t)branches->capacity + (size_t)from;
    return (char *)branches->rows[value->slot] + row * (size_t)value->cols * run->plan->real_size;
}

/* Row 0 of a cached matrix, of the history of a token. */
static inline void *lp_run_cached_rows(const lp_run *run, const lp_value *value, int token)
{
    if (run->histories)
        return run->histories[token].rows[value->slot];
    if (run->branches)
        return run->branches->cached[value->slot];
    return (char *)run->inputs[value->slot] -
           (size_t)run->rows[LP_ROWS_PAST] * (size_t)value->cols * run->plan->real_size;
}

/* Keys of a token in the cache, its own included unless it is of a branch. */
static inline int lp_run_cached_keys(const lp_run *run, int token)
{
    if (run->histories)
        return run->histories[token].past + 1;
    return run->rows[LP_ROWS_PAST] + (run->branches ? 0 : token + 1);
}

/* Copies the rows of a cached matrix that a run has computed to the histories or branches of their tokens. */
static inline void lp_run_append_rows(const lp_run *run, const lp_value *value)
{
    size_t size = (size_t)(value ? value->cols : 0) * run->plan->real_size;
    for (int t = 0; value && (run->branches || run->histories) && t < run->rows[LP_ROWS_TOKENS]; t++) {
        void *to = run->branches ? lp_run_branch_rows(run, value, t, run->branches->length[t])
                                 : (char *)lp_run_cached_rows(run, value, t) + (size_t)run->histories[t].past * size;
        memcpy(to, (const char *)run->inputs[value->slot] + (size_t)t * size, size);
    }
}

static inline int lp_run_rows(const lp_run *run, const lp_value *value)
{
    return value->rows_of == LP_ROWS_FIXED ? value->rows : run->rows[value->rows_of];
}

/* The segment of a token. */
LP_INLINE int lp_segment_of(const int32_t *segment, int segments, int token)
{
    int low = 0, high = segments - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (segment[middle + 1] > token)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Degrees of an input and of a hidden unit of a masked network, as lp_mask gives them. */
LP_INLINE int lp_input_degree(const lp_attributes *mask, int i)
{
    if (mask->order == LP_ORDER_AUTOREGRESSIVE)
        return i + 1;
    return (i < mask->units / 2) == (mask->order == LP_ORDER_COUPLING_UPPER) ? 1 : 2;
}

LP_INLINE int lp_hidden_degree(const lp_attributes *mask, int k)
{
    return mask->order == LP_ORDER_AUTOREGRESSIVE && mask->units > 2 ? 1 + k % (mask->units - 1) : 1;
}

/* Whether the mask is 1 at this element. The degree of an output is one less than that of the input. */
LP_INLINE bool lp_mask_keeps(const lp_attributes *mask, int row, int col)
{
    if (mask->layer == LP_LAYER_FIRST)
        return lp_hidden_degree(mask, row) >= lp_input_degree(mask, col);
    if (mask->layer == LP_LAYER_MIDDLE)
        return lp_hidden_degree(mask, row) >= lp_hidden_degree(mask, col);
    if (mask->layer == LP_LAYER_LAST)
        return lp_input_degree(mask, row) - 1 >= lp_hidden_degree(mask, col);
    return lp_input_degree(mask, col) - 1 >= 1;
}

/* Elements of a value in this run. */
static inline size_t lp_run_size(const lp_run *run, const lp_value *value)
{
    return (size_t)lp_run_rows(run, value) * (size_t)value->cols;
}

/* Dropout, identical on every backend. An element survives if its 16 random bits are at least the threshold. Eight
 * elements share one block of random words: block number = row * 65536 + column / 8. */
LP_INLINE uint32_t lp_dropout_threshold(double rate)
{
    return (uint32_t)(rate * 65536.0 + 0.5);
}

LP_INLINE uint32_t lp_dropout_purpose(uint32_t stream)
{
    return (uint32_t)LP_PURPOSE_DROPOUT | stream << 8;
}

LP_INLINE bool lp_dropout_keep(const lp_random_block *block, int column, uint32_t threshold)
{
    uint32_t bits = block->word[(column & 7) >> 1] >> (16 * (column & 1)) & 0xFFFFu;
    return bits >= threshold;
}

#endif
