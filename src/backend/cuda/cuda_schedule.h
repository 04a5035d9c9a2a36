/* cuda_schedule.h: assigns the stages of a step to streams.
 *
 * A stage waits for an earlier one if one of them writes bytes that the other uses. Different values may share bytes of the work buffer,
 * because the planner reuses them. Each stream runs its stages in order, and a stage waits for the stages of other streams that it depends on.
 * So several small kernels run concurrently, such as gradients of weights beside those of activations, with the same results as
 * one by one.
 */
#ifndef LP_CUDA_SCHEDULE_H
#define LP_CUDA_SCHEDULE_H

#include "backend/cuda/cuda_stage.h"

/* Streams from LP_CUDA_FIRST_LOW_PRIORITY on have low priority. */
enum { LP_CUDA_STREAMS = 8, LP_CUDA_FIRST_LOW_PRIORITY = 4 };

/* Where and after which others a stage runs. */
typedef struct lp_cuda_dispatch {
    int stream;
    int waits[LP_CUDA_STREAMS], wait_count; /* of other streams, at most one of each */
    bool signals;                           /* one of another stream waits for it */
    cudaEvent_t event;                      /* that it is done, in a capture */
} lp_cuda_dispatch;

/* Returns [stages->count + 2] in the arena; NULL when out of memory. The first is the start of a step, which all stages follow; the last is
 * the end, after all stages. Both are on stream 0. Stage i is number i + 1. */
lp_cuda_dispatch *lp_cuda_schedule(const lp_plan *plan, const lp_cuda_stages *stages, lp_arena *arena);

#endif
