/* cpu_adam.c: the sum of gradients over shards and the Adam step, on the thread pool. Tasks have fixed sizes, so sums do not depend on
 * the number of threads. */
#include "backend/adam.h"
#include "backend/cpu/cpu.h"
#include "backend/reduce.h"
#include "base/assert.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 4096, ROWS = 64 }; /* dense parameters, or table rows, of a task */

typedef struct adam_job {
    const lp_adam *adam;
    const lp_row_union *rows; /* NULL if there are no tables */
    float *parameters;
    const lp_cpu_adam *kernels;
    int end_shard; /* of the sum */
    int chunks;    /* tasks of dense parameters; later tasks are table rows */
    lp_adam_factors factors;
} adam_job;

/* Contiguous elements of a parameter, and their gradients in the first shard that has them: after lp_cpu_reduce their sums. */
typedef struct span {
    float *parameters, *moment1, *moment2, *gradients;
    const float *rates; /* per group of LP_PARAMETER_ALIGN elements; NULL: `rate` for all */
    float rate;
    size_t count;
} span;

static span dense_span(const adam_job *job, int chunk)
{
    const lp_adam *adam = job->adam;
    size_t dense = adam->size - adam->table_size, begin = (size_t)chunk * CHUNK;
    size_t end = begin + CHUNK < dense ? begin + CHUNK : dense, offset = adam->table_size + begin;
    return (span){job->parameters + offset,
                  adam->moment1 + offset,
                  adam->moment2 + offset,
                  adam->gradients + begin,
                  adam->rates + begin / LP_PARAMETER_ALIGN,
                  0,
                  end - begin};
}

/* The gradient of a table row, given its index shard * capacity + row of the batch vocabulary. */
static float *row_gradient(const lp_adam *adam, const lp_table *table, int32_t index)
{
    size_t capacity = (size_t)adam->item_capacity, shard = (size_t)index / capacity, row = (size_t)index % capacity;
    LP_ASSERT(index >= 0 && shard < (size_t)adam->shards);
    return adam->row_gradients + (shard * (size_t)adam->table_cols + (size_t)table->before) * capacity +
           row * (size_t)table->cols;
}

static span row_span(const adam_job *job, const lp_table *table, int row)
{
    const lp_adam *adam = job->adam;
    size_t offset = table->offset + (size_t)job->rows->row[row] * (size_t)table->cols;
    float *gradients = row_gradient(adam, table, job->rows->item_index[job->rows->first[row]]);
    return (span){
        job->parameters + offset, adam->moment1 + offset, adam->moment2 + offset, gradients, NULL, table->rate,
        (size_t)table->cols};
}

/* Adds the L2 term and returns the squared norm. Gradients of frozen parameters become 0: they have no part in the norm,
 * no moments and no update. */
static double add_l2_and_norm(const lp_cpu_adam *kernels, const span *s, float l2)
{
    enum { SUMMED = 256 }; /* elements whose squares are accumulated in float */
    double norm = 0;
    for (size_t group = 0; s->rates && group < s->count / LP_PARAMETER_ALIGN; group++)
        if (s->rates[group] == 0)
            memset(s->gradients + group * LP_PARAMETER_ALIGN, 0, LP_PARAMETER_ALIGN * sizeof *s->gradients);
    for (size_t i = 0; i < s->count;) { /* runs of trained or of frozen elements */
        bool fixed = s->rates && s->rates[i / LP_PARAMETER_ALIGN] == 0;
        size_t count = 0;
        while (count < SUMMED && i + count < s->count &&
               (!s->rates || (s->rates[(i + count) / LP_PARAMETER_ALIGN] == 0) == fixed))
            count += s->rates ? LP_PARAMETER_ALIGN : s->count;
        count = count < s->count - i ? count : s->count - i;
        norm += fixed ? 0 : (double)kernels->norm(count, l2, s->parameters + i, s->gradients + i);
        i += count;
    }
    return norm;
}

/* Rows are scattered in memory: software prefetch, AHEAD rows before use, LINE floats per cache line. */
enum { AHEAD = 6, LINE = 16 };

static void prefetch(const float *row, int cols)
{
    for (int c = 0; c < cols; c += LINE)
        __builtin_prefetch(row + c, 1);
}

static int entry_count(const adam_job *job, int row)
{
    return job->rows->first[row + 1] - job->rows->first[row];
}

/* Entries of a row that are added up, or the first one. */
static void prefetch_gradients(const adam_job *job, int row, int32_t entries)
{
    if (row >= job->rows->count)
        return;
    for (int32_t i = job->rows->first[row]; i < job->rows->first[row] + entries; i++)
        prefetch(row_gradient(job->adam, &job->adam->tables[0], job->rows->item_index[i]), job->adam->tables[0].cols);
}

static bool is_own(const adam_job *job, int row)
{
    const lp_adam *adam = job->adam;
    return !adam->share || (job->rows->row[row] >= adam->first_item && job->rows->row[row] < adam->end_item);
}

static void prefetch_row(const adam_job *job, int row)
{
    if (row >= job->rows->count || !is_own(job, row))
        return;
    span s = row_span(job, &job->adam->tables[0], row);
    prefetch(s.parameters, (int)s.count);
    prefetch(s.moment1, (int)s.count);
    prefetch(s.moment2, (int)s.count);
}

/* ---------------------------------------------------------------------------------------- sum over shards ---- */

/* PIECE: elements that are added together, so that partial sums stay in the cache. LEVELS: nodes that wait for their neighbour, at most: the
 * heights of the nodes that cover neighbours descend, and 13 bits hold a shard. */
enum { PIECE = 512, LEVELS = 14 };

/* The sum over the tree's leaves so far: nodes from left to right, each of which waits for its right neighbour. Node k is a leaf, which is
 * not written, or a sum in total (k = 0) or sums[k]. */
typedef struct tree {
    const lp_cpu_adam *kernels;
    size_t count;
    int nodes;
    uint32_t shard[LEVELS];
    const float *node[LEVELS];
    float *total;
    float sums[LEVELS][PIECE];
} tree;

static void add_last(tree *t)
{
    int left = t->nodes - 2;
    float *sum = left > 0 ? t->sums[left] : t->total;
    t->kernels->add(t->count, sum, t->node[left], t->node[left + 1]);
    t->node[left] = sum;
    t->nodes--;
}

/* Adds the next leaf; shards ascend. */
static void add_leaf(tree *t, uint32_t shard, const float *leaf)
{
    LP_ASSERT(t->nodes == 0 || t->shard[t->nodes - 1] < shard);
    while (t->nodes > 1 && lp_tree_height(t->shard[t->nodes - 2], t->shard[t->nodes - 1]) <
                               lp_tree_height(t->shard[t->nodes - 1], shard))
        add_last(t);
    LP_ASSERT(t->nodes < LEVELS);
    t->shard[t->nodes] = shard;
    t->node[t->nodes++] = leaf;
}

static void finish_tree(tree *t)
{
    while (t->nodes > 1)
        add_last(t);
    t->nodes = 0;
}

static void reduce_dense(const adam_job *job, tree *t, int chunk)
{
    const lp_adam *adam = job->adam;
    size_t dense = adam->size - adam->table_size;
    span s = dense_span(job, chunk);
    for (size_t i = 0; i < s.count; i += PIECE) {
        t->count = s.count - i < PIECE ? s.count - i : PIECE;
        t->total = s.gradients + (size_t)adam->first_shard * dense + i;
        for (int shard = adam->first_shard; shard < job->end_shard; shard++)
            add_leaf(t, (uint32_t)shard, s.gradients + (size_t)shard * dense + i);
        finish_tree(t);
    }
}

static void reduce_row(const adam_job *job, tree *t, const lp_table *table, int row)
{
    const lp_adam *adam = job->adam;
    const int32_t *index = job->rows->item_index + job->rows->first[row];
    int entries = entry_count(job, row);
    while (entries > 0 && *index / adam->item_capacity < adam->first_shard)
        index++, entries--;
    while (entries > 0 && index[entries - 1] / adam->item_capacity >= job->end_shard)
        entries--;
    if (entries < 2)
        return;
    for (int c = 0; c < table->cols; c += PIECE) {
        t->count = (size_t)(table->cols - c < PIECE ? table->cols - c : PIECE);
        t->total = row_gradient(adam, table, index[0]) + c;
        for (int i = 0; i < entries; i++)
            add_leaf(t, (uint32_t)(index[i] / adam->item_capacity), row_gradient(adam, table, index[i]) + c);
        finish_tree(t);
    }
}

static void reduce_task(void *context, int task, int worker)
{
    (void)worker;
    const adam_job *job = context;
    tree t;
    t.kernels = job->kernels;
    t.nodes = 0;
    if (task < job->chunks) {
        reduce_dense(job, &t, task);
        return;
    }
    int begin = (task - job->chunks) * ROWS, end = begin + ROWS;
    for (int row = begin; row < end && row < job->rows->count; row++) {
        if (row + AHEAD < job->rows->count && entry_count(job, row + AHEAD) > 1)
            prefetch_gradients(job, row + AHEAD, entry_count(job, row + AHEAD));
        for (int i = 0; entry_count(job, row) > 1 && i < job->adam->table_count; i++)
            reduce_row(job, &t, &job->adam->tables[i], row);
    }
}

/* ------------------------------------------------------------------------------------------------- the step -- */

/* Stores the squared norms of own rows, where tables are divided. */
static void row_norms_task(void *context, int task, int worker)
{
    (void)worker;
    const adam_job *job = context;
    const lp_adam *adam = job->adam;
    for (int row = task * ROWS; row < (task + 1) * ROWS && row < job->rows->count; row++)
        for (int t = 0; is_own(job, row) && t < adam->table_count; t++) {
            span s = row_span(job, &adam->tables[t], row);
            adam->row_norms[row * adam->table_count + t] = add_l2_and_norm(job->kernels, &s, (float)adam->l2);
        }
}

/* Stores the squared norm of the sums of a task. */
static void norm_task(void *context, int task, int worker)
{
    (void)worker;
    const adam_job *job = context;
    const lp_adam *adam = job->adam;
    double norm = 0;
    if (task < job->chunks) {
        span s = dense_span(job, task);
        norm = add_l2_and_norm(job->kernels, &s, (float)adam->l2);
    }
    int begin = (task - job->chunks) * ROWS, end = begin + ROWS;
    for (int row = begin; task >= job->chunks && row < end && row < job->rows->count; row++) {
        prefetch_gradients(job, row + AHEAD, 1);
        for (int t = 0; t < adam->table_count; t++) {
            span s = row_span(job, &adam->tables[t], row);
            norm += adam->row_norms ? adam->row_norms[row * adam->table_count + t]
                                    : add_l2_and_norm(job->kernels, &s, (float)adam->l2);
        }
    }
    adam->norms[task] = norm;
}

/* Splits a span into runs of one learning rate. */
static void step_span(const adam_job *job, const span *s)
{
    for (size_t i = 0; i < s->count;) {
        float rate = s->rates ? s->rates[i / LP_PARAMETER_ALIGN] : s->rate;
        size_t end = s->rates ? i + LP_PARAMETER_ALIGN : s->count;
        while (end < s->count && s->rates[end / LP_PARAMETER_ALIGN] == rate)
            end += LP_PARAMETER_ALIGN;
        end = end < s->count ? end : s->count;
        job->kernels->step(end - i, &job->factors, job->factors.rate * rate, s->parameters + i, s->moment1 + i,
                           s->moment2 + i, s->gradients + i);
        i = end;
    }
}

static void shrink_row(const span *s)
{
    float squares = 0;
    for (size_t i = 0; i < s->count; i++)
        squares += s->parameters[i] * s->parameters[i];
    float factor = lp_unit_ball_factor(squares);
    for (size_t i = 0; factor < 1 && i < s->count; i++)
        s->parameters[i] *= factor;
}

static void step_task(void *context, int task, int worker)
{
    (void)worker;
    const adam_job *job = context;
    if (task < job->chunks) {
        span s = dense_span(job, task);
        step_span(job, &s);
    }
    int begin = (task - job->chunks) * ROWS, end = begin + ROWS;
    for (int row = begin; task >= job->chunks && row < begin + AHEAD; row++)
        prefetch_row(job, row);
    for (int row = begin; task >= job->chunks && row < end && row < job->rows->count; row++) {
        prefetch_row(job, row + AHEAD);
        for (int t = 0; is_own(job, row) && t < job->adam->table_count; t++) {
            span s = row_span(job, &job->adam->tables[t], row);
            step_span(job, &s);
            if (job->adam->tables[t].unit_ball)
                shrink_row(&s);
        }
    }
}

typedef struct node_job {
    size_t count;
    int nodes;
    const uint32_t *shard;
    const float *const *node;
    float *sum;
} node_job;

static void add_nodes_task(void *context, int task, int worker)
{
    (void)worker;
    const node_job *job = context;
    tree t;
    t.kernels = lp_cpu_adam_kernels();
    t.nodes = 0;
    size_t begin = (size_t)task * CHUNK, end = begin + CHUNK < job->count ? begin + CHUNK : job->count;
    for (size_t i = begin; i < end; i += PIECE) {
        t.count = end - i < PIECE ? end - i : PIECE;
        t.total = job->sum + i;
        for (int n = 0; n < job->nodes; n++)
            add_leaf(&t, job->shard[n], job->node[n] + i);
        if (t.nodes == 1)
            memcpy(t.total, t.node[0], t.count * sizeof *t.total);
        finish_tree(&t);
    }
}

void lp_cpu_add_nodes(int threads, size_t count, int nodes, const uint32_t *shard, const float *const *node, float *sum)
{
    node_job job = {count, nodes, shard, node, sum};
    lp_threads_run(threads, (int)((count + CHUNK - 1) / CHUNK), add_nodes_task, &job);
}

static adam_job job_of(const lp_adam *adam, const lp_row_union *rows, float *parameters)
{
    size_t dense = adam->size - adam->table_size;
    return (adam_job){.adam = adam,
                      .rows = rows,
                      .parameters = parameters,
                      .kernels = lp_cpu_adam_kernels(),
                      .end_shard = adam->end_shard ? adam->end_shard : adam->shards,
                      .chunks = (int)((dense + CHUNK - 1) / CHUNK)};
}

static int task_count(const adam_job *job)
{
    return job->chunks + (job->rows ? (job->rows->count + ROWS - 1) / ROWS : 0);
}

void lp_cpu_reduce(const lp_adam *adam, const lp_row_union *rows)
{
    adam_job job = job_of(adam, rows, NULL);
    if (job.end_shard - adam->first_shard > 1)
        lp_threads_run(adam->threads, task_count(&job), reduce_task, &job);
}

void lp_cpu_adam_step(const lp_adam *adam, uint64_t step, const lp_row_union *rows, float *parameters)
{
    adam_job job = job_of(adam, rows, parameters);
    int tasks = task_count(&job);
    if (rows && adam->share) {
        lp_threads_run(adam->threads, (rows->count + ROWS - 1) / ROWS, row_norms_task, &job);
        adam->share(adam->share_context);
    }
    lp_threads_run(adam->threads, tasks, norm_task, &job);
    double norm = 0;
    for (int task = 0; task < tasks; task++)
        norm += adam->norms[task];
    norm = sqrt(norm);
    job.factors = lp_adam_factors_of(adam, step);
    if (adam->clip > 0 && norm > adam->clip)
        job.factors.scale = (float)(adam->clip / norm);
    lp_threads_run(adam->threads, tasks, step_task, &job);
}
