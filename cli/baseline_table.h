/* baseline_table.h: a model's scores beside those of baselines, as a table and as JSON. */
#ifndef CLI_BASELINE_TABLE_H
#define CLI_BASELINE_TABLE_H

#include <stdio.h>

#include <lapse_lab.h>

#include "json.h"

/* The comparisons of each target of a model (event, action): at most two. Initialize with {0}. */
typedef struct cli_comparisons {
    lapse_comparison list[2];
    int count;
} cli_comparisons;

/* Whether a model is compared: not a baseline, and not a network that was stopped before its first epoch. */
bool cli_comparisons_apply(const lapse_model *model);
/* Compares a network with baselines, for every target. */
lapse_status cli_comparisons_make(cli_comparisons *comparisons, const lapse_model *model, const lapse_dataset *dataset,
                                  const lapse_evaluate_options *options, lapse_error *error);

/* Prints a table and the difference from the best baseline for each target; false if out of memory. */
bool cli_comparisons_print(FILE *file, const cli_comparisons *comparisons);
/* Notes on standard error: the difference may be chance, or there are few sequences. */
void cli_comparisons_warn(const cli_comparisons *comparisons);
/* Prints the scores that the model file has: of the validation split, and of the test split beside baselines. */
bool cli_recorded_print(FILE *file, const lapse_model *model);
/* Writes the array "baselines", and the warnings, as members of the open JSON object. */
void cli_comparisons_json(cli_json *json, const cli_comparisons *comparisons);

#endif
