/* lags.c: the lags at which a kernel is evaluated. Periods span decades, so the default axis is logarithmic. */
#include "base/text.h"
#include "inspect/spectrum.h"

#include <math.h>
#include <string.h>

enum { MOST_POINTS = 100000 };

static const char *const axes[] = {"log", "linear", NULL};

const char *const *lapse_axis_names(void)
{
    return axes;
}

void lapse_lags_default(lapse_lags *lags)
{
    *lags = (lapse_lags){.axis = "log", .points = 60};
}

static bool is_log(const lapse_lags *lags)
{
    return strcmp(lags->axis, "log") == 0;
}

/* Defaults: from a tenth of the shortest period, where every feature is near its value at 0, to the longest. */
static void suggest(const lapse_spectrum *spectrum, lapse_lags *lags)
{
    double shortest, longest;
    lp_spectrum_periods(spectrum, &shortest, &longest);
    if (lags->to == 0)
        lags->to = longest > lags->from ? longest : 10 * lags->from;
    if (lags->from == 0 && is_log(lags))
        lags->from = (shortest < lags->to ? shortest : lags->to) / 10;
}

lapse_status lapse_lags_resolve(const lapse_spectrum *spectrum, lapse_lags *lags, lapse_error *error)
{
    LP_REQUIRE(error, spectrum, lags);
    if (lp_name_index(lags->axis, axes) < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "axis is '%s'; it must be log or linear",
                       lags->axis ? lags->axis : "");
    if (lags->points < 2 || lags->points > MOST_POINTS)
        return lp_fail(error, LAPSE_ERROR_USAGE, "points is %d; it must be 2 to %d", lags->points, MOST_POINTS);
    if (!(lags->from >= 0 && lags->to >= 0 && isfinite(lags->from) && isfinite(lags->to)))
        return lp_fail(error, LAPSE_ERROR_USAGE, "lags begin at %g and end at %g seconds; both must be 0 or more",
                       lags->from, lags->to);
    suggest(spectrum, lags);
    if (lags->from >= lags->to) {
        char from[64], to[64];
        return lp_fail(error, LAPSE_ERROR_USAGE, "lags begin at %s and end at %s; the end must be larger",
                       lapse_duration_format(lags->from, from, sizeof from),
                       lapse_duration_format(lags->to, to, sizeof to));
    }
    return LAPSE_OK;
}

double lapse_lags_at(const lapse_lags *lags, int index)
{
    double part = (double)index / (lags->points - 1);
    if (index <= 0)
        return lags->from;
    if (index >= lags->points - 1)
        return lags->to;
    if (is_log(lags))
        return lags->from * exp(part * log(lags->to / lags->from));
    return lags->from + part * (lags->to - lags->from);
}
