/* verb_inspect.c: `lapse inspect`: a report on a model as one HTML page, and its figures as SVG. */
#include <stdlib.h>
#include <string.h>

#include "csv_cell.h"
#include "events.h"
#include "verb.h"
#include "lapse_lab.h"

typedef struct inspect_settings {
    const char *model, *data, *output;
    cli_columns columns;
    cli_list sequences;
    int block; /* from 1; 0: the last */
    lapse_inspect_options options;
} inspect_settings;

static void print_output(const char *path)
{
    if (strcmp(path, "-") == 0)
        return;
    fputs("wrote      ", stdout);
    cli_text_print(stdout, path);
    fputc('\n', stdout);
}

static int inspect(const inspect_settings *s, const lapse_model *model, const lapse_dataset *dataset)
{
    lapse_inspect_options options = s->options;
    lapse_inspection made;
    lapse_error error;
    options.title = s->model;
    options.block = s->block - 1;
    options.sequences = s->sequences.items;
    options.sequence_count = s->sequences.count;
    if (lapse_inspect(model, dataset, &options, s->output, &made, &error) != LAPSE_OK)
        return cli_error(&error);
    if (s->output && strcmp(s->output, "-") == 0)
        return CLI_DONE;
    printf("figures    %d", made.figures);
    if (made.missing > 0)
        printf("; %d not possible with this model and data, which the report explains", made.missing);
    fputc('\n', stdout);
    if (options.figures)
        print_output(options.figures);
    if (s->output)
        print_output(s->output);
    return CLI_DONE;
}

static int run(void *settings, const cli_call *call)
{
    inspect_settings *s = settings;
    lapse_model *model = NULL;
    lapse_dataset *dataset = NULL;
    lapse_error error;
    int result = CLI_DONE;
    if (!s->output && !s->options.figures)
        return cli_usage(call->verb, "set -o FILE for the report, --figures DIR for its figures, or both");
    if (lapse_model_load(s->model, &model, &error) != LAPSE_OK)
        return cli_error(&error);
    s->columns.import.threads = s->options.threads;
    int blocks = lapse_model_attention_blocks(model);
    if (s->block > blocks && blocks > 0)
        result = cli_usage(call->verb, "--block takes 1 to %d for this model, not %d", blocks, s->block);
    if (s->data && result == CLI_DONE)
        result = cli_events_open(s->data, &s->columns, model, &dataset);
    if (result == CLI_DONE)
        result = inspect(s, model, dataset);
    lapse_dataset_close(dataset);
    lapse_model_free(model);
    return result;
}

static void defaults(void *settings)
{
    inspect_settings *s = settings;
    cli_columns_default(&s->columns);
    lapse_inspect_options_default(&s->options);
}

static const char *const *split_names(void)
{
    static const char *const names[] = {"test", "valid", "train", "all", NULL};
    return names;
}

static const cli_argument arguments[] = {
    {"MODEL", offsetof(inspect_settings, model), "model file from `lapse train`", false, CLI_INPUT_FILE},
    {"DATA", offsetof(inspect_settings, data),
     CLI_EVENTS_HELP ". Without it the report shows what the model alone can tell", true, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .type = CLI_TEXT, .offset = offsetof(inspect_settings, output), .placeholder = "FILE",
     .file = CLI_OUTPUT_FILE, .help = "report as one HTML page; - is standard output", .unset = "none"},
    {.name = "csv-safe", .type = CLI_FLAG, .offset = offsetof(inspect_settings, options.csv_safe), .help = CLI_CSV_SAFE_HELP},
    {.name = "figures", .type = CLI_TEXT, .offset = offsetof(inspect_settings, options.figures), .placeholder = "DIR",
     .help = "folder for each figure as SVG, created if it is missing", .unset = "none"},
    {.name = "log", .type = CLI_TEXT, .offset = offsetof(inspect_settings, options.log), .placeholder = "FILE",
     .file = CLI_INPUT_FILE, .help = "log file of the training run (`lapse train --log`): curves by seconds instead of epochs",
     .unset = "none"},
    {.name = "split", .type = CLI_CHOICE, .offset = offsetof(inspect_settings, options.split), .placeholder = "SPLIT",
     .help = "split whose events are shown", .choices = split_names,
     .unset = "test; all of other data than that of the training"},
    {.name = "cases", .type = CLI_COUNT, .offset = offsetof(inspect_settings, options.cases), .placeholder = "N",
     .help = "number of target events, in a sample of whole sequences, if there are more"},
    {.name = "of-action", .type = CLI_TEXT, .offset = offsetof(inspect_settings, options.action), .placeholder = "NAME",
     .help = "attention to events with this action only, such as view", .unset = "all actions"},
    {.name = "block", .type = CLI_WHOLE, .offset = offsetof(inspect_settings, block), .placeholder = "N",
     .help = "attention block whose weights are shown, from 1", .unset = "the last"},
    {.name = "case", .type = CLI_LIST, .offset = offsetof(inspect_settings, sequences), .placeholder = "SEQUENCE",
     .help = "sequence for a case study; repeatable"},
    {.name = "case-studies", .type = CLI_WHOLE, .offset = offsetof(inspect_settings, options.case_studies),
     .placeholder = "N", .help = "number of case studies without --case: histories whose predictions change most with time"},
    {.name = "bootstrap", .type = CLI_WHOLE, .offset = offsetof(inspect_settings, options.bootstrap), .placeholder = "N",
     .help = "bootstrap resamples of the sequences for the 95 % intervals of the scores; 0 disables them"},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(inspect_settings, options.threads), .placeholder = "N",
     .help = "CPU threads; does not change the result", .unset = "all cores"},
    {0},
};
/* clang-format on */

static const cli_text_options text = {.offset = offsetof(inspect_settings, columns), .model = true};

static const char *const examples[] = {
    "lapse inspect model.safetensors events.lapse -o report.html",
    "lapse inspect model.safetensors events.lapse -o report.html --log run.jsonl --case u17",
    "lapse inspect model.safetensors --figures figures", NULL};

const cli_verb cli_verb_inspect = {
    .name = "inspect",
    .summary = "report on a model as an HTML page with figures",
    .description = "Writes a report on a model as one HTML page that needs no other file. It opens with whether the "
                   "model beats the baselines and what "
                   "the elapsed time is worth; then it shows what events change by the time since them, case studies "
                   "with a slider over time, where the "
                   "model fails, and the training. The time encoding and attention are folded. Figures have their "
                   "numbers as CSV. What a model or its "
                   "data cannot show is listed with the reason. docs/inspect.md describes the figures.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .text = &text,
    .size = sizeof(inspect_settings),
    .defaults = defaults,
    .run = run,
};
