/* verb_predict.c: `lapse predict`: predictions for each history in a text file at the query times.
 *
 * All predictions are computed before the first is printed, so that an error leaves no partial table. */
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "column_options.h"
#include "known.h"
#include "lookup.h"
#include "table.h"
#include "verb.h"

typedef struct predict_settings {
    const char *model, *history;
    cli_columns columns;
    cli_list at;
    int top;
    const char *unknown;
    bool unseen, csv, json;
} predict_settings;

/* A target of the model and its predictions: choices[sequence][when][rank], of which counts[sequence][when] ranks are
 * valid. */
typedef struct answer {
    const char *target;
    int64_t size, top; /* number of classes, and of those shown */
    lapse_recommendation *choices;
    int64_t *counts;
} answer;

/* State of a run. answered[sequence] is false for a sequence without a known event. */
typedef struct work {
    lapse_model *model;
    lapse_dataset *history;
    cli_when *when;
    int when_count;
    const char **fields; /* names of the model's categorical fields (without the action), then of its numeric fields */
    answer answers[2];
    int answer_count;
    lapse_query *queries; /* [sequence][when] */
    bool recommends;      /* events are items with scores */
    double *last;         /* time of each sequence's last event */
    bool *answered;
} work;

/* The speed is printed for at least this many events. */
enum { TIMED_EVENTS = 10000 };

/* An error in the header: a missing column, or a column that cannot be detected. */
static bool is_header_error(lapse_status status, const lapse_error *error)
{
    return (status == LAPSE_ERROR_INPUT || status == LAPSE_ERROR_USAGE || status == LAPSE_ERROR_UNKNOWN) &&
           error->line <= 1;
}

/* Sets the columns of the model's fields. */
static lapse_status name_fields(work *w, lapse_import_options *import, lapse_error *error)
{
    lapse_field field;
    int count = 0;
    while (lapse_model_field(w->model, count, &field))
        count++;
    w->fields = calloc((size_t)count + 1, sizeof *w->fields);
    if (!w->fields) {
        *error = (lapse_error){.status = LAPSE_ERROR_MEMORY, .message = "out of memory"};
        return LAPSE_ERROR_MEMORY;
    }
    const char **next = w->fields;
    bool action = lapse_model_field(w->model, 0, &field) && field.type == LAPSE_FIELD_ACTION;
    if (import->action && !action) {
        *error = (lapse_error){.status = LAPSE_ERROR_USAGE, .message = "--action: the model has no action field"};
        return LAPSE_ERROR_USAGE;
    }
    for (int i = 0; i < count; i++) {
        lapse_model_field(w->model, i, &field);
        if (field.type == LAPSE_FIELD_ACTION) {
            import->action = import->action ? import->action : field.name;
            continue;
        }
        *next++ = field.name;
        import->category_count += field.type == LAPSE_FIELD_CATEGORY;
        import->number_count += field.type == LAPSE_FIELD_NUMBER;
    }
    import->categories = w->fields;
    import->numbers = w->fields + import->category_count;
    return LAPSE_OK;
}

/* Reads the history. A column that is not given is the one in the training data if the file has it, otherwise it is detected
 * by name. Each combination is tried in turn: a header error occurs before any row is read. Standard input can be read
 * only once. */
static lapse_status read_history(predict_settings *s, work *w, lapse_import_report *report, lapse_error *error)
{
    enum { SEQUENCE = 1, TIME = 2, EVENT = 4 };
    static const int detected[] = {0, SEQUENCE, TIME, EVENT, SEQUENCE | TIME, SEQUENCE | EVENT, TIME | EVENT, 7};
    lapse_import_options *import = &s->columns.import;
    lapse_status first = LAPSE_OK;
    cli_columns_finish(&s->columns);
    import->input = s->history;
    import->min_events = 0;
    import->min_count = 0;
    lapse_status named = name_fields(w, import, error);
    if (named != LAPSE_OK)
        return named;
    for (size_t i = 0; i < sizeof detected / sizeof *detected; i++) {
        lapse_import_options attempt = *import;
        lapse_error failure;
        if (!attempt.sequence && !(detected[i] & SEQUENCE))
            attempt.sequence = cli_model_property(w->model, "column.sequence");
        if (!attempt.time && !(detected[i] & TIME))
            attempt.time = cli_model_property(w->model, "column.time");
        if (!attempt.event && !(detected[i] & EVENT))
            attempt.event = cli_model_property(w->model, "column.event");
        lapse_status status = lapse_dataset_read(&attempt, &w->history, report, &failure);
        if (status == LAPSE_OK)
            return LAPSE_OK;
        if (i == 0 || !is_header_error(status, &failure)) {
            first = status;
            *error = failure;
        }
        if (!is_header_error(status, &failure) || strcmp(s->history, "-") == 0)
            return status;
    }
    return first;
}

static double time_of(const cli_when *when, double last)
{
    return when->relative ? last + when->seconds : when->seconds;
}

/* One query for each sequence and query time. */
static int make_queries(work *w)
{
    for (int64_t i = 0; i < lapse_dataset_sequence_count(w->history); i++) {
        const double *times;
        const int32_t *types;
        int64_t count;
        lapse_dataset_sequence(w->history, i, &times, &types, &count);
        w->last[i] = times[count - 1];
        for (int j = 0; j < w->when_count; j++) {
            double time = time_of(&w->when[j], w->last[i]);
            if (time < w->last[i])
                return cli_fail("--at %s is before the last event of sequence '%.200s', %s; use that time or later",
                                w->when[j].text, lapse_dataset_sequence_name(w->history, i),
                                cli_timestamp(w->last[i]).text);
            w->queries[i * w->when_count + j] = (lapse_query){i, time};
        }
    }
    return CLI_DONE;
}

static bool allocate(work *w)
{
    size_t sequences = (size_t)lapse_dataset_sequence_count(w->history), queries = sequences * (size_t)w->when_count;
    w->queries = calloc(queries + 1, sizeof *w->queries);
    w->last = calloc(sequences + 1, sizeof *w->last);
    w->answered = calloc(sequences + 1, sizeof *w->answered);
    bool allocated = w->queries && w->last && w->answered;
    for (int t = 0; t < w->answer_count; t++) {
        answer *a = &w->answers[t];
        a->choices = calloc(queries * (size_t)a->top + 1, sizeof *a->choices);
        a->counts = calloc(queries + 1, sizeof *a->counts);
        allocated = allocated && a->choices && a->counts;
    }
    return allocated;
}

static int answer_all(const predict_settings *s, work *w)
{
    int64_t sequences = lapse_dataset_sequence_count(w->history), queries = sequences * w->when_count;
    lapse_predict_options options;
    lapse_error error;
    if (!allocate(w))
        return cli_fail("out of memory");
    int result = make_queries(w);
    lapse_predict_options_default(&options);
    options.unseen = s->unseen;
    options.skip_unknown = strcmp(s->unknown, "skip") == 0;
    options.threads = s->columns.import.threads;
    for (int t = 0; t < w->answer_count && result == CLI_DONE; t++) {
        answer *a = &w->answers[t];
        options.target = a->target;
        options.top = a->top;
        if (lapse_predict_all(w->model, w->history, w->queries, queries, &options, a->choices, a->counts, &error) !=
            LAPSE_OK)
            return cli_error(&error);
    }
    for (int64_t i = 0; i < sequences && result == CLI_DONE; i++) {
        w->answered[i] = w->answers[0].counts[i * w->when_count] >= 0;
        if (!w->answered[i])
            cli_note("sequence '%s' has no event that the model knows: no prediction",
                     lapse_dataset_sequence_name(w->history, i));
    }
    return result;
}

static const lapse_recommendation *choice_at(const work *w, const answer *a, int64_t sequence, int when, int64_t rank)
{
    return &a->choices[(sequence * w->when_count + when) * a->top + rank];
}

static int64_t count_at(const work *w, const answer *a, int64_t sequence, int when)
{
    return a->counts[sequence * w->when_count + when];
}

/* The largest number of predictions of a sequence at any query time. */
static int64_t longest_of(const work *w, const answer *a, int64_t sequence)
{
    int64_t most = 0;
    for (int j = 0; j < w->when_count; j++)
        most = count_at(w, a, sequence, j) > most ? count_at(w, a, sequence, j) : most;
    return most;
}

static const char *name_of(const work *w, const answer *a, const lapse_recommendation *choice)
{
    return lapse_model_target_name(w->model, a->target, choice->item);
}

/* Whether the event is the only target. */
static bool events_only(const work *w)
{
    return w->answer_count == 1 && strcmp(w->answers[0].target, "event") == 0;
}

static int print_table(const work *w, const answer *a)
{
    int columns = 2 + 2 * w->when_count;
    char *align = malloc((size_t)columns + 1);
    if (!align)
        return cli_fail("out of memory");
    for (int i = 0; i < columns; i++)
        align[i] = i % 2 == 0 ? 'l' : 'r';
    align[columns] = 0;
    cli_table table = {.align = align};
    cli_table_add(&table, "sequence");
    cli_table_add(&table, "rank");
    for (int i = 0; i < w->when_count; i++) {
        cli_table_add(&table, "at %s", w->when[i].text);
        cli_table_add(&table, "%s", "");
    }
    for (int64_t i = 0; i < lapse_dataset_sequence_count(w->history); i++) {
        for (int64_t rank = 0; rank < longest_of(w, a, i); rank++) {
            cli_table_add(&table, "%s", rank == 0 ? lapse_dataset_sequence_name(w->history, i) : "");
            cli_table_add(&table, "%lld", (long long)rank + 1);
            for (int j = 0; j < w->when_count; j++) {
                bool there = rank < count_at(w, a, i, j);
                const lapse_recommendation *choice = choice_at(w, a, i, j, rank);
                cli_table_add(&table, "%s", there ? name_of(w, a, choice) : "");
                cli_table_add(&table, "%s", there ? cli_percent(choice->probability, 1).text : "");
            }
        }
    }
    bool whole = cli_table_print(&table, stdout, 0);
    free(align);
    return whole ? CLI_DONE : cli_fail("out of memory");
}

static int print_tables(const work *w)
{
    int result = CLI_DONE;
    for (int t = 0; t < w->answer_count && result == CLI_DONE; t++) {
        if (!events_only(w))
            printf("%starget: %s\n", t ? "\n" : "", w->answers[t].target);
        result = print_table(w, &w->answers[t]);
    }
    return result;
}

static void print_csv_field(const char *text)
{
    bool quote = strpbrk(text, ",\"\r\n") != NULL || *text == ' ';
    if (quote)
        fputc('"', stdout);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', stdout);
        fputc(*text, stdout);
    }
    if (quote)
        fputc('"', stdout);
}

static void print_csv_rows(const work *w, const answer *a, int64_t sequence, int when)
{
    for (int64_t rank = 0; rank < count_at(w, a, sequence, when); rank++) {
        const lapse_recommendation *choice = choice_at(w, a, sequence, when, rank);
        print_csv_field(lapse_dataset_sequence_name(w->history, sequence));
        fputc(',', stdout);
        print_csv_field(w->when[when].text);
        printf(",%.15g,", time_of(&w->when[when], w->last[sequence]));
        if (!events_only(w))
            printf("%s,", a->target);
        printf("%lld,", (long long)rank + 1);
        print_csv_field(name_of(w, a, choice));
        if (w->recommends)
            printf(",%.9g", choice->score);
        printf(",%.9g\n", choice->probability);
    }
}

static int print_csv(const work *w)
{
    puts(w->recommends    ? "sequence,at,time,rank,item,score,probability"
         : events_only(w) ? "sequence,at,time,rank,event,probability"
                          : "sequence,at,time,target,rank,name,probability");
    for (int64_t i = 0; i < lapse_dataset_sequence_count(w->history); i++)
        for (int j = 0; j < w->when_count && w->answered[i]; j++)
            for (int t = 0; t < w->answer_count; t++)
                print_csv_rows(w, &w->answers[t], i, j);
    return CLI_DONE;
}

/* "top" is the list of events or items, "top_actions" that of actions. */
static void json_top(const work *w, cli_json *json, const answer *a, int64_t sequence, int when)
{
    bool event = strcmp(a->target, "event") == 0;
    cli_json_array(json, event ? "top" : "top_actions");
    for (int64_t rank = 0; rank < count_at(w, a, sequence, when); rank++) {
        const lapse_recommendation *choice = choice_at(w, a, sequence, when, rank);
        cli_json_object(json, NULL);
        cli_json_text(json, w->recommends ? "item" : a->target, name_of(w, a, choice));
        if (w->recommends)
            cli_json_number(json, "score", choice->score, 9);
        cli_json_number(json, "probability", choice->probability, 9);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static void json_answer(const work *w, cli_json *json, int64_t sequence, int when)
{
    double time = time_of(&w->when[when], w->last[sequence]);
    cli_json_object(json, NULL);
    cli_json_text(json, "at", w->when[when].text);
    cli_json_number(json, "time", time, 15);
    cli_json_text(json, "timestamp", cli_timestamp(time).text);
    for (int t = 0; t < w->answer_count; t++)
        json_top(w, json, &w->answers[t], sequence, when);
    cli_json_end(json, '}');
}

static int print_json(const predict_settings *s, const work *w)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", s->model);
    cli_json_text(&json, "history", s->history);
    cli_json_array(&json, "sequences");
    for (int64_t i = 0; i < lapse_dataset_sequence_count(w->history); i++) {
        cli_json_object(&json, NULL);
        cli_json_text(&json, "sequence", lapse_dataset_sequence_name(w->history, i));
        cli_json_number(&json, "last_time", w->last[i], 15);
        cli_json_array(&json, "predictions");
        for (int j = 0; j < w->when_count && w->answered[i]; j++)
            json_answer(w, &json, i, j);
        cli_json_end(&json, ']');
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
    return CLI_DONE;
}

static int read_times(const predict_settings *s, work *w, const cli_verb *verb)
{
    lapse_error error;
    w->when_count = s->at.count;
    w->when = calloc((size_t)s->at.count, sizeof *w->when);
    if (!w->when)
        return cli_fail("out of memory");
    for (int i = 0; i < s->at.count; i++)
        if (cli_when_parse(s->at.items[i], &w->when[i], &error) != LAPSE_OK)
            return cli_usage(verb, "--at %s: %s", s->at.items[i], error.message);
    return CLI_DONE;
}

static int predict(predict_settings *s, work *w)
{
    lapse_import_report report;
    lapse_error error;
    lapse_status status = lapse_model_load(s->model, &w->model, &error);
    if (status == LAPSE_OK)
        status = read_history(s, w, &report, &error);
    if (status != LAPSE_OK)
        return cli_error(&error);
    if (report.bad_rows > 0) {
        cli_note("skipped %s; the first:", cli_plural(report.bad_rows, "malformed row", "malformed rows").text);
        cli_error(&report.first_bad_row);
    }
    for (w->answer_count = 0; w->answer_count < 2; w->answer_count++) {
        answer *a = &w->answers[w->answer_count];
        a->target = lapse_model_target(w->model, w->answer_count);
        if (!a->target)
            break;
        a->size = lapse_model_target_size(w->model, a->target);
        a->top = s->top == 0 || s->top > a->size ? a->size : s->top;
    }
    const char *task = cli_model_property(w->model, "task");
    w->recommends = task && strcmp(task, "recommend") == 0;
    int result = cli_known_find(w->model, w->history, s->history, strcmp(s->unknown, "skip") == 0);
    double begun = cli_clock();
    if (result == CLI_DONE)
        result = answer_all(s, w);
    int64_t events = lapse_dataset_event_count(w->history);
    if (result == CLI_DONE && events >= TIMED_EVENTS)
        cli_note("predicted for %s in %.2f s: %s events/s",
                 cli_plural(lapse_dataset_sequence_count(w->history), "history", "histories").text, cli_clock() - begun,
                 cli_count((int64_t)((double)events / (cli_clock() - begun))).text);
    if (result != CLI_DONE)
        return result;
    return s->json ? print_json(s, w) : s->csv ? print_csv(w) : print_tables(w);
}

static int run(void *settings, const cli_call *call)
{
    predict_settings *s = settings;
    work w;
    memset(&w, 0, sizeof w);
    if (s->json && s->csv)
        return cli_usage(call->verb, "--json and --csv are mutually exclusive");
    int result = read_times(s, &w, call->verb);
    if (result == CLI_DONE)
        result = predict(s, &w);
    free(w.when);
    free(w.fields);
    for (int t = 0; t < w.answer_count; t++) {
        free(w.answers[t].choices);
        free(w.answers[t].counts);
    }
    free(w.queries);
    free(w.last);
    free(w.answered);
    lapse_dataset_close(w.history);
    lapse_model_free(w.model);
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
    {"HISTORY", offsetof(predict_settings, history),
     "CSV or TSV file, plain or gzip, one event per row; - is standard input", false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "at", .type = CLI_LIST, .offset = offsetof(predict_settings, at), .placeholder = "TIME",
     .help = "query time: Unix seconds, ISO 8601, or +3d for 3 days after the last event of each sequence; "
             "repeatable, one column each", .required = true},
    {.name = "top", .type = CLI_WHOLE, .offset = offsetof(predict_settings, top), .placeholder = "K",
     .help = "top-k: number of predictions to print, the most probable first; 0 prints all"},
    {.name = "unseen", .type = CLI_FLAG, .offset = offsetof(predict_settings, unseen),
     .help = "exclude event types that are already in the history"},
    {.name = "unknown", .type = CLI_CHOICE, .offset = offsetof(predict_settings, unknown), .placeholder = "ACTION",
     .help = "events that the model does not know: stop with an error, or skip them", .choices = unknown_names},
    {.name = "csv", .type = CLI_FLAG, .offset = offsetof(predict_settings, csv), .help = "CSV output: one prediction per row"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(predict_settings, json), .help = "JSON output: one object"},
    CLI_COLUMN_ROWS(predict_settings, columns, "that of the training data"),
    {.name = "action", .type = CLI_TEXT, .offset = offsetof(predict_settings, columns.import.action),
     .placeholder = "COLUMN", .help = "action column, for a model with an action field; other fields keep the column "
     "names of the training data", .unset = "that of the training data"},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(predict_settings, columns.import.threads),
     .placeholder = "N", .help = "CPU threads", .unset = "all cores"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {
    "lapse predict model.safetensors history.csv --at '2026-11-15T12:00:00Z' --top 5",
    "lapse predict model.safetensors history.csv --at +1h --at +3d --at +2w --json",
    "lapse predict shop.safetensors customers.csv --at +1d --top 10 --unseen --csv",
    NULL,
};

const cli_verb cli_verb_predict = {
    .name = "predict",
    .summary = "predict the event at a given time, for each history in a file",
    .description =
        "Reads histories and predicts for each: if the next event happens at the query time, which event is it? Prints "
        "the most probable event types with their probabilities; for a recommender, items with their scores.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(predict_settings),
    .defaults = defaults,
    .run = run,
};
