/* model_sasrec.c: self-attention over the order of events (Kang and McAuley 2018). It does not see times, except the
 * lag to the predicted event with an encoding (target_lag.h).
 *
 *     Z = dropout(input layer + P)               [T x dims]        P: a learned vector of the position, counted from the window's end
 *     Z = block(Z), `blocks` times                                 nn/attention_block.c, without an encoding
 *     S = norm(Z) at the target positions        [targets x dims]
 *     logits or catalogue scores of S                              output_layer.h
 *
 * Positions count from the end, as the published model's do, which pads short windows at their start: the newest event has the same
 * vector in a window of any length. So every event of a window changes when one is appended, and nothing can be cached.
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "model/target_lag.h"
#include "nn/attention_block.h"
#include "nn/layer.h"

#include <stddef.h>

typedef struct sasrec_settings {
    lp_encoding_config time; /* first: lp_target_lag_options, lp_encoding_options */
    int blocks, heads;
} sasrec_settings;

_Static_assert(sizeof(sasrec_settings) <= LP_MODEL_SETTINGS_SIZE, "a model's settings fit its config");

static const sasrec_settings *settings_of(const lp_model_config *config)
{
    return (const void *)config->settings.bytes;
}

#define AT(member) .offset = offsetof(sasrec_settings, member), .group = "Model", .stored = LP_STORED_FORWARD

/* clang-format off */
static const lp_option options[] = {
    {.name = "blocks", .type = LAPSE_OPTION_INTEGER, AT(blocks), .placeholder = "N", .least = 1, .most = 8,
     .initial = "2", .help = "number of attention blocks, 1 to 8"},
    {.name = "heads", .type = LAPSE_OPTION_INTEGER, AT(heads), .placeholder = "N", .least = 1, .most = 8,
     .initial = "1", .advanced = true, .help = "number of attention heads, 1 to 8; divides dims"},
    {0},
};
/* clang-format on */

static void defaults(lp_model_config *config)
{
    if (config->loss == LP_UNSET)
        config->loss = LP_LOSS_BCE;
}

static lapse_status validate(const lp_model_config *config, lapse_error *error)
{
    LP_TRY(lp_heads_check(settings_of(config)->heads, config->dims, error));
    return lp_target_lag_validate(config, error);
}

static void build(lp_builder *b)
{
    const sasrec_settings *settings = settings_of(b->config);
    lp_block_config block = {.dims = b->config->dims, .heads = settings->heads, .dropout = b->dropout};
    lp_features none = {0};
    b->network->anchored = true;
    lp_value *z = lp_input_layer(b);
    lp_value *table =
        lp_graph_parameter(b->graph, "position.embedding", b->config->context, b->config->dims, LP_INIT_NORMAL, 0.02);
    z = lp_add(b->graph, z, lp_embed(b->graph, table, b->feeds[LP_FEED_POSITION_FROM_END]));
    z = lp_dropout(b->graph, z, b->dropout);
    for (int i = 0; i < settings->blocks; i++) {
        bool last = i == settings->blocks - 1;
        block.targets = last && !b->training ? b->feeds[LP_FEED_TARGET_POSITION] : NULL;
        block.few_targets = block.targets && b->few_targets;
        z = lp_attention_block(b->graph, &block, i, z, &none, NULL);
    }
    lp_output_layer(b, lp_target_lag(b, lp_norm(b->graph, "output.norm", lp_at_targets(b, z))));
}

const lp_model_row lp_model_sasrec = {.name = "sasrec",
                                      .summary = "self-attention with positions counted from the window's end",
                                      .tasks = LP_TASKS_ALL,
                                      .options = {lp_target_lag_options, lp_encoding_options, options},
                                      .defaults = defaults,
                                      .resolve = lp_target_lag_resolve,
                                      .validate = validate,
                                      .build = build};
