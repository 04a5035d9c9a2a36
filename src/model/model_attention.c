/* model_attention.c: self-attention with functional time representation (Xu et al. 2019), exact lags.
 *
 *     Z = dropout(joint vector of the event)     [T x dims]
 *     Z = block(Z), `blocks` times               nn/attention_block.c
 *     logits = norm(Z) W^T + b                   [T x names], for each target
 *
 * The joint vector is that of the paper's shop model, the event's embedding joined to those of its fields and to its
 * numbers, [E_k, F1_a, .., x1, ..], projected to `dims`. A projection of joined vectors is the sum of each one's own, and
 * that of E_k is left out, since E is learned anyway:
 *
 *     Z = E_k + F1_a W1^T + .. + x1 w1^T + ..
 *
 * So nothing is wider than without fields: blocks cost the same, heads divide the same dims, and a model without fields
 * is what it was. Keys and values, being linear, would be such sums in a wider block too.
 */
#include "model/model_rows.h"

#include <stdio.h>

enum { NAME_SIZE = 40 };

static lp_value *add_field(lp_graph *graph, const lp_model_config *config, int f, lp_value *feed, double spread,
                           lp_value *sum)
{
    const lp_model_field *field = &config->fields[f];
    char name[NAME_SIZE];
    lp_value *x = feed;
    if (field->type != LAPSE_FIELD_NUMBER) {
        snprintf(name, sizeof name, "field.%d.embedding", f);
        lp_value *table = lp_graph_parameter(graph, name, (int)field->categories.count, field->dims, LP_START_NORMAL,
                                             1 / sqrt((double)field->dims));
        x = lp_embed(graph, table, feed);
    }
    snprintf(name, sizeof name, "field.%d.weight", f);
    lp_value *weight = lp_graph_parameter(graph, name, config->dims, field->dims, LP_START_UNIFORM, spread);
    return lp_linear(graph, x, weight, NULL, sum, 1, true);
}

static lp_value *joint_vector(lp_graph *graph, const lp_model_config *config, lp_value *const feeds[LP_FEED_LIMIT])
{
    lp_value *table = lp_graph_parameter(graph, "event.embedding", config->kinds, config->dims, LP_START_NORMAL,
                                         1 / sqrt((double)config->dims));
    lp_value *sum = lp_embed(graph, table, feeds[LP_FEED_KIND]);
    int width = config->dims;
    for (int f = 0; f < config->field_count; f++)
        width += config->fields[f].dims;
    for (int f = 0; f < config->field_count; f++)
        sum = add_field(graph, config, f, feeds[LP_FEED_COUNT + f], 1 / sqrt((double)width), sum);
    return sum;
}

static void build(lp_graph *graph, const lp_model_config *config, bool training, lp_value *const feeds[LP_FEED_LIMIT],
                  lp_value *logits[LP_TARGET_COUNT])
{
    static const char *const outputs[LP_TARGET_COUNT] = {"output", "output.action"};
    lp_encoding_config encoding = lp_model_encoding(config);
    lp_block_config block = {.dims = config->dims,
                             .heads = config->heads,
                             .dropout = training ? config->dropout : 0,
                             .projection = config->projection,
                             .combine = config->combine};
    lp_value *joint = joint_vector(graph, config, feeds);
    lp_features features = {0};
    config->encoding->build(graph, &encoding, feeds, &features);
    lp_value *z = lp_dropout(graph, joint, block.dropout);
    for (int i = 0; i < config->blocks; i++)
        z = lp_attention_block(graph, &block, i, z, &features);
    z = lp_norm(graph, "output.norm", z);
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        if (lp_model_predicts(config, (lp_target)t))
            logits[t] = lp_layer(graph, outputs[t], z, lp_model_target_size(config, (lp_target)t), NULL);
}

const lp_model_row lp_model_attention = {.name = "attention",
                                         .summary = "self-attention with functional time encodings",
                                         .uses_context = true,
                                         .build = build};
