/* rank_table.h: how a model ranks, for a person and for a program. */
#ifndef CLI_RANK_TABLE_H
#define CLI_RANK_TABLE_H

#include <stdio.h>

#include <lapse.h>

#include "json.h"

/* Whether the model recommends, so that its ranks are its scores. */
bool cli_is_recommender(const lapse_model *model);

/* How many events of the validation split training looked at, where it drew some; 0: all of them. */
int64_t cli_validation_cases(const lapse_model *model);

/* Every score with its protocol, split, target-time rule, cases and interval, then the slices if there are any; false where
 * memory ran out. */
bool cli_ranks_print(FILE *file, const lapse_rank_scores *scores);
/* All of it as the members of the JSON object that is open. */
void cli_ranks_json(cli_json *json, const lapse_rank_scores *scores);

#endif
