/* encoding_mercer.c: Mercer's features (section 5 of the paper): for each period, learned or fixed, a truncated Fourier
 * series with learned amplitudes. The coefficient c = amplitude^2 stays non-negative. The intercept sqrt(c_1) is
 * constant over time, so the biases of the projections replace it. */
#include "nn/encoding_rows.h"

static void build(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features)
{
    lp_encoding_lags(graph, lp_encoding_periods(graph, config), config->harmonics, feeds, features);
    int cols = 2 * config->periods * config->harmonics;
    double *initial = lp_graph_alloc(graph, (size_t)cols * sizeof *initial);
    if (!initial)
        return;
    for (int i = 0; i < cols; i++)
        initial[i] = 1 / sqrt((double)config->harmonics);
    features->amplitude = lp_graph_parameter_values(graph, "time.amplitude", 1, cols, initial);
}

const lp_encoding lp_encoding_mercer = {.name = "mercer",
                                        .summary = "learned periods with harmonics (Mercer)",
                                        .sees_time = true,
                                        .default_periods = 16,
                                        .default_harmonics = 5,
                                        .learns_periods = true,
                                        .build = build};
