/* cuda_program.h: a planned graph as the device runs it: the device memory of its inputs, its scratch memory, and the CUDA graphs
 * captured from its launches. A program is built at the first run with a plan and a set of buffers, and freed with the work buffer. */
#ifndef LP_CUDA_PROGRAM_H
#define LP_CUDA_PROGRAM_H

#include "backend/cuda/cuda_device.h"

/* Submits the nodes of one shard, and the optimizer step where train_step is not NULL; returns before they are done. With a profiler
 * (otherwise NULL) it waits for each launch and reports its time. */
void lp_cuda_program_run(lp_cuda_device *device, const lp_run *run, const lp_train_step *train_step,
                         const lp_profiler *profiler);

/* Frees the programs that use this work buffer. */
void lp_cuda_program_drop(lp_cuda_device *device, const void *work);

#endif
