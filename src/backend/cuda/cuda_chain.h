/* cuda_chain.h: nodes that go from row to row, as one launch.
 *
 * A block takes 64 rows through all pieces of a chain, one after the other: an interpreter of a short program of steps, with the rows of
 * values in shared memory. A value has a place there from the step that makes it to the last one in the chain that reads it. It goes
 * to the device's memory only if others read it too. Weights, and rows that products read, are copied in while the steps before are at work.
 * Other rows of values from outside the chain are read where they are.
 *
 * The host makes the program (cuda_chain.cu): which steps there are and what lies where and when. The kernel (cuda_chain_kernel.cu) runs it.
 */
#ifndef LP_CUDA_CHAIN_H
#define LP_CUDA_CHAIN_H

#include "backend/cuda/cuda_stage.h"

enum {
    LP_CHAIN_ROWS = 64,
    LP_CHAIN_WARPS = 8,
    LP_CHAIN_COLS = 128,  /* the most columns of products and norms */
    LP_CHAIN_PIECES = 32, /* the most of a chain */
    LP_CHAIN_STEPS = 48,
    LP_CHAIN_ASKS = 96
};

/* The rows of a value: in shared memory where place >= 0, otherwise in the device's from data on; neither: absent. */
typedef struct chain_rows {
    float *data;
    int place, stride;
} chain_rows;

/* Where a step's result goes: to shared memory where place >= 0, and to the device's where there is a `keep`; added to `old`, if that is there. */
typedef struct chain_result {
    chain_rows old;
    float *keep;
    int place, stride, keep_stride;
    int pad, pad_end; /* columns in shared memory that are set to 0: those behind it, which products read */
} chain_result;

typedef struct __align__(16) chain_step {
    int op;                 /* lp_op_id */
    int cols;               /* of the result */
    int terms;              /* linear: columns of x; reflect: frequencies */
    int heads;              /* reflect */
    int first_ask, asks;    /* copies that begin with this step */
    bool waits;             /* for copies that began before */
    bool late;              /* and for those that begin here */
    bool transpose;         /* linear */
    int weight, weight_stride; /* linear: in shared memory */
    chain_rows input[4];    /* by the op's number */
    const void *whole[3];   /* likewise, of inputs that are not rows: bias, gain, frequencies, ids, .. */
    chain_result result[2];
    float scale, shift;
    uint32_t threshold, purpose; /* dropout */
} chain_step;

/* Rows on their way to shared memory, padded with zeros to `wide` columns and `rows` rows. */
typedef struct __align__(16) chain_ask {
    const float *from;
    int place, stride, from_stride, rows, cols, wide;
    int present;  /* rows there are; -1: those of the block */
    int width;    /* floats at a time */
} chain_ask;

/* On the host. On the device its steps and asks lie end to end: a block brings them to shared memory first of all, since what
 * comes with a launch is far away when it is read for the first time. */
typedef struct chain_program {
    int count, ask_count;
    chain_step steps[LP_CHAIN_STEPS];
    chain_ask asks[LP_CHAIN_ASKS];
} chain_program;

/* A chain that is ready to be launched. */
typedef struct lp_cuda_chain {
    const void *program; /* on the device: chain_step [count], chain_ask [ask_count] */
    size_t place;        /* of it among the programs of all chains */
    int count, ask_count;
    lp_cuda_rows rows;
    unsigned blocks;
    int shared; /* floats of shared memory */
    int width;  /* 2 where all columns are even, otherwise 1 */
} lp_cuda_chain;

/* Which outputs of a node a chain can make, and of which inputs it reads its own row alone. 0: none. */
unsigned lp_cuda_chain_takes(const lp_node *node, unsigned *by_row);

/* Whether there is room for a chain of these; touches: those of lp_cuda_stages. */
bool lp_cuda_chain_fits(const lp_stage_piece *pieces, int count, const int *touches);

/* Makes the program of a chain for these runs; the caller brings it to the device and says where it is. */
void lp_cuda_chain_make(const lp_stage_piece *pieces, int count, const int *touches, const lp_cuda_run *run,
                        lp_cuda_chain *chain, chain_program *program);

void lp_cuda_chain_launch(const lp_cuda_chain *chain, const lp_cuda_run *run);

/* Bytes of a program on the device, and in shared memory, where it comes first. */
__host__ __device__ static inline int lp_cuda_chain_size(int steps, int asks)
{
    return (int)(((size_t)steps * sizeof(chain_step) + (size_t)asks * sizeof(chain_ask) + 15) / 16 * 16);
}

#endif
