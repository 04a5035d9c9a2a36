#include "support/small_model.h"

#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

lp_model_config small_config(const lp_encoding *encoding, int dims, int blocks, int heads)
{
    return (lp_model_config){
        .row = lp_model_row_find("attention"),
        .encoding = encoding,
        .target_known = true,
        .event_types = 5,
        .dims = dims,
        .blocks = blocks,
        .heads = heads,
        .context = 12,
        .periods = 3,
        .harmonics = 2,
        .period_min = 0.5,
        .period_max = 40,
        .period_init = lp_period_init_find("geometric"),
        .inverse_cdf = lp_inverse_cdf_find("maf"),
        .hidden = 4,
        .draws = 1,
        .order = 1,
    };
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
    lp_network_init_parameters(&model->network.graph, seed, model->parameters);
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 400);
    for (size_t i = 0; i < model->network.graph.parameter_size; i++)
        model->parameters[i] += (float)(0.2 * lp_random_normal(&random));
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
                   const double *time, const double *query_time, double *out)
{
    const lp_backend *backend = lp_backend_find(backend_name);
    lp_network network;
    lp_plan plan;
    int types = model->config.event_types;
    int32_t position[128], segment[] = {0, tokens};
    assert_non_null(backend);
    assert_true(tokens <= 128);
    for (int t = 0; t < tokens; t++)
        position[t] = t;
    assert_int_equal(lp_network_build(&network, &model->config, false, NULL), LAPSE_OK);
    lp_extent extent = {.pairs = (int64_t)tokens * (tokens + 1) / 2, .longest = tokens};
    extent.rows[LP_ROWS_TOKENS] = extent.rows[LP_ROWS_TARGETS] = tokens;
    assert_int_equal(lp_plan_make(&plan, &network.graph, &extent, backend->real_size, NULL), LAPSE_OK);
    void *inputs[LP_FEED_COUNT] = {
        [LP_FEED_EVENT] = (void *)(uintptr_t)type, [LP_FEED_POSITION] = position,
        [LP_FEED_TARGET_POSITION] = position, /* after every token */
        [LP_FEED_TIME] = (void *)(uintptr_t)time,  [LP_FEED_QUERY_TIME] = (void *)(uintptr_t)query_time,
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
    backend->buffer_free(backend->context, run.work);
    backend->buffer_free(backend->context, run.scratch);
    lp_free(parameters);
    lp_graph_clear(&network.graph);
}
