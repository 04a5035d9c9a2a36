/* cuda_fused.h: one fused kernel for a group of nodes that work row by row, products with weights included.
 *
 * The kernel interprets a short list of steps (cuda_steps.h). A block takes 64 rows through all of them, and does not wait for other
 * blocks. The result of a step stays in registers, a row at a time in the lanes of a warp (cuda_row_steps.h); products pass through
 * shared memory.
 *
 * Weights are packed beforehand (cuda_pack.cu) in the order in which lanes read them, and rounded. They are most of what a product reads, so
 * the warps of a block load a weight into shared memory once, while the product before it is computed.
 *
 * A value is narrow (up to 64 columns) or wide (two halves of up to 64 columns, such as cosines and sines). All values of a fused kernel
 * have halves of the same width. Nodes with wider values or several heads, and products in fp32, use other kernels.
 */
#ifndef LP_CUDA_FUSED_H
#define LP_CUDA_FUSED_H

#include "backend/cuda/cuda_steps.h"

enum { LP_FUSED_TILES = 8, LP_FUSED_COLS = 8 * LP_FUSED_TILES }; /* tiles of 8 columns in half a value */
enum { LP_PACK_BLOCK = LP_FUSED_TILES * LP_FUSED_TILES * 64 };   /* floats of a block of halves */

/* Number of halves of a value; 0: it is too wide, or its halves are not aligned to two floats. */
static inline int lp_fused_halves(int cols)
{
    if (cols <= LP_FUSED_COLS)
        return cols % 2 ? 0 : 1;
    return cols <= 2 * LP_FUSED_COLS && cols % 4 == 0 ? 2 : 0;
}

/* Columns of half a value in a fused kernel with this node; 0: there is none. */
static inline int lp_fused_cols(const lp_node *node)
{
    int cols = lp_step_shape(node)->cols, halves = lp_fused_halves(cols);
    return halves ? cols / halves : 0;
}

/* Whether fused kernels are used for a graph: not if a product has more than 64 columns on both sides. It would take four passes over
 * the weights, and products of their own (cuda_product.h), with chains of the other nodes (cuda_row_chain.cu), are faster. */
bool lp_cuda_fused_suits(const lp_graph *graph);

/* The outputs (bits) of a node that a fused kernel can compute; 0: none. */
unsigned lp_cuda_fused_supports(const lp_node *node);

/* The steps of the stage are in the upload. */
void lp_cuda_fused_launch(const lp_cuda_stage *stage, const lp_cuda_run *run);

/* Packs the weights of fused kernels that were written by this stage, as the last one before they are read; -1: that no stage writes. */
void lp_cuda_pack(const lp_cuda_stages *stages, int stage, const lp_cuda_run *run);

#endif
