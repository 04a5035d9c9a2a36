/* cuda_device.h: one GPU: memory, copies, streams, events and captured CUDA graphs. Kernels are launched through cuda.h.
 *
 * Work is submitted to stream 0 and runs in submission order. The other streams are used only while a CUDA graph is captured.
 * A device is not thread-safe: the backend's mutex (cuda_backend.cu) serializes all calls. With tests/emulate the device is
 * the CPU, and every call completes before it returns.
 */
#ifndef LP_CUDA_DEVICE_H
#define LP_CUDA_DEVICE_H

#include "backend/cuda/cuda_schedule.h"

/* Opens the first GPU. NULL when there is none that can be used; the reason is then written to `reason`. */
lp_cuda_device *lp_device_open(char *reason, size_t size);
/* Compute capability: 80, 90, ... */
int lp_device_capability(const lp_cuda_device *device);

/* Zeroed, 256-byte aligned; NULL when the device is out of memory. */
void *lp_device_alloc(lp_cuda_device *device, size_t size);
void lp_device_free(lp_cuda_device *device, void *data);
/* Page-locked host memory, which asynchronous copies need. */
void *lp_device_pinned(lp_cuda_device *device, size_t size);
void lp_device_pinned_free(lp_cuda_device *device, void *data);

/* Host to device, in stream order. From pinned memory the call returns at once; otherwise when the source has been read. */
void lp_device_upload(lp_cuda_device *device, void *to, const void *from, size_t size);
/* Device to pinned host memory; complete after the next sync. */
void lp_device_fetch(lp_cuda_device *device, void *to, const void *from, size_t size);
/* Device to host; complete when the call returns. */
void lp_device_download(lp_cuda_device *device, void *to, const void *from, size_t size);
/* Device to device, in stream order. */
void lp_device_copy(lp_cuda_device *device, void *to, const void *from, size_t size);
void lp_device_sync(lp_cuda_device *device);

/* Data that the host sends with every step lies in a ring of LP_DEVICE_RING entries, so that the host may run some steps ahead.
 * Each user of a ring has events of its own. */
enum { LP_DEVICE_RING = 4 };
typedef enum lp_device_user { LP_DEVICE_RUN, LP_DEVICE_ADAM, LP_DEVICE_USERS } lp_device_user;
/* Blocks the host until the entry's last release has passed on stream 0. */
void lp_device_ring_acquire(lp_cuda_device *device, lp_device_user user, int index);
/* The work submitted so far is the last that reads the entry. */
void lp_device_ring_release(lp_cuda_device *device, lp_device_user user, int index);
/* Copies from pinned memory on the copy stream, beside the work of stream 0; work submitted later waits for the copy. The entry must
 * have been acquired. */
void lp_device_upload_ahead(lp_cuda_device *device, lp_device_user user, int index, void *to, const void *from,
                            size_t size);

/* Stream capture: between begin and end, launches are captured into a CUDA graph, not executed. Begin returns false where
 * the device cannot capture; end returns the instantiated graph, or NULL when it failed. */
bool lp_device_capture_begin(lp_cuda_device *device);
void *lp_device_capture_end(lp_cuda_device *device);
void lp_device_graph_launch(lp_cuda_device *device, void *captured);
void lp_device_graph_free(lp_cuda_device *device, void *captured);

/* While capturing: selects the stream of later launches; 0 at the start. */
void lp_device_set_stream(lp_cuda_device *device, int stream);
/* While capturing: records the current end of the current stream as event `number`, or lets the current stream wait for it. */
enum { LP_DEVICE_EVENTS = 1024 };
void lp_device_record_event(lp_cuda_device *device, int number);
void lp_device_wait_event(lp_cuda_device *device, int number);
/* While capturing: the other streams begin after what stream 0 has so far; it waits for all others and becomes the current one. */
void lp_device_fork_streams(lp_cuda_device *device);
void lp_device_join_streams(lp_cuda_device *device);

/* Seconds that the work submitted between start and stop takes; stop waits for it. Start keeps the device busy for a moment, so that
 * launch latency is not measured. */
void lp_device_timer_start(lp_cuda_device *device);
double lp_device_timer_stop(lp_cuda_device *device);

/* The first error since the device was opened, or NULL. It is never cleared: later results are undefined. */
const char *lp_device_problem(const lp_cuda_device *device);
void lp_device_problem_set(lp_cuda_device *device, const char *what, const char *reason);

#endif
