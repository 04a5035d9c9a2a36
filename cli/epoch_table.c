/* epoch_table.c: see epoch_table.h. */
#include "epoch_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "console.h"
#include "lookup.h"
#include "table.h"

enum { CHART_WIDTH = 60, CHART_HEIGHT = 8 };

/* The history of one of a model's networks. */
typedef struct network {
    bool (*history)(const lapse_model *model, int index, lapse_epoch *epoch);
    const char *best, *member; /* the property of its best epoch; the member of a JSON object */
} network;

static const network networks[] = {{lapse_model_history, "score.epoch", "history"},
                                   {lapse_model_times_history, "score.time.epoch", "times_history"}};
enum { NETWORKS = sizeof networks / sizeof *networks };

static int best_epoch(const lapse_model *model, const network *n)
{
    const char *text = cli_model_property(model, n->best);
    return text ? (int)strtol(text, NULL, 10) : 0;
}

/* ------------------------------------------------------------------------------------------------- chart ----- */

/* A chart of CHART_HEIGHT lines. Several epochs may share a column. */
typedef struct chart {
    double low, high; /* of the values */
    int columns, epochs;
    char cells[CHART_HEIGHT][CHART_WIDTH];
} chart;

static void widen(chart *c, double value)
{
    if (isfinite(value)) {
        c->low = fmin(c->low, value);
        c->high = fmax(c->high, value);
    }
}

static void plot(chart *c, int epoch, double value, char mark)
{
    if (!isfinite(value))
        return;
    int column = c->epochs > c->columns ? (int)((int64_t)(epoch - 1) * c->columns / c->epochs) : epoch - 1;
    double height = c->high > c->low ? (value - c->low) / (c->high - c->low) : 0.5;
    char *cell = &c->cells[CHART_HEIGHT - 1 - (int)lround(height * (CHART_HEIGHT - 1))][column];
    if (*cell != '*')
        *cell = mark;
}

/* Training loss and the metric are in the same unit: nats. */
static bool shows_loss(const char *metric)
{
    return strcmp(metric, "log-loss") == 0 || strcmp(metric, "time-loss") == 0;
}

static void print_chart(FILE *file, const lapse_model *model, const network *n, const char *metric)
{
    chart c = {.low = INFINITY, .high = -INFINITY};
    lapse_epoch epoch;
    int best = best_epoch(model, n);
    memset(c.cells, ' ', sizeof c.cells);
    for (; n->history(model, c.epochs, &epoch); c.epochs++) {
        widen(&c, epoch.score);
        if (shows_loss(metric))
            widen(&c, epoch.loss);
    }
    c.columns = c.epochs < CHART_WIDTH ? c.epochs : CHART_WIDTH;
    for (int i = 0; n->history(model, i, &epoch); i++) {
        if (shows_loss(metric))
            plot(&c, i + 1, epoch.loss, '.');
        plot(&c, i + 1, epoch.score, i + 1 == best ? '*' : 'o');
    }
    for (int row = 0; row < CHART_HEIGHT; row++) {
        if (row == 0 || row == CHART_HEIGHT - 1)
            fprintf(file, "%9.4f |", row == 0 ? c.high : c.low);
        else
            fprintf(file, "%9s |", "");
        int end = c.columns;
        while (end > 0 && c.cells[row][end - 1] == ' ')
            end--;
        fprintf(file, "%.*s\n", end, c.cells[row]);
    }
    fprintf(file, "%9s +%.*s\n", "", c.columns, "------------------------------------------------------------");
    fprintf(file, "%9s  epoch 1 to %d. o validation %s, * its best%s\n", "", c.epochs, metric,
            shows_loss(metric) ? ", . training loss" : "");
}

static bool print_table(FILE *file, const lapse_model *model, const network *n)
{
    static const char *const align[] = {"rrl", "rrrl", "rrrrl", "rrrrrl", "rrrrrrl"};
    cli_table table = {.align = NULL};
    lapse_epoch epoch;
    int best = best_epoch(model, n);
    for (int i = 0; n->history(model, i, &epoch); i++) {
        bool both = strcmp(epoch.metrics[0].target, epoch.metrics[epoch.metric_count - 1].target) != 0;
        if (i == 0) {
            table.align = align[epoch.metric_count < 4 ? epoch.metric_count : 4];
            cli_table_add(&table, "epoch");
            cli_table_add(&table, "loss");
            for (int m = 0; m < epoch.metric_count; m++)
                cli_table_add(&table, "%s%s%s", both ? epoch.metrics[m].target : "", both ? " " : "",
                              epoch.metrics[m].name);
            cli_table_add(&table, "%s", "");
        }
        cli_table_add(&table, "%d", epoch.epoch);
        cli_table_add(&table, "%.4f", epoch.loss);
        for (int m = 0; m < epoch.metric_count; m++)
            cli_table_add(&table, "%.4f", epoch.metrics[m].value);
        cli_table_add(&table, "%s", epoch.epoch == best ? "best" : "");
    }
    return cli_table_print(&table, file, 0);
}

bool cli_history_print(FILE *file, const lapse_model *model, bool all)
{
    lapse_epoch epoch;
    bool good = true;
    for (int i = 0; i < NETWORKS; i++) {
        const network *n = &networks[i];
        const char *metric = i == 0 ? cli_model_property(model, "train.select") : NULL;
        if (!n->history(model, 0, &epoch))
            continue;
        fputc('\n', file);
        print_chart(file, model, n, metric ? metric : epoch.metrics[0].name);
        if (all)
            fputc('\n', file);
        good = (!all || print_table(file, model, n)) && good;
    }
    return good;
}

/* --------------------------------------------------------------------------------------------------- JSON ----- */

static void metric_json(cli_json *json, const lapse_metric *metric)
{
    char key[32];
    snprintf(key, sizeof key, "%s", metric->name);
    for (char *c = key; *c; c++)
        *c = *c == '-' ? '_' : *c;
    cli_json_number(json, key, metric->value, 9);
}

/* The members of an epoch's object. Of two targets, each has its own object. */
static void epoch_json(cli_json *json, const lapse_epoch *epoch, bool best, double seconds)
{
    bool both = strcmp(epoch->metrics[0].target, epoch->metrics[epoch->metric_count - 1].target) != 0;
    cli_json_whole(json, "epoch", epoch->epoch);
    cli_json_number(json, "loss", epoch->loss, 9);
    cli_json_object(json, "valid");
    for (int m = 0; m < epoch->metric_count; m++) {
        bool first = m == 0 || strcmp(epoch->metrics[m].target, epoch->metrics[m - 1].target) != 0;
        if (both && first && m > 0)
            cli_json_end(json, '}');
        if (both && first)
            cli_json_object(json, epoch->metrics[m].target);
        metric_json(json, &epoch->metrics[m]);
    }
    if (both)
        cli_json_end(json, '}');
    cli_json_end(json, '}');
    cli_json_number(json, "score", epoch->score, 9);
    cli_json_bool(json, "best", best);
    if (!isnan(seconds))
        cli_json_number(json, "seconds", seconds, 4);
}

void cli_history_json(cli_json *json, const lapse_model *model, const cli_epoch_times *times)
{
    lapse_epoch epoch;
    for (int k = 0; k < NETWORKS; k++) {
        const network *n = &networks[k];
        if (!n->history(model, 0, &epoch))
            continue;
        cli_json_array(json, n->member);
        for (int i = 0; n->history(model, i, &epoch); i++) {
            cli_json_object(json, NULL);
            epoch_json(json, &epoch, epoch.epoch == best_epoch(model, n),
                       times && i < times[k].count ? times[k].seconds[i] : (double)NAN);
            cli_json_end(json, '}');
        }
        cli_json_end(json, ']');
    }
}

void cli_epoch_times_add(cli_epoch_times *times, int epoch, double seconds)
{
    double *grown = epoch > times->count ? realloc(times->seconds, (size_t)epoch * sizeof *grown) : times->seconds;
    if (!grown) {
        times->lost = true;
        return;
    }
    times->seconds = grown;
    for (; times->count < epoch; times->count++)
        times->seconds[times->count] = NAN;
    times->seconds[epoch - 1] = seconds;
}

void cli_epoch_times_clear(cli_epoch_times *times)
{
    free(times->seconds);
    *times = (cli_epoch_times){0};
}

/* ---------------------------------------------------------------------------------------------------- log ----- */

/* How a line begins, by network. */
static const char *const LOG_START[NETWORKS] = {"{\"epoch\": ", "{\"network\": \"times\", \"epoch\": "};

/* The network of a line; NETWORKS: it is not of a log. A part of a line is of the first. */
static int network_of(const char *line, size_t length)
{
    int n = 0;
    while (n < NETWORKS && strncmp(line, LOG_START[n], strlen(LOG_START[n]) < length ? strlen(LOG_START[n]) : length) != 0)
        n++;
    return n;
}

/* Finds the newest epoch and the end of its line. A run that was killed may have left a part of a line. False: the file
 * is not a log. */
static bool read_log(FILE *file, int epochs[2], long *end)
{
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    for (ssize_t got; good && (got = getline(&line, &size, file)) > 0;) {
        bool whole = line[got - 1] == '\n';
        int n = network_of(line, (size_t)got);
        good = n < NETWORKS;
        if (!good || !whole)
            break;
        epochs[n] = (int)strtol(line + strlen(LOG_START[n]), NULL, 10);
        *end = ftell(file);
    }
    free(line);
    return good;
}

int cli_log_open(cli_log *log, const char *path, bool resume)
{
    struct stat there;
    long end = 0;
    if (!path)
        return CLI_DONE;
    if (strcmp(path, "-") == 0 || (stat(path, &there) == 0 && !S_ISREG(there.st_mode)))
        return cli_fail("%s: a log goes to a regular file", path);
    log->file = fopen(path, "r+");
    if (!log->file && errno == ENOENT)
        log->file = fopen(path, "w+");
    if (!log->file)
        return cli_fail("%s: cannot write: %s", path, strerror(errno));
    if (!read_log(log->file, log->epochs, &end)) {
        cli_log_close(log);
        return cli_fail("%s: this file is not a log of epochs, and a log would overwrite it; set another --log FILE",
                        path);
    }
    if (!resume)
        log->epochs[0] = log->epochs[1] = 0;
    if (!resume)
        end = 0;
    if (ftruncate(fileno(log->file), end) != 0 || fseek(log->file, end, SEEK_SET) != 0)
        return cli_fail("%s: cannot write: %s", path, strerror(errno));
    return CLI_DONE;
}

void cli_log_write(cli_log *log, const lapse_progress *progress)
{
    const lapse_epoch *epoch = &progress->newest;
    if (!log->file || epoch->epoch <= log->epochs[progress->times])
        return;
    cli_json json = {.file = log->file, .compact = true};
    cli_json_object(&json, NULL);
    if (progress->times)
        cli_json_text(&json, "network", "times");
    epoch_json(&json, epoch, progress->best_epoch == epoch->epoch, progress->seconds);
    cli_json_end(&json, '}');
    if (fflush(log->file) != 0 && log->error == 0)
        log->error = errno;
}

bool cli_log_close(cli_log *log)
{
    if (log->file && fclose(log->file) != 0 && log->error == 0)
        log->error = errno;
    log->file = NULL;
    return log->error == 0;
}
