/* cpu_backend.c: the backends that run on this machine's CPU. */
#include "backend/cpu/cpu.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/text.h"

#include <string.h>

static void *buffer_new(void *context, size_t size)
{
    (void)context;
    return lp_alloc_sparse(size, 1);
}

static void copy(void *context, void *to, const void *from, size_t size)
{
    (void)context;
    memcpy(to, from, size);
}

static int any_threads(void *context, int wanted)
{
    (void)context;
    return wanted;
}

static int blas_threads(void *context, int wanted)
{
    (void)context;
    return lp_cpu_threads_safe() ? wanted : 1;
}

static void sync(void *context)
{
    (void)context;
}

static void buffer_free(void *context, void *buffer)
{
    (void)context;
    lp_free(buffer);
}

/* Whether the segments of a run ascend from 0 to its number of tokens. */
static bool segments_ascend(const lp_run *run)
{
    bool ascend = run->segments == 0 || run->segment[0] == 0;
    for (int s = 0; s < run->segments; s++)
        ascend = ascend && run->segment[s] <= run->segment[s + 1];
    return ascend && (run->segments == 0 || run->segment[run->segments] == run->rows[LP_ROWS_TOKENS]);
}

/* Whether the run has no more rows of any type than the buffers were planned for. */
static bool rows_fit(const lp_run *run)
{
    bool fit = true;
    for (int r = LP_ROWS_FIXED + 1; r < LP_ROWS_COUNT; r++)
        fit = fit && run->rows[r] >= 0 && run->rows[r] <= run->plan->largest.rows[r];
    return fit;
}

/* Whether the ids that a node reads are rows of the tables that it reads them from. */
static bool ids_in_range(const lp_node *node, const lp_run *run)
{
    bool within = true;
    for (int k = 0; k < node->op->input_count; k++) {
        const lp_value *value = node->inputs[k];
        if (!value || value->type != LP_TYPE_INT32 || (!value->limit && value->limit_of == LP_ROWS_FIXED))
            continue;
        const int32_t *ids = lp_run_data(run, value);
        int limit = value->limit_of == LP_ROWS_FIXED ? value->limit : run->rows[value->limit_of];
        for (size_t i = 0; i < lp_run_size(run, value); i++)
            within = within && ids[i] >= 0 && ids[i] < limit;
    }
    return within;
}

static void run_all(const lp_run *run, const lp_kernel *kernels)
{
    const lp_graph *graph = run->plan->graph;
    int end_node = run->end_node ? run->end_node : graph->node_count;
    int64_t start = run->times ? lp_clock_nanoseconds() : 0;
    LP_ASSERT(run->first_node >= 0 && run->first_node <= end_node && end_node <= graph->node_count);
    LP_ASSERT(segments_ascend(run));
    LP_ASSERT(rows_fit(run));
    for (int i = run->first_node; i < end_node; i++) {
        LP_ASSERT(ids_in_range(graph->nodes[i], run));
        kernels[graph->nodes[i]->op->id](graph->nodes[i], run);
        if (!run->times)
            continue;
        int64_t end = lp_clock_nanoseconds();
        run->times[i] += end - start;
        start = end;
    }
}

static void run_reference_float(void *context, const lp_run *run)
{
    (void)context;
    run_all(run, lp_reference_kernels_float);
}

static void run_reference_double(void *context, const lp_run *run)
{
    (void)context;
    run_all(run, lp_reference_kernels_double);
}

static void run_fast(void *context, const lp_run *run)
{
    (void)context;
    run_all(run, lp_cpu_kernels());
}

static void reduce(void *context, const lp_adam *adam, const lp_row_union *rows)
{
    (void)context;
    lp_cpu_reduce(adam, rows);
}

static void adam_step(void *context, const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters)
{
    (void)context;
    lp_cpu_adam_step(adam, step, rows, parameters);
}

static const lp_ranking_kernels *ranking(void *context)
{
    (void)context;
    return lp_cpu_ranking_table();
}

#define ON_HOST                                                                                         \
    .buffer_new = buffer_new, .buffer_free = buffer_free, .copy_to_device = copy, .copy_to_host = copy, \
    .copy_to_host_async = copy, .pinned_new = buffer_new, .pinned_free = buffer_free, .reduce = reduce, \
    .adam_step = adam_step, .sync = sync, .host = true

static const lp_backend cpu = {.name = "cpu",
                               .real_size = sizeof(float),
                               .max_threads = blas_threads,
                               .run = run_fast,
                               .ranking = ranking,
                               ON_HOST};
static const lp_backend reference_float = {
    .name = "reference", .real_size = sizeof(float), .max_threads = any_threads, .run = run_reference_float, ON_HOST};
static const lp_backend reference_double = {.name = "reference-double",
                                            .real_size = sizeof(double),
                                            .max_threads = any_threads,
                                            .run = run_reference_double,
                                            ON_HOST};

const lp_backend *lp_backend_find(const char *name)
{
    static const lp_backend *const backends[] = {&cpu, &reference_float, &reference_double, NULL};
    return lp_find_by_name(backends, name);
}
