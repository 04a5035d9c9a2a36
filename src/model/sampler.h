/* sampler.h: draws the frequencies of sampled encodings, and learns to draw them.
 *
 * A draw is one row of log periods for a whole batch (nn/encoding.h). Drawing is a small graph on fixed rows that runs once
 * a step, before the shards; its gradient runs once after them, from the sum of what they say about the draw. Both are
 * functions of (seed, step) and the parameters alone.
 */
#ifndef LP_SAMPLER_H
#define LP_SAMPLER_H

#include "backend/backend.h"
#include "model/model.h"

/* One planned graph and its buffers. */
typedef struct lp_sampler_graph {
    lp_graph graph;
    lp_plan plan;
    lp_value *draw;       /* `count` log periods */
    char *work, *scratch; /* owned */
} lp_sampler_graph;

typedef struct lp_sampler {
    const lp_backend *backend;
    lp_sampler_graph step, stored, learn; /* draw for a step; draw what is kept; the gradient of the first */
    int draws, count;                     /* draws a model keeps; log periods in each */
    size_t first;                         /* place of the sampler's parameters in those of the network */
    size_t place;                         /* of the draws */
    size_t tables;                        /* parameters of the network's tables, which have no gradient by place */
    size_t network_size;                  /* parameters of the network behind these */
    float *seed;                          /* [count]: the gradient of the draw; owned */
} lp_sampler;

/* For a network of a model whose encoding is sampled. */
lapse_status lp_sampler_init(lp_sampler *sampler, const lp_model_config *config, const lp_graph *network,
                             lapse_error *error);
void lp_sampler_clear(lp_sampler *sampler);

/* Puts the draw of this step in the place of the first draw. */
void lp_sampler_draw(lp_sampler *sampler, uint64_t seed, uint32_t step, float *parameters);

/* Puts the draws that a model keeps in their places. */
void lp_sampler_store(lp_sampler *sampler, uint64_t seed, float *parameters);

/* After a step's shards: turns their gradients by the draw into gradients of the sampler's parameters, those of the first
 * shard, where no shard has any. */
void lp_sampler_learn(lp_sampler *sampler, uint64_t seed, uint32_t step, const float *parameters, float *gradients,
                      int shards);

#endif
