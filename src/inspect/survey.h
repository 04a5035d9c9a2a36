/* survey.h: a pass over a sample of a dataset's sequences: what a model predicts for each target event, and how much it
 * attends to the event before. Figures of the report are counted from it. */
#ifndef LP_SURVEY_H
#define LP_SURVEY_H

#include "model/id_map.h"
#include "serve/session.h"

/* One target event. */
typedef struct lp_survey_case {
    int64_t sequence;
    int64_t event;   /* index in the dataset; its history is the events of its sequence before it */
    int64_t history; /* number of events before it */
    double gap;      /* seconds since the last of them */
    int32_t target, predicted;
    int32_t rank;      /* of the target among all classes, from 1; ties rank against it */
    double confidence; /* probability of the predicted class */
    double target_probability;
    double
        pit; /* probability that the law of the next event's time gave to the gap or a shorter one; NaN: there is none */
    double weight; /* attention weight of the last event of the history; NaN: the model has no attention */
} lp_survey_case;

typedef struct lp_survey {
    const lapse_model *model;
    const lapse_dataset *dataset;
    const char *target; /* "event" or "action" */
    const char *split;  /* "test", ... */
    int block;          /* whose attention weights: from 0 */
    lp_id_map id_map;
    lapse_session *session;
    double *probabilities, *scratch, *weights; /* [classes], likewise, [context] */
    int64_t classes;
    lp_survey_case *cases;
    int64_t case_count, case_total; /* total: in the split */
    int64_t *sequences;             /* those that were sampled, in order */
    int64_t sequence_count;
    double *gaps; /* [gap_count] between events that differ in time, sorted */
    int64_t gap_count;
    double shortest,
        longest;    /* lags of the figures: 5 % of the gaps between events are shorter, 1 % longer than half */
    bool sees_time; /* another elapsed time changes predictions */
    double
        time_worth; /* success, minus that of predictions that do not know the elapsed time: means over the times there are */
    int64_t time_cases; /* that this is of */
} lp_survey;

/* Reads about max_cases target events, in whole sequences; split NULL: the test split of the dataset that the model
 * was trained on, otherwise all events. On failure *survey is cleared. */
lapse_status lp_survey_make(lp_survey *survey, const lapse_model *model, const lapse_dataset *dataset,
                            const char *split, int64_t max_cases, int block, lapse_error *error);
void lp_survey_clear(lp_survey *survey);

/* Fills a session with the events of a sequence before event `end` of the dataset. */
lapse_status lp_survey_read(const lp_survey *survey, lapse_session *session, int64_t sequence, uint64_t end,
                            lapse_error *error);

/* Whether the prediction was right; of a recommender, whether the item was among the first ten. */
bool lp_survey_success(const lp_survey *survey, const lp_survey_case *c);

/* The indices of the largest values, from the largest on; ties by index. Returns their number, at most `most`. */
int lp_largest(const double *values, int64_t count, int most, int64_t *indices);

/* The lag of a point of a logarithmic scale from shortest to longest. */
double lp_survey_lag(const lp_survey *survey, int point, int points);

#endif
