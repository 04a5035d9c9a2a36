/* small_model.c: small models with random parameters. */
#include "support/small_model.h"

#include "backend/backend.h"
#include "base/text.h"
#include "model/model_file.h"
#include "model/model_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const lp_option *find_option(const lp_model_config *config, const char *name, const void **settings)
{
    const lp_option *option = lp_options_find(lp_model_options, name);
    *settings = config;
    for (const lp_option *const *table = config->row->options; !option && *table; table++) {
        option = lp_options_find(*table, name);
        *settings = config->settings.bytes;
    }
    if (!option)
        fail_msg("the model '%s' has no option '%s'", config->row->name, name);
    return option;
}

void small_config_set(lp_model_config *config, const char *name, const char *text)
{
    const void *settings;
    lapse_error error = {0};
    const lp_option *option = find_option(config, name, &settings);
    if (lp_option_set(option, (void *)(uintptr_t)settings, text, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
}

void small_config_number(lp_model_config *config, const char *name, double value)
{
    const void *settings;
    char text[LP_NUMBER_SIZE];
    const lp_option *option = find_option(config, name, &settings);
    small_config_set(config, name, option->choices ? option->choices()[(int)value] : lp_number_text(value, text));
}

double small_config_get(const lp_model_config *config, const char *name)
{
    const void *settings;
    char text[LP_OPTION_TEXT_SIZE];
    const lp_option *option = find_option(config, name, &settings);
    lp_option_text(option, settings, text);
    if (option->choices)
        return lp_name_index(text, option->choices());
    return option->type == LAPSE_OPTION_FLAG ? strcmp(text, "true") == 0 : strtod(text, NULL);
}

const lp_encoding *small_encoding(const lp_model_config *config)
{
    return lp_encodings[(int)small_config_get(config, "encoding")];
}

bool small_anchored(const lp_model_config *config)
{
    return !config->row->incremental(config);
}

lp_model_config small_config_of(const lp_model_row *row, int dims)
{
    lp_model_config config = {.row = row};
    lp_options_default(lp_model_options, &config);
    lp_model_settings_default(row, &config.settings);
    config.loss = row->points ? LP_LOSS_BPR : LP_LOSS_SOFTMAX;
    config.negatives = LP_NEGATIVES_UNIFORM;
    config.negative_count = 1;
    config.output = row->state_parts ? LP_OUTPUT_SEPARATE : LP_OUTPUT_SHARED;
    if (row->next_time)
        config.when_floor = 1;
    config.event_types = 5;
    config.context = 12;
    config.dims = dims;
    config.dropout = 0;
    config.gap_input = 0;
    return config;
}

void small_config_gap(lp_model_config *config)
{
    config->gap_input = 1;
    config->gap = (lp_gap_scale){.offset = 0.25, .mean = 0.5, .deviation = 1.5};
}

lp_model_config small_config(const lp_encoding *encoding, int dims, int blocks, int heads)
{
    lp_model_config config = small_config_of(lp_model_row_find("attention"), dims);
    small_config_set(&config, "encoding", encoding->name);
    small_config_number(&config, "blocks", blocks);
    small_config_number(&config, "heads", heads);
    small_config_set(&config, "periods", "3");
    small_config_set(&config, "harmonics", "2");
    small_config_set(&config, "period-min", "0.5");
    small_config_set(&config, "period-max", "40");
    small_config_set(&config, "inverse-cdf", "maf");
    small_config_set(&config, "hidden", "4");
    return config;
}

lapse_model *small_model(const lp_model_config *config, uint64_t seed)
{
    static const uint64_t offset[] = {0, 2, 4, 6, 8, 10};
    const lp_names names = {.count = config->event_types, .offset = offset, .bytes = "a\0b\0c\0d\0e"};
    lapse_model *model = NULL;
    lapse_error error = {0};
    assert_int_equal(config->event_types, 5);
    if (lp_model_new(config, &names, &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    for (lapse_model *each = model; each; each = each->times) {
        lp_network_init_parameters(&each->network.graph, seed, each->parameters);
        lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 400);
        for (size_t i = 0; i < each->network.graph.parameter_size; i++)
            each->parameters[i] += (float)(0.2 * lp_random_normal(&random));
    }
    return model;
}

/* A copy of count numbers in the backend's own size. */
static void *to_real(const float *from, size_t count, size_t real_size)
{
    void *to = lp_alloc(count, real_size);
    assert_non_null(to);
    for (size_t i = 0; i < count; i++) {
        if (real_size == sizeof(double))
            ((double *)to)[i] = (double)from[i];
        else
            ((float *)to)[i] = from[i];
    }
    return to;
}

static void log_softmax(double *row, int count)
{
    double largest = row[0], sum = 0;
    for (int i = 1; i < count; i++)
        largest = fmax(largest, row[i]);
    for (int i = 0; i < count; i++)
        sum += exp(row[i] - largest);
    for (int i = 0; i < count; i++)
        row[i] -= largest + log(sum);
}

void small_answers(const lapse_model *model, const char *backend_name, int tokens, const int32_t *type,
                   const double *time, const double *query_time, const double *gap, double *out)
{
    const lp_backend *backend = lp_backend_find(backend_name);
    lp_network network;
    lp_plan plan;
    int types = model->config.event_types;
    int32_t position[128], segment[] = {0, tokens};
    float gap_rows[128 * LP_GAP_COLUMNS] = {0};
    assert_non_null(backend);
    assert_true(tokens <= 128);
    for (int t = 0; t < tokens; t++)
        position[t] = t;
    for (int t = 0; gap && t < tokens; t++)
        lp_gap_row(lp_model_standardize_gap(&model->config.gap, gap[t]), gap_rows + (ptrdiff_t)t * LP_GAP_COLUMNS);
    void *gap_input = to_real(gap_rows, (size_t)tokens * LP_GAP_COLUMNS, backend->real_size);
    assert_int_equal(lp_network_build(&network, &model->config, false, NULL), LAPSE_OK);
    lp_extent extent = {.pairs = (int64_t)tokens * (tokens + 1) / 2, .longest = tokens};
    extent.rows[LP_ROWS_TOKENS] = extent.rows[LP_ROWS_TARGETS] = tokens;
    assert_int_equal(lp_plan_make(&plan, &network.graph, &extent, backend->real_size, NULL), LAPSE_OK);
    void *inputs[LP_FEED_COUNT] = {
        [LP_FEED_EVENT] = (void *)(uintptr_t)type,
        [LP_FEED_POSITION] = position,
        [LP_FEED_TARGET_POSITION] = position, /* after every token */
        [LP_FEED_TIME] = (void *)(uintptr_t)time,
        [LP_FEED_QUERY_TIME] = (void *)(uintptr_t)query_time,
        [LP_FEED_GAP] = gap_input,
    };
    void *parameters = to_real(model->parameters, network.graph.parameter_size, backend->real_size);
    lp_run run = {.plan = &plan,
                  .work = backend->buffer_new(backend->context, plan.work_size),
                  .inputs = inputs,
                  .scratch = backend->buffer_new(backend->context, plan.scratch_size),
                  .parameters = parameters,
                  .rows = {[LP_ROWS_TOKENS] = tokens, [LP_ROWS_TARGETS] = tokens},
                  .segments = 1,
                  .segment = segment};
    assert_true(run.work && run.scratch);
    backend->run(backend->context, &run);
    const void *logits = lp_run_data(&run, network.logits[LP_TARGET_EVENT]);
    for (int i = 0; i < tokens * types; i++)
        out[i] =
            backend->real_size == sizeof(double) ? ((const double *)logits)[i] : (double)((const float *)logits)[i];
    for (int t = 0; t < tokens; t++)
        log_softmax(out + (ptrdiff_t)t * types, types);
    lp_free(gap_input);
    backend->buffer_free(backend->context, run.work);
    backend->buffer_free(backend->context, run.scratch);
    lp_free(parameters);
    lp_graph_clear(&network.graph);
}

void small_model_save(const lapse_model *model, const char *path)
{
    lp_container container = {0};
    assert_int_equal(lp_model_contain(model, 0, &container, NULL), LAPSE_OK);
    assert_int_equal(lp_container_save(&container, path, NULL), LAPSE_OK);
    lp_arena_clear(&container.arena);
}
