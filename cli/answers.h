/* answers.h: query times, and the top-k event types of a prediction. */
#ifndef CLI_ANSWERS_H
#define CLI_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lapse.h>

/* A query time: absolute, or relative to the last event of each sequence. */
typedef struct cli_when {
    const char *text; /* as typed */
    bool relative;
    double seconds; /* since 1970-01-01 UTC, or since the last event */
} cli_when;

/* Parses "+3d", unix seconds or ISO 8601. */
lapse_status cli_when_parse(const char *text, cli_when *when, lapse_error *error);

typedef struct cli_choice {
    int64_t type;
    double probability;
} cli_choice;

/* Fills top[count] with the most probable event types, in descending order; ties in the order of the event types.
 * count is at most `types`. */
void cli_choices_top(const double *probabilities, int64_t types, cli_choice *top, int64_t count);

#endif
