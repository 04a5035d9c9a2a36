/* encoding_random.c: random Fourier features, for comparison: frequencies are sampled once, uniformly between those of
 * the longest and the shortest period, and are not learned. */
#include "nn/encoding_rows.h"

static void build(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features)
{
    /* A frequency is the power -1 of a period. */
    lp_value *log_period = lp_graph_parameter_log_power(graph, LP_LOG_PERIOD, 1, config->periods, -1,
                                                        config->period_min, config->period_max);
    lp_encoding_lags(graph, lp_graph_parameter_freeze(graph, log_period), 1, feeds, features);
}

const lp_encoding lp_encoding_random = {.name = "random",
                                        .summary = "random frequencies, fixed, for comparison",
                                        .sees_time = true,
                                        .default_periods = 50,
                                        .build = build};
