/* season.h: a weekly profile: how a rate changes with the hour of the week, in UTC. Its integral is the time that the rate sees: an hour
 * at twice the mean level counts as two. */
#ifndef LP_SEASON_H
#define LP_SEASON_H

enum { LP_SEASON_HOURS = 168 };

typedef struct lp_season {
    double level[LP_SEASON_HOURS];      /* of each hour from Monday 00:00 UTC on: positive, with mean 1 */
    double before[LP_SEASON_HOURS + 1]; /* its integral from the start of the week to that of each hour, in seconds */
} lp_season;

/* Levels with mean 1 in proportion to these, which are positive. */
void lp_season_set(lp_season *season, const double level[LP_SEASON_HOURS]);

/* What a profile is estimated from, by hour of the week: the number of events, and the seconds in which they could have come. */
typedef struct lp_season_counts {
    double events[LP_SEASON_HOURS], seconds[LP_SEASON_HOURS];
} lp_season_counts;

/* Adds a span of time that ends with an event. */
void lp_season_count(lp_season_counts *counts, double from, double seconds);

/* The profile of the rate of events. It has those harmonics of the week whose power events at constant rate would exceed with a
 * probability of exp(-8) each, so that no profile is read into noise: without any the level is 1. Then what is the same in all hours is
 * taken away, up to a twentieth of the mean: a law of plain time can tell it, and events that come at all hours alike would hide the
 * profile of the others. */
void lp_season_estimate(lp_season *season, const lp_season_counts *counts);

/* Level 1. */
void lp_season_constant(lp_season *season);

/* Hour of the week of a time in Unix seconds, and the level in it. */
int lp_season_hour(double time);
double lp_season_level(const lp_season *season, double time);

/* Integral of the level over `seconds` from a time on. */
double lp_season_integral(const lp_season *season, double from, double seconds);

/* The seconds from a time on over which the integral is this. */
double lp_season_inverse(const lp_season *season, double from, double integral);

#endif
