/* encoding.c: the table of time encodings, their options, and code that several of them share. */
#include "nn/encoding.h"

#include "base/text.h"
#include "data/dataset/gap_quantile.h"
#include "nn/encoding_rows.h"

#include <math.h>

const char LP_LOG_PERIOD[] = "time.log_period";

const lp_encoding *const lp_encodings[] = {
    &lp_encoding_mercer,         &lp_encoding_bochner, &lp_encoding_bochner_normal,
    &lp_encoding_bochner_invcdf, &lp_encoding_random,  &lp_encoding_position,
    &lp_encoding_sinusoid,       &lp_encoding_none,    NULL,
};

const lp_encoding *lp_encoding_find(const char *name)
{
    return lp_find_by_name(lp_encodings, name);
}

/* ---------------------------------------------------------------------------------------------- options ------ */

const char *const *lp_encoding_names(void)
{
    static const char *names[LP_ROW_NAMES];
    return lp_row_names((const void *const *)lp_encodings, names);
}

static const char *const *period_init_names(void)
{
    static const char *names[LP_ROW_NAMES];
    return lp_row_names((const void *const *)lp_period_inits, names);
}

static const char *const *scale_names(void)
{
    static const char *const names[] = {[LP_SCALE_LOG] = "log", [LP_SCALE_LINEAR] = "linear", NULL};
    return names;
}

static const char *const *inverse_cdf_names(void)
{
    static const char *names[LP_ROW_NAMES];
    return lp_row_names((const void *const *)lp_inverse_cdfs, names);
}

static const lp_encoding *encoding_of(const void *settings)
{
    return lp_encodings[((const lp_encoding_config *)settings)->encoding];
}

static bool has_periods(const void *settings)
{
    return encoding_of(settings)->default_periods > 0;
}

static bool has_harmonics(const void *settings)
{
    return encoding_of(settings)->default_harmonics > 0;
}

static bool learns_periods(const void *settings)
{
    return encoding_of(settings)->learns_periods;
}

static bool maps_noise(const void *settings)
{
    return encoding_of(settings)->maps_noise;
}

static bool is_sampled(const void *settings)
{
    return encoding_of(settings)->sample != NULL;
}

#define AT(member) .offset = offsetof(lp_encoding_config, member), .group = "Model", .stored = LP_STORED_FORWARD
#define FROM_DATA .rule = "chosen from the data"

/* clang-format off */
const lp_option lp_encoding_choice[] = {
    {.name = "encoding", .type = LAPSE_OPTION_CHOICE, AT(encoding), .placeholder = "NAME",
     .choices = lp_encoding_names, .initial = "mercer",
     .help = "time encoding: how the model sees the lag from each past event to the query time; recurrent models see "
     "the last event's, and have none by default"},
    {0},
};

const lp_option lp_encoding_options[] = {
    {.name = "periods", .type = LAPSE_OPTION_INTEGER, AT(periods), .placeholder = "N", .least = 1, .most = 4096,
     .rule = "16 with harmonics, otherwise 50", .applies = has_periods, .advanced = true,
     .help = "number of base periods of the time encoding: its frequencies, where it has no harmonics"},
    {.name = "harmonics", .type = LAPSE_OPTION_INTEGER, AT(harmonics), .placeholder = "N", .least = 1, .most = 256,
     .rule = "5", .applies = has_harmonics, .advanced = true, .help = "number of harmonics of each period (mercer)"},
    {.name = "period-min", .type = LAPSE_OPTION_DURATION, AT(period_min), .placeholder = "DURATION", .least = 1e-30,
     .most = 1e30, FROM_DATA, .applies = has_periods, .advanced = true,
     .help = "shortest initial period, such as 1m"},
    {.name = "period-max", .type = LAPSE_OPTION_DURATION, AT(period_max), .placeholder = "DURATION", .least = 1e-30,
     .most = 1e30, FROM_DATA, .applies = has_periods, .advanced = true,
     .help = "longest initial period, such as 2y"},
    {.name = "period-init", .type = LAPSE_OPTION_CHOICE, AT(period_init), .placeholder = "NAME",
     .choices = period_init_names, .initial = "geometric", .applies = learns_periods, .advanced = true,
     .help = "initialization of the periods between period-min and period-max"},
    {.name = "periods-fixed", .type = LAPSE_OPTION_FLAG, AT(periods_fixed), .initial = "false",
     .applies = learns_periods, .advanced = true, .help = "freeze the periods at their initial values"},
    {.name = "inverse-cdf", .type = LAPSE_OPTION_CHOICE, AT(inverse_cdf), .placeholder = "NAME",
     .choices = inverse_cdf_names, .initial = "mlp-residual", .applies = maps_noise, .advanced = true,
     .help = "inverse CDF: the learned map from noise to frequencies (bochner-invcdf)"},
    {.name = "hidden", .type = LAPSE_OPTION_INTEGER, AT(hidden), .placeholder = "N", .least = 1, .most = 4096,
     .initial = "256", .applies = maps_noise, .advanced = true,
     .help = "width of the two hidden layers of the inverse CDF"},
    {.name = "frequency-samples", .type = LAPSE_OPTION_INTEGER, AT(frequency_samples), .placeholder = "N", .least = 1,
     .most = 1000, .initial = "1", .applies = is_sampled, .advanced = true,
     .help = "number of frequency samples that the model stores; predictions are their mean"},
    {.name = "frequency-scale", .type = LAPSE_OPTION_CHOICE, AT(frequency_scale), .placeholder = "NAME",
     .choices = scale_names, .initial = "log", .applies = is_sampled, .advanced = true,
     .help = "what a sampled encoding samples: the log of a frequency, or linear, the frequency itself, as the paper does"},
    {.name = "independent-draws", .type = LAPSE_OPTION_FLAG, AT(independent_draws), .initial = "false",
     .applies = is_sampled, .advanced = true,
     .help = "sample frequencies independently, as the paper does, instead of one from each of equally probable strata"},
    {0},
};
/* clang-format on */

lapse_status lp_encoding_resolve(lp_encoding_config *config, const lapse_dataset *dataset, const uint8_t *split,
                                 lapse_error *error)
{
    const lp_encoding *encoding = lp_encodings[config->encoding];
    if (config->periods == LP_UNSET)
        config->periods = encoding->default_periods;
    if (config->harmonics == LP_UNSET)
        config->harmonics = encoding->default_harmonics;
    if (isnan(config->period_min)) {
        double gap;
        LP_TRY(lp_gap_quantile(dataset, split, 1, 0.05, &gap, error));
        config->period_min = gap > 0 ? gap : 1;
    }
    if (isnan(config->period_max)) {
        double span;
        LP_TRY(lp_gap_quantile(dataset, split, config->context, 0.95, &span, error));
        config->period_max = 2 * span > config->period_min ? 2 * span : config->period_min * 1000;
    }
    return LAPSE_OK;
}

lapse_status lp_encoding_validate(const lp_encoding_config *config, lapse_error *error)
{
    if (!has_periods(config))
        return LAPSE_OK;
    if (!(config->period_max >= config->period_min))
        return lp_fail(error, LAPSE_ERROR_USAGE, "period-max (%g s) is shorter than period-min (%g s)",
                       config->period_max, config->period_min);
    int64_t frequencies = (int64_t)config->periods * (has_harmonics(config) ? config->harmonics : 1);
    if (frequencies > LP_FREQUENCY_LIMIT)
        return lp_fail(error, LAPSE_ERROR_USAGE, "periods (%d) times harmonics (%d) is more than %d frequencies",
                       config->periods, config->harmonics, LP_FREQUENCY_LIMIT);
    return LAPSE_OK;
}

lp_value *lp_encoding_periods(lp_graph *graph, const lp_encoding_config *config)
{
    lp_value *periods = lp_period_inits[config->period_init]->declare(graph, LP_LOG_PERIOD, config->periods,
                                                                      config->period_min, config->period_max);
    return config->periods_fixed ? lp_graph_parameter_freeze(graph, periods) : periods;
}

void lp_encoding_lags(lp_graph *graph, lp_value *log_period, int harmonics, lp_value *const feeds[LP_FEED_COUNT],
                      lp_features *features)
{
    features->frequency = lp_harmonics(graph, log_period, harmonics);
    features->basis = lp_basis(graph, feeds[LP_FEED_TIME], features->frequency);
    features->query_basis = lp_basis(graph, feeds[LP_FEED_QUERY_TIME], features->frequency);
}

/* ----------------------------------------------------------------------------------- sampled encodings ------- */

/* Declares the parameters of `sample` in the main graph, where no node reads them: the parameter buffer holds them, and
 * the sampler's own graph computes with them. */
static void declare_sampler(lp_graph *graph, const lp_encoding *encoding, const lp_encoding_config *config)
{
    lp_graph sampler = {0};
    encoding->sample(&sampler, config, LP_SAMPLE_STEP);
    if (lp_graph_status(&sampler, NULL) != LAPSE_OK && graph->error.status == LAPSE_OK)
        graph->error = sampler.error;
    for (int i = 0; i < sampler.parameter_count; i++)
        lp_graph_parameter_like(graph, &sampler.parameters[i]);
    lp_graph_clear(&sampler);
}

void lp_encoding_samples(lp_graph *graph, const lp_encoding *encoding, const lp_encoding_config *config,
                         lp_value *const feeds[LP_FEED_COUNT], lp_features *features)
{
    declare_sampler(graph, encoding, config);
    lp_value *samples =
        lp_graph_parameter(graph, LP_LOG_PERIOD, config->frequency_samples, config->periods, LP_INIT_ZEROS, 0);
    lp_graph_parameter_freeze(graph, samples);
    if (samples)
        samples->requires_grad = true; /* for the sampler's backward pass, not for the optimizer */
    lp_value *one = config->frequency_samples > 1 ? lp_embed(graph, samples, feeds[LP_FEED_FREQUENCY_SAMPLE]) : samples;
    lp_encoding_lags(graph, one, 1, feeds, features);
}

/* Standard deviations at which tanh saturates: twice the distance from the center to period_min and period_max. */
static const double SATURATION = 4;

/* On the linear scale, the longest period in geometric means of period_min and period_max. */
static const double LONGEST = 1000;

lp_value *lp_encoding_spread(lp_graph *graph, const lp_encoding_config *config, lp_value *x)
{
    double low = log(config->period_min), high = log(config->period_max);
    if (config->frequency_scale == LP_SCALE_LINEAR)
        return lp_affine(graph, lp_log_abs(graph, x, 1 / LONGEST), -1, (low + high) / 2);
    return lp_affine(graph, lp_tanh(graph, x, SATURATION), -fmax(high - low, 1) / 4, (low + high) / 2);
}
