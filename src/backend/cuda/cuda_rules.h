/* cuda_rules.h: how nodes are grouped into stages (cuda_stage.h), one row of a table for each op. An op without a row is a launch of its
 * own; every op has a launcher besides (cuda_table.cu), for runs and sizes to which its rule does not apply.
 *
 * Numbers are indices of inputs, -1: none. Sets of inputs and outputs are bits.
 */
#ifndef LP_CUDA_RULES_H
#define LP_CUDA_RULES_H

#include "backend/cuda/cuda.h"

/* Results of an op in a fused kernel. */
enum {
    LP_FUSED_NARROW = 1,          /* up to 64 columns */
    LP_FUSED_WIDE = 2,            /* two halves of up to 64 columns */
    LP_FUSED_DROPS = 32,          /* draws random bits */
    LP_FUSED_COMMUTES = 4,        /* main and other[0] may be exchanged */
    LP_FUSED_KEEPS_REGISTERS = 8, /* passes through shared memory alone */
    LP_FUSED_OVERWRITES_X = 16    /* uses the buffer of a product's x */
};

/* A step of a fused kernel (cuda_fused.h). */
typedef struct lp_fused_rule {
    unsigned outputs; /* of those it computes; 0: there is no such step */
    unsigned by_row;  /* inputs of which it reads only the same row */
    int main;         /* the input that may be in registers */
    int wide;         /* the input that may be the wide result of the step before */
    int other[2];     /* further inputs by row */
    int factors;      /* a number for each column */
    int shifts;       /* another one */
    int weight;       /* of a product */
    int ids;          /* of the rows of input 0, a table */
    int time;         /* of each row */
    int moments;      /* input or, from LP_NODE_INPUTS on, output with two numbers a row */
    unsigned flags;
} lp_fused_rule;

typedef enum lp_reduction_type {
    LP_REDUCTION_NONE,
    LP_REDUCTION_OUTER,  /* p^T q, and column sums of p or of q */
    LP_REDUCTION_COLUMN, /* columns of p */
    LP_REDUCTION_DOT,    /* columns of p * q, elementwise */
    LP_REDUCTION_NORM,   /* columns of q * normalized p, and of q; extra: mean and inverse deviation of each row */
    LP_REDUCTION_BOTH,   /* columns of p, and of q */
    LP_REDUCTION_BASIS /* columns of time * (cos p sin q - sin p cos q), of wide p and q; extra: the time of each row, in double */
} lp_reduction_type;

/* A sum over rows in a group of reductions (cuda_reduction.h). */
typedef struct lp_reduction_rule {
    lp_reduction_type type;
    unsigned outputs; /* those that are sums over rows */
    int p, q, extra;
    int halves; /* of the rows of p */
} lp_reduction_rule;

/* What the pack of a step does with a node (cuda_stage.h). */
typedef enum lp_pack_rule {
    LP_PACK_NONE,
    LP_PACK_WEIGHT, /* packs the weight of a fused product */
    LP_PACK_SCALE,  /* scales a weight while it packs it, if nothing else reads the result */
    LP_PACK_RUN     /* runs the node, if it depends only on parameters and inputs */
} lp_pack_rule;

typedef struct lp_cuda_rule {
    lp_op_id id;
    lp_fused_rule fused;
    lp_reduction_rule reduction;
    lp_pack_rule pack;
    /* Outputs of a sampled loss and of its gradient that one launch computes together (cuda_sampled_loss.cu). The others are off the
     * critical path. */
    unsigned together;
    bool ordered;    /* the other outputs need a side buffer of the launch that computes those together */
    unsigned by_id;  /* inputs of ids whose elements the host sorts (lp_cuda_lists) */
    int table;       /* input, or from LP_NODE_INPUTS on output, with a row for each of these ids */
    unsigned copies; /* inputs of which the launch reads copies in bf16 (cuda_packed.h) */
    unsigned either; /* inputs of which it reads copies if there are no floats */
} lp_cuda_rule;

/* Never NULL. */
const lp_cuda_rule *lp_cuda_rule_of(const lp_node *node);

#endif
