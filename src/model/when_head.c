/* when_head.c: the output of a network of times: a mixture for the time of the next event. */
#include "model/when_head.h"

#include "formula/mixture.h"
#include "nn/layer.h"

#include <math.h>

enum { MAX_COMPONENTS = 64 };

/* Numbers that the network puts out for one law. */
static int law_numbers(const lp_model_config *config)
{
    return 3 * config->when_components + (config->when_background != LP_BACKGROUND_NONE);
}

/* The components begin side by side over the range of y, -2 to 2, each about as wide as its distance to the next, so that
 * gradients tell them apart from the first step; the background, at the rate of long gaps. */
static void initial_bias(int components, double bias[3 * MAX_COMPONENTS + 1])
{
    bias[3 * components] = 2;
    double step = 4.0 / components;
    for (int k = 0; k < components; k++) {
        bias[k] = 0;
        bias[components + k] = -2 + step * (k + 0.5);
        bias[2 * components + k] = log(fmin(fmax(step, 0.25), 1));
    }
}

void lp_when_head(lp_builder *b, lp_value *z)
{
    int dims = b->config->dims, components = b->config->when_components;
    int numbers = law_numbers(b->config);
    double bias[3 * MAX_COMPONENTS + 1];
    initial_bias(components, bias);
    lp_value *hidden = lp_relu(b->graph, lp_layer(b->graph, "mixture.hidden", z, dims, NULL));
    lp_value *weight =
        lp_graph_parameter(b->graph, "mixture.output.weight", numbers, dims, LP_INIT_UNIFORM, lp_uniform_bound(dims));
    lp_value *constant = lp_graph_parameter_values(b->graph, "mixture.output.bias", 1, numbers, bias);
    b->network->mixture = lp_linear(b->graph, hidden, weight, constant, NULL, 1, true);
}

lp_value *lp_when_loss(lp_builder *b)
{
    const lp_model_config *config = b->config;
    lp_value *season = config->when_background != LP_BACKGROUND_NONE ? b->feeds[LP_FEED_TARGET_SEASON] : NULL;
    return lp_mixture_loss(b->graph, b->network->mixture, b->feeds[LP_FEED_TARGET_GAP], season, config->when_floor,
                           config->when_mean, config->when_deviation);
}

size_t lp_time_law_size(const lapse_model *model, int samples)
{
    return model->config.of_times ? 4 * (size_t)samples * (size_t)model->config.when_components : 1;
}

lp_next_time lp_time_law_of(const lapse_model *model, double last, const float *outputs, int samples, double *memory)
{
    const lp_model_config *config = &model->config;
    int components = config->when_components, count = samples * components;
    if (!config->of_times)
        return config->row->next_time(model, (double)outputs[0]);
    double *log_weight = memory, *mean = memory + count, *deviation = memory + 2 * count, *rate = memory + 3 * count;
    bool background = config->when_background != LP_BACKGROUND_NONE;
    for (int r = 0; r < samples; r++) {
        const float *row = outputs + (size_t)r * (size_t)law_numbers(config);
        double most = (double)row[0], sum = 0;
        for (int k = 1; k < components; k++)
            most = (double)row[k] > most ? (double)row[k] : most; /* see lp_log_sum_exp_row */
        for (int k = 0; k < components; k++)
            sum += exp((double)row[k] - most);
        double log_sum = most + log(sum) + log((double)samples);
        for (int k = 0; k < components; k++) {
            int at = r * components + k;
            log_weight[at] = (double)row[k] - log_sum;
            mean[at] = config->when_mean + config->when_deviation * (double)row[components + k];
            deviation[at] = config->when_deviation * exp(lp_mixture_bounded((double)row[2 * components + k]));
            rate[at] = background
                           ? lp_mixture_rate((double)row[3 * components], config->when_mean, 1 / config->when_deviation)
                           : 0;
        }
    }
    lp_next_time law = lp_next_time_mixture(count, log_weight, mean, deviation);
    return background ? lp_next_time_background(law, rate, &config->season, last) : law;
}
