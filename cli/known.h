/* known.h: finds the names in a history that are not in the vocabulary of a model. */
#ifndef CLI_KNOWN_H
#define CLI_KNOWN_H

#include <stdbool.h>

#include <lapse.h>

/* Prints the unknown names with their numbers of events. Returns CLI_FAILED if there are any, unless `skip`. The history
 * must have the model's fields, in their order. */
int cli_known_find(const lapse_model *model, const lapse_dataset *history, const char *file, bool skip);

#endif
