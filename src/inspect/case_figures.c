/* case_figures.c: case studies: one history, its predictions as functions of the time of the next event, the probability that nothing has
 * happened yet, and the attention weight of each of its events (figures 7 and 8 of the paper). The page adds a slider over that time. */
#include "inspect/inspection.h"

#include "data/dataset/names.h"

#include <stdio.h>
#include <string.h>

enum {
    POINTS = 41,     /* of the time to the next event */
    SHOWN = 12,      /* events of the history */
    CANDIDATES = 64, /* histories among which the most telling are found */
    STUDIES_MOST = 20,
    CURVES = 4, /* predictions drawn as curves */
    TOP = 3     /* predictions listed at each time */
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
    int count = lp_largest(row, survey->classes, TOP, best);
    bool good = lp_buffer_add(out, "[", 1);
    for (int i = 0; good && i < count; i++)
        good = lp_buffer_print(out, "%s[", i ? "," : "") &&
               lp_json_add(out, lapse_model_target_name(survey->model, survey->target, best[i])) &&
               lp_buffer_print(out, ",%.4g]", row[best[i]]);
    return good && lp_buffer_add(out, "]", 1);
}

/* {"lags":["1 minute",..],"top":[[["buy tea",0.5],..],..]} */
static bool add_details(const study *s, lp_buffer *out)
{
    const lp_survey *survey = &s->about->survey;
    bool good = lp_buffer_print(out, "{\"lags\":[");
    for (int p = 0; good && p < POINTS; p++) {
        char words[64];
        lapse_duration_format(lp_survey_lag(survey, p, POINTS), words, sizeof words);
        good = lp_buffer_print(out, "%s", p ? "," : "") && lp_json_add(out, words);
    }
    good = good && lp_buffer_print(out, "],\"top\":[");
    for (int p = 0; good && p < POINTS; p++)
        good = lp_buffer_print(out, "%s", p ? "," : "") &&
               add_top(out, survey, s->probabilities + (size_t)p * (size_t)survey->classes);
    return good && lp_buffer_print(out, "]}");
}

static const char *details(const study *s)
{
    lp_buffer text = {0};
    bool good = add_details(s, &text) && lp_buffer_add(&text, "", 1);
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
    const char *name = "last";
    if (d->time[event] < last)
        name = lp_figures_text(s->figures, "-%s", lp_figures_duration(s->figures, last - d->time[event]));
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

static const char *case_id(const study *s)
{
    return lp_figures_text(s->figures, "case-%d", s->number);
}

static lp_figure *case_figure(const study *s, const char *kind, const char *title, const char *caption)
{
    lp_figure *f =
        lp_figures_add(s->figures, lp_figures_text(s->figures, "case-%d-%s", s->number, kind), title, caption);
    f->x = time_axis(&s->about->survey);
    f->cursor = case_id(s);
    return f;
}

static void weight_figure(const study *s)
{
    const lapse_dataset *d = s->about->survey.dataset;
    uint64_t end = d->start[s->sequence + 1];
    lp_figure *f = case_figure(
        s, "weights",
        lp_figures_text(s->figures, "Attention to each event of %s", lp_names_get(&d->sequences, s->sequence)),
        "Each row is an event of the history, oldest first, darker where it has more weight.");
    f->y = (lp_figure_axis){.name = "", .column = "event", .type = LP_AXIS_NAMES};
    const char **names = lp_figure_names(s->figures, &f->y, s->events);
    double *cell = lp_figure_grid(s->figures, f, s->events, POINTS);
    for (int i = 0; names && cell && i < s->events; i++) {
        names[i] = event_name(s, end - (uint64_t)(s->events - i), d->time[end - 1]);
        for (int p = 0; p < POINTS; p++) {
            cell[i * POINTS + p] = s->weights[p * SHOWN + i];
            f->grid.most = fmax(f->grid.most, cell[i * POINTS + p]);
        }
    }
}

static int64_t top_of(const study *s, int point)
{
    int64_t best = 0, classes = s->about->survey.classes;
    lp_largest(s->probabilities + (size_t)point * (size_t)classes, classes, 1, &best);
    return best;
}

/* "u17 after view camera: buy camera, after 1 hour view camera, after 7 days view lens": the most probable event, where it stays for some
 * points. */
static const char *finding(const study *s)
{
    enum { STAYS = 4, PARTS = 3 };
    const lp_survey *survey = &s->about->survey;
    const lapse_dataset *d = survey->dataset;
    const char *text = lp_figures_text(s->figures, "%s after %s", lp_names_get(&d->sequences, s->sequence),
                                       lp_names_get(&d->types, d->type[d->start[s->sequence + 1] - 1]));
    int64_t before = -1;
    for (int p = 0, next, count = 0; p < POINTS && count < PARTS; p = next) {
        int64_t top = top_of(s, p);
        for (next = p + 1; next < POINTS && top_of(s, next) == top; next++)
            continue;
        if (next - p < STAYS || top == before)
            continue;
        const char *when = count++ == 0
                               ? ": "
                               : lp_figures_text(s->figures, ", after %s ",
                                                 lp_figures_duration(s->figures, lp_survey_lag(survey, p, POINTS)));
        text = lp_figures_text(s->figures, "%s%s%s", text, when,
                               lapse_model_target_name(survey->model, survey->target, top));
        before = top;
    }
    return text;
}

/* The classes with the highest peaks. Returns their number; *varies: whether one of them depends on the time. */
static int choose_classes(const study *s, int64_t chosen[CURVES], bool *varies)
{
    lp_survey *survey = &s->about->survey;
    size_t classes = (size_t)survey->classes;
    double *peaks = survey->scratch;
    *varies = false;
    for (size_t k = 0; k < classes; k++) {
        double low = 1;
        peaks[k] = 0;
        for (int p = 0; p < POINTS; p++) {
            peaks[k] = fmax(peaks[k], s->probabilities[(size_t)p * classes + k]);
            low = fmin(low, s->probabilities[(size_t)p * classes + k]);
        }
        *varies |= peaks[k] - low > 1e-4;
    }
    return lp_largest(peaks, survey->classes, CURVES, chosen);
}

static void prediction_figure(const study *s)
{
    const lp_survey *survey = &s->about->survey;
    int64_t chosen[CURVES];
    bool varies;
    int count = choose_classes(s, chosen, &varies);
    lp_figure *f = case_figure(s, "predictions", finding(s),
                               "The probability of each event if the next one comes that much later.");
    const lp_figure_axis probability = {.name = "probability", .column = "probability", .type = LP_AXIS_PERCENT};
    f->series_column = survey->target;
    const char **names = NULL;
    lp_series *dots = NULL;
    if (varies) {
        f->y = probability;
        f->details = details(s);
    } else {
        f->caption =
            "The probability of each event, whenever the next one comes: the model does not see the elapsed time.";
        f->cursor = NULL;
        f->x = probability;
        f->y = (lp_figure_axis){.name = "", .column = survey->target, .type = LP_AXIS_NAMES};
        names = lp_figure_names(s->figures, &f->y, count);
        dots = lp_figure_series(s->figures, f, "prediction", LP_MARK_INTERVAL);
    }
    for (int i = 0; i < count; i++) {
        const char *name = lapse_model_target_name(survey->model, survey->target, chosen[i]);
        const double *p = s->probabilities + chosen[i];
        if (!varies) {
            if (names)
                names[i] = lp_figures_text(s->figures, "%s", name);
            lp_series_add(s->figures, dots, *p, i);
            continue;
        }
        lp_series *curve = lp_figure_series(s->figures, f, name, LP_MARK_LINE);
        curve->colour = lp_figures_colour(s->figures, name);
        for (int k = 0; k < POINTS; k++)
            lp_series_add(s->figures, curve, lp_survey_lag(survey, k, POINTS), p[(size_t)k * (size_t)survey->classes]);
    }
}

/* The session has the whole history (query). */
static lapse_status survival_figure(const study *s, lapse_error *error)
{
    const lp_survey *survey = &s->about->survey;
    lp_next_time law;
    LP_TRY(lp_session_law(survey->session, &law, error));
    lp_figure *f = case_figure(s, "survival",
                               lp_figures_text(s->figures, "%s: an even chance of the next event within %s",
                                               lp_names_get(&survey->dataset->sequences, s->sequence),
                                               lp_figures_duration(s->figures, lp_next_time_quantile(&law, 0.5))),
                               "The probability that nothing has happened yet, by the time since the last event. It "
                               "falls where the next event is expected.");
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
    double changes[CANDIDATES];
    int64_t best[STUDIES_MOST], sequences[CANDIDATES];
    *count = 0;
    for (int i = 0; i < options->sequence_count; i++) {
        chosen[*count] = lp_names_find(&about->dataset->sequences, options->sequences[i]);
        if (chosen[(*count)++] < 0)
            return lp_fail(error, LAPSE_ERROR_UNKNOWN, "the data has no sequence '%s'", options->sequences[i]);
    }
    int64_t candidates = survey->sequence_count < CANDIDATES ? survey->sequence_count : CANDIDATES;
    if (options->sequence_count > 0)
        return LAPSE_OK;
    for (int64_t n = 0; n < candidates; n++) {
        sequences[n] = survey->sequences[n * survey->sequence_count / candidates];
        LP_TRY(change_of(survey, sequences[n], early, &changes[n], error));
    }
    *count = lp_largest(changes, candidates, options->case_studies, best);
    for (int i = 0; i < *count; i++)
        chosen[i] = sequences[best[i]];
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
        figures->section = i == 0 ? "lead" : "cases";
        prediction_figure(&s);
        figures->section = "cases";
        if (lp_model_predicts_time(about->model))
            LP_TRY(survival_figure(&s, error));
        figures->section = "curious";
        if (s.weights)
            weight_figure(&s);
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
