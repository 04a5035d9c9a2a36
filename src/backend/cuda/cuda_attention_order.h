/* cuda_attention_order.h: the order in which thread blocks of attention and its gradient take tiles of tokens.
 *
 * Blocks are scheduled in the order of their index, and a tile can cost four times as much as another: the longest run
 * first. The host sorts the tiles when it uploads the segments of a shard; the list follows the segments on the
 * device, so no kernel waits for it. Entry 2 t is tile t as keys, 2 t + 1 as queries, which alone the forward pass reads;
 * it needs no order where all its blocks are resident at once.
 */
#ifndef LP_CUDA_ATTENTION_ORDER_H
#define LP_CUDA_ATTENTION_ORDER_H

#include "backend/cuda/cuda.h"

enum { ATTENTION_ROWS = 64 /* tokens of a tile */ };

/* Entries of the list for shards of at most `tokens` tokens. */
static inline size_t lp_cuda_attention_order_count(int64_t tokens)
{
    return 2 * (size_t)lp_blocks(tokens, ATTENTION_ROWS);
}

/* Fills the list for a shard with these segments. */
void lp_cuda_attention_order(const int32_t *segment, int segments, int64_t max_tokens, int32_t *order);

/* Entries of the list of a run, whose attention takes all of them, or skips those behind its rows. */
static inline size_t lp_cuda_attention_order_tiles(const lp_cuda_run *run)
{
    return lp_cuda_attention_order_count(run->run->plan->largest.rows[LP_ROWS_TOKENS]);
}

/* Device address of the list. */
static inline const int32_t *lp_cuda_attention_order_of(const lp_cuda_run *run)
{
    return run->segment + run->largest_segments + 1;
}

#endif
