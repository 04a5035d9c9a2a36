/* attention_figures.c: the mean attention weight of the last event, as a function of the time since it (figure 2 of the paper):
 * by action, by category and by event type, at the times when the next event came and, for histories that have not gone on
 * yet, at times to come. */
#include "inspect/inspection.h"

#include <stdio.h>
#include <string.h>

enum {
    GROUPS = 4, /* curves of a figure: the most frequent values */
    BINS = 12,  /* of the time since the event */
    FEW = 5,    /* cases of a bin that is not shown */
    FUTURE_POINTS = 24,
    FUTURE_MOST = 300 /* histories that are continued */
};

/* What events are grouped by: the values of a field, or event types. */
typedef struct grouping {
    const char *name;       /* "action", "event", or the name of the column */
    const int32_t *value;   /* by event of the dataset, by descending frequency */
    const lp_names *values; /* their names */
} grouping;

/* Mean and standard error of a bin. */
typedef struct bin {
    double count, sum, squares, log_gap;
} bin;

static void add_to(bin *b, double weight, double gap)
{
    b->count++;
    b->sum += weight;
    b->squares += weight * weight;
    b->log_gap += log(gap);
}

/* The mean with two standard errors on either side. */
static lp_point point_of(const bin *b)
{
    double mean = b->sum / b->count, variance = fmax(0, b->squares / b->count - mean * mean);
    double half = 2 * sqrt(variance / b->count);
    return (lp_point){exp(b->log_gap / b->count), mean, fmax(0, mean - half), fmin(1, mean + half)};
}

/* Whether an event belongs to a curve, and passes the filter of the report. */
static bool is_in(const lp_inspection *about, const grouping *g, int64_t event, int group)
{
    const lapse_dataset *d = about->dataset;
    return g->value[event] == group && (about->action < 0 || d->fields[0].category[event] == about->action);
}

static lp_figure *figure_of(const lp_inspection *about, lp_figures *figures, const grouping *g, bool future)
{
    const char *only = about->action < 0 ? "" : lp_figures_text(figures, ", only %s", about->options->action);
    lp_figure *f =
        lp_figures_add(figures, lp_figures_slug(figures, future ? "attention-future-" : "attention-", g->name),
                       lp_figures_text(figures,
                                       future ? "Attention to the last event in the time to come, by %s%s"
                                              : "Attention to the last event by the time since it, by %s%s",
                                       g->name, only),
                       future ? "Looking ahead: how much the last event will count if the next comes this much later. "
                                "Bands are two standard errors."
                              : "A rising curve is an event that matters later. Points are means over the events that "
                                "came, bands two standard errors.");
    f->x = (lp_figure_axis){"time since the last event", "lag_seconds",         LP_AXIS_TIME, true,
                            about->survey.shortest,      about->survey.longest, NULL,         0};
    f->y = (lp_figure_axis){.name = "mean attention weight", .column = "weight"};
    f->series_column = g->name;
    return f;
}

static void add_points(lp_figures *figures, lp_figure *f, const char *name, const bin *bins, int count, int few)
{
    int shown = 0;
    for (int i = 0; i < count; i++)
        shown += bins[i].count >= few;
    if (shown == 0)
        return;
    lp_series *series = lp_figure_series(figures, f, *name ? name : "(none)", LP_MARK_LINE);
    series->colour = lp_figures_colour(figures, name);
    for (int i = 0; i < count; i++)
        lp_series_add_interval(figures, series,
                               bins[i].count >= few ? point_of(&bins[i]) : (lp_point){NAN, NAN, NAN, NAN});
}

/* A last event without weight speaks through the query itself, and there is nothing to see. */
static void leave_out_flat(lp_figure *f)
{
    double most = 0;
    for (const lp_series *s = f->series; s; s = s->next)
        for (int i = 0; i < s->count; i++)
            most = fmax(most, s->points[i].y);
    if (f->series && most < 0.02)
        f->missing =
            "The last event has less than 2 % of the attention: it enters as the query. See its influence instead.";
}

static void past_figure(const lp_inspection *about, lp_figures *figures, const grouping *g)
{
    const lp_survey *survey = &about->survey;
    lp_figure *f = figure_of(about, figures, g, false);
    double decades = log(survey->longest / survey->shortest);
    for (int group = 0; group < GROUPS && group < g->values->count; group++) {
        bin bins[BINS] = {{0}};
        for (int64_t i = 0; i < survey->case_count; i++) {
            const lp_survey_case *c = &survey->cases[i];
            double gap = fmin(survey->longest, fmax(survey->shortest, c->gap));
            /* The only event of a history has all the weight, whatever the model. */
            if (c->history < 2 || !is_in(about, g, c->event - 1, group))
                continue;
            add_to(&bins[(int)fmin(BINS - 1, log(gap / survey->shortest) / decades * BINS)], c->weight, gap);
        }
        add_points(figures, f, lp_names_get(g->values, group), bins, BINS, FEW);
    }
    leave_out_flat(f);
    if (!f->series)
        f->missing = "No value has enough events in the sample for a curve; a larger --cases may help.";
}

/* Fills weights [histories x FUTURE_POINTS] of the last events of some sampled sequences. */
static lapse_status continue_histories(lp_inspection *about, int64_t count, double *weights, lapse_error *error)
{
    lp_survey *survey = &about->survey;
    for (int64_t n = 0; n < count; n++) {
        int64_t sequence = survey->sequences[n * survey->sequence_count / count];
        const uint64_t *start = survey->dataset->start + sequence;
        LP_TRY(lp_survey_read(survey, survey->session, sequence, start[1], error));
        for (int p = 0; p < FUTURE_POINTS; p++) {
            double time = survey->dataset->time[start[1] - 1] + lp_survey_lag(survey, p, FUTURE_POINTS);
            LP_TRY(lapse_session_attention(survey->session, time, survey->block, -1, survey->weights, error));
            weights[n * FUTURE_POINTS + p] = survey->weights[lapse_session_window(survey->session) - 1];
        }
    }
    return LAPSE_OK;
}

static void future_figure(const lp_inspection *about, lp_figures *figures, const grouping *g, int64_t count,
                          const double *weights)
{
    const lp_survey *survey = &about->survey;
    lp_figure *f = figure_of(about, figures, g, true);
    for (int group = 0; group < GROUPS && group < g->values->count; group++) {
        bin bins[FUTURE_POINTS] = {{0}};
        for (int64_t n = 0; n < count; n++) {
            const uint64_t *start = survey->dataset->start + survey->sequences[n * survey->sequence_count / count];
            if (start[1] - start[0] < 2 || !is_in(about, g, (int64_t)start[1] - 1, group))
                continue;
            for (int p = 0; p < FUTURE_POINTS; p++)
                add_to(&bins[p], weights[n * FUTURE_POINTS + p], lp_survey_lag(survey, p, FUTURE_POINTS));
        }
        add_points(figures, f, lp_names_get(g->values, group), bins, FUTURE_POINTS, 2);
    }
    leave_out_flat(f);
    if (!f->series)
        f->missing = "No value ends at least two of the sampled histories.";
}

static int find_groupings(const lapse_dataset *d, grouping *out)
{
    int count = 0;
    for (int f = 0; f < d->field_count; f++)
        if (d->fields[f].type != LAPSE_FIELD_NUMBER)
            out[count++] = (grouping){d->fields[f].type == LAPSE_FIELD_ACTION ? "action" : d->fields[f].name,
                                      d->fields[f].category, &d->fields[f].categories};
    out[count++] = (grouping){"event", d->type, &d->types};
    return count;
}

static lapse_status draw(lp_inspection *about, lp_figures *figures, double *weights, int64_t count, lapse_error *error)
{
    grouping groupings[LP_FIELD_LIMIT + 1];
    int grouping_count = find_groupings(about->dataset, groupings);
    bool action = about->dataset->field_count > 0 && about->dataset->fields[0].type == LAPSE_FIELD_ACTION;
    if (!action)
        lp_figures_missing(
            figures, "attention-action", "Attention to the last event by action",
            "The data has no column of actions. Import it with --action COLUMN to see one curve for each "
            "action (view, search, purchase).");
    if (grouping_count - action < 2)
        lp_figures_missing(figures, "attention-category", "Attention to the last event by category",
                           "The data has no column of categories. Import it with --field COLUMN to see one curve for "
                           "each category, such as the department of an item.");
    LP_TRY(continue_histories(about, count, weights, error));
    for (int g = 0; g < grouping_count; g++) {
        past_figure(about, figures, &groupings[g]);
        future_figure(about, figures, &groupings[g], count, weights);
    }
    return LAPSE_OK;
}

lapse_status lp_attention_figures(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    static const char id[] = "attention", title[] = "Attention to the last event by the time since it";
    if (about->survey.block < 0 || !about->has_survey) {
        lp_figures_missing(figures, id, title,
                           lapse_model_attention_blocks(about->model) == 0
                               ? lp_figures_text(figures, "The model '%s' has no attention whose weights add up to 1.",
                                                 about->model->config.row->name)
                               : about->no_survey);
        return LAPSE_OK;
    }
    int64_t count = about->survey.sequence_count < FUTURE_MOST ? about->survey.sequence_count : FUTURE_MOST;
    double *weights = lp_alloc((size_t)count * FUTURE_POINTS, sizeof *weights);
    if (!weights)
        return lp_fail_memory(error, "a figure", (size_t)count * FUTURE_POINTS * sizeof *weights);
    lapse_status status = draw(about, figures, weights, count, error);
    lp_free(weights);
    return status;
}
