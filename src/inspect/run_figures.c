/* run_figures.c: figures of the training run: loss and metrics by epoch or by seconds, and the scores beside those of
 * baselines. */
#include "inspect/inspection.h"

#include "base/text.h"
#include "model/history.h"

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------- curves ------- */

static bool has_seconds(const lp_inspection *about)
{
    int known = 0;
    for (int i = 0; i < about->epochs; i++)
        known += isfinite(about->seconds[i]);
    return known > 0;
}

static double position(const lp_inspection *about, int epoch)
{
    if (!has_seconds(about))
        return epoch;
    return epoch <= about->epochs ? about->seconds[epoch - 1] : NAN;
}

static lp_figure *curve_figure(const lp_inspection *about, lp_figures *figures, const char *id, const char *title,
                               const char *value)
{
    lp_figure *f = lp_figures_add(figures, id, title,
                                  "Training has helped where the validation curve still improves; where it turns while "
                                  "the training loss falls, the model overfits.");
    if (has_seconds(about))
        f->x = (lp_figure_axis){.name = "time since the start of the run", .column = "seconds", .type = LP_AXIS_TIME};
    else
        f->x = (lp_figure_axis){.name = "epoch", .column = "epoch", .type = LP_AXIS_WHOLE};
    f->y = (lp_figure_axis){.name = value, .column = "value"};
    f->series_column = "curve";
    return f;
}

static bool is_percent(const char *metric)
{
    return strcmp(metric, "accuracy") == 0 || strncmp(metric, "hit@", 4) == 0;
}

lapse_status lp_curve_figures(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    lapse_epoch epoch;
    (void)error;
    if (!lapse_model_history(about->model, 0, &epoch)) {
        lp_figures_missing(figures, "curve", "Loss and scores by epoch",
                           "The model is a baseline, fitted by counting: there are no epochs.");
        return LAPSE_OK;
    }
    bool both = lapse_model_target(about->model, 1) != NULL;
    lp_figure *f = curve_figure(about, figures, "curve-loss", "Training loss", "loss, nats per event");
    lp_series *curve = lp_figure_series(figures, f, "training loss", LP_MARK_LINE);
    for (int i = 0; lapse_model_history(about->model, i, &epoch); i++)
        lp_series_add(figures, curve, position(about, epoch.epoch), epoch.loss);
    lapse_model_history(about->model, 0, &epoch);
    for (int m = 0; m < epoch.metric_count; m++) {
        lapse_metric metric = epoch.metrics[m];
        const char *name = both ? lp_figures_text(figures, "%s of the %s", metric.name, metric.target) : metric.name;
        f = curve_figure(about, figures, lp_figures_slug(figures, "curve-", name),
                         lp_figures_text(figures, "Validation %s", name), name);
        f->y.type = is_percent(metric.name) ? LP_AXIS_PERCENT : LP_AXIS_NUMBER;
        curve = lp_figure_series(figures, f, lp_figures_text(figures, "validation %s", name), LP_MARK_LINE);
        lapse_epoch row;
        for (int i = 0; lapse_model_history(about->model, i, &row); i++)
            lp_series_add(figures, curve, position(about, row.epoch), row.metrics[m].value);
    }
    return LAPSE_OK;
}

/* ----------------------------------------------------------------------------------------------- scores ------- */

enum { ROWS_MOST = LAPSE_COMPARED_LIMIT, OWNER_SIZE = 64 };

static void score_figure(lp_figures *figures, const char *metric, const char *target, const char *split, int rows,
                         const char *const *names, const lapse_mean *values)
{
    lp_figure *f = lp_figures_add(
        figures, lp_figures_slug(figures, "scores-", lp_figures_text(figures, "%s %s", target, metric)),
        lp_figures_text(figures, "%s of the %s on the %s split, beside baselines", metric, target, split),
        "Dots are scores, lines their 95 % bootstrap intervals over sequences. The model is better than a baseline "
        "where the lines are apart.");
    f->x = (lp_figure_axis){.name = metric, .column = "value"};
    f->x.type = is_percent(metric) ? LP_AXIS_PERCENT : LP_AXIS_NUMBER;
    f->y = (lp_figure_axis){.name = "", .column = "model", .type = LP_AXIS_NAMES};
    const char **labels = lp_figure_names(figures, &f->y, rows);
    lp_series *model = lp_figure_series(figures, f, "model", LP_MARK_INTERVAL);
    lp_series *baselines = rows > 1 ? lp_figure_series(figures, f, "baselines", LP_MARK_INTERVAL) : NULL;
    for (int i = 0; labels && i < rows; i++) {
        labels[i] = lp_figures_text(figures, "%s", names[i]);
        lp_series_add_interval(figures, i == 0 ? model : baselines,
                               (lp_point){values[i].mean, i, values[i].low, values[i].high});
    }
}

static void comparison_figures(lp_figures *figures, const lapse_comparison *c)
{
    for (int m = 0; m < c->metric_count; m++) {
        const char *names[ROWS_MOST];
        lapse_mean values[ROWS_MOST];
        for (int r = 0; r < c->row_count; r++) {
            names[r] = c->rows[r].name;
            values[r] = c->rows[r].metrics[m];
        }
        score_figure(figures, c->metric_names[m], c->target, c->split, c->row_count, names, values);
    }
}

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

/* The scores that the model file has of its test split: its own and those of baselines, in the order of the file. */
static bool recorded_figures(const lapse_model *model, lp_figures *figures)
{
    lapse_epoch epoch;
    bool found = false, both = lapse_model_target(model, 1) != NULL;
    for (int m = 0; lapse_model_history(model, 0, &epoch) && m < epoch.metric_count; m++) {
        const lapse_metric *metric = &epoch.metrics[m];
        const char *names[ROWS_MOST];
        lapse_mean values[ROWS_MOST];
        char owners[ROWS_MOST][OWNER_SIZE], rest[96], prefix[192];
        int count = 0;
        snprintf(rest, sizeof rest, ".test%s%s.%s", both ? "." : "", both ? metric->target : "", metric->name);
        replace_dashes(rest + strlen(".test"));
        for (int at = 0; count < ROWS_MOST && next_owner(model, rest, &at, owners[count]); count++) {
            snprintf(prefix, sizeof prefix, "%.60s.test%s%s", owners[count], both ? "." : "", both ? metric->target : "");
            bool baseline = owners[count][0] == 'b';
            names[count] = lp_figures_text(figures, "%s",
                                           baseline ? owners[count] + strlen("baseline.") : model->config.row->name);
            values[count] =
                (lapse_mean){recorded(model, prefix, metric->name, ""), recorded(model, prefix, metric->name, "_low"),
                             recorded(model, prefix, metric->name, "_high")};
        }
        if (count > 0)
            score_figure(figures, metric->name, metric->target, "test", count, names, values);
        found |= count > 0;
    }
    return found;
}

static lapse_status evaluate(const lp_inspection *about, const lapse_evaluate_options *options, lp_figures *figures,
                             lapse_error *error)
{
    lapse_scores scores;
    const char *name = about->model->config.row->name;
    LP_TRY(lapse_evaluate(about->model, about->dataset, options, &scores, error));
    lapse_mean loss = {scores.log_loss, scores.log_loss_low, scores.log_loss_high};
    lapse_mean accuracy = {scores.accuracy, scores.accuracy_low, scores.accuracy_high};
    score_figure(figures, "log-loss", scores.target, scores.split, 1, &name, &loss);
    score_figure(figures, "accuracy", scores.target, scores.split, 1, &name, &accuracy);
    lapse_scores_clear(&scores);
    return LAPSE_OK;
}

lapse_status lp_score_figures(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    static const char title[] = "Scores beside baselines";
    const lapse_model *model = about->model;
    lapse_evaluate_options options;
    if (!about->has_survey) {
        if (!recorded_figures(model, figures))
            lp_figures_missing(figures, "scores", title, about->no_survey);
        return LAPSE_OK;
    }
    lapse_evaluate_options_default(&options);
    options.split = about->survey.split;
    options.bootstrap = about->options->bootstrap;
    options.threads = about->options->threads;
    bool own = lapse_dataset_fingerprint(about->dataset) == model->fingerprint;
    if (lp_model_is_network(&model->config) && own) {
        lapse_comparison comparison;
        for (int t = 0; (options.target = lapse_model_target(model, t)); t++) {
            LP_TRY(lapse_compare(model, about->dataset, &options, &comparison, error));
            comparison_figures(figures, &comparison);
        }
        return LAPSE_OK;
    }
    if (model->config.task == LP_TASK_RECOMMEND) {
        lp_figures_missing(figures, "scores", title,
                           own ? "The model is a baseline itself; `lapse eval` ranks with it."
                               : "Baselines are fitted to the training split, and these are not the events that the "
                                 "model was trained on; `lapse eval` ranks them.");
        return LAPSE_OK;
    }
    return evaluate(about, &options, figures, error);
}
