/* model_attention.c: self-attention with functional time representation (Xu et al. 2019), exact lags.
 *
 *     Z = dropout(embedding of the events)       [T x dims]
 *     Z = block(Z), `blocks` times               nn/attention_block.c
 *     logits = norm(Z) W^T + b                   [T x kinds]
 */
#include "model/model_rows.h"

lp_encoding_config lp_model_encoding_config(const lp_model_config *config)
{
    return (lp_encoding_config){config->dims,      config->context,    config->periods,
                                config->harmonics, config->period_min, config->period_max};
}

static lp_value *build(lp_graph *graph, const lp_model_config *config, bool training,
                       lp_value *const feeds[LP_FEED_COUNT])
{
    lp_encoding_config encoding = lp_model_encoding_config(config);
    lp_block_config block = {.dims = config->dims,
                             .heads = config->heads,
                             .dropout = training ? config->dropout : 0,
                             .projection = config->projection,
                             .combine = config->combine};
    lp_value *table = lp_graph_parameter(graph, "event.embedding", config->kinds, config->dims, LP_START_NORMAL,
                                         1 / sqrt((double)config->dims));
    lp_features features = {0};
    config->encoding->build(graph, &encoding, feeds, &features);
    lp_value *z = lp_dropout(graph, lp_embed(graph, table, feeds[LP_FEED_KIND]), block.dropout);
    for (int i = 0; i < config->blocks; i++)
        z = lp_attention_block(graph, &block, i, z, &features);
    return lp_layer(graph, "output", lp_norm(graph, "output.norm", z), config->kinds, NULL);
}

const lp_model_row lp_model_attention = {.name = "attention",
                                         .summary = "self-attention with functional time encodings",
                                         .uses_context = true,
                                         .build = build};
