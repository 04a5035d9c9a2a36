/* verb_predict.c: `lapse predict`: predictions for each history in a file at the query times.
 *
 * All predictions are computed before the first is printed, so that an error leaves no partial table. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "csv_cell.h"
#include "events.h"
#include "known.h"
#include "lookup.h"
#include "predictions.h"
#include "ranks.h"
#include "results.h"
#include "times.h"
#include "vector_file.h"
#include "verb.h"
#include "lapse_lab.h"

typedef struct predict_settings {
    const char *model, *history, *output, *vectors;
    cli_columns columns;
    cli_list at, only;
    int top, threads;
    const char *unknown;
    bool unseen, csv, csv_safe, json;
    bool when;
    const char *within, *now;
} predict_settings;

/* The speed is printed for at least this many events. */
enum { TIMED_EVENTS = 10000 };

static int read_times(const predict_settings *s, cli_predictions *p, const cli_verb *verb)
{
    lapse_error error;
    double now = (double)time(NULL);
    for (int i = 0; i < s->at.count; i++) {
        lapse_status status = cli_when_add(&p->when, s->at.items[i], now, s->columns.import.timezone, &error);
        if (status == LAPSE_ERROR_MEMORY)
            return cli_error(&error);
        if (status != LAPSE_OK)
            return cli_usage(verb, "--at %s: %s", s->at.items[i], error.message);
    }
    return CLI_DONE;
}

/* One query for each history and query time, except times before the end of the history. */
static bool make_queries(cli_predictions *p)
{
    int64_t sequences = p->shown;
    size_t most = (size_t)sequences * (size_t)p->when.count + 1;
    p->queries = calloc(most, sizeof *p->queries);
    p->query_of = calloc(most, sizeof *p->query_of);
    p->last = calloc((size_t)sequences + 1, sizeof *p->last);
    p->late = calloc((size_t)p->when.count + 1, sizeof *p->late);
    if (!p->queries || !p->query_of || !p->last || !p->late)
        return false;
    for (int64_t i = 0; i < sequences; i++) {
        const double *times;
        const int32_t *types;
        int64_t count;
        lapse_dataset_sequence(p->history, i, &times, &types, &count);
        p->last[i] = times[count - 1];
        for (int j = 0; j < p->when.count; j++) {
            const cli_when *when = &p->when.items[j];
            double time = when->relative ? p->last[i] + when->seconds : when->seconds;
            bool late = time < p->last[i];
            p->query_of[i * p->when.count + j] = late ? -1 : p->query_count;
            if (late && p->late[j].count++ == 0)
                p->late[j].first = i;
            if (!late)
                p->queries[p->query_count++] = (lapse_query){i, time};
        }
    }
    return true;
}

static void report_late(const cli_predictions *p)
{
    for (int j = 0; j < p->when.count; j++)
        if (p->late[j].count > 0)
            cli_note("--at %s: skipped %s after this time, the first '%.200s', whose last event is at %s",
                     p->when.items[j].text,
                     cli_plural(p->late[j].count, "history that ends", "histories that end").text,
                     lapse_dataset_sequence_name(p->history, p->late[j].first),
                     cli_timestamp(p->last[p->late[j].first]).text);
}

/* Fails if every query time lies before the end of every history. */
static int check_times(const cli_predictions *p)
{
    int64_t sequences = p->shown;
    if (p->query_count > 0 || sequences == 0 || cli_ranks()) /* another rank may have some */
        return CLI_DONE;
    double first = p->last[0], last = p->last[0];
    for (int64_t i = 1; i < sequences; i++) {
        first = p->last[i] < first ? p->last[i] : first;
        last = p->last[i] > last ? p->last[i] : last;
    }
    return cli_fail("no prediction: every history ends after the query %s; the histories end from %s to %s. --at +1h "
                    "asks for the time after each history's last event",
                    p->when.count > 1 ? "times" : "time", cli_timestamp(first).text, cli_timestamp(last).text);
}

static int report_unanswered(const cli_predictions *p)
{
    cli_unanswered none = {0};
    for (int64_t q = 0; q < p->query_count; q++) {
        int64_t sequence = p->queries[q].sequence;
        if (q == 0 || p->queries[q - 1].sequence != sequence)
            cli_unanswered_add(&none, sequence, p->targets[0].counts[q] >= 0);
    }
    return cli_unanswered_report(&none, p->history);
}

static void find_targets(const predict_settings *s, cli_predictions *p)
{
    const char *task = cli_model_property(p->model, "task"), *target;
    p->recommends = task && strcmp(task, "recommend") == 0;
    while (p->target_count < 2 && (target = lapse_model_target(p->model, p->target_count)) != NULL) {
        int64_t size = lapse_model_target_size(p->model, target);
        p->targets[p->target_count++] = (cli_target_predictions){
            .target = target, .size = size, .top = s->top == 0 || s->top > size ? size : s->top};
    }
}

static int predict_all(const predict_settings *s, cli_predictions *p)
{
    lapse_predict_options options;
    lapse_error error;
    p->shown = cli_results_shown(s->output, !s->csv && !s->json, lapse_dataset_sequence_count(p->history));
    if (!make_queries(p))
        return cli_fail("out of memory");
    report_late(p);
    int result = check_times(p);
    if (result != CLI_DONE)
        return result;
    lapse_predict_options_default(&options);
    options.unseen = s->unseen;
    options.skip_unknown = strcmp(s->unknown, "skip") == 0;
    options.threads = s->threads;
    size_t dims = s->vectors ? (size_t)lapse_model_state_dims(p->model) : 0;
    if (s->vectors && dims == 0)
        return cli_fail("%s has no states for --vectors: a network trained with --task recommend does", s->model);
    if (s->vectors && !(p->states = calloc((size_t)p->query_count * dims + 1, sizeof *p->states)))
        return cli_fail("out of memory");
    options.states = p->states;
    for (int i = 0; i < p->target_count; i++) {
        cli_target_predictions *t = &p->targets[i];
        t->choices = calloc((size_t)p->query_count * (size_t)t->top + 1, sizeof *t->choices);
        /* The caller frees both. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        t->counts = calloc((size_t)p->query_count + 1, sizeof *t->counts);
        if (!t->choices || !t->counts)
            return cli_fail("out of memory");
        options.target = t->target;
        options.top = t->top;
        if (lapse_predict_all(p->model, p->history, p->queries, p->query_count, &options, t->choices, t->counts,
                              &error) != LAPSE_OK)
            return cli_error(&error);
    }
    return report_unanswered(p);
}

static int compute(predict_settings *s, cli_predictions *p)
{
    lapse_error error;
    if (lapse_model_load(s->model, &p->model, &error) != LAPSE_OK)
        return cli_error(&error);
    s->columns.import.threads = s->threads;
    int result = cli_events_open(s->history, &s->columns, p->model, &p->history);
    if (result == CLI_DONE)
        result = cli_events_only(&s->only, s->history, &p->history);
    if (result == CLI_DONE)
        result = cli_known_find(p->model, p->history, s->history, strcmp(s->unknown, "skip") == 0);
    if (result == CLI_DONE)
        result = cli_ranks_divide(&p->history);
    if (result != CLI_DONE)
        return result;
    double begun = cli_clock();
    find_targets(s, p);
    result = predict_all(s, p);
    int64_t events = lapse_dataset_event_count(p->history);
    double seconds = cli_clock() - begun;
    if (result == CLI_DONE && events >= TIMED_EVENTS)
        cli_note("predicted for %s in %.2f s: %s events/s",
                 cli_plural(lapse_dataset_sequence_count(p->history), "history", "histories").text, seconds,
                 cli_count((int64_t)((double)events / seconds)).text);
    return result;
}

/* The query of a row of the vectors: those with an answer. */
typedef struct state_rows {
    const cli_predictions *p;
    int64_t *query;
} state_rows;

static void print_query(const void *context, int64_t row, FILE *file)
{
    const state_rows *rows = context;
    const lapse_query *query = &rows->p->queries[rows->query[row]];
    cli_csv_field(file, lapse_dataset_sequence_name(rows->p->history, query->sequence), false);
    fprintf(file, ",%.3f", query->time);
}

/* --vectors: the states of the queries. */
static int write_states(const predict_settings *s, cli_predictions *p)
{
    int dims = lapse_model_state_dims(p->model);
    state_rows rows = {.p = p, .query = calloc((size_t)p->query_count + 1, sizeof *rows.query)};
    cli_vector_table table = {.dims = dims,
                              .vectors = p->states,
                              .columns = "sequence,time",
                              .last_column = "one",
                              .label = print_query,
                              .context = &rows};
    if (!rows.query)
        return cli_fail("out of memory");
    for (int64_t q = 0; q < p->query_count; q++)
        if (p->targets[0].counts[q] >= 0) {
            memmove(p->states + table.count * dims, p->states + q * dims, (size_t)dims * sizeof *p->states);
            rows.query[table.count++] = q;
        }
    int result = cli_vector_file_write(s->vectors, &table);
    free(rows.query);
    return result;
}

static bool print_predictions_json(const void *results, FILE *file)
{
    return cli_predictions_json(results, file);
}

static bool print_predictions_csv(const void *results, FILE *file)
{
    return cli_predictions_csv(results, file);
}

static bool print_predictions(const void *results, FILE *file)
{
    return cli_predictions_table(results, file);
}

static bool print_times_json(const void *results, FILE *file)
{
    return cli_times_list(results, file);
}

static bool print_times_csv(const void *results, FILE *file)
{
    return cli_times_csv(results, file);
}

static bool print_times(const void *results, FILE *file)
{
    return cli_times_table(results, file);
}

/* --when: the time of the next event. */
static int run_when(predict_settings *s, const cli_verb *verb)
{
    cli_times times = {
        .model_file = s->model, .history_file = s->history, .top = s->top, .no_types = s->csv, .csv_safe = s->csv_safe};
    lapse_error error;
    cli_now now;
    if (s->within && cli_horizons_parse(&times.within, s->within, &error) != LAPSE_OK)
        return cli_usage(verb, "--within %s: %s", s->within, error.message);
    if (cli_now_parse(&now, s->now, s->columns.import.timezone, &error) != LAPSE_OK)
        return cli_usage(verb, "--now %s: %s", s->now, error.message);
    if (lapse_model_load(s->model, &times.model, &error) != LAPSE_OK)
        return cli_error(&error);
    s->columns.import.threads = s->threads;
    bool skip = strcmp(s->unknown, "skip") == 0;
    int result = cli_events_open(s->history, &s->columns, times.model, &times.history);
    double from = result == CLI_DONE ? cli_now_time(&now, times.history) : 0; /* the end of all histories */
    if (result == CLI_DONE)
        result = cli_events_only(&s->only, s->history, &times.history);
    if (result == CLI_DONE)
        result = cli_known_find(times.model, times.history, s->history, skip);
    if (result == CLI_DONE)
        result = cli_ranks_divide(&times.history);
    if (result == CLI_DONE)
        times.shown = cli_results_shown(s->output, !s->csv && !s->json, lapse_dataset_sequence_count(times.history));
    if (result == CLI_DONE && times.within.count > 0)
        cli_censoring_warn(times.model);
    if (result == CLI_DONE)
        result = cli_times_compute(&times, from, skip, s->threads);
    if (result == CLI_DONE)
        result = cli_times_report(&times);
    if (result == CLI_DONE)
        result = cli_results_write_part(s->output,
                                        s->json  ? print_times_json
                                        : s->csv ? print_times_csv
                                                 : print_times,
                                        &times);
    if (result == CLI_DONE)
        cli_results_rest(times.shown, lapse_dataset_sequence_count(times.history));
    cli_times_clear(&times);
    return result;
}

static int run(void *settings, const cli_call *call)
{
    predict_settings *s = settings;
    cli_predictions p;
    memset(&p, 0, sizeof p);
    p.model_file = s->model;
    p.history_file = s->history;
    p.csv_safe = s->csv_safe;
    s->csv |= s->csv_safe;
    if (s->json && s->csv)
        return cli_usage(call->verb, "--json and --csv are mutually exclusive");
    if (cli_ranks() && (!s->csv || !s->output))
        return cli_usage(call->verb, "several ranks write parts of a table: they need --csv and --output FILE");
    if (cli_ranks() && s->threads == 0)
        s->threads = lapse_comm_threads(cli_ranks());
    if (s->vectors && (s->when || s->json || s->csv || s->output))
        return cli_usage(call->verb, "--vectors writes a file of its own, without --when, --json, --csv and --output");
    if (s->vectors && !cli_vector_file_known(s->vectors))
        return cli_usage(call->verb, "--vectors %s: the name of the file ends in .csv or .npy", s->vectors);
    if (s->when && s->at.count > 0)
        return cli_usage(call->verb,
                         "--when asks for the time of the next event, --at for the event at a time: use one of them");
    if (s->at.count > 0 && (s->within || s->now))
        return cli_usage(call->verb,
                         "--%s asks for the time of the next event, --at for the event at a time: use one of them",
                         s->within ? "within" : "now");
    s->when |= s->within != NULL || s->now != NULL;
    s->now = s->now ? s->now : CLI_NOW_DEFAULT;
    if (!s->when && s->at.count == 0)
        return cli_usage(call->verb, "--at is missing, or --when to predict the time of the next event");
    if (s->when)
        return run_when(s, call->verb);
    int result = read_times(s, &p, call->verb);
    if (result == CLI_DONE)
        result = compute(s, &p);
    if (result == CLI_DONE)
        result = s->vectors ? write_states(s, &p)
                            : cli_results_write_part(s->output,
                                                     s->json  ? print_predictions_json
                                                     : s->csv ? print_predictions_csv
                                                              : print_predictions,
                                                     &p);
    if (result == CLI_DONE && !s->vectors)
        cli_results_rest(p.shown, lapse_dataset_sequence_count(p.history));
    free(p.states);
    cli_when_clear(&p.when);
    for (int t = 0; t < p.target_count; t++) {
        free(p.targets[t].choices);
        free(p.targets[t].counts);
    }
    free(p.queries);
    free(p.query_of);
    free(p.last);
    free(p.late);
    lapse_dataset_close(p.history);
    lapse_model_free(p.model);
    return result;
}

static void defaults(void *settings)
{
    predict_settings *s = settings;
    cli_columns_default(&s->columns);
    s->top = 5;
    s->unknown = "error";
}

static const char *const *unknown_names(void)
{
    static const char *const names[] = {"error", "skip", NULL};
    return names;
}

static const cli_argument arguments[] = {
    {"MODEL", offsetof(predict_settings, model), "model file from `lapse train`", false, CLI_INPUT_FILE},
    {"HISTORY", offsetof(predict_settings, history), CLI_EVENTS_HELP, false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "at", .type = CLI_LIST, .offset = offsetof(predict_settings, at), .placeholder = "TIME",
     .help = "query time: Unix seconds, ISO 8601, now, +3d for 3 days after the last event of each sequence, or a sweep "
             "1h..30d/20 of 20 times after it, spaced evenly in log time; repeatable. Histories that end after a query "
             "time are skipped; it is an error if all are"},
    {.name = "when", .type = CLI_FLAG, .offset = offsetof(predict_settings, when),
     .help = "predict the time of the next event instead: its median and an interval of 80 %; the model must be trained with "
             "--when"},
    {.name = "within", .type = CLI_TEXT, .offset = offsetof(predict_settings, within), .placeholder = "DURATIONS",
     .help = "--when, and the probability that the next event comes within each duration after now, such as 1d,7d; and of the "
             "most probable types that it does and is of this type", .unset = "none"},
    {.name = "now", .type = CLI_TEXT, .offset = offsetof(predict_settings, now), .placeholder = "TIME",
     .help = "with --when: " CLI_NOW_HELP, .unset = CLI_NOW_DEFAULT},
    {.name = "top", .type = CLI_WHOLE, .offset = offsetof(predict_settings, top), .placeholder = "K",
     .help = "top-k: number of predictions to print, the most probable first; 0 prints all"},
    {.name = "only", .type = CLI_LIST, .offset = offsetof(predict_settings, only), .placeholder = "NAME", .help = CLI_ONLY_HELP},
    {.name = "unseen", .type = CLI_FLAG, .offset = offsetof(predict_settings, unseen),
     .help = "exclude event types that are already in the history"},
    {.name = "unknown", .type = CLI_CHOICE, .offset = offsetof(predict_settings, unknown), .placeholder = "ACTION",
     .help = "events that the model does not know: stop with an error, or skip them", .choices = unknown_names},
    {.name = "output", .letter = 'o', .type = CLI_TEXT, .offset = offsetof(predict_settings, output),
     .placeholder = "FILE", .help = "file to write, replaced atomically", .unset = "standard output",
     .file = CLI_OUTPUT_FILE},
    {.name = "vectors", .type = CLI_TEXT, .offset = offsetof(predict_settings, vectors), .placeholder = "FILE",
     .help = "file for the state vectors of a recommender at the query times, .csv or .npy, instead of predictions: the last "
             "number of each is 1. The product with an item's vector of `lapse info --vectors` is its score", .unset = "none",
     .file = CLI_OUTPUT_FILE},
    {.name = "csv", .type = CLI_FLAG, .offset = offsetof(predict_settings, csv), .help = "CSV output: one prediction per row"},
    {.name = "csv-safe", .type = CLI_FLAG, .offset = offsetof(predict_settings, csv_safe), .help = CLI_CSV_SAFE_HELP},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(predict_settings, json), .help = "JSON output: one object"},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(predict_settings, threads),
     .placeholder = "N", .help = "CPU threads", .unset = "all cores"},
    {0},
};
/* clang-format on */

static const cli_text_options text = {.offset = offsetof(predict_settings, columns), .model = true};

static const char *const examples[] = {
    "lapse predict model.safetensors history.csv --at '2026-11-15T12:00:00Z' --top 5",
    "lapse predict model.safetensors history.csv --at +1h --at +3d --at +2w --json",
    "lapse predict model.safetensors events.lapse --at 1h..30d/20 --top 1 --csv -o next.csv",
    "lapse predict shop.safetensors customers.csv --at now --top 10 --unseen",
    "lapse predict shop.safetensors customers.csv --when --within 1d,7d",
    NULL,
};

const cli_verb cli_verb_predict = {
    .name = "predict",
    .summary = "predict the next event at a given time, or when it comes, for each history in a file",
    .description =
        "Reads histories and predicts for each: if the next event happens at the query time, which event is it? Prints "
        "the most probable event types with their probabilities; for a recommender, items with their scores. With "
        "--when "
        "it predicts instead when the next event comes.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .text = &text,
    .size = sizeof(predict_settings),
    .defaults = defaults,
    .ranks = true,
    .run = run,
};
