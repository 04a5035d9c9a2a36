/* known.h: finds the names in a history that are not in the vocabulary of a model. */
#ifndef CLI_KNOWN_H
#define CLI_KNOWN_H

#include <stdbool.h>

#include <lapse.h>

/* Prints the unknown names with their numbers of events. Returns CLI_FAILED if there are any, unless `skip`. Fields that
 * the history does not have are left to lapse_predict_all. */
int cli_known_find(const lapse_model *model, const lapse_dataset *history, const char *file, bool skip);

/* Warns of chances of a return by a model that has learned gaps alone that have ended: they are too high. */
void cli_censoring_warn(const lapse_model *model);

/* Histories without a prediction, because the model knows none of their events. Initialize with {0}. */
typedef struct cli_unanswered {
    int64_t total, count, first; /* histories, those without a prediction, the first of these */
} cli_unanswered;

void cli_unanswered_add(cli_unanswered *unanswered, int64_t sequence, bool answered);
/* Prints how many there are. Returns CLI_FAILED, after printing why, if no history has a prediction. */
int cli_unanswered_report(const cli_unanswered *unanswered, const lapse_dataset *history);

#endif
