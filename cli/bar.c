/* bar.c: see bar.h. A line that wraps cannot be redrawn, so pieces that do not fit into the terminal's width are left out,
 * the least important first. The bar itself takes the remaining columns. */
#include "bar.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "console.h"

#define REDRAW_SECONDS 0.1
#define SHOW_AFTER_SECONDS 2
#define ANNOUNCE_AFTER_SECONDS 3
#define LONG_RUN_SECONDS 60
#define BAR_MIN 8
#define BAR_MAX 30

/* The pieces of a line, in the order in which they are printed. */
typedef struct pieces {
    char epoch[128], loss[128], score[256], best[128], rate[128], left[320];
} pieces;

static cli_words metric_value(const char *name, double value)
{
    cli_words words;
    if (strcmp(name, "accuracy") == 0)
        return cli_percent(value, 1);
    snprintf(words.text, sizeof words.text, "%.4f", value);
    return words;
}

cli_words cli_metric(const char *name, double value)
{
    cli_words words;
    snprintf(words.text, sizeof words.text, "%.20s %.40s", name, metric_value(name, value).text);
    return words;
}

/* All metrics of the newest epoch; each target's are named if there are two, but for "time-loss", which has the name already. */
static void describe_metrics(const lapse_epoch *epoch, char *out, size_t size)
{
    size_t used = 0;
    bool targets = epoch->metric_count > 0 &&
                   strcmp(epoch->metrics[0].target, epoch->metrics[epoch->metric_count - 1].target) != 0;
    for (int i = 0; i < epoch->metric_count && used < size; i++) {
        const lapse_metric *metric = &epoch->metrics[i];
        bool first = i == 0 || strcmp(metric->target, epoch->metrics[i - 1].target) != 0;
        bool named = targets && first && strncmp(metric->name, metric->target, strlen(metric->target)) != 0;
        used += (size_t)snprintf(out + used, size - used, "%s%s%s", i > 0 ? ", " : " valid ",
                                 named ? metric->target : "", named ? " " : "");
        if (used < size)
            used += (size_t)snprintf(out + used, size - used, "%s", cli_metric(metric->name, metric->value).text);
    }
}

cli_bar cli_bar_new(const char *label)
{
    cli_bar bar = {.label = label, .terminal = isatty(STDERR_FILENO) == 1, .drawn = -1e9};
    return bar;
}

static pieces describe(const cli_bar *bar, const lapse_progress *p)
{
    pieces out;
    memset(&out, 0, sizeof out);
    snprintf(out.epoch, sizeof out.epoch, "%s%s%sepoch %d/%d", bar->label ? bar->label : "", bar->label ? ": " : "",
             p->times ? "times: " : "", p->epoch, p->epochs);
    if (!isnan(p->loss))
        snprintf(out.loss, sizeof out.loss, " loss %.3f", p->loss);
    describe_metrics(&p->newest, out.score, sizeof out.score);
    if (!isnan(p->best_score))
        snprintf(out.best, sizeof out.best, " (best %s, epoch %d)", metric_value(p->score_name, p->best_score).text,
                 p->best_epoch);
    if (p->events_per_second > 0)
        snprintf(out.rate, sizeof out.rate, " %s events/s", cli_rate(p->events_per_second).text);
    return out;
}

static int length(const pieces *p)
{
    return (int)(strlen(p->epoch) + strlen(p->loss) + strlen(p->score) + strlen(p->best) + strlen(p->rate) +
                 strlen(p->left));
}

/* "45 s", "12 min", "3.5 h". */
static cli_words span(double seconds)
{
    cli_words words;
    if (seconds < 100)
        snprintf(words.text, sizeof words.text, "%.0f s", ceil(seconds));
    else if (seconds < 100 * 60)
        snprintf(words.text, sizeof words.text, "%.0f min", seconds / 60);
    else
        snprintf(words.text, sizeof words.text, "%.1f h", seconds / 3600);
    return words;
}

/* If all epochs run; training ends earlier if no later epoch is better. */
static void describe_end(const lapse_progress *p, char *out, size_t size)
{
    bool sure = strcmp(span(p->seconds_left).text, span(p->seconds_left_most).text) == 0;
    snprintf(out, size, sure ? " %s left" : " at most %s left", span(p->seconds_left_most).text);
}

static void draw(cli_bar *bar, const lapse_progress *progress)
{
    pieces p = describe(bar, progress);
    describe_end(progress, p.left, sizeof p.left);
    if (!bar->label) /* the line of the epoch has them */
        p.score[0] = p.best[0] = 0;
    char *const spare[] = {p.rate, p.best, p.score, p.left, p.loss};
    char cells[BAR_MAX + 1] = "";
    int width = cli_width(stderr) - 1;
    for (size_t i = 0; i < sizeof spare / sizeof *spare && length(&p) + BAR_MIN + 3 > width; i++)
        spare[i][0] = 0;
    int columns = width - length(&p) - 3;
    columns = columns > BAR_MAX ? BAR_MAX : columns;
    if (columns >= BAR_MIN) {
        int full = progress->steps > 0 ? (int)(progress->step * columns / progress->steps) : 0;
        memset(cells, ' ', (size_t)columns);
        memset(cells, '=', (size_t)(full > columns ? columns : full));
        if (full < columns)
            cells[full] = '>';
        cells[columns] = 0;
    }
    fprintf(stderr, "\r%.*s", width > 0 ? width : 1, p.epoch);
    if (columns >= BAR_MIN)
        fprintf(stderr, " [%s]", cells);
    fprintf(stderr, "%s%s%s%s%s\033[K", p.loss, p.score, p.best, p.rate, p.left);
    fflush(stderr);
    bar->open = true;
    bar->drawn = cli_clock();
}

/* Says once, some seconds into the first epoch, how long a run of minutes takes. */
static void announce(cli_bar *bar, const lapse_progress *p)
{
    if (bar->announced || p->seconds < ANNOUNCE_AFTER_SECONDS)
        return;
    bar->announced = true;
    if (p->epoch_end || p->seconds_left_most < LONG_RUN_SECONDS)
        return;
    cli_bar_wipe(bar);
    bool sure = strcmp(span(p->seconds_left).text, span(p->seconds_left_most).text) == 0;
    cli_note("an epoch takes about %s; %d epochs end in %s%s", span(p->epoch_seconds).text, p->epochs,
             span(p->seconds_left_most).text, sure ? "" : ", or earlier by early stopping");
}

/* Without a terminal: the epoch that ends each quarter of a network's epochs, and the first one of a long run. */
static bool is_due(cli_bar *bar, const lapse_progress *p)
{
    int quarter = (p->times ? 4 : 0) + (p->epochs > 0 ? (int)(4 * (int64_t)p->epoch / p->epochs) : 4);
    bool long_run = p->epoch == 1 && p->seconds_left_most >= LONG_RUN_SECONDS;
    bool due = bar->terminal || quarter > bar->quarter || long_run;
    bar->quarter = quarter > bar->quarter ? quarter : bar->quarter;
    return due;
}

void cli_bar_update(cli_bar *bar, const lapse_progress *progress)
{
    if (!bar->label)
        announce(bar, progress);
    if (progress->epoch_end && !is_due(bar, progress))
        return;
    if (progress->epoch_end && (!bar->label || !bar->terminal)) {
        pieces p = describe(bar, progress);
        if (progress->seconds_left_most >= LONG_RUN_SECONDS)
            describe_end(progress, p.left, sizeof p.left);
        cli_bar_wipe(bar);
        fprintf(stderr, "%s%s%s%s%s, %s%s%s\n", p.epoch, p.loss, p.score, p.best, p.rate,
                cli_seconds(progress->seconds).text, *p.left ? "," : "", p.left);
    } else if (bar->terminal && (progress->epoch_end || cli_clock() - bar->drawn >= REDRAW_SECONDS)) {
        draw(bar, progress);
    }
}

void cli_bar_fraction(cli_bar *bar, const char *what, double fraction, double seconds, double left)
{
    int quarter = (int)(4 * fraction);
    double clock = cli_clock();
    if (seconds < SHOW_AFTER_SECONDS || (bar->terminal ? clock - bar->drawn < REDRAW_SECONDS : quarter <= bar->quarter))
        return;
    bar->quarter = quarter;
    bar->drawn = clock;
    if (!bar->terminal) {
        cli_note("%s, %s; %s left", what, cli_seconds(seconds).text, span(left).text);
        return;
    }
    char line[384];
    snprintf(line, sizeof line, "%.160s, %.0f %%, %s left", what, 100 * fraction, span(left).text);
    int width = cli_width(stderr) - 1;
    fprintf(stderr, "\r%.*s\033[K", width > 0 ? width : 1, line);
    fflush(stderr);
    bar->open = true;
}

void cli_bar_end(cli_bar *bar)
{
    if (bar->open)
        fputc('\n', stderr);
    bar->open = false;
}

void cli_bar_wipe(cli_bar *bar)
{
    if (bar->open)
        fputs("\r\033[K", stderr);
    bar->open = false;
}
