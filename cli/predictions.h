/* predictions.h: the predictions of `lapse predict`, and their output as a table, CSV or JSON. */
#ifndef CLI_PREDICTIONS_H
#define CLI_PREDICTIONS_H

#include <stdio.h>

#include <lapse.h>

#include "answers.h"

/* A target of the model and its predictions: choices[query][rank], of which counts[query] ranks are valid; -1: the model knows
 * no event of the history. */
typedef struct cli_target_predictions {
    const char *target;
    int64_t size, top; /* number of classes, and of those shown */
    lapse_recommendation *choices;
    int64_t *counts;
} cli_target_predictions;

/* The histories that end after a query time. */
typedef struct cli_late {
    int64_t count, first; /* number of them; the first sequence */
} cli_late;

typedef struct cli_predictions {
    const char *model_file, *history_file;
    lapse_model *model;
    lapse_dataset *history;
    cli_when_list when;
    bool recommends; /* events are items with scores */
    bool csv_safe;   /* as cli_csv_field */
    cli_target_predictions targets[2];
    int target_count;
    int64_t shown; /* histories, the first ones; there are no queries about others */
    lapse_query *queries;
    int64_t query_count;
    float *states;     /* [query]: of --vectors; otherwise NULL */
    int64_t *query_of; /* [sequence][when]: index in queries, or -1: the history ends after this time */
    double *last;      /* [sequence]: time of the last event */
    cli_late *late;    /* [when] */
} cli_predictions;

/* Print all predictions. False: out of memory. */
bool cli_predictions_table(const cli_predictions *p, FILE *file);
bool cli_predictions_csv(const cli_predictions *p, FILE *file);
bool cli_predictions_json(const cli_predictions *p, FILE *file);

#endif
