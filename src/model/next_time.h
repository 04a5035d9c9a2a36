/* next_time.h: the law of the time of the next event that a model predicts, in seconds after now: the last event, or a later moment up
 * to which nothing has happened. Laws are rows of a table with the same functions, so that callers do not know which one it is:
 *
 *   lp_law_gompertz   intensity exp(score + slope t / unit) / unit (formula/hazard.h): rmtpp; with slope 0, an exponential
 *   lp_law_mixture    a mixture of log-normals, and a background of events at any time: the head of --when (when_head.h)
 *   lp_law_function   any law of an event that comes some time, by a function: that of a simulation (simulate/law.h)
 *
 * Survival is kept as its logarithm, so that a law is exact however long nothing has happened.
 */
#ifndef LP_NEXT_TIME_H
#define LP_NEXT_TIME_H

#include "base/random.h"
#include "formula/season.h"

#include <stdbool.h>

typedef struct lp_time_law lp_time_law;

typedef struct lp_next_time {
    const lp_time_law *law;
    double elapsed;     /* seconds from the last event to now */
    double log_elapsed; /* logarithm of the probability that the event comes after now */
    /* lp_law_gompertz */
    double score, slope;
    double unit; /* seconds */
    /* lp_law_mixture: of log(seconds); views */
    int count;
    const double *log_weight, *mean, *deviation; /* [count] */
    const double *rate; /* [count]: of the background beside each component, per second of the season; NULL: none */
    const lp_season *season; /* of the background */
    double last;             /* time of the last event, in Unix seconds */
    /* lp_law_function: logarithms of the density per second and of the survival, t > 0 seconds after the last event */
    void (*function)(const void *context, double t, double *log_density, double *log_survival);
    const void *context;
} lp_next_time;

struct lp_time_law {
    const char *name;
    /* Of the time t >= 0 since the last event: log density per second, log survival, and the time at which the log survival is
     * this; INFINITY where it never is. */
    double (*log_density)(const lp_next_time *law, double t);
    double (*log_survival)(const lp_next_time *law, double t);
    double (*time_at)(const lp_next_time *law, double log_survival);
    /* Log probability that the event never comes. */
    double (*log_never)(const lp_next_time *law);
    /* A draw of the time since the last event, of those after `elapsed`; NULL: by time_at. */
    double (*draw)(const lp_next_time *law, lp_random *random);
};

extern const lp_time_law lp_law_gompertz, lp_law_mixture, lp_law_function;

/* The laws, from the last event on. */
lp_next_time lp_next_time_gompertz(double score, double slope, double unit);
lp_next_time lp_next_time_mixture(int count, const double *log_weight, const double *mean, const double *deviation);
/* A mixture whose components compete with a Poisson process: the event is the first of either. */
lp_next_time lp_next_time_background(lp_next_time law, const double *rate, const lp_season *season, double last);
lp_next_time lp_next_time_function(void (*function)(const void *, double, double *, double *), const void *context);

/* The law with the arrays of its mixture copied into memory, [4 x count]. */
lp_next_time lp_next_time_copy(lp_next_time law, double *memory);

/* The law given that nothing has happened for `elapsed` seconds since the last event; t is from then on. */
lp_next_time lp_next_time_after(lp_next_time law, double elapsed);

/* Logarithm of the density per second at t >= 0 seconds. */
double lp_next_time_log_density(const lp_next_time *law, double t);

/* Logarithm of the probability that the event comes later than t seconds. */
double lp_next_time_log_survival(const lp_next_time *law, double t);

/* Probability that it comes later than t seconds, and that it comes within them. */
double lp_next_time_survival(const lp_next_time *law, double t);
double lp_next_time_cdf(const lp_next_time *law, double t);

/* Probability that it never comes. */
double lp_next_time_never(const lp_next_time *law);

/* The time within which it comes with this probability, 0 to 1; INFINITY where it never does. */
double lp_next_time_quantile(const lp_next_time *law, double probability);

/* The mean time, given that the event comes within `span`. */
double lp_next_time_mean(const lp_next_time *law, double span);

/* A draw; INFINITY: it never comes. */
double lp_next_time_draw(const lp_next_time *law, lp_random *random);

/* Continuous ranked probability score of an event at t seconds: the integral of (cdf - [it has come])^2, given that it comes; by
 * quadrature, to about 1 part in 100,000. */
double lp_next_time_crps(const lp_next_time *law, double t);

#endif
