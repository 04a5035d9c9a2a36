/* column_options.c: see column_options.h. */
#include "column_options.h"

#include <string.h>

#include "console.h"

static const char *const roles[] = {"sequence", "time", "event"};

const char *const *cli_time_unit_names(void)
{
    static const char *const names[] = {"auto", "s", "ms", "us", "ns", "iso", "mdy", "dmy", NULL};
    return names;
}

const char *const *cli_bad_rows_names(void)
{
    static const char *const names[] = {"stop", "skip", NULL};
    return names;
}

void cli_columns_default(cli_columns *columns)
{
    lapse_import_options_default(&columns->import);
    columns->bad_rows = columns->import.skip_bad_rows ? "skip" : "stop";
}

void cli_columns_finish(cli_columns *columns)
{
    const char *delimiter = columns->import.delimiter;
    /* A shell passes '\t' as two characters. */
    if (delimiter && (strcmp(delimiter, "tab") == 0 || strcmp(delimiter, "\\t") == 0))
        columns->import.delimiter = "\t";
    columns->import.skip_bad_rows = strcmp(columns->bad_rows, "skip") == 0;
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
