/* encoding.c: the table of time encodings, and what they share. */
#include "nn/encoding.h"

#include "nn/encoding_rows.h"

#include <string.h>

const char LP_LOG_PERIOD[] = "time.log_period";

const lp_encoding *const lp_encodings[] = {
    &lp_encoding_mercer,         &lp_encoding_bochner, &lp_encoding_bochner_normal,
    &lp_encoding_bochner_invcdf, &lp_encoding_random,  &lp_encoding_position,
    &lp_encoding_sinusoid,       &lp_encoding_none,    NULL,
};

const lp_encoding *lp_encoding_find(const char *name)
{
    for (int i = 0; lp_encodings[i]; i++)
        if (strcmp(lp_encodings[i]->name, name) == 0)
            return lp_encodings[i];
    return NULL;
}

lp_value *lp_encoding_periods(lp_graph *graph, const lp_encoding_config *config)
{
    lp_value *periods =
        config->period_init->declare(graph, LP_LOG_PERIOD, config->periods, config->period_min, config->period_max);
    return config->periods_fixed ? lp_graph_parameter_freeze(graph, periods) : periods;
}

void lp_encoding_lags(lp_graph *graph, lp_value *log_period, int harmonics, lp_value *const feeds[LP_FEED_COUNT],
                      lp_features *features)
{
    features->frequency = lp_harmonics(graph, log_period, harmonics);
    features->basis = lp_basis(graph, feeds[LP_FEED_TIME], features->frequency);
    features->query_time = lp_basis(graph, feeds[LP_FEED_QUERY_TIME], features->frequency);
}

/* ----------------------------------------------------------------------------------- sampled encodings ------- */

/* Only the declarations are wanted: in this graph no node reads them. */
static void declare_sampler(lp_graph *graph, const lp_encoding *encoding, const lp_encoding_config *config)
{
    lp_graph sampler = {0};
    encoding->sample(&sampler, config, LP_DRAW_STEP);
    if (lp_graph_status(&sampler, NULL) != LAPSE_OK && graph->error.status == LAPSE_OK)
        graph->error = sampler.error;
    for (int i = 0; i < sampler.parameter_count; i++)
        lp_graph_parameter_like(graph, &sampler.parameters[i]);
    lp_graph_clear(&sampler);
}

void lp_encoding_draws(lp_graph *graph, const lp_encoding *encoding, const lp_encoding_config *config,
                       lp_value *const feeds[LP_FEED_COUNT], lp_features *features)
{
    declare_sampler(graph, encoding, config);
    lp_value *draws = lp_graph_parameter(graph, LP_LOG_PERIOD, config->draws, config->periods, LP_INIT_ZEROS, 0);
    lp_graph_parameter_freeze(graph, draws);
    if (draws)
        draws->requires_grad = true; /* not the optimizer, but the sampler asks for the gradient */
    lp_value *draw = config->draws > 1 ? lp_embed(graph, draws, feeds[LP_FEED_FREQUENCY_SAMPLE]) : draws;
    lp_encoding_lags(graph, draw, 1, feeds, features);
}

/* Deviations: as far again beyond period_min and period_max as they are from the middle. */
static const double FARTHEST = 4;

lp_value *lp_encoding_spread(lp_graph *graph, const lp_encoding_config *config, lp_value *x)
{
    double low = log(config->period_min), high = log(config->period_max);
    return lp_affine(graph, lp_tanh(graph, x, FARTHEST), -fmax(high - low, 1) / 4, (low + high) / 2);
}
