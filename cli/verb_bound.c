/* verb_bound.c: `lapse bound`: the number of sampled frequencies that Claim 1 requires, and the error measured with it. */
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "verb.h"
#include "lapse_lab.h"

typedef struct bound_settings {
    lapse_bound_options bound;
    const char *sigma;
    bool json;
} bound_settings;

/* A number of samples, and the error measured with it. */
typedef struct bound_row {
    const char *label, *name; /* in text; in JSON */
    double unit;              /* the claim's unit of time in seconds; 0: its proof, which has no unit */
    int part;                 /* divisor of the number of samples */
    int64_t samples;
    bool measured;
    lapse_bound_error error;
} bound_row;

static const bound_row all_rows[] = {
    {.label = "Claim 1, time in days", .name = "claim_days", .unit = 86400, .part = 1},
    {.label = "Claim 1, time in hours", .name = "claim_hours", .unit = 3600, .part = 1},
    {.label = "Claim 1, time in seconds", .name = "claim_seconds", .unit = 1, .part = 1},
    {.label = "corrected proof, any unit", .name = "proof", .part = 1},
    {.label = "1/4 of that", .name = "proof_quarter", .part = 4},
    {.label = "1/16 of that", .name = "proof_sixteenth", .part = 16},
};

enum { ROWS = sizeof all_rows / sizeof *all_rows };

/* Cosines per measurement, at most: about half a minute on one core. */
static const double MAX_STEPS = 3e10;

/* Parses "1/2h", "3/d": radians per duration. */
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

/* A measurement with one sample is fast and returns the number of lags, from which the cost of the full one follows. */
static lapse_status measure(const lapse_bound_options *options, bound_row *row, lapse_error *error)
{
    lapse_bound_options once = *options;
    if (row->samples < 1 || options->repeats < 1)
        return LAPSE_OK;
    once.repeats = 1;
    lapse_status status = lapse_bound_measure(&once, 1, &row->error, error);
    double steps = (double)row->samples * row->error.points * options->repeats;
    if (status != LAPSE_OK || steps > MAX_STEPS)
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
    bool skipped = false;
    printf("requested  error below %g at every lag up to %s, with probability %g %%\n", o->epsilon,
           cli_duration(o->span).text, 100 * (1 - o->delta));
    printf("kernel     exp(-(sigma lag)^2 / 2) with sigma = %s: 61 %% of its maximum at lag %s\n\n", s->sigma,
           cli_duration(1 / o->sigma).text);
    cli_table table = {.align = "lrrrr"};
    cli_table_add(&table, "%s", "");
    cli_table_add(&table, "samples");
    cli_table_add(&table, "mean error");
    cli_table_add(&table, "max error");
    cli_table_add(&table, "below %g", o->epsilon);
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
            skipped = skipped || (row->samples > 0 && o->repeats > 0);
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
            cli_note("the lag step exceeds 0.1/sigma: the measurement can miss the largest error");
    }
    if (skipped)
        cli_note("rows with - take too long to measure; use fewer --repeats or a larger --epsilon");
    return CLI_DONE;
}

static void json_row(cli_json *json, const bound_row *row)
{
    cli_json_object(json, row->name);
    cli_json_whole(json, "samples", row->samples);
    if (row->measured) {
        cli_json_number(json, "mean_error", row->error.mean, 6);
        cli_json_number(json, "max_error", row->error.worst, 6);
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
        return cli_usage(call->verb, "--sigma takes a number per duration, such as 1/2h or 3/d, not '%s'", s->sigma);
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
     .help = "maximum error of the kernel estimate; the kernel is 1 at lag 0"},
    {.name = "tmax", .type = CLI_DURATION, .offset = offsetof(bound_settings, bound.span), .placeholder = "DURATION",
     .help = "maximum lag, such as 30d", .required = true},
    {.name = "sigma", .type = CLI_TEXT, .offset = offsetof(bound_settings, sigma), .placeholder = "N/DURATION",
     .help = "standard deviation of the frequencies, in radians per duration, such as 1/2h", .required = true},
    {.name = "delta", .type = CLI_NUMBER, .offset = offsetof(bound_settings, bound.delta), .placeholder = "D",
     .help = "failure probability: that of a larger error"},
    {.name = "repeats", .type = CLI_WHOLE, .offset = offsetof(bound_settings, bound.repeats), .placeholder = "N",
     .help = "random draws for measuring the error; 0 disables the measurement"},
    {.name = "seed", .type = CLI_SEED, .offset = offsetof(bound_settings, bound.seed), .placeholder = "N",
     .help = "random seed of the frequencies"},
    {.name = "threads", .type = CLI_THREADS, .offset = offsetof(bound_settings, bound.threads), .placeholder = "N",
     .help = "CPU threads; does not change the result", .unset = "all cores"},
    {.name = "json", .type = CLI_FLAG, .offset = offsetof(bound_settings, json), .help = "JSON output: one object"},
    {0},
};
/* clang-format on */

static const char *const examples[] = {"lapse bound --epsilon 0.1 --tmax 30d --sigma 1/2h",
                                       "lapse bound --epsilon 0.2 --tmax 1y --sigma 1/7d --delta 0.01 --repeats 50",
                                       NULL};

const cli_verb cli_verb_bound = {
    .name = "bound",
    .summary = "compute how many sampled frequencies a kernel needs",
    .description =
        "Computes how many random frequencies make the mean of their cosines approximate the kernel within epsilon at "
        "every lag up to tmax: by Claim 1 of the paper as printed, whose result depends on the unit of time, and by "
        "its "
        "corrected proof. For each number, the error is measured on a kernel whose frequencies are normally "
        "distributed. "
        "docs/theory.md explains the proof.",
    .examples = examples,
    .arguments = arguments,
    .options = options,
    .size = sizeof(bound_settings),
    .defaults = defaults,
    .run = run,
};
