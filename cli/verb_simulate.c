/* verb_simulate.c: `lapse simulate`: events drawn from a known law, as CSV. */
#include <string.h>

#include "verb.h"

typedef struct simulate_settings {
    lapse_simulate_options simulate;
    const char *output, *law, *catalogue;
} simulate_settings;

static const char *place(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}

static bool same(const char *left, const char *right)
{
    return left && right && strcmp(left, right) == 0;
}

static void say_written(const simulate_settings *s, int64_t events, double seconds)
{
    bool piped = same(s->output, "-") || same(s->law, "-") || same(s->catalogue, "-");
    FILE *file = piped ? stderr : stdout;
    fprintf(file, "wrote      %s to ", cli_plural(events, "event", "events").text);
    cli_text_print(file, place(s->output));
    if (s->law) {
        fputs(", their law to ", file);
        cli_text_print(file, place(s->law));
    }
    if (s->catalogue) {
        fputs(", the items to ", file);
        cli_text_print(file, place(s->catalogue));
    }
    fprintf(file, " in %s\n", cli_seconds(seconds).text);
}

static int run(void *settings, const cli_call *call)
{
    const simulate_settings *s = settings;
    lapse_simulation *simulation = NULL;
    lapse_error error;
    double start = cli_clock();
    if (same(s->law, s->output))
        return cli_usage(call->verb, "the law and the events cannot both go to %s", s->law);
    if (same(s->catalogue, s->output) || same(s->catalogue, s->law))
        return cli_usage(call->verb, "the items and something else cannot both go to %s", s->catalogue);
    lapse_status status = lapse_simulate(&s->simulate, &simulation, &error);
    if (status == LAPSE_OK)
        status = lapse_simulation_save(simulation, s->output, &error);
    if (status == LAPSE_OK && s->law)
        status = lapse_simulation_save_law(simulation, s->law, &error);
    if (status == LAPSE_OK && s->catalogue)
        status = lapse_simulation_save_catalogue(simulation, s->catalogue, &error);
    if (status == LAPSE_OK)
        say_written(s, lapse_simulation_event_count(simulation), cli_clock() - start);
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
     .placeholder = "FILE", .help = "the CSV file to write; - is standard output", .required = true},
    {.name = "preset", .type = CLI_TEXT, .offset = offsetof(simulate_settings, simulate.preset), .placeholder = "NAME",
     .help = "what is simulated"},
    {.name = "law", .type = CLI_TEXT, .offset = offsetof(simulate_settings, law), .placeholder = "FILE",
     .help = "also write the law's own probability of every event type at every event", .unset = "not written"},
    {.name = "catalogue", .type = CLI_TEXT, .offset = offsetof(simulate_settings, catalogue), .placeholder = "FILE",
     .help = "also write one row for each item of the preset catalogue: item,name,brand,category",
     .unset = "not written"},
    {.name = "items", .type = CLI_COUNT, .offset = offsetof(simulate_settings, simulate.items), .placeholder = "N",
     .help = "items of the preset catalogue", .unset = "the preset's own"},
    {.name = "sequences", .type = CLI_COUNT, .offset = offsetof(simulate_settings, simulate.sequences),
     .placeholder = "N", .help = "histories to draw", .unset = "the preset's own"},
    {.name = "days", .type = CLI_NUMBER, .offset = offsetof(simulate_settings, simulate.days), .placeholder = "DAYS",
     .help = "length of each history; 0 is the preset's own"},
    {.name = "seed", .type = CLI_SEED, .offset = offsetof(simulate_settings, simulate.seed), .placeholder = "N",
     .help = "the same seed draws the same events"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {
    "lapse simulate --preset shop -o shop.csv --law law.csv",
    "lapse simulate --preset catalogue --items 1700000 --sequences 72000 -o c.csv --catalogue c-items.csv", NULL};

const cli_verb cli_verb_simulate = {
    .name = "simulate",
    .summary = "draw events from a known law, as CSV",
    .description =
        "Draws histories of events from a process whose law is known, so that the best possible prediction is "
        "known too. The shop has goods bought again after their own period, views that fade within the hour, "
        "accessories that follow a purchase after days, and weekly habits. The catalogue has as many items as are "
        "asked "
        "for, in categories, series and brands, some of them new; its law is not written out.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(simulate_settings),
    .defaults = defaults,
    .run = run,
};
