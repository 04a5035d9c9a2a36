/* evaluator.c: predicts every event of a split, in batches, and collects predictions, losses and ranks. */
#include "train/evaluator.h"

#include "base/threads.h"
#include "data/dataset/fingerprint.h"
#include "data/dataset/split.h"

#include <math.h>
#include <string.h>

/* Windows of a batch; a device has more to do at once, so it gets as many as make up so many tokens. */
enum { BATCH_WINDOWS = 64, BATCH_SHARDS = 16, DEVICE_TOKENS = 1 << 16, DEVICE_WINDOWS = 1024 };

/* What training takes for a look at a recommender: a few seconds at most. */
enum { MOST_SCORES = 2000000000, FEWEST_CASES = 500 };

static bool ranks(const lp_evaluator *evaluator)
{
    return lp_model_ranks(&evaluator->model->config);
}

/* Parameter samples that predictions are averaged over. */
static int samples(const lp_evaluator *evaluator)
{
    return lp_network_samples(&evaluator->network);
}

/* States and items of a network that recommends. */
static lapse_status make_states(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_model_config *config = &evaluator->model->config;
    size_t dims = (size_t)config->dims, cases = (size_t)evaluator->windows.targets, items = (size_t)config->event_types;
    evaluator->states = lp_alloc(cases * dims, sizeof *evaluator->states);
    if (!evaluator->backend->host)
        evaluator->table =
            evaluator->backend->pinned_new(evaluator->backend->context, items * (dims + 1) * sizeof *evaluator->table);
    if (!evaluator->states || (!evaluator->backend->host && !evaluator->table))
        return lp_fail_memory(error, "evaluation", (cases + items) * dims * sizeof(float));
    return LAPSE_OK;
}

/* Which cases are ranked. Where some are drawn, only they are asked for. */
static lapse_status make_ranking(lp_evaluator *evaluator, const lp_ranking_setup *wish, lapse_error *error)
{
    lp_targets *targets = &evaluator->targets;
    lp_ranking *ranking = &evaluator->ranking;
    lp_ranking_setup setup = *wish;
    setup.dataset = targets->dataset;
    setup.type = evaluator->translation.columns.type;
    setup.items = evaluator->model->config.event_types;
    setup.split = targets->split;
    setup.wanted = targets->wanted;
    setup.threads = evaluator->threads;
    LP_TRY(lp_ranking_init(ranking, &setup, error));
    if (ranking->case_count == ranking->case_total)
        return LAPSE_OK;
    size_t events = (size_t)targets->dataset->event_count;
    evaluator->drawn = lp_alloc(events, 1);
    if (!evaluator->drawn)
        return lp_fail_memory(error, "evaluation", events);
    memset(evaluator->drawn, LP_SPLIT_TRAIN, events);
    for (int64_t c = 0; c < ranking->case_count; c++)
        evaluator->drawn[ranking->cases[c].event] = LP_SPLIT_TEST;
    targets->split = evaluator->drawn;
    targets->wanted = LP_SPLIT_TEST;
    return LAPSE_OK;
}

/* Room for what is said of each target. */
static lapse_status make_verdicts(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_model_config *config = &evaluator->model->config;
    size_t tokens = (size_t)evaluator->batch.capacity_windows * (size_t)evaluator->targets.context;
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        lp_verdicts *verdicts = &evaluator->verdicts[i];
        if (!lp_model_predicts(config, (lp_target)i))
            continue;
        verdicts->predicted = lp_alloc(tokens, sizeof *verdicts->predicted);
        verdicts->loss = lp_alloc(tokens, sizeof *verdicts->loss);
        verdicts->cases = lp_alloc((size_t)evaluator->windows.targets, sizeof *verdicts->cases);
        if (!verdicts->predicted || !verdicts->loss || !verdicts->cases)
            return lp_fail_memory(error, "evaluation", (size_t)evaluator->windows.targets * sizeof(lp_case));
        if (lp_network_samples(&evaluator->model->network) == 1)
            continue;
        size_t count = tokens * (size_t)lp_model_target_size(config, (lp_target)i);
        verdicts->shares = lp_alloc(count, sizeof(double));
        if (!verdicts->shares)
            return lp_fail_memory(error, "evaluation", count * sizeof(double));
    }
    return LAPSE_OK;
}

static int windows_of_batch(const lp_evaluator *evaluator)
{
    int64_t windows = DEVICE_TOKENS / evaluator->targets.context, all = evaluator->windows.count;
    if (evaluator->backend->host || windows < BATCH_WINDOWS)
        return BATCH_WINDOWS;
    windows = windows < DEVICE_WINDOWS ? windows : DEVICE_WINDOWS;
    return (int)(windows < all ? windows : all);
}

/* The batch, and on a device a second one that is filled while it works on the first. */
static lapse_status make_batches(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_model_config *config = &evaluator->model->config;
    int shards = evaluator->backend->host ? BATCH_SHARDS : 1;
    lp_batch_source source = {.windows = &evaluator->windows,
                              .targets = &evaluator->targets,
                              .columns = &evaluator->translation.columns,
                              .target_known = lp_model_target_known(config)};
    LP_TRY(lp_batch_init(&evaluator->batch, windows_of_batch(evaluator), evaluator->targets.context, shards,
                         config->field_count, error));
    LP_TRY(lp_batch_init_inputs(&evaluator->batch, false,
                                lp_network_reads(&evaluator->model->network, LP_FEED_SEQUENCE), error));
    if (evaluator->backend->host)
        return LAPSE_OK;
    return lp_prefetch_init(&evaluator->prefetch, &source, &evaluator->batch, error);
}

static lapse_status make_buffers(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_model_config *config = &evaluator->model->config;
    LP_TRY(make_batches(evaluator, error));
    if (!ranks(evaluator))
        LP_TRY(make_verdicts(evaluator, error));
    if (!lp_model_is_network(config)) {
        size_t count = (size_t)BATCH_SHARDS * (size_t)config->event_types;
        evaluator->scratch = lp_alloc(count, sizeof *evaluator->scratch);
        return evaluator->scratch ? LAPSE_OK : lp_fail_memory(error, "evaluation", count * sizeof(double));
    }
    if (ranks(evaluator))
        LP_TRY(make_states(evaluator, error));
    LP_TRY(lp_network_build(&evaluator->network, config, false, error));
    return lp_runner_init(&evaluator->runner, evaluator->backend, &evaluator->network, &evaluator->batch,
                          evaluator->threads, error);
}

lapse_status lp_evaluator_init_ranked(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                                      const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, int threads,
                                      const lp_ranking_setup *wish, lapse_error *error)
{
    *evaluator = (lp_evaluator){.backend = backend, .model = model, .threads = threads};
    evaluator->targets = (lp_targets){.dataset = dataset,
                                      .split = split,
                                      .wanted = wanted,
                                      .context = model->config.context,
                                      .last_only = model->network.anchored};
    lapse_status status = lp_translation_init(&evaluator->translation, model, dataset, error);
    if (status == LAPSE_OK && ranks(evaluator))
        status = make_ranking(evaluator, wish, error);
    if (status == LAPSE_OK)
        status = lp_windows_evaluation(&evaluator->windows, &evaluator->targets, error);
    if (status == LAPSE_OK && evaluator->windows.targets == 0)
        status = lp_fail(error, LAPSE_ERROR_INPUT, "there is nothing to predict: no sequence has a second event%s%s%s",
                         wanted == LP_SPLIT_COUNT ? "" : " in the split '",
                         wanted == LP_SPLIT_COUNT ? "" : lp_split_name(wanted), wanted == LP_SPLIT_COUNT ? "" : "'");
    if (status == LAPSE_OK)
        status = make_buffers(evaluator, error);
    if (status != LAPSE_OK)
        lp_evaluator_clear(evaluator);
    return status;
}

lapse_status lp_evaluator_init(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                               const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, int threads,
                               lapse_error *error)
{
    int64_t most = (int64_t)MOST_SCORES / model->config.event_types;
    lp_ranking_setup wish = {.most = most > FEWEST_CASES ? most : FEWEST_CASES, .seed = model->seed};
    return lp_evaluator_init_ranked(evaluator, backend, model, dataset, split, wanted, threads, &wish, error);
}

void lp_evaluator_clear(lp_evaluator *evaluator)
{
    lp_prefetch_clear(&evaluator->prefetch);
    lp_translation_clear(&evaluator->translation);
    lp_windows_clear(&evaluator->windows);
    lp_batch_clear(&evaluator->batch);
    lp_runner_clear(&evaluator->runner);
    lp_graph_clear(&evaluator->network.graph);
    lp_free(evaluator->scratch);
    lp_free(evaluator->states);
    lp_free(evaluator->drawn);
    if (evaluator->table)
        evaluator->backend->pinned_free(evaluator->backend->context, evaluator->table);
    if (evaluator->parameters)
        evaluator->backend->buffer_free(evaluator->backend->context, evaluator->parameters);
    lp_ranking_clear(&evaluator->ranking);
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        lp_free(evaluator->verdicts[i].shares);
        lp_free(evaluator->verdicts[i].predicted);
        lp_free(evaluator->verdicts[i].loss);
        lp_free(evaluator->verdicts[i].cases);
    }
    *evaluator = (lp_evaluator){0};
}

/* The first choice, ties to the smaller number, and the loss, of probabilities. */
static void judge(const double *answer, int count, int target, int32_t *predicted, double *loss)
{
    int best = 0;
    for (int c = 1; c < count; c++)
        best = answer[c] > answer[best] ? c : best;
    *predicted = best;
    *loss = -log(answer[target]);
}

/* The same of logits, in double. */
static void judge_logits(const float *logits, int count, int target, int32_t *predicted, double *loss)
{
    int best = 0;
    for (int c = 1; c < count; c++)
        best = logits[c] > logits[best] ? c : best;
    double sum = 0;
    for (int c = 0; c < count; c++)
        sum += exp((double)logits[c] - logits[best]);
    *predicted = best;
    *loss = log(sum) - ((double)logits[target] - logits[best]);
}

/* What really happened after each token, of one target. */
static const int32_t *truth(const lp_batch *batch, int target)
{
    return target == LP_TARGET_EVENT ? batch->target : batch->action;
}

static void take_logits(void *context, int shard, const lp_outcome *outcome)
{
    lp_evaluator *evaluator = context;
    const lp_batch *batch = &evaluator->batch;
    int first = batch->shard_targets[shard];
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        if (!outcome->logits[i])
            continue;
        int size = lp_model_target_size(&evaluator->model->config, (lp_target)i);
        lp_verdicts *verdicts = &evaluator->verdicts[i];
        for (int a = first; a < batch->shard_targets[shard + 1]; a++)
            judge_logits(outcome->logits[i] + (size_t)(a - first) * (size_t)size, size, truth(batch, i)[a],
                         &verdicts->predicted[a], &verdicts->loss[a]);
    }
}

/* One draw's answers, added to those before it. */
static void add_shares(void *context, int shard, const lp_outcome *outcome)
{
    lp_evaluator *evaluator = context;
    const lp_batch *batch = &evaluator->batch;
    const lp_model_config *config = &evaluator->model->config;
    int first = batch->shard_targets[shard];
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        if (!outcome->logits[i])
            continue;
        int size = lp_model_target_size(config, (lp_target)i);
        for (int a = first; a < batch->shard_targets[shard + 1]; a++)
            lp_softmax_add(outcome->logits[i] + (size_t)(a - first) * (size_t)size, size, 1.0 / samples(evaluator),
                           evaluator->verdicts[i].shares + (size_t)a * (size_t)size);
    }
}

static void judge_shares(lp_evaluator *evaluator, int target)
{
    const lp_batch *batch = &evaluator->batch;
    lp_verdicts *verdicts = &evaluator->verdicts[target];
    int size = lp_model_target_size(&evaluator->model->config, (lp_target)target);
    for (int a = 0; a < batch->targets; a++)
        judge(verdicts->shares + (size_t)a * (size_t)size, size, truth(batch, target)[a], &verdicts->predicted[a],
              &verdicts->loss[a]);
}

/* Answers that are the mean over the draws a model keeps. */
static void run_draws(lp_evaluator *evaluator, lp_pass *pass)
{
    const lp_model_config *config = &evaluator->model->config;
    size_t target_position = (size_t)evaluator->batch.targets;
    for (int i = 0; i < LP_TARGET_COUNT; i++)
        if (lp_model_predicts(config, (lp_target)i))
            memset(evaluator->verdicts[i].shares, 0,
                   target_position * (size_t)lp_model_target_size(config, (lp_target)i) * sizeof(double));
    pass->on_shard = add_shares;
    for (pass->draw = 0; pass->draw < samples(evaluator); pass->draw++)
        lp_runner_run(&evaluator->runner, pass);
    for (int i = 0; i < LP_TARGET_COUNT; i++)
        if (lp_model_predicts(config, (lp_target)i))
            judge_shares(evaluator, i);
}

void lp_baseline_query(const lapse_model *model, const lapse_dataset *dataset, const int32_t *type, int64_t start,
                       int64_t target_position, double *answer)
{
    double time = dataset->time[lp_model_target_known(&model->config) ? target_position : target_position - 1];
    model->config.row->predict(model, &(lp_query){type + start, target_position - start, time}, answer);
}

/* Keeps the states of a recommender: the mean over draws, whose scores are the means of the draws' scores. */
static void take_states(void *context, int shard, const lp_outcome *outcome)
{
    lp_evaluator *evaluator = context;
    const lp_batch *batch = &evaluator->batch;
    size_t dims = (size_t)evaluator->model->config.dims;
    int first = batch->shard_targets[shard], draws = samples(evaluator);
    size_t count = (size_t)(batch->shard_targets[shard + 1] - first) * dims;
    float *states = evaluator->states + (size_t)(evaluator->case_count + first) * dims;
    for (size_t i = 0; i < count; i++)
        states[i] += outcome->state[i] / (float)draws;
}

static void run_states(lp_evaluator *evaluator, lp_pass *pass)
{
    const lp_model_config *config = &evaluator->model->config;
    size_t dims = (size_t)config->dims;
    memset(evaluator->states + (size_t)evaluator->case_count * dims, 0,
           (size_t)evaluator->batch.targets * dims * sizeof *evaluator->states);
    pass->on_shard = take_states;
    for (pass->draw = 0; pass->draw < samples(evaluator); pass->draw++)
        lp_runner_run(&evaluator->runner, pass);
}

static void answer_shard(void *context, int shard, int worker)
{
    (void)worker;
    lp_evaluator *evaluator = context;
    const lp_batch *batch = &evaluator->batch;
    const lapse_model *model = evaluator->model;
    int types = model->config.event_types, a = batch->shard_targets[shard];
    double *answer = evaluator->scratch + (size_t)shard * (size_t)types;
    lp_verdicts *verdicts = &evaluator->verdicts[LP_TARGET_EVENT];
    const int32_t *segment = lp_batch_segments(batch, shard);
    for (int w = batch->shard_window[shard], s = 0; w < batch->shard_window[shard + 1]; w++, s++) {
        int64_t start = (int64_t)evaluator->targets.dataset->start[batch->sequence[w]];
        for (; a < batch->shard_targets[shard + 1] && batch->target_position[a] < segment[s + 1]; a++) {
            int64_t target_position = batch->event[w] + batch->target_position[a] - segment[s] + 1;
            lp_baseline_query(model, evaluator->targets.dataset, evaluator->translation.columns.type, start,
                              target_position, answer);
            judge(answer, types, batch->target[a], &verdicts->predicted[a], &verdicts->loss[a]);
        }
    }
}

static void add_case(lp_evaluator *evaluator, int64_t sequence, int target_position)
{
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        lp_verdicts *verdicts = &evaluator->verdicts[i];
        if (verdicts->cases)
            verdicts->cases[evaluator->case_count] =
                (lp_case){sequence, truth(&evaluator->batch, i)[target_position], verdicts->predicted[target_position],
                          verdicts->loss[target_position]};
    }
    evaluator->case_count++;
}

/* Appends the batch's cases in their order. */
static void collect(lp_evaluator *evaluator)
{
    const lp_batch *batch = &evaluator->batch;
    for (int shard = 0; shard < batch->shard_count; shard++) {
        const int32_t *segment = lp_batch_segments(batch, shard);
        int a = batch->shard_targets[shard], w = batch->shard_window[shard];
        for (int s = 0; s < batch->shard_window[shard + 1] - w; s++)
            for (; a < batch->shard_targets[shard + 1] && batch->target_position[a] < segment[s + 1]; a++)
                add_case(evaluator, batch->sequence[w + s], a);
    }
}

static lp_batch_place place_of(const lp_evaluator *evaluator, int64_t first)
{
    int64_t left = evaluator->windows.count - first;
    int most = evaluator->batch.capacity_windows;
    return (lp_batch_place){0, first, left < most ? (int)left : most};
}

/* Lays out the windows from `first` on, and on a device begins to do so with those after them. */
static void fill_batch(lp_evaluator *evaluator, int64_t first)
{
    lp_batch_place place = place_of(evaluator, first);
    lp_row_union none = {0};
    if (evaluator->backend->host) {
        lp_batch_fill(&evaluator->batch, &evaluator->windows, first, place.count, &evaluator->targets,
                      lp_model_target_known(&evaluator->model->config), &evaluator->translation.columns);
        return;
    }
    lp_prefetch_take(&evaluator->prefetch, place, &evaluator->batch, &none);
    lp_prefetch_start(&evaluator->prefetch, place_of(evaluator, first + place.count));
}

void lp_evaluator_run(lp_evaluator *evaluator, const float *parameters)
{
    evaluator->case_count = 0;
    const lp_batch *batch = &evaluator->batch;
    lp_pass pass = {.batch = batch,
                    .parameters = parameters,
                    .times = evaluator->times,
                    .watch = evaluator->watch,
                    .on_shard = take_logits,
                    .context = evaluator};
    for (int64_t first = 0; first < evaluator->windows.count; first += batch->windows) {
        fill_batch(evaluator, first);
        if (ranks(evaluator))
            run_states(evaluator, &pass);
        else if (samples(evaluator) > 1)
            run_draws(evaluator, &pass);
        else if (lp_model_is_network(&evaluator->model->config))
            lp_runner_run(&evaluator->runner, &pass);
        else
            lp_threads_run(evaluator->threads, batch->shard_count, answer_shard, evaluator);
        collect(evaluator);
    }
}

static double accuracy(const lp_evaluator *evaluator)
{
    int64_t correct = 0, target_position = 0;
    for (int t = 0; t < LP_TARGET_COUNT; t++) {
        const lp_case *cases = evaluator->verdicts[t].cases;
        for (int64_t i = 0; cases && i < evaluator->case_count; i++)
            correct += cases[i].target == cases[i].predicted;
        target_position += cases ? evaluator->case_count : 0;
    }
    return (double)correct / (double)target_position;
}

/* A parameter on the host. */
static const float *on_host(lp_evaluator *evaluator, const lp_value *value, const float *parameters, float *copy)
{
    if (evaluator->backend->host)
        return parameters + value->offset;
    evaluator->backend->copy_to_host(evaluator->backend->context, copy, parameters + value->offset,
                                     (size_t)value->rows * (size_t)value->cols * sizeof *copy);
    return copy;
}

void lp_evaluator_rank(lp_evaluator *evaluator, const float *parameters)
{
    const lp_network *network = &evaluator->network;
    int dims = evaluator->model->config.dims;
    float *behind = evaluator->table ? evaluator->table + (size_t)network->items->rows * (size_t)dims : NULL;
    lp_ranking_states(&evaluator->ranking, dims, evaluator->states,
                      on_host(evaluator, network->items, parameters, evaluator->table),
                      on_host(evaluator, network->bias, parameters, behind));
}

lapse_status lp_evaluator_device(const lapse_model *model, const char *name, const lp_backend **backend,
                                 lapse_error *error)
{
    return lp_backend_open(name && lp_model_is_network(&model->config) ? name : "cpu", backend, error);
}

lapse_status lp_evaluator_run_model(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_backend *backend = evaluator->backend;
    const float *parameters = evaluator->model->parameters;
    if (!backend->host) {
        size_t size = evaluator->network.graph.parameter_size * sizeof *parameters;
        evaluator->parameters = backend->buffer_new(backend->context, size);
        if (!evaluator->parameters)
            return lp_fail_memory(error, "the parameters", size);
        backend->copy_to_device(backend->context, evaluator->parameters, parameters, size);
        parameters = evaluator->parameters;
    }
    lp_evaluator_run(evaluator, parameters);
    if (ranks(evaluator))
        lp_evaluator_rank(evaluator, parameters);
    const char *problem = backend->device_error ? backend->device_error(backend->context) : NULL;
    return problem ? lp_fail(error, LAPSE_ERROR_INTERNAL, "the GPU failed: %s", problem) : LAPSE_OK;
}

double lp_evaluator_score(lp_evaluator *evaluator, const float *parameters)
{
    if (!ranks(evaluator))
        return accuracy(evaluator);
    lp_evaluator_rank(evaluator, parameters);
    return lp_ranking_ndcg(&evaluator->ranking, LP_PROTOCOL_UNSEEN, 10);
}

const char *lp_evaluator_score_name(const lp_evaluator *evaluator)
{
    return ranks(evaluator) ? "NDCG@10" : "accuracy";
}

/* --------------------------------------------------------------------------------------- the public call ----- */

void lapse_evaluate_options_default(lapse_evaluate_options *options)
{
    *options = (lapse_evaluate_options){.split = "test", .bootstrap = 1000, .device = "cpu"};
}

lapse_status lp_evaluator_target(const lapse_model *model, const char *name, lp_target *target, lapse_error *error)
{
    *target = lp_model_target_find(model, name);
    if (lp_model_ranks(&model->config))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "a model that recommends is scored by its ranks, not by its first choice: lapse_rank_evaluate");
    if (*target != LP_TARGET_COUNT)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict '%s', but the %s", name,
                   lp_predict_names[lp_model_target_find(model, NULL)]);
}

lapse_status lp_evaluator_split(const lapse_model *model, const lapse_dataset *dataset, const char *name,
                                uint8_t **split, lp_split *wanted, lapse_error *error)
{
    *split = NULL;
    *wanted = LP_SPLIT_COUNT;
    if (strcmp(name, "all") == 0)
        return LAPSE_OK;
    for (int i = 0; i < LP_SPLIT_COUNT; i++)
        if (strcmp(name, lp_split_name((lp_split)i)) == 0)
            *wanted = (lp_split)i;
    if (*wanted == LP_SPLIT_COUNT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "there is no split '%s'; there are train, valid, test and all", name);
    bool by_column = model->split_by == lp_split_rule_find("column");
    if (!by_column && lp_dataset_fingerprint(dataset) != model->fingerprint)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "this is not the dataset the model was trained on, so its split '%s' is not known here; "
                       "to score every event use the split 'all'",
                       name);
    if (by_column && !dataset->split)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the model was trained with a split column, and this dataset has none; "
                       "to score every event use the split 'all'");
    return lp_split_make(dataset, model->split_by, model->seed, split, error);
}

lapse_status lapse_evaluate(const lapse_model *model, const lapse_dataset *dataset,
                            const lapse_evaluate_options *options, lapse_scores *scores, lapse_error *error)
{
    uint8_t *split;
    lp_split wanted;
    lp_target target;
    LP_TRY(lp_evaluator_target(model, options->target, &target, error));
    const lp_backend *backend;
    LP_TRY(lp_evaluator_device(model, options->device, &backend, error));
    LP_TRY(lp_evaluator_split(model, dataset, options->split, &split, &wanted, error));
    int threads = options->threads > 0 ? options->threads : lp_threads_available();
    lp_evaluator evaluator;
    lapse_status status = lp_evaluator_init(&evaluator, backend, model, dataset, split, wanted, threads, error);
    if (status == LAPSE_OK) {
        status = lp_evaluator_run_model(&evaluator, error);
        if (status == LAPSE_OK)
            status = lp_scores_make(evaluator.verdicts[target].cases, evaluator.case_count,
                                    lp_model_target_names(model, target), options->bootstrap, scores, error);
        lp_evaluator_clear(&evaluator);
    }
    if (status == LAPSE_OK) {
        scores->target = lp_predict_names[target];
        scores->split = wanted == LP_SPLIT_COUNT ? "all" : lp_split_name(wanted);
        scores->target_time = lp_model_target_known(&model->config) ? "known" : "unknown";
    }
    lp_free(split);
    return status;
}
