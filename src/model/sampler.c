#include "model/sampler.h"

#include <string.h>

static lapse_status build(lp_sampler_graph *this, const lp_backend *backend, const lp_model_config *config,
                          lp_draw_stream stream, bool gradient, lapse_error *error)
{
    lp_encoding_config encoding = lp_model_encoding(config);
    this->draw = config->encoding->sample(&this->graph, &encoding, stream);
    LP_TRY(lp_graph_status(&this->graph, error));
    this->draw->retained = true;
    if (gradient) {
        lp_value *seed =
            lp_graph_input(&this->graph, "seed", LP_TYPE_REAL, LP_ROWS_FIXED, this->draw->rows, this->draw->cols);
        if (seed)
            LP_TRY(lp_graph_gradients(&this->graph, 1, &this->draw, &seed, error));
    }
    LP_TRY(lp_plan_make(&this->plan, &this->graph, &(lp_extent){0}, backend->real_size, error));
    this->work = backend->buffer_new(backend->context, this->plan.work_size);
    this->scratch = backend->buffer_new(backend->context, this->plan.scratch_size);
    if (!this->work || !this->scratch)
        return lp_fail_memory(error, "drawing frequencies", this->plan.work_size + this->plan.scratch_size);
    return LAPSE_OK;
}

static const lp_value *find(const lp_graph *network, const char *name)
{
    for (int i = 0; i < network->parameter_count; i++)
        if (strcmp(network->parameters[i].value->name, name) == 0)
            return network->parameters[i].value;
    return NULL;
}

/* The network declares the sampler's parameters one after another, as the sampler does: their places differ by the
 * place of the first. */
static lapse_status locate(lp_sampler *sampler, const lp_graph *network, lapse_error *error)
{
    const lp_graph *own = &sampler->step.graph;
    const lp_value *draws = find(network, LP_LOG_PERIOD);
    for (int i = 0; i < own->parameter_count; i++) {
        const lp_value *mine = own->parameters[i].value, *there = find(network, mine->name);
        if (there && i == 0)
            sampler->first = there->offset;
        if (!there || there->offset != sampler->first + mine->offset)
            return lp_fail(error, LAPSE_ERROR_INTERNAL, "the network does not hold '%s' where the sampler wants it",
                           mine->name);
    }
    if (!draws || draws->cols != sampler->count)
        return lp_fail(error, LAPSE_ERROR_INTERNAL, "the network does not hold the draws of its sampler");
    sampler->draws = draws->rows;
    sampler->place = draws->offset;
    sampler->tables = network->table_size;
    sampler->network_size = network->parameter_size - network->table_size;
    return LAPSE_OK;
}

lapse_status lp_sampler_init(lp_sampler *sampler, const lp_model_config *config, const lp_graph *network,
                             lapse_error *error)
{
    *sampler = (lp_sampler){.backend = lp_backend_find("cpu"), .count = config->periods};
    lapse_status status = build(&sampler->step, sampler->backend, config, LP_DRAW_STEP, false, error);
    if (status == LAPSE_OK)
        status = build(&sampler->stored, sampler->backend, config, LP_DRAW_STORED, false, error);
    if (status == LAPSE_OK)
        status = build(&sampler->learn, sampler->backend, config, LP_DRAW_STEP, true, error);
    if (status == LAPSE_OK)
        status = locate(sampler, network, error);
    sampler->seed = lp_alloc((size_t)sampler->count, sizeof *sampler->seed);
    if (status == LAPSE_OK && !sampler->seed)
        status = lp_fail_memory(error, "drawing frequencies", (size_t)sampler->count * sizeof *sampler->seed);
    if (status != LAPSE_OK)
        lp_sampler_clear(sampler);
    return status;
}

void lp_sampler_clear(lp_sampler *sampler)
{
    lp_sampler_graph *all[] = {&sampler->step, &sampler->stored, &sampler->learn};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->work)
            sampler->backend->buffer_free(sampler->backend->context, all[i]->work);
        if (all[i]->scratch)
            sampler->backend->buffer_free(sampler->backend->context, all[i]->scratch);
        lp_graph_clear(&all[i]->graph);
    }
    lp_free(sampler->seed);
    *sampler = (lp_sampler){0};
}

static void run(const lp_sampler *sampler, const lp_sampler_graph *this, uint64_t seed, uint32_t step,
                const float *parameters, float *gradients)
{
    void *inputs[] = {sampler->seed};
    static const int32_t no_segments[] = {0};
    sampler->backend->run(sampler->backend->context,
                          &(lp_run){
                              .plan = &this->plan,
                              .work = this->work,
                              .scratch = this->scratch,
                              .inputs = inputs,
                              .parameters = parameters + sampler->first,
                              .gradients = gradients ? gradients + sampler->first - sampler->tables : NULL,
                              .segment = no_segments,
                              .seed = seed,
                              .step = step,
                          });
}

static void draw(const lp_sampler *sampler, const lp_sampler_graph *this, uint64_t seed, uint32_t step,
                 float *parameters, int row)
{
    size_t count = (size_t)sampler->count;
    run(sampler, this, seed, step, parameters, NULL);
    sampler->backend->copy_to_host(sampler->backend->context, parameters + sampler->place + (size_t)row * count,
                               this->work + this->draw->offset, count * sizeof *parameters);
}

void lp_sampler_draw(lp_sampler *sampler, uint64_t seed, uint32_t step, float *parameters)
{
    draw(sampler, &sampler->step, seed, step, parameters, 0);
}

void lp_sampler_store(lp_sampler *sampler, uint64_t seed, float *parameters)
{
    for (int i = 0; i < sampler->draws; i++)
        draw(sampler, &sampler->stored, seed, (uint32_t)i, parameters, i);
}

void lp_sampler_learn(lp_sampler *sampler, uint64_t seed, uint32_t step, const float *parameters, float *gradients,
                      int shards)
{
    for (int i = 0; i < sampler->count; i++) {
        double sum = 0;
        for (int shard = 0; shard < shards; shard++)
            sum += gradients[(size_t)shard * sampler->network_size + sampler->place - sampler->tables + (size_t)i];
        sampler->seed[i] = (float)sum;
    }
    run(sampler, &sampler->learn, seed, step, parameters, gradients);
}
