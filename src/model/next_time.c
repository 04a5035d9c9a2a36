/* next_time.c: density, survival and mean of the time of the next event. */
#include "model/next_time.h"

#include "base/hazard.h"

double lp_next_time_log_density(const lp_next_time *law, double t)
{
    double d = t / law->unit;
    return law->score + law->slope * d - lp_hazard_cumulative(law->score, law->slope, d) - log(law->unit);
}

double lp_next_time_survival(const lp_next_time *law, double t)
{
    return exp(-lp_hazard_cumulative(law->score, law->slope, t / law->unit));
}

/* The cumulative hazard at infinity. */
static double total_hazard(const lp_next_time *law)
{
    return law->slope < 0 ? exp(law->score) / -law->slope : INFINITY;
}

double lp_next_time_never(const lp_next_time *law)
{
    return exp(-total_hazard(law));
}

/* The time, in units, at which the cumulative hazard is `hazard`: log(1 + x) / slope with x = slope hazard / exp(score). */
static double time_of(const lp_next_time *law, double hazard)
{
    double start = hazard * exp(-law->score), x = law->slope * start;
    return fabs(x) < 1e-8 ? start * (1 - x / 2) : log1p(fmax(x, -1 + 1e-16)) / law->slope;
}

/* The cumulative hazard of the event's time is exponential, so the mean is the integral of time_of(h) exp(-h) from 0 to the total
 * hazard, divided by its mass. tanh-sinh quadrature: the integrand has a logarithmic singularity at the end where the slope is
 * negative, and nearly one at 0 where the slope is large. */
double lp_next_time_mean(const lp_next_time *law)
{
    const double step = 1.0 / 32, reach = 4, half_pi = 1.57079632679489662, most = 45; /* exp(-45): beyond double */
    double end = fmin(total_hazard(law), most), sum = 0;
    for (int i = (int)(-reach / step); i <= (int)(reach / step); i++) {
        double at = i * step, inner = half_pi * sinh(at);
        double h = end / (1 + exp(-2 * inner)); /* end (1 + tanh(inner)) / 2 */
        double weight = end / 2 * half_pi * cosh(at) / (cosh(inner) * cosh(inner));
        sum += weight * time_of(law, h) * exp(-h);
    }
    return law->unit * step * sum / -expm1(-end);
}
