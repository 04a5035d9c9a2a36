/* time_table.h: scores of predicted times of the next event, as a table and as JSON. */
#ifndef CLI_TIME_TABLE_H
#define CLI_TIME_TABLE_H

#include <stdio.h>

#include <lapse_lab.h>

#include "json.h"

/* Prints the scores of the model and of the baselines; false if out of memory. */
bool cli_times_print(FILE *file, const lapse_time_scores *scores);
/* Writes the same as one member of the open JSON object. */
void cli_times_json(cli_json *json, const lapse_time_scores *scores);

#endif
