/* encoding_sinusoid.c: fixed sinusoidal position encodings (Vaswani et al. 2017): order only, nothing learned.
 *
 *     P[p][2i] = sin(p / 10000^(2i / dims))      P[p][2i + 1] = cos of the same
 */
#include "nn/encoding_rows.h"

static void build(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features)
{
    lp_value *table = lp_graph_parameter(graph, "time.position", config->context, config->dims, LP_INIT_SINUSOID, 0);
    features->token = lp_embed(graph, lp_graph_parameter_freeze(graph, table), feeds[LP_FEED_POSITION]);
}

const lp_encoding lp_encoding_sinusoid = {
    .name = "sinusoid", .summary = "fixed sinusoids of the position: order only", .build = build};
