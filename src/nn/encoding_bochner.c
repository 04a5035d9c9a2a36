/* encoding_bochner.c: Bochner's features with a non-parametric inverse CDF (section 4 of the paper): the frequencies
 * themselves are learned, as log periods, with amplitude 1. */
#include "nn/encoding_rows.h"

static void build(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features)
{
    lp_encoding_lags(graph, lp_encoding_periods(graph, config), 1, feeds, features);
}

const lp_encoding lp_encoding_bochner = {.name = "bochner",
                                         .summary = "learned frequencies (Bochner, non-parametric)",
                                         .sees_time = true,
                                         .default_periods = 50,
                                         .learns_periods = true,
                                         .build = build};
