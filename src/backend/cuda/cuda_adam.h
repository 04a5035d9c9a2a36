/* cuda_adam.h: the optimizer's step on the device. */
#ifndef LP_CUDA_ADAM_H
#define LP_CUDA_ADAM_H

#include "backend/cuda/cuda_device.h"

void lp_cuda_adam_step(const lp_adam *adam, uint64_t step, const lp_union *rows, float *parameters);

#endif
