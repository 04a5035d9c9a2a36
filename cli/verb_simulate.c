/* verb_simulate.c: `lapse simulate`: events drawn from a known law, as CSV. */
#include <string.h>

#include "verb.h"

typedef struct simulate_settings {
    lapse_simulate_options simulate;
    const char *output, *law;
} simulate_settings;

static int run(void *settings, const cli_call *call)
{
    const simulate_settings *s = settings;
    lapse_simulation *simulation = NULL;
    lapse_error error;
    double start = cli_clock();
    if (s->law && strcmp(s->law, s->output) == 0)
        return cli_usage(call->verb, "the law and the events cannot both go to %s", s->law);
    lapse_status status = lapse_simulate(&s->simulate, &simulation, &error);
    if (status == LAPSE_OK)
        status = lapse_simulation_save(simulation, s->output, &error);
    if (status == LAPSE_OK && s->law)
        status = lapse_simulation_save_law(simulation, s->law, &error);
    if (status == LAPSE_OK) {
        bool piped = strcmp(s->output, "-") == 0 || (s->law && strcmp(s->law, "-") == 0);
        FILE *file = piped ? stderr : stdout;
        fprintf(file, "wrote      %s to ",
                cli_plural(lapse_simulation_event_count(simulation), "event", "events").text);
        cli_text_print(file, strcmp(s->output, "-") == 0 ? "standard output" : s->output);
        if (s->law) {
            fputs(", their law to ", file);
            cli_text_print(file, strcmp(s->law, "-") == 0 ? "standard output" : s->law);
        }
        fprintf(file, " in %s\n", cli_seconds(cli_clock() - start).text);
    }
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
    {.name = "output", .letter = 'o', .kind = CLI_TEXT, .offset = offsetof(simulate_settings, output),
     .placeholder = "FILE", .help = "the CSV file to write; - is standard output", .required = true},
    {.name = "preset", .kind = CLI_TEXT, .offset = offsetof(simulate_settings, simulate.preset), .placeholder = "NAME",
     .help = "what is simulated"},
    {.name = "law", .kind = CLI_TEXT, .offset = offsetof(simulate_settings, law), .placeholder = "FILE",
     .help = "also write the law's own probability of every kind at every event", .unset = "not written"},
    {.name = "sequences", .kind = CLI_COUNT, .offset = offsetof(simulate_settings, simulate.sequences),
     .placeholder = "N", .help = "histories to draw", .unset = "the preset's own"},
    {.name = "days", .kind = CLI_NUMBER, .offset = offsetof(simulate_settings, simulate.days), .placeholder = "DAYS",
     .help = "length of each history; 0 is the preset's own"},
    {.name = "seed", .kind = CLI_SEED, .offset = offsetof(simulate_settings, simulate.seed), .placeholder = "N",
     .help = "the same seed draws the same events"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse simulate --preset shop -o shop.csv --law law.csv", NULL};

const cli_verb cli_verb_simulate = {
    .name = "simulate",
    .summary = "draw events from a known law, as CSV",
    .description =
        "Draws histories of events from a process whose law is known, so that the best possible prediction is "
        "known too. The shop has goods bought again after their own period, views that fade within the hour, "
        "accessories that follow a purchase after days, and weekly habits.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(simulate_settings),
    .defaults = defaults,
    .run = run,
};
