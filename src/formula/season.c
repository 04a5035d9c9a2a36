/* season.c: a weekly profile of a rate. */
#include "formula/season.h"

#include "base/assert.h"

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
        LP_ASSERT(season->level[h] > 0);
    }
    LP_ASSERT(fabs(season->before[LP_SEASON_HOURS] - WEEK) < 1e-6 * WEEK); /* the mean level is 1 */
}

/* Seconds from the start of the week of a time. Exact to the digits of the time, so that what is added later keeps its own. */
static double second_of_week(double time)
{
    double since = time - MONDAY, second = since - floor(since / WEEK) * WEEK;
    return second < WEEK ? second : 0;
}

static int hour_of(double second)
{
    int hour = (int)(second / HOUR);
    return hour < LP_SEASON_HOURS ? hour : LP_SEASON_HOURS - 1;
}

int lp_season_hour(double time)
{
    return fabs(time) < FAR ? hour_of(second_of_week(time)) : 0;
}

double lp_season_level(const lp_season *season, double time)
{
    return fabs(time) < FAR ? season->level[hour_of(second_of_week(time))] : 1;
}

/* The integral from the start of a week to a second of it. */
static double within_week(const lp_season *season, double second)
{
    int hour = hour_of(second);
    return season->before[hour] + (second - HOUR * hour) * season->level[hour];
}

double lp_season_integral(const lp_season *season, double from, double seconds)
{
    if (!(fabs(from) < FAR && seconds < FAR))
        return seconds;
    double start = second_of_week(from), end = start + seconds, weeks = floor(end / WEEK) * WEEK;
    return weeks + (within_week(season, end - weeks) - within_week(season, start));
}

double lp_season_inverse(const lp_season *season, double from, double integral)
{
    if (!(fabs(from) < FAR && integral < FAR))
        return integral;
    double start = second_of_week(from), end = within_week(season, start) + integral;
    double weeks = floor(end / WEEK) * WEEK;
    int low = 0, high = LP_SEASON_HOURS; /* the hour is in [low, high) */
    end -= weeks;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (season->before[middle] <= end)
            low = middle;
        else
            high = middle;
    }
    return weeks + (HOUR * low + (end - season->before[low]) / season->level[low] - start);
}

void lp_season_constant(lp_season *season)
{
    double level[LP_SEASON_HOURS];
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        level[h] = 1;
    lp_season_set(season, level);
}

void lp_season_count(lp_season_counts *counts, double from, double seconds)
{
    if (!(fabs(from) < FAR && seconds < FAR))
        return;
    double start = second_of_week(from), weeks = floor(seconds / WEEK), end = start + (seconds - weeks * WEEK);
    for (int h = 0; weeks > 0 && h < LP_SEASON_HOURS; h++)
        counts->seconds[h] += HOUR * weeks;
    int hour = (int)(start / HOUR), last = (int)(end / HOUR); /* of this week or the next */
    for (double at = start; hour < last; at = HOUR * ++hour)
        counts->seconds[hour % LP_SEASON_HOURS] += HOUR * (hour + 1) - at;
    counts->seconds[last % LP_SEASON_HOURS] += end - fmax(start, HOUR * last);
    counts->events[last % LP_SEASON_HOURS]++;
}

/* The number of events of each hour, had all hours been as long, and the variance of their sum if the rate were constant. One event more
 * in each hour, at the mean rate, keeps the rate of an hour that is hardly there near the mean. */
static double even_counts(const lp_season_counts *counts, double even[LP_SEASON_HOURS])
{
    double events = 0, seconds = 0, variance = 0;
    for (int h = 0; h < LP_SEASON_HOURS; h++) {
        events += counts->events[h];
        seconds += counts->seconds[h];
    }
    for (int h = 0; h < LP_SEASON_HOURS; h++) {
        double mean = events / LP_SEASON_HOURS, expected = seconds > 0 ? events * counts->seconds[h] / seconds : 0;
        double longer = (mean + 1) / (expected + 1);
        even[h] = (counts->events[h] + 1) * longer;
        variance += (expected + 1) * longer * longer;
    }
    return variance;
}

void lp_season_estimate(lp_season *season, const lp_season_counts *counts)
{
    const double power = 8, least = 0.05, turn = 6.28318530717958648 / LP_SEASON_HOURS;
    double even[LP_SEASON_HOURS], level[LP_SEASON_HOURS] = {0}, variance = even_counts(counts, even), lowest = 0;
    for (int k = 1; k <= LP_SEASON_HOURS / 2; k++) {
        double real = 0, imaginary = 0;
        for (int h = 0; h < LP_SEASON_HOURS; h++) {
            real += even[h] * cos(turn * (k * h % LP_SEASON_HOURS));
            imaginary += even[h] * sin(turn * (k * h % LP_SEASON_HOURS));
        }
        if (!(real * real + imaginary * imaginary > power * variance))
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
