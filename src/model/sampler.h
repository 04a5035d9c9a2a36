/* sampler.h: samples the frequencies of sampled encodings, and backpropagates to the parameters of their distribution.
 *
 * A sample is one row of log periods for a whole batch (nn/encoding.h). Sampling is a small graph on fixed rows that runs on the
 * host once a step, before the shards; its gradient runs once after them, from the sum of the shards' gradients of the sample (lp_backend.reduce). Both
 * are functions of (seed, step) and the parameters alone.
 */
#ifndef LP_SAMPLER_H
#define LP_SAMPLER_H

#include "backend/backend.h"
#include "model/model.h"

/* One planned graph and its buffers. */
typedef struct lp_sampler_graph {
    lp_graph graph;
    lp_plan plan;
    lp_value *sample;     /* `count` log periods */
    char *work, *scratch; /* owned */
} lp_sampler_graph;

typedef struct lp_sampler {
    const lp_backend *backend;               /* that the graphs run on: the host's */
    const lp_backend *device;                /* whose memory holds parameters and gradients */
    lp_sampler_graph step, stored, backward; /* sample of a step; stored samples; gradient of the first */
    int samples, count;                      /* stored samples; log periods in each */
    size_t first_offset;                     /* of the sampler's parameters in those of the network */
    size_t sample_offset;                    /* of the samples */
    size_t table_size;                       /* parameters of the network's tables, which have no dense gradient */
    size_t dense_size;                       /* parameters of the network behind these */
    float *seed;                             /* [count]: the gradient of the sample; owned */
    float *mirror; /* parameters and gradients on the host; NULL where the device is the host; owned */
} lp_sampler;

/* For a network with a sampled encoding, trained on `device`. */
lapse_status lp_sampler_init(lp_sampler *sampler, const lp_network *network, const lp_backend *device,
                             lapse_error *error);
void lp_sampler_clear(lp_sampler *sampler);

/* Writes the sample of this step to the first sample of the network's parameters, which are in the device's memory. */
void lp_sampler_draw(lp_sampler *sampler, uint64_t seed, uint32_t step, float *parameters);

/* Writes the samples that a model stores to the network's parameters. */
void lp_sampler_store(lp_sampler *sampler, uint64_t seed, float *parameters);

/* Backpropagates the gradient of the sample, summed over a step's shards, to the sampler's parameters: in the sums of dense gradients. */
void lp_sampler_backward(lp_sampler *sampler, uint64_t seed, uint32_t step, const float *parameters, float *gradients);

#endif
