/* return_table.h: scores of the chances that histories go on, as text and as JSON. */
#ifndef CLI_RETURN_TABLE_H
#define CLI_RETURN_TABLE_H

#include <stdio.h>

#include <lapse_lab.h>

#include "json.h"

/* False: out of memory. */
bool cli_returns_print(FILE *file, const lapse_return_scores *scores);
/* Writes members of the open JSON object. */
void cli_returns_json(cli_json *json, const lapse_return_scores *scores);

#endif
