/* runner.c: runs the shards of a batch through a network and copies outputs of a device to the host. */
#include "model/runner.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/threads.h"

/* Allocates pinned host memory for the outputs of a device. */
static bool make_host_outputs(lp_runner *runner, const lp_batch *batch)
{
    const lp_network *network = runner->network;
    size_t targets = (size_t)lp_batch_shard_targets(batch);
    bool good = true;
    for (int t = 0; t < LP_NETWORK_OUTPUTS; t++) {
        const lp_value *value = network->outputs[t];
        if (!value || network->loss || runner->backend->host)
            continue;
        runner->outputs[t] =
            runner->backend->pinned_new(runner->backend->context, targets * (size_t)value->cols * sizeof(float));
        good = good && runner->outputs[t];
    }
    return good;
}

/* The buffers of one thread. Each thread clears some of them, because that takes longer than all else here. */
static void make_buffers(void *context, int i, int worker)
{
    (void)worker;
    lp_runner *runner = context;
    runner->work[i] = runner->backend->buffer_new(runner->backend->context, runner->plan.work_size);
    runner->scratch[i] = runner->backend->buffer_new(runner->backend->context, runner->plan.scratch_size);
}

lapse_status lp_runner_init(lp_runner *runner, const lp_backend *backend, lp_network *network, const lp_batch *batch,
                            int threads, lapse_error *error)
{
    *runner = (lp_runner){.backend = backend, .network = network};
    int64_t tokens = lp_batch_shard_tokens(batch), context = batch->context;
    lp_extent largest = {.pairs = tokens * (context + 1) / 2, .longest = batch->context};
    largest.rows[LP_ROWS_TOKENS] = tokens;
    largest.rows[LP_ROWS_TARGETS] = largest.rows[LP_ROWS_LABELS] = lp_batch_shard_targets(batch);
    largest.rows[LP_ROWS_ITEMS] = batch->item_capacity;
    LP_TRY(lp_backend_plan(backend, &runner->plan, &network->graph, &largest, error));
    runner->threads = runner->backend->max_threads(runner->backend->context, threads);
    runner->work = lp_alloc((size_t)runner->threads, sizeof *runner->work);
    runner->scratch = lp_alloc((size_t)runner->threads, sizeof *runner->scratch);
    bool good = runner->work && runner->scratch && make_host_outputs(runner, batch);
    if (good)
        lp_threads_run(runner->threads, runner->threads, make_buffers, runner);
    for (int i = 0; good && i < runner->threads; i++)
        good = runner->work[i] && runner->scratch[i];
    if (good)
        return LAPSE_OK;
    size_t size = (size_t)runner->threads * (runner->plan.work_size + runner->plan.scratch_size);
    lp_runner_clear(runner);
    return lp_fail_memory(error, "the work buffers", size);
}

void lp_runner_clear(lp_runner *runner)
{
    for (int i = 0; i < runner->threads; i++) {
        if (runner->work)
            runner->backend->buffer_free(runner->backend->context, runner->work[i]);
        if (runner->scratch)
            runner->backend->buffer_free(runner->backend->context, runner->scratch[i]);
    }
    for (int t = 0; t < LP_NETWORK_OUTPUTS; t++)
        if (runner->outputs[t])
            runner->backend->pinned_free(runner->backend->context, runner->outputs[t]);
    lp_free(runner->work);
    lp_free(runner->scratch);
    *runner = (lp_runner){0};
}

typedef struct shard_job {
    lp_runner *runner;
    const lp_pass *pass;
} shard_job;

/* An output in host memory. */
static const float *host_output(const lp_runner *runner, const lp_run *run, int t)
{
    const lp_value *value = runner->network->outputs[t];
    if (!value)
        return NULL;
    if (runner->backend->host)
        return lp_run_data(run, value);
    runner->backend->copy_to_host(runner->backend->context, runner->outputs[t], lp_run_data(run, value),
                                  (size_t)lp_run_rows(run, value) * (size_t)value->cols * sizeof(float));
    return runner->outputs[t];
}

/* Starts to copy a value to pinned memory, which is valid after the next sync. */
static void copy_async(const lp_runner *runner, const lp_run *run, const lp_value *value, float *to)
{
    runner->backend->copy_to_host_async(runner->backend->context, to, lp_run_data(run, value),
                                        (size_t)lp_run_rows(run, value) * (size_t)value->cols * sizeof *to);
}

/* Copies the loss or the states, or passes the outputs to on_shard. */
static void deliver(const lp_runner *runner, const lp_run *run, const lp_pass *pass, int shard)
{
    if (runner->network->loss) {
        copy_async(runner, run, runner->network->loss, &pass->loss[shard]);
        return;
    }
    if (pass->state_to) {
        copy_async(runner, run, runner->network->state, pass->state_to);
        return;
    }
    lp_outcome outcome;
    for (int t = 0; t < LP_NETWORK_OUTPUTS; t++)
        outcome.values[t] = host_output(runner, run, t);
    pass->on_shard(pass->context, shard, &outcome);
}

lp_run lp_runner_shard(const lp_batch *batch, int shard)
{
    int token = batch->shard_token[shard];
    return (lp_run){
        .rows = {[LP_ROWS_TOKENS] = batch->shard_token[shard + 1] - token,
                 [LP_ROWS_TARGETS] = batch->shard_targets[shard + 1] - batch->shard_targets[shard],
                 [LP_ROWS_LABELS] = batch->shard_labels[shard + 1] - batch->shard_labels[shard],
                 [LP_ROWS_ITEMS] = batch->item_capacity ? batch->shard_items[shard] : 0},
        .segments = batch->shard_window[shard + 1] - batch->shard_window[shard],
        .segment = lp_batch_segments(batch, shard),
        .first_token = (uint64_t)token,
    };
}

/* Prepares a shard. Returns its part of pass->times, or NULL, after adding the time of `prepare`. */
static int64_t *prepare(const lp_runner *runner, const lp_pass *pass, int shard, int worker)
{
    int nodes = runner->network->graph.node_count;
    int64_t *times = pass->times ? pass->times + (size_t)shard * (size_t)(nodes + 1) : NULL;
    int64_t start = times ? lp_clock_nanoseconds() : 0;
    if (pass->prepare)
        pass->prepare(pass->context, shard, worker);
    if (times)
        times[nodes] += lp_clock_nanoseconds() - start;
    return times;
}

static void run_shard(void *context, int task, int worker)
{
    const shard_job *job = context;
    int shard = job->pass->first_shard + task;
    lp_runner *runner = job->runner;
    const lp_pass *pass = job->pass;
    const lp_adam *adam = pass->gradients;
    LP_ASSERT(worker < runner->threads && shard < pass->batch->shard_count);
    int64_t *times = prepare(runner, pass, shard, worker);
    float seed_value = pass->seed_value;
    int32_t sample = pass->sample;
    void *inputs[LP_FEED_LIMIT] = {[LP_FEED_SEED] = &seed_value, [LP_FEED_FREQUENCY_SAMPLE] = &sample};
    lp_feeds_of_batch(pass->batch, shard, inputs);
    lp_run run = lp_runner_shard(pass->batch, shard);
    run.plan = &runner->plan;
    run.work = runner->work[worker];
    run.scratch = runner->scratch[worker];
    run.inputs = inputs;
    run.parameters = pass->parameters;
    if (adam) {
        size_t item = (size_t)shard * (size_t)pass->batch->item_capacity;
        run.gradients = adam->gradients + (size_t)shard * (adam->size - adam->table_size);
        run.row_gradients = adam->row_gradients + item * (size_t)adam->table_cols;
    }
    run.seed = pass->seed;
    run.step = pass->step;
    run.times = times;
    run.precision = runner->precision;
    if (pass->train_step) {
        runner->backend->train_step(runner->backend->context, &run, pass->train_step);
        return;
    }
    if (pass->profiler && runner->backend->run_profiled)
        runner->backend->run_profiled(runner->backend->context, &run, pass->profiler);
    else
        runner->backend->run(runner->backend->context, &run);
    deliver(runner, &run, pass, shard);
}

void lp_softmax_add(const float *logits, int count, double weight, double *probabilities)
{
    double largest = logits[0], sum = 0;
    for (int i = 1; i < count; i++)
        largest = logits[i] > largest ? logits[i] : largest;
    for (int i = 0; i < count; i++)
        sum += exp(logits[i] - largest);
    for (int i = 0; i < count; i++)
        probabilities[i] += weight * (exp(logits[i] - largest) / sum);
}

void lp_runner_run(lp_runner *runner, const lp_pass *pass)
{
    shard_job job = {runner, pass};
    int end = pass->end_shard ? pass->end_shard : pass->batch->shard_count;
    lp_threads_run(runner->threads, end - pass->first_shard, run_shard, &job);
}
