/* score_table.h: the scores of a model, for a person and for a program. */
#ifndef CLI_SCORE_TABLE_H
#define CLI_SCORE_TABLE_H

#include <stdio.h>

#include <lapse.h>

#include "json.h"

/* Every score with its split, its target-time rule, its cases and its interval. */
void cli_scores_print(FILE *file, const lapse_scores *scores);
/* The table of the kinds, those with most cases first; false where memory ran out. */
bool cli_scores_print_kinds(FILE *file, const lapse_scores *scores);
/* All of it as the members of the JSON object that is open. */
void cli_scores_json(cli_json *json, const lapse_scores *scores, bool kinds);

#endif
