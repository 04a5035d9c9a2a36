/* learning_rate.c: learning-rate schedules. */
#include "train/learning_rate.h"

#include "base/assert.h"

#include <math.h>

double lp_learning_rate(const lp_run_settings *run, double epochs)
{
    static const double pi = 3.141592653589793;
    if (run->schedule != LP_SCHEDULE_COSINE)
        return run->learning_rate;
    LP_ASSERT(epochs >= 0 && epochs <= run->epochs);
    return run->learning_rate * 0.5 * (1 + cos(pi * epochs / run->epochs));
}
