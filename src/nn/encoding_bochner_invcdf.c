/* encoding_bochner_invcdf.c: Bochner's features with a learned inverse CDF (section 4 of the paper, the second row of
 * its table 1): x = g(noise), where g is one of lp_inverse_cdfs, and x the logarithm of a frequency or
 * the frequency (lp_encoding_spread). */
#include "nn/encoding_rows.h"

/* Factor of the learning rate. A step of Adam moves every weight of the map, and so all frequencies together, much
 * farther than frequencies that are learned separately. */
static const double MAP_RATE = 0.1;

static lp_value *sample(lp_graph *graph, const lp_encoding_config *config, lp_sample_stream stream)
{
    const lp_inverse_cdf *map = lp_inverse_cdfs[config->inverse_cdf];
    int count = config->periods;
    lp_value *noise = lp_noise(graph, map->joint ? 1 : count, map->joint ? count : 1, map->uniform,
                               config->independent_draws, stream);
    if (map->uniform)
        noise = lp_affine(graph, noise, 4, -2);
    lp_value *x = map->build(graph, noise, config->hidden);
    for (int i = 0; i < graph->parameter_count; i++)
        lp_graph_parameter_rate(graph, graph->parameters[i].value, MAP_RATE);
    return lp_encoding_spread(graph, config, x);
}

static void build(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features)
{
    lp_encoding_samples(graph, &lp_encoding_bochner_invcdf, config, feeds, features);
}

const lp_encoding lp_encoding_bochner_invcdf = {.name = "bochner-invcdf",
                                                .summary = "frequencies sampled through a learned inverse CDF",
                                                .sees_time = true,
                                                .default_periods = 50,
                                                .maps_noise = true,
                                                .build = build,
                                                .sample = sample};
