/* case_figures.c: case studies (figures 7 and 8 of the paper): one history, the attention weight of each of its events, and the
 * predictions, as functions of the time of the next event. The page adds a slider over that time. */
#include "inspect/inspection.h"

#include "data/dataset/names.h"

#include <stdio.h>
#include <string.h>

enum {
    POINTS = 41,     /* of the time to the next event */
    SHOWN = 12,      /* events of the history */
    CANDIDATES = 64, /* histories among which the most telling are found */
    STUDIES_MOST = 20,
    CURVES = 6, /* predictions drawn as curves */
    TOP = 5     /* predictions listed at each time */
};

typedef struct study {
    lp_inspection *about;
    lp_figures *figures;
    int64_t sequence;
    int number;            /* from 1 */
    int events;            /* of its history that are shown */
    double *probabilities; /* [POINTS x classes] */
    double *weights;       /* [POINTS x events]; NULL: no attention */
} study;

/* ------------------------------------------------------------------------------------------------- query ------ */

static lapse_status query(study *s, lapse_error *error)
{
    lp_survey *survey = &s->about->survey;
    const uint64_t *start = survey->dataset->start + s->sequence;
    LP_TRY(lp_survey_read(survey, survey->session, s->sequence, start[1], error));
    int64_t window = lapse_session_window(survey->session);
    s->events = (int)(window < SHOWN ? window : SHOWN);
    for (int p = 0; p < POINTS; p++) {
        double time = survey->dataset->time[start[1] - 1] + lp_survey_lag(survey, p, POINTS);
        LP_TRY(lapse_session_predict_target(survey->session, time, survey->target,
                                            s->probabilities + (size_t)p * (size_t)survey->classes, error));
        if (!s->weights)
            continue;
        LP_TRY(lapse_session_attention(survey->session, time, survey->block, -1, survey->weights, error));
        memcpy(s->weights + p * SHOWN, survey->weights + window - s->events, (size_t)s->events * sizeof *s->weights);
    }
    return LAPSE_OK;
}

/* How much the predictions change from one end of the time axis to the other: half the sum of the differences. */
static lapse_status change_of(lp_survey *survey, int64_t sequence, double *early, double *change, lapse_error *error)
{
    const uint64_t *start = survey->dataset->start + sequence;
    double last = survey->dataset->time[start[1] - 1];
    LP_TRY(lp_survey_read(survey, survey->session, sequence, start[1], error));
    LP_TRY(lapse_session_predict_target(survey->session, last + survey->shortest, survey->target, early, error));
    LP_TRY(lapse_session_predict_target(survey->session, last + survey->longest, survey->target, survey->probabilities,
                                        error));
    *change = 0;
    for (int64_t k = 0; k < survey->classes; k++)
        *change += fabs(early[k] - survey->probabilities[k]) / 2;
    return LAPSE_OK;
}

/* ---------------------------------------------------------------------------------------------- page data ----- */

static bool add_top(lp_buffer *out, const lp_survey *survey, const double *row)
{
    int64_t best[TOP];
    int count = 0;
    for (int64_t k = 0; k < survey->classes; k++) {
        int place = count < TOP ? count++ : TOP;
        for (; place > 0 && row[best[place - 1]] < row[k]; place--)
            if (place < TOP)
                best[place] = best[place - 1];
        if (place < TOP)
            best[place] = k;
    }
    bool good = lp_buffer_add(out, "[", 1);
    for (int i = 0; good && i < count; i++)
        good = lp_buffer_print(out, "%s[", i ? "," : "") &&
               lp_json_add(out, lapse_model_target_name(survey->model, survey->target, best[i])) &&
               lp_buffer_print(out, ",%.4g]", row[best[i]]);
    return good && lp_buffer_add(out, "]", 1);
}

/* {"lags":["1 minute",..],"events":[["buy coffee","2 days before"],..],"weights":[[..],..],"top":[[["buy tea",0.5],..],..]} */
static bool add_details(const study *s, const char *const *names, lp_buffer *out)
{
    const lp_survey *survey = &s->about->survey;
    bool good = lp_buffer_print(out, "{\"lags\":[");
    for (int p = 0; good && p < POINTS; p++) {
        char words[64];
        lapse_duration_format(lp_survey_lag(survey, p, POINTS), words, sizeof words);
        good = lp_buffer_print(out, "%s", p ? "," : "") && lp_json_add(out, words);
    }
    good = good && lp_buffer_print(out, "],\"events\":[");
    for (int i = 0; good && i < s->events; i++)
        good = lp_buffer_print(out, "%s", i ? "," : "") && lp_json_add(out, names[i]);
    good = good && lp_buffer_print(out, "],\"weights\":[");
    for (int p = 0; good && s->weights && p < POINTS; p++) {
        good = lp_buffer_print(out, "%s[", p ? "," : "");
        for (int i = 0; good && i < s->events; i++)
            good = lp_buffer_print(out, "%s%.4g", i ? "," : "", s->weights[p * SHOWN + i]);
        good = good && lp_buffer_print(out, "]");
    }
    good = good && lp_buffer_print(out, "],\"top\":[");
    for (int p = 0; good && p < POINTS; p++)
        good = lp_buffer_print(out, "%s", p ? "," : "") &&
               add_top(out, survey, s->probabilities + (size_t)p * (size_t)survey->classes);
    return good && lp_buffer_print(out, "]}");
}

static const char *details(const study *s, const char *const *names)
{
    lp_buffer text = {0};
    bool good = add_details(s, names, &text) && lp_buffer_add(&text, "", 1);
    const char *copy = good ? lp_figures_text(s->figures, "%s", text.data) : "";
    s->figures->failed |= !good;
    lp_buffer_clear(&text);
    return copy;
}

/* ----------------------------------------------------------------------------------------------- figures ------ */

/* "view camera, -3 days": the event, with its action where that is a column, and its time relative to the last event. */
static const char *event_name(const study *s, uint64_t event, double last)
{
    const lapse_dataset *d = s->about->dataset;
    bool action = d->field_count > 0 && d->fields[0].type == LAPSE_FIELD_ACTION;
    char words[64] = "", name[72];
    if (d->time[event] < last)
        snprintf(name, sizeof name, "-%s", lapse_duration_format(last - d->time[event], words, sizeof words));
    else
        snprintf(name, sizeof name, "last");
    return lp_figures_text(s->figures, "%s%s%s, %s",
                           action ? lp_names_get(&d->fields[0].categories, d->fields[0].category[event]) : "",
                           action ? " " : "", lp_names_get(&d->types, d->type[event]), name);
}

static lp_figure_axis time_axis(const lp_survey *survey)
{
    return (lp_figure_axis){"time from the last event to the next",
                            "lag_seconds",
                            LP_AXIS_TIME,
                            true,
                            survey->shortest,
                            survey->longest,
                            NULL,
                            0};
}

static void weight_figure(const study *s)
{
    const lp_survey *survey = &s->about->survey;
    const lapse_dataset *d = survey->dataset;
    uint64_t end = d->start[s->sequence + 1];
    const char *name = lp_names_get(&d->sequences, s->sequence);
    lp_figure *f =
        lp_figures_add(s->figures, lp_figures_text(s->figures, "case-%d-weights", s->number),
                       lp_figures_text(s->figures, "Case %d, sequence %s: weight of each event", s->number, name),
                       "Each row is an event of the history, oldest first, darker where it has more weight. The slider "
                       "moves the time of "
                       "the next event, and the bars below follow.");
    f->x = time_axis(survey);
    f->y = (lp_figure_axis){.name = "", .column = "event", .type = LP_AXIS_NAMES};
    const char **names = lp_figure_names(s->figures, &f->y, s->events);
    double *cell = s->weights ? lp_figure_grid(s->figures, f, s->events, POINTS) : NULL;
    for (int i = 0; names && i < s->events; i++) {
        names[i] = event_name(s, end - (uint64_t)(s->events - i), d->time[end - 1]);
        for (int p = 0; cell && p < POINTS; p++) {
            cell[i * POINTS + p] = s->weights[p * SHOWN + i];
            f->grid.most = fmax(f->grid.most, cell[i * POINTS + p]);
        }
    }
    if (!s->weights)
        f->missing = "The model has no attention whose weights add up to 1; its predictions follow.";
    if (names)
        f->details = details(s, names);
}

static void prediction_figure(const study *s)
{
    const lp_survey *survey = &s->about->survey;
    size_t classes = (size_t)survey->classes;
    int64_t chosen[CURVES];
    double peaks[CURVES];
    int count = 0;
    for (size_t k = 0; k < classes; k++) {
        double peak = 0;
        for (int p = 0; p < POINTS; p++)
            peak = fmax(peak, s->probabilities[(size_t)p * classes + k]);
        int place = count < CURVES ? count++ : CURVES;
        for (; place > 0 && peaks[place - 1] < peak; place--)
            if (place < CURVES) {
                chosen[place] = chosen[place - 1];
                peaks[place] = peaks[place - 1];
            }
        if (place < CURVES) {
            chosen[place] = (int64_t)k;
            peaks[place] = peak;
        }
    }
    lp_figure *f =
        lp_figures_add(s->figures, lp_figures_text(s->figures, "case-%d-predictions", s->number),
                       lp_figures_text(s->figures, "Case %d: predictions by the time of the next event", s->number),
                       "The probability of each event if the next one comes that much later; curves that cross change "
                       "the prediction.");
    f->x = time_axis(survey);
    f->y = (lp_figure_axis){.name = "probability", .column = "probability", .type = LP_AXIS_PERCENT};
    f->series_column = survey->target;
    for (int i = 0; i < count; i++) {
        lp_series *curve = lp_figure_series(
            s->figures, f, lapse_model_target_name(survey->model, survey->target, chosen[i]), LP_MARK_LINE);
        for (int p = 0; p < POINTS; p++)
            lp_series_add(s->figures, curve, lp_survey_lag(survey, p, POINTS),
                          s->probabilities[(size_t)p * classes + (size_t)chosen[i]]);
    }
}

/* The session has the whole history (query). */
static lapse_status survival_figure(const study *s, lapse_error *error)
{
    const lp_survey *survey = &s->about->survey;
    lp_next_time law;
    LP_TRY(lp_session_law(survey->session, &law, error));
    lp_figure *f = lp_figures_add(
        s->figures, lp_figures_text(s->figures, "case-%d-survival", s->number),
        lp_figures_text(s->figures, "Case %d: probability that nothing has happened yet", s->number),
        lp_figures_text(s->figures,
                        "The curve falls where the next event is expected; the median is %s after the last event.",
                        lapse_duration_format(lp_next_time_quantile(&law, 0.5), (char[64]){0}, 64)));
    f->x = time_axis(survey);
    f->y = (lp_figure_axis){"no event yet", "survival", LP_AXIS_PERCENT, false, 0, 1, NULL, 0};
    lp_series *curve = lp_figure_series(s->figures, f, "", LP_MARK_LINE);
    for (int p = 0; p < POINTS; p++) {
        double lag = lp_survey_lag(survey, p, POINTS);
        lp_series_add(s->figures, curve, lag, lp_next_time_survival(&law, lag));
    }
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------ studies ----- */

/* The named sequences, or those whose predictions change most with time. */
static lapse_status choose(lp_inspection *about, double *early, int64_t chosen[STUDIES_MOST], int *count,
                           lapse_error *error)
{
    const lapse_inspect_options *options = about->options;
    lp_survey *survey = &about->survey;
    double changes[STUDIES_MOST];
    *count = 0;
    for (int i = 0; i < options->sequence_count; i++) {
        chosen[*count] = lp_names_find(&about->dataset->sequences, options->sequences[i]);
        if (chosen[(*count)++] < 0)
            return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the data has no sequence '%s'", options->sequences[i]);
    }
    int64_t candidates = survey->sequence_count < CANDIDATES ? survey->sequence_count : CANDIDATES;
    for (int64_t n = 0; n < candidates && options->sequence_count == 0; n++) {
        int64_t sequence = survey->sequences[n * survey->sequence_count / candidates];
        double change;
        LP_TRY(change_of(survey, sequence, early, &change, error));
        int place = *count < options->case_studies ? (*count)++ : options->case_studies;
        for (; place > 0 && changes[place - 1] < change; place--)
            if (place < options->case_studies) {
                chosen[place] = chosen[place - 1];
                changes[place] = changes[place - 1];
            }
        if (place < options->case_studies) {
            chosen[place] = sequence;
            changes[place] = change;
        }
    }
    return LAPSE_OK;
}

static lapse_status make(lp_inspection *about, lp_figures *figures, double *probabilities, double *weights,
                         lapse_error *error)
{
    int64_t chosen[STUDIES_MOST];
    int count;
    LP_TRY(choose(about, probabilities, chosen, &count, error));
    for (int i = 0; i < count; i++) {
        study s = {.about = about,
                   .figures = figures,
                   .sequence = chosen[i],
                   .number = i + 1,
                   .probabilities = probabilities,
                   .weights = about->survey.block < 0 ? NULL : weights};
        LP_TRY(query(&s, error));
        weight_figure(&s);
        prediction_figure(&s);
        if (lp_model_predicts_time(about->model))
            LP_TRY(survival_figure(&s, error));
    }
    if (count > 0 && !lp_model_predicts_time(about->model))
        lp_figures_missing(figures, "case-survival", "Cases: probability that nothing has happened yet", LP_NO_TIMES);
    return LAPSE_OK;
}

lapse_status lp_case_figures(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    if (!about->has_survey) {
        lp_figures_missing(figures, "cases", "Case studies", about->no_survey);
        return LAPSE_OK;
    }
    size_t size = POINTS * (size_t)about->survey.classes;
    double *probabilities = lp_alloc(size, sizeof *probabilities);
    double *weights = lp_alloc((size_t)POINTS * SHOWN, sizeof *weights);
    lapse_status status = probabilities && weights ? make(about, figures, probabilities, weights, error)
                                                   : lp_fail_memory(error, "a figure", size * sizeof *probabilities);
    lp_free(probabilities);
    lp_free(weights);
    return status;
}
