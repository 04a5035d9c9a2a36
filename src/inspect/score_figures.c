/* score_figures.c: the model's scores beside those of baselines, and the headline of the report: whether it beats them, and what elapsed
 * time is worth. */
#include "inspect/inspection.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static bool is_percent(const char *metric)
{
    return strcmp(metric, "accuracy") == 0 || strncmp(metric, "hit@", 4) == 0;
}

static bool is_loss(const char *metric)
{
    return strstr(metric, "loss") != NULL;
}

static const char *shown_name(const char *metric)
{
    static const char *const names[][2] = {{"log-loss", "Log-loss"},
                                           {"accuracy", "Accuracy"},
                                           {"ndcg@10", "NDCG@10"},
                                           {"hit@10", "Hit@10"},
                                           {"mrr", "MRR"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], metric) == 0)
            return names[i][1];
    return metric;
}

/* --------------------------------------------------------------------------------------------- verdict -------- */

/* The model beside the best baseline of a metric. */
typedef struct verdict {
    int best;  /* row of the baseline; 0: there is none */
    double by; /* how much better the model is */
    int sign;  /* 1: the model is better, -1: worse, 0: the difference is within its interval */
} verdict;

static verdict judge(const lapse_comparison *c, int metric)
{
    verdict v = {0};
    double sign = is_loss(c->metric_names[metric]) ? -1 : 1;
    for (int r = 1; r < c->row_count; r++)
        if (v.best == 0 || sign * (c->rows[r].metrics[metric].mean - c->rows[v.best].metrics[metric].mean) > 0)
            v.best = r;
    if (v.best == 0)
        return v;
    const lapse_mean *d = &c->rows[v.best].differences[metric];
    v.by = sign * d->mean;
    v.sign = d->low <= 0 && d->high >= 0 ? 0 : v.by > 0 ? 1 : -1;
    return v;
}

static const char *amount(lp_figures *figures, const char *metric, double by)
{
    return is_percent(metric) ? lp_figures_text(figures, "%.1f points", fabs(100 * by))
                              : lp_figures_text(figures, "%.3f", fabs(by));
}

/* The verdict about a metric as a title. */
static const char *verdict_text(lp_figures *figures, const lapse_comparison *c, int metric)
{
    verdict v = judge(c, metric);
    const char *name = shown_name(c->metric_names[metric]), *by = amount(figures, c->metric_names[metric], v.by);
    const char *of = strcmp(c->target, "action") == 0 ? " of the action" : "";
    if (v.best == 0)
        return lp_figures_text(figures, "%s%s", name, of);
    if (v.sign == 0)
        return lp_figures_text(figures, "%s%s: no clear difference from the baseline %s", name, of,
                               c->rows[v.best].name);
    return lp_figures_text(figures,
                           v.sign > 0 ? "%s%s: better than the best baseline, %s, by %s"
                                      : "%s%s: the baseline %s is better, by %s",
                           name, of, c->rows[v.best].name, by);
}

/* ---------------------------------------------------------------------------------------------- figures ------- */

static void score_figure(lp_figures *figures, const lapse_comparison *c, int metric)
{
    const char *name = c->metric_names[metric];
    lp_figure *f = lp_figures_add(
        figures, lp_figures_slug(figures, "scores-", lp_figures_text(figures, "%s %s", c->target, name)),
        verdict_text(figures, c, metric),
        lp_figures_text(figures, "On the %s split; %s is better. Lines are 95 %% intervals%s.", c->split,
                        is_loss(name) ? "lower" : "higher", c->row_count > 1 ? ", by bootstrap over sequences" : ""));
    f->x = (lp_figure_axis){.name = shown_name(name), .column = "value"};
    f->x.type = is_percent(name) ? LP_AXIS_PERCENT : LP_AXIS_NUMBER;
    f->y = (lp_figure_axis){.name = "", .column = "model", .type = LP_AXIS_NAMES};
    const char **labels = lp_figure_names(figures, &f->y, c->row_count);
    for (int i = 0; labels && i < c->row_count; i++) {
        const lapse_mean *mean = &c->rows[i].metrics[metric];
        lp_series *series =
            i < 2 ? lp_figure_series(figures, f, i ? "baseline" : "model", LP_MARK_INTERVAL) : f->last_series;
        labels[i] = lp_figures_text(figures, "%s%s", i ? "" : "this model, ", c->rows[i].name);
        lp_series_add_interval(figures, series, (lp_point){mean->mean, i, mean->low, mean->high});
    }
}

/* "69 % of next events are predicted correctly; the best baseline, markov 3, reaches 35 %" */
static void headline(lp_inspection *about, lp_figures *figures, const lapse_comparison *c, int metric)
{
    verdict v = judge(c, metric);
    double own = 100 * c->rows[0].metrics[metric].mean, other = 100 * c->rows[v.best].metrics[metric].mean;
    int digits = v.best > 0 && fabs(own - other) < 2;
    const char *what =
        about->model->config.task == LP_TASK_RECOMMEND
            ? lp_figures_text(figures, "%.*f %% of next items are among the ten that the model ranks first", digits,
                              own)
            : lp_figures_text(figures, "%.*f %% of next %ss are predicted correctly", digits, own, c->target);
    const char *beside = "", *time = "";
    if (v.best > 0 && v.sign > 0)
        beside =
            lp_figures_text(figures, "; the best baseline, %s, reaches %.*f %%", c->rows[v.best].name, digits, other);
    else if (v.best > 0)
        beside = lp_figures_text(figures,
                                 v.sign < 0 ? "; the baseline %s is better, with %.*f %%"
                                            : "; no clear difference from the baseline %s with %.*f %%",
                                 c->rows[v.best].name, digits, other);
    else if (!lp_model_is_network(&about->model->config))
        beside = "; this model is a baseline itself";
    long worth = lround(100 * about->survey.time_worth);
    if (about->has_survey && !about->survey.sees_time)
        time = "; the model does not see the elapsed time";
    else if (about->has_survey)
        time = worth > 0 ? lp_figures_text(figures, "; elapsed time is worth %ld point%s", worth, worth == 1 ? "" : "s")
                         : "; elapsed time adds less than one point";
    about->headline = lp_figures_text(figures, "%s%s%s", what, beside, time);
    about->is_beaten = v.best > 0 && (v.sign <= 0 || judge(c, 0).sign < 0);
    about->verdict = v.best > 0 ? verdict_text(figures, c, 0) : "";
}

static void comparison_figures(lp_inspection *about, lp_figures *figures, const lapse_comparison *c)
{
    const char *section = figures->section;
    int lead = 0;
    for (int m = 0; m < c->metric_count; m++)
        lead = is_percent(c->metric_names[m]) ? m : lead;
    if (!about->headline)
        headline(about, figures, c, lead);
    else
        lead = -1;
    for (int m = 0; m < c->metric_count; m++) {
        figures->section = m == lead ? "lead" : section;
        score_figure(figures, c, m);
    }
    figures->section = section;
}

/* ------------------------------------------------------------------------------------------ recorded scores --- */

enum { OWNER_SIZE = 64 };

static void replace_dashes(char *text)
{
    for (; *text; text++)
        *text = *text == '-' ? '_' : *text;
}

static double recorded(const lapse_model *model, const char *prefix, const char *metric, const char *suffix)
{
    char name[320];
    snprintf(name, sizeof name, "%s.%s%s", prefix, metric, suffix);
    replace_dashes(name + strlen(prefix));
    const char *text = lp_model_property_find(model, name);
    double value = NAN;
    return text && lp_number_parse(text, text + strlen(text), &value) ? value : (double)NAN;
}

/* The next property from *at on whose name is "<owner><rest>", where the owner is "score" or "baseline.<name>": copies the owner. */
static bool next_owner(const lapse_model *model, const char *rest, int *at, char owner[OWNER_SIZE])
{
    const char *name, *value;
    while (lapse_model_property(model, (*at)++, &name, &value)) {
        const char *dot = strchr(name, '.'),
                   *end = dot && strncmp(name, "baseline.", 9) == 0 ? strchr(dot + 1, '.') : dot;
        if (end && end - name < OWNER_SIZE && strcmp(end, rest) == 0) {
            memcpy(owner, name, (size_t)(end - name));
            owner[end - name] = 0;
            return true;
        }
    }
    return false;
}

/* The scores that the model file has of its test split: its own and those of baselines, in the order of the file. Their differences have no
 * intervals. */
static bool recorded_scores(const lapse_model *model, int target, lapse_comparison *c)
{
    lapse_epoch epoch;
    bool both = lapse_model_target(model, 1) != NULL;
    *c = (lapse_comparison){.target = lapse_model_target(model, target), .split = "test"};
    for (int m = 0; lapse_model_history(model, 0, &epoch) && m < epoch.metric_count; m++) {
        char owner[OWNER_SIZE], rest[96], prefix[192];
        if (strcmp(epoch.metrics[m].target, c->target) != 0)
            continue;
        snprintf(rest, sizeof rest, ".test%s%s.%s", both ? "." : "", both ? c->target : "", epoch.metrics[m].name);
        replace_dashes(rest + strlen(".test"));
        int rows = 0;
        for (int at = 0; rows < LAPSE_COMPARED_LIMIT && next_owner(model, rest, &at, owner); rows++) {
            lapse_compared *row = &c->rows[rows];
            bool baseline = owner[0] == 'b';
            snprintf(prefix, sizeof prefix, "%.60s.test%s%s", owner, both ? "." : "", both ? c->target : "");
            snprintf(row->name, sizeof row->name, "%.31s",
                     baseline ? owner + strlen("baseline.") : model->config.row->name);
            row->metrics[c->metric_count] = (lapse_mean){recorded(model, prefix, epoch.metrics[m].name, ""),
                                                         recorded(model, prefix, epoch.metrics[m].name, "_low"),
                                                         recorded(model, prefix, epoch.metrics[m].name, "_high")};
            row->differences[c->metric_count] =
                (lapse_mean){c->rows[0].metrics[c->metric_count].mean - row->metrics[c->metric_count].mean, NAN, NAN};
        }
        if (rows > 0)
            c->metric_names[c->metric_count++] = epoch.metrics[m].name;
        c->row_count = rows > 0 ? rows : c->row_count;
    }
    return c->metric_count > 0;
}

/* The success of a baseline, or of a model on other data than that of its training, where no baselines can be fitted. */
static void surveyed_scores(const lp_inspection *about, lapse_comparison *c)
{
    const lp_survey *survey = &about->survey;
    double good = 0;
    for (int64_t i = 0; i < survey->case_count; i++)
        good += lp_survey_success(survey, &survey->cases[i]);
    lp_point p = lp_proportion(0, good, (double)survey->case_count);
    *c = (lapse_comparison){.target = survey->target, .split = survey->split, .metric_count = 1, .row_count = 1};
    c->metric_names[0] = about->model->config.task == LP_TASK_RECOMMEND ? "hit@10" : "accuracy";
    c->rows[0].metrics[0] = (lapse_mean){p.y, p.low, p.high};
    snprintf(c->rows[0].name, sizeof c->rows[0].name, "%s", about->model->config.row->name);
}

lapse_status lp_score_figures(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    const lapse_model *model = about->model;
    lapse_comparison comparison;
    lapse_evaluate_options options;
    bool own = about->dataset && lapse_dataset_fingerprint(about->dataset) == model->fingerprint;
    lapse_evaluate_options_default(&options);
    options.split = about->survey.split;
    options.bootstrap = about->options->bootstrap;
    options.threads = about->options->threads;
    if (about->has_survey && !(lp_model_is_network(&model->config) && own)) {
        surveyed_scores(about, &comparison);
        comparison_figures(about, figures, &comparison);
        return LAPSE_OK;
    }
    for (int t = 0; (options.target = lapse_model_target(model, t)); t++) {
        if (about->has_survey)
            LP_TRY(lapse_compare(model, about->dataset, &options, &comparison, error));
        else if (!recorded_scores(model, t, &comparison))
            continue;
        comparison_figures(about, figures, &comparison);
    }
    if (!about->headline)
        lp_figures_missing(figures, "scores", "Scores beside baselines", about->no_survey);
    return LAPSE_OK;
}
