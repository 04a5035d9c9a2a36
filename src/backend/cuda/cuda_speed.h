/* cuda_speed.h: the measured peak throughput of the GPU, for the rooflines of `lapse bench`. */
#ifndef LP_CUDA_SPEED_H
#define LP_CUDA_SPEED_H

#include "backend/cuda/cuda.h"

/* lp_backend.measure_peak */
void lp_cuda_speed(lp_cuda_device *device, lp_precision precision, size_t size, double *operations, double *bytes);

#endif
