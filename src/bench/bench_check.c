#include "bench/bench_check.h"

#include "train/trainer.h"

#include <math.h>

enum { SEQUENCES = 12, ITEMS = 300 }; /* at most: plain kernels in double are slow */

double lp_bench_tolerance(lp_precision precision)
{
    return precision == LP_PRECISION_FP32 ? 1e-4 : precision == LP_PRECISION_TF32 ? 5e-2 : 2e-1;
}

/* The same step in double. Buffers are owned. */
typedef struct twin {
    const lp_backend *backend;
    lp_plan plan;
    char *work, *scratch;
    double *parameters, *gradients, *row_gradients, *shift;
} twin;

static void twin_clear(twin *t)
{
    lp_free(t->work);
    lp_free(t->scratch);
    lp_free(t->parameters);
    lp_free(t->gradients);
    lp_free(t->row_gradients);
    lp_free(t->shift);
}

/* Elements of a block of row gradients. */
static size_t rows_size(const lp_trainer *trainer)
{
    return (size_t)trainer->batch.item_capacity * (size_t)trainer->adam.table_cols;
}

/* Keeps the parameters as they are before the step. */
static lapse_status twin_init(twin *t, const lp_trainer *trainer, lapse_error *error)
{
    const lp_adam *adam = &trainer->adam;
    *t = (twin){.backend = lp_backend_find("reference-double")};
    t->parameters = lp_alloc(adam->size, sizeof(double));
    t->gradients = lp_alloc(adam->size - adam->table_size, sizeof(double));
    t->row_gradients = lp_alloc(rows_size(trainer), sizeof(double));
    t->shift = lp_alloc((size_t)trainer->batch.item_capacity, sizeof(double));
    if (!t->parameters || !t->gradients || !t->row_gradients || !t->shift)
        return lp_fail_memory(error, "a step in double", adam->size * sizeof(double));
    for (size_t i = 0; i < adam->size; i++)
        t->parameters[i] = (double)trainer->model->parameters[i];
    return LAPSE_OK;
}

/* Takes the batch of the trainer's first step through its network. Planning moves the values of the trainer's own plan: it
 * cannot be used afterwards. */
static lapse_status twin_run(twin *t, lp_trainer *trainer, lapse_error *error)
{
    const lp_batch *batch = &trainer->batch;
    lp_extent largest = trainer->runner.plan.largest;
    LP_TRY(lp_plan_make(&t->plan, &trainer->network.graph, &largest, t->backend->real_size, error));
    t->work = lp_alloc(t->plan.work_size, 1);
    t->scratch = lp_alloc(t->plan.scratch_size, 1);
    if (!t->work || !t->scratch)
        return lp_fail_memory(error, "a step in double", t->plan.work_size + t->plan.scratch_size);
    double seed_value = 1.0 / batch->targets;
    int32_t draw = 0;
    void *inputs[LP_FEED_LIMIT] = {[LP_FEED_SEED] = &seed_value, [LP_FEED_FREQUENCY_SAMPLE] = &draw};
    lp_runner_feed(batch, 0, inputs);
    for (int i = 0; i < batch->item_capacity; i++)
        t->shift[i] = (double)batch->logq[i];
    inputs[LP_FEED_LOGQ] = t->shift;
    inputs[LP_FEED_SEED] = &seed_value;
    lp_run run = lp_runner_shard(batch, 0);
    run.plan = &t->plan;
    run.work = t->work;
    run.scratch = t->scratch;
    run.inputs = inputs;
    run.parameters = t->parameters;
    run.gradients = t->gradients;
    run.row_gradients = t->row_gradients;
    run.seed = trainer->options.run.seed;
    t->backend->run(t->backend->context, &run);
    return LAPSE_OK;
}

/* The largest error among `count` numbers, as a share of the largest that was wanted, or of `least` if that is more. What is
 * not finite is wrong. */
static double error_of(const float *got, const double *wanted, size_t count, double least)
{
    double largest = 0, error = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = fabs(wanted[i] - (double)got[i]);
        largest = fmax(largest, fabs(wanted[i]));
        error = isfinite(difference) ? fmax(error, difference) : INFINITY;
    }
    return error / fmax(largest, least);
}

/* What a gradient is measured by at the least: a share of the largest there is. What is nothing but a difference of large terms,
 * as the gradient of a bias of keys is, comes out as their rounding; tensor cores round every factor. */
static double least_of(const twin *t, const lp_trainer *trainer)
{
    double largest = 1e-5;
    for (size_t i = 0; i < trainer->adam.size - trainer->adam.table_size; i++)
        largest = fmax(largest, fabs(t->gradients[i]));
    return (trainer->runner.precision == LP_PRECISION_FP32 ? 0.01 : 0.1) * largest;
}

/* Compares parameter by parameter; *name is that of the worst. */
static double compare(const twin *t, const lp_trainer *trainer, const float *gradients, const float *rows,
                      const char **name)
{
    const lp_graph *graph = &trainer->network.graph;
    size_t capacity = (size_t)trainer->batch.item_capacity, listed = 0;
    double worst = -1, least = least_of(t, trainer);
    if (capacity)
        listed = (size_t)trainer->batch.shard_items[0];
    for (int i = 0, before = 0; i < graph->parameter_count; i++) {
        const lp_value *value = graph->parameters[i].value;
        size_t place = value->offset - graph->table_size, size = (size_t)value->rows * (size_t)value->cols;
        double error;
        if (graph->parameters[i].table) {
            place = (size_t)before * capacity;
            before += value->cols;
            error = error_of(rows + place, t->row_gradients + place, listed * (size_t)value->cols, least);
        } else {
            error = error_of(gradients + place, t->gradients + place, size, least);
        }
        if (error > worst) {
            worst = error;
            *name = value->name;
        }
    }
    return worst;
}

/* The step, then its twin, then both gradients side by side. */
static lapse_status check(lp_trainer *trainer, double *worst, lapse_error *error)
{
    const lp_adam *adam = &trainer->adam;
    size_t dense = adam->size - adam->table_size;
    twin t;
    float *gradients = lp_alloc(dense, sizeof *gradients), *rows = lp_alloc(rows_size(trainer), sizeof *rows);
    lapse_status status = twin_init(&t, trainer, error);
    if (status == LAPSE_OK && (!gradients || !rows))
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
        status = twin_run(&t, trainer, error);
    }
    if (status == LAPSE_OK) {
        const char *name = "";
        *worst = compare(&t, trainer, gradients, rows, &name);
        double allowed = lp_bench_tolerance(trainer->runner.precision);
        if (!(*worst < allowed))
            status = lp_fail(error, LAPSE_ERROR_INTERNAL,
                             "the kernels are wrong, so nothing was timed: the gradient of %s is off by %.1e of its "
                             "largest element, which may be %.0e",
                             name, *worst, allowed);
    }
    twin_clear(&t);
    lp_free(gradients);
    lp_free(rows);
    return status;
}

lapse_status lp_bench_check(const lp_bench_preset *preset, const lapse_bench_options *options,
                            const lp_backend *backend, double *worst, lapse_error *error)
{
    lapse_dataset *dataset;
    lapse_train_options train;
    lp_trainer trainer;
    int64_t items = lp_bench_preset_sizes(preset)->items;
    items = items < ITEMS ? items : ITEMS;
    LP_TRY(lp_bench_preset_options(preset, &train, error));
    LP_TRY(lapse_train_options_set(&train, "device", options->device, error));
    LP_TRY(lapse_train_options_set(&train, "precision", options->precision, error));
    train.run.seed = options->seed;
    train.run.shards = train.run.threads = 1;
    train.run.batch = SEQUENCES;
    train.run.clip = 0;
    LP_TRY(lp_bench_data(preset, SEQUENCES, items, options->seed, &dataset, error));
    lapse_status status = lp_trainer_init(&trainer, dataset, &train, error);
    if (status == LAPSE_OK) {
        if (backend)
            trainer.runner.backend = backend;
        status = check(&trainer, worst, error);
        lp_trainer_clear(&trainer);
    }
    lapse_dataset_close(dataset);
    return status;
}
