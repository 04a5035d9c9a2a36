/* encoding_bochner_normal.c: Bochner's features with samples of a location-scale family (section 4 of the paper, its
 * first row of table 1), by the reparameterization trick:
 *
 *     x_i = location + exp(log_scale) e_i        e standard normal
 *
 * Location and scale are learned; x is initially standard normal. By default x is the logarithm of a frequency
 * (lp_encoding_spread), because periods span eight orders of magnitude and a normal distribution of the frequencies has
 * one scale. `--frequency-scale linear --independent-draws` is the paper's encoding.
 */
#include "nn/encoding_rows.h"

static lp_value *sample(lp_graph *graph, const lp_encoding_config *config, lp_sample_stream stream)
{
    lp_value *location = lp_graph_parameter(graph, "time.location", 1, 1, LP_INIT_ZEROS, 0);
    lp_value *scale = lp_exp(graph, lp_graph_parameter(graph, "time.log_scale", 1, 1, LP_INIT_ZEROS, 0));
    lp_value *noise = lp_noise(graph, config->periods, 1, false, config->independent_draws, stream);
    return lp_encoding_spread(graph, config, lp_linear(graph, noise, scale, location, NULL, 1, true));
}

static void build(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features)
{
    lp_encoding_samples(graph, &lp_encoding_bochner_normal, config, feeds, features);
}

const lp_encoding lp_encoding_bochner_normal = {.name = "bochner-normal",
                                                .summary = "frequencies sampled from a learned normal distribution",
                                                .sees_time = true,
                                                .default_periods = 50,
                                                .build = build,
                                                .sample = sample};
