/* time_scores.h: scores of laws of the next event's time, and the baselines they are compared with. docs/evaluation.md defines them. */
#ifndef LP_TIME_SCORES_H
#define LP_TIME_SCORES_H

#include "data/dataset/dataset.h"
#include "data/dataset/split.h"
#include "model/next_time.h"
#include "lapse_lab.h"

/* One event's law, scored. */
typedef struct lp_time_case {
    int64_t sequence, event; /* event: its index in the dataset */
    double gap;              /* seconds since the event before it */
    double nll;              /* negative log of the density per second */
    double pit;              /* cdf at the gap, given that the event comes */
    double median, mean;     /* seconds; the mean if it comes within the span */
    double crps;             /* seconds */
} lp_time_case;

/* The probability integral transform: the cdf at a gap, which counts as the floor where it is below, given that the event comes. */
double lp_time_pit(const lp_next_time *law, double gap, double floor);

/* Scores a law from the last event on; a gap below the floor counts as the floor. span: seconds for the mean; 0: nll alone. */
lp_time_case lp_time_case_of(const lp_next_time *law, int64_t sequence, int64_t event, double gap, double floor,
                             double span);

/* Fills *score from cases, of which those of one sequence are consecutive; times in units of `unit` seconds. */
lapse_status lp_time_score_make(const lp_time_case *cases, int64_t count, double unit, int bootstrap,
                                lapse_time_score *score, lapse_error *error);

/* A law that depends on no more of the history than the last event's type, or the gap before it. */
typedef struct lp_time_baseline lp_time_baseline;

/* The baselines: exponential, log-normal, log-normal-type, gap-histogram; NULL-terminated. */
extern const lp_time_baseline *const lp_time_baselines[];
const char *lp_time_baseline_name(const lp_time_baseline *baseline);

/* Fits a baseline to the training split and scores it on the events of the cases, into `scored`. */
lapse_status lp_time_baseline_score(const lp_time_baseline *baseline, const lapse_dataset *dataset,
                                    const uint8_t *split, double floor, double span, const lp_time_case *cases,
                                    int64_t count, int threads, lp_time_case *scored, lapse_error *error);

/* The unit that times of these cases are told in: the longest of second, minute, hour and day that is not longer than the geometric mean
 * of their gaps. */
double lp_time_unit(const lp_time_case *cases, int64_t count, double floor, const char **name);

#endif
