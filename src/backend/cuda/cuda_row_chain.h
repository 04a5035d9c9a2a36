/* cuda_row_chain.h: nodes that work row by row, of any width and in every precision, as one launch.
 *
 * The kernel interprets a short list of steps, one for each node. A team of lanes takes a row through all of them: part of a
 * warp, a warp, or for wide rows a block; nodes of cosines and sines take a thread for some pairs of a row. Every lane has the
 * same columns of all values, so that the result of a step stays in its registers for the next one. It is stored only if
 * another kernel reads it, or a step that does not follow directly; the team synchronizes between steps, so a step may read any
 * column of the row that an earlier one stored.
 *
 * Sums over the columns have the same order in every launch.
 */
#ifndef LP_CUDA_ROW_CHAIN_H
#define LP_CUDA_ROW_CHAIN_H

#include "backend/cuda/cuda_packed.h"

enum { LP_ROW_CHAIN_STEPS = 16 }; /* of a launch, at most */

/* What a step reads and writes. */
enum {
    LP_ROW_MAIN = 1,  /* loads the main input; otherwise it is in the registers */
    LP_ROW_EARLY = 2, /* `other[0]` is a row of the same columns that no earlier step writes */
    LP_ROW_ADDS = 4,  /* to result[0] */
    LP_ROW_ADDS_SECOND = 8
};

typedef struct row_step {
    int op; /* lp_op_id */
    unsigned flags;
    const float *main; /* a row of the same columns; embed: the table */
    /* An addend; layer norm gradient: x, mean and inverse deviation; reflect: cosines and sines, x of the gradient. */
    const float *other[2];
    lp_cuda_copy from[3]; /* of main and others in bf16, which is read instead */
    float *result[2];     /* NULL: not stored. Second: mean and inverse deviation; gradient of the cosines and sines */
    lp_cuda_copy copy;    /* of result[0] in bf16 */
    const void *factors;  /* one for each column: scale, gain; basis: frequency */
    const float *shifts;  /* layer norm: one for each column */
    const double *time;   /* basis: of each row */
    const int32_t *ids;   /* embed: row of the table, for each row */
    float scale, shift;
    uint32_t threshold, purpose; /* dropout */
    int frequencies;             /* of basis and reflect */
} row_step;

/* The outputs (bits) of a node that a chain can compute; 0: none. */
unsigned lp_cuda_row_chain_supports(const lp_node *node);

/* Pairs of a cosine and a sine that the node reads or writes, for each head; 0: none. A chain has only nodes with the same number: a
 * thread has the same pairs in all of them. */
int lp_cuda_row_chain_frequencies(const lp_node *node);

/* Launches the parts of a stage as one chain. */
void lp_cuda_row_chain_launch(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run);

#endif
