/* adam.h: the optimizer: shards' gradients summed in shard order, clipped, and Adam's step (Kingma and Ba 2015). */
#ifndef LP_ADAM_H
#define LP_ADAM_H

#include "base/error.h"

/* Parameters from begin to end (exclusive). */
typedef struct lp_adam_range {
    size_t begin, end;
} lp_adam_range;

typedef struct lp_adam {
    size_t size;  /* parameters */
    lp_adam_range *fixed; /* parameters that no step changes; owned */
    int fixed_count;
    int shards, threads;
    double learning_rate, beta1, beta2, epsilon;
    double l2;    /* l2 * parameter is added to its gradient */
    double clip;  /* largest norm of the whole gradient; 0: any */
    float *gradients;          /* [shards x size]: filled by the passes; owned */
    float *moment1, *moment2;  /* [size]; owned */
    double *norms;             /* [chunks]: squared norm of each chunk's gradient; owned */
} lp_adam;

/* The settings must be filled in; makes the buffers. Takes `fixed` over. */
lapse_status lp_adam_init(lp_adam *adam, lapse_error *error);
void lp_adam_clear(lp_adam *adam);

/* Step number `step` (from 1) on the parameters. Does not depend on the number of threads. */
void lp_adam_step(lp_adam *adam, uint64_t step, float *parameters);

#endif
