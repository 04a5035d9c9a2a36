/* survey.c: replays sequences through a session. Each event is appended once; every query costs one row. */
#include "inspect/survey.h"

#include "base/memory.h"
#include "evaluate/evaluator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void lp_survey_clear(lp_survey *survey)
{
    lp_id_map_clear(&survey->id_map);
    lapse_session_free(survey->session);
    lp_free(survey->probabilities);
    lp_free(survey->scratch);
    lp_free(survey->weights);
    lp_free(survey->gaps);
    lp_free(survey->cases);
    lp_free(survey->sequences);
    *survey = (lp_survey){0};
}

/* Empties a session for the events of this sequence. */
static void begin(const lp_survey *survey, lapse_session *session, int64_t sequence)
{
    lapse_session_clear(session);
    session->sequence = survey->id_map.columns.sequences_known ? (int32_t)sequence + 1 : 0;
}

lapse_status lp_survey_read(const lp_survey *survey, lapse_session *session, int64_t sequence, uint64_t end,
                            lapse_error *error)
{
    begin(survey, session, sequence);
    for (uint64_t i = survey->dataset->start[sequence]; i < end; i++)
        LP_TRY(lp_session_add_row(session, &survey->id_map.columns, survey->dataset->time[i], i, error));
    return LAPSE_OK;
}

double lp_survey_lag(const lp_survey *survey, int point, int points)
{
    return survey->shortest * pow(survey->longest / survey->shortest, (double)point / (points - 1));
}

int lp_largest(const double *values, int64_t count, int most, int64_t *indices)
{
    int size = 0;
    for (int64_t i = 0; i < count; i++) {
        int place = size < most ? size++ : most;
        for (; place > 0 && values[indices[place - 1]] < values[i]; place--)
            if (place < most)
                indices[place] = indices[place - 1];
        if (place < most)
            indices[place] = i;
    }
    return size;
}

/* ------------------------------------------------------------------------------------------------- lags ------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static lapse_status find_lags(lp_survey *survey, lapse_error *error)
{
    const lapse_dataset *d = survey->dataset;
    double *gaps = survey->gaps = lp_alloc((size_t)d->event_count, sizeof *gaps);
    int64_t count = 0;
    if (!gaps)
        return lp_fail_memory(error, "a survey", (size_t)d->event_count * sizeof *gaps);
    for (int64_t s = 0; s < d->sequence_count; s++)
        for (uint64_t i = d->start[s] + 1; i < d->start[s + 1]; i++)
            if (d->time[i] > d->time[i - 1])
                gaps[count++] = d->time[i] - d->time[i - 1];
    qsort(gaps, (size_t)count, sizeof *gaps, by_value);
    survey->shortest = count > 0 ? gaps[count / 20] : 1;
    survey->longest = count > 0 ? 2 * gaps[count - 1 - count / 100] : 86400;
    if (survey->longest < 10 * survey->shortest)
        survey->longest = 10 * survey->shortest;
    survey->gap_count = count;
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------ cases ------- */

static bool is_case(const lp_survey *survey, const uint8_t *split, lp_split wanted, int64_t sequence, uint64_t event)
{
    bool chosen = wanted == LP_SPLIT_COUNT ? !split || split[event] != LP_SPLIT_NONE : split[event] == wanted;
    return event > survey->dataset->start[sequence] && chosen;
}

static int64_t count_cases(const lp_survey *survey, const uint8_t *split, lp_split wanted, int64_t sequence)
{
    int64_t count = 0;
    for (uint64_t i = survey->dataset->start[sequence]; i < survey->dataset->start[sequence + 1]; i++)
        count += is_case(survey, split, wanted, sequence, i);
    return count;
}

/* The classes of the target event, in the model's ids. */
static int32_t label(const lp_survey *survey, uint64_t event)
{
    const lp_event_columns *columns = &survey->id_map.columns;
    return strcmp(survey->target, "event") == 0 ? columns->type[event] : columns->action[event];
}

bool lp_survey_success(const lp_survey *survey, const lp_survey_case *c)
{
    enum { TOP = 10 };
    return survey->model->config.task == LP_TASK_RECOMMEND ? c->rank <= TOP : c->predicted == c->target;
}

/* Fills what probabilities say of a case. */
static void judge(const lp_survey *survey, const double *probabilities, lp_survey_case *c)
{
    c->target_probability = probabilities[c->target];
    for (int64_t i = 0; i < survey->classes; i++) {
        c->rank += probabilities[i] >= c->target_probability;
        if (probabilities[i] > probabilities[c->predicted])
            c->predicted = (int32_t)i;
    }
    c->confidence = probabilities[c->predicted];
}

/* What it is worth to know the elapsed time of case c: without it, the prediction is the mean over the quantiles of all gaps. */
static lapse_status weigh_time(lp_survey *survey, double last, const lp_survey_case *c, lapse_error *error)
{
    enum { GAPS = 8 };
    static const int64_t PROBABILITIES_MOST = 2000000; /* of all cases, at one time */
    lp_survey_case blind = {.target = c->target};
    if (survey->gap_count == 0 || survey->case_count * survey->classes > PROBABILITIES_MOST)
        return LAPSE_OK;
    memset(survey->scratch, 0, (size_t)survey->classes * sizeof *survey->scratch);
    for (int g = 0; g < GAPS; g++) {
        double time = last + survey->gaps[(2 * g + 1) * survey->gap_count / (2 * GAPS)];
        LP_TRY(lapse_session_predict_target(survey->session, time, survey->target, survey->probabilities, error));
        for (int64_t i = 0; i < survey->classes; i++)
            survey->scratch[i] += survey->probabilities[i] / GAPS;
        survey->sees_time |= fabs(survey->probabilities[c->target] - c->target_probability) > 1e-6;
    }
    judge(survey, survey->scratch, &blind);
    survey->time_worth += lp_survey_success(survey, c) - lp_survey_success(survey, &blind);
    survey->time_cases++;
    return LAPSE_OK;
}

static lapse_status add_case(lp_survey *survey, int64_t sequence, uint64_t event, lapse_error *error)
{
    const lapse_dataset *d = survey->dataset;
    double time = d->time[event], last = d->time[event - 1];
    lp_survey_case *c = &survey->cases[survey->case_count++];
    LP_TRY(lapse_session_predict_target(survey->session, time, survey->target, survey->probabilities, error));
    *c = (lp_survey_case){.sequence = sequence,
                          .event = (int64_t)event,
                          .history = (int64_t)(event - d->start[sequence]),
                          .gap = time - last,
                          .target = label(survey, event),
                          .pit = NAN,
                          .weight = NAN};
    judge(survey, survey->probabilities, c);
    LP_TRY(weigh_time(survey, last, c, error));
    if (lp_model_predicts_time(survey->model)) {
        lp_next_time law;
        LP_TRY(lp_session_law(survey->session, &law, error));
        c->pit = lp_time_pit(&law, c->gap, survey->model->config.when ? survey->model->config.when_floor : 0);
    }
    if (survey->block < 0)
        return LAPSE_OK;
    LP_TRY(lapse_session_attention(survey->session, time, survey->block, -1, survey->weights, error));
    c->weight = survey->weights[lapse_session_window(survey->session) - 1];
    return LAPSE_OK;
}

static lapse_status read_sequence(lp_survey *survey, const uint8_t *split, lp_split wanted, int64_t sequence,
                                  lapse_error *error)
{
    const lapse_dataset *d = survey->dataset;
    begin(survey, survey->session, sequence);
    survey->sequences[survey->sequence_count++] = sequence;
    for (uint64_t i = d->start[sequence]; i < d->start[sequence + 1]; i++) {
        if (is_case(survey, split, wanted, sequence, i))
            LP_TRY(add_case(survey, sequence, i, error));
        LP_TRY(lp_session_add_row(survey->session, &survey->id_map.columns, d->time[i], i, error));
    }
    return LAPSE_OK;
}

/* Takes sequences that have cases, evenly spread, so many that about max_cases are read. */
static lapse_status read_sequences(lp_survey *survey, const uint8_t *split, lp_split wanted, int64_t max_cases,
                                   lapse_error *error)
{
    const lapse_dataset *d = survey->dataset;
    int64_t number = 0;
    for (int64_t s = 0; s < d->sequence_count; s++)
        survey->case_total += count_cases(survey, split, wanted, s);
    if (survey->case_total == 0)
        return lp_fail(error, LAPSE_ERROR_INPUT, "the split '%s' has no event with an event before it", survey->split);
    double part = max_cases < survey->case_total ? (double)max_cases / (double)survey->case_total : 1;
    survey->cases = lp_alloc((size_t)survey->case_total, sizeof *survey->cases);
    survey->sequences = lp_alloc((size_t)d->sequence_count, sizeof *survey->sequences);
    if (!survey->cases || !survey->sequences)
        return lp_fail_memory(error, "a survey", (size_t)survey->case_total * sizeof *survey->cases);
    for (int64_t s = 0; s < d->sequence_count; s++)
        if (count_cases(survey, split, wanted, s) > 0) {
            bool taken = floor((double)(number + 1) * part) > floor((double)number * part) || number == 0;
            number++;
            if (taken)
                LP_TRY(read_sequence(survey, split, wanted, s, error));
        }
    survey->time_worth /= fmax(1, (double)survey->time_cases);
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------- make ------- */

static lapse_status fill(lp_survey *survey, const char *name, int64_t max_cases, lapse_error *error)
{
    const lapse_model *model = survey->model;
    uint8_t *split = NULL;
    lp_split wanted;
    lp_target target;
    const char *events; /* that are targets */
    LP_TRY(lp_id_map_init(&survey->id_map, model, survey->dataset, error));
    LP_TRY(find_lags(survey, error));
    LP_TRY(lapse_session_new(model, &survey->session, error));
    LP_TRY(lp_session_hold(survey->session, error));
    survey->classes = lapse_model_target_size(model, survey->target);
    survey->probabilities = lp_alloc((size_t)survey->classes, sizeof *survey->probabilities);
    survey->scratch = lp_alloc((size_t)survey->classes, sizeof *survey->scratch);
    survey->weights = lp_alloc((size_t)model->config.context, sizeof *survey->weights);
    if (!survey->probabilities || !survey->scratch || !survey->weights)
        return lp_fail_memory(error, "a survey", (size_t)survey->classes * sizeof *survey->probabilities);
    LP_TRY(lp_evaluator_target(model, NULL, &target, &events, error));
    LP_TRY(lp_evaluator_split(model, survey->dataset, name, events, &split, &wanted, error));
    lapse_status status = read_sequences(survey, split, wanted, max_cases, error);
    lp_free(split);
    return status;
}

lapse_status lp_survey_make(lp_survey *survey, const lapse_model *model, const lapse_dataset *dataset,
                            const char *split, int64_t max_cases, int block, lapse_error *error)
{
    bool own = lapse_dataset_fingerprint(dataset) == model->fingerprint;
    *survey = (lp_survey){.model = model,
                          .dataset = dataset,
                          .target = lapse_model_target(model, 0),
                          .split = split ? split
                                   : own ? "test"
                                         : "all",
                          .block = block};
    lapse_status status = fill(survey, survey->split, max_cases, error);
    if (status != LAPSE_OK)
        lp_survey_clear(survey);
    return status;
}
