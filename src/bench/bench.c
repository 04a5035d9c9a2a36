/* bench.c: lapse_bench: verifies the kernels, times whole steps, then profiles every node (on a GPU every launch) of
 * one batch that is repeated. Steps are timed without the profiler, because it slows them. */
#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/threads.h"
#include "bench/bench_check.h"
#include "bench/bench_launches.h"
#include "bench/bench_machine.h"
#include "train/train_options.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_ROUNDS = 2, MAX_ROUNDS = 100000 };

/* Parts of a round outside the graph. */
enum { PART_FILL, PART_VOCABULARY, PART_UNION, PART_ADAM, PART_RANK, PART_REST, PARTS };
static const char *const part_names[PARTS] = {
    [PART_FILL] = "(batch)",      [PART_VOCABULARY] = "(batch vocabulary)",
    [PART_UNION] = "(row union)", [PART_ADAM] = "(adam)",
    [PART_RANK] = "(ranking)",    [PART_REST] = "(waiting)",
};

typedef struct bench {
    const lp_bench_preset *preset;
    lapse_bench_options options; /* resolved */
    bool train;
    bool unsynced; /* do not sync after each step */
    lapse_dataset *dataset;
    lp_trainer trainer;
    lp_step_times step_times;
    const lp_runner *runner; /* of training or of evaluation; graph is its graph */
    const lp_graph *graph;
    int shards;                 /* of the runner's batches */
    lp_bench_launches launches; /* of a device */
    lp_profiler profiler;       /* records launches */
    int64_t *times, *min_times; /* [shards x (nodes + 1)]: nanoseconds on the host: of the newest round; minimum */
    double part_seconds[PARTS]; /* summed over threads; minimum over the rounds */
    lp_cost part_costs[PARTS];
    lp_cost *costs; /* [nodes]: per round */
    int64_t *calls; /* [nodes] */
    double *steps;  /* [rounds]: seconds */
    lapse_bench_report *report;
} bench;

/* ------------------------------------------------------------------------------------------------- rounds ----- */

/* Steps are full batches only. */
static lapse_status check_batch(int batch, int64_t windows, lapse_error *error)
{
    if (batch <= windows)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE, "batch cannot be %d: the preset has %lld windows", batch,
                   (long long)windows);
}

/* One round: the next training step, or an evaluation of the validation split. */
static lapse_status run_round(bench *b, lapse_error *error)
{
    lp_trainer *trainer = &b->trainer;
    if (!b->train) {
        lp_evaluator_run(&trainer->evaluator, trainer->parameters);
        int64_t start = lp_clock_nanoseconds();
        if (lp_model_ranks(&trainer->trained->config))
            lp_evaluator_rank(&trainer->evaluator, trainer->parameters);
        b->step_times.adam = lp_clock_nanoseconds() - start;
        return LAPSE_OK;
    }
    if (trainer->windows.count - trainer->state.window < trainer->options.run.batch) {
        trainer->state.epoch += trainer->windows.count > 0;
        trainer->state.window = 0;
        LP_TRY(lp_trainer_epoch(trainer, error));
        LP_TRY(check_batch(trainer->options.run.batch, trainer->windows.count, error));
    }
    lp_trainer_step(trainer);
    if (!b->unsynced)
        trainer->backend->sync(trainer->backend->context);
    return LAPSE_OK;
}

static lp_extent extent_of_shard(const lp_batch *batch, int shard)
{
    lp_run run = lp_runner_shard(batch, shard);
    lp_extent extent = {0};
    for (int i = 0; i < LP_ROWS_COUNT; i++)
        extent.rows[i] = run.rows[i];
    for (int i = 0; i < run.segments; i++) {
        int64_t length = run.segment[i + 1] - run.segment[i];
        extent.pairs += length * (length + 1) / 2;
        extent.longest = length > extent.longest ? (int)length : extent.longest;
    }
    return extent;
}

static lp_extent extent_of_windows(const lp_windows *windows)
{
    lp_extent all = {0};
    for (int64_t w = 0; w < windows->count; w++) {
        int64_t length = windows->windows[w].count;
        all.rows[LP_ROWS_TOKENS] += (int)length;
        all.pairs += length * (length + 1) / 2;
        all.longest = length > all.longest ? (int)length : all.longest;
    }
    all.rows[LP_ROWS_TARGETS] = (int)windows->targets;
    return all;
}

/* Sets costs and calls of every node for the last round; returns the total flop. An evaluation counts as one shard. */
static double count_round(bench *b)
{
    const lp_batch *batch = &b->trainer.batch;
    int shards = b->train ? batch->shard_count : 1;
    double flop = 0;
    memset(b->costs, 0, (size_t)b->graph->node_count * sizeof *b->costs);
    for (int s = 0; s < shards; s++) {
        lp_extent extent = b->train ? extent_of_shard(batch, s) : extent_of_windows(&b->trainer.evaluator.windows);
        for (int i = 0; i < b->graph->node_count; i++) {
            lp_cost cost = b->graph->nodes[i]->op->cost(b->graph->nodes[i], &extent);
            b->costs[i].flop += cost.flop;
            b->costs[i].bytes += cost.bytes;
            b->calls[i] = shards;
            flop += cost.flop;
        }
    }
    return flop;
}

/* Adam reads the gradients of all shards, and reads and writes the parameters and both moments of the dense parameters
 * and of the table rows that occurred. A ranking multiplies every state with every item. */
static void count_parts(bench *b)
{
    const lp_trainer *trainer = &b->trainer;
    const lp_adam *adam = &trainer->adam;
    double dense = (double)(adam->size - adam->table_size), listed = 0;
    for (int s = 0; trainer->batch.item_capacity && s < trainer->batch.shard_count; s++)
        listed += trainer->batch.shard_items[s];
    double moved = dense * (adam->shards + 6) + (listed + 6.0 * trainer->rows.count) * adam->table_cols;
    b->part_costs[PART_ADAM].bytes = 4 * moved;
    const lp_ranking *ranking = &trainer->evaluator.ranking;
    double dims = trainer->model->config.dims, items = (double)ranking->setup.items;
    b->part_costs[PART_RANK].flop = 2 * (double)ranking->case_count * items * dims;
}

/* ------------------------------------------------------------------------------------------------- timing ----- */

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static lapse_status time_rounds(bench *b, lapse_error *error)
{
    lapse_bench_report *report = b->report;
    int rounds = b->options.rounds;
    for (int i = 0; i < WARM_ROUNDS; i++)
        LP_TRY(run_round(b, error));
    for (int i = 0; i < rounds; i++) {
        double start = lp_clock_seconds();
        LP_TRY(run_round(b, error));
        b->steps[i] = lp_clock_seconds() - start;
        report->flop += count_round(b) / rounds;
        if (b->train) {
            report->windows += (double)b->trainer.batch.windows / rounds;
            report->events += (double)b->trainer.batch.targets / rounds;
            report->tokens += (double)b->trainer.batch.tokens / rounds;
        }
    }
    if (!b->train) {
        const lp_windows *windows = &b->trainer.evaluator.windows;
        report->windows = (double)windows->count;
        report->events = (double)windows->targets;
        report->tokens = extent_of_windows(windows).rows[LP_ROWS_TOKENS];
        count_parts(b);
        report->flop += b->part_costs[PART_RANK].flop;
    }
    qsort(b->steps, (size_t)rounds, sizeof *b->steps, by_size);
    int windows = b->trainer.options.run.batch;
    report->step_best = b->steps[0];
    report->step_median = b->steps[rounds / 2];
    report->step_p90 = b->steps[(rounds * 9 + 9) / 10 - 1];
    report->steps = b->train ? (b->trainer.windows.count + windows - 1) / windows : 1;
    report->epoch = (double)report->steps * report->step_median;
    return LAPSE_OK;
}

/* Times an epoch on a device from steps without a sync in between, as in training. */
static lapse_status time_unsynced(bench *b, lapse_error *error)
{
    double start = lp_clock_seconds();
    b->unsynced = true;
    for (int i = 0; i < b->options.rounds; i++)
        LP_TRY(run_round(b, error));
    b->trainer.backend->sync(b->trainer.backend->context);
    b->unsynced = false;
    b->report->epoch = (double)b->report->steps * (lp_clock_seconds() - start) / b->options.rounds;
    return LAPSE_OK;
}

/* Takes the minimum per call: interference by other processes seldom hits the same call in every round. */
static void update_minimum(bench *b, bool first)
{
    size_t nodes = (size_t)b->graph->node_count;
    double parts[PARTS] = {0}, all = 0, each = 1e-9 * b->runner->threads; /* single-threaded parts block all threads */
    for (size_t i = 0; i < (size_t)b->shards * (nodes + 1); i++) {
        all += 1e-9 * (double)b->times[i];
        if (first || b->times[i] < b->min_times[i])
            b->min_times[i] = b->times[i];
    }
    parts[PART_FILL] = each * (double)b->step_times.fill;
    parts[PART_UNION] = each * (double)b->step_times.join;
    parts[b->train ? PART_ADAM : PART_RANK] = each * (double)b->step_times.adam;
    for (int i = 0; i < PART_REST; i++)
        all += parts[i];
    parts[PART_REST] = fmax(0, each * (double)b->step_times.total - all);
    for (int i = 0; i < PARTS; i++)
        if (first || parts[i] < b->part_seconds[i])
            b->part_seconds[i] = parts[i];
}

/* Seconds of a node over all shards; index node_count: of `prepare`. */
static double node_seconds(const bench *b, int node)
{
    int64_t sum = 0;
    for (int s = 0; s < b->shards; s++)
        sum += b->min_times[(size_t)s * (size_t)(b->graph->node_count + 1) + (size_t)node];
    return 1e-9 * (double)sum;
}

static lapse_status time_nodes(bench *b, lapse_error *error)
{
    lp_trainer *trainer = &b->trainer;
    bool vocabulary = b->train && trainer->batch.item_capacity > 0;
    size_t count = (size_t)b->shards * (size_t)(b->graph->node_count + 1);
    b->profiler = (lp_profiler){lp_bench_launches_record, &b->launches};
    b->step_times.run = trainer->evaluator.times = b->times;
    b->step_times.profiler = trainer->evaluator.profiler = &b->profiler;
    trainer->times = b->train ? &b->step_times : NULL;
    for (int i = 0; i < b->options.rounds; i++) {
        memset(b->times, 0, count * sizeof *b->times);
        trainer->state.window = 0;
        int64_t start = lp_clock_nanoseconds();
        LP_TRY(run_round(b, error));
        b->step_times.total = lp_clock_nanoseconds() - start;
        update_minimum(b, i == 0);
        lp_bench_launches_end_round(&b->launches, i == 0);
    }
    count_round(b);
    count_parts(b);
    b->part_seconds[PART_VOCABULARY] = vocabulary ? node_seconds(b, b->graph->node_count) : 0;
    trainer->times = NULL;
    trainer->evaluator.times = NULL;
    trainer->evaluator.profiler = NULL;
    return b->launches.out_of_memory ? lp_fail_memory(error, "launches", 0) : LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------- report ----- */

static int by_seconds(const void *a, const void *b)
{
    const lapse_bench_row *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : strcmp(x->name, y->name);
}

static void add_ops(bench *b, lapse_bench_row *rows)
{
    for (int i = 0; i < b->graph->node_count; i++) {
        lapse_bench_row *row = &rows[b->graph->nodes[i]->op->id];
        row->name = b->graph->nodes[i]->op->name;
        row->calls += b->calls[i];
        row->seconds += node_seconds(b, i);
        row->flop += b->costs[i].flop;
        row->bytes += b->costs[i].bytes;
    }
}

/* With a device only the optimizer and the ranking remain: the host prefetches batches meanwhile. The ranking runs on
 * the host, so the device's peak does not apply to it. */
static void add_parts(bench *b, lapse_bench_row *rows)
{
    bool host = b->runner->backend->host;
    for (int i = 0; i < PARTS; i++) {
        lapse_bench_row row = {.name = part_names[i], .calls = 1, .seconds = b->part_seconds[i]};
        if (host || i == PART_ADAM) {
            row.flop = b->part_costs[i].flop;
            row.bytes = b->part_costs[i].bytes;
        }
        if (row.seconds > 0 && (host || i == PART_ADAM || i == PART_RANK))
            rows[i] = row;
    }
}

static lapse_status make_rows(bench *b, lapse_error *error)
{
    lapse_bench_report *report = b->report;
    bool host = b->runner->backend->host;
    int all = (host ? (int)LP_OP_COUNT : b->launches.count) + PARTS;
    report->step_minimum = host || b->launches.count ? 0 : report->step_best;
    if (!host && !b->launches.count) /* the backend has no profiler */
        return LAPSE_OK;
    lapse_bench_row *rows = report->rows = lp_alloc((size_t)all, sizeof *rows);
    if (!rows)
        return lp_fail_memory(error, "a report", (size_t)all * sizeof *rows);
    if (host)
        add_ops(b, rows);
    else
        lp_bench_launches_rows(&b->launches, b->graph, b->costs, rows);
    add_parts(b, rows + all - PARTS);
    for (int i = 0; i < all; i++)
        if (rows[i].name)
            rows[report->row_count++] = rows[i];
    for (int i = 0; i < report->row_count; i++) {
        double compute = report->peak > 0 ? rows[i].flop * report->threads / report->peak : 0;
        double memory = report->bandwidth > 0 ? rows[i].bytes * report->threads / report->bandwidth : 0;
        rows[i].roofline = fmax(compute, memory);
        report->step_minimum += rows[i].seconds / report->threads;
    }
    qsort(rows, (size_t)report->row_count, sizeof *rows, by_seconds);
    return LAPSE_OK;
}

static lapse_status make_buffers(bench *b, lapse_error *error)
{
    size_t nodes = (size_t)b->graph->node_count, shards = (size_t)b->shards;
    b->times = lp_alloc(shards * (nodes + 1), sizeof *b->times);
    b->min_times = lp_alloc(shards * (nodes + 1), sizeof *b->min_times);
    b->costs = lp_alloc(nodes, sizeof *b->costs);
    b->calls = lp_alloc(nodes, sizeof *b->calls);
    b->steps = lp_alloc((size_t)b->options.rounds, sizeof *b->steps);
    LP_TRY(lp_bench_launches_init(&b->launches, (int)nodes, error));
    if (b->times && b->min_times && b->costs && b->calls && b->steps)
        return LAPSE_OK;
    return lp_fail_memory(error, "the profiler", shards * nodes * sizeof *b->times);
}

static void bench_clear(bench *b)
{
    lp_trainer_clear(&b->trainer);
    lapse_dataset_close(b->dataset);
    lp_bench_launches_clear(&b->launches);
    lp_free(b->times);
    lp_free(b->min_times);
    lp_free(b->costs);
    lp_free(b->calls);
    lp_free(b->steps);
}

/* Refuses a batch of more windows than the first epoch has, before its buffers are allocated. */
static lapse_status check_windows(const lapse_dataset *dataset, lapse_train_options options, lapse_error *error)
{
    lp_resolved resolved;
    lp_windows windows = {0};
    LP_TRY(lp_train_options_resolve(&options, dataset, &resolved, error));
    lp_targets targets = {.dataset = dataset,
                          .split = resolved.split,
                          .wanted = LP_SPLIT_TRAIN,
                          .context = options.model.context,
                          .last_only = options.run.windows == LP_WINDOWS_EACH,
                          .last_windows = options.run.windows == LP_WINDOWS_LAST};
    lapse_status status = lp_windows_training(&windows, &targets, options.run.seed, 0, error);
    if (status == LAPSE_OK)
        status = check_batch(options.run.batch, windows.count, error);
    lp_windows_clear(&windows);
    lp_free(resolved.split);
    return status;
}

static lapse_status prepare(bench *b, lapse_error *error)
{
    const lapse_bench_options *options = &b->options;
    lapse_train_options train;
    const lp_bench_sizes *sizes = lp_bench_preset_sizes(b->preset);
    LP_TRY(lp_bench_preset_options(b->preset, options, &train, error));
    train.run.threads = options->threads ? options->threads : train.run.threads;
    train.run.batch = options->batch ? options->batch : train.run.batch;
    train.run.shards = options->shards ? options->shards : train.run.shards;
    int64_t items = options->items ? options->items : sizes->items;
    LP_TRY(lp_bench_data(b->preset, sizes->sequences, items, options->seed, &b->dataset, error));
    LP_TRY(check_windows(b->dataset, train, error));
    LP_TRY(lp_trainer_init(&b->trainer, b->dataset, &train, error));
    if (b->trainer.model->times)
        LP_TRY(lp_trainer_times(&b->trainer, error));
    const lp_adam *adam = &b->trainer.adam;
    if (b->trainer.backend->host) { /* touches the pages, as the first steps of a run do */
        memset(adam->moment1, 0, adam->size * sizeof *adam->moment1);
        memset(adam->moment2, 0, adam->size * sizeof *adam->moment2);
    }
    b->runner = b->train ? &b->trainer.runner : &b->trainer.evaluator.runner;
    b->shards = b->train ? b->trainer.batch.shard_count : b->trainer.evaluator.batch.shard_count;
    b->graph = b->train ? &b->trainer.network.graph : &b->trainer.evaluator.network.graph;
    *b->report = (lapse_bench_report){.preset = b->preset->name,
                                      .what = b->train ? "train" : "predict",
                                      .device = lp_device_names()[b->trainer.options.run.device],
                                      .precision = lp_precision_names[b->trainer.options.run.precision],
                                      .level = lp_cpu_level(),
                                      .threads = b->runner->threads,
                                      .rounds = options->rounds,
                                      .items = items,
                                      .parameters = (int64_t)b->trainer.network.graph.parameter_size,
                                      .error = b->report->error};
    return make_buffers(b, error);
}

static lapse_status measure(bench *b, lapse_error *error)
{
    lapse_bench_report *report = b->report;
    LP_TRY(lp_bench_check(b->preset, &b->options, NULL, &report->error, error));
    LP_TRY(prepare(b, error));
    bool host = b->runner->backend->host;
    if (host) {
        report->peak = lp_bench_peak(report->threads);
        LP_TRY(lp_bench_bandwidth(report->threads, b->runner->plan.work_size, &report->bandwidth, error));
    } else if (b->runner->backend->measure_peak) {
        b->runner->backend->measure_peak(b->runner->backend->context, b->runner->precision, b->runner->plan.work_size,
                                         &report->peak, &report->bandwidth);
    }
    LP_TRY(time_rounds(b, error));
    if (!host && b->train)
        LP_TRY(time_unsynced(b, error));
    LP_TRY(time_nodes(b, error));
    if (host)
        report->peak = fmax(report->peak, lp_bench_peak(report->threads));
    return make_rows(b, error);
}

/* ------------------------------------------------------------------------------------------------- public ----- */

const char *const *lapse_bench_what_names(void)
{
    static const char *const names[] = {"train", "predict", NULL};
    return names;
}

void lapse_bench_options_default(lapse_bench_options *options)
{
    *options = (lapse_bench_options){.preset = "ml-1m", .what = "train", .rounds = 20, .device = "cpu", .seed = 1};
}

static lapse_status check_options(const lapse_bench_options *options, lapse_error *error)
{
    if (!lp_bench_preset_find(options->preset))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "there is no preset '%s'; there are ml-1m, ml-1m-softmax, so and catalogue", options->preset);
    if (lp_name_index(options->what, lapse_bench_what_names()) < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "a benchmark is train or predict, not '%s'", options->what);
    LP_TRY(lp_device_check(options->device, error));
    if (options->rounds < 1 || options->rounds > MAX_ROUNDS)
        return lp_fail(error, LAPSE_ERROR_USAGE, "rounds cannot be %d; it can be from 1 to %d", options->rounds,
                       MAX_ROUNDS);
    if (options->items != 0 && (options->items < 2 || options->items > INT32_MAX))
        return lp_fail(error, LAPSE_ERROR_USAGE, "items cannot be %lld; it can be from 2 to %d",
                       (long long)options->items, INT32_MAX);
    return LAPSE_OK;
}

lapse_status lapse_bench(const lapse_bench_options *options, lapse_bench_report *report, lapse_error *error)
{
    LP_REQUIRE(error, options, report);
    LP_REQUIRE(error, options->preset, options->what, options->device);
    LP_TRY(check_options(options, error));
    lapse_bench_report made = {0};
    bench b = {.preset = lp_bench_preset_find(options->preset),
               .options = *options,
               .train = strcmp(options->what, "train") == 0,
               .report = &made};
    lapse_status status = measure(&b, error);
    bench_clear(&b);
    if (status == LAPSE_OK)
        *report = made;
    else
        lapse_bench_report_clear(&made);
    return status;
}

void lapse_bench_report_clear(lapse_bench_report *report)
{
    lp_free(report->rows);
    *report = (lapse_bench_report){0};
}
