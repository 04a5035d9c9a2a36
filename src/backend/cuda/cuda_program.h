/* cuda_program.h: a planned graph as the device runs it: the device memory of its inputs, its scratch memory, and the CUDA graphs
 * captured from its launches. A program is built at the first run with a plan and a set of buffers, and freed with the work buffer. */
#ifndef LP_CUDA_PROGRAM_H
#define LP_CUDA_PROGRAM_H

#include "backend/cuda/cuda_device.h"

/* The programs of one device. */
typedef struct lp_cuda_programs {
    lp_cuda_device *device;
    struct lp_cuda_program *newest; /* list; NULL at the start */
} lp_cuda_programs;

/* lp_backend.run: submits the nodes of one shard; returns before they are done. */
void lp_cuda_program_run(lp_cuda_programs *programs, const lp_run *run);

/* lp_backend.train_step */
void lp_cuda_program_train_step(lp_cuda_programs *programs, const lp_run *run, const lp_train_step *train_step);

/* lp_backend.run_profiled */
void lp_cuda_program_profile(lp_cuda_programs *programs, const lp_run *run, const lp_profiler *profiler);

/* Frees the programs that use this work buffer. */
void lp_cuda_program_drop(lp_cuda_programs *programs, const void *work);

#endif
