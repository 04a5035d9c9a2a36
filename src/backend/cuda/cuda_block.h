/* cuda_block.h: the block of memory in which all that a run needs of the host comes to the device: the numbers of the shard
 * (lp_cuda_shard), its segments, the order of attention's tiles, what the optimizer wants to know, and the inputs, with their ids sorted where a node wants that. Everything
 * lies at offsets made for the largest shard, so that one copy brings it and launches need not know how much there is.
 */
#ifndef LP_CUDA_BLOCK_H
#define LP_CUDA_BLOCK_H

#include "backend/cuda/cuda_lists.h"

/* An input as the device holds it. */
typedef struct lp_cuda_input {
    const lp_value *value; /* NULL: no node reads it */
    size_t place;
    /* Where a node wants its ids sorted. */
    int64_t ids; /* the most there are; 0: nobody does */
    lp_cuda_list_layout layout;
    size_t list_place;
} lp_cuda_input;

/* In an arena. The shard's numbers are at 0. */
typedef struct lp_cuda_block {
    size_t segment_place, order_place, adam_place, size;
    lp_cuda_input *inputs; /* by slot */
    int input_count;
    /* Who lays inputs out. */
    int threads;
    const lp_cuda_input **lists; /* those whose ids are sorted */
    int list_count;
    int32_t *rooms; /* [threads x room_size]: to sort in */
    size_t room_size;
} lp_cuda_block;

/* For runs like that of *sizes, of which the run and the largest number of segments are needed. False when out of memory. */
bool lp_cuda_block_plan(lp_cuda_block *block, const lp_cuda_run *sizes, lp_arena *arena);

/* Lays out the block of a run in the host's memory; learning may be NULL. */
void lp_cuda_block_fill(const lp_cuda_block *block, const lp_run *run, const lp_train_step *learning, char *staging);

#endif
