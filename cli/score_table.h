/* score_table.h: classification metrics of a model, as text and as JSON. */
#ifndef CLI_SCORE_TABLE_H
#define CLI_SCORE_TABLE_H

#include <stdio.h>

#include <lapse_lab.h>

#include "json.h"

/* The scores of each target of a model (event, action): at most two. Initialize with {0}. */
typedef struct cli_targets {
    lapse_scores scores[2];
    int count;
} cli_targets;

/* law: scores the law of this simulation instead of the model; NULL: the model. */
lapse_status cli_targets_evaluate(cli_targets *targets, const lapse_simulation *law, const lapse_model *model,
                                  const lapse_dataset *dataset, const lapse_evaluate_options *options,
                                  lapse_error *error);
void cli_targets_clear(cli_targets *targets);
/* Prints the targets one after the other, with the per-class tables if `classes`; false if out of memory. */
bool cli_targets_print(FILE *file, const cli_targets *targets, bool classes);
/* Writes members of the open JSON object: those of the first target, and one object for the second; false if out of
 * memory. */
bool cli_targets_json(cli_json *json, const cli_targets *targets, bool classes);

/* Prints the line of a target-time rule: "known", "unknown" or "not used". */
void cli_target_time_print(FILE *file, const char *rule);

/* Prints every score with its split, target-time rule, cases and interval. */
void cli_scores_print(FILE *file, const lapse_scores *scores);
/* Prints the per-class table, the classes with the most cases first; false if out of memory. */
bool cli_scores_print_classes(FILE *file, const lapse_scores *scores);
/* Writes the same as members of the open JSON object; false if out of memory. */
bool cli_scores_json(cli_json *json, const lapse_scores *scores, bool classes);

#endif
