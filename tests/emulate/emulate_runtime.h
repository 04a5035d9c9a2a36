/* emulate_runtime.h: the CUDA runtime on a CPU. Device memory is host memory, and every call completes before it returns, so
 * streams and events have nothing to do. Stream capture always fails. Only what cuda_device.cu calls is here. */
#ifndef LP_EMULATE_RUNTIME_H
#define LP_EMULATE_RUNTIME_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation, cudaErrorNotSupported };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking, cudaEventDisableTiming, cudaStreamCaptureModeThreadLocal };
typedef struct lp_emulate_stream *cudaStream_t;
typedef struct lp_emulate_graph *cudaGraph_t, *cudaGraphExec_t;
typedef double *cudaEvent_t; /* seconds when it was recorded */

struct cudaDeviceProp {
    int major, minor;
};

static inline cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}
static inline const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "not supported";
}

static inline cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    *properties = {9, 0};
    return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}

/* Filled with NaN, unlike memory that lp_device_alloc has cleared. */
static inline cudaError_t cudaMalloc(void **data, size_t size)
{
    size_t aligned = (size + 255) / 256 * 256;
    *data = aligned_alloc(256, aligned);
    if (!*data)
        return cudaErrorMemoryAllocation;
    memset(*data, 0xFF, aligned);
    return cudaSuccess;
}
static inline cudaError_t cudaFree(void *data)
{
    free(data);
    return cudaSuccess;
}
static inline cudaError_t cudaMallocHost(void **data, size_t size)
{
    return cudaMalloc(data, size);
}
static inline cudaError_t cudaFreeHost(void *data)
{
    return cudaFree(data);
}
static inline cudaError_t cudaMemsetAsync(void *data, int byte, size_t size, cudaStream_t)
{
    memset(data, byte, size);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t)
{
    memcpy(to, from, size);
    return cudaSuccess;
}

static inline cudaError_t cudaDeviceGetStreamPriorityRange(int *, int *)
{
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *, unsigned, int)
{
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, unsigned)
{
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return cudaSuccess;
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = (double *)calloc(1, sizeof **event);
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *, unsigned)
{
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (event)
        *event = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    *milliseconds = (float)(1e3 * (*to - *from));
    return cudaSuccess;
}

static inline cudaError_t cudaStreamBeginCapture(cudaStream_t, int)
{
    return cudaErrorNotSupported;
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *)
{
    return cudaErrorNotSupported;
}
enum { cudaGraphInstantiateFlagUseNodePriority = 8 };

static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *, cudaGraph_t, unsigned)
{
    return cudaErrorNotSupported;
}
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t)
{
    return cudaErrorNotSupported;
}
static inline cudaError_t cudaGraphDestroy(cudaGraph_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t)
{
    return cudaSuccess;
}

#endif
