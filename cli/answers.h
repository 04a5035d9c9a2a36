/* answers.h: what a model expects of each history at each time: the most likely event types with their chances. */
#ifndef CLI_ANSWERS_H
#define CLI_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lapse.h>

/* A question's time: a moment, or a length of time after the last event of each sequence. */
typedef struct cli_when {
    const char *text; /* as it was typed */
    bool relative;
    double seconds; /* since 1970, or since the last event */
} cli_when;

/* Reads "+3d", unix seconds or ISO 8601. */
lapse_status cli_when_parse(const char *text, cli_when *when, lapse_error *error);

typedef struct cli_choice {
    int64_t type;
    double probability;
} cli_choice;

/* The `count` most likely event types, the likeliest first; equal chances in the order of the event types. */
void cli_choices_top(const double *probabilities, int64_t types, cli_choice *top, int64_t count);

#endif
