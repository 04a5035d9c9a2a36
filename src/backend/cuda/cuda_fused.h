/* cuda_fused.h: one fused kernel for a group of nodes that work row by row.
 *
 * The kernel interprets a short list of steps, one for each part of the stage. A block takes 64 rows through all steps and does not
 * synchronize with other blocks. The result of a step stays in registers, in the layout of a tensor core's accumulator (cuda_tile.h), or
 * in shared memory for the next step. It is stored to global memory only if another kernel reads it, or a later step that does not follow
 * directly.
 *
 * Weights are packed beforehand (cuda_pack.cu) in the order in which lanes read them, and rounded. They are most of what a product reads, so a
 * block has many rows and loads a weight into shared memory once, while the product before it is computed.
 *
 * A value is narrow (up to 64 columns) or wide (two halves of up to 64 columns, such as cosines and sines). All values of a fused kernel
 * have halves of the same width. Nodes with wider values or several heads, and products in fp32, use other kernels.
 *
 * cuda_fused.cu builds the steps on the host; cuda_fused_kernel.cu executes them.
 */
#ifndef LP_CUDA_FUSED_H
#define LP_CUDA_FUSED_H

#include "backend/cuda/cuda_stage.h"

enum {
    LP_FUSED_ROWS = 64, /* per block */
    LP_FUSED_TILES = 8, /* tiles of 8 columns in half a value */
    LP_FUSED_COLS = 8 * LP_FUSED_TILES,
    LP_FUSED_STEPS = 32 /* per kernel, at most */
};

/* The rows of a value in global memory, as floats, or in bf16 (cuda_packed.h); a result may be stored as both. */
typedef struct fused_rows {
    float *data;
    uint16_t *copy;
    int stride, copy_stride;
} fused_rows;

/* What a step reads and writes by row. */
enum {
    LP_STEP_MAIN, /* the input that may be the result of an earlier step; of embed the table of which ids select rows */
    LP_STEP_OTHER, /* an addend, cosines and sines, the x of a gradient */
    LP_STEP_MORE,  /* the x of a reflection's gradient; layer norm: mean and inverse deviation */
    LP_STEP_OLD,   /* values that the results are added to */
    LP_STEP_OLD_SECOND,
    LP_STEP_RESULT,
    LP_STEP_RESULT_SECOND,
    LP_STEP_ROWS
};

/* Bits of fused_head.has; the first LP_STEP_ROWS say which rows there are. */
enum {
    LP_STEP_FOLLOWS = 1 << LP_STEP_ROWS,        /* MAIN is in registers, or if wide in the buffer `write` */
    LP_STEP_ADDS_REGISTERS = 2 << LP_STEP_ROWS, /* linear: the product is added to the registers */
    LP_STEP_FACTORS = 4 << LP_STEP_ROWS
};

/* All that the control flow of a step depends on, loaded at once. */
typedef struct __align__(16) fused_head
{
    int op;        /* lp_op_id */
    int halves;    /* of the result: 1 or 2 */
    int in_halves; /* linear: of x */
    unsigned has;  /* what it reads and writes */
}
fused_head;

typedef struct fused_step {
    fused_head head;
    fused_rows rows[LP_STEP_ROWS];
    const float *weight;      /* linear: packed */
    const float *next_weight; /* linear: weight of the next product in the kernel; NULL: none */
    const void *factors;      /* one for each column: bias, scale, gain or frequency */
    const float *shifts;      /* layer norm: one for each column */
    const double *time;       /* basis: of each row */
    const int32_t *ids;       /* embed: row of the table, for each row */
    float scale, shift;
    uint32_t threshold, purpose; /* dropout */
} fused_step;

enum { LP_PACK_EXTRAS = 4 };                                   /* extra nodes that a pack runs, at most */
enum { LP_PACK_BLOCK = LP_FUSED_TILES * LP_FUSED_TILES * 64 }; /* floats of a block of halves */

/* A weight to be packed, [in x out] or transposed [out x in]. Block (to, from) of its halves has, for every tile of 8 terms and pair of
 * tiles of 8 columns, a float4 for each lane 4 g + t: terms t and t + 4 of column g in the first tile, and in the second. */
typedef struct packed_weight {
    const float *weight, *scale; /* scale: factor of each column of the weight; NULL: 1 */
    float *to;
    int in, out; /* columns of a half */
    int in_halves, out_halves;
    int stride; /* floats from row to row */
    bool transpose;
} packed_weight;

/* A fused kernel or a pack, ready to launch. */
typedef struct lp_cuda_fused {
    const char *steps; /* on the device: [count] fused_step, or of a pack packed_weight */
    size_t offset;     /* of the steps in the upload of all stages */
    int count;
    int cols;                  /* of half a value */
    const float *first_weight; /* of the first product; NULL: there is none */
    lp_cuda_rows rows;
    unsigned blocks;
} lp_cuda_fused;

/* Whether fused kernels are used for a graph: not if a product has more than 64 columns on both sides. It would take four passes over
 * the weights, and products of their own (cuda_product.h), with chains of the other nodes (cuda_row_chain.h), are faster. */
bool lp_cuda_fused_suits(const lp_graph *graph);

/* The outputs (bits) of a node that a fused kernel can compute; 0: none. */
unsigned lp_cuda_fused_supports(const lp_node *node);

/* Columns of half a value in a fused kernel with this node. */
int lp_cuda_fused_cols(const lp_node *node);

/* Builds the steps of a stage with up to LP_FUSED_STEPS parts. The caller uploads them and sets fused->steps. packed: the packed weights
 * of all products. */
void lp_cuda_fused_build(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run,
                         float *packed, lp_cuda_fused *fused, fused_step *steps);

/* The same for a pack: a packed_weight for each of its products. */
void lp_cuda_pack_build(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run, float *packed,
                        lp_cuda_fused *fused, packed_weight *packs);

/* Floats of the packed weight of a product. */
size_t lp_cuda_packed_size(const lp_node *node);

/* Whether the run's precision allows tensor cores, which fused kernels require. */
bool lp_cuda_fused_enabled(const lp_cuda_run *run);

void lp_cuda_fused_launch(const lp_cuda_fused *fused, const lp_cuda_run *run);
void lp_cuda_pack_launch(const lp_cuda_stage *stage, const lp_cuda_fused *pack, const lp_cuda_run *run);

#endif
