/* cuda_program.h: a planned graph as the device runs it: where its inputs lie there, its scratch, and recordings of all its
 * launches. Made at the first run with a plan and a set of buffers, kept until the work buffer is freed. */
#ifndef LP_CUDA_PROGRAM_H
#define LP_CUDA_PROGRAM_H

#include "backend/cuda/cuda_device.h"

/* Takes one shard through the graph; returns before it is done. */
void lp_cuda_program_run(const lp_run *run);

/* lp_backend.train_step */
void lp_cuda_program_learn(const lp_run *run, const lp_train_step *learning);

/* lp_backend.run_profiled */
void lp_cuda_program_time(const lp_run *run, const lp_profiler *watch);

/* Drops what was made for runs with this work buffer. */
void lp_cuda_program_drop(const void *work);

#endif
