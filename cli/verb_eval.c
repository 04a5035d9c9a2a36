/* verb_eval.c: `lapse eval`: scores of a model on a split that it remembers. */
#include "score_table.h"
#include "verb.h"

typedef struct eval_settings {
    const char *model, *data;
    lapse_evaluate_options evaluate;
    bool classes, json;
} eval_settings;

static void print_json(const eval_settings *s, const cli_targets *targets)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", s->model);
    cli_json_text(&json, "data", s->data);
    cli_targets_json(&json, targets, s->classes);
    cli_json_end(&json, '}');
}

static int run(void *settings, const cli_call *call)
{
    const eval_settings *s = settings;
    lapse_model *model = NULL;
    lapse_dataset *dataset = NULL;
    cli_targets targets = {0};
    lapse_error error;
    int result = CLI_DONE;
    (void)call;
    lapse_status status = lapse_model_load(s->model, &model, &error);
    if (status == LAPSE_OK)
        status = lapse_dataset_open(s->data, &dataset, &error);
    if (status == LAPSE_OK)
        status = cli_targets_evaluate(&targets, model, dataset, &s->evaluate, &error);
    if (status != LAPSE_OK) {
        result = cli_error(&error);
    } else {
        if (s->json)
            print_json(s, &targets);
        else if (!cli_targets_print(stdout, &targets, s->classes))
            result = cli_fail("out of memory");
        cli_targets_clear(&targets);
    }
    lapse_dataset_close(dataset);
    lapse_model_free(model);
    return result;
}

static void defaults(void *settings)
{
    eval_settings *s = settings;
    lapse_evaluate_options_default(&s->evaluate);
}

static const char *const *split_names(void)
{
    static const char *const names[] = {"test", "valid", "train", "all", NULL};
    return names;
}

static const cli_argument arguments[] = {
    {"MODEL", offsetof(eval_settings, model), "a model made by `lapse train`", false},
    {"DATA", offsetof(eval_settings, data), "the dataset to score it on", false},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "split", .kind = CLI_CHOICE, .offset = offsetof(eval_settings, evaluate.split), .placeholder = "SPLIT",
     .help = "which events are scored", .choices = split_names},
    {.name = "classes", .kind = CLI_FLAG, .offset = offsetof(eval_settings, classes),
     .help = "add a table with precision, recall and F1 of every kind"},
    {.name = "bootstrap", .kind = CLI_WHOLE, .offset = offsetof(eval_settings, evaluate.bootstrap), .placeholder = "N",
     .help = "resamples of the sequences for the intervals; 0 leaves them out"},
    {.name = "threads", .kind = CLI_WHOLE, .offset = offsetof(eval_settings, evaluate.threads), .placeholder = "N",
     .help = "threads to use; never changes the result", .unset = "all cores"},
    {.name = "json", .kind = CLI_FLAG, .offset = offsetof(eval_settings, json), .help = "print one JSON object"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse eval model.safetensors events.lapse --split test --classes", NULL};

const cli_verb cli_verb_eval = {
    .name = "eval",
    .summary = "score a model on a dataset",
    .description =
        "Scores a model on every event but each sequence's first. The model remembers how its training data was "
        "split, so the test split holds nothing it has learned from.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(eval_settings),
    .defaults = defaults,
    .run = run,
};
