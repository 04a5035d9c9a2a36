/* cuda_schedule.h: which nodes of a graph may run side by side.
 *
 * A node must wait for an earlier one if one of them writes what the other reads or writes. Values that lie at the same bytes
 * of the work buffer at different times count, since the planner reuses bytes. The nodes are spread over a few lanes, each of
 * which runs its nodes in order; a node waits for those of other lanes that it depends on. So the device has several small
 * kernels at once, such as the gradients of weights beside those of activations, and results are the same as one by one.
 */
#ifndef LP_CUDA_SCHEDULE_H
#define LP_CUDA_SCHEDULE_H

#include "backend/cuda/cuda.h"

enum { LP_CUDA_LANES = 8 };

typedef struct lp_cuda_slot {
    int lane;
    int waits[LP_CUDA_LANES], wait_count; /* nodes of other lanes, one of each at most: those before it are implied */
    bool awaited;                         /* by a node of another lane */
} lp_cuda_slot;

/* slots: [node_count], by node; in the arena. NULL when out of memory. */
lp_cuda_slot *lp_cuda_schedule(const lp_plan *plan, lp_arena *arena);

#endif
