#include "model/runner.h"

#include "base/threads.h"

lapse_status lp_runner_init(lp_runner *runner, const char *backend, lp_network *network, const lp_batch *batch,
                            int threads, lapse_error *error)
{
    *runner = (lp_runner){.backend = lp_backend_find(backend), .network = network};
    if (!runner->backend)
        return lp_fail(error, LAPSE_ERROR_USAGE, "there is no backend '%s'", backend);
    int64_t tokens = lp_batch_shard_tokens(batch), context = batch->context;
    lp_extent largest = {tokens, tokens * (context + 1) / 2, batch->context};
    LP_TRY(lp_plan_make(&runner->plan, &network->graph, &largest, runner->backend->real_size, error));
    runner->threads = runner->backend->threads(threads);
    runner->work = lp_alloc((size_t)runner->threads, sizeof *runner->work);
    runner->scratch = lp_alloc((size_t)runner->threads, sizeof *runner->scratch);
    bool good = runner->work && runner->scratch;
    for (int i = 0; good && i < runner->threads; i++) {
        runner->work[i] = runner->backend->buffer_new(runner->plan.work_size);
        runner->scratch[i] = runner->backend->buffer_new(runner->plan.scratch_size);
        good = runner->work[i] && runner->scratch[i];
    }
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
            runner->backend->buffer_free(runner->work[i]);
        if (runner->scratch)
            runner->backend->buffer_free(runner->scratch[i]);
    }
    lp_free(runner->work);
    lp_free(runner->scratch);
    *runner = (lp_runner){0};
}

typedef struct shard_job {
    lp_runner *runner;
    const lp_pass *pass;
} shard_job;

static void run_shard(void *context, int shard, int worker)
{
    const shard_job *job = context;
    lp_runner *runner = job->runner;
    const lp_pass *pass = job->pass;
    const lp_batch *batch = pass->batch;
    int token = batch->shard_token[shard];
    float seed_value = pass->seed_value;
    int32_t draw = pass->draw;
    void *inputs[LP_FEED_LIMIT] = {
        [LP_FEED_KIND] = batch->kind + token,
        [LP_FEED_POSITION] = batch->position + token,
        [LP_FEED_TIME] = batch->time + token,
        [LP_FEED_UNTIL] = batch->until + token,
        [LP_FEED_TARGET] = batch->target + token,
        [LP_FEED_WEIGHT] = batch->weight + token,
        [LP_FEED_SEED] = &seed_value,
        [LP_FEED_DRAW] = &draw,
        [LP_FEED_ACTION] = batch->action + token,
    };
    for (int f = 0; f < batch->field_count; f++) /* int32_t or float */
        inputs[LP_FEED_COUNT + f] = (char *)batch->field[f] + (size_t)token * sizeof(float);
    lp_run run = {
        .plan = &runner->plan,
        .work = runner->work[worker],
        .scratch = runner->scratch[worker],
        .inputs = inputs,
        .parameters = pass->parameters,
        .gradients = pass->gradients ? pass->gradients + (size_t)shard * runner->network->graph.parameter_size : NULL,
        .tokens = batch->shard_token[shard + 1] - token,
        .segments = batch->shard_window[shard + 1] - batch->shard_window[shard],
        .segment = lp_batch_segments(batch, shard),
        .seed = pass->seed,
        .step = pass->step,
        .first_token = (uint64_t)token,
    };
    runner->backend->run(&run);
    const lp_network *network = runner->network;
    lp_outcome outcome = {.loss = network->loss ? lp_run_data(&run, network->loss) : NULL};
    for (int t = 0; !network->loss && t < LP_TARGET_COUNT; t++)
        outcome.logits[t] = network->logits[t] ? lp_run_data(&run, network->logits[t]) : NULL;
    pass->on_shard(pass->context, shard, &outcome);
}

void lp_softmax_add(const float *logits, int count, double share, double *answer)
{
    double largest = logits[0], sum = 0;
    for (int i = 1; i < count; i++)
        largest = logits[i] > largest ? logits[i] : largest;
    for (int i = 0; i < count; i++)
        sum += exp(logits[i] - largest);
    for (int i = 0; i < count; i++)
        answer[i] += share * (exp(logits[i] - largest) / sum);
}

void lp_runner_run(lp_runner *runner, const lp_pass *pass)
{
    shard_job job = {runner, pass};
    lp_threads_run(runner->threads, pass->batch->shard_count, run_shard, &job);
}
