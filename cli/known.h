/* known.h: finds the names in a history that are not in the vocabulary of a model. */
#ifndef CLI_KNOWN_H
#define CLI_KNOWN_H

#include <stdbool.h>

#include <lapse.h>

/* Prints the unknown names with their numbers of events. Returns CLI_FAILED if there are any, unless `skip`. Fields that
 * the history does not have are left to lapse_predict_all. */
int cli_known_find(const lapse_model *model, const lapse_dataset *history, const char *file, bool skip);

#endif
