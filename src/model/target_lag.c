/* target_lag.c: the perceptron of the state and the lag to the predicted event. */
#include "model/target_lag.h"

#include "model/output_layer.h"
#include "nn/layer.h"

#include <stddef.h>

static const lp_encoding_config *time_of(const lp_model_config *config)
{
    return (const void *)config->settings.bytes;
}

const lp_option lp_target_lag_options[] = {
    {.name = "encoding",
     .type = LAPSE_OPTION_CHOICE,
     .offset = offsetof(lp_encoding_config, encoding),
     .group = "Model",
     .stored = LP_STORED_FORWARD,
     .placeholder = "NAME",
     .choices = lp_encoding_names,
     .initial = "none",
     .absent = "none",
     .help = "time encoding: how the model sees the lag from the last event to the query time"},
    {0},
};

lapse_status lp_target_lag_resolve(lp_model_config *config, const lp_fit_data *data, lapse_error *error)
{
    lp_encoding_config *time = (void *)config->settings.bytes;
    time->dims = config->dims;
    time->context = config->context;
    return lp_encoding_resolve(time, data->dataset, data->split, error);
}

lapse_status lp_target_lag_validate(const lp_model_config *config, lapse_error *error)
{
    const lp_encoding_config *time = time_of(config);
    const lp_encoding *encoding = lp_encodings[time->encoding];
    if (!encoding->sees_time && encoding != lp_encoding_find("none"))
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "the model '%s' sees the order of events without the encoding '%s': use an encoding of lags, such "
            "as mercer, or none",
            config->row->name, encoding->name);
    return lp_encoding_validate(time, error);
}

lp_value *lp_target_lag(lp_builder *b, lp_value *z)
{
    lp_graph *graph = b->graph;
    lp_network *network = b->network;
    int dims = b->config->dims;
    const lp_encoding *encoding = lp_encodings[time_of(b->config)->encoding];
    lp_features features = {0};
    if (!encoding->sees_time || b->config->of_times) /* there the lag is always 0 */
        return z;
    network->encoding = encoding;
    network->lag_only = true;
    network->encoding_config = *time_of(b->config);
    network->encoding_config.dims = dims;
    network->encoding_config.context = b->config->context;
    encoding->build(graph, &network->encoding_config, b->feeds, &features);
    lp_value *lag = lp_at_targets(b, lp_reflect(graph, features.basis, features.query_basis)); /* u(t' - t) */
    if (!lag || !z)
        return NULL;
    lp_value *weight =
        lp_graph_parameter(graph, "lag.time.weight", dims, lag->cols, LP_INIT_UNIFORM, lp_uniform_bound(lag->cols));
    if (features.amplitude)
        weight = lp_scale_columns(graph, weight, features.amplitude);
    lp_value *hidden = lp_layer(graph, "lag.hidden", z, dims, NULL);
    hidden = lp_relu(graph, lp_linear(graph, lag, weight, NULL, hidden, 1, true));
    lp_value *output =
        lp_graph_parameter(graph, "lag.output.weight", z->cols, dims, LP_INIT_UNIFORM, lp_uniform_bound(dims));
    return lp_linear(graph, lp_dropout(graph, hidden, b->dropout), output, NULL, z, 1, true);
}
