/* season.c: a weekly profile of a rate. */
#include "base/season.h"

#include <math.h>

static const double HOUR = 3600, WEEK = 604800, MONDAY = 345600; /* 1970-01-05 */
static const double FAR = 1e15; /* seconds: where a double knows no hour, and the integral is the time */

void lp_season_set(lp_season *season, const double level[LP_SEASON_HOURS])
{
    double sum = 0;
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        sum += level[h];
    season->before[0] = 0;
    for (int h = 0; h < LP_SEASON_HOURS; h++) {
        season->level[h] = level[h] * LP_SEASON_HOURS / sum;
        season->before[h + 1] = season->before[h] + HOUR * season->level[h];
    }
}

void lp_season_estimate(lp_season *season, const double count[LP_SEASON_HOURS])
{
    const double power = 8, least = 0.05, turn = 6.28318530717958648 / LP_SEASON_HOURS;
    double level[LP_SEASON_HOURS] = {0}, sum = 0, lowest = 0;
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        sum += count[h];
    for (int k = 1; k <= LP_SEASON_HOURS / 2; k++) {
        double real = 0, imaginary = 0;
        for (int h = 0; h < LP_SEASON_HOURS; h++) {
            real += count[h] * cos(turn * (k * h % LP_SEASON_HOURS));
            imaginary += count[h] * sin(turn * (k * h % LP_SEASON_HOURS));
        }
        if (!(real * real + imaginary * imaginary > power * sum))
            continue;
        double part = k == LP_SEASON_HOURS / 2 ? 1 : 2;
        for (int h = 0; h < LP_SEASON_HOURS; h++) {
            double angle = turn * (k * h % LP_SEASON_HOURS);
            level[h] += part * (real * cos(angle) + imaginary * sin(angle));
        }
    }
    for (int h = 0; h < LP_SEASON_HOURS; h++) /* their mean is 0 */
        lowest = fmin(lowest, level[h]);
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        level[h] = lowest < 0 ? least + (1 - least) * (1 - level[h] / lowest) : 1;
    lp_season_set(season, level);
}

/* A time as the start of its week, the hour, and the seconds within the hour. */
typedef struct week_time {
    double week;
    int hour;
    double rest;
} week_time;

static week_time week_time_of(double time)
{
    double since = time - MONDAY, week = floor(since / WEEK) * WEEK;
    int hour = (int)((since - week) / HOUR);
    hour = hour < 0 ? 0 : hour >= LP_SEASON_HOURS ? LP_SEASON_HOURS - 1 : hour;
    return (week_time){week, hour, since - week - HOUR * hour};
}

int lp_season_hour(double time)
{
    return fabs(time) < FAR ? week_time_of(time).hour : 0;
}

double lp_season_level(const lp_season *season, double time)
{
    return fabs(time) < FAR ? season->level[week_time_of(time).hour] : 1;
}

static double within_week(const lp_season *season, week_time t)
{
    return season->before[t.hour] + t.rest * season->level[t.hour];
}

double lp_season_integral(const lp_season *season, double from, double seconds)
{
    if (!(fabs(from) < FAR && seconds < FAR))
        return seconds;
    week_time a = week_time_of(from), b = week_time_of(from + seconds);
    return b.week - a.week + (within_week(season, b) - within_week(season, a));
}

double lp_season_inverse(const lp_season *season, double from, double integral)
{
    if (!(fabs(from) < FAR && integral < FAR))
        return integral;
    week_time a = week_time_of(from);
    double end = within_week(season, a) + integral, weeks = floor(end / WEEK) * WEEK;
    int low = 0, high = LP_SEASON_HOURS; /* the hour is in [low, high) */
    end -= weeks;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (season->before[middle] <= end)
            low = middle;
        else
            high = middle;
    }
    return weeks + HOUR * (low - a.hour) + ((end - season->before[low]) / season->level[low] - a.rest);
}
