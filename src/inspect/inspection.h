/* inspection.h: what a report is about, and the table of its figures.
 *
 * To add a figure: a function that adds it, or says why it cannot be made (lp_figures_missing), and a row of the table in
 * inspect.c. The report, its CSV and `--figures` follow. */
#ifndef LP_INSPECTION_H
#define LP_INSPECTION_H

#include "base/error.h"
#include "inspect/figure.h"
#include "inspect/survey.h"
#include "lapse_lab.h"

typedef struct lp_inspection {
    const lapse_model *model;
    const lapse_dataset *dataset; /* NULL: none was given */
    const lapse_inspect_options *options;
    bool has_spectrum, has_survey;
    char no_spectrum[512], no_survey[512]; /* why not: one sentence */
    lapse_spectrum spectrum;
    lapse_lags lags; /* resolved */
    lp_survey survey;
    int32_t action;                 /* of options->action, in the dataset; -1: all */
    const char *headline, *verdict; /* the finding, as a title and in the first metric; NULL: there are no scores */
    bool is_beaten;                 /* a baseline is as good or better, or better in the first metric */
    double *seconds;                /* [epochs] since the start of the run, from its log; NULL: no log */
    int epochs;
} lp_inspection;

/* Why a model has no figures of the time of the next event. */
#define LP_NO_TIMES "The model does not predict the time of the next event: train it with --when."

/* Adds the figures of one kind. Fails only where the report would be wrong, as when out of memory. */
typedef lapse_status (*lp_figures_make)(lp_inspection *about, lp_figures *figures, lapse_error *error);

lapse_status lp_training_figure(lp_inspection *about, lp_figures *figures, lapse_error *error);
lapse_status lp_score_figures(lp_inspection *about, lp_figures *figures, lapse_error *error);
lapse_status lp_reliability_figure(lp_inspection *about, lp_figures *figures, lapse_error *error);
lapse_status lp_time_reliability_figure(lp_inspection *about, lp_figures *figures, lapse_error *error);
lapse_status lp_encoding_figures(lp_inspection *about, lp_figures *figures, lapse_error *error);
lapse_status lp_attention_figures(lp_inspection *about, lp_figures *figures, lapse_error *error);
lapse_status lp_influence_figure(lp_inspection *about, lp_figures *figures, lapse_error *error);
lapse_status lp_case_figures(lp_inspection *about, lp_figures *figures, lapse_error *error);
lapse_status lp_error_figures(lp_inspection *about, lp_figures *figures, lapse_error *error);

/* The log of a run (`lapse train --log`): fills *seconds, by epoch from 1, NaN where the log has none; the caller frees it.
 * A line that is cut off at the end is ignored. */
lapse_status lp_run_log_read(const char *path, double **seconds, int *epochs, lapse_error *error);
lapse_status lp_run_log_parse(const char *text, size_t size, const char *path, double **seconds, int *epochs,
                              lapse_error *error);

/* A proportion with its 95 % interval (Wilson). */
lp_point lp_proportion(double x, double good, double count);

/* How event `last` influences the next event: the change of the probabilities of all classes when it is left out of the history.
 * change [points x classes], added to; the lags are lp_survey_lag. without is a session of its own. */
lapse_status lp_influence_add(const lp_survey *survey, lapse_session *with, lapse_session *without, int64_t sequence,
                              uint64_t last, int points, double *change, lapse_error *error);

/* Appends a JSON string with quotes, which is safe inside a script element; bytes that are not UTF-8 become '?'. */
bool lp_json_add(lp_buffer *out, const char *text);

/* Appends the page. */
bool lp_report_add(const lp_inspection *about, lp_figures *figures, lp_buffer *out);

#endif
