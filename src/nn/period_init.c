/* period_init.c: the table of period initializers. */
#include "nn/period_init.h"

#include "base/assert.h"

#include <math.h>

/* The logarithm of period i (from 0) of `count`. */
typedef double (*period_rule)(int i, int count, double low, double high);

static lp_value *declare_by(lp_graph *graph, const char *name, int count, double low, double high, period_rule rule)
{
    double *log_period = lp_graph_alloc(graph, (size_t)count * sizeof *log_period);
    if (!log_period)
        return NULL;
    for (int i = 0; i < count; i++) {
        log_period[i] = rule(i, count, low, high);
        LP_ASSERT(isfinite(log_period[i]));
    }
    return lp_graph_parameter_values(graph, name, 1, count, log_period);
}

/* tau_i = tau_min (tau_max / tau_min)^((i - 1) / (n - 1)): even steps of log tau. A single period is the geometric
 * mean. */
static double geometric_rule(int i, int count, double low, double high)
{
    return count > 1 ? log(low) + (log(high) - log(low)) * i / (count - 1) : (log(low) + log(high)) / 2;
}

/* The paper's formula: tau_i = tau_min + (tau_max - tau_min)^(i / n), i = 1 .. n, in seconds. */
static double paper_rule(int i, int count, double low, double high)
{
    return log(low + pow(high - low, (double)(i + 1) / count));
}

/* The formula of the paper's section 5, over frequencies: f_i = f_max - (f_max - f_min)^(i / n), i = 1 .. n, in the unit
 * 1 / tau_max, where f_min = 1 and f_max = tau_max / tau_min. Most frequencies are near f_max. */
static double paper_frequency_rule(int i, int count, double low, double high)
{
    double most = high / low, frequency = most - pow(most - 1, (double)(i + 1) / count);
    return log(high) - log(frequency > 1 ? frequency : 1);
}

static double linear_rule(int i, int count, double low, double high)
{
    return log(low + (high - low) * (count > 1 ? (double)i / (count - 1) : 0.5));
}

static lp_value *declare_geometric(lp_graph *graph, const char *name, int count, double low, double high)
{
    return declare_by(graph, name, count, low, high, geometric_rule);
}

static lp_value *declare_paper(lp_graph *graph, const char *name, int count, double low, double high)
{
    return declare_by(graph, name, count, low, high, paper_rule);
}

static lp_value *declare_paper_frequency(lp_graph *graph, const char *name, int count, double low, double high)
{
    return declare_by(graph, name, count, low, high, paper_frequency_rule);
}

static lp_value *declare_random(lp_graph *graph, const char *name, int count, double low, double high)
{
    return lp_graph_parameter_log_power(graph, name, 1, count, 1, low, high);
}

static lp_value *declare_linear(lp_graph *graph, const char *name, int count, double low, double high)
{
    return declare_by(graph, name, count, low, high, linear_rule);
}

static const lp_period_init geometric = {"geometric", "even steps of the logarithm", declare_geometric};
static const lp_period_init paper = {"paper", "the formula of the paper's appendix", declare_paper};
static const lp_period_init paper_frequency = {"paper-frequency", "the formula of its section 5, over frequencies",
                                               declare_paper_frequency};
static const lp_period_init uniform = {"random", "uniform at random", declare_random};
static const lp_period_init linear = {"linear", "even steps", declare_linear};

const lp_period_init *const lp_period_inits[] = {&geometric, &paper, &uniform, &linear, &paper_frequency, NULL};
