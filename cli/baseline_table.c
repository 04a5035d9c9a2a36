/* baseline_table.c: see baseline_table.h. The first metric decides: log-loss, or NDCG@10 of a recommender. */
#include "baseline_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "lookup.h"
#include "table.h"

/* A bootstrap over fewer sequences is unreliable. */
enum { FEW_SEQUENCES = 30 };

bool cli_comparisons_apply(const lapse_model *model)
{
    lapse_epoch epoch;
    return lapse_model_history(model, 0, &epoch);
}

lapse_status cli_comparisons_make(cli_comparisons *comparisons, const lapse_model *model, const lapse_dataset *dataset,
                                  const lapse_evaluate_options *options, lapse_error *error)
{
    lapse_evaluate_options each = *options;
    lapse_status status = LAPSE_OK;
    while (cli_comparisons_apply(model) && status == LAPSE_OK && comparisons->count < 2 &&
           (each.target = lapse_model_target(model, comparisons->count))) {
        status = lapse_compare(model, dataset, &each, &comparisons->list[comparisons->count], error);
        comparisons->count += status == LAPSE_OK;
    }
    return status;
}

static void add_value(cli_table *table, const char *metric, lapse_mean mean)
{
    bool percent = strcmp(metric, "accuracy") == 0, interval = mean.low < mean.high;
    double unit = percent ? 100 : 1;
    int decimals = percent ? 1 : 4;
    char bounds[64] = "";
    if (interval)
        snprintf(bounds, sizeof bounds, "  %.*f to %.*f", decimals, unit * mean.low, decimals, unit * mean.high);
    cli_table_add(table, "%.*f%s%s", decimals, unit * mean.mean, percent ? " %" : "", bounds);
}

static const char *alignment(int metrics)
{
    static const char *const list[] = {"l", "lr", "lrr", "lrrr", "lrrrr"};
    return list[metrics < 4 ? metrics : 4];
}

static bool print_table(FILE *file, const lapse_comparison *c)
{
    cli_table table = {.align = alignment(c->metric_count)};
    bool intervals = c->rows[0].metrics[0].low < c->rows[0].metrics[0].high;
    cli_table_add(&table, "%s", "");
    for (int m = 0; m < c->metric_count; m++)
        cli_table_add(&table, "%s%s", c->metric_names[m], intervals ? ", 95 % interval" : "");
    for (int r = 0; r < c->row_count; r++) {
        cli_table_add(&table, "%s", c->rows[r].name);
        for (int m = 0; m < c->metric_count; m++)
            add_value(&table, c->metric_names[m], c->rows[r].metrics[m]);
    }
    return cli_table_print(&table, file, 0);
}

static bool lower_is_better(const char *metric)
{
    return strcmp(metric, "log-loss") == 0;
}

/* Whether the interval of the difference from the best baseline includes 0. One sequence gives no interval. */
static bool may_be_chance(const lapse_comparison *c)
{
    lapse_mean difference = c->rows[c->best].differences[0];
    return c->sequences < 2 || (difference.low <= 0 && difference.high >= 0);
}

static void print_difference(FILE *file, const lapse_comparison *c)
{
    lapse_mean d = c->rows[c->best].differences[0];
    bool higher = d.mean > 0, better = higher != lower_is_better(c->metric_names[0]);
    double low = higher ? d.low : -d.high, high = higher ? d.high : -d.low;
    fprintf(file, "difference   %s is %s by %.4f than that of %s, the best baseline", c->metric_names[0],
            higher ? "higher" : "lower", fabs(d.mean), c->rows[c->best].name);
    if (d.low < d.high)
        fprintf(file, " (95 %% interval %.4f to %.4f)", low, high);
    fprintf(file, "%s\n", may_be_chance(c) ? ": may be chance" : better ? "" : ": the baseline is better");
}

bool cli_comparisons_print(FILE *file, const cli_comparisons *comparisons)
{
    bool whole = true;
    for (int i = 0; i < comparisons->count; i++) {
        const lapse_comparison *c = &comparisons->list[i];
        fputc('\n', file);
        if (comparisons->count > 1)
            fprintf(file, "target       %s\n", c->target);
        if (c->cases < c->case_total)
            fprintf(file, "baselines    on a sample of %s\n", cli_plural(c->cases, "event", "events").text);
        whole = print_table(file, c) && whole;
        print_difference(file, c);
    }
    return whole;
}

typedef struct warning {
    char text[256];
} warning;

/* The warning of this number about a comparison, or "". */
static warning warning_of(const lapse_comparison *c, int number)
{
    warning out = {""};
    lapse_mean d = c->rows[c->best].differences[0];
    if (number == 0 && c->sequences < FEW_SEQUENCES)
        snprintf(out.text, sizeof out.text,
                 "the %s split has %s in %s: too few for reliable scores (at least %d sequences)", c->split,
                 cli_plural(c->cases, "event", "events").text, cli_plural(c->sequences, "sequence", "sequences").text,
                 FEW_SEQUENCES);
    if (number == 1 && may_be_chance(c) && d.low < d.high)
        snprintf(out.text, sizeof out.text,
                 "these scores do not show that the model differs from %s: the 95 %% interval of the difference in %s "
                 "includes 0 (%.4f to %.4f)",
                 c->rows[c->best].name, c->metric_names[0], d.low, d.high);
    return out;
}

void cli_comparisons_warn(const cli_comparisons *comparisons)
{
    for (int i = 0; i < comparisons->count; i++)
        for (int w = 0; w < 2; w++)
            if (*warning_of(&comparisons->list[i], w).text)
                cli_note("%s%s%s", comparisons->count > 1 ? comparisons->list[i].target : "",
                         comparisons->count > 1 ? ": " : "", warning_of(&comparisons->list[i], w).text);
}

/* ---------------------------------------------------------------------------------------- recorded scores ---- */

typedef struct key {
    char text[96];
} key;

/* "log-loss" is "log_loss" in JSON and in properties. */
static key key_of(const char *metric, const char *suffix)
{
    key out;
    snprintf(out.text, sizeof out.text, "%s%s", metric, suffix);
    for (char *c = out.text; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return out;
}

/* The number of the property "<prefix>.<metric><suffix>"; NaN: there is none. */
static double recorded(const lapse_model *model, const char *prefix, const char *metric, const char *suffix)
{
    char name[192];
    snprintf(name, sizeof name, "%s.%s", prefix, key_of(metric, suffix).text);
    const char *text = cli_model_property(model, name);
    return text ? strtod(text, NULL) : (double)NAN;
}

/* A row of scores, if the model has them. */
static void add_recorded(cli_table *table, const lapse_model *model, const lapse_epoch *epoch, const char *target,
                         const char *name, const char *prefix)
{
    for (int m = 0, count = 0; m < epoch->metric_count; m++) {
        const lapse_metric *metric = &epoch->metrics[m];
        if (strcmp(metric->target, target) != 0)
            continue;
        double mean = recorded(model, prefix, metric->name, "");
        if (isnan(mean))
            return;
        double low = recorded(model, prefix, metric->name, "_low"),
               high = recorded(model, prefix, metric->name, "_high");
        if (count++ == 0)
            cli_table_add(table, "%s", name);
        add_value(table, metric->name, (lapse_mean){mean, low, high});
    }
}

/* The baseline of this number that the model file has scores of, in the order of its properties "baseline.<name><rest>"; "": there are no
 * more. */
static key recorded_baseline(const lapse_model *model, const char *rest, int number)
{
    static const char start[] = "baseline.";
    const char *name, *value;
    key out = {""};
    for (int i = 0; !*out.text && lapse_model_property(model, i, &name, &value); i++) {
        const char *end = strncmp(name, start, strlen(start)) == 0 ? strchr(name + strlen(start), '.') : NULL;
        if (end && strcmp(end, rest) == 0 && number-- == 0)
            snprintf(out.text, sizeof out.text, "%.*s", (int)(end - name - (int)strlen(start)), name + strlen(start));
    }
    return out;
}

static bool print_recorded(FILE *file, const lapse_model *model, const lapse_epoch *epoch, const char *target,
                           bool both)
{
    const char *suffix = both ? target : "", *dot = both ? "." : "", *name = cli_model_property(model, "model");
    char prefix[192], label[128], rest[192] = "";
    int metrics = 0;
    cli_table table = {.align = NULL};
    cli_table_add(&table, "%s", both ? target : "");
    for (int m = 0; m < epoch->metric_count; m++)
        if (strcmp(epoch->metrics[m].target, target) == 0) {
            cli_table_add(&table, "%s", epoch->metrics[m].name);
            if (metrics++ == 0)
                snprintf(rest, sizeof rest, ".test%s%s.%s", dot, suffix, key_of(epoch->metrics[m].name, "").text);
        }
    table.align = alignment(metrics);
    snprintf(prefix, sizeof prefix, "score.valid%s%s", dot, suffix);
    snprintf(label, sizeof label, "%.32s, valid", name);
    add_recorded(&table, model, epoch, target, label, prefix);
    snprintf(prefix, sizeof prefix, "score.test%s%s", dot, suffix);
    snprintf(label, sizeof label, "%.32s, test", name);
    add_recorded(&table, model, epoch, target, label, prefix);
    key baseline;
    for (int i = 0; *(baseline = recorded_baseline(model, rest, i)).text; i++) {
        snprintf(prefix, sizeof prefix, "baseline.%s.test%s%s", baseline.text, dot, suffix);
        snprintf(label, sizeof label, "%s, test", baseline.text);
        add_recorded(&table, model, epoch, target, label, prefix);
    }
    return cli_table_print(&table, file, 0);
}

bool cli_recorded_print(FILE *file, const lapse_model *model)
{
    lapse_epoch epoch;
    bool whole = true, both = lapse_model_target(model, 0) && lapse_model_target(model, 1);
    if (!lapse_model_history(model, 0, &epoch))
        return true;
    const char *cases = cli_model_property(model, "score.test.cases"),
               *sequences = cli_model_property(model, "score.test.sequences"), *target;
    for (int i = 0; (target = lapse_model_target(model, i)); i++) {
        fputc('\n', file);
        whole = print_recorded(file, model, &epoch, target, both) && whole;
    }
    if (cases && sequences)
        fprintf(file, "test split: %s in %s; intervals are 95 %% bootstrap intervals over sequences\n",
                cli_plural(strtoll(cases, NULL, 10), "event", "events").text,
                cli_plural(strtoll(sequences, NULL, 10), "sequence", "sequences").text);
    return whole;
}

/* --------------------------------------------------------------------------------------------------- JSON ----- */

static void mean_json(cli_json *json, const char *metric, const char *suffix, lapse_mean mean)
{
    char bound[32];
    cli_json_number(json, key_of(metric, suffix).text, mean.mean, 9);
    snprintf(bound, sizeof bound, "%s_low", suffix);
    cli_json_number(json, key_of(metric, bound).text, mean.low, 9);
    snprintf(bound, sizeof bound, "%s_high", suffix);
    cli_json_number(json, key_of(metric, bound).text, mean.high, 9);
}

void cli_comparisons_json(cli_json *json, const cli_comparisons *comparisons)
{
    if (comparisons->count == 0)
        return;
    cli_json_array(json, "baselines");
    for (int i = 0; i < comparisons->count; i++) {
        const lapse_comparison *c = &comparisons->list[i];
        for (int r = 1; r < c->row_count; r++) {
            cli_json_object(json, NULL);
            cli_json_text(json, "name", c->rows[r].name);
            cli_json_text(json, "target", c->target);
            cli_json_whole(json, "cases", c->cases);
            cli_json_whole(json, "sequences", c->sequences);
            cli_json_bool(json, "best", r == c->best);
            for (int m = 0; m < c->metric_count; m++) {
                mean_json(json, c->metric_names[m], "", c->rows[r].metrics[m]);
                mean_json(json, c->metric_names[m], "_difference", c->rows[r].differences[m]);
            }
            cli_json_end(json, '}');
        }
    }
    cli_json_end(json, ']');
    cli_json_array(json, "warnings");
    for (int i = 0; i < comparisons->count; i++)
        for (int w = 0; w < 2; w++)
            if (*warning_of(&comparisons->list[i], w).text)
                cli_json_text(json, NULL, warning_of(&comparisons->list[i], w).text);
    cli_json_end(json, ']');
}
