/* verb_eval.c: `lapse eval`: scores of a model on a split that it remembers. */
#include <limits.h>
#include <stdlib.h>

#include "rank_table.h"
#include "score_table.h"
#include "verb.h"

enum { MOST_CUTOFFS = 32 };

typedef struct eval_settings {
    const char *model, *data;
    lapse_evaluate_options evaluate;
    lapse_rank_options rank; /* split, bootstrap, threads and device are those of evaluate */
    const char *cutoffs;     /* as written: "5,10" */
    bool classes, json;
} eval_settings;

/* What was evaluated: ranks or the scores of targets. */
static void print_json(const eval_settings *s, const cli_targets *targets, const lapse_rank_scores *ranks)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", s->model);
    cli_json_text(&json, "data", s->data);
    if (ranks)
        cli_ranks_json(&json, ranks);
    else
        cli_targets_json(&json, targets, s->classes);
    cli_json_end(&json, '}');
}

/* Whole numbers joined by commas; how many, or 0 where it is not that. */
static int parse_cutoffs(const char *text, int out[MOST_CUTOFFS])
{
    for (int count = 0; count < MOST_CUTOFFS;) {
        char *end;
        long value = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;
        if (value < 1 || value > INT_MAX)
            return 0;
        out[count++] = (int)value;
        if (!*end)
            return count;
        if (*end != ',')
            return 0;
        text = end + 1;
    }
    return 0;
}

static int evaluate_ranks(const eval_settings *s, const lapse_model *model, const lapse_dataset *dataset,
                          const cli_call *call)
{
    int cutoffs[MOST_CUTOFFS];
    lapse_rank_options options = s->rank;
    lapse_rank_scores scores;
    lapse_error error;
    options.cutoff_count = parse_cutoffs(s->cutoffs, cutoffs);
    if (options.cutoff_count == 0)
        return cli_usage(call->verb, "--cutoffs takes up to %d whole numbers joined by commas, such as 5,10, not '%s'",
                         MOST_CUTOFFS, s->cutoffs);
    options.cutoffs = cutoffs;
    options.split = s->evaluate.split;
    options.bootstrap = s->evaluate.bootstrap;
    options.threads = s->evaluate.threads;
    options.device = s->evaluate.device;
    if (lapse_rank_evaluate(model, dataset, &options, &scores, &error) != LAPSE_OK)
        return cli_error(&error);
    bool whole = true;
    if (s->json)
        print_json(s, NULL, &scores);
    else
        whole = cli_ranks_print(stdout, &scores);
    lapse_rank_scores_clear(&scores);
    return whole ? CLI_DONE : cli_fail("out of memory");
}

static int evaluate_targets(const eval_settings *s, const lapse_model *model, const lapse_dataset *dataset)
{
    cli_targets targets = {0};
    lapse_error error;
    if (cli_targets_evaluate(&targets, model, dataset, &s->evaluate, &error) != LAPSE_OK)
        return cli_error(&error);
    bool whole = true;
    if (s->json)
        print_json(s, &targets, NULL);
    else
        whole = cli_targets_print(stdout, &targets, s->classes);
    cli_targets_clear(&targets);
    return whole ? CLI_DONE : cli_fail("out of memory");
}

static int run(void *settings, const cli_call *call)
{
    const eval_settings *s = settings;
    lapse_model *model = NULL;
    lapse_dataset *dataset = NULL;
    lapse_error error;
    int result;
    lapse_status status = lapse_model_load(s->model, &model, &error);
    if (status == LAPSE_OK)
        status = lapse_dataset_open(s->data, &dataset, &error);
    if (status != LAPSE_OK)
        result = cli_error(&error);
    else if (cli_is_recommender(model))
        result = evaluate_ranks(s, model, dataset, call);
    else
        result = evaluate_targets(s, model, dataset);
    lapse_dataset_close(dataset);
    lapse_model_free(model);
    return result;
}

static void defaults(void *settings)
{
    eval_settings *s = settings;
    lapse_evaluate_options_default(&s->evaluate);
    lapse_rank_options_default(&s->rank);
    s->cutoffs = "5,10";
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
    {.name = "split", .type = CLI_CHOICE, .offset = offsetof(eval_settings, evaluate.split), .placeholder = "SPLIT",
     .help = "which events are scored", .choices = split_names},
    {.name = "classes", .type = CLI_FLAG, .offset = offsetof(eval_settings, classes),
     .help = "add a table with precision, recall and F1 of every event type"},
    {.name = "cutoffs", .type = CLI_TEXT, .offset = offsetof(eval_settings, cutoffs), .placeholder = "K,K",
     .help = "recommend: the places of Hit@K and NDCG@K"},
    {.name = "negatives", .type = CLI_WHOLE, .offset = offsetof(eval_settings, rank.negatives), .placeholder = "N",
     .help = "recommend: items drawn to rank against, uniformly and by popularity; 0 ranks in the whole catalogue only"},
    {.name = "negative-seed", .type = CLI_SEED, .offset = offsetof(eval_settings, rank.negative_seed),
     .placeholder = "N", .help = "recommend: sets which items and events are drawn"},
    {.name = "cases", .type = CLI_COUNT, .offset = offsetof(eval_settings, rank.cases), .placeholder = "N",
     .help = "recommend: ranks so many events at most, drawn by the seed", .unset = "all"},
    {.name = "slices", .type = CLI_FLAG, .offset = offsetof(eval_settings, rank.slices),
     .help = "recommend: add tables by history length, popularity of the item and lag"},
    {.name = "bootstrap", .type = CLI_WHOLE, .offset = offsetof(eval_settings, evaluate.bootstrap), .placeholder = "N",
     .help = "resamples of the sequences for the intervals; 0 leaves them out"},
    {.name = "device", .type = CLI_CHOICE, .offset = offsetof(eval_settings, evaluate.device), .placeholder = "DEVICE",
     .help = "what computes: the CPU, an NVIDIA GPU, or a GPU where there is one", .choices = lapse_device_names},
    {.name = "threads", .type = CLI_WHOLE, .offset = offsetof(eval_settings, evaluate.threads), .placeholder = "N",
     .help = "threads to use; never changes the result", .unset = "all cores"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(eval_settings, json), .help = "print one JSON object"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {
    "lapse eval model.safetensors events.lapse --split test --classes",
    "lapse eval recommender.safetensors events.lapse --cutoffs 1,5,10,20 --slices",
    NULL,
};

const cli_verb cli_verb_eval = {
    .name = "eval",
    .summary = "score a model on a dataset",
    .description =
        "Scores a model on every event but each sequence's first. The model remembers how its training data was "
        "split, so the test split holds nothing it has learned from. A model of the task 'recommend' is scored by the "
        "rank of the right item: in the whole catalogue, with and without items seen before, and among items drawn "
        "uniformly and by popularity.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(eval_settings),
    .defaults = defaults,
    .run = run,
};
