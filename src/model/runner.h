/* runner.h: takes the shards of a batch through a network, on several threads.
 *
 * A thread takes a shard through the whole graph with its activations in a work buffer of its own. What a shard gives
 * back (gradients, loss, logits) is kept by shard, so that it does not matter which thread it was.
 */
#ifndef LP_RUNNER_H
#define LP_RUNNER_H

#include "backend/backend.h"
#include "data/batch/batch.h"
#include "model/model.h"

/* What a shard has computed, for a network that answers: logits of every predicted target, or the states. In the host's
 * memory. */
typedef struct lp_outcome {
    const float *logits[LP_TARGET_COUNT]; /* [asked x names of the target] */
    const float *state;                   /* [asked x dims] */
} lp_outcome;

/* Reads it, in the thread that computed it. */
typedef void (*lp_on_shard)(void *context, int shard, const lp_outcome *outcome);

typedef struct lp_runner {
    const lp_backend *backend;
    const lp_network *network;
    lp_plan plan;
    lp_precision precision; /* FP32 at first */
    int threads;
    char **work, **scratch;              /* [threads]; owned */
    float *answers[LP_TARGET_COUNT + 1]; /* a device's logits and states, on the host; owned */
} lp_runner;

/* For batches that are no larger than *batch can be. Plans the network's graph. */
lapse_status lp_runner_init(lp_runner *runner, const lp_backend *backend, lp_network *network, const lp_batch *batch,
                            int threads, lapse_error *error);
void lp_runner_clear(lp_runner *runner);

typedef struct lp_pass {
    const lp_batch *batch;
    const float *parameters;       /* in the backend's memory, as are the next two */
    const lp_adam *gradients;      /* whose gradients a network that learns fills; NULL: it answers */
    const lp_train_step *learning; /* where the backend is to `learn`, of a batch that is one shard; or NULL */
    float *loss;      /* [shards], of a network that learns; in the memory of the backend's host_new; there after
                               * the next sync */
    float seed_value; /* of the gradient */
    int draw;         /* of a sampled encoding: which of those in the parameters */
    uint64_t seed;    /* of dropout */
    uint32_t step;
    void (*prepare)(void *context, int shard, int worker); /* what is left to do to a shard of the batch; or NULL */
    int64_t *times;           /* [shards x (nodes + 1)]: nanoseconds are added, those of `prepare` last; or NULL */
    const lp_profiler *watch; /* of a device: shown its launches, which then run one by one; or NULL */
    lp_on_shard on_shard;     /* of a network that answers */
    void *context;
} lp_pass;

void lp_runner_run(lp_runner *runner, const lp_pass *pass);

/* What lp_runner_run hands to a backend: the inputs of a shard by slot, but for seed and draw; and a run that says which
 * rows and segments it has, and nothing else. */
void lp_runner_feed(const lp_batch *batch, int shard, void *inputs[LP_FEED_LIMIT]);
lp_run lp_runner_shard(const lp_batch *batch, int shard);

/* Adds share * softmax(logits), in double, to answer. */
void lp_softmax_add(const float *logits, int count, double share, double *answer);

#endif
