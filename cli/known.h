/* known.h: which names in a history a model knows. */
#ifndef CLI_KNOWN_H
#define CLI_KNOWN_H

#include <stdbool.h>

#include <lapse.h>

/* Finds the names that the model does not know and says which, with what becomes of them: skipped, or a failure. The history
 * must have the model's fields, in their order. Returns the exit status. */
int cli_known_find(const lapse_model *model, const lapse_dataset *history, const char *file, bool skip);

#endif
