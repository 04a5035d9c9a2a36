/* verb_import.c: `lapse import`: converts a CSV, TSV or JSON Lines file of events into a dataset file. */
#include <stdlib.h>
#include <string.h>

#include "column_options.h"
#include "import_question.h"
#include "server/serve.h"
#include "verb.h"

#include <lapse_lab.h>

typedef struct import_settings {
    cli_columns columns;
    const char *output, *memory, *store;
    bool json;
} import_settings;

/* First and last timestamp of a dataset. */
typedef struct span {
    double first, last;
} span;

static span dataset_span(const lapse_dataset *dataset)
{
    span all = {0, 0};
    int64_t sequences = lapse_dataset_sequence_count(dataset);
    for (int64_t i = 0; i < sequences; i++) {
        const double *times;
        const int32_t *types;
        int64_t count;
        lapse_dataset_sequence(dataset, i, &times, &types, &count);
        if (i == 0 || times[0] < all.first)
            all.first = times[0];
        if (i == 0 || times[count - 1] > all.last)
            all.last = times[count - 1];
    }
    return all;
}

static void print_bad_rows(FILE *file, const lapse_import_report *report)
{
    const lapse_error *first = &report->first_bad_row;
    fprintf(file, "skipped    %s; first at ", cli_plural(report->bad_rows, "malformed row", "malformed rows").text);
    cli_text_print(file, first->file);
    fprintf(file, ":%lld", (long long)first->line);
    if (first->column > 0)
        fprintf(file, ":%lld", (long long)first->column);
    fputs(": ", file);
    cli_text_print(file, first->message);
    fputc('\n', file);
}

static void print_fields(FILE *file, const lapse_dataset *dataset)
{
    lapse_field field;
    for (int i = 0; lapse_dataset_field(dataset, i, &field); i++) {
        fprintf(file, "%s", i == 0 ? "fields     " : ", ");
        cli_text_print(file, field.name);
        if (field.type == LAPSE_FIELD_NUMBER)
            fputs(" (number)", file);
        else
            fprintf(file, " (%s)", cli_plural(field.category_count, "value", "values").text);
    }
    if (lapse_dataset_field(dataset, 0, &field))
        fputc('\n', file);
}

static void json_fields(cli_json *json, const lapse_dataset *dataset)
{
    static const char *const types[] = {"action", "category", "number"};
    lapse_field field;
    cli_json_array(json, "fields");
    for (int i = 0; lapse_dataset_field(dataset, i, &field); i++) {
        cli_json_object(json, NULL);
        cli_json_text(json, "name", field.name);
        cli_json_text(json, "type", types[field.type]);
        if (field.type != LAPSE_FIELD_NUMBER)
            cli_json_whole(json, "values", field.category_count);
        cli_json_end(json, '}');
    }
    cli_json_end(json, ']');
}

static void print_report(FILE *file, const import_settings *s, const lapse_import_report *report,
                         const lapse_dataset *dataset, double seconds)
{
    const lapse_import_options *import = &s->columns.import;
    span all = dataset_span(dataset);
    fprintf(file, "read       %s, %s from ", cli_plural(report->rows, "row", "rows").text,
            cli_bytes((double)report->bytes).text);
    cli_text_print(file, s->store ? s->store : strcmp(import->input, "-") == 0 ? "standard input" : import->input);
    fputc('\n', file);
    cli_columns_print(file, report);
    if (report->bad_rows > 0)
        print_bad_rows(file, report);
    if (report->inactive_rows > 0)
        fprintf(file, "dropped    %s of %s with fewer than %lld events, before sessions\n",
                cli_plural(report->inactive_rows, "row", "rows").text,
                cli_plural(report->inactive_sequences, "sequence", "sequences").text,
                (long long)import->min_sequence_events);
    if (report->unpopular_rows > 0)
        fprintf(file, "dropped    %s of %s in fewer than %lld sequences\n",
                cli_plural(report->unpopular_rows, "row", "rows").text,
                cli_plural(report->unpopular_event_types, "event type", "event types").text,
                (long long)import->min_users);
    if (report->cut_sequences > 0)
        fprintf(file, "sessions   %s split at gaps longer than %s, %s sessions in total\n",
                cli_plural(report->cut_sequences, "sequence", "sequences").text, cli_duration(import->session_gap).text,
                cli_count(report->sessions).text);
    if (report->duplicate_rows > 0)
        fprintf(file, "dropped    %s with the same %s\n", cli_plural(report->duplicate_rows, "row", "rows").text,
                strcmp(import->deduplicate, "exact") == 0 ? "sequence, time and event as another"
                                                          : "event as the previous row");
    if (report->rare_rows > 0)
        fprintf(file, "dropped    %s of %s with fewer than %lld occurrences\n",
                cli_plural(report->rare_rows, "row", "rows").text,
                cli_plural(report->rare_event_types, "event type", "event types").text, (long long)import->min_count);
    if (report->short_rows > 0)
        fprintf(file, "dropped    %s of %s with fewer than %lld events\n",
                cli_plural(report->short_rows, "row", "rows").text,
                cli_plural(report->short_sequences, "sequence", "sequences").text, (long long)import->min_events);
    if (report->rounds > 1)
        fprintf(file, "filtered   by both minimums in %s, until no row was dropped\n",
                cli_plural(report->rounds, "round", "rounds").text);
    if (report->moved_rows > 0)
        fprintf(file, "sorted     %s out of time order\n", cli_plural(report->moved_rows, "row", "rows").text);
    fprintf(file, "events     %s in %s, %s\n", cli_plural(lapse_dataset_event_count(dataset), "event", "events").text,
            cli_plural(lapse_dataset_sequence_count(dataset), "sequence", "sequences").text,
            cli_plural(lapse_dataset_event_type_count(dataset), "event type", "event types").text);
    print_fields(file, dataset);
    if (strcmp(report->time_unit, "relative numbers") == 0)
        fprintf(file, "span       %g to %g, since a start of their own; --time-unit s if they are unix times\n",
                all.first, all.last);
    else
        fprintf(file, "span       %s to %s, %s\n", cli_timestamp(all.first).text, cli_timestamp(all.last).text,
                cli_duration(all.last - all.first).text);
    fputs("wrote      ", file);
    cli_text_print(file, s->output);
    fprintf(file, " in %s, %.0f MB/s\n", cli_seconds(seconds).text, (double)report->bytes / 1e6 / seconds);
}

static void print_json(const import_settings *s, const lapse_import_report *report, const lapse_dataset *dataset,
                       double seconds)
{
    cli_json json = {.file = stdout};
    span all = dataset_span(dataset);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "input", s->store ? s->store : s->columns.import.input);
    cli_json_text(&json, "output", s->output);
    cli_columns_json(&json, report);
    cli_json_whole(&json, "bytes", report->bytes);
    cli_json_whole(&json, "rows", report->rows);
    cli_json_whole(&json, "bad_rows", report->bad_rows);
    if (report->bad_rows > 0) {
        cli_json_object(&json, "first_bad_row");
        cli_json_text(&json, "file", report->first_bad_row.file);
        cli_json_whole(&json, "line", report->first_bad_row.line);
        cli_json_whole(&json, "column", report->first_bad_row.column);
        cli_json_text(&json, "message", report->first_bad_row.message);
        cli_json_end(&json, '}');
    }
    cli_json_whole(&json, "cut_sequences", report->cut_sequences);
    cli_json_whole(&json, "sessions", report->sessions);
    cli_json_whole(&json, "duplicate_rows", report->duplicate_rows);
    cli_json_whole(&json, "inactive_rows", report->inactive_rows);
    cli_json_whole(&json, "inactive_sequences", report->inactive_sequences);
    cli_json_whole(&json, "unpopular_rows", report->unpopular_rows);
    cli_json_whole(&json, "unpopular_event_types", report->unpopular_event_types);
    cli_json_whole(&json, "rare_rows", report->rare_rows);
    cli_json_whole(&json, "rare_event_types", report->rare_event_types);
    cli_json_whole(&json, "short_rows", report->short_rows);
    cli_json_whole(&json, "short_sequences", report->short_sequences);
    cli_json_whole(&json, "rounds", report->rounds);
    cli_json_whole(&json, "moved_rows", report->moved_rows);
    cli_json_whole(&json, "events", lapse_dataset_event_count(dataset));
    cli_json_whole(&json, "sequences", lapse_dataset_sequence_count(dataset));
    cli_json_whole(&json, "event_types", lapse_dataset_event_type_count(dataset));
    json_fields(&json, dataset);
    cli_json_number(&json, "first_time", all.first, 15);
    cli_json_number(&json, "last_time", all.last, 15);
    cli_json_number(&json, "seconds", seconds, 4);
    cli_json_end(&json, '}');
}

/* "2G", "500M" or a number of bytes; 0: malformed. */
static int64_t bytes_of(const char *text)
{
    char *end;
    double number = strtod(text, &end);
    double unit = *end == 'G' ? 1e9 : *end == 'M' ? 1e6 : *end == 'K' ? 1e3 : 1;
    end += unit > 1;
    return end > text && (!*end || strcmp(end, "B") == 0) && number > 0 && number * unit < 1e18
               ? (int64_t)(number * unit)
               : 0;
}

/* --memory: the temporary file is beside the dataset, where there is room for as much. */
static int bound_memory(const import_settings *s, const cli_call *call)
{
    lapse_error error;
    char folder[4096];
    int64_t bytes = bytes_of(s->memory);
    snprintf(folder, sizeof folder, "%s", s->output);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    if (bytes == 0)
        return cli_usage(call->verb, "--memory is '%s'; it must be a number of bytes such as 500M or 2G", s->memory);
    if (lapse_memory_bound_begin(slash ? folder : ".", bytes, &error) != LAPSE_OK)
        return cli_error(&error);
    return CLI_DONE;
}

/* The events of a store become a temporary file, which is the input. */
static int export_store(import_settings *s, char path[64])
{
#ifdef LAPSE_SERVER
    char message[512];
    snprintf(path, 64, "%.40s/lapse-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int handle = mkstemp(path);
    FILE *file = handle >= 0 ? fdopen(handle, "wb") : NULL;
    if (!file)
        return cli_fail("cannot write the temporary file %s", path);
    bool good = srv_export(s->store, file, message);
    if (fclose(file) != 0 && good) {
        snprintf(message, sizeof message, "cannot write the temporary file %s", path);
        good = false;
    }
    lapse_import_options *import = &s->columns.import;
    import->input = path;
    import->sequence = "history";
    import->time = "time";
    import->time_unit = "s";
    import->event = "event";
    return good ? CLI_DONE : cli_fail("--store %s: %s", s->store, message);
#else
    (void)s;
    (void)path;
    return cli_fail("this lapse was built without the server");
#endif
}

static int read_and_write(void *settings, const cli_call *call)
{
    import_settings *s = settings;
    lapse_dataset *dataset = NULL;
    lapse_import_report report = {0};
    lapse_error error;
    double start = cli_clock();
    (void)call;
    cli_columns_finish(&s->columns);
    lapse_status status = lapse_dataset_read(&s->columns.import, &dataset, &report, &error);
    if (status == LAPSE_OK)
        status = lapse_dataset_save(dataset, s->output, &error);
    if (status != LAPSE_OK) {
        lapse_dataset_close(dataset);
        int result = cli_error(&error);
        cli_question_print(&report);
        return result;
    }
    double seconds = cli_clock() - start;
    if (s->json)
        print_json(s, &report, dataset, seconds);
    else
        print_report(strcmp(s->output, "-") == 0 ? stderr : stdout, s, &report, dataset, seconds);
    lapse_dataset_close(dataset);
    return CLI_DONE;
}

static int run(void *settings, const cli_call *call)
{
    import_settings *s = settings;
    char path[64] = "";
    if (!s->store == !s->columns.import.input)
        return cli_usage(call->verb, "give a file of events, or --store with the store of lapse serve");
    int result = s->store ? export_store(s, path) : CLI_DONE;
    if (result == CLI_DONE && s->memory)
        result = bound_memory(s, call);
    if (result == CLI_DONE) {
        result = read_and_write(settings, call);
        if (s->memory)
            lapse_memory_bound_end();
    }
    if (path[0])
        remove(path);
    return result;
}

static void defaults(void *settings)
{
    import_settings *s = settings;
    cli_columns_default(&s->columns);
}

static const cli_argument arguments[] = {
    {"INPUT", offsetof(import_settings, columns.import.input),
     "CSV, TSV or JSON file, plain or gzip, one event per row; - is standard input", true, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .type = CLI_TEXT, .offset = offsetof(import_settings, output),
     .placeholder = "DATASET", .help = "dataset file to write", .file = CLI_OUTPUT_FILE, .required = true},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(import_settings, columns.import.threads),
     .placeholder = "N", .help = "CPU threads", .unset = "all cores"},
    {.name = "memory", .type = CLI_TEXT, .offset = offsetof(import_settings, memory), .placeholder = "SIZE",
     .help = "memory at most, such as 2G: the rest is in a temporary file beside the dataset", .unset = "as much as it needs"},
    {.name = "store", .type = CLI_TEXT, .offset = offsetof(import_settings, store), .placeholder = "STORE",
     .help = "read the histories of lapse serve, which may run, instead of INPUT: FILE.db or postgresql://...", .unset = "none"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(import_settings, json), .help = "JSON output: one object"},
    {0},
};
/* clang-format on */

static const cli_text_options text = {.offset = offsetof(import_settings, columns), .all = true};

static const char *const examples[] = {
    "lapse import events.csv -o events.lapse --sequence user --time time --event action,item",
    "lapse import shop.csv -o shop.lapse --event item --action action --field device --number price",
    "lapse import log.jsonl -o log.lapse --sequence user.id --timezone Europe/Berlin",
    "zcat big.tsv.gz | lapse import - -o big.lapse --min-events 5 --bad-rows skip",
    "lapse import clicks.csv -o clicks.lapse --session-gap 30m --deduplicate consecutive --min-events 2",
    "lapse import --store shop.db -o next.lapse --min-events 2",
    "lapse import films.csv -o films.lapse --min-count 5 --min-events 5 --min-rounds iterated",
    NULL,
};

const cli_verb cli_verb_import = {
    .name = "import",
    .summary = "read events from CSV or JSON into a dataset file",
    .description =
        "Reads events (sequence, timestamp, event type) from CSV, TSV or JSON, one event per row. Columns that are not "
        "given are "
        "found by the values of the first rows and their names, and printed; where that is not certain, it prints a "
        "command to "
        "paste. Sorts events by sequence and time, optionally splits sequences into sessions and drops duplicates, "
        "filters rare "
        "event types and short sequences, and writes a dataset file. The output file is replaced atomically.",
    .examples = examples,
    .note_title = CLI_COLUMN_NOTES,
    .note = cli_columns_note,
    .arguments = arguments,
    .options = options,
    .text = &text,
    .size = sizeof(import_settings),
    .defaults = defaults,
    .run = run,
};
