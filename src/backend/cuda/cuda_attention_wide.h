/* cuda_attention_wide.h: attention whose tokens are too wide for the shared memory of a block (cuda_attention.h). */
#ifndef LP_CUDA_ATTENTION_WIDE_H
#define LP_CUDA_ATTENTION_WIDE_H

#include "backend/cuda/cuda.h"

/* The kernel of attention, or of its gradient, whose heads and basis are that wide, in bf16 or in other precisions; NULL for all
 * other nodes. It reads floats. shared: bytes of a block, at most. */
lp_cuda_kernel lp_cuda_attention_wide_of(const lp_node *node, bool bf16, int shared);

#endif
