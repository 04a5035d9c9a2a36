/* model_attention.c: self-attention with functional time representation (Xu et al. 2019), with exact lags.
 *
 *     Z = dropout(input layer)                   [T x dims]        input_layer.h
 *     Z = block(Z), `blocks` times                                 nn/attention_block.c
 *     S = norm(Z) at the target positions        [targets x dims]
 *     logits or catalogue scores of S                              output_layer.h
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "nn/attention_block.h"
#include "nn/layer.h"

#include <stddef.h>

typedef struct attention_settings {
    lp_encoding_config time; /* first: lp_encoding_choice, lp_encoding_options */
    int projection, combine; /* lp_projection, lp_combine */
    int blocks, heads;
} attention_settings;

_Static_assert(sizeof(attention_settings) <= LP_MODEL_SETTINGS_SIZE, "a model's settings fit its config");

static const attention_settings *settings_of(const lp_model_config *config)
{
    return (const void *)config->settings.bytes;
}

/* --------------------------------------------------------------------------------------------- options ------- */

static const char *const *projection_names(void)
{
    return lp_projection_names;
}

static const char *const *combine_names(void)
{
    return lp_combine_names;
}

#define AT(member) .offset = offsetof(attention_settings, member), .group = "Model", .stored = LP_STORED_FORWARD

/* clang-format off */
static const lp_option options[] = {
    {.name = "blocks", .type = LAPSE_OPTION_INTEGER, AT(blocks), .placeholder = "N", .least = 1, .most = 8,
     .initial = "2", .help = "number of attention blocks, 1 to 8"},
    {.name = "heads", .type = LAPSE_OPTION_INTEGER, AT(heads), .placeholder = "N", .least = 1, .most = 8,
     .rule = "2, or 1 if dims is odd", .advanced = true,
     .help = "number of attention heads, 1 to 8; divides dims"},
    {.name = "projection", .type = LAPSE_OPTION_CHOICE, AT(projection), .placeholder = "NAME",
     .choices = projection_names, .initial = "linear", .advanced = true,
     .help = "query, key and value projections: linear, an MLP for the query, or MLPs for all three, which see times "
     "from one anchor instead of exact lags"},
    {.name = "combine", .type = LAPSE_OPTION_CHOICE, AT(combine), .placeholder = "NAME", .choices = combine_names,
     .initial = "concatenate", .advanced = true, .help = "combination of event vector and time features"},
    {0},
};
/* clang-format on */

static lapse_status resolve(lp_model_config *config, const lp_fit_data *data, lapse_error *error)
{
    attention_settings *settings = (void *)config->settings.bytes;
    if (settings->heads == LP_UNSET)
        settings->heads = config->dims % 2 ? 1 : 2;
    if (config->gap_input == LP_UNSET)
        config->gap_input = lp_encodings[settings->time.encoding]->sees_time;
    settings->time.dims = config->dims;
    settings->time.context = config->context;
    return lp_encoding_resolve(&settings->time, data->dataset, data->split, error);
}

/* An MLP of keys and values sees times from one anchor per window, which moves with every query: nothing can be cached. */
static bool is_anchored(const lp_model_config *config)
{
    const attention_settings *settings = settings_of(config);
    return settings->projection == LP_PROJECTION_MLP && lp_encodings[settings->time.encoding]->sees_time;
}

static lapse_status validate(const lp_model_config *config, lapse_error *error)
{
    const attention_settings *settings = settings_of(config);
    LP_TRY(lp_heads_check(settings->heads, config->dims, error));
    if (config->when && is_anchored(config))
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "the projection mlp sees all times from the end of the window, so that every event but the last would tell "
            "the times of later ones, which " LP_FLAG("--when") " learns: use the projection linear or mlp-query");
    return lp_encoding_validate(&settings->time, error);
}

static bool incremental(const lp_model_config *config)
{
    return !is_anchored(config);
}

/* ----------------------------------------------------------------------------------------------- graph ------- */

/* Declares the caches that all blocks share: that of the basis, or where positions are part of keys and values, that of the
 * positions for the last block, which computes neither (nn/attention_block.c). */
static void build_caches(lp_builder *b, int blocks, lp_features *features)
{
    lp_decode_state *decode = b->network->decode;
    decode->caches = lp_graph_alloc(b->graph, (size_t)blocks * sizeof *decode->caches);
    if (!decode->caches)
        return;
    decode->cache_count = blocks;
    lp_value *shared = features->basis ? features->basis : features->token;
    if (!shared || settings_of(b->config)->projection == LP_PROJECTION_MLP)
        return;
    if (features->basis)
        features->query_basis =
            lp_basis_after(b->graph, b->feeds[LP_FEED_QUERY_TIME], b->feeds[LP_FEED_TIME], features->basis);
    for (int i = features->basis ? 0 : blocks - 1; i < blocks; i++)
        decode->caches[i] = (lp_kv_cache){.basis = lp_cache_rows(b->graph, shared)};
}

static void build(lp_builder *b)
{
    const attention_settings *settings = settings_of(b->config);
    lp_network *network = b->network;
    lp_decode_state *decode = network->decode;
    lp_block_config block = {.dims = b->config->dims,
                             .heads = settings->heads,
                             .dropout = b->dropout,
                             .projection = (lp_projection)settings->projection,
                             .combine = (lp_combine)settings->combine};
    network->encoding = lp_encodings[settings->time.encoding];
    network->encoding_config = settings->time;
    network->encoding_config.dims = b->config->dims;
    network->encoding_config.context = b->config->context;
    network->anchored = is_anchored(b->config);
    lp_value *input = lp_input_layer(b);
    lp_features features = {0};
    network->encoding->build(b->graph, &network->encoding_config, b->feeds, &features);
    if (decode)
        build_caches(b, settings->blocks, &features);
    /* In training the lag has a basis of its own: the gradient of a reflection would be two matrices, that of a basis is a sum. */
    if (b->training && features.basis && settings->projection != LP_PROJECTION_MLP)
        features.lag = lp_basis(b->graph, b->feeds[LP_FEED_LAG], features.frequency);
    lp_value *z = lp_dropout(b->graph, input, b->dropout);
    for (int i = 0; i < settings->blocks; i++) {
        bool last = i == settings->blocks - 1;
        block.last_row_only = decode && last;
        block.targets = last && !decode && !b->training ? b->feeds[LP_FEED_TARGET_POSITION] : NULL;
        block.few_targets = block.targets && b->few_targets;
        z = lp_attention_block(b->graph, &block, i, z, &features, decode && decode->caches ? &decode->caches[i] : NULL);
    }
    lp_output_layer(b, lp_norm(b->graph, "output.norm", lp_at_targets(b, z)));
}

const lp_model_row lp_model_attention = {.name = "attention",
                                         .summary = "self-attention with functional time encodings",
                                         .tasks = LP_TASKS_ALL,
                                         .options = {lp_encoding_choice, lp_encoding_options, options},
                                         .resolve = resolve,
                                         .validate = validate,
                                         .build = build,
                                         .incremental = incremental};
