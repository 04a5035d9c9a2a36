/* trainer.c: the training loop's state and steps: batches, passes through the network, optimizer steps, validation after each
 * epoch. lapse_train (train.c) runs it. */
#include "train/trainer.h"

#include "backend/reduce.h"
#include "base/clock.h"
#include "data/dataset/fingerprint.h"
#include "data/dataset/target_events.h"
#include "model/field_statistics.h"
#include "train/learning_rate.h"
#include "train/provenance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static lapse_status make_model(lp_trainer *trainer, lapse_error *error)
{
    lp_model_config config = trainer->options.model;
    lp_model_field fields[LP_FIELD_LIMIT];
    config.fields = fields;
    if (lp_model_is_network(&config))
        lp_field_statistics(trainer->dataset, trainer->split, config.field_dims, fields);
    if (lp_model_reads_gap(&config))
        LP_TRY(lp_gap_statistics(trainer->dataset, trainer->split, &config.gap, error));
    if (config.when)
        LP_TRY(lp_when_statistics(trainer->dataset, trainer->split, &config, error));
    lp_names types = trainer->dataset->types;
    if (trainer->item_init.vectors) {
        types = lp_intern_names(&trainer->item_init.names);
        config.event_types = (int)types.count;
    }
    config.sequences = config.row->sequence_input ? (int)trainer->dataset->sequence_count : 0;
    LP_TRY(lp_model_new(&config, &types, &trainer->model, error));
    lp_model_divide(trainer->model, trainer->options.run.shard_items ? trainer->comm : NULL);
    trainer->model->seed = trainer->options.run.seed;
    trainer->model->fingerprint = lp_dataset_fingerprint(trainer->dataset);
    trainer->model->split_by = lp_split_rule_find(lapse_split_by_names()[trainer->options.run.split_by]);
    return lp_provenance_record(trainer->model, trainer->dataset, trainer->split, &trainer->options, error);
}

static lapse_status make_target_split(lp_trainer *trainer, lapse_error *error)
{
    size_t events = (size_t)trainer->dataset->event_count;
    trainer->target_split = lp_alloc(events, 1);
    if (!trainer->target_split)
        return lp_fail_memory(error, "the split", events);
    memcpy(trainer->target_split, trainer->split, events);
    return lp_target_events_mask(trainer->dataset, trainer->options.model.target, &trainer->target_split, error);
}

/* Negative sampling and the batch vocabularies of a sampled loss. */
static lapse_status make_vocabulary(lp_trainer *trainer, lapse_error *error)
{
    const lp_run_settings *run = &trainer->options.run;
    const lp_model_config *config = &trainer->trained->config;
    const int32_t *type = trainer->id_map.columns.type;
    /* Items that never occur cannot be negatives: the loss would teach that they never will. */
    bool by_target = lp_model_samples_by_target(config),
         met = trainer->item_init.vectors && config->negatives == LP_NEGATIVES_UNIFORM;
    double power = met ? 0 : config->popularity_power;
    trainer->negatives =
        (lp_negatives){.sampling = met ? LP_NEGATIVES_POPULARITY : (lp_negative_sampling)config->negatives,
                       .count = by_target ? config->negative_count : 0,
                       .shared = by_target ? 0 : config->negative_count,
                       .corrected = lp_model_loss(config)->corrected,
                       .unseen = config->negatives_unseen,
                       .items = config->event_types,
                       .seed = run->seed};
    LP_TRY(lp_negatives_init(&trainer->negatives, trainer->dataset, trainer->split, type, power, error));
    LP_TRY(lp_batch_init_vocabulary(&trainer->batch, trainer->negatives.count, trainer->negatives.shared,
                                    config->event_types, error));
    trainer->vocabulary = (lp_batch_vocabulary){
        .negatives = &trainer->negatives,
        .dataset = trainer->dataset,
        .type = type,
        .items = config->event_types,
        .threads = trainer->backend->host ? trainer->backend->max_threads(trainer->backend->context, run->threads)
                                          : (int)(sizeof trainer->prefetch / sizeof *trainer->prefetch)};
    LP_TRY(lp_batch_vocabulary_init(&trainer->vocabulary, error));
    return lp_row_union_init(&trainer->rows, &trainer->batch, error);
}

/* Evaluates the current parameters on the validation split. Returns the metric that selects the best epoch. */
static double validate(lp_trainer *trainer, double metrics[LP_METRIC_COLUMNS])
{
    lp_evaluator_run(&trainer->evaluator, trainer->parameters);
    lp_evaluator_metrics(&trainer->evaluator, trainer->parameters, metrics);
    return lp_metric_combine(&trainer->trained->config, trainer->select, metrics);
}

void lp_trainer_copy(const lp_trainer *trainer, float *to, const float *from)
{
    if (trainer->divided)
        lp_item_rows_copy(&trainer->network.graph, trainer->divided, to, from);
    else
        trainer->backend->copy_to_device(trainer->backend->context, to, from, trainer->adam.size * sizeof *to);
}

lapse_status lp_trainer_place_items(lp_trainer *trainer, lapse_error *error)
{
    if (!trainer->item_init.vectors)
        return LAPSE_OK;
    LP_TRY(lp_item_init_place(&trainer->item_init, trainer->trained, error));
    lp_trainer_copy(trainer, trainer->parameters, trainer->trained->parameters);
    trainer->state.best_score = validate(trainer, trainer->metrics);
    return LAPSE_OK;
}

/* The same to host memory. */
static void take_parameters(const lp_trainer *trainer, float *to, const float *from)
{
    if (trainer->divided)
        lp_item_rows_copy(&trainer->network.graph, trainer->divided, to, from);
    else
        trainer->backend->copy_to_host(trainer->backend->context, to, from, trainer->adam.size * sizeof *to);
}

/* The current parameters, at their initial values. */
static lapse_status make_parameters(lp_trainer *trainer, lapse_error *error)
{
    const lp_backend *backend = trainer->backend;
    const lp_run_settings *run = &trainer->options.run;
    size_t size = trainer->adam.size * sizeof(float);
    float *initial = trainer->trained->parameters;
    trainer->parameters = backend->buffer_new(backend->context, size);
    trainer->losses =
        backend->pinned_new(backend->context, (size_t)LP_LOSS_STEPS * (size_t)run->shards * sizeof(float));
    if (!trainer->parameters || !trainer->losses)
        return lp_fail_memory(error, "the parameters", size);
    if (run->ema_decay > 0) {
        trainer->average = lp_alloc_sparse(trainer->adam.size, sizeof *trainer->average);
        trainer->newest = lp_alloc_sparse(trainer->adam.size, sizeof *trainer->newest);
        if (!trainer->average || !trainer->newest)
            return lp_fail_memory(error, "the average of the parameters", 2 * size);
    }
    float *const arrays[] = {trainer->parameters, trainer->adam.moment1, trainer->adam.moment2, trainer->average,
                             trainer->newest};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        lp_item_rows_place(&trainer->network.graph, trainer->divided, arrays[i]);
    lp_network_init_rows(&trainer->network.graph, trainer->divided, run->seed, initial);
    lp_item_init_fill(&trainer->item_init, trainer->trained);
    lp_trainer_copy(trainer, trainer->parameters, initial);
    if (!trainer->network.encoding || !trainer->network.encoding->sample)
        return LAPSE_OK;
    LP_TRY(lp_sampler_init(&trainer->sampler, &trainer->network, backend, error));
    lp_sampler_store(&trainer->sampler, run->seed, trainer->parameters);
    take_parameters(trainer, initial, trainer->parameters);
    return LAPSE_OK;
}

/* While a device computes, two threads prefetch the next two batches. */
static lapse_status make_prefetch(lp_trainer *trainer, lapse_error *error)
{
    lp_batch_source source = {.windows = &trainer->windows,
                              .targets = &trainer->targets,
                              .columns = &trainer->id_map.columns,
                              .vocabulary = trainer->batch.item_capacity > 0 ? &trainer->vocabulary : NULL,
                              .target_known = lp_model_target_known(&trainer->trained->config),
                              .seed = trainer->options.run.seed};
    for (int i = 0; !trainer->backend->host && i < 2; i++) {
        source.worker = i;
        LP_TRY(lp_prefetch_init(&trainer->prefetch[i], &source, &trainer->batch, error));
    }
    return LAPSE_OK;
}

static lapse_status make_validation(lp_trainer *trainer, lapse_error *error)
{
    double end;
    int threads = trainer->options.run.threads;
    if (!lp_model_censors(&trainer->trained->config))
        return lp_evaluator_init(&trainer->evaluator, trainer->backend, trainer->trained, trainer->dataset,
                                 trainer->target_split, LP_SPLIT_VALID, threads, error);
    LP_TRY(lp_split_end(trainer->dataset, trainer->model->split_by, trainer->split, LP_SPLIT_VALID, &end, error));
    return lp_evaluator_init_censored(&trainer->evaluator, trainer->backend, trainer->trained, trainer->dataset,
                                      trainer->target_split, LP_SPLIT_VALID, threads, end, error);
}

/* Prepares the training of the network of `trained`. */
static lapse_status make_network(lp_trainer *trainer, lapse_model *trained, lapse_error *error)
{
    const lp_run_settings *run = &trainer->options.run;
    const lp_model_config *config = &trained->config;
    trainer->trained = trained;
    trainer->select = config->of_times ? LP_METRIC_TIME_LOSS : (lp_metric)run->select;
    LP_TRY(lp_network_build(&trainer->network, config, true, error));
    LP_TRY(lp_id_map_init(&trainer->id_map, trainer->trained, trainer->dataset, error));
    LP_TRY(lp_batch_init(&trainer->batch, run->batch, config->context, run->shards, config->field_count, error));
    LP_TRY(
        lp_batch_init_inputs(&trainer->batch, lp_network_inputs(&trainer->network, &trainer->trained->config), error));
    if (lp_model_samples_items(config))
        LP_TRY(make_vocabulary(trainer, error));
    LP_TRY(lp_runner_init(&trainer->runner, trainer->backend, &trainer->network, &trainer->batch, run->threads, error));
    trainer->runner.precision = (lp_precision)run->precision;
    trainer->adam = (lp_adam){
        .shards = run->shards,
        .threads = run->threads,
        .item_capacity = trainer->batch.item_capacity,
        .learning_rate = run->learning_rate,
        .beta1 = run->beta1,
        .beta2 = run->beta2,
        .epsilon = 1e-8,
        .l2 = run->l2,
        .clip = run->clip,
    };
    trainer->divided = run->shard_items ? trainer->comm : NULL;
    LP_TRY(lp_rank_sums_init(&trainer->rank_sums, trainer->comm, run->shards, trainer->batch.item_capacity,
                             trainer->divided ? config->event_types : 0, error));
    LP_TRY(lp_adam_init(&trainer->adam, trainer->backend, &trainer->network.graph, error));
    if (trainer->divided)
        lp_rank_sums_divide(&trainer->rank_sums, &trainer->adam);
    LP_TRY(lp_item_rows_init(&trainer->item_rows, trainer->divided, &trainer->network.graph, config->event_types, 0,
                             error));
    LP_TRY(make_parameters(trainer, error));
    LP_TRY(make_prefetch(trainer, error));
    trainer->targets = (lp_targets){.dataset = trainer->dataset,
                                    .split = trainer->target_split,
                                    .wanted = LP_SPLIT_TRAIN,
                                    .context = config->context,
                                    .last_only = run->windows == LP_WINDOWS_EACH,
                                    .last_windows = run->windows == LP_WINDOWS_LAST,
                                    .censored = lp_model_censors(config)};
    if (lp_model_censors(config))
        LP_TRY(lp_split_end(trainer->dataset, trainer->model->split_by, trainer->split, LP_SPLIT_TRAIN,
                            &trainer->targets.end, error));
    trainer->state = (lp_trainer_state){.score = NAN, .best_score = NAN};
    LP_TRY(lp_history_reserve(trainer->trained, run->epochs, error));
    LP_TRY(make_validation(trainer, error));
    trainer->evaluator.runner.precision = trainer->runner.precision;
    return lp_evaluator_on_ranks(&trainer->evaluator, trainer->comm, error);
}

/* The ends of the observation of open gaps must be known before the first network is trained. */
static lapse_status check_ends(const lp_trainer *trainer, lapse_error *error)
{
    double end;
    bool censored = trainer->model->config.censoring == LP_CENSORING_ON;
    for (int split = LP_SPLIT_TRAIN; split <= LP_SPLIT_VALID && censored; split++)
        LP_TRY(lp_split_end(trainer->dataset, trainer->model->split_by, trainer->split, (lp_split)split, &end, error));
    return LAPSE_OK;
}

lapse_status lp_trainer_init(lp_trainer *trainer, const lapse_dataset *dataset, const lapse_train_options *options,
                             lapse_error *error)
{
    *trainer = (lp_trainer){.options = *options, .comm = options->comm};
    lp_resolved resolved;
    LP_TRY(lp_train_options_resolve(&trainer->options, dataset, &resolved, error));
    trainer->dataset = lp_dataset_share(dataset);
    trainer->split = resolved.split;
    lapse_status status =
        lp_item_init_open(&trainer->item_init, resolved.vectors, dataset, trainer->split, &trainer->options, error);
    if (status == LAPSE_OK)
        status = make_target_split(trainer, error);
    if (status == LAPSE_OK)
        status = lp_backend_open(lp_device_names()[trainer->options.run.device], &trainer->backend, error);
    if (status == LAPSE_OK)
        status = make_model(trainer, error);
    if (status == LAPSE_OK)
        status = check_ends(trainer, error);
    if (status == LAPSE_OK && lp_model_is_network(&trainer->model->config))
        status = make_network(trainer, trainer->model, error);
    if (status != LAPSE_OK)
        lp_trainer_clear(trainer);
    return status;
}

/* Frees all that make_network has made. */
static void clear_network(lp_trainer *trainer)
{
    lp_prefetch_clear(&trainer->prefetch[0]);
    lp_prefetch_clear(&trainer->prefetch[1]);
    lp_runner_clear(&trainer->runner);
    lp_graph_clear(&trainer->network.graph);
    lp_windows_clear(&trainer->windows);
    lp_id_map_clear(&trainer->id_map);
    lp_batch_clear(&trainer->batch);
    lp_adam_clear(&trainer->adam);
    lp_rank_sums_clear(&trainer->rank_sums);
    lp_item_rows_clear(&trainer->item_rows);
    lp_sampler_clear(&trainer->sampler);
    lp_negatives_clear(&trainer->negatives);
    lp_batch_vocabulary_clear(&trainer->vocabulary);
    lp_row_union_clear(&trainer->rows);
    lp_free(trainer->average);
    lp_free(trainer->newest);
    if (trainer->parameters)
        trainer->backend->buffer_free(trainer->backend->context, trainer->parameters);
    if (trainer->losses)
        trainer->backend->pinned_free(trainer->backend->context, trainer->losses);
    lp_evaluator_clear(&trainer->evaluator);
    trainer->average = trainer->newest = trainer->parameters = trainer->losses = NULL;
}

lapse_status lp_trainer_times(lp_trainer *trainer, lapse_error *error)
{
    clear_network(trainer);
    trainer->loss_steps = 0;
    trainer->loss_targets = 0;
    return make_network(trainer, trainer->model->times, error);
}

void lp_trainer_clear(lp_trainer *trainer)
{
    clear_network(trainer);
    lp_free(trainer->split);
    lp_free(trainer->target_split);
    lp_item_init_clear(&trainer->item_init);
    lapse_model_free(trainer->model);
    lapse_dataset_close(trainer->dataset);
    *trainer = (lp_trainer){0};
}

/* Prefetches the batch of this step. */
static lp_prefetch *prefetch_of(lp_trainer *trainer, uint64_t step)
{
    return &trainer->prefetch[step % 2];
}

static void cancel_prefetch(lp_trainer *trainer)
{
    lp_prefetch_cancel(&trainer->prefetch[0]);
    lp_prefetch_cancel(&trainer->prefetch[1]);
}

lapse_status lp_trainer_epoch(lp_trainer *trainer, lapse_error *error)
{
    uint64_t seed = trainer->options.run.seed;
    uint32_t epoch = trainer->state.epoch;
    lp_prefetch_cancel(prefetch_of(trainer, trainer->state.step + 1)); /* it reads the windows */
    bool ahead = lp_prefetch_take_epoch(prefetch_of(trainer, trainer->state.step), epoch, &trainer->windows);
    if (!ahead) {
        cancel_prefetch(trainer);
        LP_TRY(lp_windows_training(&trainer->windows, &trainer->targets, seed, epoch, error));
        lp_windows_shuffle(&trainer->windows, seed, epoch);
    }
    if (trainer->windows.count == 0)
        return lp_fail(
            error, LAPSE_ERROR_INPUT, "there is nothing to learn from: no training sequence has two events%s%s",
            *trainer->options.model.target ? ", of which a later one has " : "", trainer->options.model.target);
    return LAPSE_OK;
}

void lp_trainer_collect(lp_trainer *trainer)
{
    trainer->backend->sync(trainer->backend->context);
    int shards = trainer->options.run.shards;
    for (int i = 0; i < trainer->loss_steps; i++)
        trainer->state.loss += lp_tree_sum(trainer->losses, i * shards, shards);
    trainer->state.targets += trainer->loss_targets;
    trainer->loss_steps = 0;
    trainer->loss_targets = 0;
    if (trainer->state.targets > 0)
        trainer->mean_loss = trainer->state.loss / (double)trainer->state.targets;
}

/* Samples the negatives of a shard and makes its batch vocabulary. */
static void make_shard_vocabulary(void *context, int shard, int worker)
{
    lp_trainer *trainer = context;
    lp_batch_vocabulary_make(&trainer->vocabulary, &trainer->batch, shard, worker, (uint32_t)trainer->state.step);
}

/* The learning rate of the next step. */
static double learning_rate_now(const lp_trainer *trainer)
{
    const lp_trainer_state *state = &trainer->state;
    double done = (double)state->window / (double)trainer->windows.count;
    return lp_learning_rate(&trainer->options.run, state->epoch + done);
}

/* Nanoseconds since *mark, which is moved to now. */
static int64_t lap(int64_t *mark)
{
    int64_t now = lp_clock_nanoseconds(), passed = now - *mark;
    *mark = now;
    return passed;
}

/* The batch that begins at this window, of this step; count is 0 after the end of the epoch. */
static lp_batch_position place_of(const lp_trainer *trainer, int64_t window, uint64_t step)
{
    int64_t left = trainer->windows.count - window;
    int count = left < trainer->options.run.batch ? (int)left : trainer->options.run.batch;
    return (lp_batch_position){(uint32_t)step, window, count};
}

/* Fills the batch of this step. True: its batch vocabularies and their union are made too. Timed steps do not prefetch, so that the time
 * to fill a batch shows. */
static bool make_batch(lp_trainer *trainer)
{
    const lp_trainer_state *state = &trainer->state;
    lp_batch_position place = place_of(trainer, state->window, state->step);
    if (trainer->backend->host || trainer->times) {
        cancel_prefetch(trainer); /* it shares the batch vocabularies */
        lp_batch_fill(&trainer->batch, &trainer->windows, place.window, place.count, &trainer->targets,
                      lp_model_target_known(&trainer->trained->config), &trainer->id_map.columns);
        return false;
    }
    lp_prefetch *mine = prefetch_of(trainer, state->step), *other = prefetch_of(trainer, state->step + 1);
    lp_batch_position next = place_of(trainer, place.window + place.count, state->step + 1);
    if (next.count > 0) /* only at the first step of an epoch: later it is already started */
        lp_prefetch_start(other, next);
    else
        lp_prefetch_start_epoch(other, state->epoch + 1, next.step);
    lp_prefetch_take(mine, place, &trainer->batch, &trainer->rows);
    if (next.count > 0)
        lp_prefetch_start(mine, place_of(trainer, next.window + next.count, state->step + 2));
    return true;
}

/* The gradient of the batch's loss, a sum over its targets: that of their mean. A window of few targets thus weighs as much as one of
 * many, and with censoring that would bias the law, because sequences of few events are those of long gaps. There all targets of an
 * epoch weigh the same. */
float lp_trainer_loss_gradient(const lp_trainer *trainer)
{
    const lp_windows *windows = &trainer->windows;
    if (!trainer->targets.censored)
        return 1.0f / (float)trainer->batch.targets;
    return (float)((double)windows->count / ((double)windows->targets * trainer->batch.windows));
}

/* ------------------------------------------------------------------ a step: prepare, run, reduce, update ---- */

typedef struct step_work {
    lp_train_step update;
    lp_pass pass;
    bool listed;    /* the batch vocabularies are made: otherwise each by the thread that runs its shard */
    bool submitted; /* reduce and update are part of the submission that `run` makes (lp_backend.train_step) */
} step_work;

/* The sampled frequencies of the step are a parameter that is computed before the shards, and its gradient after them. */
static bool samples_frequencies(const lp_trainer *trainer)
{
    return trainer->sampler.backend != NULL;
}

static step_work prepare(lp_trainer *trainer)
{
    const lp_run_settings *run = &trainer->options.run;
    bool lists = trainer->batch.item_capacity > 0, listed = make_batch(trainer);
    float *losses = trainer->losses + (size_t)trainer->loss_steps++ * (size_t)run->shards;
    trainer->adam.learning_rate = learning_rate_now(trainer);
    if (samples_frequencies(trainer))
        lp_sampler_draw(&trainer->sampler, run->seed, (uint32_t)trainer->state.step, trainer->parameters);
    return (step_work){.update = {.adam = &trainer->adam,
                                  .step = trainer->state.step + 1,
                                  .rows = lists ? &trainer->rows : NULL,
                                  .parameters = trainer->parameters,
                                  .loss = trainer->network.loss,
                                  .loss_to = losses},
                       .pass = {.batch = &trainer->batch,
                                .parameters = trainer->parameters,
                                .gradients = &trainer->adam,
                                .loss = losses,
                                .seed_value = lp_trainer_loss_gradient(trainer),
                                .seed = run->seed,
                                .step = (uint32_t)trainer->state.step,
                                .prepare = lists && !listed ? make_shard_vocabulary : NULL,
                                .times = trainer->times ? trainer->times->run : NULL,
                                .profiler = trainer->times ? trainer->times->profiler : NULL,
                                .context = trainer},
                       .listed = listed,
                       .submitted = listed && !samples_frequencies(trainer) && trainer->backend->train_step};
}

static void list_shard(void *context, int task, int worker)
{
    lp_trainer *trainer = context;
    make_shard_vocabulary(trainer, lp_rank_sums_first(&trainer->rank_sums) + task, worker);
}

/* Fetches the rows of divided item tables that the shards of this rank read. */
static void fetch_rows(lp_trainer *trainer, step_work *work)
{
    int shards = work->pass.end_shard - work->pass.first_shard;
    lp_threads_run(trainer->vocabulary.threads, shards, list_shard, trainer);
    lp_row_union_make(&trainer->rows, &trainer->vocabulary, &trainer->batch);
    lp_item_rows_fetch(&trainer->item_rows, trainer->rows.row, trainer->rows.count, trainer->parameters);
    work->pass.prepare = NULL;
    work->listed = true;
}

/* Those of this rank. */
static void run_shards(lp_trainer *trainer, step_work *work)
{
    work->pass.train_step = work->submitted ? &work->update : NULL;
    if (trainer->comm) {
        work->pass.first_shard = lp_rank_sums_first(&trainer->rank_sums);
        work->pass.end_shard = lp_rank_sums_end(&trainer->rank_sums);
        if (trainer->batch.item_capacity > 0)
            memset(trainer->batch.shard_items, 0,
                   (size_t)trainer->batch.shard_count * sizeof *trainer->batch.shard_items);
        snprintf(trainer->comm->phase, sizeof trainer->comm->phase, "epoch %u, step %llu",
                 (unsigned)trainer->state.epoch + 1, (unsigned long long)trainer->state.step + 1);
    }
    if (trainer->divided)
        fetch_rows(trainer, work);
    if (!trainer->comm || work->pass.first_shard < work->pass.end_shard)
        lp_runner_run(&trainer->runner, &work->pass);
}

/* Adds the gradients of all shards, and backpropagates that of the sampled frequencies. */
static void reduce(lp_trainer *trainer, step_work *work)
{
    const lp_backend *backend = trainer->backend;
    const lp_row_union *rows = work->update.rows;
    lp_step_times *times = trainer->times;
    int64_t mark = times ? lp_clock_nanoseconds() : 0;
    if (rows && !work->listed)
        lp_row_union_make(&trainer->rows, &trainer->vocabulary, &trainer->batch);
    if (times)
        times->join = rows ? lap(&mark) : 0;
    if (trainer->comm)
        work->update.rows = lp_rank_sums_add(&trainer->rank_sums, &trainer->adam, rows, &trainer->vocabulary,
                                             work->pass.loss, trainer->stop);
    else if (backend->reduce)
        backend->reduce(backend->context, &trainer->adam, rows);
    if (samples_frequencies(trainer))
        lp_sampler_backward(&trainer->sampler, trainer->options.run.seed, work->pass.step, trainer->parameters,
                            trainer->adam.gradients);
    if (times)
        times->adam = lap(&mark);
}

static void update(lp_trainer *trainer, const step_work *work)
{
    const lp_backend *backend = trainer->backend;
    lp_step_times *times = trainer->times;
    int64_t mark = times ? lp_clock_nanoseconds() : 0;
    backend->adam_step(backend->context, &trainer->adam, work->update.step, work->update.rows, trainer->parameters);
    if (!times)
        return;
    backend->sync(backend->context);
    times->adam += lap(&mark);
}

void lp_trainer_step(lp_trainer *trainer)
{
    lp_trainer_state *state = &trainer->state;
    lp_step_times *times = trainer->times;
    int64_t start = times ? lp_clock_nanoseconds() : 0;
    step_work work = prepare(trainer);
    if (times)
        times->fill = lp_clock_nanoseconds() - start;
    run_shards(trainer, &work);
    if (!work.submitted) {
        reduce(trainer, &work);
        update(trainer, &work);
    }
    state->step++;
    trainer->loss_targets += trainer->batch.targets;
    state->window += trainer->batch.windows;
    if (trainer->backend->host || trainer->loss_steps == LP_LOSS_STEPS || lp_trainer_epoch_done(trainer))
        lp_trainer_collect(trainer);
    if (times)
        times->total = lp_clock_nanoseconds() - start;
}

/* Adds the current parameters to the average, and puts it in their place. The first epochs have equal weights, so that the
 * average forgets the initial parameters. */
static void average(lp_trainer *trainer)
{
    const lp_graph *graph = &trainer->network.graph;
    int rank = lp_comm_rank(trainer->divided);
    double weight = fmax(1 - trainer->options.run.ema_decay, 1 / (trainer->state.epoch + 1.0));
    take_parameters(trainer, trainer->newest, trainer->parameters);
    for (int p = 0; p < graph->parameter_count; p++) {
        lp_elements own = lp_item_elements(graph, trainer->divided, p, rank);
        for (size_t i = own.begin; i < own.end; i++)
            trainer->average[i] += (float)(weight * ((double)trainer->newest[i] - (double)trainer->average[i]));
    }
    lp_trainer_copy(trainer, trainer->parameters, trainer->average);
}

void lp_trainer_score(lp_trainer *trainer)
{
    lp_trainer_state *state = &trainer->state;
    if (trainer->sampler.backend)
        lp_sampler_store(&trainer->sampler, trainer->options.run.seed, trainer->parameters);
    if (trainer->average)
        average(trainer);
    double metrics[LP_METRIC_COLUMNS];
    state->score = validate(trainer, metrics);
    state->epoch++;
    if (state->window > 0 && lp_trainer_epoch_done(trainer))
        lp_history_add(trainer->trained, state->loss / (double)state->targets, metrics);
    state->window = 0;
    state->loss = 0;
    state->targets = 0;
    if (state->best_epoch == 0 || lp_metric_better(trainer->select, state->score, state->best_score)) {
        state->best_score = state->score;
        state->best_epoch = state->epoch;
        memcpy(trainer->metrics, metrics, sizeof metrics);
        take_parameters(trainer, trainer->trained->parameters, trainer->parameters);
    }
    if (trainer->average)
        lp_trainer_copy(trainer, trainer->parameters, trainer->newest);
}

bool lp_trainer_done(const lp_trainer *trainer)
{
    const lp_trainer_state *state = &trainer->state;
    if (state->window > 0)
        return false;
    return state->epoch >= (uint32_t)trainer->options.run.epochs ||
           state->epoch >= state->best_epoch + (uint32_t)trainer->options.run.patience;
}
