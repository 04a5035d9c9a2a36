/* lookup.h: finds a name in a list of names. */
#ifndef CLI_LOOKUP_H
#define CLI_LOOKUP_H

#include <stddef.h>

#include <lapse.h>

/* Index of the first `length` bytes of `text` in a NULL-terminated list, or -1. */
int cli_name_find(const char *const *names, const char *text, size_t length);

/* The name in a NULL-terminated list that is the most likely correction of a mistyped one, or NULL. */
const char *cli_name_nearest(const char *typed, const char *const *names);

/* The value of a model's property, or NULL. Owned by the model. */
const char *cli_model_property(const lapse_model *model, const char *name);

#endif
