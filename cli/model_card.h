/* model_card.h: what a model is, in a few lines for people: `lapse info MODEL`. */
#ifndef CLI_MODEL_CARD_H
#define CLI_MODEL_CARD_H

#include <stdbool.h>
#include <stdio.h>

#include <lapse.h>

/* False: out of memory. */
bool cli_model_card_print(FILE *file, const char *path, const lapse_model *model);

#endif
