/* adam.h: the optimizer: shards' gradients summed in shard order, clipped, and Adam's step (Kingma and Ba 2015).
 *
 * Parameters are tables first, then the rest (graph.h). The rest takes a step as a whole. Of a table only the rows that
 * occurred in the batch do: their moments, decay and l2 stand still while they are not seen (lazy Adam), so that a step costs
 * what the batch needs and not what the catalogue holds.
 *
 * Buffers are the backend's; its table has the step.
 */
#ifndef LP_ADAM_H
#define LP_ADAM_H

#include "data/batch/batch_vocabulary.h"
#include "graph/graph.h"

struct lp_backend;

enum { LP_TABLE_LIMIT = 4 };

/* A table among the parameters. */
typedef struct lp_table {
    size_t offset; /* of its first element */
    int cols;
    int before; /* columns of the tables before it */
    float rate; /* share of the learning rate */
} lp_table;

typedef struct lp_adam {
    const struct lp_backend *backend;
    size_t size, table_size; /* parameters in all, and those of tables; multiples of LP_PARAMETER_ALIGN */
    int table_count, table_cols;
    lp_table tables[LP_TABLE_LIMIT];
    int shards, threads;
    int item_capacity; /* rows that a shard may list */
    double learning_rate, beta1, beta2, epsilon;
    double l2;                /* l2 * parameter is added to its gradient */
    double clip;              /* largest norm of the whole gradient; 0: any */
    float *gradients;         /* [shards x (size - table_size)]: filled by the passes */
    float *row_gradients;     /* [shards x item_capacity x table_cols]: filled by the passes */
    float *moment1, *moment2; /* [size] */
    float *rates;  /* [(size - table_size) / LP_PARAMETER_ALIGN]: shares of the learning rate, 0: fixed; 1 at first */
    double *norms; /* squared norms of parts of the gradient: what the backend sums */
} lp_adam;

/* The settings must be filled in; makes the buffers in the memory of `backend`, and takes tables and rates from the graph. */
lapse_status lp_adam_init(lp_adam *adam, const struct lp_backend *backend, const lp_graph *graph, lapse_error *error);
void lp_adam_clear(lp_adam *adam);

#endif
