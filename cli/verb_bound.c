/* verb_bound.c: `lapse bound`: how many sampled frequencies Claim 1 asks for, and how many would have done. */
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "verb.h"

typedef struct bound_settings {
    lapse_bound_options bound;
    const char *sigma;
    bool json;
} bound_settings;

/* A number of samples to be measured. */
typedef struct bound_row {
    const char *label, *name; /* for people; in JSON */
    double unit;              /* seconds in which the claim counts time; 0: its proof, which needs none */
    int part;                 /* of the samples that it gives */
    int64_t samples;
    bool measured;
    lapse_bound_error error;
} bound_row;

static const bound_row all_rows[] = {
    {.label = "Claim 1, time counted in days", .name = "claim_days", .unit = 86400, .part = 1},
    {.label = "Claim 1, time counted in hours", .name = "claim_hours", .unit = 3600, .part = 1},
    {.label = "Claim 1, time counted in seconds", .name = "claim_seconds", .unit = 1, .part = 1},
    {.label = "its proof corrected, in any unit", .name = "proof", .part = 1},
    {.label = "a quarter of that", .name = "proof_quarter", .part = 4},
    {.label = "a sixteenth of that", .name = "proof_sixteenth", .part = 16},
};

enum { ROWS = sizeof all_rows / sizeof *all_rows };

/* Steps of a measurement that a person will wait for: about half a minute on one core. */
static const double MOST_STEPS = 3e10;

/* "1/2h", "3/d": so many radians in that time. */
static bool read_rate(const char *text, double *per_second)
{
    char length[64], *end;
    const char *slash = strchr(text, '/');
    lapse_error error;
    double seconds, number = strtod(text, &end);
    if (!slash || end != slash || strpbrk(text, "xX") || !(number > 0))
        return false;
    bool bare = slash[1] < '0' || slash[1] > '9';
    int size = snprintf(length, sizeof length, "%s%s", bare ? "1" : "", slash + 1);
    if (size < 0 || (size_t)size >= sizeof length || lapse_duration_parse(length, &seconds, &error) != LAPSE_OK)
        return false;
    *per_second = seconds > 0 ? number / seconds : 0;
    return seconds > 0 && *per_second > 0;
}

/* The lags a measurement would take are known only from one: a single sample, drawn once, is quick. */
static lapse_status measure(const lapse_bound_options *options, bound_row *row, lapse_error *error)
{
    lapse_bound_options once = *options;
    if (row->samples < 1 || options->repeats < 1)
        return LAPSE_OK;
    once.repeats = 1;
    lapse_status status = lapse_bound_measure(&once, 1, &row->error, error);
    double steps = (double)row->samples * row->error.points * options->repeats;
    if (status != LAPSE_OK || steps > MOST_STEPS)
        return status;
    row->measured = true;
    return lapse_bound_measure(options, row->samples, &row->error, error);
}

static lapse_status fill_rows(const lapse_bound_options *options, bound_row rows[ROWS], lapse_error *error)
{
    lapse_status status = LAPSE_OK;
    memcpy(rows, all_rows, sizeof all_rows);
    for (int i = 0; i < ROWS && status == LAPSE_OK; i++) {
        status = lapse_bound_samples(options, rows[i].unit, &rows[i].samples, error);
        rows[i].samples = (rows[i].samples + rows[i].part - 1) / rows[i].part;
        if (status == LAPSE_OK)
            status = measure(options, &rows[i], error);
    }
    return status;
}

static int print_text(const bound_settings *s, const bound_row *rows)
{
    const lapse_bound_options *o = &s->bound;
    const lapse_bound_error *measured = NULL;
    bool left_out = false;
    printf("asked      an error below %g at every lag up to %s, in all but %g %% of draws\n", o->epsilon,
           cli_duration(o->span).text, 100 * o->delta);
    printf("kernel     exp(-(sigma lag)^2 / 2) with sigma = %s: falls to 61 %% within %s\n\n", s->sigma,
           cli_duration(1 / o->sigma).text);
    cli_table table = {.align = "lrrrr"};
    cli_table_add(&table, "%s", "");
    cli_table_add(&table, "samples");
    cli_table_add(&table, "mean error");
    cli_table_add(&table, "worst error");
    cli_table_add(&table, "draws below %g", o->epsilon);
    for (int i = 0; i < ROWS; i++) {
        const bound_row *row = &rows[i];
        cli_table_add(&table, "%s", row->label);
        cli_table_add(&table, "%s", cli_count(row->samples).text);
        if (row->measured) {
            measured = &row->error;
            cli_table_add(&table, "%.4f", row->error.mean);
            cli_table_add(&table, "%.4f", row->error.worst);
            cli_table_add(&table, "%d of %d", row->error.within, row->error.repeats);
        } else {
            left_out = left_out || (row->samples > 0 && o->repeats > 0);
            for (int j = 0; j < 3; j++)
                cli_table_add(&table, "%s", "-");
        }
    }
    if (!cli_table_print(&table, stdout, 0))
        return cli_fail("out of memory");
    if (measured) {
        printf("\nmeasured   at %s lags, %s apart\n", cli_count(measured->points).text,
               cli_duration(measured->step).text);
        if (measured->step * o->sigma > 0.11)
            cli_note("lags further apart than a tenth of 1/sigma can miss the largest error");
    }
    if (left_out)
        cli_note("rows with - would take too long to measure; fewer --repeats or a larger --epsilon take less");
    return CLI_DONE;
}

static void json_row(cli_json *json, const bound_row *row)
{
    cli_json_object(json, row->name);
    cli_json_whole(json, "samples", row->samples);
    if (row->measured) {
        cli_json_number(json, "mean_error", row->error.mean, 6);
        cli_json_number(json, "worst_error", row->error.worst, 6);
        cli_json_whole(json, "within", row->error.within);
        cli_json_whole(json, "lags", row->error.points);
        cli_json_number(json, "lag_step", row->error.step, 9);
    }
    cli_json_end(json, '}');
}

static int print_json(const bound_settings *s, const bound_row *rows)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_number(&json, "epsilon", s->bound.epsilon, 15);
    cli_json_number(&json, "tmax", s->bound.span, 15);
    cli_json_number(&json, "sigma", s->bound.sigma, 15);
    cli_json_number(&json, "delta", s->bound.delta, 15);
    cli_json_whole(&json, "repeats", s->bound.repeats);
    cli_json_seed(&json, "seed", s->bound.seed);
    for (int i = 0; i < ROWS; i++)
        json_row(&json, &rows[i]);
    cli_json_end(&json, '}');
    return CLI_DONE;
}

static int run(void *settings, const cli_call *call)
{
    bound_settings *s = settings;
    bound_row rows[ROWS];
    lapse_error error;
    if (!read_rate(s->sigma, &s->bound.sigma))
        return cli_usage(call->verb, "--sigma takes a number over a length of time, such as 1/2h or 3/d, not '%s'",
                         s->sigma);
    if (fill_rows(&s->bound, rows, &error) != LAPSE_OK)
        return cli_error(&error);
    return s->json ? print_json(s, rows) : print_text(s, rows);
}

static void defaults(void *settings)
{
    bound_settings *s = settings;
    lapse_bound_options_default(&s->bound);
}

static const cli_argument arguments[] = {{0}};

/* clang-format off */
static const cli_option options[] = {
    {.name = "epsilon", .type = CLI_NUMBER, .offset = offsetof(bound_settings, bound.epsilon), .placeholder = "E",
     .help = "the largest error allowed; the kernel is 1 at lag 0"},
    {.name = "tmax", .type = CLI_DURATION, .offset = offsetof(bound_settings, bound.span), .placeholder = "DURATION",
     .help = "the largest lag, such as 30d", .unset = "must be given", .required = true},
    {.name = "sigma", .type = CLI_TEXT, .offset = offsetof(bound_settings, sigma), .placeholder = "N/DURATION",
     .help = "the spread of the frequencies, such as 1/2h", .unset = "must be given", .required = true},
    {.name = "delta", .type = CLI_NUMBER, .offset = offsetof(bound_settings, bound.delta), .placeholder = "D",
     .help = "the chance of a larger error"},
    {.name = "repeats", .type = CLI_WHOLE, .offset = offsetof(bound_settings, bound.repeats), .placeholder = "N",
     .help = "draws to measure the error by; 0 measures nothing"},
    {.name = "seed", .type = CLI_SEED, .offset = offsetof(bound_settings, bound.seed), .placeholder = "N",
     .help = "the same seed draws the same frequencies"},
    {.name = "threads", .type = CLI_WHOLE, .offset = offsetof(bound_settings, bound.threads), .placeholder = "N",
     .help = "threads to use; never changes the result", .unset = "all cores"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(bound_settings, json), .help = "print one JSON object"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse bound --epsilon 0.1 --tmax 30d --sigma 1/2h",
                                       "lapse bound --epsilon 0.2 --tmax 1y --sigma 1/7d --delta 0.01 --repeats 50",
                                       NULL};

const cli_verb cli_verb_bound = {
    .name = "bound",
    .summary = "tell how many sampled frequencies a kernel needs",
    .description =
        "Tells how many frequencies must be drawn for the mean of their cosines to come within epsilon of the kernel "
        "at every lag up to tmax: as Claim 1 of the paper is printed, whose answer depends on the unit of time, and as "
        "its proof gives it when it is corrected. Beside each stands the error measured for that number on a kernel "
        "whose frequencies are known to be normal. docs/theory.md goes through the proof.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(bound_settings),
    .defaults = defaults,
    .run = run,
};
