/* model_attention.c: self-attention with functional time representation (Xu et al. 2019), exact lags.
 *
 *     Z = dropout(joint vector of the event)     [T x dims]
 *     Z = block(Z), `blocks` times               nn/attention_block.c
 *     S = norm(Z) at the target positions         [A x dims]
 *     logits = S W^T + b                         [A x names], for each target
 *
 * A recommender has the scores S E^T + b instead, with the embedding E of the items themselves or one of their own, and
 * scales the embedding of the events up by the root of dims, as the output wants it small. In training with a sampled loss
 * E and b are the rows of the shard's own items.
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
        lp_value *table = lp_graph_parameter(graph, name, (int)field->categories.count, field->dims, LP_INIT_NORMAL,
                                             1 / sqrt((double)field->dims));
        x = lp_embed(graph, table, feed);
    }
    snprintf(name, sizeof name, "field.%d.weight", f);
    lp_value *weight = lp_graph_parameter(graph, name, config->dims, field->dims, LP_INIT_UNIFORM, spread);
    return lp_linear(graph, x, weight, NULL, sum, 1, true);
}

/* A parameter with a row for each item: rows of the shard's own where these are listed, otherwise all. */
static lp_value *item_rows(lp_graph *graph, const lp_model_config *config, bool training, const char *name, int cols,
                           lp_initializer start, lp_value *rows)
{
    const double spread = 0.02;
    if (!training || !lp_model_config_lists(config))
        return lp_graph_parameter(graph, name, config->event_types, cols, start, spread);
    return lp_gather(graph, lp_graph_table(graph, name, config->event_types, cols, start, spread), rows);
}

/* Declares what a recommender knows of items, before all other parameters, and returns the events' embedding. */
static lp_value *declare_items(lp_network *network, const lp_model_config *config, bool training, lp_value *rows)
{
    lp_graph *graph = &network->graph;
    lp_value *events = item_rows(graph, config, training, "event.embedding", config->dims, LP_INIT_NORMAL, rows);
    network->items = events;
    if (config->output == LP_OUTPUT_SEPARATE)
        network->items = item_rows(graph, config, training, "output.weight", config->dims, LP_INIT_NORMAL, rows);
    network->bias = item_rows(graph, config, training, "output.bias", 1, LP_INIT_ZEROS, rows);
    return events;
}

static lp_value *joint_vector(lp_network *network, const lp_model_config *config, bool training,
                              lp_value *const feeds[LP_FEED_LIMIT])
{
    lp_graph *graph = &network->graph;
    bool recommend = config->task == LP_TASK_RECOMMEND;
    lp_value *table = recommend ? declare_items(network, config, training, feeds[LP_FEED_ITEM])
                                : lp_graph_parameter(graph, "event.embedding", config->event_types, config->dims,
                                                     LP_INIT_NORMAL, 1 / sqrt((double)config->dims));
    lp_value *sum = lp_embed(graph, table, feeds[LP_FEED_EVENT]);
    if (recommend)
        sum = lp_affine(graph, sum, sqrt((double)config->dims), 0);
    int width = config->dims;
    for (int f = 0; f < config->field_count; f++)
        width += config->fields[f].dims;
    for (int f = 0; f < config->field_count; f++)
        sum = add_field(graph, config, f, feeds[LP_FEED_COUNT + f], 1 / sqrt((double)width), sum);
    return sum;
}

/* Remembers what all blocks of a live network share: the basis; or of places, which are part of keys and values elsewhere, for
 * the last block, which makes none. */
static void build_caches(lp_network *network, const lp_model_config *config, lp_value *const feeds[LP_FEED_LIMIT],
                         lp_features *features)
{
    lp_decode_state *live = network->live;
    lp_graph *graph = &network->graph;
    live->placed = features->token != NULL;
    lp_value *shared = features->basis ? features->basis : features->token;
    if (!shared || config->projection == LP_PROJECTION_MLP)
        return;
    if (features->basis)
        features->query_time = lp_basis_after(graph, feeds[LP_FEED_QUERY_TIME], feeds[LP_FEED_TIME], features->basis);
    lp_value *transposed = lp_cache_append(graph, shared, live->capacity);
    for (int i = features->basis ? 0 : config->blocks - 1; i < config->blocks; i++)
        live->blocks[i] = (lp_kv_cache){.basis_transposed = transposed, .basis = lp_cache_rows(graph, shared)};
}

static void build(lp_network *network, const lp_model_config *config, bool training,
                  lp_value *const feeds[LP_FEED_LIMIT])
{
    static const char *const outputs[LP_TARGET_COUNT] = {"output", "output.action"};
    lp_graph *graph = &network->graph;
    lp_encoding_config encoding = lp_model_encoding(config);
    lp_block_config block = {.dims = config->dims,
                             .heads = config->heads,
                             .dropout = training ? config->dropout : 0,
                             .projection = config->projection,
                             .combine = config->combine,
                             .capacity = network->live ? network->live->capacity : 0};
    lp_value *joint = joint_vector(network, config, training, feeds);
    lp_features features = {0};
    config->encoding->build(graph, &encoding, feeds, &features);
    lp_decode_state *live = network->live;
    if (live)
        build_caches(network, config, feeds, &features);
    lp_value *z = lp_dropout(graph, joint, block.dropout);
    for (int i = 0; i < config->blocks; i++) {
        block.newest = live && i == config->blocks - 1;
        z = lp_attention_block(graph, &block, i, z, &features, live ? &live->blocks[i] : NULL);
    }
    z = lp_norm(graph, "output.norm", z ? lp_embed(graph, z, feeds[LP_FEED_TARGET_POSITION]) : NULL);
    if (config->task == LP_TASK_RECOMMEND) {
        network->state = z;
        return;
    }
    for (int t = 0; t < LP_TARGET_COUNT; t++)
        if (lp_model_predicts(config, (lp_target)t))
            network->logits[t] = lp_layer(graph, outputs[t], z, lp_model_target_size(config, (lp_target)t), NULL);
}

const lp_model_row lp_model_attention = {.name = "attention",
                                         .summary = "self-attention with functional time encodings",
                                         .uses_context = true,
                                         .build = build};
