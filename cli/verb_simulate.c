/* verb_simulate.c: `lapse simulate`: events simulated from a known process, as CSV. */
#include <string.h>

#include "rank_table.h"
#include "score_table.h"
#include "verb.h"

typedef struct simulate_settings {
    lapse_simulate_options simulate;
    const char *output, *law, *catalogue;
    const char *score, *data; /* model and dataset whose best possible scores are printed */
    int64_t cases;            /* of --score */
    bool json;
} simulate_settings;

static const char *file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}

static bool same(const char *left, const char *right)
{
    return left && right && strcmp(left, right) == 0;
}

/* Prints the scores of the law on the events that `lapse eval` scores for the model. */
static int print_scores(const simulate_settings *s, const lapse_simulation *simulation, const lapse_model *model,
                        const lapse_dataset *dataset)
{
    bool ranks = cli_is_recommender(model), whole = true;
    cli_json json = {.file = stdout};
    cli_targets targets = {0};
    lapse_rank_scores scores;
    lapse_rank_options options;
    lapse_evaluate_options evaluate;
    lapse_error error;
    lapse_rank_options_default(&options);
    options.cases = s->cases;
    lapse_evaluate_options_default(&evaluate);
    lapse_status status = ranks ? lapse_simulation_rank(simulation, model, dataset, &options, &scores, &error)
                                : cli_targets_evaluate(&targets, simulation, model, dataset, &evaluate, &error);
    if (status != LAPSE_OK)
        return cli_error(&error);
    if (s->json) {
        cli_json_object(&json, NULL);
        cli_json_text(&json, "model", "law");
        cli_json_text(&json, "data", s->data);
        if (ranks)
            cli_ranks_json(&json, &scores);
        else
            whole = cli_targets_json(&json, &targets, false);
        cli_json_end(&json, '}');
    } else {
        whole = ranks ? cli_ranks_print(stdout, &scores) : cli_targets_print(stdout, &targets, false);
    }
    if (ranks)
        lapse_rank_scores_clear(&scores);
    cli_targets_clear(&targets);
    return whole ? CLI_DONE : cli_fail("out of memory");
}

static int score_law(const simulate_settings *s, const lapse_simulation *simulation)
{
    lapse_model *model = NULL;
    lapse_dataset *dataset = NULL;
    lapse_error error;
    lapse_status status = lapse_model_load(s->score, &model, &error);
    if (status == LAPSE_OK)
        status = lapse_dataset_open(s->data, &dataset, &error);
    int result = status == LAPSE_OK ? print_scores(s, simulation, model, dataset) : cli_error(&error);
    lapse_dataset_close(dataset);
    lapse_model_free(model);
    return result;
}

static void print_report(const simulate_settings *s, int64_t events, double seconds)
{
    bool piped = same(s->output, "-") || same(s->law, "-") || same(s->catalogue, "-") || s->score;
    FILE *file = piped ? stderr : stdout;
    fprintf(file, "wrote      %s to ", cli_plural(events, "event", "events").text);
    cli_text_print(file, file_name(s->output));
    if (s->law) {
        fputs(", their true probabilities to ", file);
        cli_text_print(file, file_name(s->law));
    }
    if (s->catalogue) {
        fputs(", the catalogue to ", file);
        cli_text_print(file, file_name(s->catalogue));
    }
    fprintf(file, " in %s\n", cli_seconds(seconds).text);
}

static int run(void *settings, const cli_call *call)
{
    const simulate_settings *s = settings;
    lapse_simulation *simulation = NULL;
    lapse_error error;
    double start = cli_clock();
    if (!s->score != !s->data)
        return cli_usage(call->verb, "--score and --data go together: a model, and the dataset that it is scored on");
    lapse_status status = lapse_simulate(&s->simulate, &simulation, &error);
    if (status == LAPSE_OK)
        status = lapse_simulation_save(simulation, s->output, &error);
    if (status == LAPSE_OK && s->law)
        status = lapse_simulation_save_law(simulation, s->law, &error);
    if (status == LAPSE_OK && s->catalogue)
        status = lapse_simulation_save_catalogue(simulation, s->catalogue, &error);
    if (status == LAPSE_OK)
        print_report(s, lapse_simulation_event_count(simulation), cli_clock() - start);
    int result = status == LAPSE_OK ? CLI_DONE : cli_error(&error);
    if (status == LAPSE_OK && s->score)
        result = score_law(s, simulation);
    lapse_simulation_free(simulation);
    return result;
}

static void defaults(void *settings)
{
    simulate_settings *s = settings;
    lapse_simulate_options_default(&s->simulate);
}

static const cli_argument arguments[] = {{0}};

/* clang-format off */
static const cli_option options[] = {
    {.name = "output", .letter = 'o', .type = CLI_TEXT, .offset = offsetof(simulate_settings, output),
     .placeholder = "FILE", .help = "CSV file to write; - is standard output", .file = CLI_OUTPUT_FILE,
     .required = true},
    {.name = "preset", .type = CLI_TEXT, .offset = offsetof(simulate_settings, simulate.preset), .placeholder = "NAME",
     .help = "simulated process: shop, cycle, catalogue or sessions"},
    {.name = "law", .type = CLI_TEXT, .offset = offsetof(simulate_settings, law), .placeholder = "FILE",
     .file = CLI_OUTPUT_FILE,
     .help = "CSV file with the true probability of each event type at each event", .unset = "none"},
    {.name = "catalogue", .type = CLI_TEXT, .offset = offsetof(simulate_settings, catalogue), .placeholder = "FILE",
     .file = CLI_OUTPUT_FILE,
     .help = "CSV file with one row per item of the presets catalogue and sessions: item,name,brand,category",
     .unset = "none"},
    {.name = "items", .type = CLI_COUNT, .offset = offsetof(simulate_settings, simulate.items), .placeholder = "N",
     .help = "catalogue size of the presets catalogue and sessions, in items", .unset = "that of the preset"},
    {.name = "sequences", .type = CLI_COUNT, .offset = offsetof(simulate_settings, simulate.sequences),
     .placeholder = "N", .help = "number of sequences", .unset = "that of the preset"},
    {.name = "days", .type = CLI_NUMBER, .offset = offsetof(simulate_settings, simulate.days), .placeholder = "DAYS",
     .help = "length of each sequence, in days; 0 is that of the preset"},
    {.name = "seed", .type = CLI_SEED, .offset = offsetof(simulate_settings, simulate.seed), .placeholder = "N",
     .help = "random seed"},
    {.name = "score", .type = CLI_TEXT, .offset = offsetof(simulate_settings, score), .placeholder = "MODEL",
     .file = CLI_INPUT_FILE,
     .help = "model file: prints the best possible scores, those of the law, on the events that `lapse eval` scores "
     "for this model", .unset = "none"},
    {.name = "data", .type = CLI_TEXT, .offset = offsetof(simulate_settings, data), .placeholder = "DATA",
     .file = CLI_INPUT_FILE, .help = "dataset file of --score, imported from these events", .unset = "none"},
    {.name = "cases", .type = CLI_COUNT, .offset = offsetof(simulate_settings, cases), .placeholder = "N",
     .help = "maximum number of events that --score ranks, sampled at random", .unset = "all"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(simulate_settings, json),
     .help = "JSON output of --score: one object"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {
    "lapse simulate --preset shop -o shop.csv --law law.csv",
    "lapse simulate --preset catalogue --items 1700000 --sequences 72000 -o c.csv --catalogue c-items.csv",
    "lapse simulate --preset sessions -o s.csv",
    "lapse simulate --preset sessions -o /dev/null --score m.safetensors --data s.lapse", NULL};

const cli_verb cli_verb_simulate = {
    .name = "simulate",
    .summary = "simulate events from a known process, as CSV",
    .description =
        "Simulates sequences of events from a known process, so the best possible prediction is known too. The preset "
        "shop "
        "is a Hawkes process: items are bought again after their own period, views decay within the hour, accessories "
        "follow a purchase after days, and habits are weekly. The preset cycle has ten event types in a fixed order, "
        "which holds after short gaps only. The preset catalogue has any number of items, in "
        "categories, series and brands, some of them new; it has no --law. The preset sessions is a shop of any number "
        "of items whose users come back in sessions to search, view and buy; departments differ in how long an "
        "interest lasts.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(simulate_settings),
    .defaults = defaults,
    .run = run,
};
