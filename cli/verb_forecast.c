/* verb_forecast.c: `lapse forecast`: how many events each history of a file has until a horizon, from drawn futures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "bar.h"
#include "csv_cell.h"
#include "events.h"
#include "json.h"
#include "known.h"
#include "results.h"
#include "table.h"
#include "verb.h"

typedef struct forecast_settings {
    const char *model, *history, *horizon, *now, *unknown, *output;
    cli_columns columns;
    cli_list only;
    lapse_forecast_options forecast;
    int top;
    bool csv, csv_safe, json;
} forecast_settings;

typedef struct forecast {
    const forecast_settings *settings;
    lapse_model *model;
    lapse_dataset *history;
    lapse_forecasts made;
    cli_now now;
    int64_t shown;                /* histories of the table, the first ones */
    int64_t top, finished, drawn; /* event types to show; histories with all their futures; those with some */
    cli_choice *best;             /* [top]: of the history that is printed */
    cli_bar bar;
} forecast;

static bool on_progress(const lapse_forecast_progress *p, void *context)
{
    forecast *f = context;
    char what[320];
    snprintf(what, sizeof what, "forecast: %s of %s, %s of about %s events", cli_count(p->sequences).text,
             cli_plural(p->sequence_count, "history", "histories").text, cli_count((int64_t)p->events).text,
             cli_count((int64_t)p->events_expected).text);
    cli_bar_fraction(&f->bar, what, p->seconds / (p->seconds + p->seconds_left), p->seconds, p->seconds_left);
    return !cli_interrupted();
}

/* The types with the highest expected counts of a sequence. */
static void best_types(const forecast *f, int64_t sequence)
{
    cli_choices_top(f->made.type_expected + sequence * f->made.type_count, f->made.type_count, f->best, f->top);
}

/* The time that the futures of a history begin at. */
static cli_words from(const forecast *f, int64_t i)
{
    const double *times;
    const int32_t *types;
    int64_t count;
    lapse_dataset_sequence(f->history, i, &times, &types, &count);
    return cli_timestamp(fmax(times[count - 1], f->made.now)); /* the last event, if now is NaN */
}

/* The cells of a history, which are empty after its first row. */
static void add_history(cli_table *table, const forecast *f, int64_t i, bool first)
{
    char count[32] = "", low[32] = "", high[32] = "";
    if (first) {
        snprintf(count, sizeof count, "%.2f", f->made.count[i]);
        snprintf(low, sizeof low, "%.0f", f->made.low[i]);
        snprintf(high, sizeof high, "%.0f", f->made.high[i]);
    }
    cli_table_add(table, "%s", first ? lapse_dataset_sequence_name(f->history, i) : "");
    cli_table_add(table, "%s", count);
    cli_table_add(table, "%s", low);
    cli_table_add(table, "%s", high);
    cli_table_add(table, "%s", first ? cli_percent(f->made.any[i], 1).text : "");
}

static bool print_table(const void *results, FILE *file)
{
    const forecast *f = results;
    cli_table table = {.align = "lrrrrlrr"};
    static const char *const headings[] = {"sequence", "events", "10 %", "90 %", "any", "type", "events", "any"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        cli_table_add(&table, "%s", headings[i]);
    for (int64_t i = 0; i < f->shown; i++) {
        if (f->made.samples[i] <= 0)
            continue;
        best_types(f, i);
        for (int64_t k = 0; k < f->top; k++) {
            add_history(&table, f, i, k == 0);
            cli_table_add(&table, "%s", lapse_model_event_type_name(f->model, f->best[k].type));
            cli_table_add(&table, "%.3f", f->best[k].probability);
            cli_table_add(&table, "%s",
                          cli_percent(f->made.type_any[i * f->made.type_count + f->best[k].type], 1).text);
        }
    }
    bool whole = cli_table_print(&table, file, 0);
    if (f->made.partial)
        fprintf(file, "partial: stopped with all futures of %s of %s histories\n", cli_count(f->finished).text,
                cli_count(f->made.sequence_count).text);
    return whole;
}

static void sequence_json(const forecast *f, cli_json *json, int64_t i)
{
    cli_json_object(json, NULL);
    cli_json_text(json, "sequence", lapse_dataset_sequence_name(f->history, i));
    cli_json_text(json, "from", from(f, i).text);
    cli_json_whole(json, "samples", f->made.samples[i] > 0 ? f->made.samples[i] : 0);
    if (f->made.samples[i] > 0) {
        best_types(f, i);
        cli_json_number(json, "events", f->made.count[i], 9);
        cli_json_number(json, "p10", f->made.low[i], 9);
        cli_json_number(json, "p90", f->made.high[i], 9);
        cli_json_number(json, "any", f->made.any[i], 9);
        cli_json_array(json, "types");
        for (int64_t k = 0; k < f->top; k++) {
            cli_json_object(json, NULL);
            cli_json_text(json, "event", lapse_model_event_type_name(f->model, f->best[k].type));
            cli_json_number(json, "events", f->best[k].probability, 9);
            cli_json_number(json, "any", f->made.type_any[i * f->made.type_count + f->best[k].type], 9);
            cli_json_end(json, '}');
        }
        cli_json_end(json, ']');
    }
    cli_json_end(json, '}');
}

/* A row for each type shown. A history that a stopped forecast did not reach has one row, with 0 samples and empty cells. */
static bool print_csv(const void *results, FILE *file)
{
    const forecast *f = results;
    fputs("sequence,from,samples,events,events_p10,events_p90,any,rank,event,event_events,event_any\n", file);
    for (int64_t i = 0; i < f->made.sequence_count; i++) {
        const char *name = lapse_dataset_sequence_name(f->history, i);
        if (f->made.samples[i] < 0) {
            cli_csv_field(file, name, f->settings->csv_safe);
            fprintf(file, ",%s,0,,,,,,,,\n", from(f, i).text);
        }
        if (f->made.samples[i] <= 0)
            continue;
        best_types(f, i);
        for (int64_t k = 0; k < f->top; k++) {
            cli_csv_field(file, name, f->settings->csv_safe);
            fprintf(file, ",%s,%lld,%.9g,%.9g,%.9g,%.9g,%lld,", from(f, i).text, (long long)f->made.samples[i],
                    f->made.count[i], f->made.low[i], f->made.high[i], f->made.any[i], (long long)k + 1);
            cli_csv_field(file, lapse_model_event_type_name(f->model, f->best[k].type), f->settings->csv_safe);
            fprintf(file, ",%.9g,%.9g\n", f->best[k].probability,
                    f->made.type_any[i * f->made.type_count + f->best[k].type]);
        }
    }
    return true;
}

static bool print_json(const void *results, FILE *file)
{
    const forecast *f = results;
    cli_json json = {.file = file};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", f->settings->model);
    cli_json_text(&json, "history", f->settings->history);
    cli_json_number(&json, "horizon_seconds", f->made.horizon, 15);
    cli_json_seed(&json, "seed", f->settings->forecast.seed);
    cli_json_bool(&json, "partial", f->made.partial);
    cli_json_array(&json, "sequences");
    for (int64_t i = 0; i < f->made.sequence_count; i++)
        sequence_json(f, &json, i);
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
    return true;
}

/* Reports histories without a forecast, futures that were cut, and a forecast that was stopped. Returns an exit status. */
static int report(forecast *f)
{
    cli_unanswered none = {0};
    for (int64_t i = 0; i < f->made.sequence_count; i++) {
        cli_unanswered_add(&none, i, f->made.samples[i] != 0);
        f->finished += f->made.samples[i] == f->settings->forecast.samples;
        f->drawn += f->made.samples[i] > 0;
    }
    int result = cli_unanswered_report(&none, f->history);
    if (result == CLI_DONE && f->made.cut > 0)
        cli_note("%s cut at 100,000 events: the numbers of events are lower bounds",
                 cli_plural(f->made.cut, "future was", "futures were").text);
    if (result != CLI_DONE || !f->made.partial)
        return result;
    result = cli_interrupted() ? CLI_INTERRUPTED : CLI_FAILED;
    cli_note("stopped%s with all futures of %s of %s; %s", result == CLI_FAILED ? " at --max-events" : "",
             cli_count(f->finished).text, cli_plural(f->made.sequence_count, "history", "histories").text,
             f->drawn > 0 ? "the result is partial, and says so" : "there is no result");
    return result;
}

static int show(forecast *f)
{
    const forecast_settings *s = f->settings;
    f->top = s->top == 0 || s->top > f->made.type_count ? f->made.type_count : s->top;
    f->shown = cli_results_shown(s->output, !s->csv && !s->json, f->made.sequence_count);
    f->best = calloc((size_t)f->top + 1, sizeof *f->best);
    int result = f->best ? cli_results_write(s->output,
                                             s->json  ? print_json
                                             : s->csv ? print_csv
                                                      : print_table,
                                             f)
                         : cli_fail("out of memory");
    free(f->best);
    if (result == CLI_DONE)
        cli_results_rest(f->shown, f->made.sequence_count);
    return result;
}

static int compute(forecast_settings *s, forecast *f)
{
    lapse_error error;
    bool skip = strcmp(s->unknown, "skip") == 0;
    if (lapse_model_load(s->model, &f->model, &error) != LAPSE_OK)
        return cli_error(&error);
    s->columns.import.threads = s->forecast.threads;
    int result = cli_events_open(s->history, &s->columns, f->model, &f->history);
    s->forecast.now = result == CLI_DONE ? cli_now_time(&f->now, f->history) : 0; /* the end of all histories */
    if (result == CLI_DONE)
        result = cli_events_only(&s->only, s->history, &f->history);
    if (result == CLI_DONE)
        result = cli_known_find(f->model, f->history, s->history, skip);
    if (result != CLI_DONE)
        return result;
    cli_censoring_warn(f->model);
    s->forecast.skip_unknown = skip;
    s->forecast.on_progress = on_progress;
    s->forecast.context = f;
    double begun = cli_clock();
    f->bar = cli_bar_new(NULL);
    cli_interrupt_watch();
    lapse_status status = lapse_forecast(f->model, f->history, &s->forecast, &f->made, &error);
    cli_interrupt_unwatch();
    cli_bar_wipe(&f->bar);
    if (status != LAPSE_OK)
        return cli_error(&error);
    int64_t futures = f->made.sequence_count * s->forecast.samples;
    if (futures >= 100000 && !f->made.partial)
        cli_note("drew %s futures in %.2f s", cli_count(futures).text, cli_clock() - begun);
    int stopped = report(f);
    if (f->drawn == 0)
        return stopped;
    result = show(f);
    return result == CLI_DONE ? stopped : result;
}

static int run(void *settings, const cli_call *call)
{
    forecast_settings *s = settings;
    forecast f = {.settings = s};
    lapse_error error;
    s->csv |= s->csv_safe;
    if (s->json && s->csv)
        return cli_usage(call->verb, "--json and --csv are mutually exclusive");
    if (lapse_duration_parse(s->horizon, &s->forecast.horizon, &error) != LAPSE_OK)
        return cli_usage(call->verb, "--horizon %s: %s", s->horizon, error.message);
    if (cli_now_parse(&f.now, s->now, s->columns.import.timezone, &error) != LAPSE_OK)
        return cli_usage(call->verb, "--now %s: %s", s->now, error.message);
    int result = compute(s, &f);
    lapse_forecasts_clear(&f.made);
    lapse_dataset_close(f.history);
    lapse_model_free(f.model);
    return result;
}

static void defaults(void *settings)
{
    forecast_settings *s = settings;
    cli_columns_default(&s->columns);
    lapse_forecast_options_default(&s->forecast);
    s->top = 3;
    s->now = CLI_NOW_DEFAULT;
    s->unknown = "error";
}

static const char *const *unknown_names(void)
{
    static const char *const names[] = {"error", "skip", NULL};
    return names;
}

static const cli_argument arguments[] = {
    {"MODEL", offsetof(forecast_settings, model), "model file from `lapse train --when`", false, CLI_INPUT_FILE},
    {"HISTORY", offsetof(forecast_settings, history), CLI_EVENTS_HELP, false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "horizon", .type = CLI_TEXT, .offset = offsetof(forecast_settings, horizon), .placeholder = "DURATION",
     .help = "how far to look ahead, such as 30d", .required = true},
    {.name = "samples", .type = CLI_COUNT, .offset = offsetof(forecast_settings, forecast.samples), .placeholder = "N",
     .help = "futures to draw from each history"},
    {.name = "max-events", .type = CLI_COUNT, .offset = offsetof(forecast_settings, forecast.max_events), .placeholder = "N",
     .help = "events to draw for all futures, at most: a forecast that needs more by its estimate is not started; 0: no limit"},
    {.name = "now", .type = CLI_TEXT, .offset = offsetof(forecast_settings, now), .placeholder = "TIME",
     .help = CLI_NOW_HELP},
    {.name = "top", .type = CLI_WHOLE, .offset = offsetof(forecast_settings, top), .placeholder = "K",
     .help = "top-k: event types to print, those with the highest expected counts; 0 prints all"},
    {.name = "only", .type = CLI_LIST, .offset = offsetof(forecast_settings, only), .placeholder = "NAME", .help = CLI_ONLY_HELP},
    {.name = "seed", .type = CLI_SEED, .offset = offsetof(forecast_settings, forecast.seed), .placeholder = "N",
     .help = "random seed of the futures"},
    {.name = "unknown", .type = CLI_CHOICE, .offset = offsetof(forecast_settings, unknown), .placeholder = "ACTION",
     .help = "events that the model does not know: stop with an error, or skip them", .choices = unknown_names},
    {.name = "output", .letter = 'o', .type = CLI_TEXT, .offset = offsetof(forecast_settings, output),
     .placeholder = "FILE", .help = "file to write, replaced atomically", .unset = "standard output",
     .file = CLI_OUTPUT_FILE},
    {.name = "csv", .type = CLI_FLAG, .offset = offsetof(forecast_settings, csv), .help = "CSV output: one event type per row"},
    {.name = "csv-safe", .type = CLI_FLAG, .offset = offsetof(forecast_settings, csv_safe), .help = CLI_CSV_SAFE_HELP},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(forecast_settings, json), .help = "JSON output: one object"},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(forecast_settings, forecast.threads),
     .placeholder = "N", .help = "CPU threads; does not change the result", .unset = "all cores"},
    {0},
};
/* clang-format on */

static const cli_text_options text = {.offset = offsetof(forecast_settings, columns), .model = true};

static const char *const examples[] = {
    "lapse forecast shop.safetensors customers.csv --horizon 30d --samples 500",
    "lapse forecast shop.safetensors customers.csv --horizon 30d --top 1 --csv -o expected.csv",
    "lapse forecast shop.safetensors customers.csv --horizon 7d --now '2026-11-15T08:00:00Z' --json",
    NULL,
};

const cli_verb cli_verb_forecast = {
    .name = "forecast",
    .summary = "forecast events by type until a horizon, for each history in a file",
    .description =
        "Draws futures of each history event by event: a time, then an event type at this time, and again until the "
        "horizon. Prints the expected number of events, its 10 % and 90 % quantiles and the probability of at least "
        "one, of all events and of the most frequent types. Ctrl-C stops it and prints the histories that are done, "
        "marked as "
        "partial. The model must be trained with --when. A drawn event has the fields of the last event of its type in the "
        "history or, where there is none, of the last event.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .text = &text,
    .size = sizeof(forecast_settings),
    .defaults = defaults,
    .run = run,
};
