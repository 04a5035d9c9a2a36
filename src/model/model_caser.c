/* model_caser.c: convolutional sequence embedding (Caser, Tang and Wang 2018). It does not see times, except the lag to the predicted
 * event with an encoding (target_lag.h).
 *
 *     X = input layer                                             [T x dims]      input_layer.h
 *     O_h = max over the last L - h + 1 events of max(0, conv1d of height h (X))  [T x n], for heights h = 1 .. L
 *     V_j,t = sum over m < L of v_jm X_{t-m}                      [T x dims], for the vertical filters j
 *     Z = max(0, dropout([O_1 .. O_L, V_1 ..]) W^T + b)           [T x dims]
 *     S = [Z, P_u]                                                [T x 2 dims]    P_u: the vector of the user (user_vector.h)
 *     catalogue scores of S at the target positions                               output_layer.h
 *
 * L is `conv-length`. Convolutions are computed once per event and shared by all windows of L events that contain it, where the published
 * model computes each window anew; events before the start of a sequence are zeros to both. A published maximum also counts windows of
 * such zeros alone, ours does not.
 *
 * With T targets (`conv-targets`) the state also predicts the events after the next: at a target position, the states of the T - 1 events
 * before predict the same target, and the loss is the mean.
 */
#include "model/input_layer.h"
#include "model/model_rows.h"
#include "model/output_layer.h"
#include "model/target_lag.h"
#include "model/user_vector.h"
#include "nn/convolution.h"
#include "nn/layer.h"

#include <stddef.h>
#include <stdio.h>

enum { LENGTH_MOST = 64 };

typedef struct caser_settings {
    lp_encoding_config time; /* first: lp_target_lag_options, lp_encoding_options */
    int length, horizontal, vertical, targets;
} caser_settings;

_Static_assert(sizeof(caser_settings) <= LP_MODEL_SETTINGS_SIZE, "a model's settings fit its config");

static const caser_settings *settings_of(const lp_model_config *config)
{
    return (const void *)config->settings.bytes;
}

#define AT(member) .offset = offsetof(caser_settings, member), .type = LAPSE_OPTION_INTEGER, .placeholder = "N"
#define FORWARD .group = "Model", .stored = LP_STORED_FORWARD

/* clang-format off */
static const lp_option options[] = {
    {.name = "conv-length", AT(length), FORWARD, .least = 1, .most = LENGTH_MOST, .initial = "5", .advanced = true,
     .help = "newest events that the convolutions cover, 1 to 64"},
    {.name = "conv-filters", AT(horizontal), FORWARD, .least = 1, .most = 1024, .initial = "16", .advanced = true,
     .help = "horizontal convolution filters of each height, 1 to 1024"},
    {.name = "conv-vertical", AT(vertical), FORWARD, .least = 0, .most = 64, .initial = "4", .advanced = true,
     .help = "vertical convolution filters, 0 to 64"},
    {.name = "conv-targets", AT(targets), .group = "Training", .stored = LP_STORED_TRAINING, .least = 1, .most = 16,
     .initial = "3", .advanced = true, .help = "next events that the state at each event predicts in training, 1 to 16"},
    {0},
};
/* clang-format on */

/* Adds x W^T to sum; W is a part of the weight of all joined columns, of which there are `inputs`. */
static lp_value *join(lp_builder *b, const char *name, lp_value *x, int inputs, lp_value *bias, lp_value *sum)
{
    if (!x)
        return NULL;
    lp_value *weight =
        lp_graph_parameter(b->graph, name, b->config->dims, x->cols, LP_INIT_UNIFORM, lp_uniform_bound(inputs));
    return lp_linear(b->graph, lp_dropout(b->graph, x, b->dropout), weight, bias, sum, 1, true);
}

static void defaults(lp_model_config *config)
{
    if (config->loss == LP_UNSET)
        config->loss = LP_LOSS_BCE;
    if (config->loss == LP_LOSS_BCE && config->negative_count == LP_UNSET)
        config->negative_count = 3;
    if (config->output == LP_UNSET)
        config->output = LP_OUTPUT_SEPARATE;
}

static lapse_status validate(const lp_model_config *config, lapse_error *error)
{
    if (config->output != LP_OUTPUT_SEPARATE)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "the output vectors of caser are twice as wide as those of its input: leave out " LP_OPTION("--item-output shared"));
    return lp_target_lag_validate(config, error);
}

static void build(lp_builder *b)
{
    const caser_settings *settings = settings_of(b->config);
    lp_graph *graph = b->graph;
    int dims = b->config->dims, length = settings->length;
    int inputs = length * settings->horizontal + settings->vertical * dims;
    lp_value *x = lp_input_layer(b), *users = lp_user_vector(b), *sum = NULL;
    lp_value *bias = lp_graph_parameter(graph, "join.bias", 1, dims, LP_INIT_UNIFORM, lp_uniform_bound(inputs));
    for (int height = 1; height <= length; height++) {
        char name[LP_PARAMETER_NAME_SIZE];
        lp_value *filtered = lp_relu(graph, lp_conv1d_layer(graph, "horizontal", x, height, settings->horizontal));
        snprintf(name, sizeof name, "join.%d.weight", height);
        sum = join(b, name, lp_max_rows(graph, filtered, length - height + 1), inputs, height == 1 ? bias : NULL, sum);
    }
    if (settings->vertical > 0) {
        lp_value *weight = lp_graph_parameter(graph, "vertical.weight", 1, settings->vertical * length, LP_INIT_UNIFORM,
                                              lp_uniform_bound(length));
        sum = join(b, "join.vertical.weight", lp_vertical_conv(graph, x, weight, length), inputs, NULL, sum);
    }
    lp_value *z = lp_place_columns(graph, lp_relu(graph, sum), 0, 2 * dims);
    b->network->token_state = lp_add(graph, z, lp_place_columns(graph, users, dims, 2 * dims));
    lp_output_layer(b, lp_target_lag(b, lp_at_targets(b, b->network->token_state)));
}

/* The state that predicts the next event has the lag to it; states further before have none. */
static lp_value *loss(lp_builder *b)
{
    lp_network *network = b->network;
    lp_value *state = network->state, *sum = lp_task_loss(b);
    int targets = settings_of(b->config)->targets;
    for (int k = 1; k < targets; k++) {
        network->state = lp_at_labels(b, lp_at_targets(b, lp_shift_rows(b->graph, network->token_state, k)));
        sum = lp_add(b->graph, sum, lp_task_loss(b));
    }
    network->state = state;
    return targets > 1 ? lp_affine(b->graph, sum, 1.0 / targets, 0) : sum;
}

const lp_model_row lp_model_caser = {.name = "caser",
                                     .summary = "convolutions over the newest items, and a user vector",
                                     .sequence_input = true,
                                     .state_parts = 2,
                                     .tasks = 1 << LP_TASK_RECOMMEND,
                                     .options = {lp_target_lag_options, lp_encoding_options, options},
                                     .defaults = defaults,
                                     .resolve = lp_target_lag_resolve,
                                     .validate = validate,
                                     .build = build,
                                     .loss = loss};
