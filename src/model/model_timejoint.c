/* model_timejoint.c: event-time joint embedding with prediction of the next duration (Li, Du, Bengio 2017).
 *
 *     Z = input layer                                              [T x dims]      input_layer.h
 *     P = softmax(G W^T + b), the soft one-hot of the gap          [T x buckets]   G: rows of lp_gap_row, of log(gap)
 *     X = dropout((Z + P E) / 2)                                   [T x dims]      E: embedding of each bucket
 *     H = lstm(X)                                                  [T x dims]      nn/recurrent.h, `layers` times
 *     logits of H at the target positions                                          output_layer.h
 *     U = H at the target positions V^T + c                        [targets x buckets]
 *     loss = cross-entropy of the event + duration-weight * cross-entropy of U to the soft one-hot of the next gap
 *
 * The buckets start as Gaussians at even distances over +-RANGE deviations of log(gap): exp(-(g - m_j)^2 / 2 s^2), normalized, is
 * softmax_j(g m_j / s^2 - m_j^2 / 2 s^2). Those of the input are learned. Those of the target stay as they start: the loss would
 * otherwise be lowest where all gaps fall into one bucket.
 *
 * With an encoding and a known target time the logits see the lag to the predicted event (target_lag.h). U, which predicts it, never
 * does.
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "model/recurrent_options.h"
#include "nn/layer.h"
#include "nn/recurrent.h"

#include <math.h>
#include <stddef.h>

static const double RANGE = 2.5;
enum { BUCKETS_MOST = 256 };

typedef struct timejoint_settings {
    lp_recurrent_settings recurrent; /* first: lp_target_lag_options, lp_encoding_options, lp_recurrent_options */
    double duration_weight;
    int buckets;
} timejoint_settings;

_Static_assert(sizeof(timejoint_settings) <= LP_MODEL_SETTINGS_SIZE, "a model's settings fit its config");

static const timejoint_settings *settings_of(const lp_model_config *config)
{
    return (const void *)config->settings.bytes;
}

#define AT(member) .offset = offsetof(timejoint_settings, member)

/* clang-format off */
static const lp_option options[] = {
    {.name = "buckets", .type = LAPSE_OPTION_INTEGER, AT(buckets), .group = "Model", .stored = LP_STORED_FORWARD,
     .placeholder = "N", .least = 2, .most = BUCKETS_MOST, .initial = "32", .advanced = true,
     .help = "buckets of the soft one-hot encoding of gaps, 2 to 256"},
    {.name = "duration-weight", .type = LAPSE_OPTION_NUMBER, AT(duration_weight), .group = "Training",
     .stored = LP_STORED_TRAINING, .placeholder = "X", .least = 0, .most = 1000, .initial = "0.1", .advanced = true,
     .help = "weight of the next gap's cross-entropy in the loss"},
    {0},
};
/* clang-format on */

typedef struct bucket_weights {
    lp_value *weight, *bias; /* [buckets x 2], [1 x buckets] */
} bucket_weights;

static bucket_weights declare_buckets(const lp_builder *b, const char *weight, const char *bias)
{
    int buckets = settings_of(b->config)->buckets;
    double weights[BUCKETS_MOST * LP_GAP_COLUMNS] = {0}, biases[BUCKETS_MOST];
    double deviation = 2 * RANGE / (buckets - 1);
    for (int j = 0; j < buckets; j++) {
        double mean = -RANGE + j * deviation;
        weights[j * LP_GAP_COLUMNS] = mean / (deviation * deviation);
        biases[j] = -mean * mean / (2 * deviation * deviation);
    }
    return (bucket_weights){lp_graph_parameter_values(b->graph, weight, buckets, LP_GAP_COLUMNS, weights),
                            lp_graph_parameter_values(b->graph, bias, 1, buckets, biases)};
}

static lp_value *soft_one_hot(const lp_builder *b, bucket_weights buckets, lp_feed gap)
{
    return lp_softmax(b->graph, lp_linear(b->graph, b->feeds[gap], buckets.weight, buckets.bias, NULL, 1, true));
}

static void build(lp_builder *b)
{
    const timejoint_settings *settings = settings_of(b->config);
    int dims = b->config->dims;
    lp_value *z = lp_input_layer(b);
    bucket_weights learned = declare_buckets(b, "bucket.weight", "bucket.bias");
    lp_value *embedding = lp_graph_parameter(b->graph, "bucket.embedding", settings->buckets, dims, LP_INIT_NORMAL,
                                             1 / sqrt((double)dims));
    lp_value *sum = lp_linear(b->graph, soft_one_hot(b, learned, LP_FEED_GAP), embedding, NULL, z, 1, false);
    lp_value *x = lp_affine(b->graph, sum, 0.5, 0);
    for (int layer = 0; layer < settings->recurrent.layers; layer++)
        x = lp_lstm_layer(b->graph, "lstm", layer, lp_dropout(b->graph, x, b->dropout), dims);
    lp_value *state = lp_at_targets(b, x);
    lp_output_layer(b, lp_target_lag(b, state));
    b->network->duration = lp_layer(b->graph, "duration", state, settings->buckets, NULL);
    bucket_weights fixed = declare_buckets(b, "duration.bucket.weight", "duration.bucket.bias");
    fixed.weight = lp_graph_parameter_freeze(b->graph, fixed.weight);
    fixed.bias = lp_graph_parameter_freeze(b->graph, fixed.bias);
    if (b->training)
        b->network->duration_target = soft_one_hot(b, fixed, LP_FEED_TARGET_GAP_INPUT);
}

static lp_value *loss(lp_builder *b)
{
    lp_value *duration = lp_soft_loss(b->graph, b->network->duration, b->network->duration_target);
    return lp_add(b->graph, lp_task_loss(b), lp_affine(b->graph, duration, settings_of(b->config)->duration_weight, 0));
}

const lp_model_row lp_model_timejoint = {
    .name = "timejoint",
    .summary = "recurrent network over events and soft buckets of their gaps",
    .gap_input = true,
    .own_time = true,
    .tasks = 1 << LP_TASK_CLASSIFY,
    .options = {lp_target_lag_options, lp_encoding_options, lp_recurrent_options, options},
    .resolve = lp_target_lag_resolve,
    .validate = lp_recurrent_validate,
    .build = build,
    .loss = loss};
