/* backend.h: who computes. A backend is a table of functions; nothing outside this room knows which one it is.
 *
 *   cpu               fast kernels for this machine's CPU over the plain ones
 *   reference         the plain kernels in float: what the fast ones are compared with
 *   reference-double  the same in double: what gradients are checked with
 *   cuda              an NVIDIA GPU; found by lp_backend_open alone
 */
#ifndef LP_BACKEND_H
#define LP_BACKEND_H

#include "backend/adam.h"
#include "graph/plan.h"

/* How products are rounded where a backend can choose. Sums are always kept in float. */
typedef enum lp_precision {
    LP_PRECISION_FP32, /* as float: the reference */
    LP_PRECISION_TF32, /* factors rounded to 10 bits after the point */
    LP_PRECISION_BF16  /* to 7 bits */
} lp_precision;

extern const char *const lp_precision_names[]; /* NULL at the end */

/* One shard on its way through a planned graph. Inputs and segments lie in the host's memory, all else in the backend's. */
typedef struct lp_run {
    const lp_plan *plan;
    char *work, *scratch;   /* the worker's, of plan->work_size and plan->scratch_size bytes */
    void *const *inputs;    /* by slot; rows of LP_ROWS_TOKENS inputs are this shard's */
    const void *parameters; /* graph->parameter_size reals */
    void *gradients; /* the shard's own, of the parameters behind the tables; NULL where the graph has no gradients */
    void *row_gradients; /* the shard's own of table rows: [largest.rows[LP_ROWS_ITEMS] x table_cols], table by table */
    int rows[LP_ROWS_COUNT]; /* of the shard, of each event type that is not FIXED; a shard may be empty */
    int segments;
    const int32_t
        *segment;   /* segments + 1 token numbers; segment[0] == 0 and segment[segments] == rows[LP_ROWS_TOKENS] */
    int skip, stop; /* nodes skip .. stop - 1 are run (stop 0: to the last); what those before compute is in the work
                     * buffer from a run before */
    uint64_t seed;  /* of dropout */
    uint32_t step;
    uint64_t first_token; /* number in the batch of the shard's first token: masks do not depend on shards */
    lp_precision precision;
    int64_t *times; /* the host adds nanoseconds here, node by node; NULL: nobody wants to know */
} lp_run;

/* The step of the optimizer that follows a run. */
typedef struct lp_train_step {
    const lp_adam *adam;
    uint64_t step;        /* from 1 */
    const lp_row_union *rows; /* those of tables that occurred; NULL where there are no tables */
    float *parameters;
    const lp_value *loss; /* of the run's graph */
    float *loss_to;       /* in host_new's memory; there after the next sync */
} lp_train_step;

typedef void (*lp_kernel)(const lp_node *node, const lp_run *run);

/* A part of a launch: a node, or some of its outputs. */
typedef struct lp_launch_part {
    int node;    /* its number in the graph */
    bool counts; /* its work counts here: of the launches that share a node, in the one that makes its first output */
} lp_launch_part;

/* What a device is asked to do at once, for one node or for several, and how long that takes by itself. */
typedef struct lp_launch {
    int number;                  /* in a run, from 0; the same in every run with one plan and precision */
    const char *type;            /* such as "node" or "chain" */
    const lp_launch_part *parts; /* in the order of their nodes; the backend's, until the call returns */
    int count;
    double seconds;
} lp_launch;

/* Who wants to know. */
typedef struct lp_profiler {
    void (*on_launch)(void *context, const lp_launch *launch);
    void *context;
} lp_profiler;

typedef struct lp_backend {
    const char *name;
    void *context;    /* the first argument of every function below; NULL for the host, which has no state */
    size_t real_size; /* bytes of LP_TYPE_REAL */
    /* Memory the kernels can reach, zeroed; NULL when there is none left. */
    void *(*buffer_new)(void *context, size_t size);
    void (*buffer_free)(void *context, void *buffer);
    void (*copy_in)(void *context, void *buffer, const void *host, size_t size);
    void (*copy_out)(void *context, void *host, const void *buffer,
                     size_t size); /* after all that was asked for before */
    /* Like copy_out, but the numbers need not be there before the next sync. The host's memory must be host_new's. */
    void (*fetch)(void *context, void *host, const void *buffer, size_t size);
    void *(*host_new)(void *context, size_t size);
    void (*host_free)(void *context, void *host);
    /* How many threads may run shards at once, of so many wanted. */
    int (*threads)(void *context, int wanted);
    /* Runs all nodes for one shard; each thread that does so has buffers of its own. The call may return before it is done;
     * what comes later waits. Inputs may be changed at once. */
    void (*run)(void *context, const lp_run *run);
    /* The same, launch by launch: each is waited for, and then shown to the watch. NULL: lp_run.times has what there is to know. */
    void (*run_profiled)(void *context, const lp_run *run, const lp_profiler *watch);
    /* What can be done in a second at the most, as measured now: operations of multiply-adds alone in this precision, and bytes read
     * and written by copies from one half of `size` bytes to the other. 0 where that cannot be told. NULL: the backend is the host,
     * of which bench_machine.h tells. */
    void (*speed)(void *context, lp_precision precision, size_t size, double *operations, double *bytes);
    /* Step number `step` (from 1) on the parameters. rows: those of tables that occurred; NULL where there are no tables.
     * Does not depend on the number of threads. */
    void (*adam_step)(void *context, const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters);
    /* A run of a batch that is one shard, the step that follows it, and its loss, all at once. NULL: one after the other, by run,
     * fetch and adam_step, which make the same of it. */
    void (*learn)(void *context, const lp_run *run, const lp_train_step *learning);
    /* Returns when all that was asked for is done. */
    void (*sync)(void *context);
    /* The first thing that went wrong since the start, or NULL: a device may fail in the middle of its work, and what it
     * gives from then on is worth nothing. NULL in place of the function: nothing can. */
    const char *(*problem)(void *context);
    /* When each node of a graph runs, where that is not in their order; false: out of memory. NULL: in their order. */
    bool (*arrange)(void *context, const lp_graph *graph, lp_schedule_level *moments);
    int rest;  /* of places in the work buffer, for what runs side by side: lp_plan_make_at */
    bool host; /* its memory is the host's, and every call returns when it is done */
} lp_backend;

/* By name; NULL if there is none such. */
const lp_backend *lp_backend_find(const char *name);

/* Of a device: "cpu"; "cuda", an NVIDIA GPU through the plugin liblapse_cuda.so, which is opened at the first call that wants
 * it; "auto": cuda where it works, otherwise cpu. The plugin is looked for beside the library and the program, in the library
 * folder of an installed tree, and where LAPSE_CUDA_PLUGIN says. */
lapse_status lp_backend_open(const char *device, const lp_backend **backend, lapse_error *error);

/* A plan for runs on this backend. */
lapse_status lp_backend_plan(const lp_backend *backend, lp_plan *plan, lp_graph *graph, const lp_extent *largest,
                             lapse_error *error);

/* Where a value's data lies in this run. */
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
    return run->work + value->offset;
}

static inline int lp_run_rows(const lp_run *run, const lp_value *value)
{
    return value->rows_of == LP_ROWS_FIXED ? value->rows : run->rows[value->rows_of];
}

/* Dropout, the same on every backend. An element is kept if its 16 random bits are at least the threshold; eight
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
