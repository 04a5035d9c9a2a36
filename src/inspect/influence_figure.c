/* influence_figure.c: how an event changes the prediction, as a function of the time since it.
 *
 * The influence of an event on a class at a lag is the probability of the class with the event in the history, minus its
 * probability without. Unlike attention weights it exists for every model, and says what the weight is used for. The curve of an
 * event type is the mean over its events that end a history. An event may raise one class at once and another one days later, so
 * curves are those of the classes that are raised most at a short lag, and at a long one. */
#include "inspect/inspection.h"

#include <math.h>
#include <string.h>

enum {
    POINTS = 40,
    TYPES_MOST = 24,  /* event types that are tried: the most frequent */
    EVENTS_MOST = 32, /* events of each */
    EVENTS_FEW = 8,   /* the same, where there are many classes */
    CLASSES_MANY = 1000,
    CLASSES_MOST = 20000, /* each query computes the probability of every class */
    CURVES = 2            /* of each half of the axis */
};

/* Curves that vary by less, of their peak, are dots. */
static const double VARIES = 0.25;

lapse_status lp_influence_add(const lp_survey *survey, lapse_session *with, lapse_session *without, int64_t sequence,
                              uint64_t last, int points, double *change, lapse_error *error)
{
    LP_TRY(lp_survey_read(survey, without, sequence, last, error));
    LP_TRY(lp_survey_read(survey, with, sequence, last + 1, error));
    for (int p = 0; p < points; p++) {
        double time = survey->dataset->time[last] + lp_survey_lag(survey, p, points);
        double *row = change + (size_t)p * (size_t)survey->classes;
        LP_TRY(lapse_session_predict_target(with, time, survey->target, survey->probabilities, error));
        for (int64_t k = 0; k < survey->classes; k++)
            row[k] += survey->probabilities[k];
        LP_TRY(lapse_session_predict_target(without, time, survey->target, survey->probabilities, error));
        for (int64_t k = 0; k < survey->classes; k++)
            row[k] -= survey->probabilities[k];
    }
    return LAPSE_OK;
}

/* The curve of one event type. */
typedef struct curve {
    int32_t type;  /* of the dataset */
    int64_t class; /* that it raises most */
    double peak;   /* its largest change in a half of the axis, at point `at` */
    int at;
    double value[POINTS];
} curve;

/* The events that are tried: evenly spread over those of the sampled sequences that have an event before them. */
static lapse_status mean_change(lp_survey *survey, lapse_session *without, int32_t type, double *change, int *count,
                                lapse_error *error)
{
    const lapse_dataset *d = survey->dataset;
    int64_t total = 0, seen = 0, most = survey->classes > CLASSES_MANY ? EVENTS_FEW : EVENTS_MOST;
    *count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t s = 0; s < survey->sequence_count; s++) {
            int64_t sequence = survey->sequences[s];
            for (uint64_t i = d->start[sequence] + 1; i < d->start[sequence + 1]; i++) {
                if (d->type[i] != type)
                    continue;
                if (pass == 0)
                    total++;
                else if (total > 0 && seen++ * most / total >= *count && *count < most) {
                    LP_TRY(lp_influence_add(survey, survey->session, without, sequence, i, POINTS, change, error));
                    (*count)++;
                }
            }
        }
    return LAPSE_OK;
}

/* The class that the event type raises most in one half of the axis. change: the mean [POINTS x classes]. */
static curve make_curve(const lp_survey *survey, int32_t type, const double *change, bool late)
{
    size_t classes = (size_t)survey->classes, first = late ? POINTS / 2 : 0, end = late ? POINTS : POINTS / 2;
    curve c = {.type = type};
    for (size_t i = first * classes; i < end * classes; i++)
        if (change[i] > c.peak) {
            c.peak = change[i];
            c.class = (int64_t)(i % classes);
            c.at = (int)(i / classes);
        }
    for (size_t p = 0; p < POINTS; p++)
        c.value[p] = change[p * classes + (size_t)c.class];
    return c;
}

static const char *name_of(const lp_survey *survey, lp_figures *figures, const curve *c)
{
    return lp_figures_text(figures, "%s \xe2\x86\x92 %s", lapse_dataset_event_type_name(survey->dataset, c->type),
                           lapse_model_target_name(survey->model, survey->target, c->class));
}

/* Curves over the time since the event, in the colour of the event that they raise. */
static void draw_curves(const lp_survey *survey, lp_figures *figures, lp_figure *f, const curve *curves, int count)
{
    const curve *last = &curves[count - 1];
    f->title = lp_figures_text(figures, "%s: +%.*f points after %s", name_of(survey, figures, &curves[0]),
                               curves[0].peak < 0.02, 100 * curves[0].peak,
                               lp_figures_duration(figures, lp_survey_lag(survey, curves[0].at, POINTS)));
    f->caption =
        lp_figures_text(figures,
                        "How much an event raises the probability of another, by the time since it: the prediction "
                        "with it minus that without it.%s",
                        last->at <= curves[0].at
                            ? ""
                            : lp_figures_text(figures, " %s has its peak, +%.*f points, after %s.",
                                              name_of(survey, figures, last), last->peak < 0.02, 100 * last->peak,
                                              lp_figures_duration(figures, lp_survey_lag(survey, last->at, POINTS))));
    f->x = (lp_figure_axis){"time since the event", "lag_seconds",   LP_AXIS_TIME, true,
                            survey->shortest,       survey->longest, NULL,         0};
    f->y = (lp_figure_axis){.name = "change of probability", .column = "change", .type = LP_AXIS_PERCENT};
    for (int i = 0; i < count; i++) {
        lp_series *series = lp_figure_series(figures, f, name_of(survey, figures, &curves[i]), LP_MARK_LINE);
        series->colour =
            lp_figures_colour(figures, lapse_model_target_name(survey->model, survey->target, curves[i].class));
        for (int p = 0; p < POINTS; p++)
            lp_series_add(figures, series, lp_survey_lag(survey, p, POINTS), curves[i].value[p]);
    }
}

/* One value for each, where the time since the event changes nothing. */
static void draw_dots(const lp_survey *survey, lp_figures *figures, lp_figure *f, const curve *curves, int count)
{
    f->title = "What events change hardly depends on the time since them";
    f->caption = "How much the last event raises the probability of the one that it raises most: the prediction with "
                 "it minus that without it.";
    f->x = (lp_figure_axis){.name = "change of probability", .column = "change", .type = LP_AXIS_PERCENT};
    f->y = (lp_figure_axis){.name = "", .column = "event", .type = LP_AXIS_NAMES};
    const char **names = lp_figure_names(figures, &f->y, count);
    lp_series *series = lp_figure_series(figures, f, "influence", LP_MARK_INTERVAL);
    for (int i = 0; names && i < count; i++) {
        names[i] = name_of(survey, figures, &curves[i]);
        lp_series_add(figures, series, curves[i].peak, i);
    }
}

static void draw(lp_survey *survey, lp_figures *figures, const curve *curves, int count)
{
    lp_figure *f = lp_figures_add(figures, "influence", "Influence of an event by the time since it", "");
    bool varies = false;
    f->series_column = "influence";
    for (int i = 0; i < count; i++)
        for (int p = 1; p < POINTS; p++)
            varies |= fabs(curves[i].value[p] - curves[i].value[0]) > VARIES * curves[i].peak;
    if (count == 0)
        f->missing = "No event type raises the probability of another event.";
    else
        (varies ? draw_curves : draw_dots)(survey, figures, f, curves, count);
}

/* Keeps the curves with the highest peaks, each of another class, by falling peak. Returns their number. */
static int keep(curve *best, int count, int most, curve c)
{
    int i = 0;
    while (i < count && best[i].class != c.class)
        i++;
    if (c.peak <= 0 || (i < count && best[i].peak >= c.peak) || (i == most && best[most - 1].peak >= c.peak))
        return count;
    if (i == count && count < most)
        count++;
    for (i = i < count ? i : count - 1; i > 0 && best[i - 1].peak < c.peak; i--)
        best[i] = best[i - 1];
    best[i] = c;
    return count;
}

/* Curves of the frequent event types; those with the highest peaks are drawn. */
static lapse_status make(lp_survey *survey, lapse_session *without, double *change, lp_figures *figures,
                         lapse_error *error)
{
    size_t size = POINTS * (size_t)survey->classes;
    curve best[2 * CURVES], late[2 * CURVES];
    int count = 0, late_count = 0;
    for (int32_t type = 0; type < TYPES_MOST && type < survey->dataset->types.count; type++) {
        int events;
        memset(change, 0, size * sizeof *change);
        LP_TRY(mean_change(survey, without, type, change, &events, error));
        for (size_t i = 0; i < size && events > 0; i++)
            change[i] /= events;
        if (events == 0)
            continue;
        count = keep(best, count, CURVES, make_curve(survey, type, change, false));
        late_count = keep(late, late_count, 2 * CURVES, make_curve(survey, type, change, true));
    }
    for (int i = 0, early = count; i < late_count && count < early + CURVES; i++) {
        bool drawn = false;
        for (int k = 0; k < count; k++)
            drawn |= best[k].class == late[i].class;
        if (!drawn)
            best[count++] = late[i];
    }
    draw(survey, figures, best, count);
    return LAPSE_OK;
}

lapse_status lp_influence_figure(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    lp_survey *survey = &about->survey;
    if (!about->has_survey) {
        lp_figures_missing(figures, "influence", "Influence of an event by the time since it", about->no_survey);
        return LAPSE_OK;
    }
    if (survey->classes > CLASSES_MOST) {
        lp_figures_missing(figures, "influence", "Influence of an event by the time since it",
                           lp_figures_text(figures,
                                           "The catalogue has %lld items, and this figure would take minutes "
                                           "for more than %d.",
                                           (long long)survey->classes, CLASSES_MOST));
        return LAPSE_OK;
    }
    lapse_session *without = NULL;
    LP_TRY(lapse_session_new(about->model, &without, error));
    double *change = lp_alloc(POINTS * (size_t)survey->classes, sizeof *change);
    lapse_status status = change ? make(survey, without, change, figures, error)
                                 : lp_fail_memory(error, "a figure", POINTS * (size_t)survey->classes * sizeof *change);
    lp_free(change);
    lapse_session_free(without);
    return status;
}
