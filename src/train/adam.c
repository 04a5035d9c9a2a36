#include "train/adam.h"

#include "base/memory.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 4096 }; /* parameters a task takes */

static int chunk_count(const lp_adam *adam)
{
    return (int)((adam->size + CHUNK - 1) / CHUNK);
}

lapse_status lp_adam_init(lp_adam *adam, lapse_error *error)
{
    adam->gradients = lp_alloc((size_t)adam->shards * adam->size, sizeof *adam->gradients);
    adam->moment1 = lp_alloc(adam->size, sizeof *adam->moment1);
    adam->moment2 = lp_alloc(adam->size, sizeof *adam->moment2);
    adam->norms = lp_alloc((size_t)chunk_count(adam), sizeof *adam->norms);
    size_t groups = adam->size / LP_PARAMETER_ALIGN;
    adam->rates = lp_alloc(groups, sizeof *adam->rates);
    for (size_t i = 0; adam->rates && i < groups; i++)
        adam->rates[i] = 1;
    if (adam->gradients && adam->moment1 && adam->moment2 && adam->rates && adam->norms)
        return LAPSE_OK;
    lp_adam_clear(adam);
    return lp_fail_memory(error, "the optimizer", ((size_t)adam->shards + 2) * adam->size * sizeof(float));
}

void lp_adam_clear(lp_adam *adam)
{
    lp_free(adam->gradients);
    lp_free(adam->moment1);
    lp_free(adam->moment2);
    lp_free(adam->rates);
    lp_free(adam->norms);
    adam->gradients = adam->moment1 = adam->moment2 = NULL;
    adam->rates = NULL;
    adam->norms = NULL;
}

typedef struct adam_job {
    lp_adam *adam;
    float *parameters;
    float rate, correction2, scale; /* of this step */
} adam_job;

static size_t chunk_end(const lp_adam *adam, int chunk)
{
    size_t end = ((size_t)chunk + 1) * CHUNK;
    return end < adam->size ? end : adam->size;
}

/* Fixed parameters have no gradient, and so no part in the norm, no moments and no step. */
static void clear_fixed(const lp_adam *adam, size_t begin, size_t end)
{
    for (size_t group = begin / LP_PARAMETER_ALIGN; group < end / LP_PARAMETER_ALIGN; group++)
        if (adam->rates[group] == 0)
            memset(adam->gradients + group * LP_PARAMETER_ALIGN, 0, LP_PARAMETER_ALIGN * sizeof *adam->gradients);
}

/* The sum over shards, in their order, into the first shard's gradient; and its squared norm. */
static void reduce_chunk(void *context, int chunk, int worker)
{
    (void)worker;
    adam_job *job = context;
    lp_adam *adam = job->adam;
    size_t begin = (size_t)chunk * CHUNK, end = chunk_end(adam, chunk);
    float *sum = adam->gradients;
    for (int shard = 1; shard < adam->shards; shard++) {
        const float *gradient = adam->gradients + (size_t)shard * adam->size;
        for (size_t i = begin; i < end; i++)
            sum[i] += gradient[i];
    }
    double norm = 0;
    float l2 = (float)adam->l2;
    for (size_t i = begin; i < end; i++)
        sum[i] += l2 * job->parameters[i];
    clear_fixed(adam, begin, end);
    for (size_t i = begin; i < end; i++)
        norm += (double)sum[i] * sum[i];
    adam->norms[chunk] = norm;
}

static void step_chunk(void *context, int chunk, int worker)
{
    (void)worker;
    adam_job *job = context;
    lp_adam *adam = job->adam;
    float beta1 = (float)adam->beta1, beta2 = (float)adam->beta2, epsilon = (float)adam->epsilon;
    for (size_t i = (size_t)chunk * CHUNK; i < chunk_end(adam, chunk); i++) {
        float rate = job->rate * adam->rates[i / LP_PARAMETER_ALIGN];
        float gradient = adam->gradients[i] * job->scale;
        float first = beta1 * adam->moment1[i] + (1 - beta1) * gradient;
        float second = beta2 * adam->moment2[i] + (1 - beta2) * gradient * gradient;
        adam->moment1[i] = first;
        adam->moment2[i] = second;
        job->parameters[i] -= rate * first / (sqrtf(second) * job->correction2 + epsilon);
    }
}

void lp_adam_step(lp_adam *adam, uint64_t step, float *parameters)
{
    adam_job job = {.adam = adam, .parameters = parameters, .scale = 1};
    lp_threads_run(adam->threads, chunk_count(adam), reduce_chunk, &job);
    double norm = 0;
    for (int chunk = 0; chunk < chunk_count(adam); chunk++)
        norm += adam->norms[chunk];
    norm = sqrt(norm);
    if (adam->clip > 0 && norm > adam->clip)
        job.scale = (float)(adam->clip / norm);
    job.rate = (float)(adam->learning_rate / (1 - pow(adam->beta1, (double)step)));
    job.correction2 = (float)(1 / sqrt(1 - pow(adam->beta2, (double)step)));
    lp_threads_run(adam->threads, chunk_count(adam), step_chunk, &job);
}
