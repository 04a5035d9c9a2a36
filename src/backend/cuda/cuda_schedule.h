/* cuda_schedule.h: which stages of a step may run side by side.
 *
 * A stage must wait for an earlier one if one of them writes what the other reads or writes. Values that lie at the same bytes
 * of the work buffer at different times count, since the planner reuses bytes. The stages are spread over a few lanes, each of
 * which runs its stages in order; a stage waits for those of other lanes that it depends on. So the device has several small
 * kernels at once, such as the gradients of weights beside those of activations, and results are the same as one by one.
 */
#ifndef LP_CUDA_SCHEDULE_H
#define LP_CUDA_SCHEDULE_H

#include "backend/cuda/cuda_stage.h"

/* The last lanes are for what is lazy (lp_piece_lazy): the device takes it up when it has nothing else. */
enum { LP_CUDA_LANES = 8, LP_CUDA_FIRST_LAZY = 6 };

typedef struct lp_cuda_slot {
    int lane;
    int waits[LP_CUDA_LANES], wait_count; /* stages of other lanes, one of each at most: those before it are implied */
    bool awaited;                         /* by a stage of another lane */
} lp_cuda_slot;

/* slots: [stages->count], by stage; in the arena. NULL when out of memory. Nobody waits for stages that are left out of runs with
 * chains, or without. */
lp_cuda_slot *lp_cuda_schedule(const lp_plan *plan, const lp_cuda_stages *stages, bool chains, lp_arena *arena);

#endif
