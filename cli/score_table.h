/* score_table.h: the scores of a model, for a person and for a program. */
#ifndef CLI_SCORE_TABLE_H
#define CLI_SCORE_TABLE_H

#include <stdio.h>

#include <lapse.h>

#include "json.h"

/* The scores of everything that a model predicts, at most two things. Starts as {0}. */
typedef struct cli_targets {
    lapse_scores scores[2];
    int count;
} cli_targets;

lapse_status cli_targets_evaluate(cli_targets *targets, const lapse_model *model, const lapse_dataset *dataset,
                                  const lapse_evaluate_options *options, lapse_error *error);
void cli_targets_clear(cli_targets *targets);
/* As text, one after the other, with the tables of the event types if asked for; false where memory ran out. */
bool cli_targets_print(FILE *file, const cli_targets *targets, bool types);
/* As members of the JSON object that is open: those of the first, and an object for a second. */
void cli_targets_json(cli_json *json, const cli_targets *targets, bool types);

/* Every score with its split, its target-time rule, its cases and its interval. */
void cli_scores_print(FILE *file, const lapse_scores *scores);
/* The table of the event types, those with most cases first; false where memory ran out. */
bool cli_scores_print_classes(FILE *file, const lapse_scores *scores);
/* All of it as the members of the JSON object that is open. */
void cli_scores_json(cli_json *json, const lapse_scores *scores, bool types);

#endif
