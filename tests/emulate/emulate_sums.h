/* emulate_sums.h: a group of sums (backend/cuda/cuda_sums.h) on the emulated device, for tests that are C. */
#ifndef LP_EMULATE_SUMS_H
#define LP_EMULATE_SUMS_H

#include "backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

int lp_emulate_sums_most(void);
bool lp_emulate_sums_takes(const lp_node *node, unsigned *outputs);
/* As far as the outputs of each node go whose bits are set. False where the kernels wrote beyond their scratch. */
bool lp_emulate_sums(const lp_node *const *nodes, const unsigned *outputs, int count, const lp_run *run);

#ifdef __cplusplus
}
#endif

#endif
