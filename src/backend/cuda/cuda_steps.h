/* cuda_steps.h: nodes that work row by row, as a list of steps that one kernel takes rows through, one for each part of a stage: a fused
 * kernel (cuda_fused.h), or a chain of rows (cuda_row_chain.cu).
 *
 * The result of a step stays in registers, or in a fused kernel in shared memory, for the next one. It is stored to global memory only
 * if another kernel reads it, or a later step that does not follow directly.
 */
#ifndef LP_CUDA_STEPS_H
#define LP_CUDA_STEPS_H

#include "backend/cuda/cuda_packed.h"

enum { LP_ROW_CHAIN_STEPS = 12 }; /* of a chain of rows, at most */

/* The rows of a value in global memory, as floats, or in bf16 (cuda_packed.h); a result may be stored as both. */
typedef struct lp_step_rows {
    float *data;
    uint16_t *copy;
    int stride, copy_stride;
} lp_step_rows;

/* What a step reads and writes by row. */
enum {
    LP_STEP_MAIN,  /* LP_ROLE_MAIN; of embed the table of which ids select rows */
    LP_STEP_OTHER, /* LP_ROLE_OTHER */
    LP_STEP_MORE,  /* LP_ROLE_MORE */
    LP_STEP_OLD,   /* values that the results are added to */
    LP_STEP_OLD_SECOND,
    LP_STEP_RESULT,
    LP_STEP_RESULT_SECOND, /* layer norm: mean and inverse deviation; gradient of cosines and sines */
    LP_STEP_ROWS
};

/* Bits of lp_step.has; the first LP_STEP_ROWS say which rows there are: not those of a table. */
enum {
    LP_STEP_FOLLOWS = 1 << LP_STEP_ROWS,        /* MAIN is in registers */
    LP_STEP_ADDS_REGISTERS = 2 << LP_STEP_ROWS, /* linear: the product is added to the registers */
    LP_STEP_FACTORS = 4 << LP_STEP_ROWS,
    LP_STEP_EARLY = 8 << LP_STEP_ROWS /* no earlier step writes OTHER */
};

typedef struct lp_step {
    int op;        /* lp_op_id */
    int halves;    /* of a fused kernel's result: 1 or 2 */
    int in_halves; /* linear: of x */
    unsigned has;  /* what it reads and writes */
    lp_step_rows rows[LP_STEP_ROWS];
    const float *weight;      /* linear: packed */
    const float *next_weight; /* of the next product in the kernel; NULL: none */
    const void *factors;      /* as LP_ROLE_FACTORS; frequencies are doubles */
    const float *shifts;      /* layer norm: one for each column */
    const double *time;       /* basis: of each row */
    const int32_t *ids;       /* embed: row of the table, for each row */
    float scale, shift;
    uint32_t threshold, purpose;   /* dropout */
    int frequencies;               /* pairs of a cosine and a sine, for each head; 0: none */
    signed char gap[LP_STEP_ROWS]; /* zeros after the columns of each head, in copies */
} lp_step;

/* The value with the rows and columns of the node's kernel. */
static inline const lp_value *lp_step_shape(const lp_node *node)
{
    return node->outputs[0] ? node->outputs[0] : node->inputs[0];
}

/* Pairs of a cosine and a sine that the node reads or writes, for each head; 0: none. */
static inline int lp_step_frequencies(const lp_node *node)
{
    const lp_value *angles = lp_step_input(node, LP_ROLE_OTHER);
    return !lp_cuda_rule_of(node)->step.pairs ? 0
           : angles                           ? angles->cols / 2
                                              : lp_step_input(node, LP_ROLE_FACTORS)->cols;
}

/* Builds the steps of up to LP_STAGE_PARTS parts, in an order in which many results stay in registers. fused: of a fused kernel.
 * stages: NULL where nothing is known of other kernels, and every result is stored. */
void lp_cuda_steps_build(const lp_cuda_stages *stages, const lp_stage_part *parts, int count, bool fused,
                         const lp_cuda_run *run, lp_step *steps);

/* The outputs (bits) of a node that a chain of rows can compute; 0: none. */
unsigned lp_cuda_row_chain_supports(const lp_node *node);

/* Launches the parts of a stage as one chain (cuda_row_chain.cu). stages: as in lp_cuda_steps_build. */
void lp_cuda_row_chain(const lp_cuda_stages *stages, const lp_stage_part *parts, int count, const lp_cuda_run *run);

#endif
