/* adam.h: the Adam optimizer (Kingma and Ba 2015): gradients summed over shards (reduce.h), clipped by their global norm, and
 * applied.
 *
 * Parameters are tables first, then dense ones (graph.h). Dense parameters are updated in every step. Of a table only the
 * rows that occurred in the batch are: the moments and the L2 term of other rows stay unchanged (lazy Adam), so the cost
 * of a step does not depend on the size of the catalogue.
 *
 * Buffers are in the backend's memory; lp_backend.reduce is the sum over shards, lp_backend.adam_step the step.
 */
#ifndef LP_ADAM_H
#define LP_ADAM_H

#include "base/random.h"
#include "data/batch/batch_vocabulary.h"
#include "graph/graph.h"

struct lp_backend;

enum { LP_TABLE_LIMIT = 4 };

/* A table among the parameters. */
typedef struct lp_table {
    size_t offset; /* of its first element in the parameters */
    int cols;
    int before;     /* columns of the tables before it */
    float rate;     /* learning-rate multiplier */
    bool unit_ball; /* a step scales rows that it has changed back to the norm 1, if theirs is larger */
} lp_table;

typedef struct lp_adam {
    const struct lp_backend *backend;
    size_t size, table_size; /* elements of all parameters, and of tables; multiples of LP_PARAMETER_ALIGN */
    int table_count, table_cols;
    lp_table tables[LP_TABLE_LIMIT];
    int shards, threads;
    int first_shard, end_shard; /* those that `reduce` adds; end 0: all */
    int item_capacity;          /* maximum table rows of a shard */
    /* Of item tables that are divided among ranks: this one updates the rows first_item .. end_item - 1. The squared norms of each
     * row of the batch, by table, come from its rank: `share` completes them. NULL: not divided. */
    int64_t first_item, end_item;
    double *row_norms; /* [rows of the batch x table_count]; not owned */
    void (*share)(void *context);
    void *share_context;
    double learning_rate, beta1, beta2, epsilon;
    double l2;                /* l2 * parameter is added to its gradient */
    double clip;              /* maximum global norm of the gradient; 0: no clipping */
    float *gradients;         /* [shards x (size - table_size)], written by runs */
    float *row_gradients;     /* [shards x item_capacity x table_cols], written by runs */
    float *moment1, *moment2; /* [size] */
    float *rates;             /* [(size - table_size) / LP_PARAMETER_ALIGN]: learning-rate multipliers; 0: frozen */
    double *norms;            /* squared norms of parts of the gradient, summed by the backend */
} lp_adam;

/* Allocates the buffers on `backend` and reads tables and rates from the graph. The caller fills in the settings before. */
lapse_status lp_adam_init(lp_adam *adam, const struct lp_backend *backend, const lp_graph *graph, lapse_error *error);
void lp_adam_clear(lp_adam *adam);

/* Factors of one step, common to all parameters. */
typedef struct lp_adam_factors {
    float beta1, beta2, epsilon;
    float rate;        /* learning rate, with the bias correction of the first moment */
    float correction2; /* bias correction: multiplies the root of the second moment */
    float scale;       /* gradient clipping factor, 1 if not clipped */
} lp_adam_factors;

static inline lp_adam_factors lp_adam_factors_of(const lp_adam *adam, uint64_t step)
{
    double correction1 = 1 - pow(adam->beta1, (double)step), correction2 = 1 - pow(adam->beta2, (double)step);
    lp_adam_factors factors = {(float)adam->beta1,
                               (float)adam->beta2,
                               (float)adam->epsilon,
                               (float)(adam->learning_rate / correction1),
                               (float)(1 / sqrt(correction2)),
                               1};
    return factors;
}

/* The step of one element, for kernels of all backends. rate: with the element's multiplier. */
LP_INLINE void lp_adam_element(lp_adam_factors by, float rate, float gradient, float *parameter, float *moment1,
                               float *moment2)
{
    gradient *= by.scale;
    *moment1 = by.beta1 * *moment1 + (1 - by.beta1) * gradient;
    *moment2 = by.beta2 * *moment2 + (1 - by.beta2) * gradient * gradient;
    *parameter -= rate * *moment1 / (sqrtf(*moment2) * by.correction2 + by.epsilon);
}

/* The factor that brings a row of this squared norm into the unit ball. */
LP_INLINE float lp_unit_ball_factor(float squares)
{
    return squares > 1 ? 1 / sqrtf(squares) : 1;
}

#endif
