/* encoding_none.c: no features: events as a set, for comparison. */
#include "nn/encoding_rows.h"

static void build(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features)
{
    (void)graph;
    (void)config;
    (void)feeds;
    (void)features;
}

const lp_encoding lp_encoding_none = {
    .name = "none", .summary = "neither time nor order: events as a set, for comparison", .build = build};
