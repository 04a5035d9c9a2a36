/* bench_check.c: compares the gradients of a training step with the reference kernels in double. */
#include "bench/bench_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Small: the reference kernels in double, on one thread, take about a second for a GFLOP. */
enum { SEQUENCES = 12, FEWEST_SEQUENCES = 2, ITEMS = 300 };
static const double MOST_FLOP = 3e9;

double lp_bench_tolerance(lp_precision precision)
{
    return precision == LP_PRECISION_FP32 ? 1e-4 : precision == LP_PRECISION_TF32 ? 5e-2 : 2e-1;
}

/* The same step on the reference backend in double. Buffers are owned. */
typedef struct reference {
    const lp_backend *backend;
    lp_plan plan;
    char *work, *scratch;
    double *parameters, *gradients, *row_gradients;
    double *logq, *gap; /* inputs that are real */
} reference;

static void reference_clear(reference *r)
{
    lp_free(r->work);
    lp_free(r->scratch);
    lp_free(r->parameters);
    lp_free(r->gradients);
    lp_free(r->row_gradients);
    lp_free(r->logq);
    lp_free(r->gap);
}

/* Elements of the row gradients of a shard. */
static size_t rows_size(const lp_trainer *trainer)
{
    return (size_t)trainer->batch.item_capacity * (size_t)trainer->adam.table_cols;
}

/* Elements of the gaps of a shard; 0 where the network does not read them. */
static size_t gap_size(const lp_batch *batch)
{
    return batch->gap ? (size_t)lp_batch_shard_tokens(batch) * LP_GAP_COLUMNS : 0;
}

static lapse_status reference_init(reference *r, const lp_trainer *trainer, lapse_error *error)
{
    const lp_adam *adam = &trainer->adam;
    *r = (reference){.backend = lp_backend_find("reference-double")};
    r->parameters = lp_alloc(adam->size, sizeof(double));
    r->gradients = lp_alloc(adam->size - adam->table_size, sizeof(double));
    r->row_gradients = lp_alloc(rows_size(trainer), sizeof(double));
    r->logq = lp_alloc((size_t)trainer->batch.item_capacity, sizeof(double));
    r->gap = lp_alloc(gap_size(&trainer->batch), sizeof(double));
    if (!r->parameters || !r->gradients || !r->row_gradients || !r->logq || !r->gap)
        return lp_fail_memory(error, "a step in double", adam->size * sizeof(double));
    for (size_t i = 0; i < adam->size; i++)
        r->parameters[i] = (double)trainer->model->parameters[i];
    return LAPSE_OK;
}

/* A sampled encoding samples its frequencies in the step, which leaves them in the device's parameters. */
static lapse_status copy_samples(reference *r, const lp_trainer *trainer, lapse_error *error)
{
    const lp_sampler *sampler = &trainer->sampler;
    size_t count = (size_t)sampler->count;
    float *samples = lp_alloc(count, sizeof *samples);
    if (!samples)
        return lp_fail_memory(error, "a step in double", count * sizeof *samples);
    if (sampler->backend)
        trainer->backend->copy_to_host(trainer->backend->context, samples, trainer->parameters + sampler->sample_offset,
                                       count * sizeof *samples);
    for (size_t i = 0; i < count; i++)
        r->parameters[sampler->sample_offset + i] = (double)samples[i];
    lp_free(samples);
    return LAPSE_OK;
}

/* Runs the batch of the trainer's first step. Planning changes the offsets of the graph's values, so the trainer cannot
 * run afterwards. */
static lapse_status reference_run(reference *r, lp_trainer *trainer, lapse_error *error)
{
    const lp_batch *batch = &trainer->batch;
    lp_extent largest = trainer->runner.plan.largest;
    LP_TRY(lp_plan_make(&r->plan, &trainer->network.graph, &largest, r->backend->real_size, error));
    r->work = lp_alloc(r->plan.work_size, 1);
    r->scratch = lp_alloc(r->plan.scratch_size, 1);
    if (!r->work || !r->scratch)
        return lp_fail_memory(error, "a step in double", r->plan.work_size + r->plan.scratch_size);
    double seed_value = (double)lp_trainer_loss_gradient(trainer), time_share = (double)batch->time_share;
    int32_t sample = 0;
    void *inputs[LP_FEED_LIMIT] = {[LP_FEED_SEED] = &seed_value, [LP_FEED_FREQUENCY_SAMPLE] = &sample};
    lp_runner_feed(batch, 0, inputs);
    for (int i = 0; i < batch->item_capacity; i++)
        r->logq[i] = (double)batch->logq[i];
    for (size_t i = 0; i < gap_size(batch); i++)
        r->gap[i] = (double)batch->gap[i];
    inputs[LP_FEED_LOGQ] = r->logq;
    inputs[LP_FEED_GAP] = r->gap;
    inputs[LP_FEED_TIME_SHARE] = &time_share;
    lp_run run = lp_runner_shard(batch, 0);
    run.plan = &r->plan;
    run.work = r->work;
    run.scratch = r->scratch;
    run.inputs = inputs;
    run.parameters = r->parameters;
    run.gradients = r->gradients;
    run.row_gradients = r->row_gradients;
    run.seed = trainer->options.run.seed;
    r->backend->run(r->backend->context, &run);
    return LAPSE_OK;
}

/* The gradient of a parameter: got and expected, for the rows of the batch where it is a table. */
typedef struct gradient {
    const char *name;
    const float *got;
    const double *expected;
    size_t count;
} gradient;

static double root_mean_square(const gradient *one, bool of_error)
{
    double sum = 0;
    for (size_t i = 0; i < one->count; i++) {
        double x = one->expected[i] - (of_error ? (double)one->got[i] : 0);
        sum += x * x;
    }
    return one->count ? sqrt(sum / (double)one->count) : 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static gradient gradient_of(const reference *r, const lp_trainer *trainer, int index, const float *gradients,
                            const float *rows)
{
    const lp_graph *graph = &trainer->network.graph;
    const lp_value *value = graph->parameters[index].value;
    size_t capacity = (size_t)trainer->batch.item_capacity, offset = 0, cols = (size_t)value->cols;
    if (trainer->sampler.backend && strcmp(value->name, LP_LOG_PERIOD) == 0) /* the step's sample, as it was fed back */
        return (gradient){value->name, trainer->sampler.seed,
                          r->gradients + trainer->sampler.sample_offset - graph->table_size,
                          (size_t)trainer->sampler.count};
    if (!graph->parameters[index].table) {
        offset = value->offset - graph->table_size;
        return (gradient){value->name, gradients + offset, r->gradients + offset, (size_t)value->rows * cols};
    }
    for (int i = 0; i < index; i++)
        offset += graph->parameters[i].table ? (size_t)graph->parameters[i].value->cols * capacity : 0;
    size_t listed = capacity ? (size_t)trainer->batch.shard_items[0] : 0;
    return (gradient){value->name, rows + offset, r->row_gradients + offset, listed * cols};
}

/* Whether the parameter is the sampler's, which runs on the host: its gradient is none of the network's. */
static bool of_sampler(const lp_trainer *trainer, int index)
{
    const lp_graph *graph = &trainer->sampler.step.graph;
    bool found = false;
    for (int i = 0; trainer->sampler.backend && i < graph->parameter_count; i++)
        found = found || strcmp(graph->parameters[i].value->name,
                                trainer->network.graph.parameters[index].value->name) == 0;
    return found;
}

/* The maximum over all parameters of the root mean square of the error, relative to that of the gradient; *name is the
 * parameter's. A mean, because a single token whose hidden unit is rounded to the other side of relu's 0 changes single
 * elements by much. The scale is at least a fraction of the median parameter's: the gradient of a key bias is a sum of
 * terms that cancel, and consists of rounding errors. The gradient of the periods adds the errors of all phases times their
 * distance in time (docs/cuda.md): on tensor cores its error may be five times as large, and is divided by that. sizes
 * [parameters] is scratch. Infinite where a gradient is not finite. */
static double compare(const reference *r, const lp_trainer *trainer, const float *gradients, const float *rows,
                      double *sizes, const char **name)
{
    int all = trainer->network.graph.parameter_count, count = 0;
    double worst = -1;
    for (int i = 0; i < all; i++) {
        gradient one = gradient_of(r, trainer, i, gradients, rows);
        if (!of_sampler(trainer, i))
            sizes[count++] = root_mean_square(&one, false);
    }
    qsort(sizes, (size_t)count, sizeof *sizes, by_size);
    double least = fmax(0.1 * sizes[count / 2], 1e-30);
    for (int i = 0; i < all; i++) {
        if (of_sampler(trainer, i))
            continue;
        gradient one = gradient_of(r, trainer, i, gradients, rows);
        double error = root_mean_square(&one, true) / fmax(root_mean_square(&one, false), least);
        if (trainer->runner.precision != LP_PRECISION_FP32 && strcmp(one.name, LP_LOG_PERIOD) == 0)
            error /= 5;
        error = isfinite(error) ? error : INFINITY;
        if (error > worst) {
            worst = error;
            *name = one.name;
        }
    }
    return worst;
}

lapse_status lp_bench_check_step(lp_trainer *trainer, double *worst, lapse_error *error)
{
    const lp_adam *adam = &trainer->adam;
    size_t dense = adam->size - adam->table_size;
    reference r;
    float *gradients = lp_alloc(dense, sizeof *gradients), *rows = lp_alloc(rows_size(trainer), sizeof *rows);
    double *sizes = lp_alloc((size_t)trainer->network.graph.parameter_count + 1, sizeof *sizes);
    lapse_status status = reference_init(&r, trainer, error);
    if (status == LAPSE_OK && (!gradients || !rows || !sizes))
        status = lp_fail_memory(error, "a step in double", dense * sizeof *gradients);
    if (status == LAPSE_OK)
        status = lp_trainer_epoch(trainer, error);
    if (status == LAPSE_OK) {
        lp_trainer_step(trainer);
        trainer->backend->copy_to_host(trainer->backend->context, gradients, adam->gradients,
                                       dense * sizeof *gradients);
        if (rows_size(trainer))
            trainer->backend->copy_to_host(trainer->backend->context, rows, adam->row_gradients,
                                           rows_size(trainer) * sizeof *rows);
        status = lp_backend_check(trainer->backend, error);
    }
    if (status == LAPSE_OK)
        status = copy_samples(&r, trainer, error);
    if (status == LAPSE_OK)
        status = reference_run(&r, trainer, error);
    if (status == LAPSE_OK) {
        const char *name = "";
        *worst = compare(&r, trainer, gradients, rows, sizes, &name);
        double allowed = lp_bench_tolerance(trainer->runner.precision);
        if (!(*worst < allowed))
            status = lp_fail(error, LAPSE_ERROR_INTERNAL,
                             "the kernels are wrong, so nothing was timed: the gradient of %s is off by %.1e of its "
                             "size, which may be %.0e",
                             name, *worst, allowed);
    }
    reference_clear(&r);
    lp_free(gradients);
    lp_free(rows);
    lp_free(sizes);
    return status;
}

double lp_bench_step_flop(const lp_trainer *trainer)
{
    const lp_graph *graph = &trainer->network.graph;
    double flop = 0;
    for (int i = 0; i < graph->node_count; i++)
        flop += graph->nodes[i]->op->cost(graph->nodes[i], &trainer->runner.plan.largest).flop;
    return flop;
}

/* Checks a step of `sequences` histories, or of fewer where its operations are more than MOST_FLOP. */
static lapse_status check_sequences(const lp_bench_preset *preset, const lapse_bench_options *options,
                                    const lp_backend *backend, int sequences, double *worst, lapse_error *error)
{
    lapse_dataset *dataset;
    lapse_train_options train;
    lp_trainer trainer;
    int64_t items = lp_bench_preset_sizes(preset)->items;
    int fewer = sequences;
    items = items < ITEMS ? items : ITEMS;
    LP_TRY(lp_bench_preset_options(preset, options, &train, error));
    train.run.shards = train.run.threads = 1;
    train.run.batch = sequences;
    train.run.clip = 0;
    LP_TRY(lp_bench_data(preset, sequences, items, options->seed, &dataset, error));
    lapse_status status = lp_trainer_init(&trainer, dataset, &train, error);
    if (status == LAPSE_OK) {
        double flop = lp_bench_step_flop(&trainer);
        if (flop > MOST_FLOP && sequences > FEWEST_SEQUENCES)
            fewer = (int)fmax(FEWEST_SEQUENCES, sequences * MOST_FLOP / flop);
        if (backend)
            trainer.runner.backend = backend;
        if (fewer == sequences)
            status = lp_bench_check_step(&trainer, worst, error);
        lp_trainer_clear(&trainer);
    }
    lapse_dataset_close(dataset);
    if (status == LAPSE_OK && fewer < sequences)
        return check_sequences(preset, options, backend, fewer, worst, error);
    return status;
}

lapse_status lp_bench_check(const lp_bench_preset *preset, const lapse_bench_options *options,
                            const lp_backend *backend, double *worst, lapse_error *error)
{
    return check_sequences(preset, options, backend, SEQUENCES, worst, error);
}
