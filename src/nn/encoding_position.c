/* encoding_position.c: a learned vector for each position in the window: order only, the paper's PosEnc. */
#include "nn/encoding_rows.h"

static void build(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features)
{
    lp_value *table = lp_graph_parameter(graph, "time.position", config->context, config->dims, LP_INIT_NORMAL, 0.02);
    features->token = lp_embed(graph, table, feeds[LP_FEED_POSITION]);
}

const lp_encoding lp_encoding_position = {
    .name = "position", .summary = "learned position vectors: order only", .build = build};
