/* next_time.c: density, survival, quantiles and draws of the time of the next event. */
#include "model/next_time.h"

#include "formula/hazard.h"
#include "formula/mixture.h"

#include <string.h>

/* log(exp a + exp b) */
static double log_add(double a, double b)
{
    double most = fmax(a, b);
    return most == -INFINITY ? most : most + log1p(exp(-fabs(a - b)));
}

/* ----------------------------------------------------------------------------------------------- Gompertz ----- */

lp_next_time lp_next_time_gompertz(double score, double slope, double unit)
{
    return (lp_next_time){.law = &lp_law_gompertz, .score = score, .slope = slope, .unit = unit};
}

static double gompertz_log_density(const lp_next_time *law, double t)
{
    double d = t / law->unit;
    return law->score + law->slope * d - lp_hazard_cumulative(law->score, law->slope, d) - log(law->unit);
}

static double gompertz_log_survival(const lp_next_time *law, double t)
{
    return -lp_hazard_cumulative(law->score, law->slope, t / law->unit);
}

/* The cumulative hazard at infinity. */
static double total_hazard(const lp_next_time *law)
{
    return law->slope < 0 ? exp(law->score) / -law->slope : INFINITY;
}

static double gompertz_log_never(const lp_next_time *law)
{
    return -total_hazard(law);
}

/* The time, in units, at which the cumulative hazard is `hazard`: log(1 + x) / slope with x = slope hazard / exp(score). */
static double time_of(const lp_next_time *law, double hazard)
{
    double start = hazard * exp(-law->score), x = law->slope * start;
    return fabs(x) < 1e-8 ? start * (1 - x / 2) : log1p(fmax(x, -1 + 1e-16)) / law->slope;
}

static double gompertz_time_at(const lp_next_time *law, double log_survival)
{
    return -log_survival >= total_hazard(law) ? INFINITY : law->unit * time_of(law, -log_survival);
}

const lp_time_law lp_law_gompertz = {.name = "gompertz",
                                     .log_density = gompertz_log_density,
                                     .log_survival = gompertz_log_survival,
                                     .time_at = gompertz_time_at,
                                     .log_never = gompertz_log_never};

/* -------------------------------------------------------------------------------- mixture of log-normals ------ */

lp_next_time lp_next_time_mixture(int count, const double *log_weight, const double *mean, const double *deviation)
{
    return (lp_next_time){
        .law = &lp_law_mixture, .count = count, .log_weight = log_weight, .mean = mean, .deviation = deviation};
}

lp_next_time lp_next_time_background(lp_next_time law, const double *rate, const lp_season *season, double last)
{
    law.rate = rate;
    law.season = season;
    law.last = last;
    return law;
}

lp_next_time lp_next_time_copy(lp_next_time law, double *memory)
{
    const double **arrays[] = {&law.log_weight, &law.mean, &law.deviation, &law.rate};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (*arrays[i]) {
            double *copy = memory + i * (size_t)law.count;
            memcpy(copy, *arrays[i], (size_t)law.count * sizeof *copy);
            *arrays[i] = copy;
        }
    return law;
}

/* Log survival of component k and its background, without the weight, at x = log t. exposure: the season's integral up to t. */
static double component_log_survival(const lp_next_time *law, int k, double x, double exposure)
{
    double log_tail = lp_normal_log_tail((x - law->mean[k]) / law->deviation[k]);
    return law->rate ? log_tail - law->rate[k] * exposure : log_tail;
}

static double exposure_at(const lp_next_time *law, double t)
{
    return law->rate ? lp_season_integral(law->season, law->last, t) : 0;
}

static double mixture_log_density(const lp_next_time *law, double t)
{
    double x = log(t), sum = -INFINITY, exposure, level;
    if (!(t > 0))
        return -INFINITY;
    exposure = exposure_at(law, t);
    level = law->rate ? lp_season_level(law->season, law->last + t) : 0;
    for (int k = 0; k < law->count; k++) {
        double z = (x - law->mean[k]) / law->deviation[k];
        double own = -z * z / 2 - log(law->deviation[k]) - LP_LOG_ROOT_2_PI - x;
        if (law->rate)
            own = log_add(own - law->rate[k] * exposure,
                          log(law->rate[k] * level) + component_log_survival(law, k, x, exposure));
        sum = log_add(sum, law->log_weight[k] + own);
    }
    return sum;
}

/* At x = log t. */
static double log_survival_at(const lp_next_time *law, double x)
{
    double sum = -INFINITY, exposure = exposure_at(law, exp(x));
    for (int k = 0; k < law->count; k++)
        sum = log_add(sum, law->log_weight[k] + component_log_survival(law, k, x, exposure));
    return fmin(sum, 0); /* the weights add up to 1 up to rounding */
}

static double mixture_log_survival(const lp_next_time *law, double t)
{
    return t > 0 ? log_survival_at(law, log(t)) : 0;
}

/* The log survival falls with x = log t: bisection between bounds on both sides, with Newton's steps where they stay inside and at
 * least halve. Far out the log survival is so large a number that its slope is noise: a short step there is not the end. */
static double mixture_time_at(const lp_next_time *law, double log_survival)
{
    double low = INFINITY, high = -INFINITY, widest = 0;
    for (int k = 0; k < law->count; k++) {
        low = fmin(low, law->mean[k] - 8 * law->deviation[k]);
        high = fmax(high, law->mean[k] + 8 * law->deviation[k]);
        widest = fmax(widest, law->deviation[k]);
    }
    if (!(log_survival < 0))
        return 0;
    for (double step = 8 * widest; log_survival_at(law, low) < log_survival; step *= 2)
        low -= step;
    for (double step = 8 * widest; log_survival_at(law, high) > log_survival && high < 1e6; step *= 2)
        high += step;
    double x = (low + high) / 2, before = high - low;
    for (int i = 0; i < 200 && high - low > 1e-13 * (1 + fabs(x)); i++) {
        double now = log_survival_at(law, x), over = now - log_survival;
        if (over > 0)
            low = x;
        else
            high = x;
        /* d log S / dx = -exp(log density of x - log S) */
        double fall = exp(mixture_log_density(law, exp(x)) + x - now), next = x + over / fall;
        if (!(next > low && next < high && fabs(next - x) <= before / 2))
            next = (low + high) / 2;
        before = fabs(next - x);
        if (before <= 1e-14 * (1 + fabs(x)) && fabs(over) <= 1e-9 * (1 - log_survival))
            break;
        x = next;
    }
    return exp(x);
}

static double always_comes(const lp_next_time *law)
{
    (void)law;
    return -INFINITY;
}

/* A standard normal number above z: by rejection, from normal numbers or, in the tail, from an exponential distribution (Robert 1995). */
static double normal_above(double z, lp_random *random)
{
    const double near = 0.5;
    double rate = (z + sqrt(z * z + 4)) / 2, x;
    if (z < near) {
        do
            x = lp_random_normal(random);
        while (!(x > z));
        return x;
    }
    do
        x = z - log(lp_random_uniform(random)) / rate;
    while (!(lp_random_uniform(random) < exp(-(x - rate) * (x - rate) / 2)));
    return x;
}

/* A component in proportion to its probability after `elapsed`, then a number of it; or the first event of the background, if that comes
 * before. */
static double mixture_draw(const lp_next_time *law, lp_random *random)
{
    bool later = law->elapsed > 0;
    double u = lp_random_uniform(random), sum = 0, x = later ? log(law->elapsed) : 0;
    double exposure = later ? exposure_at(law, law->elapsed) : 0;
    int k = 0;
    for (; k + 1 < law->count; k++) {
        double log_survival = later ? component_log_survival(law, k, x, exposure) - law->log_elapsed : 0;
        if ((sum += exp(law->log_weight[k] + log_survival)) >= u)
            break;
    }
    double normal = later ? normal_above((x - law->mean[k]) / law->deviation[k], random) : lp_random_normal(random);
    double t = exp(law->mean[k] + law->deviation[k] * normal);
    if (!law->rate)
        return t;
    double after = exposure + lp_random_exponential(random) / law->rate[k];
    return fmin(t, lp_season_inverse(law->season, law->last, after));
}

const lp_time_law lp_law_mixture = {.name = "mixture",
                                    .log_density = mixture_log_density,
                                    .log_survival = mixture_log_survival,
                                    .time_at = mixture_time_at,
                                    .log_never = always_comes,
                                    .draw = mixture_draw};

/* ------------------------------------------------------------------------------------------- by a function ---- */

lp_next_time lp_next_time_function(void (*function)(const void *, double, double *, double *), const void *context)
{
    return (lp_next_time){.law = &lp_law_function, .function = function, .context = context};
}

static double function_log_density(const lp_next_time *law, double t)
{
    double log_density = -INFINITY, log_survival;
    if (t > 0)
        law->function(law->context, t, &log_density, &log_survival);
    return log_density;
}

static double function_log_survival(const lp_next_time *law, double t)
{
    double log_density, log_survival = 0;
    if (t > 0)
        law->function(law->context, t, &log_density, &log_survival);
    return log_survival;
}

/* Bisection in log t. The bounds hold any time in any unit. */
static double function_time_at(const lp_next_time *law, double log_survival)
{
    double low = log(1e-40), high = log(1e40);
    if (!(log_survival < 0))
        return 0;
    if (function_log_survival(law, exp(high)) > log_survival)
        return INFINITY;
    while (high - low > 1e-12) {
        double x = (low + high) / 2;
        if (function_log_survival(law, exp(x)) > log_survival)
            low = x;
        else
            high = x;
    }
    return exp((low + high) / 2);
}

const lp_time_law lp_law_function = {.name = "function",
                                     .log_density = function_log_density,
                                     .log_survival = function_log_survival,
                                     .time_at = function_time_at,
                                     .log_never = always_comes};

/* ----------------------------------------------------------------------------------------------- all laws ----- */

lp_next_time lp_next_time_after(lp_next_time law, double elapsed)
{
    law.elapsed = fmax(elapsed, 0);
    law.log_elapsed = law.elapsed > 0 ? law.law->log_survival(&law, law.elapsed) : 0;
    return law;
}

double lp_next_time_log_density(const lp_next_time *law, double t)
{
    return law->law->log_density(law, law->elapsed + t) - law->log_elapsed;
}

double lp_next_time_log_survival(const lp_next_time *law, double t)
{
    return fmin(law->law->log_survival(law, law->elapsed + t) - law->log_elapsed, 0);
}

double lp_next_time_survival(const lp_next_time *law, double t)
{
    return exp(lp_next_time_log_survival(law, t));
}

double lp_next_time_cdf(const lp_next_time *law, double t)
{
    return -expm1(lp_next_time_log_survival(law, t));
}

double lp_next_time_never(const lp_next_time *law)
{
    return exp(fmin(law->law->log_never(law) - law->log_elapsed, 0));
}

double lp_next_time_quantile(const lp_next_time *law, double probability)
{
    if (probability >= 1)
        return INFINITY;
    return fmax(law->law->time_at(law, law->log_elapsed + log1p(-fmax(probability, 0))) - law->elapsed, 0);
}

double lp_next_time_mean(const lp_next_time *law, double span)
{
    enum { POINTS = 128 };
    double mass = lp_next_time_cdf(law, span), first = fmin(lp_next_time_quantile(law, 1e-7), span);
    if (!(mass > 0) || !(first > 0))
        return mass > 0 ? 0 : span;
    double low = log(first), step = (log(span) - low) / POINTS, sum = 0;
    for (int i = 0; i <= POINTS; i++) { /* the integral of survival - survival at span, by Simpson's rule in log t */
        double t = exp(low + i * step);
        sum += (i == 0 || i == POINTS ? 1 : i % 2 ? 4 : 2) * fmax(mass - lp_next_time_cdf(law, t), 0) * t;
    }
    return fmin(first + sum * step / 3 / mass, span);
}

double lp_next_time_draw(const lp_next_time *law, lp_random *random)
{
    if (law->law->draw)
        return fmax(law->law->draw(law, random) - law->elapsed, 0);
    return lp_next_time_quantile(law, lp_random_uniform(random));
}

/* The square of the cdf, or of the survival, both given that the event comes, times t = exp(x). */
static double square_at(const lp_next_time *law, double x, double never, bool survival)
{
    double t = exp(x), later = lp_next_time_survival(law, t);
    double part = (survival ? later - never : 1 - later) / (1 - never);
    return part * part * t;
}

/* Its integral over x between the logarithms of two times: Simpson's rule on 64, 128, ... intervals, until two of them agree to 1e-5, or
 * to 2^13: a weekly background has a kink at each hour. */
static double square_integral(const lp_next_time *law, double from, double to, double never, bool survival)
{
    enum { FEWEST = 64, MOST = 1 << 13 };
    const double agreement = 1e-5;
    if (!(to > from))
        return 0;
    double low = log(from), width = log(to) - low, before = NAN, simpson = NAN;
    double trapezoids = width * (square_at(law, low, never, survival) + square_at(law, low + width, never, survival)) / 2;
    for (int n = 2; n <= MOST && !(n > FEWEST && fabs(simpson - before) <= agreement * simpson); n *= 2) {
        double sum = 0;
        for (int i = 1; i < n; i += 2)
            sum += square_at(law, low + width * i / n, never, survival);
        double finer = trapezoids / 2 + width / n * sum;
        before = simpson;
        simpson = (4 * finer - trapezoids) / 3;
        trapezoids = finer;
    }
    return simpson;
}

double lp_next_time_crps(const lp_next_time *law, double t)
{
    const double rare = 1e-7;
    double never = lp_next_time_never(law);
    double first = lp_next_time_quantile(law, rare * (1 - never)),
           last = lp_next_time_quantile(law, (1 - rare) * (1 - never));
    double before = t > first ? square_integral(law, fmax(first, 1e-300), t, never, false) : first - t;
    return before + (last > fmax(t, first) ? square_integral(law, fmax(fmax(t, first), 1e-300), last, never, true) : 0);
}
