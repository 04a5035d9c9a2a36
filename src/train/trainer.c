#include "train/trainer.h"

#include "base/clock.h"
#include "base/text.h"
#include "data/dataset/fingerprint.h"
#include "model/model_file.h"
#include "train/train_options.h"

#include <math.h>
#include <string.h>

/* Half as many as there are categories, and some for the few: 3 for 2, 4 for 4, 12 for 20. */
static int suggest_dims(int64_t categories)
{
    return categories < 96 ? 2 + (int)categories / 2 : 50;
}

/* Mean and deviation of a number in the training split; 0 and 1 where there is nothing to tell them from. */
static void measure(const lapse_dataset *dataset, const uint8_t *split, const lp_field *field, lp_model_field *out)
{
    double mean = 0, squares = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < dataset->event_count; i++) {
        if (split[i] != LP_SPLIT_TRAIN || isnan(field->number[i]))
            continue;
        double distance = field->number[i] - mean;
        mean += distance / (double)++count;
        squares += distance * (field->number[i] - mean);
    }
    double deviation = count ? sqrt(squares / (double)count) : 0;
    out->mean = isfinite(mean) ? mean : 0;
    out->deviation = isfinite(deviation) && deviation > 0 ? deviation : 1;
}

static void describe_fields(const lp_trainer *trainer, lp_model_field *fields)
{
    const lapse_dataset *dataset = trainer->dataset;
    int dims = trainer->options.field_dims;
    for (int f = 0; f < dataset->field_count; f++) {
        const lp_field *field = &dataset->fields[f];
        fields[f] = (lp_model_field){.name = field->name, .type = field->type, .dims = 1};
        if (field->type == LAPSE_FIELD_NUMBER) {
            measure(dataset, trainer->split, field, &fields[f]);
            continue;
        }
        fields[f].categories = field->categories;
        fields[f].dims = dims > 0 ? dims : suggest_dims(field->categories.count);
    }
}

static lp_model_config config_of(const lapse_dataset *dataset, const lapse_train_options *options)
{
    return (lp_model_config){
        .row = lp_model_row_find(options->model),
        .task = (lp_task)lp_name_index(options->task, lp_task_names),
        .loss = (lp_loss)lp_name_index(options->loss, lp_loss_names),
        .negatives = (lp_negative_sampling)lp_name_index(options->negatives, lp_negative_names),
        .negative_count = options->negative_count,
        .output = (lp_output)lp_name_index(options->output, lp_output_names),
        .encoding = lp_encoding_find(options->encoding),
        .projection = (lp_projection)lp_name_index(options->projection, lp_projection_names),
        .combine = (lp_combine)lp_name_index(options->combine, lp_combine_names),
        .target_known = strcmp(options->target_time, "known") == 0,
        .event_types = (int)dataset->types.count,
        .dims = options->dims,
        .blocks = options->blocks,
        .heads = options->heads,
        .context = options->context,
        .periods = options->periods,
        .harmonics = options->harmonics,
        .period_min = options->period_min,
        .period_max = options->period_max,
        .period_init = lp_period_init_find(options->period_init),
        .periods_fixed = options->periods_fixed,
        .inverse_cdf = lp_inverse_cdf_find(options->inverse_cdf),
        .hidden = options->hidden,
        .draws = lp_encoding_find(options->encoding)->sample ? options->draws : 1,
        .dropout = options->dropout,
        .order = options->order,
        .predict = (lp_predict)lp_name_index(options->predict, lp_predict_names),
    };
}

/* What a recommender learned by. */
static lapse_status describe_loss(lapse_model *model, const lapse_train_options *options, lapse_error *error)
{
    LP_TRY(lp_model_property_set(model, error, "train.loss", "%s", options->loss));
    if (!lp_model_config_lists(&model->config))
        return LAPSE_OK;
    LP_TRY(lp_model_property_set(model, error, "train.negatives", "%s", options->negatives));
    LP_TRY(lp_model_property_number(model, error, "train.negative_count", options->negative_count));
    LP_TRY(lp_model_property_number(model, error, "train.negatives_unseen", options->negatives_unseen));
    if (model->config.negatives == LP_NEGATIVES_POPULARITY)
        LP_TRY(lp_model_property_number(model, error, "train.popularity_power", options->popularity_power));
    return LAPSE_OK;
}

/* What the model file tells of the run: all that changes the result. */
static lapse_status describe_run(lapse_model *model, const lapse_dataset *dataset, const lapse_train_options *options,
                                 lapse_error *error)
{
    static const char *const columns[] = {"source", "column.sequence", "column.time", "column.event", "column.split"};
    LP_TRY(lp_model_describe(model, error));
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const char *value = lp_dataset_property_find(dataset, columns[i]);
        if (value)
            LP_TRY(lp_model_property_set(model, error, columns[i], "%s", value));
    }
    if (!model->config.row->build)
        return LAPSE_OK;
    if (model->config.task == LP_TASK_RECOMMEND)
        LP_TRY(describe_loss(model, options, error));
    LP_TRY(lp_model_property_number(model, error, "train.learning_rate", options->learning_rate));
    LP_TRY(lp_model_property_set(model, error, "train.schedule", "%s", options->schedule));
    LP_TRY(lp_model_property_number(model, error, "train.beta1", options->beta1));
    LP_TRY(lp_model_property_number(model, error, "train.beta2", options->beta2));
    LP_TRY(lp_model_property_number(model, error, "train.l2", options->l2));
    LP_TRY(lp_model_property_number(model, error, "train.clip", options->clip));
    LP_TRY(lp_model_property_number(model, error, "train.batch", options->batch));
    LP_TRY(lp_model_property_number(model, error, "train.shards", options->shards));
    LP_TRY(lp_model_property_set(model, error, "train.windows", "%s", options->windows));
    LP_TRY(lp_model_property_number(model, error, "train.epochs", options->epochs));
    if (options->item_vectors)
        LP_TRY(lp_model_property_set(model, error, "train.item_vectors", "%s", options->item_vectors));
    return lp_model_property_number(model, error, "train.patience", options->patience);
}

static lapse_status make_model(lp_trainer *trainer, lapse_error *error)
{
    lp_model_config config = config_of(trainer->dataset, &trainer->options);
    lp_model_field fields[LP_FIELD_LIMIT];
    if (config.row->build) { /* baselines count events alone */
        describe_fields(trainer, fields);
        config.fields = fields;
        config.field_count = trainer->dataset->field_count;
    }
    lp_names types = trainer->dataset->types;
    if (trainer->item_init.vectors) {
        types = lp_intern_names(&trainer->item_init.names);
        config.event_types = (int)types.count;
    }
    LP_TRY(lp_model_new(&config, &types, &trainer->model, error));
    trainer->model->seed = trainer->options.seed;
    trainer->model->fingerprint = lp_dataset_fingerprint(trainer->dataset);
    trainer->model->split_by = lp_split_rule_find(trainer->options.split_by);
    return describe_run(trainer->model, trainer->dataset, &trainer->options, error);
}

/* Small catalogues for the shards of a batch. */
static lapse_status make_lists(lp_trainer *trainer, lapse_error *error)
{
    const lapse_train_options *options = &trainer->options;
    const lp_model_config *config = &trainer->model->config;
    const int32_t *type = trainer->translation.columns.type;
    /* Items that never occur are no negatives: being told from all that happens would say that they never will. */
    bool bce = config->loss == LP_LOSS_BCE,
         met = trainer->item_init.vectors && config->negatives == LP_NEGATIVES_UNIFORM;
    double power = met ? 0 : options->popularity_power;
    trainer->negatives = (lp_negatives){.sampling = met ? LP_NEGATIVES_POPULARITY : config->negatives,
                                        .count = bce ? config->negative_count : 0,
                                        .shared = bce ? 0 : config->negative_count,
                                        .corrected = !bce,
                                        .unseen = options->negatives_unseen,
                                        .items = config->event_types,
                                        .seed = options->seed};
    LP_TRY(lp_negatives_init(&trainer->negatives, trainer->dataset, trainer->split, type, power, error));
    LP_TRY(lp_batch_init_vocabulary(&trainer->batch, trainer->negatives.count, trainer->negatives.shared, config->event_types,
                               error));
    trainer->vocabulary = (lp_batch_vocabulary){
        .negatives = &trainer->negatives,
        .dataset = trainer->dataset,
        .type = type,
        .items = config->event_types,
        .threads = trainer->backend->host ? trainer->backend->threads(trainer->backend->context, options->threads)
                                          : (int)(sizeof trainer->prefetch / sizeof *trainer->prefetch)};
    LP_TRY(lp_batch_vocabulary_init(&trainer->vocabulary, error));
    return lp_row_union_init(&trainer->rows, &trainer->batch, error);
}

/* The tables with a vector for each item: those they are read with, and those they are scored by where that differs. */
static float *item_table(const lp_trainer *trainer, const char *name)
{
    const lp_tensor *tensor = lp_model_tensor_find(trainer->model, name);
    return tensor && trainer->item_init.vectors ? tensor->data : NULL;
}

static const char *const item_tables[] = {"event.embedding", "output.weight"};

/* Vectors that mean something are to be heard from the first step on and not drowned by it: they start as large as trained
 * ones are, scores having a deviation of about 2, where a random start is small. */
static void start_items(lp_trainer *trainer)
{
    for (int i = 0; i < 2; i++) {
        float *table = item_table(trainer, item_tables[i]);
        if (table)
            lp_item_init_fill(&trainer->item_init, 2 / sqrt((double)trainer->options.dims), table);
    }
}

lapse_status lp_trainer_place(lp_trainer *trainer, lapse_error *error)
{
    if (!trainer->item_init.vectors)
        return LAPSE_OK;
    for (int i = 0; i < 2; i++) {
        float *table = item_table(trainer, item_tables[i]);
        if (table)
            LP_TRY(lp_item_init_place(&trainer->item_init, table, error));
    }
    lp_item_init_bias(&trainer->item_init, item_table(trainer, "output.bias"));
    trainer->backend->copy_in(trainer->backend->context, trainer->parameters, trainer->model->parameters,
                              trainer->adam.size * sizeof *trainer->parameters);
    lp_evaluator_run(&trainer->evaluator, trainer->parameters);
    trainer->state.best_score = lp_evaluator_score(&trainer->evaluator, trainer->parameters);
    return LAPSE_OK;
}

/* The current parameters, starting values at first. */
static lapse_status make_parameters(lp_trainer *trainer, lapse_error *error)
{
    size_t size = trainer->adam.size * sizeof(float);
    float *start = trainer->model->parameters;
    trainer->parameters = trainer->backend->buffer_new(trainer->backend->context, size);
    trainer->losses = trainer->backend->host_new(
        trainer->backend->context, (size_t)LP_LOSS_STEPS * (size_t)trainer->options.shards * sizeof(float));
    if (!trainer->parameters || !trainer->losses)
        return lp_fail_memory(error, "the parameters", size);
    lp_network_init_parameters(&trainer->network.graph, trainer->options.seed, start);
    start_items(trainer);
    if (trainer->model->config.encoding->sample) {
        LP_TRY(lp_sampler_init(&trainer->sampler, &trainer->model->config, &trainer->network.graph, error));
        lp_sampler_store(&trainer->sampler, trainer->options.seed, start);
    }
    trainer->backend->copy_in(trainer->backend->context, trainer->parameters, start, size);
    bool mirrored = trainer->model->config.encoding->sample && !trainer->backend->host;
    size_t gradients = (size_t)trainer->options.shards * (trainer->adam.size - trainer->adam.table_size);
    if (mirrored && !(trainer->mirror = lp_alloc(trainer->adam.size + gradients, sizeof *trainer->mirror)))
        return lp_fail_memory(error, "the parameters", size);
    return LAPSE_OK;
}

/* Where a device works, the host makes the next two batches meanwhile, each on a thread of its own. */
static lapse_status make_prefetch(lp_trainer *trainer, lapse_error *error)
{
    lp_batch_source source = {.windows = &trainer->windows,
                              .targets = &trainer->targets,
                              .columns = &trainer->translation.columns,
                              .vocabulary = trainer->batch.item_capacity > 0 ? &trainer->vocabulary : NULL,
                              .target_known = trainer->model->config.target_known,
                              .seed = trainer->options.seed};
    for (int i = 0; !trainer->backend->host && i < 2; i++) {
        source.worker = i;
        LP_TRY(lp_prefetch_init(&trainer->prefetch[i], &source, &trainer->batch, error));
    }
    return LAPSE_OK;
}

/* What only networks need. */
static lapse_status make_network(lp_trainer *trainer, lapse_error *error)
{
    const lapse_train_options *options = &trainer->options;
    const lp_model_config *config = &trainer->model->config;
    LP_TRY(lp_network_build(&trainer->network, config, true, error));
    LP_TRY(lp_translation_init(&trainer->translation, trainer->model, trainer->dataset, error));
    LP_TRY(
        lp_batch_init(&trainer->batch, options->batch, options->context, options->shards, config->field_count, error));
    if (lp_model_config_lists(config))
        LP_TRY(make_lists(trainer, error));
    LP_TRY(lp_runner_init(&trainer->runner, trainer->backend, &trainer->network, &trainer->batch, options->threads,
                          error));
    trainer->runner.precision = (lp_precision)lp_name_index(options->precision, lp_precision_names);
    trainer->adam = (lp_adam){
        .shards = options->shards,
        .threads = options->threads,
        .item_capacity = trainer->batch.item_capacity,
        .learning_rate = options->learning_rate,
        .beta1 = options->beta1,
        .beta2 = options->beta2,
        .epsilon = 1e-8,
        .l2 = options->l2,
        .clip = options->clip,
    };
    LP_TRY(lp_adam_init(&trainer->adam, trainer->backend, &trainer->network.graph, error));
    LP_TRY(make_parameters(trainer, error));
    LP_TRY(make_prefetch(trainer, error));
    trainer->targets = (lp_targets){.dataset = trainer->dataset,
                                    .split = trainer->split,
                                    .wanted = LP_SPLIT_TRAIN,
                                    .context = options->context,
                                    .last_windows = strcmp(options->windows, "last") == 0};
    trainer->state = (lp_trainer_state){.score = NAN, .best_score = NAN};
    LP_TRY(lp_evaluator_init(&trainer->evaluator, trainer->backend, trainer->model, trainer->dataset, trainer->split,
                             LP_SPLIT_VALID, options->threads, error));
    trainer->evaluator.runner.precision = trainer->runner.precision;
    return LAPSE_OK;
}

lapse_status lp_trainer_init(lp_trainer *trainer, const lapse_dataset *dataset, const lapse_train_options *options,
                             lapse_error *error)
{
    *trainer = (lp_trainer){.dataset = dataset, .options = *options};
    LP_TRY(lp_train_options_split(dataset, &trainer->options, &trainer->split, error));
    lapse_status status = lp_backend_open(trainer->options.device, &trainer->backend, error);
    if (status == LAPSE_OK)
        status = lp_item_init_open(&trainer->item_init, dataset, &trainer->options, error);
    if (status == LAPSE_OK && trainer->item_init.vectors)
        lp_item_init_count(&trainer->item_init, dataset, trainer->split);
    if (status == LAPSE_OK)
        status = make_model(trainer, error);
    if (status == LAPSE_OK && trainer->model->config.row->build)
        status = make_network(trainer, error);
    if (status != LAPSE_OK)
        lp_trainer_clear(trainer);
    return status;
}

void lp_trainer_clear(lp_trainer *trainer)
{
    lp_prefetch_clear(&trainer->prefetch[0]);
    lp_prefetch_clear(&trainer->prefetch[1]);
    lp_free(trainer->split);
    lapse_model_free(trainer->model);
    lp_runner_clear(&trainer->runner);
    lp_graph_clear(&trainer->network.graph);
    lp_windows_clear(&trainer->windows);
    lp_translation_clear(&trainer->translation);
    lp_batch_clear(&trainer->batch);
    lp_adam_clear(&trainer->adam);
    lp_sampler_clear(&trainer->sampler);
    lp_item_init_clear(&trainer->item_init);
    lp_negatives_clear(&trainer->negatives);
    lp_batch_vocabulary_clear(&trainer->vocabulary);
    lp_row_union_clear(&trainer->rows);
    if (trainer->parameters)
        trainer->backend->buffer_free(trainer->backend->context, trainer->parameters);
    lp_free(trainer->mirror);
    if (trainer->losses)
        trainer->backend->host_free(trainer->backend->context, trainer->losses);
    lp_evaluator_clear(&trainer->evaluator);
    *trainer = (lp_trainer){0};
}

/* Who makes the batch of a step. */
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
    uint64_t seed = trainer->options.seed;
    uint32_t epoch = trainer->state.epoch;
    lp_prefetch_cancel(prefetch_of(trainer, trainer->state.step + 1)); /* it reads the windows */
    bool ahead = lp_prefetch_take_epoch(prefetch_of(trainer, trainer->state.step), epoch, &trainer->windows);
    if (!ahead) {
        cancel_prefetch(trainer);
        LP_TRY(lp_windows_training(&trainer->windows, &trainer->targets, seed, epoch, error));
        lp_windows_shuffle(&trainer->windows, seed, epoch);
    }
    if (trainer->windows.count == 0)
        return lp_fail(error, LAPSE_ERROR_INPUT, "there is nothing to learn from: no training sequence has two events");
    return LAPSE_OK;
}

void lp_trainer_collect(lp_trainer *trainer)
{
    trainer->backend->sync(trainer->backend->context);
    for (int i = 0; i < trainer->loss_steps * trainer->options.shards; i++)
        trainer->state.loss += (double)trainer->losses[i];
    trainer->state.targets += trainer->loss_targets;
    trainer->loss_steps = 0;
    trainer->loss_targets = 0;
    if (trainer->state.targets > 0)
        trainer->mean_loss = trainer->state.loss / (double)trainer->state.targets;
}

/* Draws the negatives of a shard and lists its items. */
static void list_shard(void *context, int shard, int worker)
{
    lp_trainer *trainer = context;
    lp_batch_vocabulary_make(&trainer->vocabulary, &trainer->batch, shard, worker, (uint32_t)trainer->state.step);
}

/* Lets the sampler put its draws among the parameters, on the host. */
static void sample(lp_trainer *trainer, void (*draw)(lp_sampler *, uint64_t, uint32_t, float *), uint32_t step)
{
    size_t size = trainer->adam.size * sizeof(float);
    float *parameters = trainer->mirror ? trainer->mirror : trainer->parameters;
    if (trainer->mirror)
        trainer->backend->copy_out(trainer->backend->context, parameters, trainer->parameters, size);
    draw(&trainer->sampler, trainer->options.seed, step, parameters);
    if (trainer->mirror)
        trainer->backend->copy_in(trainer->backend->context, trainer->parameters, parameters, size);
}

/* Takes the gradient of the draws back to the sampler's parameters. */
static void learn_sampler(lp_trainer *trainer, uint32_t step)
{
    const lp_adam *adam = &trainer->adam;
    size_t size = (size_t)adam->shards * (adam->size - adam->table_size) * sizeof(float);
    float *parameters = trainer->mirror ? trainer->mirror : trainer->parameters;
    float *gradients = trainer->mirror ? trainer->mirror + adam->size : adam->gradients;
    if (trainer->mirror)
        trainer->backend->copy_out(trainer->backend->context, gradients, adam->gradients, size);
    lp_sampler_learn(&trainer->sampler, trainer->options.seed, step, parameters, gradients, adam->shards);
    if (trainer->mirror)
        trainer->backend->copy_in(trainer->backend->context, adam->gradients, gradients, size);
}

/* The learning rate at this place of the run: a function of the place alone, so that a resumed run goes on with it. */
static double rate_now(const lp_trainer *trainer)
{
    const lapse_train_options *options = &trainer->options;
    const lp_trainer_state *state = &trainer->state;
    double part = (double)state->window / (double)trainer->windows.count;
    if (strcmp(options->schedule, "cosine") != 0)
        return options->learning_rate;
    return options->learning_rate * 0.5 * (1 + cos(3.141592653589793 * (state->epoch + part) / options->epochs));
}

/* Nanoseconds since *mark, which is moved to now. */
static int64_t lap(int64_t *mark)
{
    int64_t now = lp_clock_nanoseconds(), passed = now - *mark;
    *mark = now;
    return passed;
}

/* The batch of a step after the present one; count is 0 where the epoch has none. */
static lp_batch_place place_of(const lp_trainer *trainer, int64_t window, uint64_t step)
{
    int64_t left = trainer->windows.count - window;
    int count = left < trainer->options.batch ? (int)left : trainer->options.batch;
    return (lp_batch_place){(uint32_t)step, window, count};
}

/* Lays out the batch of this step. True: it is ready in all, otherwise lists of items are left to do. Who measures wants to see
 * how long it takes, so then it is not made ahead. */
static bool make_batch(lp_trainer *trainer)
{
    const lp_trainer_state *state = &trainer->state;
    lp_batch_place place = place_of(trainer, state->window, state->step);
    if (trainer->backend->host || trainer->times) {
        cancel_prefetch(trainer); /* they work with the same lists */
        lp_batch_fill(&trainer->batch, &trainer->windows, place.window, place.count, &trainer->targets,
                      trainer->model->config.target_known, &trainer->translation.columns);
        return false;
    }
    lp_prefetch *mine = prefetch_of(trainer, state->step), *other = prefetch_of(trainer, state->step + 1);
    lp_batch_place next = place_of(trainer, place.window + place.count, state->step + 1);
    if (next.count > 0) /* at the first step of an epoch; later it was begun a step ago */
        lp_prefetch_start(other, next);
    else
        lp_prefetch_start_epoch(other, state->epoch + 1, next.step);
    lp_prefetch_take(mine, place, &trainer->batch, &trainer->rows);
    if (next.count > 0)
        lp_prefetch_start(mine, place_of(trainer, next.window + next.count, state->step + 2));
    return true;
}

/* What follows the passes: the shards' gradients become a step of the optimizer. joined: the shards' lists are one already. */
static void learn(lp_trainer *trainer, bool joined)
{
    bool lists = trainer->batch.item_capacity > 0;
    lp_step_times *times = trainer->times;
    int64_t mark = times ? lp_clock_nanoseconds() : 0;
    if (lists && !joined)
        lp_row_union_make(&trainer->rows, &trainer->vocabulary, &trainer->batch);
    if (times)
        times->join = lists ? lap(&mark) : 0;
    trainer->backend->adam_step(trainer->backend->context, &trainer->adam, trainer->state.step,
                                lists ? &trainer->rows : NULL, trainer->parameters);
    if (times) {
        trainer->backend->sync(trainer->backend->context);
        times->adam = lap(&mark);
    }
}

void lp_trainer_step(lp_trainer *trainer)
{
    lp_trainer_state *state = &trainer->state;
    lp_step_times *times = trainer->times;
    int64_t start = times ? lp_clock_nanoseconds() : 0, mark = start;
    uint32_t step = (uint32_t)state->step;
    bool sampled = trainer->sampler.backend != NULL, lists = trainer->batch.item_capacity > 0;
    bool ready = make_batch(trainer), at_once = ready && !sampled && trainer->backend->learn;
    if (times)
        times->fill = lap(&mark);
    float *losses = trainer->losses + (size_t)trainer->loss_steps++ * (size_t)trainer->options.shards;
    trainer->adam.learning_rate = rate_now(trainer);
    lp_train_step learning = {.adam = &trainer->adam,
                              .step = state->step + 1,
                              .rows = lists ? &trainer->rows : NULL,
                              .parameters = trainer->parameters,
                              .loss = trainer->network.loss,
                              .loss_to = losses};
    lp_pass pass = {
        .batch = &trainer->batch,
        .parameters = trainer->parameters,
        .gradients = &trainer->adam,
        .learning = at_once ? &learning : NULL,
        .loss = losses,
        .seed_value = 1.0f / (float)trainer->batch.targets,
        .seed = trainer->options.seed,
        .step = step,
        .prepare = lists && !ready ? list_shard : NULL,
        .times = times ? times->run : NULL,
        .watch = times ? times->watch : NULL,
        .context = trainer,
    };
    if (sampled)
        sample(trainer, lp_sampler_draw, step);
    lp_runner_run(&trainer->runner, &pass);
    if (sampled)
        learn_sampler(trainer, step);
    state->step++;
    if (!at_once)
        learn(trainer, ready);
    trainer->loss_targets += trainer->batch.targets;
    state->window += trainer->batch.windows;
    if (trainer->backend->host || trainer->loss_steps == LP_LOSS_STEPS || lp_trainer_epoch_done(trainer))
        lp_trainer_collect(trainer);
    if (times)
        times->total = lp_clock_nanoseconds() - start;
}

/* The draws that a model keeps. */
static void store(lp_sampler *sampler, uint64_t seed, uint32_t step, float *parameters)
{
    (void)step;
    lp_sampler_store(sampler, seed, parameters);
}

void lp_trainer_score(lp_trainer *trainer)
{
    lp_trainer_state *state = &trainer->state;
    if (trainer->sampler.backend)
        sample(trainer, store, 0);
    lp_evaluator_run(&trainer->evaluator, trainer->parameters);
    state->score = lp_evaluator_score(&trainer->evaluator, trainer->parameters);
    state->epoch++;
    state->window = 0;
    state->loss = 0;
    state->targets = 0;
    if (!(state->score <= state->best_score)) {
        state->best_score = state->score;
        state->best_epoch = state->epoch;
        trainer->backend->copy_out(trainer->backend->context, trainer->model->parameters, trainer->parameters,
                                   trainer->adam.size * sizeof *trainer->parameters);
    }
}

bool lp_trainer_done(const lp_trainer *trainer)
{
    const lp_trainer_state *state = &trainer->state;
    if (state->window > 0)
        return false;
    return state->epoch >= (uint32_t)trainer->options.epochs ||
           state->epoch >= state->best_epoch + (uint32_t)trainer->options.patience;
}
