/* session.c: one live history that can be queried about any time.
 *
 * The session holds the last `context` events, or the lookback of a baseline if that is longer. A network sees the last `context`
 * of them as one window, through the decoder. With a sampled encoding the prediction is the mean over the stored parameter samples.
 */
#include "serve/session.h"

#include "backend/backend.h"
#include "base/finite.h"
#include "model/when_head.h"
#include "serve/attention_weights.h"
#include "serve/item_filter.h"
#include "serve/top_k.h"

#include <math.h>
#include <string.h>

/* Of either type of field. */
enum { FIELD_SIZE = sizeof(lp_field_number) };
_Static_assert(sizeof(float) == FIELD_SIZE, "categories and numbers have the same size");

static size_t seen_words(const lapse_session *session)
{
    return (size_t)session->model->config.event_types / 64 + 1;
}

/* Whether the prediction consists of probabilities rather than scores. */
static bool has_probabilities(const lapse_model *model)
{
    const lp_model_config *config = &model->config;
    return !lp_model_is_network(config) ||
           (lp_network_samples(&model->network) > 1 && config->task != LP_TASK_RECOMMEND);
}

/* Elements of the item vectors that a session transposes, at most: what fits a core's cache. */
enum { TRANSPOSED_ELEMENTS = 1 << 19 };

/* Transposes the item vectors, which makes the scores of one state fastest. The stride is an odd number of 16-float vectors, so
 * that rows do not map to the same cache sets. */
static lapse_status transpose_items(lapse_session *session, lapse_error *error)
{
    const lapse_model *model = session->model;
    size_t items = (size_t)model->config.event_types, dims = (size_t)model->config.dims;
    if (!lp_model_ranks(&model->config) || items * dims > TRANSPOSED_ELEMENTS)
        return LAPSE_OK;
    const float *table = model->parameters + session->decoder.network.items->offset;
    session->stride = ((items + 15) / 16 | 1) * 16;
    session->items = lp_alloc(dims * session->stride, sizeof *session->items);
    if (!session->items)
        return lp_fail_memory(error, "a session", dims * session->stride * sizeof *session->items);
    for (size_t i = 0; i < items; i++)
        for (size_t c = 0; c < dims; c++)
            session->items[c * session->stride + i] = table[i * dims + c];
    return LAPSE_OK;
}

static lapse_status prepare_times(lapse_session *session, lapse_error *error)
{
    const lapse_model *model = session->model;
    int samples = session->decoder.samples;
    size_t outputs =
        (size_t)session->limits.branches * (size_t)samples * (size_t)lp_network_time(&model->network)->cols;
    session->time_outputs = lp_alloc(outputs, sizeof *session->time_outputs);
    session->time_memory = lp_alloc(lp_time_law_size(model, samples), sizeof *session->time_memory);
    if (session->time_outputs && session->time_memory)
        return LAPSE_OK;
    return lp_fail_memory(error, "a session", outputs * sizeof *session->time_outputs);
}

static lapse_status prepare(lapse_session *session, lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    int lookback = config->row->lookback ? config->row->lookback(config) : 0;
    int events = lookback > config->context ? lookback : config->context;
    size_t names = 0;
    for (int t = 0; t < LP_TARGET_COUNT; t++) {
        size_t size = lp_model_predicts(config, (lp_target)t) ? (size_t)lp_model_target_size(config, (lp_target)t) : 0;
        names = size > names ? size : names;
    }
    session->capacity = 2 * (int64_t)events;
    session->times = lp_alloc((size_t)session->capacity, sizeof *session->times);
    session->types = lp_alloc((size_t)session->capacity, sizeof *session->types);
    session->fields = lp_alloc((size_t)config->field_count, sizeof *session->fields);
    session->seen = lp_alloc(seen_words(session), sizeof *session->seen);
    session->skip = lp_alloc(lp_item_mask_words(session->model), sizeof *session->skip);
    session->scores = lp_alloc(names, sizeof *session->scores);
    session->probabilities = lp_alloc(has_probabilities(session->model) ? names : 0, sizeof *session->probabilities);
    session->state = lp_alloc((size_t)session->limits.branches * (size_t)config->dims, sizeof *session->state);
    session->gaps = lp_alloc(lp_model_reads_gap(config) ? (size_t)session->capacity : 0, sizeof *session->gaps);
    bool good = session->times && session->gaps && session->types && session->fields && session->seen &&
                session->skip && session->scores && session->probabilities && session->state;
    for (int f = 0; good && f < config->field_count; f++)
        good = (session->fields[f] = lp_alloc((size_t)session->capacity, FIELD_SIZE)) != NULL;
    if (!good)
        return lp_fail_memory(error, "a session",
                              (size_t)session->capacity * (size_t)(16 + 4 * config->field_count) + names * 4);
    if (lp_model_is_network(config))
        LP_TRY(lp_decoder_init(&session->decoder, session->model, session->capacity, session->limits, error));
    if (lp_model_predicts_time(session->model))
        LP_TRY(prepare_times(session, error));
    return transpose_items(session, error);
}

/* Elements of the outputs of a query, at most. */
enum { OUTPUT_ELEMENTS = 1 << 18 };

int lp_session_rows(const lapse_model *model, int wanted)
{
    int most = 1 + OUTPUT_ELEMENTS / (model->config.event_types + 1);
    return wanted < most ? wanted : most;
}

lp_branch_limits lp_session_limits(const lapse_model *model)
{
    return (lp_branch_limits){.branches = lp_model_predicts_time(model) ? lp_session_rows(model, LP_WITHIN_NODES) : 1};
}

lapse_status lapse_session_new(const lapse_model *model, lapse_session **session, lapse_error *error)
{
    LP_REQUIRE(error, model, session);
    return lp_session_new(model, lp_session_limits(model), session, error);
}

lapse_status lp_session_new(const lapse_model *model, lp_branch_limits limits, lapse_session **session,
                            lapse_error *error)
{
    lapse_session *made = lp_alloc(1, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "a session", sizeof *made);
    made->model = lp_model_share(model);
    made->limits = limits;
    lapse_status status = prepare(made, error);
    if (status != LAPSE_OK) {
        lapse_session_free(made);
        return status;
    }
    *session = made;
    return LAPSE_OK;
}

void lapse_session_free(lapse_session *session)
{
    if (!session)
        return;
    lp_decoder_clear(&session->decoder);
    lp_free(session->times);
    lp_free(session->types);
    lp_free(session->gaps);
    lp_free(session->seen);
    lp_free(session->skip);
    lp_free(session->items);
    lp_free(session->time_outputs);
    lp_free(session->time_memory);
    lp_free(session->scores);
    lp_free(session->probabilities);
    lp_free(session->state);
    for (int f = 0; session->fields && f < session->model->config.field_count; f++)
        lp_free(session->fields[f]);
    lp_free(session->fields);
    lapse_model_free(session->model);
    lp_free(session);
}

void lapse_session_clear(lapse_session *session)
{
    /* A large catalogue has many bits, a short history sets few of them. */
    if (session->total == session->count)
        for (int64_t i = 0; i < session->count; i++)
            session->seen[session->types[i] / 64] = 0;
    else
        memset(session->seen, 0, seen_words(session) * sizeof *session->seen);
    session->count = session->total = 0;
    lp_decoder_reset(&session->decoder);
    lp_decoder_set_sequence(&session->decoder, 0);
}

static lapse_status read_fields(const lapse_session *session, const lapse_event *event, lp_field_number *out,
                                lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    if (event->field_count != config->field_count)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the event '%s' was given %d field%s, but the model sees %d of each%s%s%s", event->event,
                       event->field_count, event->field_count == 1 ? "" : "s", config->field_count,
                       config->field_count ? ", the first being '" : "",
                       config->field_count ? config->fields[0].name : "", config->field_count ? "'" : "");
    if (config->field_count > 0 && !event->fields)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the fields of the event '%s' are NULL", event->event);
    for (int f = 0; f < config->field_count; f++) {
        const lp_model_field *field = &config->fields[f];
        const lapse_value *value = &event->fields[f];
        if (field->type == LAPSE_FIELD_NUMBER) {
            if (isinf(value->number))
                return lp_fail(error, LAPSE_ERROR_INPUT, "the number '%s' of the event '%s' is infinite", field->name,
                               event->event);
            out[f].number = lp_model_standardize(field, value->number);
            continue;
        }
        const char *text = value->text ? value->text : "";
        out[f].category = (int32_t)lp_names_find(&field->categories, text);
        if (out[f].category >= 0)
            continue;
        if (!*text)
            return lp_fail(error, LAPSE_ERROR_UNKNOWN,
                           "the event '%s' has no '%s', and the model has never seen one without it", event->event,
                           field->name);
        return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the model does not know '%s' in '%s'", text, field->name);
    }
    return LAPSE_OK;
}

/* Drops all but the last `kept` events. */
static void drop_oldest(lapse_session *session, int64_t kept)
{
    int64_t first = session->count - kept;
    memmove(session->times, session->times + first, (size_t)kept * sizeof *session->times);
    memmove(session->types, session->types + first, (size_t)kept * sizeof *session->types);
    if (lp_model_reads_gap(&session->model->config))
        memmove(session->gaps, session->gaps + first, (size_t)kept * sizeof *session->gaps);
    for (int f = 0; f < session->model->config.field_count; f++)
        memmove(session->fields[f], (char *)session->fields[f] + first * FIELD_SIZE, (size_t)kept * FIELD_SIZE);
    session->count = kept;
    if (lp_model_is_network(&session->model->config))
        lp_decoder_drop(&session->decoder, first);
}

void lp_session_keep(lapse_session *session, int64_t events)
{
    if (session->count > events)
        drop_oldest(session, events);
}

lp_session_mark lp_session_mark_of(const lapse_session *session)
{
    return (lp_session_mark){session->count, session->total, lp_decoder_mark_of(&session->decoder)};
}

void lp_session_return(lapse_session *session, lp_session_mark mark)
{
    session->count = mark.count;
    session->total = mark.total;
    lp_decoder_return(&session->decoder, mark.decoder);
}

void lp_session_add(lapse_session *session, double time, int32_t type, const lp_field_number *fields)
{
    if (session->count == session->capacity)
        drop_oldest(session, session->capacity / 2);
    for (int f = 0; f < session->model->config.field_count; f++)
        memcpy((char *)session->fields[f] + session->count * FIELD_SIZE, &fields[f], FIELD_SIZE);
    if (lp_model_reads_gap(&session->model->config)) {
        double gap = session->count > 0 ? time - session->times[session->count - 1] : NAN;
        session->gaps[session->count] = lp_model_standardize_gap(&session->model->config.gap, gap);
    }
    session->times[session->count] = time;
    session->types[session->count++] = type;
    session->seen[type / 64] |= UINT64_C(1) << (type % 64);
    session->total++;
}

void lp_session_add_row(lapse_session *session, const lp_event_columns *columns, double time, uint64_t event)
{
    lp_field_number fields[LP_FIELD_LIMIT];
    for (int f = 0; f < columns->field_count; f++)
        memcpy(&fields[f], (const char *)columns->field[f] + event * sizeof *fields, sizeof *fields);
    lp_session_add(session, time, columns->type[event], fields);
}

lapse_status lp_session_read_event(const lapse_session *session, const lapse_event *event, double last, int32_t *id,
                                   lp_field_number *fields, lapse_error *error)
{
    LP_REQUIRE(error, event->event);
    const char *name = event->event;
    int64_t type = lapse_model_event_type_find(session->model, name);
    if (type < 0)
        return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the model does not know the %s '%s'",
                       session->model->config.task == LP_TASK_RECOMMEND ? "item" : "event", name);
    if (!isfinite(event->time))
        return lp_fail(error, LAPSE_ERROR_INPUT, "the time of the event '%s' is not a number", name);
    if (event->time < last)
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "the event '%s' at %.3f s lies before the one appended last, at %.3f s", name, event->time,
                       last);
    *id = (int32_t)type;
    return read_fields(session, event, fields, error);
}

lapse_status lapse_session_append_event(lapse_session *session, const lapse_event *event, lapse_error *error)
{
    LP_REQUIRE(error, session, event);
    lp_field_number fields[LP_FIELD_LIMIT];
    int32_t type;
    LP_TRY(lp_session_read_event(session, event, lapse_session_last_time(session), &type, fields, error));
    lp_session_add(session, event->time, type, fields);
    return LAPSE_OK;
}

int64_t lapse_session_count(const lapse_session *session)
{
    return session->total;
}

double lapse_session_last_time(const lapse_session *session)
{
    return session->count > 0 ? session->times[session->count - 1] : NAN;
}

lapse_status lapse_session_append(lapse_session *session, double time, const char *event, lapse_error *error)
{
    LP_REQUIRE(error, session, event);
    return lapse_session_append_event(session, &(lapse_event){.time = time, .event = event}, error);
}

/* ----------------------------------------------------------------------------------------------- queries ----- */

/* Adds the output of one parameter sample to the mean: the state of a recommender, otherwise the probabilities. */
static void add_output(void *context, const lp_outcome *outcome)
{
    lapse_session *session = context;
    const lp_model_config *config = &session->model->config;
    int samples = session->decoder.samples;
    size_t width = outcome->time ? (size_t)lp_network_time(&session->model->network)->cols : 0,
           rows = (size_t)session->rows;
    size_t dims = outcome->state ? (size_t)config->dims : 0, first = (size_t)session->first_row;
    for (size_t c = 0; c < rows * dims; c++)
        session->state[first * dims + c] += outcome->state[c] / (float)samples;
    for (size_t r = 0; width && r < rows; r++)
        memcpy(session->time_outputs + ((first + r) * (size_t)samples + (size_t)session->time_sample) * width,
               outcome->time + r * width, width * sizeof *session->time_outputs);
    session->time_sample++;
    session->logits = outcome->logits[session->target];
    size_t classes = (size_t)lp_model_target_size(config, session->target);
    for (size_t r = 0; session->logits && session->output && r < rows; r++)
        lp_softmax_add(session->logits + r * classes, (int)classes, 1.0 / samples, session->output + r * classes);
}

/* Scores all items by the state of a row. */
static void score_items(lapse_session *session, int row)
{
    const lapse_model *model = session->model;
    const lp_network *network = &session->decoder.network;
    const lp_ranking_kernels *kernels = lp_backend_ranking(lp_backend_find("cpu"));
    const float *bias = model->parameters + network->bias->offset;
    int items = model->config.event_types, dims = model->config.dims;
    const float *state = session->state + (size_t)(session->first_row + row) * (size_t)dims;
    if (session->items)
        kernels->transposed_scores(items, dims, state, session->items, session->stride, bias, session->scores);
    else
        kernels->row_scores(items, dims, state, model->parameters + network->items->offset, bias, session->scores);
    session->logits = session->scores;
    if (session->output)
        lp_softmax_add(session->logits, items, 1, session->output + (size_t)row * (size_t)items);
}

static lapse_status check_query(lapse_session *session, double time, const char *target, lapse_error *error)
{
    const lapse_model *model = session->model;
    session->target = lp_model_target_find(model, target);
    if (session->target == LP_TARGET_COUNT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model does not predict '%s', but the %s", target,
                       lapse_model_target(model, 0));
    if (session->count == 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "the history is empty: append at least one event before the query");
    if (!isfinite(time))
        return lp_fail(error, LAPSE_ERROR_INPUT, "the query time is not a number");
    if (time < session->times[session->count - 1])
        return lp_fail(error, LAPSE_ERROR_INPUT, "the query time, %.3f s, lies before the last event, at %.3f s", time,
                       session->times[session->count - 1]);
    return LAPSE_OK;
}

static lp_history history_of(const lapse_session *session)
{
    return (lp_history){.count = session->count,
                        .times = session->times,
                        .types = session->types,
                        .fields = session->fields,
                        .gaps = lp_model_reads_gap(&session->model->config) ? session->gaps : NULL};
}

/* Before a run of the network with outputs of `rows` rows. */
static void begin_run(lapse_session *session, int first_row, int rows, double *output)
{
    const lp_model_config *config = &session->model->config;
    size_t dims = (size_t)config->dims;
    session->first_row = first_row;
    session->rows = rows;
    session->output = output;
    if (output)
        memset(output, 0, (size_t)rows * (size_t)lp_model_target_size(config, session->target) * sizeof *output);
    memset(session->state + (size_t)first_row * dims, 0, (size_t)rows * dims * sizeof *session->state);
    session->time_sample = 0;
}

/* Runs the network: fills session->state, or session->logits and, if it is not NULL, `output`. */
static void run_network(lapse_session *session, double time, int row, double *output)
{
    begin_run(session, row, 1, output);
    lp_history history = history_of(session);
    lp_decoder_query(&session->decoder, &history, time, add_output, session);
}

lapse_status lapse_session_state(lapse_session *session, double time, float *state, lapse_error *error)
{
    LP_REQUIRE(error, session, state);
    size_t dims = (size_t)session->model->config.dims;
    if (!lp_model_ranks(&session->model->config))
        return lp_fail(error, LAPSE_ERROR_USAGE, "the model '%s' has no states: train a network with --task recommend",
                       session->model->config.row->name);
    LP_TRY(check_query(session, time, "event", error));
    run_network(session, time, 0, NULL);
    memcpy(state, session->state, dims * sizeof *state);
    return lp_all_finite(state, dims) ? LAPSE_OK : lp_model_fail_infinite(session->model, error);
}

/* After a run: scores the items of a recommender, and checks all outputs of the target. */
static lapse_status check_outputs(lapse_session *session, lapse_error *error)
{
    const lapse_model *model = session->model;
    size_t size = (size_t)lp_model_target_size(&model->config, session->target);
    for (int row = 0; row < session->rows; row++) {
        const float *logits = session->logits ? session->logits + (size_t)row * size : NULL;
        if (model->config.task == LP_TASK_RECOMMEND) {
            score_items(session, row);
            logits = session->scores;
        }
        if (!lp_all_finite(logits, size) ||
            (session->output && !lp_all_finite_double(session->output + (size_t)row * size, size)))
            return lp_model_fail_infinite(model, error);
    }
    return LAPSE_OK;
}

/* Fills `output` with probabilities; NULL: scores suffice, which baselines do not have. */
static lapse_status query(lapse_session *session, double time, double *output, lapse_error *error)
{
    const lapse_model *model = session->model;
    size_t size = (size_t)lp_model_target_size(&model->config, session->target);
    if (!lp_model_is_network(&model->config)) {
        double at = lp_model_target_known(&model->config) ? time : session->times[session->count - 1];
        model->config.row->predict(model, &(lp_query){session->types, session->count, at}, output);
    } else {
        run_network(session, time, 0, output);
        return check_outputs(session, error);
    }
    return !output || lp_all_finite_double(output, size) ? LAPSE_OK : lp_model_fail_infinite(model, error);
}

lapse_status lp_session_law(lapse_session *session, lp_next_time *law, lapse_error *error)
{
    const lapse_model *model = session->model;
    int samples = session->decoder.samples;
    size_t outputs = (size_t)samples * (size_t)lp_network_time(&model->network)->cols;
    session->target = lp_model_target_find(model, NULL);
    run_network(session, session->times[session->count - 1], 0, NULL);
    if (!lp_all_finite(session->time_outputs, outputs))
        return lp_model_fail_infinite(model, error);
    *law =
        lp_time_law_of(model, session->times[session->count - 1], session->time_outputs, samples, session->time_memory);
    return LAPSE_OK;
}

lapse_status lp_session_probabilities(lapse_session *session, double time, double *probabilities, lapse_error *error)
{
    session->target = LP_TARGET_EVENT;
    return query(session, time, probabilities, error);
}

lapse_status lp_session_branches(lapse_session *session, const lp_branch_query *query, double *probabilities,
                                 lapse_error *error)
{
    session->target = LP_TARGET_EVENT;
    begin_run(session, 0, query->count, probabilities);
    lp_history history = history_of(session);
    lp_decoder_query_branches(&session->decoder, &history, query, add_output, session);
    return probabilities ? check_outputs(session, error) : LAPSE_OK;
}

lapse_status lp_session_probabilities_at(lapse_session *session, int count, const double *time, double *probabilities,
                                         lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    int32_t branch[LP_WITHIN_NODES], length[LP_WITHIN_NODES], type[LP_WITHIN_NODES];
    double event_time[LP_WITHIN_NODES];
    float gap[LP_WITHIN_NODES];
    int64_t last = session->count - 1;
    bool together = session->decoder.incremental && config->field_count == 0 && count <= LP_WITHIN_NODES;
    for (int i = 0; !together && i < count; i++)
        LP_TRY(
            lp_session_probabilities(session, time[i], probabilities + (size_t)i * (size_t)config->event_types, error));
    for (int i = 0; together && i < count; i++) {
        branch[i] = i;
        length[i] = 0;
        event_time[i] = session->times[last];
        type[i] = session->types[last];
        gap[i] = lp_model_reads_gap(config) ? session->gaps[last] : NAN;
    }
    lp_branch_query query = {.count = count,
                             .branch = branch,
                             .length = length,
                             .event_time = event_time,
                             .type = type,
                             .gap = lp_model_reads_gap(config) ? gap : NULL,
                             .time = time};
    return together ? lp_session_branches(session, &query, probabilities, error) : LAPSE_OK;
}

lapse_status lp_session_branch(lapse_session *session, double time, int row, double *probabilities, lapse_error *error)
{
    session->target = LP_TARGET_EVENT;
    run_network(session, time, row, probabilities);
    return probabilities ? check_outputs(session, error) : LAPSE_OK;
}

lapse_status lapse_session_predict(lapse_session *session, double time, double *probabilities, lapse_error *error)
{
    LP_REQUIRE(error, session, probabilities);
    return lapse_session_predict_target(session, time, "event", probabilities, error);
}

lapse_status lapse_session_predict_target(lapse_session *session, double time, const char *target,
                                          double *probabilities, lapse_error *error)
{
    LP_REQUIRE(error, session, target, probabilities);
    LP_TRY(check_query(session, time, target, error));
    return query(session, time, probabilities, error);
}

lapse_status lp_session_best(lapse_session *session, double time, const char *target, int64_t top,
                             const lapse_item_filter *filter, lapse_recommendation *best, int64_t *count,
                             lapse_error *error)
{
    const lp_model_config *config = &session->model->config;
    LP_TRY(check_query(session, time, target, error));
    bool probable = has_probabilities(session->model);
    int names = lp_model_target_size(config, session->target);
    LP_TRY(query(session, time, probable ? session->probabilities : NULL, error));
    for (int i = 0; probable && i < names; i++)
        session->scores[i] = (float)log(session->probabilities[i]);
    float *scores = session->scores;
    if (!probable && session->logits != scores)
        memcpy(scores, session->logits, (size_t)names * sizeof *scores);
    double all = probable ? 0 : lp_backend_ranking(lp_backend_find("cpu"))->log_sum(names, scores);
    lp_item_mask mask = lp_item_filter_apply(filter, session->model, session->types, session->count, session->skip);
    for (int64_t i = 0; mask.skip && filter->unseen && i < config->event_types; i++)
        session->skip[i / 64] |= session->seen[i / 64] & UINT64_C(1) << (i % 64);
    for (int i = 0; mask.offset && i < names; i++)
        scores[i] += mask.offset[i];
    lp_top_k found = {.best = best, .most = top};
    lp_top_k_offer(&found, scores, names, 0, mask.skip ? lp_item_skipped : NULL, &mask);
    lp_top_k_sort(&found);
    *count = found.size;
    for (int64_t i = 0; i < *count; i++) {
        double offset = mask.offset ? (double)mask.offset[best[i].item] : 0;
        best[i].probability = probable ? session->probabilities[best[i].item] : exp(best[i].score - offset - all);
    }
    return LAPSE_OK;
}

lapse_status lapse_session_recommend(lapse_session *session, double time, int64_t top, bool unseen,
                                     lapse_recommendation *best, int64_t *count, lapse_error *error)
{
    LP_REQUIRE(error, session, best, count);
    if (top < 1)
        return lp_fail(error, LAPSE_ERROR_USAGE, "top is %lld; it must be at least 1", (long long)top);
    lapse_item_filter filter = {.unseen = unseen};
    return lp_session_best(session, time, "event", top, &filter, best, count, error);
}

/* --------------------------------------------------------------------------------------------- attention ----- */

int lapse_model_attention_blocks(const lapse_model *model)
{
    const lp_graph *graph = &model->network.graph;
    int blocks = 0;
    while (lp_attention_node(graph, blocks) < graph->node_count)
        blocks++;
    return blocks;
}

int lapse_model_attention_heads(const lapse_model *model)
{
    const lp_graph *graph = &model->network.graph;
    int first = lp_attention_node(graph, 0);
    return first < graph->node_count ? graph->nodes[first]->attributes.heads : 0;
}

int64_t lapse_session_window(const lapse_session *session)
{
    int64_t context = session->model->config.context;
    return session->count < context ? session->count : context;
}

lapse_status lapse_session_attention(lapse_session *session, double time, int block, int head, double *weights,
                                     lapse_error *error)
{
    LP_REQUIRE(error, session, weights);
    const lapse_model *model = session->model;
    int blocks = lapse_model_attention_blocks(model), heads = lapse_model_attention_heads(model);
    if (blocks == 0)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the model '%s' has no attention whose weights add up to 1; the models attention and sasrec do",
                       model->config.row->name);
    if (block < 0 || block >= blocks)
        return lp_fail(error, LAPSE_ERROR_USAGE, "block is %d; the model has %d, numbered from 0", block, blocks);
    if (head < -1 || head >= heads)
        return lp_fail(error, LAPSE_ERROR_USAGE, "head is %d; the model has %d, numbered from 0, and -1 is their mean",
                       head, heads);
    LP_TRY(check_query(session, time, NULL, error));
    lp_history history = history_of(session);
    lp_decoder_attention(&session->decoder, &history, time, block, head, weights);
    return lp_all_finite_double(weights, (size_t)lapse_session_window(session)) ? LAPSE_OK
                                                                                : lp_model_fail_infinite(model, error);
}
