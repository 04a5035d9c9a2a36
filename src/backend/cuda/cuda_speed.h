/* cuda_speed.h: what the device can do at most, measured: what times are held against. */
#ifndef LP_CUDA_SPEED_H
#define LP_CUDA_SPEED_H

#include "backend/cuda/cuda.h"

/* lp_backend.measure_peak */
void lp_cuda_speed(lp_precision precision, size_t size, double *operations, double *bytes);

#endif
