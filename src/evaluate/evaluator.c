/* evaluator.c: predicts the events of a split, in batches, and collects predictions, losses and ranks. */
#include "evaluate/evaluator.h"

#include "data/dataset/fingerprint.h"
#include "data/dataset/split.h"
#include "model/when_head.h"
#include "data/dataset/target_events.h"

#include <math.h>
#include <string.h>

/* Windows of a batch, and of a shard. A batch of a recommender, which stores no probabilities, has more of them, so that many threads
 * wait less for each other. A device needs larger batches: DEVICE_TOKENS tokens, at most DEVICE_WINDOWS windows. */
enum { BATCH_WINDOWS = 64, RANKED_WINDOWS = 256, SHARD_WINDOWS = 4, DEVICE_TOKENS = 1 << 16, DEVICE_WINDOWS = 1024 };

/* A device copies states to pinned memory, of at most so many bytes, and is waited for after the last batch. */
enum { MAX_PINNED = 1 << 28 };

/* A window has few targets if the mean over all windows is at most this (nn/attention_block.h). */
enum { FEW_TARGETS = 8 };

/* Limits the validation of a recommender after each epoch to a few seconds: scores computed, but at least MIN_CASES
 * cases. */
enum { MAX_SCORES = 2000000000, MIN_CASES = 500 };

static bool ranks(const lp_evaluator *evaluator)
{
    return lp_model_ranks(&evaluator->model->config);
}

/* Frequency samples that predictions are averaged over. */
static int samples(const lp_evaluator *evaluator)
{
    return lp_network_samples(&evaluator->network);
}

static lapse_status make_states(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_model_config *config = &evaluator->model->config;
    size_t dims = (size_t)lp_model_state_dims(config), cases = (size_t)evaluator->windows.targets;
    const lp_backend *backend = evaluator->backend;
    size_t size = cases * dims * sizeof *evaluator->states;
    evaluator->direct = !backend->host && lp_network_samples(&evaluator->model->network) == 1 &&
                        !lp_network_time(&evaluator->model->network) && size <= MAX_PINNED;
    evaluator->states = evaluator->direct ? backend->pinned_new(backend->context, size)
                                          : lp_alloc(cases * dims, sizeof *evaluator->states);
    return evaluator->states ? LAPSE_OK : lp_fail_memory(error, "evaluation", size);
}

/* Chooses the cases to rank. If they are a sample, the targets are restricted to it. */
static lapse_status make_ranking(lp_evaluator *evaluator, const lp_ranking_setup *given, lapse_error *error)
{
    lp_targets *targets = &evaluator->targets;
    lp_ranking *ranking = &evaluator->ranking;
    lp_ranking_setup setup = *given;
    setup.dataset = targets->dataset;
    setup.type = evaluator->id_map.columns.type;
    setup.items = evaluator->model->config.event_types;
    setup.split = targets->split;
    setup.wanted = targets->wanted;
    setup.threads = evaluator->threads;
    if (!evaluator->backend->host && lp_model_is_network(&evaluator->model->config)) {
        setup.device = evaluator->backend;
        setup.dims = lp_model_state_dims(&evaluator->model->config);
    }
    LP_TRY(lp_ranking_init(ranking, &setup, error));
    if (ranking->case_count == ranking->case_total)
        return LAPSE_OK;
    size_t events = (size_t)targets->dataset->event_count;
    evaluator->sampled = lp_alloc(events, 1);
    if (!evaluator->sampled)
        return lp_fail_memory(error, "evaluation", events);
    memset(evaluator->sampled, LP_SPLIT_TRAIN, events);
    for (int64_t c = 0; c < ranking->case_count; c++)
        evaluator->sampled[ranking->cases[c].event] = LP_SPLIT_TEST;
    targets->split = evaluator->sampled;
    targets->wanted = LP_SPLIT_TEST;
    return LAPSE_OK;
}

static lapse_status make_predictions(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_model_config *config = &evaluator->model->config;
    size_t tokens = (size_t)evaluator->batch.capacity_windows * (size_t)evaluator->targets.context;
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        lp_predictions *predictions = &evaluator->predictions[i];
        if (!lp_model_predicts(config, (lp_target)i))
            continue;
        predictions->predicted = lp_alloc(tokens, sizeof *predictions->predicted);
        predictions->loss = lp_alloc(tokens, sizeof *predictions->loss);
        predictions->cases = lp_alloc((size_t)evaluator->windows.targets, sizeof *predictions->cases);
        if (!predictions->predicted || !predictions->loss || !predictions->cases)
            return lp_fail_memory(error, "evaluation", (size_t)evaluator->windows.targets * sizeof(lp_case));
        if (lp_network_samples(&evaluator->model->network) == 1)
            continue;
        size_t count = tokens * (size_t)lp_model_target_size(config, (lp_target)i);
        predictions->probabilities = lp_alloc(count, sizeof(double));
        if (!predictions->probabilities)
            return lp_fail_memory(error, "evaluation", count * sizeof(double));
    }
    return LAPSE_OK;
}

static lapse_status make_times(lp_evaluator *evaluator, lapse_error *error)
{
    lp_time_predictions *time = &evaluator->time;
    const lapse_model *model = evaluator->model;
    int count = lp_network_samples(&model->network);
    size_t tokens = (size_t)evaluator->batch.capacity_windows * (size_t)evaluator->targets.context;
    if (!lp_network_time(&model->network))
        return LAPSE_OK;
    time->width = lp_network_time(&model->network)->cols;
    time->floor = model->config.when_floor;
    time->outputs = lp_alloc(tokens * (size_t)count * (size_t)time->width, sizeof *time->outputs);
    time->memory = lp_alloc((size_t)evaluator->threads * lp_time_law_size(model, count), sizeof *time->memory);
    time->batch = lp_alloc(tokens, sizeof *time->batch);
    time->cases = lp_alloc((size_t)evaluator->windows.targets, sizeof *time->cases);
    if (time->outputs && time->memory && time->batch && time->cases)
        return LAPSE_OK;
    return lp_fail_memory(error, "evaluation", tokens * (size_t)count * (size_t)time->width * sizeof(float));
}

static int windows_of_batch(const lp_evaluator *evaluator)
{
    int64_t windows = DEVICE_TOKENS / evaluator->targets.context, all = evaluator->windows.count;
    if (evaluator->backend->host)
        return ranks(evaluator) ? RANKED_WINDOWS : BATCH_WINDOWS;
    if (windows < BATCH_WINDOWS)
        return BATCH_WINDOWS;
    windows = windows < DEVICE_WINDOWS ? windows : DEVICE_WINDOWS;
    return (int)(windows < all ? windows : all);
}

/* At least the largest number of targets of a window. */
static int most_targets(const lp_windows *windows)
{
    int most = 0;
    for (int64_t w = 0; w < windows->count; w++) {
        int count = windows->windows[w].count - windows->windows[w].from;
        most = count > most ? count : most;
    }
    return most;
}

/* On a device a second batch is filled while the device computes the first. */
static lapse_status make_batches(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_model_config *config = &evaluator->model->config;
    int shards = evaluator->backend->host ? windows_of_batch(evaluator) / SHARD_WINDOWS : 1;
    lp_batch_source source = {.windows = &evaluator->windows,
                              .targets = &evaluator->targets,
                              .columns = &evaluator->id_map.columns,
                              .target_known = lp_model_target_known(config)};
    LP_TRY(lp_batch_init(&evaluator->batch, windows_of_batch(evaluator), evaluator->targets.context, shards,
                         config->field_count, error));
    evaluator->batch.window_targets = most_targets(&evaluator->windows);
    LP_TRY(lp_batch_init_inputs(&evaluator->batch,
                                lp_network_inputs(&evaluator->model->network, &evaluator->model->config), error));
    size_t batches = (size_t)lp_evaluator_batches(evaluator);
    evaluator->batch_open_nll = lp_alloc(batches, sizeof(double));
    if (!evaluator->batch_open_nll)
        return lp_fail_memory(error, "evaluation", batches * sizeof(double));
    if (evaluator->backend->host)
        return LAPSE_OK;
    return lp_prefetch_init(&evaluator->prefetch, &source, &evaluator->batch, error);
}

/* Whether attending from the targets alone, over the input of the last block, costs less than from all tokens over keys and values that
 * are computed once. */
static bool few_targets(const lp_windows *windows)
{
    return windows->targets <= FEW_TARGETS * windows->count;
}

static lapse_status make_buffers(lp_evaluator *evaluator, lapse_error *error)
{
    const lp_model_config *config = &evaluator->model->config;
    LP_TRY(make_batches(evaluator, error));
    if (!ranks(evaluator))
        LP_TRY(make_predictions(evaluator, error));
    if (!lp_model_is_network(config)) {
        size_t count = (size_t)evaluator->batch.shard_count * (size_t)config->event_types;
        evaluator->scratch = lp_alloc(count, sizeof *evaluator->scratch);
        return evaluator->scratch ? LAPSE_OK : lp_fail_memory(error, "evaluation", count * sizeof(double));
    }
    if (ranks(evaluator))
        LP_TRY(make_states(evaluator, error));
    LP_TRY(make_times(evaluator, error));
    LP_TRY(lp_network_build_evaluation(&evaluator->network, config, few_targets(&evaluator->windows), error));
    return lp_runner_init(&evaluator->runner, evaluator->backend, &evaluator->network, &evaluator->batch,
                          evaluator->threads, error);
}

/* targets: dataset, split, wanted, censored and end. */
static lapse_status init(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                         const lp_targets *targets, int threads, const lp_ranking_setup *setup, lapse_error *error)
{
    lp_split wanted = targets->wanted;
    *evaluator = (lp_evaluator){.backend = backend, .model = model, .threads = threads, .targets = *targets};
    evaluator->targets.censored = false;
    evaluator->targets.context = model->config.context;
    evaluator->targets.last_only = model->network.anchored;
    lapse_status status = lp_id_map_init(&evaluator->id_map, model, targets->dataset, error);
    if (status == LAPSE_OK && ranks(evaluator))
        status = make_ranking(evaluator, setup, error);
    if (status == LAPSE_OK)
        status = lp_windows_evaluation(&evaluator->windows, &evaluator->targets, error);
    if (status == LAPSE_OK && evaluator->windows.targets == 0)
        status = lp_fail(error, LAPSE_ERROR_INPUT, "there is nothing to predict: no sequence has a second event%s%s%s",
                         wanted == LP_SPLIT_COUNT ? "" : " in the split '",
                         wanted == LP_SPLIT_COUNT ? "" : lp_split_name(wanted), wanted == LP_SPLIT_COUNT ? "" : "'");
    evaluator->targets.censored = targets->censored && !ranks(evaluator);
    if (status == LAPSE_OK && evaluator->targets.censored)
        status = lp_windows_evaluation(&evaluator->windows, &evaluator->targets, error);
    if (status == LAPSE_OK)
        status = make_buffers(evaluator, error);
    if (status != LAPSE_OK)
        lp_evaluator_clear(evaluator);
    return status;
}

lapse_status lp_evaluator_init_ranked(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                                      const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, int threads,
                                      const lp_ranking_setup *setup, lapse_error *error)
{
    lp_targets targets = {.dataset = dataset, .split = split, .wanted = wanted};
    return init(evaluator, backend, model, &targets, threads, setup, error);
}

static lp_ranking_setup usual_ranking(const lapse_model *model)
{
    int64_t cases = (int64_t)MAX_SCORES / model->config.event_types;
    return (lp_ranking_setup){.max_cases = cases > MIN_CASES ? cases : MIN_CASES, .seed = model->seed};
}

lapse_status lp_evaluator_init(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                               const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, int threads,
                               lapse_error *error)
{
    lp_ranking_setup setup = usual_ranking(model);
    return lp_evaluator_init_ranked(evaluator, backend, model, dataset, split, wanted, threads, &setup, error);
}

lapse_status lp_evaluator_init_censored(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                                        const lapse_dataset *dataset, const uint8_t *split, lp_split wanted,
                                        int threads, double end, lapse_error *error)
{
    lp_ranking_setup setup = usual_ranking(model);
    lp_targets targets = {.dataset = dataset, .split = split, .wanted = wanted, .censored = true, .end = end};
    return init(evaluator, backend, model, &targets, threads, &setup, error);
}

void lp_evaluator_clear(lp_evaluator *evaluator)
{
    lp_prefetch_clear(&evaluator->prefetch);
    lp_id_map_clear(&evaluator->id_map);
    lp_windows_clear(&evaluator->windows);
    lp_batch_clear(&evaluator->batch);
    lp_runner_clear(&evaluator->runner);
    lp_graph_clear(&evaluator->network.graph);
    lp_free(evaluator->scratch);
    lp_free(evaluator->batch_open_nll);
    if (evaluator->direct && evaluator->states)
        evaluator->backend->pinned_free(evaluator->backend->context, evaluator->states);
    else
        lp_free(evaluator->states);
    lp_free(evaluator->sampled);
    if (evaluator->parameters)
        evaluator->backend->buffer_free(evaluator->backend->context, evaluator->parameters);
    lp_ranking_clear(&evaluator->ranking);
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        lp_free(evaluator->predictions[i].probabilities);
        lp_free(evaluator->predictions[i].predicted);
        lp_free(evaluator->predictions[i].loss);
        lp_free(evaluator->predictions[i].cases);
    }
    lp_free(evaluator->time.outputs);
    lp_free(evaluator->time.memory);
    lp_free(evaluator->time.batch);
    lp_free(evaluator->time.cases);
    lp_item_rows_clear(&evaluator->item_rows);
    lp_free(evaluator->target_scores);
    lp_free(evaluator->partials);
    lp_free(evaluator->types);
    *evaluator = (lp_evaluator){0};
}

/* Computes the most probable class, ties to the smaller id, and the log-loss. */
static void score_probabilities(const double *probabilities, int count, int target, int32_t *predicted, double *loss)
{
    int best = 0;
    for (int c = 1; c < count; c++)
        best = probabilities[c] > probabilities[best] ? c : best;
    *predicted = best;
    *loss = -log(probabilities[target]);
}

/* The same from logits, in double. */
static void score_logits(const float *logits, int count, int target, int32_t *predicted, double *loss)
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

static const int32_t *labels(const lp_batch *batch, int target)
{
    return target == LP_TARGET_EVENT ? batch->target : batch->action;
}

/* Copies the outputs of one frequency sample that tell the time. */
static void take_times(lp_evaluator *evaluator, int shard, const lp_outcome *outcome)
{
    const lp_batch *batch = &evaluator->batch;
    lp_time_predictions *time = &evaluator->time;
    size_t width = (size_t)time->width, count = (size_t)samples(evaluator);
    int first = batch->shard_targets[shard];
    const float *values = lp_outcome_time(outcome);
    for (int a = first; values && a < batch->shard_targets[shard + 1]; a++)
        memcpy(time->outputs + ((size_t)a * count + (size_t)evaluator->sample) * width,
               values + (size_t)(a - first) * width, width * sizeof *time->outputs);
}

/* The first target of a shard at or behind a token of it. */
static int target_from(const lp_batch *batch, int shard, int token)
{
    int low = batch->shard_targets[shard], high = batch->shard_targets[shard + 1];
    while (low < high) {
        int middle = (low + high) / 2;
        if (batch->target_position[middle] < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Scores the laws of a window's targets, from all frequency samples. A task is a window and not a shard, because a device has one
 * shard. */
static void score_times(void *context, int window, int worker)
{
    lp_evaluator *evaluator = context;
    const lp_batch *batch = &evaluator->batch;
    const lp_targets *targets = &evaluator->targets;
    const double *times = targets->dataset->time;
    lp_time_predictions *time = &evaluator->time;
    int count = samples(evaluator), shard = 0;
    while (window >= batch->shard_window[shard + 1])
        shard++;
    const int32_t *segment = lp_batch_segments(batch, shard) + (window - batch->shard_window[shard]);
    double *memory = time->memory + (size_t)worker * lp_time_law_size(evaluator->model, count);
    for (int a = target_from(batch, shard, segment[0]), end = target_from(batch, shard, segment[1]); a < end; a++) {
        int64_t event = batch->event[window] + batch->target_position[a] - segment[0] + 1;
        const float *outputs = time->outputs + (size_t)a * (size_t)count * (size_t)time->width;
        lp_next_time law = lp_time_law_of(evaluator->model, times[event - 1], outputs, count, memory);
        if (lp_target_is_open(targets, batch->sequence[window], event))
            time->batch[a] = (lp_time_case){.nll = -lp_next_time_log_survival(&law, targets->end - times[event - 1])};
        else
            time->batch[a] = lp_time_case_of(&law, batch->sequence[window], event, times[event] - times[event - 1],
                                             time->floor, time->whole ? evaluator->model->config.when_span : 0);
    }
}

static void take_logits(void *context, int shard, const lp_outcome *outcome)
{
    lp_evaluator *evaluator = context;
    const lp_batch *batch = &evaluator->batch;
    take_times(evaluator, shard, outcome);
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        if (!outcome->logits[i])
            continue;
        int size = lp_model_target_size(&evaluator->model->config, (lp_target)i);
        lp_predictions *predictions = &evaluator->predictions[i];
        for (int l = batch->shard_labels[shard]; l < batch->shard_labels[shard + 1]; l++)
            score_logits(outcome->logits[i] + (size_t)batch->label_row[l] * (size_t)size, size, labels(batch, i)[l],
                         &predictions->predicted[l], &predictions->loss[l]);
    }
}

static void add_probabilities(void *context, int shard, const lp_outcome *outcome)
{
    lp_evaluator *evaluator = context;
    const lp_batch *batch = &evaluator->batch;
    const lp_model_config *config = &evaluator->model->config;
    take_times(evaluator, shard, outcome);
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        if (!outcome->logits[i])
            continue;
        int size = lp_model_target_size(config, (lp_target)i);
        for (int l = batch->shard_labels[shard]; l < batch->shard_labels[shard + 1]; l++)
            lp_softmax_add(outcome->logits[i] + (size_t)batch->label_row[l] * (size_t)size, size,
                           1.0 / samples(evaluator),
                           evaluator->predictions[i].probabilities + (size_t)l * (size_t)size);
    }
}

static void score_means(lp_evaluator *evaluator, int target)
{
    const lp_batch *batch = &evaluator->batch;
    lp_predictions *predictions = &evaluator->predictions[target];
    int size = lp_model_target_size(&evaluator->model->config, (lp_target)target);
    for (int l = 0; l < batch->labels; l++)
        score_probabilities(predictions->probabilities + (size_t)l * (size_t)size, size, labels(batch, target)[l],
                            &predictions->predicted[l], &predictions->loss[l]);
}

/* Runs the batch for every frequency sample. */
static void run_passes(lp_evaluator *evaluator, lp_pass *pass, lp_on_shard on_shard)
{
    pass->on_shard = on_shard;
    for (pass->sample = 0; pass->sample < samples(evaluator); pass->sample++) {
        evaluator->sample = pass->sample;
        lp_runner_run(&evaluator->runner, pass);
    }
}

/* Predicts with the mean probabilities over the model's frequency samples. */
static void run_samples(lp_evaluator *evaluator, lp_pass *pass)
{
    const lp_model_config *config = &evaluator->model->config;
    size_t count = (size_t)evaluator->batch.labels;
    for (int i = 0; i < LP_TARGET_COUNT; i++)
        if (lp_model_predicts(config, (lp_target)i))
            memset(evaluator->predictions[i].probabilities, 0,
                   count * (size_t)lp_model_target_size(config, (lp_target)i) * sizeof(double));
    run_passes(evaluator, pass, add_probabilities);
    for (int i = 0; i < LP_TARGET_COUNT; i++)
        if (lp_model_predicts(config, (lp_target)i))
            score_means(evaluator, i);
}

void lp_baseline_predict(const lapse_model *model, const lapse_dataset *dataset, const int32_t *type, int64_t start,
                         int64_t event, double *probabilities)
{
    double time = dataset->time[lp_model_target_known(&model->config) ? event : event - 1];
    model->config.row->predict(model, &(lp_query){type + start, event - start, time}, probabilities);
}

/* Adds the states of one frequency sample to their mean. Scores are linear in the state, so the mean state has the mean
 * scores. */
static void take_states(void *context, int shard, const lp_outcome *outcome)
{
    lp_evaluator *evaluator = context;
    const lp_batch *batch = &evaluator->batch;
    size_t dims = (size_t)lp_model_state_dims(&evaluator->model->config);
    int first = batch->shard_targets[shard], sample_count = samples(evaluator);
    size_t count = (size_t)(batch->shard_targets[shard + 1] - first) * dims;
    float *states = evaluator->states + (size_t)(evaluator->case_count + first) * dims;
    take_times(evaluator, shard, outcome);
    for (size_t i = 0; i < count; i++)
        states[i] += outcome->state[i] / (float)sample_count;
}

static void run_states(lp_evaluator *evaluator, lp_pass *pass)
{
    const lp_model_config *config = &evaluator->model->config;
    size_t dims = (size_t)lp_model_state_dims(config);
    memset(evaluator->states + (size_t)evaluator->case_count * dims, 0,
           (size_t)evaluator->batch.targets * dims * sizeof *evaluator->states);
    run_passes(evaluator, pass, take_states);
}

static void predict_shard(void *context, int shard, int worker)
{
    (void)worker;
    lp_evaluator *evaluator = context;
    const lp_batch *batch = &evaluator->batch;
    const lapse_model *model = evaluator->model;
    int types = model->config.event_types, a = batch->shard_targets[shard];
    double *probabilities = evaluator->scratch + (size_t)shard * (size_t)types;
    lp_predictions *predictions = &evaluator->predictions[LP_TARGET_EVENT];
    const int32_t *segment = lp_batch_segments(batch, shard);
    for (int w = batch->shard_window[shard], s = 0; w < batch->shard_window[shard + 1]; w++, s++) {
        int64_t start = (int64_t)evaluator->targets.dataset->start[batch->sequence[w]];
        for (; a < batch->shard_targets[shard + 1] && batch->target_position[a] < segment[s + 1]; a++) {
            int64_t event = batch->event[w] + batch->target_position[a] - segment[s] + 1;
            lp_baseline_predict(model, evaluator->targets.dataset, evaluator->id_map.columns.type, start, event,
                                probabilities);
            score_probabilities(probabilities, types, batch->target[a], &predictions->predicted[a],
                                &predictions->loss[a]);
        }
    }
}

static void add_case(lp_evaluator *evaluator, int64_t sequence, int target, int label)
{
    for (int i = 0; i < LP_TARGET_COUNT; i++) {
        lp_predictions *predictions = &evaluator->predictions[i];
        if (predictions->cases)
            predictions->cases[evaluator->case_count] = (lp_case){
                sequence, labels(&evaluator->batch, i)[label], predictions->predicted[label], predictions->loss[label]};
    }
    if (evaluator->time.width)
        evaluator->time.cases[evaluator->case_count] = evaluator->time.batch[target];
    evaluator->case_count++;
}

/* Appends the batch's cases in the order of events. Targets without a label are open. */
static void collect(lp_evaluator *evaluator, double *open_nll)
{
    const lp_batch *batch = &evaluator->batch;
    for (int shard = 0; shard < batch->shard_count; shard++) {
        const int32_t *segment = lp_batch_segments(batch, shard);
        int first = batch->shard_targets[shard], a = first, l = batch->shard_labels[shard];
        int w = batch->shard_window[shard], labels_end = batch->shard_labels[shard + 1];
        for (int s = 0; s < batch->shard_window[shard + 1] - w; s++)
            for (; a < batch->shard_targets[shard + 1] && batch->target_position[a] < segment[s + 1]; a++)
                if (l < labels_end && batch->label_row[l] == a - first)
                    add_case(evaluator, batch->sequence[w + s], a, l++);
                else
                    *open_nll += evaluator->time.batch[a].nll;
    }
}

static lp_batch_position position_of(const lp_evaluator *evaluator, int64_t first)
{
    int64_t left = evaluator->windows.count - first;
    int capacity = evaluator->batch.capacity_windows;
    return (lp_batch_position){0, first, left < capacity ? (int)left : capacity};
}

/* Fills the batch with the windows from `first` on; on a device, starts to prefetch the next batch. */
static void fill_batch(lp_evaluator *evaluator, int64_t first)
{
    lp_batch_position position = position_of(evaluator, first);
    lp_row_union none = {0};
    if (evaluator->backend->host) {
        lp_batch_fill(&evaluator->batch, &evaluator->windows, first, position.count, &evaluator->targets,
                      lp_model_target_known(&evaluator->model->config), &evaluator->id_map.columns);
        return;
    }
    lp_prefetch_take(&evaluator->prefetch, position, &evaluator->batch, &none);
    lp_prefetch_start(&evaluator->prefetch, position_of(evaluator, first + position.count));
}

void lp_evaluator_rank(lp_evaluator *evaluator, const float *parameters)
{
    const lp_network *network = &evaluator->network;
    lp_rank_states states = {lp_model_state_dims(&evaluator->model->config), evaluator->states,
                             parameters + network->items->offset, parameters + network->bias->offset,
                             lp_model_score_rule(&evaluator->model->config)};
    if (evaluator->item_rows.comm) {
        lp_evaluator_rank_divided(evaluator, &states);
        return;
    }
    if (!evaluator->comm) {
        lp_ranking_states(&evaluator->ranking, &states, 0, evaluator->case_count);
        return;
    }
    states.state -= evaluator->own_first * states.dims;
    lp_ranking_states(&evaluator->ranking, &states, evaluator->own_first, evaluator->own_end);
    lp_evaluator_gather(evaluator, evaluator->ranking.results, sizeof *evaluator->ranking.results);
}

/* Fetches the rows of the events of a batch. */
static void fetch_rows(lp_evaluator *evaluator, int tokens, const float *parameters)
{
    memcpy(evaluator->types, evaluator->batch.type, (size_t)tokens * sizeof *evaluator->types);
    lp_item_rows_fetch_types(&evaluator->item_rows, evaluator->types, tokens, (float *)(uintptr_t)parameters);
}

/* A run whose launches are timed waits for each batch. */
void lp_evaluator_run(lp_evaluator *evaluator, const float *parameters)
{
    bool direct = evaluator->direct && !evaluator->times;
    int rank = lp_comm_rank(evaluator->comm);
    evaluator->case_count = 0;
    int64_t capacity = evaluator->batch.capacity_windows, all = lp_evaluator_batches(evaluator);
    int64_t number = lp_comm_begin(evaluator->comm, all, rank), end = lp_comm_begin(evaluator->comm, all, rank + 1);
    end = end * capacity < evaluator->windows.count ? end * capacity : evaluator->windows.count;
    const lp_batch *batch = &evaluator->batch;
    int64_t state_dims = lp_model_state_dims(&evaluator->model->config);
    lp_pass pass = {.batch = batch,
                    .parameters = parameters,
                    .times = evaluator->times,
                    .profiler = evaluator->profiler,
                    .on_shard = take_logits,
                    .context = evaluator};
    /* With divided tables all ranks take as many turns. */
    int64_t turns = evaluator->item_rows.comm ? lp_comm_most(evaluator->comm, all)
                                              : lp_comm_begin(evaluator->comm, all, rank + 1) - number;
    for (int64_t first = number * capacity; turns > 0; turns--, first += capacity) {
        if (first < end)
            fill_batch(evaluator, first);
        if (evaluator->item_rows.comm)
            fetch_rows(evaluator, first < end ? batch->tokens : 0, parameters);
        if (first >= end)
            continue;
        pass.state_to = direct ? evaluator->states + evaluator->case_count * state_dims : NULL;
        if (ranks(evaluator) && !direct)
            run_states(evaluator, &pass);
        else if (samples(evaluator) > 1)
            run_samples(evaluator, &pass);
        else if (lp_model_is_network(&evaluator->model->config))
            lp_runner_run(&evaluator->runner, &pass);
        else
            lp_threads_run(evaluator->threads, batch->shard_count, predict_shard, evaluator);
        if (evaluator->time.width)
            lp_threads_run(evaluator->threads, batch->windows, score_times, evaluator);
        evaluator->batch_open_nll[number] = 0;
        collect(evaluator, &evaluator->batch_open_nll[number++]);
    }
    if (direct)
        evaluator->backend->sync(evaluator->backend->context);
    lp_evaluator_join(evaluator);
}
