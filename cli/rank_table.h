/* rank_table.h: ranking metrics of a model, as tables and as JSON. */
#ifndef CLI_RANK_TABLE_H
#define CLI_RANK_TABLE_H

#include <stdio.h>

#include <lapse_lab.h>

#include "json.h"

/* Whether the model was trained for the task "recommend", which is evaluated by ranking metrics. */
bool cli_is_recommender(const lapse_model *model);

/* Number of validation events that training sampled for its validation score; 0: it used all of them. */
int64_t cli_validation_cases(const lapse_model *model);

/* Prints every metric with its protocol, split, target-time rule, cases and interval, then the slices if there are any;
 * false if out of memory. */
bool cli_ranks_print(FILE *file, const lapse_rank_scores *scores);
/* Writes the same as members of the open JSON object. */
void cli_ranks_json(cli_json *json, const lapse_rank_scores *scores);

#endif
