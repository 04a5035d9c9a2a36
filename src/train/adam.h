/* adam.h: the optimizer: shards' gradients summed in shard order, clipped, and Adam's step (Kingma and Ba 2015). */
#ifndef LP_ADAM_H
#define LP_ADAM_H

#include "graph/graph.h"

typedef struct lp_adam {
    size_t size; /* parameters; a multiple of LP_PARAMETER_ALIGN */
    int shards, threads;
    double learning_rate, beta1, beta2, epsilon;
    double l2;                /* l2 * parameter is added to its gradient */
    double clip;              /* largest norm of the whole gradient; 0: any */
    float *gradients;         /* [shards x size]: filled by the passes; owned */
    float *moment1, *moment2; /* [size]; owned */
    float *rates;  /* [size / LP_PARAMETER_ALIGN]: shares of the learning rate, 0: fixed; owned; 1 at first */
    double *norms; /* [chunks]: squared norm of each chunk's gradient; owned */
} lp_adam;

/* The settings must be filled in; makes the buffers. */
lapse_status lp_adam_init(lp_adam *adam, lapse_error *error);
void lp_adam_clear(lp_adam *adam);

/* Step number `step` (from 1) on the parameters. Does not depend on the number of threads. */
void lp_adam_step(lp_adam *adam, uint64_t step, float *parameters);

#endif
