/* cuda_rules.h: how nodes are grouped into stages (cuda_stage.h), one row of a table for each op. An op without a row is a launch of its
 * own; every op also has a launcher (lp_cuda_kernel_of), for runs and sizes to which its rule does not apply.
 *
 * Sets of inputs and outputs are bits.
 */
#ifndef LP_CUDA_RULES_H
#define LP_CUDA_RULES_H

#include "backend/cuda/cuda.h"

/* The kinds of input of a step by row (cuda_steps.h). */
typedef enum lp_step_role {
    LP_ROLE_NONE,
    /* Of these a row of the result reads only the same row: */
    LP_ROLE_MAIN,  /* the input that may be the result of an earlier step */
    LP_ROLE_OTHER, /* an addend, cosines and sines, the x of a gradient */
    LP_ROLE_MORE,  /* the x of a reflection's gradient; layer norm: mean and inverse deviation */
    LP_ROLE_TIME,  /* in double */
    LP_ROLE_IDS,   /* of the rows of the table */
    /* All others are read as a whole: */
    LP_ROLE_TABLE,
    LP_ROLE_FACTORS, /* a number for each column: bias, scale, gain or frequency */
    LP_ROLE_SHIFTS,  /* another one */
    LP_ROLE_WEIGHT   /* of a product */
} lp_step_role;

enum { LP_STEP_INPUTS = 4 };

/* A step of a fused kernel or of a chain of rows. */
typedef struct lp_step_rule {
    unsigned outputs = 0; /* of those it computes; 0: there is no such step */
    lp_step_role role[LP_STEP_INPUTS] = {};
    bool pairs = false;    /* of cosines and sines, which pass through no registers from step to step */
    bool commutes = false; /* MAIN and OTHER may be exchanged */
} lp_step_rule;

typedef enum lp_reduction_type {
    LP_REDUCTION_NONE,
    LP_REDUCTION_OUTER,  /* p^T q, and column sums of p or of q */
    LP_REDUCTION_COLUMN, /* columns of p */
    LP_REDUCTION_DOT,    /* columns of p * q, elementwise */
    LP_REDUCTION_NORM,   /* columns of q * normalized p, and of q; extra: mean and inverse deviation of each row */
    LP_REDUCTION_BASIS /* columns of time * (cos p sin q - sin p cos q), of wide p and q; extra: the time of each row, in double */
} lp_reduction_type;

/* A sum over rows in a group of reductions (cuda_reduction.h). */
typedef struct lp_reduction_rule {
    lp_reduction_type type = LP_REDUCTION_NONE;
    unsigned outputs = 0;           /* those that are sums over rows */
    int p = -1, q = -1, extra = -1; /* indices of inputs; -1: none */
} lp_reduction_rule;

typedef struct lp_cuda_rule {
    lp_op_id id;
    unsigned copies = 0; /* inputs of which the launch reads copies in bf16 (cuda_packed.h) */
    unsigned either = 0; /* inputs of which it reads copies if there are no floats */
    lp_step_rule step = {};
    lp_reduction_rule reduction = {};
    /* Outputs of a sampled loss and of its gradient that one launch computes together (cuda_sampled_loss.cu). The others are off the
     * critical path. */
    unsigned together = 0;
    bool ordered = false; /* the other outputs need a side buffer of the launch that computes those together */
    unsigned by_id = 0;   /* inputs of ids whose elements the host sorts (lp_cuda_lists) */
    int table = -1;       /* input, or from LP_NODE_INPUTS on output, with a row for each of these ids */
} lp_cuda_rule;

/* Never NULL. */
const lp_cuda_rule *lp_cuda_rule_of(const lp_node *node);

/* The input of a step with this role; NULL: it has none. */
static inline const lp_value *lp_step_input(const lp_node *node, lp_step_role role)
{
    const lp_value *found = NULL;
    for (int i = 0; i < LP_STEP_INPUTS; i++)
        if (lp_cuda_rule_of(node)->step.role[i] == role)
            found = node->inputs[i];
    return found;
}

#endif
