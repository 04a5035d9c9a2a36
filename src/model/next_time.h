/* next_time.h: the law of the time of the next event that a point-process model predicts: the intensity
 * exp(score + slope t / unit) / unit at t seconds after the last event (base/hazard.h). */
#ifndef LP_NEXT_TIME_H
#define LP_NEXT_TIME_H

typedef struct lp_next_time {
    double score, slope;
    double unit; /* seconds */
} lp_next_time;

/* Logarithm of the density per second at t >= 0 seconds. */
double lp_next_time_log_density(const lp_next_time *law, double t);

/* Probability that the event comes later than t seconds. */
double lp_next_time_survival(const lp_next_time *law, double t);

/* Probability that it never comes: 0 unless the slope is negative. */
double lp_next_time_never(const lp_next_time *law);

/* Expected seconds to the event, given that it comes; by quadrature, to about 1e-9 of the value. */
double lp_next_time_mean(const lp_next_time *law);

#endif
