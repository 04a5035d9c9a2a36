/* verb_eval.c: `lapse eval`: metrics of a model on a split of a dataset. The model file stores the split. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "answers.h"
#include "events.h"
#include "known.h"
#include "rank_table.h"
#include "return_table.h"
#include "ranks.h"
#include "score_table.h"
#include "time_table.h"
#include "times.h"
#include "verb.h"

enum { MAX_CUTOFFS = 32 };

typedef struct eval_settings {
    const char *model, *data;
    cli_columns columns;
    lapse_evaluate_options evaluate;
    lapse_rank_options rank; /* split, bootstrap, threads and device come from `evaluate` */
    const char *cutoffs;     /* as typed: "5,10" */
    const char *within, *now;
    lapse_return_options returns; /* split, bootstrap and threads come from `evaluate` */
    bool classes, json, shard_items;
} eval_settings;

/* Prints the ranking metrics or, if they are NULL, the scores of the targets, then those of the time where the model predicts it;
 * false if out of memory. */
static bool print_json(const eval_settings *s, const cli_targets *targets, const lapse_rank_scores *ranks,
                       const lapse_time_scores *times)
{
    cli_json json = {.file = stdout};
    bool whole = true;
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", s->model);
    cli_json_text(&json, "data", s->data);
    if (ranks)
        cli_ranks_json(&json, ranks);
    else
        whole = cli_targets_json(&json, targets, s->classes);
    if (times->count)
        cli_times_json(&json, times);
    cli_json_end(&json, '}');
    return whole;
}

/* Parses positive integers separated by commas. Returns their number, or 0 if the text is invalid. */
static int parse_cutoffs(const char *text, int out[MAX_CUTOFFS])
{
    for (int count = 0; count < MAX_CUTOFFS;) {
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

static bool print_times(const lapse_time_scores *times)
{
    if (!times->count)
        return true;
    putchar('\n');
    return cli_times_print(stdout, times);
}

static int evaluate_ranks(const eval_settings *s, const lapse_model *model, const lapse_dataset *dataset,
                          const lapse_time_scores *times, const cli_call *call)
{
    int cutoffs[MAX_CUTOFFS];
    lapse_rank_options options = s->rank;
    lapse_rank_scores scores;
    lapse_error error;
    options.cutoff_count = parse_cutoffs(s->cutoffs, cutoffs);
    if (options.cutoff_count == 0)
        return cli_usage(call->verb, "--cutoffs takes up to %d integers separated by commas, such as 5,10, not '%s'",
                         MAX_CUTOFFS, s->cutoffs);
    options.cutoffs = cutoffs;
    options.split = s->evaluate.split;
    options.bootstrap = s->evaluate.bootstrap;
    options.threads = s->evaluate.threads;
    options.device = s->evaluate.device;
    options.target = s->evaluate.target;
    options.comm = s->evaluate.comm;
    if (lapse_rank_evaluate(model, dataset, &options, &scores, &error) != LAPSE_OK)
        return cli_error(&error);
    bool whole = s->json ? print_json(s, NULL, &scores, times) : cli_ranks_print(stdout, &scores) && print_times(times);
    lapse_rank_scores_clear(&scores);
    return whole ? CLI_DONE : cli_fail("out of memory");
}

static int evaluate_targets(const eval_settings *s, const lapse_model *model, const lapse_dataset *dataset,
                            const lapse_time_scores *times)
{
    cli_targets targets = {0};
    lapse_error error;
    if (cli_targets_evaluate(&targets, NULL, model, dataset, &s->evaluate, &error) != LAPSE_OK)
        return cli_error(&error);
    bool whole = s->json ? print_json(s, &targets, NULL, times)
                         : cli_targets_print(stdout, &targets, s->classes) && print_times(times);
    cli_targets_clear(&targets);
    return whole ? CLI_DONE : cli_fail("out of memory");
}

/* --within: the chances that histories go on. */
static int evaluate_returns(eval_settings *s, const lapse_model *model, const lapse_dataset *dataset,
                            const cli_call *call)
{
    cli_horizons horizons;
    double longest = 0;
    lapse_return_scores scores;
    lapse_error error;
    if (cli_horizons_parse(&horizons, s->within, &error) != LAPSE_OK)
        return cli_usage(call->verb, "--within %s: %s", s->within, error.message);
    cli_now now;
    if (s->now && cli_now_parse(&now, s->now, s->columns.import.timezone, &error) != LAPSE_OK)
        return cli_usage(call->verb, "--now %s: %s", s->now, error.message);
    if (s->now && (now.type == CLI_NOW_CALL || now.type == CLI_NOW_LAST))
        return cli_usage(call->verb, "--now %s leaves no later events to score against: use end, or a time", s->now);
    if (s->now) { /* the last time after which everything up to the longest horizon is known */
        s->returns.now = cli_now_time(&now, dataset);
        for (int h = 0; now.type == CLI_NOW_END && h < horizons.count; h++)
            longest = fmax(longest, horizons.seconds[h]);
        s->returns.now -= longest;
    }
    s->returns.horizons = horizons.seconds;
    s->returns.horizon_count = horizons.count;
    s->returns.split = s->evaluate.split;
    s->returns.bootstrap = s->evaluate.bootstrap;
    s->returns.threads = s->evaluate.threads;
    if (lapse_return_evaluate(model, dataset, &s->returns, &scores, &error) != LAPSE_OK)
        return cli_error(&error);
    cli_censoring_warn(model);
    if (!s->json)
        return cli_returns_print(stdout, &scores) ? CLI_DONE : cli_fail("out of memory");
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", s->model);
    cli_json_text(&json, "data", s->data);
    cli_returns_json(&json, &scores);
    cli_json_end(&json, '}');
    return CLI_DONE;
}

static int run(void *settings, const cli_call *call)
{
    eval_settings *s = settings;
    lapse_model *model = NULL;
    lapse_dataset *dataset = NULL;
    lapse_error error;
    s->evaluate.comm = cli_ranks();
    if (s->evaluate.comm && s->evaluate.threads == 0)
        s->evaluate.threads = lapse_comm_threads(s->evaluate.comm);
    if (lapse_model_load_divided(s->model, s->shard_items ? cli_ranks() : NULL, &model, &error) != LAPSE_OK)
        return cli_error(&error);
    s->columns.import.threads = s->evaluate.threads;
    int result = cli_events_open(s->data, &s->columns, model, &dataset);
    lapse_time_scores times = {0};
    if (result == CLI_DONE && s->within)
        result = evaluate_returns(s, model, dataset, call);
    else if (result == CLI_DONE && lapse_model_predicts_time(model) &&
             lapse_time_evaluate(model, dataset, &s->evaluate, &times, &error) != LAPSE_OK)
        result = cli_error(&error);
    if (result == CLI_DONE && !s->within)
        result = cli_is_recommender(model) ? evaluate_ranks(s, model, dataset, &times, call)
                                           : evaluate_targets(s, model, dataset, &times);
    lapse_dataset_close(dataset);
    lapse_model_free(model);
    return result;
}

static void defaults(void *settings)
{
    eval_settings *s = settings;
    cli_columns_default(&s->columns);
    lapse_evaluate_options_default(&s->evaluate);
    lapse_rank_options_default(&s->rank);
    lapse_return_options_default(&s->returns);
    s->cutoffs = "5,10";
}

static const char *const *split_names(void)
{
    static const char *const names[] = {"test", "valid", "train", "all", NULL};
    return names;
}

static const cli_argument arguments[] = {
    {"MODEL", offsetof(eval_settings, model), "model file from `lapse train`", false, CLI_INPUT_FILE},
    {"DATA", offsetof(eval_settings, data), CLI_EVENTS_HELP, false, CLI_INPUT_FILE},
    {0},
};

/* clang-format off */
static const cli_option options[] = {
    {.name = "split", .type = CLI_CHOICE, .offset = offsetof(eval_settings, evaluate.split), .placeholder = "SPLIT",
     .help = "split to evaluate", .choices = split_names},
    {.name = "target", .type = CLI_TEXT, .offset = offsetof(eval_settings, evaluate.target),
     .placeholder = "action=NAME",
     .help = "target events: only events with this action are scored, such as action=view, or all",
     .unset = "as in training"},
    {.name = "classes", .type = CLI_FLAG, .offset = offsetof(eval_settings, classes),
     .help = "per-class table with precision, recall and F1"},
    {.name = "cutoffs", .type = CLI_TEXT, .offset = offsetof(eval_settings, cutoffs), .placeholder = "K,K",
     .help = "recommend: cutoffs K of Hit@K and NDCG@K"},
    {.name = "negatives", .type = CLI_WHOLE, .offset = offsetof(eval_settings, rank.negatives), .placeholder = "N",
     .help = "recommend: negative samples per event for the sampled metrics, uniform and by popularity; 0 computes full-catalogue "
     "metrics only"},
    {.name = "negative-seed", .type = CLI_SEED, .offset = offsetof(eval_settings, rank.negative_seed),
     .placeholder = "N", .help = "recommend: random seed of the sampled items and events"},
    {.name = "cases", .type = CLI_COUNT, .offset = offsetof(eval_settings, rank.cases), .placeholder = "N",
     .help = "recommend: maximum number of events to rank, sampled at random", .unset = "all"},
    {.name = "slices", .type = CLI_FLAG, .offset = offsetof(eval_settings, rank.slices),
     .help = "recommend: tables by history length, item popularity and lag"},
    {.name = "within", .type = CLI_TEXT, .offset = offsetof(eval_settings, within), .placeholder = "DURATIONS",
     .help = "score the chances of at least one event within each duration after --now, such as 1d,7d,30d, and the expected "
     "number of events, beside a constant, a logistic regression on recency, frequency and age, and BG/NBD; instead of the "
     "scores of the next event", .unset = "none"},
    {.name = "now", .type = CLI_TEXT, .offset = offsetof(eval_settings, now), .placeholder = "TIME",
     .help = "--within: time up to which histories are known; what they did later is held out: a time, or end, the longest "
             "--within before the end of the data",
     .unset = "end; where the split divides sequences at a time, that time"},
    {.name = "samples", .type = CLI_COUNT, .offset = offsetof(eval_settings, returns.samples), .placeholder = "N",
     .help = "--within: futures of each history, for the expected number of events"},
    {.name = "bootstrap", .type = CLI_WHOLE, .offset = offsetof(eval_settings, evaluate.bootstrap), .placeholder = "N",
     .help = "bootstrap resamples of the sequences for the 95 % intervals; 0 disables them"},
    {.name = "device", .type = CLI_CHOICE, .offset = offsetof(eval_settings, evaluate.device), .placeholder = "DEVICE",
     .help = "compute device: cpu, cuda (NVIDIA GPU), or auto (cuda if available)", .choices = lapse_device_names},
    {.name = "shard-items", .type = CLI_FLAG, .offset = offsetof(eval_settings, shard_items), .help = CLI_SHARD_ITEMS_HELP,
     .advanced = true},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(eval_settings, evaluate.threads), .placeholder = "N",
     .help = "CPU threads; does not change the result", .unset = "all cores"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(eval_settings, json), .help = "JSON output: one object"},
    {0},
};
/* clang-format on */

static const cli_text_options text = {.offset = offsetof(eval_settings, columns), .model = true};

static const char *const examples[] = {
    "lapse eval model.safetensors events.lapse --split test --classes",
    "lapse eval shop.safetensors shop.lapse --within 1d,7d,30d",
    "lapse eval recommender.safetensors events.lapse --cutoffs 1,5,10,20 --slices",
    NULL,
};

const cli_verb cli_verb_eval = {
    .name = "eval",
    .summary = "evaluate a model on events",
    .description =
        "Evaluates a model on every event except the first of each sequence. The model file stores the split of the "
        "training data, so the test split contains no training data. A classifier is evaluated by accuracy, log-loss "
        "and "
        "macro-F1; a recommender by the rank of the target item (Hit@K, NDCG@K, MRR): in the full catalogue, with and "
        "without items already in the history, and among negative samples, uniform and by popularity.",
    .examples = examples,
    .arguments = arguments,
    .ranks = true,
    .options = options,
    .text = &text,
    .size = sizeof(eval_settings),
    .defaults = defaults,
    .run = run,
};
