/* verb_check.c: `lapse check`: data-quality and leakage checks on a dataset and its train/validation/test split. */
#include <math.h>

#include "events.h"
#include "verb.h"
#include "lapse_lab.h"

typedef struct check_settings {
    const char *data, *now;
    cli_columns columns;
    lapse_check_options check;
    bool json;
} check_settings;

static void print_finding(FILE *file, const lapse_finding *finding)
{
    enum { INDENT = 9 };
    int width = cli_width(file);
    fprintf(file, "%-8s %-21s %s of ", lapse_severity_name(finding->severity), finding->name,
            cli_count(finding->count).text);
    fprintf(file, "%s %s", cli_count(finding->total).text, finding->unit);
    if (finding->count > 0)
        fprintf(file, " (%s)", cli_percent((double)finding->count / (double)finding->total, 2).text);
    fputc('\n', file);
    if (finding->count == 0)
        return;
    fprintf(file, "%*s", INDENT, "");
    cli_paragraph(file, finding->text, INDENT, INDENT, width);
    fprintf(file, "%*s", INDENT, "");
    cli_paragraph(file, finding->advice, INDENT, INDENT, width);
}

static void print_text(const check_settings *s, const lapse_dataset *dataset, const lapse_check *check)
{
    int found[3] = {0};
    fputs("data     ", stdout);
    cli_text_print(stdout, s->data);
    printf(": %s in %s, of %s\n", cli_plural(lapse_dataset_event_count(dataset), "event", "events").text,
           cli_plural(lapse_dataset_sequence_count(dataset), "sequence", "sequences").text,
           cli_plural(lapse_dataset_event_type_count(dataset), "event type", "event types").text);
    printf("split    by %s: %s train, ", check->split_by, cli_count(check->train_events).text);
    printf("%s valid, ", cli_count(check->valid_events).text);
    printf("%s test\n\n", cli_count(check->test_events).text);
    for (int i = 0; i < check->finding_count; i++) {
        print_finding(stdout, &check->findings[i]);
        found[check->findings[i].severity]++;
    }
    printf("\n%s", cli_plural(found[LAPSE_SEVERITY_WARNING], "warning", "warnings").text);
    printf(", %s\n", cli_plural(found[LAPSE_SEVERITY_NOTE], "note", "notes").text);
}

static void print_json(const check_settings *s, const lapse_check *check)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "data", s->data);
    cli_json_text(&json, "split_by", check->split_by);
    cli_json_seed(&json, "seed", check->seed);
    cli_json_number(&json, "now", check->now, 15);
    cli_json_whole(&json, "train_events", check->train_events);
    cli_json_whole(&json, "valid_events", check->valid_events);
    cli_json_whole(&json, "test_events", check->test_events);
    cli_json_array(&json, "findings");
    for (int i = 0; i < check->finding_count; i++) {
        const lapse_finding *finding = &check->findings[i];
        cli_json_object(&json, NULL);
        cli_json_text(&json, "name", finding->name);
        cli_json_text(&json, "severity", lapse_severity_name(finding->severity));
        cli_json_whole(&json, "count", finding->count);
        cli_json_whole(&json, "total", finding->total);
        cli_json_number(&json, "fraction", finding->total > 0 ? (double)finding->count / (double)finding->total : 0, 6);
        cli_json_text(&json, "unit", finding->unit);
        cli_json_text(&json, "text", finding->text);
        cli_json_text(&json, "advice", finding->advice);
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
}

static int run(void *settings, const cli_call *call)
{
    check_settings *s = settings;
    lapse_dataset *dataset = NULL;
    lapse_check check;
    lapse_error error;
    if (s->now && lapse_time_parse(s->now, &s->check.now, &error) != LAPSE_OK)
        return cli_usage(call->verb, "--now: %s", error.message);
    s->columns.table = !s->json;
    int result = cli_events_open(s->data, &s->columns, NULL, &dataset);
    if (result != CLI_DONE)
        return result;
    if (lapse_dataset_check(dataset, &s->check, &check, &error) != LAPSE_OK)
        result = cli_error(&error);
    else if (s->json)
        print_json(s, &check);
    else
        print_text(s, dataset, &check);
    lapse_dataset_close(dataset);
    return result;
}

static void defaults(void *settings)
{
    check_settings *s = settings;
    cli_columns_default(&s->columns);
    lapse_check_options_default(&s->check);
}

static const cli_argument arguments[] = {
    {"DATA", offsetof(check_settings, data), CLI_EVENTS_HELP, false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "task", .type = CLI_CHOICE, .offset = offsetof(check_settings, check.task), .placeholder = "TASK",
     .help = "task, which determines the default split", .choices = lapse_task_names},
    {.name = "split-by", .type = CLI_CHOICE, .offset = offsetof(check_settings, check.split_by), .placeholder = "RULE",
     .help = "split of events into train, valid and test, as in `lapse train`", .choices = lapse_split_by_names,
     .unset = "column if the dataset has one, otherwise by the task"},
    {.name = "seed", .type = CLI_SEED, .offset = offsetof(check_settings, check.seed), .placeholder = "N",
     .help = "random seed of the split by sequence, as in `lapse train`"},
    {.name = "now", .type = CLI_TEXT, .offset = offsetof(check_settings, now), .placeholder = "TIME",
     .help = "current time, Unix seconds or ISO 8601; later events are future-dated",
     .unset = "now"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(check_settings, json), .help = "JSON output: one object"},
    {0},
};
/* clang-format on */

static const cli_text_options text = {.offset = offsetof(check_settings, columns)};

static const char *const examples[] = {
    "lapse check events.lapse",
    "lapse check events.csv --event item",
    "lapse check events.lapse --split-by leave-one-out --json",
    NULL,
};

const cli_verb cli_verb_check = {
    .name = "check",
    .summary = "check a dataset for data-quality problems and leakage",
    .description =
        "Checks a dataset and its train/validation/test split for data-quality problems and leakage: tied and future "
        "timestamps, duplicates, event types that occur only in the test split, sequences across splits, and targets "
        "that "
        "leak into the training data. Prints each finding with its frequency and advice. Changes nothing; findings do "
        "not "
        "change the exit status.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .text = &text,
    .size = sizeof(check_settings),
    .defaults = defaults,
    .run = run,
};
