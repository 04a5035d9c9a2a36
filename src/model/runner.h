/* runner.h: runs the shards of a batch through a network, on several threads.
 *
 * A thread runs the whole graph for a shard, with activations in the thread's own work buffer. Outputs (gradients,
 * loss, logits) are stored by shard, so the result does not depend on which thread ran it.
 */
#ifndef LP_RUNNER_H
#define LP_RUNNER_H

#include "backend/backend.h"
#include "data/batch/batch.h"
#include "model/model.h"

/* Outputs of a shard of an inference network, in host memory, by their place in lp_network.outputs; NULL: the network has none. */
typedef union lp_outcome {
    const float *values[LP_NETWORK_OUTPUTS];
    struct {
        const float *logits[LP_TARGET_COUNT]; /* [targets x classes] */
        const float *state;                   /* [targets x dims] */
        const float *mixture, *intensity;     /* [targets x columns] */
        const float *duration;                /* [targets x buckets] */
    };
} lp_outcome;

/* [targets x columns of lp_network_time]: of a network that predicts times. */
static inline const float *lp_outcome_time(const lp_outcome *outcome)
{
    return outcome->mixture ? outcome->mixture : outcome->intensity;
}

/* Called in the thread that computed the shard. */
typedef void (*lp_on_shard)(void *context, int shard, const lp_outcome *outcome);

typedef struct lp_runner {
    const lp_backend *backend;
    const lp_network *network;
    lp_plan plan;
    lp_precision precision; /* FP32 unless the caller sets it */
    int threads;
    char **work, **scratch;             /* [threads]; owned */
    float *outputs[LP_NETWORK_OUTPUTS]; /* of a device, in pinned host memory; owned */
} lp_runner;

/* Plans the network's graph for batches up to the capacity of *batch. */
lapse_status lp_runner_init(lp_runner *runner, const lp_backend *backend, lp_network *network, const lp_batch *batch,
                            int threads, lapse_error *error);
void lp_runner_clear(lp_runner *runner);

typedef struct lp_pass {
    const lp_batch *batch;
    int first_shard, end_shard; /* those to run; end 0: all */
    const float *parameters;  /* in the backend's memory, as are the buffers of the next two */
    const lp_adam *gradients; /* training: its gradient buffers are filled; NULL: inference */
    const lp_train_step
        *train_step;  /* call the backend's train_step instead of run; the batch has one shard. Or NULL */
    float *loss;      /* [shards]: training; in memory of pinned_new, valid after the next sync */
    float seed_value; /* of the gradient */
    int sample;       /* of a sampled encoding: index of the frequency sample */
    uint64_t seed;    /* of dropout */
    uint32_t step;
    void (*prepare)(void *context, int shard, int worker); /* called before a shard runs; or NULL */
    int64_t *times;              /* [shards x (nodes + 1)]: adds nanoseconds per node, then of `prepare`; or NULL */
    const lp_profiler *profiler; /* of a device: receives its launches, which then run one by one; or NULL */
    lp_on_shard on_shard;        /* inference */
    void *context;
    /* On a device: memory of pinned_new that receives the states, valid after the next sync. NULL: on_shard gets them. */
    float *state_to;
} lp_pass;

void lp_runner_run(lp_runner *runner, const lp_pass *pass);

/* The parts of an lp_run that depend on the shard, without its inputs: rows, segments and first_token. */
lp_run lp_runner_shard(const lp_batch *batch, int shard);

/* Adds weight * softmax(logits), in double, to probabilities. */
void lp_softmax_add(const float *logits, int count, double weight, double *probabilities);

#endif
