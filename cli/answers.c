/* answers.c: see answers.h. */
#include "answers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static lapse_status refuse(lapse_error *error, lapse_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static lapse_status refuse(lapse_error *error, lapse_status status, const char *format, ...)
{
    va_list arguments;
    memset(error, 0, sizeof *error);
    error->status = status;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return status;
}

static lapse_status append(cli_when_list *list, const char *text, bool relative, double seconds, lapse_error *error)
{
    char *copy = strdup(text);
    cli_when *items = copy ? realloc(list->items, sizeof *items * (size_t)(list->count + 1)) : NULL;
    if (!items) {
        free(copy);
        return refuse(error, LAPSE_ERROR_MEMORY, "out of memory");
    }
    list->items = items;
    list->items[list->count++] = (cli_when){copy, relative, seconds};
    return LAPSE_OK;
}

/* ---- sweeps ---- */

enum { LABEL_SIZE = 48, FEWEST_DIGITS = 3, MOST_DIGITS = 15 };

typedef struct sweep {
    char from_text[LABEL_SIZE], to_text[LABEL_SIZE]; /* without a plus sign */
    double from, to;                                 /* seconds */
    int count;
} sweep;

/* "+1.41h": a duration with this many significant digits, but no digit before the point rounded. Returns its seconds. */
static double round_duration(double seconds, int digits, char label[LABEL_SIZE])
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}, {0.001, "ms"}};
    size_t unit = 0, last = sizeof units / sizeof *units - 1;
    while (unit < last && seconds < units[unit].seconds)
        unit++;
    double value = seconds / units[unit].seconds;
    int decimals = digits - 1 - (int)floor(log10(value));
    snprintf(label, LABEL_SIZE, "+%.*f", decimals > 0 ? decimals : 0, value);
    if (decimals > 0) {
        size_t length = strlen(label);
        while (label[length - 1] == '0')
            label[--length] = 0;
        if (label[length - 1] == '.')
            label[--length] = 0;
    }
    size_t length = strlen(label);
    snprintf(label + length, LABEL_SIZE - length, "%s", units[unit].name);
    double rounded = seconds;
    lapse_duration_parse(label + 1, &rounded, NULL);
    return rounded;
}

/* The time number `index` of a sweep. */
static double sweep_time(const sweep *s, int index, int digits, char label[LABEL_SIZE])
{
    if (index == 0 || index == s->count - 1) {
        snprintf(label, LABEL_SIZE, "+%.40s", index == 0 ? s->from_text : s->to_text);
        return index == 0 ? s->from : s->to;
    }
    return round_duration(s->from * pow(s->to / s->from, (double)index / (s->count - 1)), digits, label);
}

static bool increases(const sweep *s, int digits)
{
    char label[LABEL_SIZE];
    double before = 0;
    for (int i = 0; i < s->count; i++) {
        double time = sweep_time(s, i, digits, label);
        if (!(time > before))
            return false;
        before = time;
    }
    return true;
}

/* Parses one end of a sweep, from the first `length` bytes of text. */
static lapse_status parse_end(const char *text, size_t length, char copy[LABEL_SIZE], double *seconds,
                              lapse_error *error)
{
    if (length > 0 && *text == '+') {
        text++;
        length--;
    }
    snprintf(copy, LABEL_SIZE, "%.*s", length < LABEL_SIZE ? (int)length : 0, text);
    if (lapse_duration_parse(copy, seconds, error) != LAPSE_OK)
        return refuse(
            error, LAPSE_ERROR_USAGE,
            "'%.*s' is not a duration: a sweep is FROM..TO/N, two durations after the last event and a number "
            "of times, such as 1h..30d/20",
            length < 80 ? (int)length : 80, text);
    return LAPSE_OK;
}

static lapse_status parse_sweep(const char *text, sweep *s, lapse_error *error)
{
    const char *dots = strstr(text, ".."), *slash = strrchr(text, '/');
    if (!slash || slash < dots)
        return refuse(error, LAPSE_ERROR_USAGE,
                      "the number of times is missing: a sweep is FROM..TO/N, such as 1h..30d/20");
    lapse_status status = parse_end(text, (size_t)(dots - text), s->from_text, &s->from, error);
    if (status == LAPSE_OK)
        status = parse_end(dots + 2, (size_t)(slash - dots - 2), s->to_text, &s->to, error);
    if (status != LAPSE_OK)
        return status;
    size_t digits = strspn(slash + 1, "0123456789");
    long count = digits > 0 && digits < 9 && !slash[1 + digits] ? strtol(slash + 1, NULL, 10) : 0;
    if (count < 2 || count > CLI_SWEEP_MAX)
        return refuse(error, LAPSE_ERROR_USAGE, "a sweep has 2 to %d times, not '%.40s'", CLI_SWEEP_MAX, slash + 1);
    s->count = (int)count;
    if (!(s->from > 0))
        return refuse(error, LAPSE_ERROR_USAGE,
                      "a sweep is spaced evenly in log time and cannot begin at 0; begin at 1s, for instance");
    if (!(s->to > s->from))
        return refuse(error, LAPSE_ERROR_USAGE,
                      "a sweep goes from a shorter to a longer duration, but %.40s is not "
                      "shorter than %.40s",
                      s->from_text, s->to_text);
    return LAPSE_OK;
}

static lapse_status add_sweep(cli_when_list *list, const char *text, lapse_error *error)
{
    sweep s = {0};
    int digits = FEWEST_DIGITS;
    lapse_status status = parse_sweep(text, &s, error);
    if (status != LAPSE_OK)
        return status;
    while (digits < MOST_DIGITS && !increases(&s, digits))
        digits++;
    if (!increases(&s, digits))
        return refuse(error, LAPSE_ERROR_USAGE, "%.40s and %.40s are too close for a sweep of %d times", s.from_text,
                      s.to_text, s.count);
    list->sweep = true;
    for (int i = 0; i < s.count && status == LAPSE_OK; i++) {
        char label[LABEL_SIZE];
        double seconds = sweep_time(&s, i, digits, label);
        status = append(list, label, true, seconds, error);
    }
    return status;
}

/* ---- query times ---- */

lapse_status cli_when_add(cli_when_list *list, const char *text, double now, const char *zone, lapse_error *error)
{
    double seconds;
    lapse_status status;
    if (strcmp(text, "now") == 0)
        return append(list, text, false, now, error);
    if (strstr(text, ".."))
        return add_sweep(list, text, error);
    if (text[0] == '+') {
        status = lapse_duration_parse(text + 1, &seconds, error);
        return status == LAPSE_OK ? append(list, text, true, seconds, error) : status;
    }
    status = lapse_time_parse_zone(text, zone, &seconds, error);
    if (status == LAPSE_OK)
        return append(list, text, false, seconds, error);
    if (lapse_duration_parse(text, &seconds, NULL) == LAPSE_OK && seconds >= 0)
        return refuse(error, LAPSE_ERROR_USAGE,
                      "this is a duration; +%.40s is that long after the last event of each sequence", text);
    return status;
}

lapse_status cli_now_parse(cli_now *now, const char *text, const char *zone, lapse_error *error)
{
    static const char *const names[] = {[CLI_NOW_CALL] = "now", [CLI_NOW_LAST] = "last", [CLI_NOW_END] = "end"};
    for (int type = CLI_NOW_CALL; type <= CLI_NOW_END; type++)
        if (strcmp(text, names[type]) == 0) {
            now->type = (cli_now_type)type;
            return LAPSE_OK;
        }
    now->type = CLI_NOW_TIME;
    return lapse_time_parse_zone(text, zone, &now->time, error);
}

double cli_now_time(const cli_now *now, const lapse_dataset *history)
{
    double end = NAN;
    if (now->type == CLI_NOW_TIME)
        return now->time;
    if (now->type == CLI_NOW_CALL)
        return (double)time(NULL);
    for (int64_t i = 0; now->type == CLI_NOW_END && i < lapse_dataset_sequence_count(history); i++) {
        const double *times;
        const int32_t *types;
        int64_t count;
        lapse_dataset_sequence(history, i, &times, &types, &count);
        end = fmax(end, times[count - 1]); /* the other one, if one is NaN */
    }
    return end;
}

void cli_when_clear(cli_when_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->items[i].text);
    free(list->items);
    *list = (cli_when_list){0};
}

void cli_choices_top(const double *probabilities, int64_t types, cli_choice *top, int64_t count)
{
    int64_t filled = 0;
    for (int64_t type = 0; type < types; type++) {
        if (filled == count && !(probabilities[type] > top[count - 1].probability))
            continue;
        int64_t rank = filled < count ? filled++ : count - 1;
        for (; rank > 0 && probabilities[type] > top[rank - 1].probability; rank--)
            top[rank] = top[rank - 1];
        top[rank].type = type;
        top[rank].probability = probabilities[type];
    }
}
