/* run_log.c: reads the clock times of epochs from the log of a training run: one JSON object per line. */
#include "base/file.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "inspect/inspection.h"

#include <string.h>

enum { EPOCHS_MOST = 10000000 };

/* Whether the line is of the network of times, whose epochs have no seconds here: {"network": "times", ... */
static bool is_of_times(const char *line, const char *end)
{
    static const char start[] = "{\"network\": \"times\", ";
    return (size_t)(end - line) >= sizeof start && memcmp(line, start, sizeof start - 1) == 0;
}

/* Reads {"epoch": N, ..., "seconds": X}. False: it is something else. */
static bool read_line(const char *line, const char *end, int64_t *epoch, double *seconds)
{
    static const char mark[] = "\"seconds\": ";
    lp_json json = {line, end};
    lp_json_text name;
    if (!lp_json_valid(line, (size_t)(end - line)) || !lp_json_take(&json, '{') || !lp_json_string(&json, &name) ||
        name.end - name.begin != 5 || memcmp(name.begin, "epoch", 5) != 0 || !lp_json_take(&json, ':') ||
        !lp_json_integer(&json, epoch) || *epoch < 1 || *epoch > EPOCHS_MOST)
        return false;
    *seconds = NAN;
    for (const char *at = json.at; (size_t)(end - at) > sizeof mark; at++)
        if (memcmp(at, mark, sizeof mark - 1) == 0) {
            const char *begin = at + sizeof mark - 1, *stop = memchr(begin, '}', (size_t)(end - begin));
            return stop && lp_number_parse(begin, stop, seconds) && *seconds >= 0;
        }
    return true;
}

static lapse_status set(double **seconds, int *epochs, size_t *capacity, int64_t epoch, double value,
                        lapse_error *error)
{
    if (!lp_reserve(seconds, capacity, (size_t)epoch, sizeof **seconds))
        return lp_fail_memory(error, "the log of a run", (size_t)epoch * sizeof **seconds);
    for (; *epochs < epoch; (*epochs)++)
        (*seconds)[*epochs] = NAN;
    (*seconds)[epoch - 1] = value;
    return LAPSE_OK;
}

lapse_status lp_run_log_parse(const char *text, size_t size, const char *path, double **seconds, int *epochs,
                              lapse_error *error)
{
    const char *at = text, *end = text + size;
    size_t capacity = 0;
    lapse_status status = LAPSE_OK;
    *seconds = NULL;
    *epochs = 0;
    for (int64_t number = 1; status == LAPSE_OK && at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        int64_t epoch;
        double value;
        if (!stop)
            break;
        if (is_of_times(at, stop)) {
            at = stop + 1;
            continue;
        }
        if (!read_line(at, stop, &epoch, &value) || epoch > number + 1000000)
            status = lp_fail_at(error, LAPSE_ERROR_INPUT, path, number, 0,
                                "this is not the log of a training run: a line is an object with epoch and seconds, as "
                                "`lapse train --log` writes it");
        else
            status = set(seconds, epochs, &capacity, epoch, value, error);
        at = stop + 1;
    }
    if (status == LAPSE_OK)
        return LAPSE_OK;
    lp_free(*seconds);
    *seconds = NULL;
    *epochs = 0;
    return status;
}

lapse_status lp_run_log_read(const char *path, double **seconds, int *epochs, lapse_error *error)
{
    lp_map map;
    LP_TRY(lp_map_open(&map, path, error));
    lapse_status status = lp_run_log_parse(map.data, map.size, path, seconds, epochs, error);
    lp_map_close(&map);
    return status;
}
