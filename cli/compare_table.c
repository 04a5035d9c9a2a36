/* compare_table.c: see compare_table.h. */
#include "compare_table.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bar.h"
#include "csv_cell.h"
#include "json.h"
#include "table.h"

const char *const *cli_sweep_format_names(void)
{
    static const char *const names[] = {"text", "markdown", "csv", "json", NULL};
    return names;
}

/* ----------------------------------------------------------------------------------------------- numbers ----- */

/* Accuracies and hit rates are percentages. */
static bool is_percent(const char *metric)
{
    return strcmp(metric, "accuracy") == 0;
}

static cli_words score(const char *metric, double value)
{
    cli_words out;
    if (isnan(value))
        snprintf(out.text, sizeof out.text, "-");
    else
        snprintf(out.text, sizeof out.text, is_percent(metric) ? "%.2f" : "%.4f",
                 is_percent(metric) ? 100 * value : value);
    return out;
}

static cli_words spread(const char *metric, lapse_spread value)
{
    cli_words out;
    snprintf(out.text, sizeof out.text, value.count > 1 ? "%s (%s)" : "%s", score(metric, value.mean).text,
             score(metric, value.std).text);
    return out;
}

static cli_words seconds(lapse_spread value)
{
    cli_words out;
    if (value.count == 0)
        snprintf(out.text, sizeof out.text, "-");
    else
        snprintf(out.text, sizeof out.text, value.mean < 10 ? "%.3g s" : "%.0f s", value.mean);
    return out;
}

static cli_words p_value(double p)
{
    cli_words out;
    if (isnan(p))
        snprintf(out.text, sizeof out.text, "-");
    else
        snprintf(out.text, sizeof out.text, p < 0.001 ? "< 0.001" : "%.3f", p);
    return out;
}

/* Signed, with its interval. */
static cli_words difference(const char *metric, lapse_mean value)
{
    cli_words out;
    double factor = is_percent(metric) ? 100 : 1;
    int digits = is_percent(metric) ? 2 : 4;
    if (isnan(value.mean))
        snprintf(out.text, sizeof out.text, "-");
    else if (isnan(value.low))
        snprintf(out.text, sizeof out.text, "%+.*f", digits, factor * value.mean);
    else
        snprintf(out.text, sizeof out.text, "%+.*f (%+.*f to %+.*f)", digits, factor * value.mean, digits,
                 factor * value.low, digits, factor * value.high);
    return out;
}

/* ------------------------------------------------------------------------------------ text and Markdown ------ */

/* A table of texts, printed with aligned columns or as Markdown. */
typedef struct sheet {
    cli_table table;
    char align[32];
    bool markdown;
    FILE *file;
    int column, columns;
} sheet;

static void put(sheet *s, const char *text)
{
    if (!s->markdown) {
        cli_table_add(&s->table, "%s", text);
        return;
    }
    fputs(s->column == 0 ? "| " : " | ", s->file);
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', s->file);
        fputc((unsigned char)*text < 0x20 ? '?' : *text, s->file);
    }
    if (++s->column < s->columns)
        return;
    fputs(" |\n", s->file);
    s->column = 0;
}

/* The line under a Markdown table's head. */
static void rule(sheet *s)
{
    for (int c = 0; s->markdown && c < s->columns; c++)
        fputs(s->align[c] == 'r' ? "|---:" : "|---", s->file);
    if (s->markdown)
        fputs("|\n", s->file);
}

static void put_head(sheet *s, const char *align, const char *const *names, int count)
{
    snprintf(s->align, sizeof s->align, "%s", align);
    s->table.align = s->align;
    s->columns = count;
    for (int i = 0; i < count; i++)
        put(s, names[i]);
    rule(s);
}

static bool has_config(const lapse_sweep *sweep)
{
    lapse_sweep_cell row;
    for (int r = 0; lapse_sweep_row(sweep, r, &row); r++)
        if (*row.config)
            return true;
    return false;
}

static void put_row(sheet *s, const lapse_sweep_info *info, const lapse_sweep_cell *row, bool config, bool times)
{
    char text[320];
    const char *main = info->metric_names[info->metric];
    snprintf(text, sizeof text, "%s%s", row->row, row->best ? " *" : "");
    put(s, text);
    if (config)
        put(s, row->config);
    for (int m = 0; m < info->shown; m++)
        put(s, row->metrics[m].count == 0 && row->diverged > 0 ? "diverged"
                                                               : spread(info->metric_names[m], row->metrics[m]).text);
    put(s, spread(info->select, row->valid).text);
    if (times) {
        put(s, seconds(row->epoch_seconds).text);
        put(s, seconds(row->seconds).text);
    }
    if (times && !isnan(info->reach)) {
        snprintf(text, sizeof text, row->reach.count < row->runs && row->reach.count > 0 ? "%s (%d of %d)" : "%s",
                 seconds(row->reach).text, row->reach.count, row->runs);
        put(s, text);
    }
    put(s, difference(main, row->difference).text);
    put(s, p_value(row->p).text);
}

static bool print_rows(FILE *file, const lapse_sweep *sweep, const lapse_sweep_info *info,
                       const cli_sweep_format *format)
{
    const char *names[16];
    char metrics[LAPSE_METRIC_LIMIT][48], valid[64], reach[64], align[32] = "l";
    bool config = has_config(sweep), times = !format->no_times;
    int count = 0;
    sheet s = {.markdown = strcmp(format->name, "markdown") == 0, .file = file};
    lapse_sweep_cell row;
    names[count++] = "model";
    if (config) {
        strncat(align, "l", sizeof align - strlen(align) - 1);
        names[count++] = "config";
    }
    for (int m = 0; m < info->shown; m++) {
        snprintf(metrics[m], sizeof metrics[m], "%s%s", info->metric_names[m],
                 is_percent(info->metric_names[m]) ? ", %" : "");
        names[count++] = metrics[m];
    }
    snprintf(valid, sizeof valid, "valid %s", info->select);
    names[count++] = valid;
    if (times) {
        names[count++] = "epoch";
        names[count++] = "training";
    }
    if (times && !isnan(info->reach)) {
        snprintf(reach, sizeof reach, "to %g", info->reach);
        names[count++] = reach;
    }
    names[count++] = "minus the best";
    names[count++] = "p";
    while ((int)strlen(align) < count)
        strncat(align, "r", sizeof align - strlen(align) - 1);
    put_head(&s, align, names, count);
    for (int r = 0; lapse_sweep_row(sweep, r, &row); r++)
        put_row(&s, info, &row, config, times);
    return s.markdown || cli_table_print(&s.table, file, 0);
}

static bool print_cells(FILE *file, const lapse_sweep *sweep, const lapse_sweep_info *info,
                        const cli_sweep_format *format)
{
    const char *names[16] = {"model", "config", "valid"};
    char valid[64], align[32] = "llr";
    int count = 3;
    sheet s = {.markdown = strcmp(format->name, "markdown") == 0, .file = file};
    lapse_sweep_cell cell;
    snprintf(valid, sizeof valid, "valid %s", info->select);
    names[2] = valid;
    for (int m = 0; format->test_scores && m < info->shown; m++) {
        strncat(align, "r", sizeof align - strlen(align) - 1);
        names[count++] = info->metric_names[m];
    }
    fputc('\n', file);
    put_head(&s, align, names, count);
    for (int c = 0; lapse_sweep_cell_at(sweep, c, &cell); c++) {
        char text[320];
        snprintf(text, sizeof text, "%s%s", cell.row, cell.chosen ? " *" : "");
        put(&s, text);
        put(&s, cell.config);
        put(&s, cell.valid.count == 0 && cell.diverged > 0 ? "diverged" : spread(info->select, cell.valid).text);
        for (int m = 0; format->test_scores && m < info->shown; m++)
            put(&s, spread(info->metric_names[m], cell.metrics[m]).text);
    }
    return s.markdown || cli_table_print(&s.table, file, 0);
}

static void print_heading(FILE *file, const lapse_sweep *sweep, const lapse_sweep_info *info,
                          const cli_sweep_format *format)
{
    lapse_sweep_cell row;
    bool markdown = strcmp(format->name, "markdown") == 0, found = lapse_sweep_row(sweep, 0, &row);
    if (format->title) {
        fputs(markdown ? "### " : "", file);
        cli_text_print(file, format->title);
        fputs("\n\n", file);
    }
    fprintf(file, "Split %s", info->split);
    if (found && row.cases > 0)
        fprintf(file, ", %s", cli_plural(row.cases, "event", "events").text);
    if (info->protocol)
        fprintf(file, ", protocol %s", info->protocol);
    fprintf(file, "; mean%s over %s.%s", info->seeds > 1 ? " (standard deviation)" : "",
            cli_plural(info->seeds, "seed", "seeds").text, markdown ? "\n\n" : "\n");
}

static void print_notes(FILE *file, const lapse_sweep_info *info, const cli_sweep_format *format, bool config)
{
    char text[640];
    snprintf(text, sizeof text,
             "* best %s. Differences from it are paired by seed and sequence, with 95 %% bootstrap intervals; p is "
             "two-sided.%s",
             info->metric_names[info->metric],
             config ? " The config of a row is the one with the best mean validation score." : "");
    fputc('\n', file);
    if (strcmp(format->name, "markdown") == 0) {
        fputc('\\', file);
        fprintf(file, "%s\n", text);
    } else {
        cli_paragraph(file, text, 0, 0, 100);
    }
}

static bool print_text(FILE *file, const lapse_sweep *sweep, const cli_sweep_format *format)
{
    lapse_sweep_info info = lapse_sweep_describe(sweep);
    print_heading(file, sweep, &info, format);
    bool whole = print_rows(file, sweep, &info, format);
    print_notes(file, &info, format, has_config(sweep));
    return (!format->cells || print_cells(file, sweep, &info, format)) && whole;
}

/* --------------------------------------------------------------------------------------------------- CSV ----- */

static void csv_number(FILE *file, double value)
{
    fputc(',', file);
    if (!isnan(value))
        fprintf(file, "%.9g", value);
}

static void csv_row(FILE *file, const lapse_sweep_info *info, const lapse_sweep_cell *row, bool times, bool scores,
                    bool safe)
{
    cli_csv_field(file, row->row, safe);
    fputc(',', file);
    cli_csv_field(file, row->config, safe);
    fprintf(file, ",%d,%d,%d,%d", row->chosen, row->best, row->runs, row->diverged);
    csv_number(file, row->valid.mean);
    csv_number(file, row->valid.std);
    for (int m = 0; m < info->shown; m++) {
        csv_number(file, scores ? row->metrics[m].mean : NAN);
        csv_number(file, scores ? row->metrics[m].std : NAN);
    }
    csv_number(file, row->difference.mean);
    csv_number(file, row->difference.low);
    csv_number(file, row->difference.high);
    csv_number(file, row->p);
    csv_number(file, row->epochs.mean);
    if (times) {
        csv_number(file, row->epoch_seconds.mean);
        csv_number(file, row->seconds.mean);
        csv_number(file, row->reach.mean);
    }
    fputc('\n', file);
}

static void print_csv(FILE *file, const lapse_sweep *sweep, const cli_sweep_format *format)
{
    lapse_sweep_info info = lapse_sweep_describe(sweep);
    lapse_sweep_cell row;
    fputs("model,config,chosen,best,runs,diverged,valid,valid_std", file);
    for (int m = 0; m < info.shown; m++)
        fprintf(file, ",%s,%s_std", info.metric_names[m], info.metric_names[m]);
    fputs(",difference,difference_low,difference_high,p,epochs", file);
    fputs(format->no_times ? "\n" : ",epoch_seconds,seconds,reach_seconds\n", file);
    for (int c = 0; format->cells ? lapse_sweep_cell_at(sweep, c, &row) : lapse_sweep_row(sweep, c, &row); c++)
        csv_row(file, &info, &row, !format->no_times, row.chosen || format->test_scores, format->csv_safe);
}

/* -------------------------------------------------------------------------------------------------- JSON ----- */

static void json_spread(cli_json *json, const char *name, lapse_spread value)
{
    cli_json_object(json, name);
    cli_json_number(json, "mean", value.mean, 9);
    cli_json_number(json, "std", value.std, 9);
    cli_json_end(json, '}');
}

static void json_scores(cli_json *json, const lapse_sweep_info *info, const lapse_sweep_cell *row, bool scores)
{
    cli_json_text(json, "name", row->row);
    cli_json_text(json, "config", row->config);
    cli_json_whole(json, "runs", row->runs);
    cli_json_whole(json, "diverged", row->diverged);
    json_spread(json, "valid", row->valid);
    for (int m = 0; scores && m < info->metric_count; m++)
        json_spread(json, info->metric_names[m], row->metrics[m]);
}

static void json_runs(cli_json *json, const lapse_sweep *sweep, const lapse_sweep_info *info, int row, bool times)
{
    lapse_sweep_result run;
    cli_json_array(json, "seeds");
    for (int s = 0; s < info->seeds; s++) {
        if (!lapse_sweep_result_at(sweep, row, s, &run))
            continue;
        cli_json_object(json, NULL);
        cli_json_seed(json, "seed", run.seed);
        cli_json_number(json, "valid", run.valid, 9);
        for (int m = 0; m < info->metric_count; m++)
            cli_json_number(json, info->metric_names[m], run.metrics[m], 9);
        cli_json_whole(json, "epochs", run.epochs);
        cli_json_whole(json, "best_epoch", run.best_epoch);
        if (times)
            cli_json_number(json, "seconds", run.seconds, 4);
        cli_json_array(json, "curve");
        json->compact = true;
        for (int e = 0; e < run.epochs; e++) {
            cli_json_object(json, NULL);
            if (times)
                cli_json_number(json, "seconds", run.curve[2 * e], 4);
            cli_json_number(json, "valid", run.curve[2 * e + 1], 6);
            cli_json_end(json, '}');
        }
        cli_json_end(json, ']');
        json->compact = false;
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static void json_difference(cli_json *json, lapse_mean difference, double p)
{
    cli_json_number(json, "mean", difference.mean, 9);
    cli_json_number(json, "low", difference.low, 9);
    cli_json_number(json, "high", difference.high, 9);
    cli_json_number(json, "p", p, 4);
}

/* The paired test of every row with every row before it, in the table's metric. */
static void json_pairs(cli_json *json, const lapse_sweep *sweep, const lapse_sweep_info *info)
{
    lapse_sweep_cell row, other;
    cli_json_array(json, "pairs");
    for (int r = 0; lapse_sweep_row(sweep, r, &row); r++)
        for (int k = 0; k < r && lapse_sweep_row(sweep, k, &other); k++) {
            lapse_mean difference;
            double p;
            if (lapse_sweep_test(sweep, r, k, info->metric, &difference, &p, NULL) != LAPSE_OK)
                continue;
            cli_json_object(json, NULL);
            cli_json_text(json, "row", row.row);
            cli_json_text(json, "minus", other.row);
            json_difference(json, difference, p);
            cli_json_end(json, '}');
        }
    cli_json_end(json, ']');
}

static void print_json(FILE *file, const lapse_sweep *sweep, const cli_sweep_format *format)
{
    lapse_sweep_info info = lapse_sweep_describe(sweep);
    lapse_sweep_cell row;
    cli_json json = {.file = file};
    bool times = !format->no_times;
    cli_json_object(&json, NULL);
    if (format->title)
        cli_json_text(&json, "title", format->title);
    cli_json_text(&json, "data", format->data);
    cli_json_text(&json, "split", info.split);
    cli_json_text(&json, "target", info.target);
    if (info.protocol)
        cli_json_text(&json, "protocol", info.protocol);
    cli_json_text(&json, "metric", info.metric_names[info.metric]);
    cli_json_text(&json, "select", info.select);
    if (!isnan(info.reach))
        cli_json_number(&json, "reach", info.reach, 9);
    cli_json_whole(&json, "runs", info.runs);
    cli_json_whole(&json, "finished", info.finished);
    cli_json_array(&json, "rows");
    for (int r = 0; lapse_sweep_row(sweep, r, &row); r++) {
        cli_json_object(&json, NULL);
        json_scores(&json, &info, &row, true);
        cli_json_bool(&json, "best", row.best);
        cli_json_whole(&json, "cases", row.cases);
        cli_json_whole(&json, "parameters", row.parameters);
        cli_json_object(&json, "difference");
        json_difference(&json, row.difference, row.p);
        cli_json_end(&json, '}');
        cli_json_number(&json, "epochs", row.epochs.mean, 6);
        if (times) {
            cli_json_number(&json, "epoch_seconds", row.epoch_seconds.mean, 4);
            cli_json_number(&json, "seconds", row.seconds.mean, 4);
            cli_json_number(&json, "reach_seconds", row.reach.mean, 4);
        }
        cli_json_whole(&json, "reached", row.reach.count);
        json_runs(&json, sweep, &info, r, times);
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    if (format->pairs)
        json_pairs(&json, sweep, &info);
    if (format->cells) {
        cli_json_array(&json, "cells");
        for (int c = 0; lapse_sweep_cell_at(sweep, c, &row); c++) {
            cli_json_object(&json, NULL);
            json_scores(&json, &info, &row, row.chosen || format->test_scores);
            cli_json_bool(&json, "chosen", row.chosen);
            cli_json_end(&json, '}');
        }
        cli_json_end(&json, ']');
    }
    cli_json_end(&json, '}');
}

bool cli_sweep_print(FILE *file, const lapse_sweep *sweep, const cli_sweep_format *format)
{
    if (strcmp(format->name, "csv") == 0)
        print_csv(file, sweep, format);
    else if (strcmp(format->name, "json") == 0)
        print_json(file, sweep, format);
    else
        return print_text(file, sweep, format);
    return true;
}

/* ---------------------------------------------------------------------------------------------- progress ----- */

cli_sweep_bar cli_sweep_bar_new(const char *metric)
{
    return (cli_sweep_bar){.terminal = isatty(STDERR_FILENO) == 1, .done = -1, .metric = metric};
}

void cli_sweep_bar_update(cli_sweep_bar *bar, const lapse_sweep_progress *p)
{
    double now = cli_clock();
    bool ended = p->newest && p->done != bar->done;
    if (!ended && !(bar->terminal && now - bar->drawn > 0.2))
        return;
    bar->drawn = now;
    bar->done = p->done;
    if (bar->terminal)
        fputs("\r\033[K", stderr);
    fprintf(stderr, "%d of %s done, %d running, %d left", p->done, cli_plural(p->total, "run", "runs").text, p->running,
            p->left);
    if (!isnan(p->seconds_left) && p->done < p->total)
        fprintf(stderr, ", %s to the end", cli_seconds(p->seconds_left).text);
    if (p->newest) {
        fputs("; ", stderr);
        cli_text_print(stderr, p->newest);
        if (isnan(p->score))
            fputs(": diverged", stderr);
        else
            fprintf(stderr, ": %s", cli_metric(bar->metric, p->score).text);
    }
    if (!bar->terminal)
        fputc('\n', stderr);
    bar->open = bar->terminal;
    fflush(stderr);
}

void cli_sweep_bar_end(cli_sweep_bar *bar)
{
    if (bar->open)
        fputc('\n', stderr);
    bar->open = false;
}
