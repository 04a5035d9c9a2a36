/* returns.h: whether and how often histories go on after a time: the cases, the baselines that know recency, frequency and age alone, and
 * scores of chances. docs/evaluation.md defines them. */
#ifndef LP_RETURNS_H
#define LP_RETURNS_H

#include "data/dataset/dataset.h"
#include "lapse_lab.h"

/* A history with at least one event up to an origin, in seconds. In the words of BG/NBD: frequency x, recency t_x, age T. */
typedef struct lp_return_case {
    int64_t sequence, seen; /* seen: its events up to the origin */
    double frequency;       /* events after the first one, up to the origin */
    double recency;         /* from the first to the last of these */
    double age;             /* from the first to the origin */
    double next;            /* from the origin to the next event; INFINITY: the data has none */
} lp_return_case;

/* The cases of the sequences that `wanted` includes by the split of their last event, or of all (LP_SPLIT_COUNT). *cases is freed with
 * lp_free. */
lapse_status lp_return_cases(const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, double origin,
                             lp_return_case **cases, int64_t *count, lapse_error *error);

/* Logistic regression of an event within `horizon` on the logarithms of the silence since the last event, of frequency and of age. */
typedef struct lp_return_logistic {
    double mean[3], scale[3], weight[4]; /* the last weight is the intercept */
} lp_return_logistic;
lp_return_logistic lp_return_logistic_fit(const lp_return_case *cases, int64_t count, double horizon);
double lp_return_logistic_chance(const lp_return_logistic *model, const lp_return_case *one);

/* BG/NBD (Fader, Hardie and Lee 2005): a customer's events come at an exponential rate, gamma distributed over customers with r and
 * alpha; after each event the customer leaves for good with a probability that is beta distributed with a and b. */
typedef struct lp_bg_nbd {
    double r, alpha, a, b;
    double unit; /* seconds of one unit of time */
} lp_bg_nbd;
lp_bg_nbd lp_bg_nbd_fit(const lp_return_case *cases, int64_t count);
double lp_bg_nbd_log_likelihood(const lp_bg_nbd *model, const lp_return_case *one);
double lp_bg_nbd_alive(const lp_bg_nbd *model, const lp_return_case *one);
double lp_bg_nbd_chance(const lp_bg_nbd *model, const lp_return_case *one, double horizon); /* of at least one event */
double lp_bg_nbd_events(const lp_bg_nbd *model, const lp_return_case *one, double horizon); /* expected */

/* Scores of the chances of an event within `horizon`, and groups of equal size by the first rows' chances. chance: [count]. */
lapse_status lp_return_score_make(const lp_return_case *cases, const double *chance, int64_t count, double horizon,
                                  int bootstrap, lapse_return_score *score, lapse_error *error);
lapse_status lp_return_groups(const lp_return_case *cases, const double *chance, int64_t count,
                              lapse_return_horizon *horizon, lapse_error *error);

#endif
