/* column_options.c: see column_options.h. */
#include "column_options.h"

#include <string.h>

#include "console.h"
#include "lapse_lab.h"

static const char *const roles[] = {"sequence", "time", "event"};

static const char *const *time_unit_names(void)
{
    static const char *const names[] = {"auto", "s",    "ms",      "us",    "ns",       "iso", "mdy",
                                        "dmy",  "text", "compact", "excel", "relative", NULL};
    return names;
}

static const char *const *bad_rows_names(void)
{
    static const char *const names[] = {"stop", "skip", NULL};
    return names;
}

#define AT(member) .offset = offsetof(cli_columns, member), .group = "Text input"

/* clang-format off */
static const cli_option rows[] = {
    {.name = "sequence", .type = CLI_TEXT, AT(import.sequence), .placeholder = "COLUMN",
     .help = "sequence (user, session) column: name, or number from 1", .unset = "found by values and name"},
    {.name = "time", .type = CLI_TEXT, AT(import.time), .placeholder = "COLUMN",
     .help = "timestamp column", .unset = "found by values and name"},
    {.name = "event", .type = CLI_TEXT, AT(import.event), .placeholder = "COLUMN[,...]",
     .help = "event type (item) column; several are joined into one name", .unset = "found by values and name"},
    {.name = "action", .type = CLI_TEXT, AT(import.action), .placeholder = "COLUMN",
     .help = "action column (view, search, purchase): a categorical field that can also be a prediction target",
     .unset = "none", .advanced = true},
    {.name = "field", .type = CLI_LIST, AT(categories), .placeholder = "COLUMN",
     .help = "categorical field column, an input feature of past events; repeatable", .advanced = true},
    {.name = "number", .type = CLI_LIST, AT(numbers), .placeholder = "COLUMN",
     .help = "numeric field column, an input feature of past events; empty, NaN, NA or null if missing; "
     "repeatable", .advanced = true},
    {.name = "split-column", .type = CLI_TEXT, AT(import.split), .placeholder = "COLUMN",
     .help = "split column, with the values train, valid and test", .unset = "none", .advanced = true},
    {.name = "time-unit", .type = CLI_CHOICE, AT(import.time_unit), .placeholder = "UNIT",
     .help = "timestamp format: s, ms, us and ns are Unix time, iso is ISO 8601, mdy and dmy are dates such as 11/15/2026 and "
     "15/11/2026, text is 15 Nov 2026, compact is 20261115, excel is day numbers of spreadsheets, relative is numbers since "
     "a start of their own, auto detects it", .choices = time_unit_names, .advanced = true},
    {.name = "timezone", .type = CLI_TEXT, AT(import.timezone), .placeholder = "ZONE",
     .help = "time zone of timestamps without one: a name such as Europe/Berlin, or an offset such as +02:00",
     .unset = "UTC", .advanced = true},
    {.name = "delimiter", .type = CLI_TEXT, AT(import.delimiter), .placeholder = "CHARACTER",
     .help = "field delimiter of CSV; \"tab\" is a tab", .unset = "detected in the first line", .advanced = true},
    {.name = "text-encoding", .type = CLI_TEXT, AT(import.encoding), .placeholder = "NAME",
     .help = "encoding: utf-8, utf-16le, utf-16be, windows-1250, windows-1251, windows-1252 or latin-1; also --encoding, except where that is "
     "the time encoding", .unset = "found", .advanced = true},
    {.name = "basket", .type = CLI_FLAG, AT(import.basket),
     .help = "events of one sequence and time have no order, like the items of an order: shuffle them", .advanced = true},
    {.name = "no-header", .type = CLI_UNFLAG, AT(import.header),
     .help = "no header: the first line is data, and columns are given by number", .advanced = true},
    {.name = "bad-rows", .type = CLI_CHOICE, AT(bad_rows), .placeholder = "ACTION",
     .help = "malformed rows: stop with an error, or skip them", .choices = bad_rows_names, .advanced = true},
    {.name = "session-gap", .type = CLI_DURATION, AT(import.session_gap), .placeholder = "DURATION",
     .help = "session gap: split a sequence between events further apart than this, such as 30m; the sessions are named "
     "SEQUENCE/1, SEQUENCE/2, ...", .unset = "no splitting", .advanced = true},
    {.name = "deduplicate", .type = CLI_CHOICE, AT(import.deduplicate), .placeholder = "RULE",
     .help = "deduplication: none, exact (same sequence, time and event as another row) or consecutive (same event as "
     "the previous row of the sequence)", .choices = lapse_deduplicate_names, .advanced = true},
    {.name = "min-sequence-events", .type = CLI_COUNT, AT(import.min_sequence_events), .placeholder = "N",
     .help = "minimum events per sequence of the source, before sessions are split; shorter sequences are dropped",
     .advanced = true},
    {.name = "min-users", .type = CLI_COUNT, AT(import.min_users), .placeholder = "N",
     .help = "minimum sequences of the source that have an event type; others are dropped, after "
     "--min-sequence-events is applied", .advanced = true},
    {.name = "min-events", .type = CLI_COUNT, AT(import.min_events), .placeholder = "N",
     .help = "minimum events per sequence; shorter sequences are dropped", .advanced = true},
    {.name = "min-count", .type = CLI_COUNT, AT(import.min_count), .placeholder = "N",
     .help = "minimum occurrences per event type; rarer ones are dropped, before --min-events is applied",
     .advanced = true},
    {.name = "min-rounds", .type = CLI_CHOICE, AT(import.min_rounds), .placeholder = "RULE",
     .help = "application of --min-count and --min-events: once, or iterated until no row is dropped (k-core)",
     .choices = lapse_min_rounds_names, .advanced = true},
    {0},
};
/* clang-format on */

const cli_option *cli_column_options(void)
{
    return rows;
}

void cli_columns_default(cli_columns *columns)
{
    memset(columns, 0, sizeof *columns);
    lapse_import_options_default(&columns->import);
    columns->bad_rows = columns->import.skip_bad_rows ? "skip" : "stop";
}

void cli_columns_finish(cli_columns *columns)
{
    lapse_import_options *import = &columns->import;
    /* A shell passes '\t' as two characters. */
    if (import->delimiter && (strcmp(import->delimiter, "tab") == 0 || strcmp(import->delimiter, "\\t") == 0))
        import->delimiter = "\t";
    import->skip_bad_rows = strcmp(columns->bad_rows, "skip") == 0;
    import->categories = columns->categories.items;
    import->category_count = columns->categories.count;
    import->numbers = columns->numbers.items;
    import->number_count = columns->numbers.count;
}

const char *cli_columns_given(const cli_columns *columns)
{
    cli_columns initial;
    char value[512], usual[512];
    cli_columns_default(&initial);
    for (const cli_option *row = rows; row->name; row++) {
        cli_option_show(row, columns, value, sizeof value);
        cli_option_show(row, &initial, usual, sizeof usual);
        if (strcmp(value, usual) != 0)
            return row->name;
    }
    return NULL;
}

static void print_choice(FILE *file, const char *role, const lapse_column_choice *choice)
{
    fprintf(file, "%-11s", role);
    cli_text_print(file, choice->column);
    if (!choice->given)
        fputs(", found by name", file);
    if (choice->runner_up[0]) {
        fputs("; runner-up: ", file);
        cli_text_print(file, choice->runner_up);
    }
}

static void print_text(FILE *file, const lapse_import_report *report)
{
    if (report->encoding && strcmp(report->encoding, "utf-8") != 0)
        fprintf(file, "encoding   %s\n", report->encoding);
    if (report->skipped_lines > 0)
        fprintf(file, "skipped    %s before the header\n", cli_plural(report->skipped_lines, "line", "lines").text);
    if (report->summary_rows > 0)
        fprintf(file, "skipped    %s at the end, without a time and a name\n",
                cli_plural(report->summary_rows, "row", "rows").text);
}

static void print_zone(FILE *file, const lapse_import_report *report)
{
    fprintf(file, "zone       %s without a zone, read as ",
            cli_plural(report->local_rows, "timestamp", "timestamps").text);
    cli_text_print(file, report->timezone);
    fputc('\n', file);
    if (report->ambiguous_rows > 0)
        fprintf(file, "zone       %s in the hour that occurs twice when clocks are set back, read as the earlier one\n",
                cli_plural(report->ambiguous_rows, "timestamp", "timestamps").text);
    if (report->missing_rows > 0)
        fprintf(file, "zone       %s in the hour that is skipped when clocks are set forward, shifted forward\n",
                cli_plural(report->missing_rows, "timestamp", "timestamps").text);
}

void cli_columns_print(FILE *file, const lapse_import_report *report)
{
    for (int role = 0; role < 3; role++) {
        print_choice(file, roles[role], &report->columns[role]);
        if (role == LAPSE_COLUMN_TIME)
            fprintf(file, "; %s", report->time_unit);
        fputc('\n', file);
    }
    print_text(file, report);
    if (report->local_rows > 0)
        print_zone(file, report);
    if (report->ignored_count > 0) {
        fputs("ignored    ", file);
        cli_text_print(file, report->ignored);
        fputc('\n', file);
    }
}

void cli_columns_json(cli_json *json, const lapse_import_report *report)
{
    cli_json_text(json, "format", report->format);
    cli_json_object(json, "columns");
    for (int role = 0; role < 3; role++) {
        const lapse_column_choice *choice = &report->columns[role];
        cli_json_object(json, roles[role]);
        cli_json_text(json, "column", choice->column);
        cli_json_bool(json, "given", choice->given);
        if (choice->runner_up[0])
            cli_json_text(json, "runner_up", choice->runner_up);
        cli_json_end(json, '}');
    }
    cli_json_end(json, '}');
    cli_json_text(json, "ignored", report->ignored);
    cli_json_text(json, "time_unit", report->time_unit);
    cli_json_text(json, "timezone", report->timezone);
    if (report->encoding)
        cli_json_text(json, "encoding", report->encoding);
    cli_json_whole(json, "skipped_lines", report->skipped_lines);
    cli_json_whole(json, "summary_rows", report->summary_rows);
    cli_json_whole(json, "local_rows", report->local_rows);
    cli_json_whole(json, "ambiguous_rows", report->ambiguous_rows);
    cli_json_whole(json, "missing_rows", report->missing_rows);
}

const char *cli_columns_note(int index, char *text, size_t size)
{
    if (index > LAPSE_COLUMN_EVENT)
        return NULL;
    size_t used = 0;
    const char *name;
    text[0] = 0;
    for (int i = 0; (name = lapse_column_name((lapse_column_role)index, i)) && used + strlen(name) + 3 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", name);
    return roles[index];
}
