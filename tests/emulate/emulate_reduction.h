/* emulate_reduction.h: a group of reductions (backend/cuda/cuda_reduction.h) on the emulated device, for tests in C. */
#ifndef LP_EMULATE_REDUCTION_H
#define LP_EMULATE_REDUCTION_H

#include "backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

int lp_emulate_reduction_max(void);
/* Computes the outputs of each node that are sums over rows. False where the kernels wrote beyond their scratch memory. */
bool lp_emulate_reduction(const lp_node *const *nodes, int count, const lp_run *run);

#ifdef __cplusplus
}
#endif

#endif
