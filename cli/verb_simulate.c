/* verb_simulate.c: `lapse simulate`: events simulated from a known process, as CSV. */
#include <string.h>

#include "verb.h"

typedef struct simulate_settings {
    lapse_simulate_options simulate;
    const char *output, *law, *catalogue;
} simulate_settings;

static const char *file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}

static bool same(const char *left, const char *right)
{
    return left && right && strcmp(left, right) == 0;
}

static void print_report(const simulate_settings *s, int64_t events, double seconds)
{
    bool piped = same(s->output, "-") || same(s->law, "-") || same(s->catalogue, "-");
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
    (void)call;
    lapse_status status = lapse_simulate(&s->simulate, &simulation, &error);
    if (status == LAPSE_OK)
        status = lapse_simulation_save(simulation, s->output, &error);
    if (status == LAPSE_OK && s->law)
        status = lapse_simulation_save_law(simulation, s->law, &error);
    if (status == LAPSE_OK && s->catalogue)
        status = lapse_simulation_save_catalogue(simulation, s->catalogue, &error);
    if (status == LAPSE_OK)
        print_report(s, lapse_simulation_event_count(simulation), cli_clock() - start);
    lapse_simulation_free(simulation);
    return status == LAPSE_OK ? CLI_DONE : cli_error(&error);
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
     .help = "simulated process: shop, cycle or catalogue"},
    {.name = "law", .type = CLI_TEXT, .offset = offsetof(simulate_settings, law), .placeholder = "FILE",
     .file = CLI_OUTPUT_FILE,
     .help = "CSV file with the true probability of each event type at each event", .unset = "none"},
    {.name = "catalogue", .type = CLI_TEXT, .offset = offsetof(simulate_settings, catalogue), .placeholder = "FILE",
     .file = CLI_OUTPUT_FILE,
     .help = "CSV file with one row per item of the preset catalogue: item,name,brand,category",
     .unset = "none"},
    {.name = "items", .type = CLI_COUNT, .offset = offsetof(simulate_settings, simulate.items), .placeholder = "N",
     .help = "catalogue size of the preset catalogue, in items", .unset = "that of the preset"},
    {.name = "sequences", .type = CLI_COUNT, .offset = offsetof(simulate_settings, simulate.sequences),
     .placeholder = "N", .help = "number of sequences", .unset = "that of the preset"},
    {.name = "days", .type = CLI_NUMBER, .offset = offsetof(simulate_settings, simulate.days), .placeholder = "DAYS",
     .help = "length of each sequence, in days; 0 is that of the preset"},
    {.name = "seed", .type = CLI_SEED, .offset = offsetof(simulate_settings, simulate.seed), .placeholder = "N",
     .help = "random seed"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {
    "lapse simulate --preset shop -o shop.csv --law law.csv",
    "lapse simulate --preset catalogue --items 1700000 --sequences 72000 -o c.csv --catalogue c-items.csv", NULL};

const cli_verb cli_verb_simulate = {
    .name = "simulate",
    .summary = "simulate events from a known process, as CSV",
    .description =
        "Simulates sequences of events from a known process, so the best possible prediction is known too. The preset "
        "shop "
        "is a Hawkes process: items are bought again after their own period, views decay within the hour, accessories "
        "follow a purchase after days, and habits are weekly. The preset cycle has ten event types in a fixed order, "
        "which holds after short gaps only. The preset catalogue has any number of items, in "
        "categories, series and brands, some of them new; it has no --law.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(simulate_settings),
    .defaults = defaults,
    .run = run,
};
