/* known.h: which names in a history a model knows. */
#ifndef CLI_KNOWN_H
#define CLI_KNOWN_H

#include <stdbool.h>

#include <lapse.h>

/* The history must have the model's fields, in their order. Starts as {0}. */
typedef struct cli_known {
    bool *kinds;       /* by kind of the history */
    bool **categories; /* by field, then by category of the history; NULL for numbers */
    int field_count;
} cli_known;

/* Finds the names that the model does not know and says which, with what becomes of them: skipped, or a failure. Returns
 * the exit status. */
int cli_known_find(cli_known *known, const lapse_model *model, const lapse_dataset *history, const char *file,
                   bool skip);
void cli_known_clear(cli_known *known);

/* Appends the events of one sequence of which all is known; *appended says how many that were, *last the time of the
 * last event. */
lapse_status cli_known_append(const cli_known *known, lapse_session *session, const lapse_dataset *history,
                              int64_t sequence, int64_t *appended, double *last, lapse_error *error);

#endif
