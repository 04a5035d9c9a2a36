/* cuda_device.h: one GPU: memory, copies, streams, events and captured CUDA graphs. Kernels are launched through cuda.h.
 *
 * Work is submitted to stream 0 and runs in submission order. The other streams are used only while a CUDA graph is captured.
 * A device is not thread-safe: the backend's mutex (cuda_backend.cu) serializes all calls. tests/emulate replaces the CUDA runtime
 * by one on the CPU, where every call completes before it returns.
 */
#ifndef LP_CUDA_DEVICE_H
#define LP_CUDA_DEVICE_H

#include "backend/cuda/cuda_schedule.h"

/* Data that the host sends with every step. It lies in a ring of entries, so that the host may run some steps ahead. */
enum { LP_CUDA_RING = 4 };
typedef struct lp_cuda_ring {
    size_t size;              /* bytes of an entry; 0: there is no memory */
    char *staging, *uploaded; /* [LP_CUDA_RING x size]: pinned host memory, and device memory */
    cudaEvent_t released[LP_CUDA_RING];
    uint64_t uses;
} lp_cuda_ring;

struct lp_cuda_device {
    char first_error[300]; /* empty: none */
    int capability;        /* compute capability: 80, 90, ... */
    cudaStream_t streams[LP_CUDA_STREAMS], copy_stream;
    int current; /* number of the stream of launches */
    cudaEvent_t copied, timer[2];
    struct lp_cuda_program *programs; /* cuda_program.cu: newest first */
    lp_cuda_ring adam;                /* cuda_adam.cu: of steps outside a run */
};

/* Opens the first GPU. NULL, or why it cannot be used (in the device, or constant). */
const char *lp_device_open(lp_cuda_device *device);

static inline int lp_device_capability(const lp_cuda_device *device)
{
    return device->capability;
}

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

/* A ring with larger entries than before, which are free. False when out of memory. */
bool lp_ring_resize(lp_cuda_device *device, lp_cuda_ring *ring, size_t size);
void lp_ring_free(lp_cuda_device *device, lp_cuda_ring *ring);
/* The next entry, whose staging memory the caller fills; blocks the host until the entry's last release has passed on stream 0. */
int lp_ring_acquire(lp_cuda_device *device, lp_cuda_ring *ring);
/* Copies the entry beside the work of stream 0; work submitted later waits for the copy. */
void lp_ring_send(lp_cuda_device *device, lp_cuda_ring *ring, int index);
/* The work submitted so far is the last that reads the entry. */
void lp_ring_release(lp_cuda_device *device, lp_cuda_ring *ring, int index);

/* Stream capture: between begin and end, launches are captured into a CUDA graph, not executed. Begin returns false where
 * the device cannot capture; end returns the instantiated graph, or NULL when it failed. */
bool lp_device_capture_begin(lp_cuda_device *device);
cudaGraphExec_t lp_device_capture_end(lp_cuda_device *device);
/* While capturing: the event, which is created on its first use, is the current end of the current stream. */
void lp_device_record_event(lp_cuda_device *device, cudaEvent_t *event);
/* While capturing: the current stream waits for the event. */
void lp_device_wait_event(lp_cuda_device *device, cudaEvent_t event);

/* Seconds that the work submitted between start and stop takes; stop waits for it. Start keeps the device busy for a moment, so that
 * launch latency is not measured. */
void lp_device_timer_start(lp_cuda_device *device);
double lp_device_timer_stop(lp_cuda_device *device);

/* lp_backend.measure_peak (cuda_speed.cu). */
void lp_cuda_speed(lp_cuda_device *device, lp_precision precision, size_t size, double *operations, double *bytes);

#endif
