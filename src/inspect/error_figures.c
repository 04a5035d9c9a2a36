/* error_figures.c: where a model fails: reliability, confusion, and success by gap and by history length. */
#include "inspect/inspection.h"

#include <stdio.h>
#include <string.h>

enum { RELIABILITY_BINS = 10, CLASSES_MOST = 10, GAP_BINS = 10, FEW = 5 /* cases of a bin that is not shown */ };

static bool ranks(const lp_inspection *about)
{
    return about->model->config.task == LP_TASK_RECOMMEND;
}

lp_point lp_proportion(double x, double good, double count)
{
    double z = 1.96, p = good / count, middle = p + z * z / (2 * count);
    double half = z * sqrt(p * (1 - p) / count + z * z / (4 * count * count)), scale = 1 + z * z / count;
    return (lp_point){x, p, fmax(0, (middle - half) / scale), fmin(1, (middle + half) / scale)};
}

/* ------------------------------------------------------------------------------------------- reliability ------ */

/* Where a probability is the fraction of events that it predicts. */
static void add_diagonal(lp_figures *figures, lp_figure *f)
{
    lp_series *ideal = lp_figure_series(figures, f, "ideal", LP_MARK_LINE);
    ideal->colour = LP_COLOUR_REFERENCE;
    lp_series_add(figures, ideal, 0, 0);
    lp_series_add(figures, ideal, 1, 1);
}

lapse_status lp_reliability_figure(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    static const char id[] = "reliability", title[] = "Reliability of the probabilities";
    double sum[RELIABILITY_BINS] = {0}, good[RELIABILITY_BINS] = {0}, count[RELIABILITY_BINS] = {0}, gap = 0;
    const lp_survey *survey = &about->survey;
    (void)error;
    if (!about->has_survey) {
        lp_figures_missing(figures, id, title, about->no_survey);
        return LAPSE_OK;
    }
    for (int64_t i = 0; i < survey->case_count; i++) {
        const lp_survey_case *c = &survey->cases[i];
        int bin = (int)(c->confidence * RELIABILITY_BINS);
        bin = bin < RELIABILITY_BINS ? bin : RELIABILITY_BINS - 1;
        sum[bin] += c->confidence;
        good[bin] += c->predicted == c->target;
        count[bin]++;
    }
    for (int i = 0; i < RELIABILITY_BINS; i++)
        gap += fabs(sum[i] - good[i]) / (double)survey->case_count;
    lp_figure *f = lp_figures_add(
        figures, id, lp_figures_text(figures, "Probabilities are off by %.1f points on average", 100 * gap),
        lp_figures_text(figures,
                        "On the diagonal a probability means what it says; below it the model is too sure. The mean "
                        "distance is the "
                        "expected calibration error, over %s events.",
                        lp_figures_whole(figures, survey->case_count)));
    f->x = (lp_figure_axis){"probability of the predicted event", "probability", LP_AXIS_PERCENT, false, 0, 1, NULL, 0};
    f->y = (lp_figure_axis){"fraction that was right", "accuracy", LP_AXIS_PERCENT, false, 0, 1, NULL, 0};
    add_diagonal(figures, f);
    lp_series *bins = lp_figure_series(figures, f, "model, with 95 % intervals", LP_MARK_INTERVAL);
    bins->colour = LP_COLOUR_MODEL;
    double most = 0.05;
    for (int i = 0; i < RELIABILITY_BINS; i++)
        if (count[i] >= FEW) {
            lp_point p = lp_proportion(sum[i] / count[i], good[i], count[i]);
            lp_series_add_interval(figures, bins, p);
            most = fmax(most, fmax(p.x, p.high));
        }
    f->x.to = f->y.to = fmin(1, ceil(20 * most) / 20);
    return LAPSE_OK;
}

lapse_status lp_time_reliability_figure(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    static const char id[] = "reliability-time", title[] = "Reliability of the times";
    enum { LEVELS = 20 };
    const lp_survey *survey = &about->survey;
    double count = (double)survey->case_count, came[LEVELS] = {0}, most = 0;
    (void)error;
    if (!about->has_survey || !lp_model_predicts_time(about->model)) {
        lp_figures_missing(figures, id, title, lp_model_predicts_time(about->model) ? about->no_survey : LP_NO_TIMES);
        return LAPSE_OK;
    }
    for (int64_t i = 0; i < survey->case_count; i++)
        for (int k = 1; k < LEVELS; k++)
            came[k] += survey->cases[i].pit <= (double)k / LEVELS;
    for (int k = 1; k < LEVELS; k++)
        if (fabs(came[k] / count - (double)k / LEVELS) > most) /* fmax in such a loop crashes gcc 12.2 for aarch64 */
            most = fabs(came[k] / count - (double)k / LEVELS);
    lp_figure *f = lp_figures_add(
        figures, id, lp_figures_text(figures, "Predicted times are off by at most %.1f points", 100 * most),
        lp_figures_text(figures,
                        "Of the events that should have come by a time with a probability, the fraction that had, over "
                        "%s events. Above the "
                        "diagonal events come sooner than predicted, below it later.",
                        lp_figures_whole(figures, survey->case_count)));
    f->x =
        (lp_figure_axis){"probability that the event has come", "probability", LP_AXIS_PERCENT, false, 0, 1, NULL, 0};
    f->y = (lp_figure_axis){"fraction that had come", "fraction", LP_AXIS_PERCENT, false, 0, 1, NULL, 0};
    add_diagonal(figures, f);
    lp_series *levels = lp_figure_series(figures, f, "model, with 95 % intervals", LP_MARK_INTERVAL);
    levels->colour = LP_COLOUR_MODEL;
    for (int k = 1; k < LEVELS; k++)
        lp_series_add_interval(figures, levels, lp_proportion((double)k / LEVELS, came[k], count));
    return LAPSE_OK;
}

/* --------------------------------------------------------------------------------------------- confusion ------ */

static int row_of(const int64_t *chosen, int rows, int others, int32_t class)
{
    int listed = rows - (others > 0);
    for (int i = 0; i < listed; i++)
        if (chosen[i] == class)
            return i;
    return rows - 1;
}

/* The classes with the most cases, in that order; the others share the last row. */
static void confusion_figure(const lp_survey *survey, lp_figures *figures)
{
    int64_t chosen[CLASSES_MOST];
    memset(survey->scratch, 0, (size_t)survey->classes * sizeof *survey->scratch);
    for (int64_t i = 0; i < survey->case_count; i++)
        survey->scratch[survey->cases[i].target]++;
    int listed = lp_largest(survey->scratch, survey->classes, CLASSES_MOST, chosen);
    int others = (int)(survey->classes - listed), rows = listed + (others > 0);
    lp_figure *f =
        lp_figures_add(figures, "confusion", "Confusion table",
                       "In percent of what happened: the diagonal is right, other dark cells are confusions.");
    f->x = (lp_figure_axis){.name = "predicted", .column = "predicted", .type = LP_AXIS_NAMES};
    f->y = (lp_figure_axis){.name = "happened", .column = "happened", .type = LP_AXIS_NAMES};
    const char **x = lp_figure_names(figures, &f->x, rows), **y = lp_figure_names(figures, &f->y, rows);
    double *cell = lp_figure_grid(figures, f, rows, rows), total[CLASSES_MOST + 1] = {0};
    if (!x || !y || !cell)
        return;
    f->grid.most = 1;
    f->grid.numbers = true;
    for (int i = 0; i < rows; i++)
        x[i] = y[i] =
            others > 0 && i == rows - 1
                ? lp_figures_text(figures, "%d others", others)
                : lp_figures_text(figures, "%s", lapse_model_target_name(survey->model, survey->target, chosen[i]));
    for (int64_t i = 0; i < survey->case_count; i++)
        total[row_of(chosen, rows, others, survey->cases[i].target)]++;
    for (int64_t i = 0; i < survey->case_count; i++) {
        int row = row_of(chosen, rows, others, survey->cases[i].target);
        cell[row * rows + row_of(chosen, rows, others, survey->cases[i].predicted)] += 1 / total[row];
    }
    double worst = 0;
    for (int i = 0; i < rows * rows; i++)
        if (i / rows != i % rows && cell[i] > worst && (others == 0 || (i / rows < rows - 1 && i % rows < rows - 1))) {
            worst = cell[i];
            f->title = lp_figures_text(figures, "Largest confusion: %.0f %% of '%s' predicted as '%s'", 100 * worst,
                                       y[i / rows], x[i % rows]);
        }
}

/* --------------------------------------------------------------------------------- success by gap, length ----- */

/* Cases of a bin: their number, their successes, and the sum of what they are binned by. */
typedef struct bin {
    double count, good, sum;
} bin;

/* Adds the bins with enough cases, and the overall success. x_of: maps the mean of a bin to the axis. words: a position in words. */
static void success_figure(const lp_inspection *about, lp_figures *figures, lp_figure *f, const bin *bins, int count,
                           double (*x_of)(double), const char *(*words)(lp_figures *, double))
{
    lp_series *series = lp_figure_series(figures, f, "success, with 95 % intervals", LP_MARK_INTERVAL);
    const lp_point *high = NULL, *low = NULL;
    double good = 0, all = 0;
    f->y = (lp_figure_axis){ranks(about) ? "item among the top 10" : "prediction is right",
                            "success",
                            LP_AXIS_PERCENT,
                            false,
                            0,
                            1,
                            NULL,
                            0};
    for (int i = 0; i < count; i++) {
        good += bins[i].good;
        all += bins[i].count;
        if (bins[i].count >= FEW)
            lp_series_add_interval(figures, series,
                                   lp_proportion(x_of(bins[i].sum / bins[i].count), bins[i].good, bins[i].count));
    }
    for (int i = 0; i < series->count; i++) {
        high = !high || series->points[i].y > high->y ? &series->points[i] : high;
        low = !low || series->points[i].y < low->y ? &series->points[i] : low;
    }
    if (!high) {
        f->missing = "No group has five events; a larger --cases may help.";
        return;
    }
    if (high != low)
        f->title = lp_figures_text(figures,
                                   high->low > low->high ? "%.0f %% success %s, %.0f %% %s"
                                                         : "About equal: %.0f %% success %s, %.0f %% %s",
                                   100 * high->y, words(figures, high->x), 100 * low->y, words(figures, low->x));
    lp_series *mean =
        lp_figure_series(figures, f, lp_figures_text(figures, "overall %.0f %%", 100 * good / all), LP_MARK_LINE);
    mean->colour = LP_COLOUR_REFERENCE;
    lp_series_add(figures, mean, series->points[0].x, good / all);
    lp_series_add(figures, mean, series->points[series->count - 1].x, good / all);
}

static const char *after(lp_figures *figures, double seconds)
{
    return lp_figures_text(figures, "after %s", lp_figures_duration(figures, seconds));
}

static const char *with_events(lp_figures *figures, double events)
{
    return lp_figures_text(figures, "with %.0f event%s", events, events < 1.5 ? "" : "s");
}

static double same(double x)
{
    return x;
}

static void gap_figure(const lp_inspection *about, lp_figures *figures)
{
    const lp_survey *survey = &about->survey;
    bin bins[GAP_BINS] = {{0}};
    lp_figure *f = lp_figures_add(figures, "success-by-gap", "Success by the time since the last event",
                                  "Low points are gaps after which the model often fails.");
    f->x = (lp_figure_axis){
        .name = "time since the last event", .column = "gap_seconds", .type = LP_AXIS_TIME, .log = true};
    for (int64_t i = 0; i < survey->case_count; i++) {
        const lp_survey_case *c = &survey->cases[i];
        double gap = fmax(c->gap, survey->shortest),
               part = log(gap / survey->shortest) / log(survey->longest / survey->shortest);
        bin *b = &bins[(int)fmin(GAP_BINS - 1, part * GAP_BINS)];
        b->count++;
        b->good += lp_survey_success(survey, c);
        b->sum += log(gap);
    }
    success_figure(about, figures, f, bins, GAP_BINS, exp, after);
}

static void length_figure(const lp_inspection *about, lp_figures *figures)
{
    enum { LENGTH_BINS = 40 }; /* 1, 2 to 3, 4 to 7, ... events */
    const lp_survey *survey = &about->survey;
    bin bins[LENGTH_BINS] = {{0}};
    lp_figure *f = lp_figures_add(figures, "success-by-length", "Success by the length of the history",
                                  "Where the points rise, a longer history helps.");
    f->x = (lp_figure_axis){.name = "events before", .column = "history_events", .log = true};
    for (int64_t i = 0; i < survey->case_count; i++) {
        const lp_survey_case *c = &survey->cases[i];
        bin *b = &bins[(int)log2((double)c->history)];
        b->count++;
        b->good += lp_survey_success(survey, c);
        b->sum += (double)c->history;
    }
    success_figure(about, figures, f, bins, LENGTH_BINS, same, with_events);
}

lapse_status lp_error_figures(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    if (!about->has_survey) {
        lp_figures_missing(figures, "errors", "Confusion, success by gap and by history length", about->no_survey);
        return LAPSE_OK;
    }
    (void)error;
    if (ranks(about))
        lp_figures_missing(figures, "confusion", "Confusion table",
                           "A recommender is judged by the rank of the item that came, not by its first choice.");
    else
        confusion_figure(&about->survey, figures);
    gap_figure(about, figures);
    length_figure(about, figures);
    return LAPSE_OK;
}
