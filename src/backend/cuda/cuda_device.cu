/* cuda_device.cu: the device through the CUDA runtime, which tests/emulate replaces by one on the CPU. */
#include "backend/cuda/cuda_device.h"

#include <stdio.h>

const char *lp_device_problem(lp_cuda_device *device)
{
    return device->first_error[0] ? device->first_error : NULL;
}

void lp_device_problem_set(lp_cuda_device *device, const char *what, const char *reason)
{
    if (!device->first_error[0])
        snprintf(device->first_error, sizeof device->first_error, "%s: %s", what, reason);
}

void lp_cuda_check(lp_cuda_device *device, cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        lp_device_problem_set(device, what, cudaGetErrorString(error));
}

cudaLaunchConfig_t lp_cuda_launch_config(const lp_cuda_run *run, const char *name, bool pdl, const void *kernel,
                                         dim3 grid, dim3 block, size_t shared_bytes)
{
    static cudaLaunchAttribute attribute; /* the same for all launches */
    lp_cuda_device *device = run->device;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = device->streams[device->current];
    config.attrs = &attribute;
    config.numAttrs = pdl && device->capability >= 90; /* without programmatic dependent launch: a plain launch */
    if (shared_bytes > 48 * 1024) {
        lp_cuda_check(
            device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes), name);
        lp_cuda_check(device,
                      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                           cudaSharedmemCarveoutMaxShared),
                      name);
    }
    return config;
}

/* ---- opening a device ---------------------------------------------------------------------------------------- */

const char *lp_device_open(lp_cuda_device *device)
{
    int driver = 0, count = 0, least = 0, greatest = 0;
    cudaDeviceProp properties = {};
    const char *what = "opening the GPU";
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return "there is no NVIDIA driver on this machine";
    if (cudaGetDeviceCount(&count) == cudaSuccess && count == 0)
        return "the driver finds no GPU";
    lp_cuda_check(device, cudaGetDeviceProperties(&properties, 0), what);
    lp_cuda_check(device, cudaSetDevice(0), what);
    lp_cuda_check(device, cudaDeviceGetStreamPriorityRange(&least, &greatest), what);
    for (int i = 0; i < LP_CUDA_STREAMS; i++)
        lp_cuda_check(device,
                      cudaStreamCreateWithPriority(&device->streams[i], cudaStreamNonBlocking,
                                                   i < LP_CUDA_FIRST_LOW_PRIORITY ? greatest : least),
                      what);
    lp_cuda_check(device, cudaStreamCreateWithFlags(&device->copy_stream, cudaStreamNonBlocking), what);
    lp_cuda_check(device, cudaEventCreateWithFlags(&device->copied, cudaEventDisableTiming), what);
    for (int i = 0; i < 2; i++)
        lp_cuda_check(device, cudaEventCreate(&device->timer[i]), what);
    device->capability = 10 * properties.major + properties.minor;
    return lp_device_problem(device);
}

/* ---- memory and copies --------------------------------------------------------------------------------------- */

void *lp_device_alloc(lp_cuda_device *device, size_t size)
{
    void *data = NULL;
    if (cudaMalloc(&data, size ? size : 1) != cudaSuccess) {
        (void)cudaGetLastError(); /* the caller reports it */
        return NULL;
    }
    lp_cuda_check(device, cudaMemsetAsync(data, 0, size, device->streams[0]), "clearing memory");
    return data;
}

void lp_device_free(lp_cuda_device *device, void *data)
{
    lp_cuda_check(device, cudaFree(data), "freeing memory");
}

void *lp_device_pinned(lp_cuda_device *, size_t size)
{
    void *data = NULL;
    if (cudaMallocHost(&data, size ? size : 1) == cudaSuccess)
        return data;
    (void)cudaGetLastError();
    return NULL;
}

void lp_device_pinned_free(lp_cuda_device *device, void *data)
{
    lp_cuda_check(device, cudaFreeHost(data), "freeing memory");
}

static void copy_on(lp_cuda_device *device, cudaStream_t stream, void *to, const void *from, size_t size)
{
    if (size)
        lp_cuda_check(device, cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream), "copying to or from the GPU");
}

void lp_device_copy(lp_cuda_device *device, void *to, const void *from, size_t size)
{
    copy_on(device, device->streams[0], to, from, size);
}

void lp_device_download(lp_cuda_device *device, void *to, const void *from, size_t size)
{
    lp_device_copy(device, to, from, size);
    lp_device_sync(device);
}

void lp_device_sync(lp_cuda_device *device)
{
    lp_cuda_check(device, cudaStreamSynchronize(device->streams[0]), "running on the GPU");
}

/* ---- rings --------------------------------------------------------------------------------------------------- */

bool lp_ring_resize(lp_cuda_device *device, lp_cuda_ring *ring, size_t size)
{
    if (size <= ring->size)
        return true;
    lp_ring_free(device, ring);
    bool good = true;
    for (int i = 0; good && i < LP_CUDA_RING; i++)
        good = cudaEventCreateWithFlags(&ring->released[i], cudaEventDisableTiming) == cudaSuccess;
    ring->staging = (char *)lp_device_pinned(device, LP_CUDA_RING * size);
    ring->uploaded = (char *)lp_device_alloc(device, LP_CUDA_RING * size);
    lp_device_sync(device); /* the copy stream does not wait for the zeroing of new memory */
    good = good && ring->staging && ring->uploaded;
    ring->size = good ? size : 0;
    return good;
}

void lp_ring_free(lp_cuda_device *device, lp_cuda_ring *ring)
{
    lp_device_sync(device);
    lp_device_pinned_free(device, ring->staging);
    lp_device_free(device, ring->uploaded);
    for (int i = 0; i < LP_CUDA_RING; i++)
        if (ring->released[i])
            lp_cuda_check(device, cudaEventDestroy(ring->released[i]), "freeing an event");
    *ring = lp_cuda_ring();
}

int lp_ring_acquire(lp_cuda_device *device, lp_cuda_ring *ring)
{
    int index = (int)(ring->uses++ % LP_CUDA_RING);
    lp_cuda_check(device, cudaEventSynchronize(ring->released[index]), "running on the GPU");
    return index;
}

void lp_ring_send(lp_cuda_device *device, lp_cuda_ring *ring, int index)
{
    size_t offset = (size_t)index * ring->size;
    copy_on(device, device->copy_stream, ring->uploaded + offset, ring->staging + offset, ring->size);
    lp_cuda_check(device, cudaEventRecord(device->copied, device->copy_stream), "recording an event");
    lp_cuda_check(device, cudaStreamWaitEvent(device->streams[0], device->copied, 0), "waiting for a copy");
}

void lp_ring_release(lp_cuda_device *device, lp_cuda_ring *ring, int index)
{
    lp_cuda_check(device, cudaEventRecord(ring->released[index], device->streams[0]), "recording an event");
}

/* ---- captured graphs ----------------------------------------------------------------------------------------- */

bool lp_device_capture_begin(lp_cuda_device *device)
{
    return cudaStreamBeginCapture(device->streams[0], cudaStreamCaptureModeThreadLocal) == cudaSuccess;
}

cudaGraphExec_t lp_device_capture_end(lp_cuda_device *device)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t captured = NULL;
    cudaError_t error = cudaStreamEndCapture(device->streams[0], &graph);
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&captured, graph, cudaGraphInstantiateFlagUseNodePriority);
    lp_cuda_check(device, error, "capturing a step");
    if (graph)
        lp_cuda_check(device, cudaGraphDestroy(graph), "capturing a step");
    return captured;
}

void lp_device_record_event(lp_cuda_device *device, cudaEvent_t *event)
{
    if (!*event)
        lp_cuda_check(device, cudaEventCreateWithFlags(event, cudaEventDisableTiming), "capturing a step");
    lp_cuda_check(device, cudaEventRecord(*event, device->streams[device->current]), "capturing a step");
}

void lp_device_wait_event(lp_cuda_device *device, cudaEvent_t event)
{
    lp_cuda_check(device, cudaStreamWaitEvent(device->streams[device->current], event, 0), "capturing a step");
}

/* ---- the timer ----------------------------------------------------------------------------------------------- */

__global__ void idle_kernel(long long cycles)
{
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

void lp_device_timer_start(lp_cuda_device *device)
{
    lp_cuda_run run = {};
    run.device = device;
    LP_LAUNCH(&run, idle_kernel, 1, 1, 0, 40000); /* about 20 microseconds on a clock of 2 GHz */
    lp_cuda_check(device, cudaEventRecord(device->timer[0], device->streams[0]), "reading the timer");
}

double lp_device_timer_stop(lp_cuda_device *device)
{
    float milliseconds = 0;
    lp_cuda_check(device, cudaEventRecord(device->timer[1], device->streams[0]), "reading the timer");
    lp_cuda_check(device, cudaEventSynchronize(device->timer[1]), "running on the GPU");
    lp_cuda_check(device, cudaEventElapsedTime(&milliseconds, device->timer[0], device->timer[1]), "reading the timer");
    return 1e-3 * (double)milliseconds;
}
