/* verb_simulate.c: `lapse simulate`: events simulated from a known process, as CSV. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rank_table.h"
#include "score_table.h"
#include "time_table.h"
#include "verb.h"

typedef struct simulate_settings {
    lapse_simulate_options simulate;
    const char *output, *law, *catalogue;
    const char *score, *data; /* model and dataset whose best possible scores are printed */
    int64_t cases;            /* of --score */
    const char *horizon, *now;
    lapse_forecast_options forecast; /* of --horizon */
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

/* What is scored: the law beside the model. */
typedef struct scored {
    const simulate_settings *settings;
    const lapse_simulation *simulation;
    lapse_model *model;
    lapse_dataset *dataset;
    bool ranks, times; /* the model ranks items; it predicts times */
    cli_targets targets;
    lapse_rank_scores ranked;
    lapse_time_scores timed;
    double law_events, model_events; /* mean number within the horizon of --horizon, over all sequences */
} scored;

static double mean(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static lapse_status forecast(scored *s, lapse_error *error)
{
    const lapse_forecast_options *options = &s->settings->forecast;
    int64_t sequences = lapse_dataset_sequence_count(s->dataset);
    double *count = calloc((size_t)sequences, sizeof *count);
    if (!count) {
        *error = (lapse_error){.status = LAPSE_ERROR_MEMORY, .message = "out of memory"};
        return LAPSE_ERROR_MEMORY;
    }
    lapse_forecasts forecasts;
    lapse_status status = lapse_simulation_forecast(s->simulation, s->dataset, options, count, error);
    s->law_events = mean(count, sequences);
    if (status == LAPSE_OK)
        status = lapse_forecast(s->model, s->dataset, options, &forecasts, error);
    if (status == LAPSE_OK) {
        s->model_events = mean(forecasts.count, sequences);
        lapse_forecasts_clear(&forecasts);
    }
    free(count);
    return status;
}

/* Computes the scores of the law on the events that `lapse eval` scores for the model. */
static lapse_status compute(scored *s, lapse_error *error)
{
    lapse_rank_options options;
    lapse_evaluate_options evaluate;
    lapse_rank_options_default(&options);
    options.cases = s->settings->cases;
    lapse_evaluate_options_default(&evaluate);
    s->ranks = cli_is_recommender(s->model);
    s->times = lapse_model_predicts_time(s->model);
    lapse_status status =
        s->ranks ? lapse_simulation_rank(s->simulation, s->model, s->dataset, &options, &s->ranked, error)
                 : cli_targets_evaluate(&s->targets, s->simulation, s->model, s->dataset, &evaluate, error);
    if (status == LAPSE_OK && s->times)
        status = lapse_simulation_time_evaluate(s->simulation, s->model, s->dataset, &evaluate, &s->timed, error);
    if (status == LAPSE_OK && s->settings->horizon)
        status = forecast(s, error);
    return status;
}

static bool print_json(const scored *s)
{
    cli_json json = {.file = stdout};
    bool whole = true;
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", "law");
    cli_json_text(&json, "data", s->settings->data);
    if (s->ranks)
        cli_ranks_json(&json, &s->ranked);
    else
        whole = cli_targets_json(&json, &s->targets, false);
    if (s->times)
        cli_times_json(&json, &s->timed);
    if (s->settings->horizon) {
        cli_json_object(&json, "forecast");
        cli_json_number(&json, "horizon_seconds", s->settings->forecast.horizon, 15);
        cli_json_whole(&json, "samples", s->settings->forecast.samples);
        cli_json_number(&json, "law_events", s->law_events, 9);
        cli_json_number(&json, "model_events", s->model_events, 9);
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, '}');
    return whole;
}

static bool print_text(const scored *s)
{
    bool whole = s->ranks ? cli_ranks_print(stdout, &s->ranked) : cli_targets_print(stdout, &s->targets, false);
    if (whole && s->times) {
        fputc('\n', stdout);
        whole = cli_times_print(stdout, &s->timed);
    }
    if (s->settings->horizon)
        printf("\nforecast     events within %s of %s: %.4f by the law, %.4f by the model (%+.2f %%); means over %s of "
               "%s\n",
               s->settings->horizon, s->settings->now ? s->settings->now : "the last event", s->law_events,
               s->model_events, 100 * (s->model_events / s->law_events - 1),
               cli_plural(s->settings->forecast.samples, "future", "futures").text,
               cli_plural(lapse_dataset_sequence_count(s->dataset), "sequence", "sequences").text);
    return whole;
}

static int score_law(const simulate_settings *settings, const lapse_simulation *simulation)
{
    scored s = {.settings = settings, .simulation = simulation};
    lapse_error error;
    lapse_status status = lapse_model_load(settings->score, &s.model, &error);
    if (status == LAPSE_OK)
        status = lapse_dataset_open(settings->data, &s.dataset, &error);
    if (status == LAPSE_OK)
        status = compute(&s, &error);
    int result = status == LAPSE_OK ? CLI_DONE : cli_error(&error);
    if (status == LAPSE_OK && !(settings->json ? print_json(&s) : print_text(&s)))
        result = cli_fail("out of memory");
    lapse_rank_scores_clear(&s.ranked);
    cli_targets_clear(&s.targets);
    lapse_dataset_close(s.dataset);
    lapse_model_free(s.model);
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
    simulate_settings *s = settings;
    lapse_simulation *simulation = NULL;
    lapse_error error;
    double start = cli_clock();
    if (!s->score != !s->data)
        return cli_usage(call->verb, "--score and --data go together: a model, and the dataset that it is scored on");
    if ((s->horizon || s->now) && !s->score)
        return cli_usage(call->verb, "--horizon and --now need --score: the model whose forecast is compared");
    if (s->horizon && lapse_duration_parse(s->horizon, &s->forecast.horizon, &error) != LAPSE_OK)
        return cli_usage(call->verb, "--horizon %s: %s", s->horizon, error.message);
    if (s->now && lapse_time_parse_zone(s->now, NULL, &s->forecast.now, &error) != LAPSE_OK)
        return cli_usage(call->verb, "--now %s: %s", s->now, error.message);
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
    lapse_forecast_options_default(&s->forecast);
    s->forecast.samples = 100;
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
     .help = "catalogue size of the presets catalogue and sessions, in items; sessions has at least 500", .unset = "that of the preset"},
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
    {.name = "horizon", .type = CLI_TEXT, .offset = offsetof(simulate_settings, horizon), .placeholder = "DURATION",
     .help = "with --score: compare the expected number of events within this horizon, such as 7d, by the model and by the law",
     .unset = "no forecast"},
    {.name = "now", .type = CLI_TEXT, .offset = offsetof(simulate_settings, now), .placeholder = "TIME",
     .help = "with --horizon: time from which on it counts, given that nothing has happened since the last event",
     .unset = "the last event of each sequence"},
    {.name = "samples", .type = CLI_COUNT, .offset = offsetof(simulate_settings, forecast.samples), .placeholder = "N",
     .help = "with --horizon: drawn futures of each sequence"},
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
