/* answers.h: query times, and the top-k event types of a prediction. */
#ifndef CLI_ANSWERS_H
#define CLI_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lapse.h>

/* A query time: absolute, or relative to the last event of each sequence. */
typedef struct cli_when {
    char *text; /* as typed; of a sweep's time, as it could be typed; owned */
    bool relative;
    double seconds; /* since 1970-01-01 UTC, or since the last event */
} cli_when;

/* Query times in the order of the command line. Initialize with {0}. */
typedef struct cli_when_list {
    cli_when *items; /* owned */
    int count;
    bool sweep; /* some of them come from a sweep */
} cli_when_list;

/* The longest sweep. */
enum { CLI_SWEEP_MAX = 1000 };

/* Appends the query times of one --at: "+3d", Unix seconds, ISO 8601, "now" (the given time), or a sweep "1h..30d/20": 20 times
 * after the last event, spaced evenly in log time; those between the ends are rounded to the fewest digits, from 3, that
 * keep them apart. A timestamp without a zone is one of the time zone, NULL: UTC. */
lapse_status cli_when_add(cli_when_list *list, const char *text, double now, const char *zone, lapse_error *error);
void cli_when_clear(cli_when_list *list);

/* --now: the time up to which nothing has happened since the last event of each history. */
typedef enum cli_now_type { CLI_NOW_TIME, CLI_NOW_CALL, CLI_NOW_LAST, CLI_NOW_END } cli_now_type;
typedef struct cli_now {
    cli_now_type type;
    double time; /* of CLI_NOW_TIME */
} cli_now;

/* Parses "now" (the time of the call), "last" (each history's last event), "end" (the newest event of all) or a timestamp. */
lapse_status cli_now_parse(cli_now *now, const char *text, const char *zone, lapse_error *error);
/* The time for these histories; NaN: each history's last event. */
double cli_now_time(const cli_now *now, const lapse_dataset *history);

/* The help of --now, and its default. */
#define CLI_NOW_HELP                                                                                           \
    "time up to which nothing has happened since the last event of each history: end (of the newest event in " \
    "HISTORY), now, last "                                                                                     \
    "(each history's last event), Unix seconds or ISO 8601. Histories that end later are asked from their last event"
#define CLI_NOW_DEFAULT "end"

typedef struct cli_choice {
    int64_t type;
    double probability;
} cli_choice;

/* Fills top[count] with the most probable event types, in descending order; ties in the order of the event types.
 * count is at most `types`. */
void cli_choices_top(const double *probabilities, int64_t types, cli_choice *top, int64_t count);

#endif
