/* query_times.c: see query_times.h. */
#include "query_times.h"

#include <lapse.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void srv_times_clear(srv_times *times)
{
    free(times->items);
    *times = (srv_times){0};
}

static bool append(srv_times *times, bool relative, double seconds, const char *field, srv_problem *problem)
{
    if (times->count >= SRV_TIMES_MAX)
        return srv_refuse(problem, 400, field, "%s has more than %d times", field, SRV_TIMES_MAX);
    if ((times->count & 15) == 0) {
        srv_when *items = realloc(times->items, sizeof *items * (size_t)(times->count + 16));
        if (!items)
            return srv_refuse(problem, 503, NULL, "out of memory");
        times->items = items;
    }
    times->items[times->count++] = (srv_when){relative, seconds};
    return true;
}

bool srv_duration_read(const json_t *value, const char *field, double *seconds, srv_problem *problem)
{
    lapse_error error;
    if (json_is_number(value))
        *seconds = json_number_value(value);
    else if (lapse_duration_parse(json_string_value(value), seconds, &error) != LAPSE_OK)
        return srv_refuse(problem, 400, field, "%s: %s", field, error.message);
    if (!(*seconds >= 0 && *seconds < 1e11))
        return srv_refuse(problem, 400, field, "%s must be a duration that is not negative", field);
    return true;
}

/* 1h..30d/20: 20 times after the last event, spaced evenly in log time. */
static bool read_sweep(srv_times *times, const char *text, const char *dots, const char *field, srv_problem *problem)
{
    char from_text[48], to_text[48];
    double from, to;
    const char *begin = text + (*text == '+'), *end = dots + 2 + (dots[2] == '+'), *slash = strchr(end, '/');
    char *rest = NULL;
    long count = slash ? strtol(slash + 1, &rest, 10) : 0;
    if (!slash || *rest || count < 2 || count > SRV_TIMES_MAX || slash - end >= 48 || dots - begin >= 48)
        return srv_refuse(problem, 400, field, "%s: a sweep is FROM..TO/N, such as 1h..30d/20, with 2 to %d times",
                          field, SRV_TIMES_MAX);
    snprintf(from_text, sizeof from_text, "%.*s", (int)(dots - begin), begin);
    snprintf(to_text, sizeof to_text, "%.*s", (int)(slash - end), end);
    lapse_error error;
    if (lapse_duration_parse(from_text, &from, &error) != LAPSE_OK ||
        lapse_duration_parse(to_text, &to, &error) != LAPSE_OK)
        return srv_refuse(problem, 400, field, "%s: %s", field, error.message);
    if (!(from > 0 && to > from && to < 1e11))
        return srv_refuse(problem, 400, field, "%s: a sweep goes from a shorter duration above 0 to a longer one",
                          field);
    for (long i = 0; i < count; i++)
        if (!append(times, true, i == count - 1 ? to : from * pow(to / from, (double)i / (double)(count - 1)), field,
                    problem))
            return false;
    return true;
}

static bool finite_time(double time, const char *field, srv_problem *problem)
{
    return fabs(time) < 1e12 || srv_refuse(problem, 400, field, "%s is not a time: unix seconds or ISO 8601", field);
}

bool srv_time_read(const json_t *value, const char *field, double now, double *time, srv_problem *problem)
{
    const char *text = json_string_value(value);
    lapse_error error;
    if (!text) {
        *time = json_number_value(value);
    } else if (strcmp(text, "now") == 0) {
        *time = now;
    } else if (lapse_time_parse(text, time, &error) != LAPSE_OK) {
        return srv_refuse(problem, 400, field, "%s: %s", field, error.message);
    }
    return finite_time(*time, field, problem);
}

static bool read_one(const json_t *value, const char *field, double now, srv_times *times, srv_problem *problem)
{
    const char *text = json_string_value(value), *dots = text ? strstr(text, "..") : NULL;
    double seconds;
    lapse_error error;
    if (dots)
        return read_sweep(times, text, dots, field, problem);
    if (text && text[0] == '+') {
        if (lapse_duration_parse(text + 1, &seconds, &error) != LAPSE_OK)
            return srv_refuse(problem, 400, field, "%s: %s", field, error.message);
        return append(times, true, seconds, field, problem);
    }
    return srv_time_read(value, field, now, &seconds, problem) && append(times, false, seconds, field, problem);
}

bool srv_times_read(const json_t *value, const char *field, double now, srv_times *times, srv_problem *problem)
{
    if (!value)
        return append(times, false, now, field, problem);
    if (!json_is_array(value))
        return read_one(value, field, now, times, problem);
    size_t i;
    json_t *element;
    if (json_array_size(value) == 0)
        return srv_refuse(problem, 400, field, "%s is empty", field);
    json_array_foreach(value, i, element) if (!read_one(element, field, now, times, problem)) return false;
    return true;
}
