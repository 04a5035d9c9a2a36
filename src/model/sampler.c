/* sampler.c: the small graphs that sample frequencies and backpropagate to their distribution. */
#include "model/sampler.h"

#include "base/assert.h"

#include <string.h>

static lapse_status build(lp_sampler_graph *this, const lp_backend *backend, const lp_network *network,
                          lp_sample_stream stream, bool gradient, lapse_error *error)
{
    this->sample = network->encoding->sample(&this->graph, &network->encoding_config, stream);
    LP_TRY(lp_graph_status(&this->graph, error));
    this->sample->retained = true;
    if (gradient) {
        lp_value *seed =
            lp_graph_input(&this->graph, "seed", LP_TYPE_REAL, LP_ROWS_FIXED, this->sample->rows, this->sample->cols);
        if (seed)
            LP_TRY(lp_graph_gradients(&this->graph, 1, &this->sample, &seed, error));
    }
    LP_TRY(lp_plan_make(&this->plan, &this->graph, &(lp_extent){0}, backend->real_size, error));
    this->work = backend->buffer_new(backend->context, this->plan.work_size);
    this->scratch = backend->buffer_new(backend->context, this->plan.scratch_size);
    if (!this->work || !this->scratch)
        return lp_fail_memory(error, "sampling frequencies", this->plan.work_size + this->plan.scratch_size);
    return LAPSE_OK;
}

static const lp_value *find(const lp_graph *network, const char *name)
{
    for (int i = 0; i < network->parameter_count; i++)
        if (strcmp(network->parameters[i].value->name, name) == 0)
            return network->parameters[i].value;
    return NULL;
}

/* The network declares the sampler's parameters one after another, as the sampler does: their offsets differ by that of the
 * first. */
static lapse_status locate(lp_sampler *sampler, const lp_graph *network, lapse_error *error)
{
    const lp_graph *own = &sampler->step.graph;
    const lp_value *samples = find(network, LP_LOG_PERIOD);
    for (int i = 0; i < own->parameter_count; i++) {
        const lp_value *mine = own->parameters[i].value, *there = find(network, mine->name);
        if (there && i == 0)
            sampler->first_offset = there->offset;
        if (!there || there->offset != sampler->first_offset + mine->offset)
            return lp_fail(error, LAPSE_ERROR_INTERNAL, "the network does not hold '%s' where the sampler expects it",
                           mine->name);
    }
    if (!samples || samples->cols != sampler->count)
        return lp_fail(error, LAPSE_ERROR_INTERNAL, "the network does not hold the samples of its sampler");
    sampler->samples = samples->rows;
    sampler->sample_offset = samples->offset;
    sampler->table_size = network->table_size;
    LP_ASSERT(sampler->first_offset >= network->table_size && sampler->sample_offset >= network->table_size);
    sampler->dense_size = network->parameter_size - network->table_size;
    return LAPSE_OK;
}

static lapse_status make_buffers(lp_sampler *sampler, const lp_graph *network, lapse_error *error)
{
    size_t size = network->parameter_size + sampler->dense_size;
    sampler->seed = lp_alloc((size_t)sampler->count, sizeof *sampler->seed);
    if (!sampler->device->host)
        sampler->mirror = lp_alloc(size, sizeof *sampler->mirror);
    if (!sampler->seed || (!sampler->device->host && !sampler->mirror))
        return lp_fail_memory(error, "sampling frequencies", size * sizeof *sampler->mirror);
    return LAPSE_OK;
}

lapse_status lp_sampler_init(lp_sampler *sampler, const lp_network *network, const lp_backend *device,
                             lapse_error *error)
{
    *sampler =
        (lp_sampler){.backend = lp_backend_find("cpu"), .device = device, .count = network->encoding_config.periods};
    lapse_status status = build(&sampler->step, sampler->backend, network, LP_SAMPLE_STEP, false, error);
    if (status == LAPSE_OK)
        status = build(&sampler->stored, sampler->backend, network, LP_SAMPLE_STORED, false, error);
    if (status == LAPSE_OK)
        status = build(&sampler->backward, sampler->backend, network, LP_SAMPLE_STEP, true, error);
    if (status == LAPSE_OK)
        status = locate(sampler, &network->graph, error);
    if (status == LAPSE_OK)
        status = make_buffers(sampler, &network->graph, error);
    if (status != LAPSE_OK)
        lp_sampler_clear(sampler);
    return status;
}

void lp_sampler_clear(lp_sampler *sampler)
{
    lp_sampler_graph *all[] = {&sampler->step, &sampler->stored, &sampler->backward};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->work)
            sampler->backend->buffer_free(sampler->backend->context, all[i]->work);
        if (all[i]->scratch)
            sampler->backend->buffer_free(sampler->backend->context, all[i]->scratch);
        lp_graph_clear(&all[i]->graph);
    }
    lp_free(sampler->seed);
    lp_free(sampler->mirror);
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
                              .parameters = parameters + sampler->first_offset,
                              .gradients = gradients ? gradients + sampler->first_offset - sampler->table_size : NULL,
                              .segment = no_segments,
                              .seed = seed,
                              .step = step,
                          });
}

/* Writes the sample of a graph to row `row` of the network's samples; parameters are on the host. */
static void draw(const lp_sampler *sampler, const lp_sampler_graph *this, uint64_t seed, uint32_t step,
                 float *parameters, int row)
{
    size_t count = (size_t)sampler->count;
    run(sampler, this, seed, step, parameters, NULL);
    sampler->backend->copy_to_host(sampler->backend->context, parameters + sampler->sample_offset + (size_t)row * count,
                                   this->work + this->sample->offset, count * sizeof *parameters);
}

/* The parameters on the host: themselves, or a copy. */
static float *to_host(const lp_sampler *sampler, const float *parameters)
{
    size_t size = sampler->table_size + sampler->dense_size;
    if (!sampler->mirror)
        return (float *)(uintptr_t)parameters;
    sampler->device->copy_to_host(sampler->device->context, sampler->mirror, parameters, size * sizeof *parameters);
    return sampler->mirror;
}

static void to_device(const lp_sampler *sampler, float *parameters)
{
    size_t size = sampler->table_size + sampler->dense_size;
    if (sampler->mirror)
        sampler->device->copy_to_device(sampler->device->context, parameters, sampler->mirror,
                                        size * sizeof *parameters);
}

void lp_sampler_draw(lp_sampler *sampler, uint64_t seed, uint32_t step, float *parameters)
{
    draw(sampler, &sampler->step, seed, step, to_host(sampler, parameters), 0);
    to_device(sampler, parameters);
}

void lp_sampler_store(lp_sampler *sampler, uint64_t seed, float *parameters)
{
    float *host = to_host(sampler, parameters);
    for (int i = 0; i < sampler->samples; i++)
        draw(sampler, &sampler->stored, seed, (uint32_t)i, host, i);
    to_device(sampler, parameters);
}

void lp_sampler_backward(lp_sampler *sampler, uint64_t seed, uint32_t step, const float *parameters, float *gradients)
{
    const lp_backend *device = sampler->device;
    size_t size = sampler->dense_size * sizeof *gradients;
    const float *host = to_host(sampler, parameters);
    float *sums = sampler->mirror ? sampler->mirror + sampler->table_size + sampler->dense_size : gradients;
    if (sampler->mirror)
        device->copy_to_host(device->context, sums, gradients, size);
    memcpy(sampler->seed, sums + sampler->sample_offset - sampler->table_size, (size_t)sampler->count * sizeof *sums);
    run(sampler, &sampler->backward, seed, step, host, sums);
    if (sampler->mirror)
        device->copy_to_device(device->context, gradients, sums, size);
}
