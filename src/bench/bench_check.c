/* bench_check.c: compares the gradients of a training step with the reference kernels in double. */
#include "bench/bench_check.h"

#include "base/random.h"

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
    double *inputs[LP_FEED_LIMIT]; /* those that are real, by slot */
} reference;

static void reference_clear(reference *r)
{
    lp_free(r->work);
    lp_free(r->scratch);
    lp_free(r->parameters);
    lp_free(r->gradients);
    lp_free(r->row_gradients);
    for (int slot = 0; slot < LP_FEED_LIMIT; slot++)
        lp_free(r->inputs[slot]);
}

/* Elements of the row gradients of a shard. */
static size_t rows_size(const lp_trainer *trainer)
{
    return (size_t)trainer->batch.item_capacity * (size_t)trainer->adam.table_cols;
}

static lapse_status reference_init(reference *r, const lp_trainer *trainer, lapse_error *error)
{
    const lp_adam *adam = &trainer->adam;
    *r = (reference){.backend = lp_backend_find("reference-double")};
    r->parameters = lp_alloc(adam->size, sizeof(double));
    r->gradients = lp_alloc(adam->size - adam->table_size, sizeof(double));
    r->row_gradients = lp_alloc(rows_size(trainer), sizeof(double));
    if (!r->parameters || !r->gradients || !r->row_gradients)
        return lp_fail_memory(error, "a step in double", adam->size * sizeof(double));
    for (size_t i = 0; i < adam->size; i++)
        r->parameters[i] = (double)trainer->trained->parameters[i];
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

/* Planning changes the offsets of the graph's values, so the trainer cannot run afterwards. */
static lapse_status reference_plan(reference *r, lp_trainer *trainer, lapse_error *error)
{
    lp_extent largest = trainer->runner.plan.largest;
    LP_TRY(lp_plan_make(&r->plan, &trainer->network.graph, &largest, r->backend->real_size, error));
    r->work = lp_alloc(r->plan.work_size, 1);
    r->scratch = lp_alloc(r->plan.scratch_size, 1);
    if (!r->work || !r->scratch)
        return lp_fail_memory(error, "a step in double", r->plan.work_size + r->plan.scratch_size);
    return LAPSE_OK;
}

/* Whether the trainer's batch has the value in float, and the reference reads it in double. */
static bool is_real_input(const lp_value *value)
{
    return value->storage == LP_STORAGE_INPUT && value->type == LP_TYPE_REAL && value->slot != LP_FEED_SEED;
}

/* Copies the inputs of the trainer's first step. */
static lapse_status reference_inputs(reference *r, const lp_trainer *trainer, lapse_error *error)
{
    const lp_graph *graph = &trainer->network.graph;
    lp_run run = lp_runner_shard(&trainer->batch, 0);
    void *inputs[LP_FEED_LIMIT] = {NULL};
    lp_feeds_of_batch(&trainer->batch, 0, inputs);
    for (int v = 0; v < graph->value_count; v++) {
        const lp_value *value = graph->values[v];
        const float *from = is_real_input(value) ? inputs[value->slot] : NULL;
        if (!from)
            continue;
        size_t count = (size_t)lp_run_rows(&run, value) * (size_t)value->cols;
        double *to = r->inputs[value->slot] = lp_alloc(count, sizeof *to);
        if (!to)
            return lp_fail_memory(error, "a step in double", count * sizeof *to);
        for (size_t i = 0; i < count; i++)
            to[i] = (double)from[i];
    }
    return LAPSE_OK;
}

/* The gradient of a layer norm is a difference, which is 0 where rows have two columns, and kernels leave rounding errors of fp32. */
static void add_norm_noise(const lp_run *run, const lp_node *node, lp_random *random)
{
    const lp_value *value = node->outputs[0];
    double *data = value ? lp_run_data(run, value) : NULL;
    const double *gain = lp_run_data(run, node->inputs[1]), *moments = lp_run_data(run, node->inputs[2]),
                 *dy = lp_run_data(run, node->inputs[3]);
    for (size_t i = 0; value && i < lp_run_size(run, value); i++) {
        size_t row = i / (size_t)value->cols, col = i % (size_t)value->cols;
        data[i] += 0x1p-23 * (2 * lp_random_uniform(random) - 1) * dy[i] * gain[col] * moments[2 * row + 1];
    }
}

/* The gradient of an item's bias is a sum over rows whose terms cancel: the item is the target in some. */
static void add_bias_noise(const lp_run *run, const lp_node *node, double unit, lp_random *random)
{
    const lp_value *bias = node->outputs[2], *target = node->inputs[4];
    const double *dloss = lp_run_data(run, node->inputs[6]);
    const int32_t *targets = lp_run_data(run, target);
    double *data = bias ? lp_run_data(run, bias) : NULL;
    for (int row = 0; data && row < lp_run_rows(run, target); row++)
        data[targets[row]] += unit * (2 * lp_random_uniform(random) - 1) * dloss[0];
}

/* A product and its bias may cancel, after rounding in floats. */
static void add_linear_noise(const lp_run *run, const lp_node *node, lp_random *random)
{
    const lp_value *value = node->outputs[0];
    const double *bias = node->inputs[2] ? lp_run_data(run, node->inputs[2]) : NULL;
    double *data = lp_run_data(run, value);
    for (size_t i = 0; bias && i < lp_run_size(run, value); i++)
        data[i] += 0x1p-24 * (2 * lp_random_uniform(random) - 1) * bias[i % (size_t)value->cols];
}

/* Changes what the node has written, each number by at most `unit` of it: not moments and sums of exponentials, which all kernels
 * compute in floats. */
static void add_noise(const lp_run *run, const lp_node *node, double unit, lp_random *random)
{
    if (node->op->id == LP_OP_MAX_ROWS) /* rounds nothing; the gradient finds the row by its equal value */
        return;
    if (node->op->id == LP_OP_LAYER_NORM_GRADIENT)
        add_norm_noise(run, node, random);
    if (node->op->id == LP_OP_LINEAR)
        add_linear_noise(run, node, random);
    if (node->op->id == LP_OP_SOFTMAX_LOSS_GRADIENT)
        add_bias_noise(run, node, unit, random);
    for (int k = 0; k < node->op->output_count; k++) {
        const lp_value *value = node->outputs[k];
        if (k == 1 || !value || value->type != LP_TYPE_REAL)
            continue;
        double *data = lp_run_data(run, value);
        for (size_t i = 0; i < lp_run_size(run, value); i++)
            data[i] *= 1 + unit * (2 * lp_random_uniform(random) - 1);
    }
}

/* Runs the trainer's first step. unit: of noise that is added after every node; 0: none. */
static void reference_run(reference *r, const lp_trainer *trainer, double unit, uint32_t round)
{
    double seed_value = (double)lp_trainer_loss_gradient(trainer);
    int32_t sample = 0;
    void *inputs[LP_FEED_LIMIT] = {NULL};
    lp_feeds_of_batch(&trainer->batch, 0, inputs);
    for (int slot = 0; slot < LP_FEED_LIMIT; slot++)
        inputs[slot] = r->inputs[slot] ? r->inputs[slot] : inputs[slot];
    inputs[LP_FEED_SEED] = &seed_value;
    inputs[LP_FEED_FREQUENCY_SAMPLE] = &sample;
    lp_run run = lp_runner_shard(&trainer->batch, 0);
    run.plan = &r->plan;
    run.work = r->work;
    run.scratch = r->scratch;
    run.inputs = inputs;
    run.parameters = r->parameters;
    run.gradients = r->gradients;
    run.row_gradients = r->row_gradients;
    run.seed = trainer->options.run.seed;
    lp_random random = lp_random_start(run.seed, LP_PURPOSE_BENCH, round + 1);
    const lp_graph *graph = &trainer->network.graph;
    for (int i = 0; i < graph->node_count; i++) {
        run.first_node = i;
        run.end_node = i + 1;
        r->backend->run(r->backend->context, &run);
        if (unit > 0)
            add_noise(&run, graph->nodes[i], unit, &random);
    }
}

/* The gradient of a parameter: got (NULL: not known) and expected, for the rows of the batch where it is a table. */
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

/* A step as the kernels computed it. Buffers are owned. */
typedef struct result {
    float *gradients, *rows; /* dense, and by row of the batch's items */
    double *sizes;           /* [parameters]: scratch */
    double *changes;         /* [parameters]: of a gradient by rounding (rounding_changes) */
} result;

static gradient gradient_of(const reference *r, const lp_trainer *trainer, int index, const result *got)
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
        return (gradient){value->name, got->gradients + offset, r->gradients + offset, (size_t)value->rows * cols};
    }
    for (int i = 0; i < index; i++)
        offset += graph->parameters[i].table ? (size_t)graph->parameters[i].value->cols * capacity : 0;
    size_t listed = capacity ? (size_t)trainer->batch.shard_items[0] : 0;
    return (gradient){value->name, got->rows + offset, r->row_gradients + offset, listed * cols};
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

/* Rounds to nearest numbers whose last digit is `unit` of the first. */
static void round_to(double *data, size_t count, double unit)
{
    for (size_t i = 0; i < count; i++) {
        int exponent;
        double digits = frexp(data[i], &exponent);
        data[i] = ldexp(rint(digits / unit) * unit, exponent);
    }
}

/* Products round their operands: weights, tables, and inputs of the network. Hidden units may then lie on the other side of relu's 0. */
static void round_operands(reference *r, const lp_trainer *trainer, double unit)
{
    const lp_graph *graph = &trainer->network.graph;
    lp_run run = lp_runner_shard(&trainer->batch, 0);
    for (int i = 0; i < graph->parameter_count; i++) {
        const lp_value *value = graph->parameters[i].value;
        if (value->rows > 1 && value->cols > 1)
            round_to(r->parameters + value->offset, (size_t)value->rows * (size_t)value->cols, unit);
    }
    for (int i = 0; i < graph->node_count; i++) {
        const lp_value *value = graph->nodes[i]->inputs[0];
        if (graph->nodes[i]->op->id == LP_OP_LINEAR && value->storage == LP_STORAGE_INPUT)
            round_to(r->inputs[value->slot], (size_t)lp_run_rows(&run, value) * (size_t)value->cols, unit);
    }
}

/* Fills got->changes: how much a gradient changes at most, in the root mean square, where the precision rounds every result and
 * every weight. */
static lapse_status rounding_changes(reference *r, const lp_trainer *trainer, const result *got, lapse_error *error)
{
    static const double units[] = {
        [LP_PRECISION_FP32] = 0x1p-24, [LP_PRECISION_TF32] = 0x1p-11, [LP_PRECISION_BF16] = 0x1p-8};
    enum { ROUNDS = 4 };
    const lp_adam *adam = &trainer->adam;
    size_t dense = adam->size - adam->table_size, of_rows = rows_size(trainer);
    double unit = units[trainer->runner.precision];
    reference noisy = *r;
    noisy.gradients = lp_alloc(dense, sizeof(double));
    noisy.row_gradients = lp_alloc(of_rows, sizeof(double));
    bool good = noisy.gradients && noisy.row_gradients;
    round_operands(r, trainer, unit);
    for (uint32_t round = 0; good && round < ROUNDS; round++) {
        memset(noisy.gradients, 0, dense * sizeof(double));
        memset(noisy.row_gradients, 0, of_rows * sizeof(double));
        reference_run(&noisy, trainer, unit, round);
        for (int i = 0; i < trainer->network.graph.parameter_count; i++) {
            gradient one = gradient_of(r, trainer, i, got), two = gradient_of(&noisy, trainer, i, got);
            double sum = 0;
            for (size_t k = 0; k < one.count; k++)
                sum += (one.expected[k] - two.expected[k]) * (one.expected[k] - two.expected[k]);
            got->changes[i] = fmax(got->changes[i], one.count ? sqrt(sum / (double)one.count) : 0);
        }
    }
    lp_free(noisy.gradients);
    lp_free(noisy.row_gradients);
    return good ? LAPSE_OK : lp_fail_memory(error, "a step in double", dense * sizeof(double));
}

/* The maximum over all parameters of the root mean square of the error, relative to that of the gradient; *name is the
 * parameter's. A mean, because a single token whose hidden unit is rounded to the other side of relu's 0 changes single
 * elements by much. The scale is at least a fraction of the median parameter's: the gradient of a key bias is a sum of
 * terms that cancel, and consists of rounding errors; all do where every target is the only item. It is also larger where rounding changes the gradient by more. The
 * gradient of the periods adds the errors of all phases times their distance in time (docs/cuda.md): on tensor cores its error may be
 * five times as large, and is divided by that. Infinite where a gradient is not finite. */
static double compare(const reference *r, const lp_trainer *trainer, const result *got, double allowed,
                      const char **name)
{
    enum { ROUNDINGS = 8 }; /* kernels round in more places, and some fp32 functions by several units */
    int all = trainer->network.graph.parameter_count, count = 0;
    double worst = -1;
    for (int i = 0; i < all; i++) {
        gradient one = gradient_of(r, trainer, i, got);
        if (!of_sampler(trainer, i))
            got->sizes[count++] = root_mean_square(&one, false);
    }
    qsort(got->sizes, (size_t)count, sizeof *got->sizes, by_size);
    double least = fmax(0.1 * got->sizes[count / 2], 1e-5 * fabs((double)lp_trainer_loss_gradient(trainer)));
    for (int i = 0; i < all; i++) {
        if (of_sampler(trainer, i))
            continue;
        gradient one = gradient_of(r, trainer, i, got);
        double scale = fmax(fmax(root_mean_square(&one, false), least), ROUNDINGS * got->changes[i] / allowed);
        double error = root_mean_square(&one, true) / scale;
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

/* Runs the first step. */
static lapse_status run_step(lp_trainer *trainer, result *got, lapse_error *error)
{
    const lp_backend *backend = trainer->backend;
    const lp_adam *adam = &trainer->adam;
    size_t dense = adam->size - adam->table_size, of_rows = rows_size(trainer);
    size_t parameters = (size_t)trainer->network.graph.parameter_count + 1;
    *got = (result){.gradients = lp_alloc(dense, sizeof(float)),
                    .rows = lp_alloc(of_rows, sizeof(float)),
                    .sizes = lp_alloc(parameters, sizeof(double)),
                    .changes = lp_alloc(parameters, sizeof(double))};
    if (!got->gradients || !got->rows || !got->sizes || !got->changes)
        return lp_fail_memory(error, "the gradients of a step", dense * sizeof(float));
    LP_TRY(lp_trainer_epoch(trainer, error));
    lp_trainer_step(trainer);
    backend->copy_to_host(backend->context, got->gradients, adam->gradients, dense * sizeof(float));
    if (of_rows)
        backend->copy_to_host(backend->context, got->rows, adam->row_gradients, of_rows * sizeof(float));
    return lp_backend_check(backend, error);
}

lapse_status lp_bench_check_step(lp_trainer *trainer, double *worst, lapse_error *error)
{
    double allowed = lp_bench_tolerance(trainer->runner.precision);
    const char *name = "";
    reference r;
    result got = {0};
    lapse_status status = reference_init(&r, trainer, error);
    if (status == LAPSE_OK)
        status = run_step(trainer, &got, error);
    if (status == LAPSE_OK)
        status = copy_samples(&r, trainer, error);
    if (status == LAPSE_OK)
        status = reference_inputs(&r, trainer, error);
    if (status == LAPSE_OK)
        status = reference_plan(&r, trainer, error);
    if (status == LAPSE_OK) {
        reference_run(&r, trainer, 0, 0);
        *worst = compare(&r, trainer, &got, allowed, &name);
        if (!(*worst < allowed) && isfinite(*worst))
            status = rounding_changes(&r, trainer, &got, error);
    }
    if (status == LAPSE_OK && !(*worst < allowed)) {
        *worst = compare(&r, trainer, &got, allowed, &name);
        if (!(*worst < allowed))
            status = lp_fail(error, LAPSE_ERROR_INTERNAL,
                             "the kernels are wrong, so nothing was timed: the gradient of %s is off by %.1e of its "
                             "size, which may be %.0e",
                             name, *worst, allowed);
    }
    reference_clear(&r);
    lp_free(got.gradients);
    lp_free(got.rows);
    lp_free(got.sizes);
    lp_free(got.changes);
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
