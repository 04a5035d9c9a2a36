/* encoding_sinusoid.c: fixed sinusoidal positions (Vaswani et al. 2017): order only, nothing learned.
 *
 *     P[p][2i] = sin(p / 10000^(2i / dims))      P[p][2i + 1] = cos of the same
 */
#include "nn/encoding_rows.h"

static void build(lp_graph *graph, const lp_encoding_config *config, lp_value *const feeds[LP_FEED_COUNT],
                  lp_features *features)
{
    size_t dims = (size_t)config->dims, size = (size_t)config->context * dims;
    double *table = lp_graph_alloc(graph, size * sizeof *table);
    if (!table)
        return;
    for (size_t i = 0; i < size; i++) {
        double place = (double)(i / dims), column = (double)(i % dims), even = 2 * floor(column / 2);
        double angle = place * pow(10000, -even / (double)dims);
        table[i] = column == even ? sin(angle) : cos(angle);
    }
    lp_value *fixed = lp_graph_parameter_values(graph, "time.position", config->context, config->dims, table);
    features->token = lp_embed(graph, lp_graph_parameter_fix(graph, fixed), feeds[LP_FEED_POSITION]);
}

const lp_encoding lp_encoding_sinusoid = {
    .name = "sinusoid", .summary = "fixed waves over the places: order only", .build = build};
