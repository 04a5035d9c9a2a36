/* cuda_device.h: one GPU: memory, copies, streams and the timer. Kernels are launched through cuda.h.
 *
 * Work is submitted to stream 0 and runs in submission order. The other streams are used only while a CUDA graph is captured.
 * A device is not thread-safe: the backend's mutex (cuda_backend.cu) serializes all calls. tests/emulate replaces the CUDA runtime
 * by one on the CPU, where every call completes before it returns.
 */
#ifndef LP_CUDA_DEVICE_H
#define LP_CUDA_DEVICE_H

#include "backend/cuda/cuda_schedule.h"

struct lp_cuda_device {
    char first_error[300]; /* empty: none */
    int capability;        /* compute capability: 80, 90, ... */
    char name[256];
    int multiprocessors;
    bool dependent;   /* launches may depend on each other (LP_LAUNCH_PDL) */
    int shared, half; /* bytes of shared memory: of a block at most, and where two blocks run on a multiprocessor */
    cudaStream_t streams[LP_CUDA_STREAMS], copy_stream;
    int current; /* number of the stream of launches */
    cudaEvent_t copied, timer[2];
    struct lp_cuda_program *programs;    /* cuda_program.cu: newest first */
    struct lp_cuda_adam_args *adam_args; /* cuda_adam.cu: of a step outside a run, in device memory */
    size_t adam_size;                    /* in bytes */
};

/* Opens the first GPU. NULL, or why it cannot be used (in the device, or constant). */
const char *lp_device_open(lp_cuda_device *device);

/* The first error since the device was opened, or NULL. It is never cleared: later results are undefined. */
const char *lp_device_problem(lp_cuda_device *device);
void lp_device_problem_set(lp_cuda_device *device, const char *what,
                           const char *reason = "there is not enough memory on the GPU");

/* Zeroed, 256-byte aligned; NULL when the device is out of memory. */
void *lp_device_alloc(lp_cuda_device *device, size_t size);
void lp_device_free(lp_cuda_device *device, void *data);
/* Page-locked host memory, which asynchronous copies need. */
void *lp_device_pinned(lp_cuda_device *device, size_t size);
void lp_device_pinned_free(lp_cuda_device *device, void *data);

/* Copies in stream order, from or to the host or within the device. With pinned memory the call returns at once: the copy to the host
 * is complete after the next sync. From other host memory it returns when the source has been read. */
void lp_device_copy(lp_cuda_device *device, void *to, const void *from, size_t size);
/* Device to host; complete when the call returns. */
void lp_device_download(lp_cuda_device *device, void *to, const void *from, size_t size);
void lp_device_sync(lp_cuda_device *device);

/* From pinned memory to the device, beside the work of stream 0; work submitted later waits for the copy. */
void lp_device_upload(lp_cuda_device *device, void *to, const void *from, size_t size);

/* Seconds that the work submitted between start and stop takes; stop waits for it. Start keeps the device busy for a moment, so that
 * launch latency is not measured. */
void lp_device_timer_start(lp_cuda_device *device);
double lp_device_timer_stop(lp_cuda_device *device);

/* cuda_program.cu: a program is a planned graph as the device runs it: the device memory of its inputs, its scratch memory, and the CUDA
 * graphs captured from its launches. It is built at the first run with a plan and a set of buffers, and freed with the work buffer.
 *
 * Submits the nodes of one shard, and the optimizer step where train_step is not NULL; returns before they are done. With a profiler
 * (otherwise NULL) it waits for each launch and reports its time. */
void lp_cuda_program_run(lp_cuda_device *device, const lp_run *run, const lp_train_step *train_step,
                         const lp_profiler *profiler);
/* Frees the programs that use this work buffer. */
void lp_cuda_program_drop(lp_cuda_device *device, const void *work);

/* lp_backend.count_ranks (cuda_ranking.cu). */
void lp_cuda_count_ranks(lp_cuda_device *device, const lp_rank_job *job);

/* lp_backend.measure_peak (cuda_speed.cu). */
void lp_cuda_speed(lp_cuda_device *device, lp_precision precision, size_t size, double *operations, double *bytes);

#endif
