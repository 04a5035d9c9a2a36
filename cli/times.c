/* times.c: see times.h. A sequence whose events the model does not know has no row in tables and CSV, and nulls in JSON. */
#include "times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "bar.h"
#include "console.h"
#include "csv_cell.h"
#include "json.h"
#include "known.h"
#include "lookup.h"
#include "table.h"

const double cli_quantile_levels[CLI_QUANTILES] = {0.1, 0.5, 0.9};

lapse_status cli_horizons_parse(cli_horizons *horizons, const char *text, lapse_error *error)
{
    horizons->count = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        char *copy = horizons->text[horizons->count];
        snprintf(copy, sizeof horizons->text[0], "%.*s", (int)(length < 31 ? length : 31), text);
        lapse_status status = lapse_duration_parse(copy, &horizons->seconds[horizons->count], error);
        if (status != LAPSE_OK)
            return status;
        horizons->count++;
        if (!text[length] || horizons->count == CLI_HORIZONS)
            return LAPSE_OK;
        text += length + 1;
    }
}

static bool on_progress(const lapse_forecast_progress *p, void *context)
{
    char what[160];
    snprintf(what, sizeof what, "predicted for %s of %s", cli_count(p->sequences).text,
             cli_plural(p->sequence_count, "history", "histories").text);
    cli_bar_fraction(context, what, (double)p->sequences / (double)p->sequence_count, p->seconds, p->seconds_left);
    return true;
}

int cli_times_compute(cli_times *t, double now, bool skip_unknown, int threads)
{
    lapse_when_options options;
    lapse_error error;
    cli_bar bar = cli_bar_new(NULL);
    size_t sequences = (size_t)lapse_dataset_sequence_count(t->history), horizons = (size_t)t->within.count;
    t->types = lapse_model_event_type_count(t->model);
    t->top = t->top > 0 && t->top < t->types ? t->top : t->types;
    lapse_when_options_default(&options);
    options.now = now;
    options.probabilities = cli_quantile_levels;
    options.probability_count = CLI_QUANTILES;
    options.horizons = t->within.seconds;
    options.horizon_count = t->within.count;
    options.skip_unknown = skip_unknown;
    options.threads = threads;
    options.type_sequences = t->shown;
    options.on_progress = on_progress;
    options.context = &bar;
    t->start = calloc(sequences + 1, sizeof *t->start);
    t->quantiles = calloc(sequences * CLI_QUANTILES + 1, sizeof *t->quantiles);
    t->mean = options.mean = calloc(sequences + 1, sizeof *t->mean);
    t->alive = options.alive = calloc(sequences + 1, sizeof *t->alive);
    const char *span = cli_model_property(t->model, "when.span");
    t->span = span ? strtod(span, NULL) : INFINITY;
    t->probability = calloc(sequences * horizons + 1, sizeof *t->probability);
    bool types = !t->no_types && horizons > 0;
    t->by_type = types ? calloc(sequences * horizons * (size_t)t->types + 1, sizeof *t->by_type) : NULL;
    if (!t->start || !t->quantiles || !t->mean || !t->alive || !t->probability || (types && !t->by_type))
        return cli_fail("out of memory");
    lapse_status status =
        lapse_when_all(t->model, t->history, &options, t->start, t->quantiles, t->probability, t->by_type, &error);
    cli_bar_wipe(&bar);
    return status == LAPSE_OK ? CLI_DONE : cli_error(&error);
}

int cli_times_report(const cli_times *t)
{
    cli_unanswered none = {0};
    for (int64_t i = 0; i < lapse_dataset_sequence_count(t->history); i++)
        cli_unanswered_add(&none, i, !isnan(t->start[i]));
    return cli_unanswered_report(&none, t->history);
}

void cli_times_clear(cli_times *t)
{
    free(t->start);
    free(t->quantiles);
    free(t->mean);
    free(t->alive);
    free(t->probability);
    free(t->by_type);
    lapse_dataset_close(t->history);
    lapse_model_free(t->model);
}

static const char *name_of(const cli_times *t, int64_t sequence)
{
    return lapse_dataset_sequence_name(t->history, sequence);
}

/* Whether a quantile lies within as long a time as the training data covers: what comes later it cannot know. */
static bool is_known(const cli_times *t, int64_t sequence, double time)
{
    return time - t->start[sequence] <= t->span;
}

/* A time for people: without fractions of a second where it is not near. */
static cli_words time_text(const cli_times *t, int64_t sequence, double time)
{
    return cli_timestamp(time - t->start[sequence] > 60 ? round(time) : time);
}

static cli_words quantile_text(const cli_times *t, int64_t sequence, double time)
{
    cli_words later = {"later"};
    return is_known(t, sequence, time) ? time_text(t, sequence, time) : later;
}

static const double *types_of(const cli_times *t, int64_t sequence, int horizon)
{
    return t->by_type + (sequence * t->within.count + horizon) * t->types;
}

/* "view A 12.3 %, buy A 4.0 %" */
static void add_types(cli_table *table, const cli_times *t, int64_t sequence, int horizon)
{
    char text[400] = "";
    size_t used = 0;
    cli_choice top[16];
    int64_t count = t->top < 16 ? t->top : 16;
    cli_choices_top(types_of(t, sequence, horizon), t->types, top, count);
    for (int64_t i = 0; i < count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.40s %s", i ? ", " : "",
                                 lapse_model_event_type_name(t->model, top[i].type),
                                 cli_percent(top[i].probability, 1).text);
    cli_table_add(table, "%s", text);
}

bool cli_times_table(const cli_times *t, FILE *file)
{
    enum { FIRST = 7 };
    char align[FIRST + 2 * CLI_HORIZONS + 1] = "llllllr";
    int width = t->by_type ? 2 : 1;
    for (int h = 0; h < t->within.count; h++) {
        align[FIRST + h * width] = 'r';
        align[FIRST + h * width + width - 1] = width == 2 ? 'l' : 'r';
    }
    align[FIRST + t->within.count * width] = 0;
    cli_table table = {.align = align};
    static const char *const headings[] = {"sequence", "from", "median", "mean", "10 %", "90 %", "alive"};
    for (int i = 0; i < FIRST; i++)
        cli_table_add(&table, "%s", headings[i]);
    for (int h = 0; h < t->within.count; h++) {
        cli_table_add(&table, "within %s", t->within.text[h]);
        if (t->by_type)
            cli_table_add(&table, "of these");
    }
    for (int64_t i = 0; i < t->shown; i++) {
        const double *q = t->quantiles + i * CLI_QUANTILES;
        if (isnan(t->start[i]))
            continue;
        cli_table_add(&table, "%s", name_of(t, i));
        cli_table_add(&table, "%s", cli_timestamp(t->start[i]).text);
        cli_table_add(&table, "%s", quantile_text(t, i, q[CLI_MEDIAN]).text);
        cli_table_add(&table, "%s", time_text(t, i, t->mean[i]).text);
        cli_table_add(&table, "%s", quantile_text(t, i, q[CLI_LOW]).text);
        cli_table_add(&table, "%s", quantile_text(t, i, q[CLI_HIGH]).text);
        cli_table_add(&table, "%s", cli_percent(t->alive[i], 1).text);
        for (int h = 0; h < t->within.count; h++) {
            cli_table_add(&table, "%s", cli_percent(t->probability[i * t->within.count + h], 1).text);
            if (t->by_type)
                add_types(&table, t, i, h);
        }
    }
    return cli_table_print(&table, file, 0);
}

/* "p10" */
static cli_words quantile_name(int k)
{
    cli_words words;
    snprintf(words.text, sizeof words.text, "p%.0f", 100 * cli_quantile_levels[k]);
    return words;
}

/* Times are ISO 8601, durations days from the start. Empty cells: later than the training data can show. */
bool cli_times_csv(const cli_times *t, FILE *file)
{
    fputs("sequence,from", file);
    for (int k = 0; k < CLI_QUANTILES; k++)
        fprintf(file, ",%s", quantile_name(k).text);
    for (int k = 0; k < CLI_QUANTILES; k++)
        fprintf(file, ",%s_days", quantile_name(k).text);
    fputs(",mean_days,alive", file);
    for (int h = 0; h < t->within.count; h++)
        fprintf(file, ",within_%s", t->within.text[h]);
    fputc('\n', file);
    for (int64_t i = 0; i < lapse_dataset_sequence_count(t->history); i++) {
        const double *q = t->quantiles + i * CLI_QUANTILES;
        if (isnan(t->start[i]))
            continue;
        cli_csv_field(file, name_of(t, i), t->csv_safe);
        fprintf(file, ",%s", cli_timestamp(t->start[i]).text);
        for (int k = 0; k < CLI_QUANTILES; k++)
            fprintf(file, ",%s", is_known(t, i, q[k]) ? cli_timestamp(q[k]).text : "");
        for (int k = 0; k < CLI_QUANTILES; k++)
            is_known(t, i, q[k]) ? fprintf(file, ",%.6g", (q[k] - t->start[i]) / 86400) : fputc(',', file);
        fprintf(file, ",%.6g,%.9g", (t->mean[i] - t->start[i]) / 86400, t->alive[i]);
        for (int h = 0; h < t->within.count; h++)
            fprintf(file, ",%.9g", t->probability[i * t->within.count + h]);
        fputc('\n', file);
    }
    return true;
}

/* top: space for the event types to show; NULL: none. */
static void json_horizon(const cli_times *t, cli_json *json, int64_t sequence, int horizon, cli_choice *top)
{
    cli_json_object(json, NULL);
    cli_json_text(json, "within", t->within.text[horizon]);
    cli_json_number(json, "seconds", t->within.seconds[horizon], 15);
    cli_json_number(json, "probability", t->probability[sequence * t->within.count + horizon], 9);
    if (top) {
        cli_choices_top(types_of(t, sequence, horizon), t->types, top, t->top);
        cli_json_array(json, "top");
        for (int64_t i = 0; i < t->top; i++) {
            cli_json_object(json, NULL);
            cli_json_text(json, "event", lapse_model_event_type_name(t->model, top[i].type));
            cli_json_number(json, "probability", top[i].probability, 9);
            cli_json_end(json, '}');
        }
        cli_json_end(json, ']');
    }
    cli_json_end(json, '}');
}

bool cli_times_list(const cli_times *t, FILE *file)
{
    cli_json json = {.file = file};
    cli_choice *top = t->by_type ? calloc((size_t)t->top + 1, sizeof *top) : NULL;
    if (t->by_type && !top)
        return false;
    cli_json_object(&json, NULL);
    cli_json_text(&json, "model", t->model_file);
    cli_json_text(&json, "history", t->history_file);
    cli_json_array(&json, "sequences");
    for (int64_t i = 0; i < lapse_dataset_sequence_count(t->history); i++) {
        const double *q = t->quantiles + i * CLI_QUANTILES;
        cli_json_object(&json, NULL);
        cli_json_text(&json, "sequence", name_of(t, i));
        cli_json_text(&json, "from", isnan(t->start[i]) ? NULL : cli_timestamp(t->start[i]).text);
        for (int k = 0; k < CLI_QUANTILES; k++)
            cli_json_text(&json, quantile_name(k).text, is_known(t, i, q[k]) ? cli_timestamp(q[k]).text : NULL);
        for (int k = 0; k < CLI_QUANTILES; k++) {
            char name[80];
            snprintf(name, sizeof name, "%s_days", quantile_name(k).text);
            cli_json_number(&json, name, is_known(t, i, q[k]) ? (q[k] - t->start[i]) / 86400 : NAN, 6);
        }
        cli_json_number(&json, "mean_days", (t->mean[i] - t->start[i]) / 86400, 6);
        cli_json_number(&json, "alive", t->alive[i], 9);
        if (t->within.count > 0)
            cli_json_array(&json, "within");
        for (int h = 0; h < t->within.count; h++)
            json_horizon(t, &json, i, h, top);
        if (t->within.count > 0)
            cli_json_end(&json, ']');
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
    free(top);
    return true;
}
