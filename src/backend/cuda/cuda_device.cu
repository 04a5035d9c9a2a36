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
    config.numAttrs = pdl && device->dependent;
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
    snprintf(device->name, sizeof device->name, "%s", properties.name);
    device->multiprocessors = properties.multiProcessorCount;
    device->capability = 10 * properties.major + properties.minor;
    device->dependent = device->capability >= 90 && LP_CUDA_CODE >= 90;
    device->shared = (int)properties.sharedMemPerBlockOptin;
    device->half = (int)(properties.sharedMemPerMultiprocessor / 2 - properties.reservedSharedMemPerBlock);
    if (device->capability < 80)
        lp_device_problem_set(device, what, "its compute capability is below 8.0");
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

void lp_device_copy(lp_cuda_device *device, void *to, const void *from, size_t size)
{
    if (size)
        lp_cuda_check(device, cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, device->streams[0]),
                      "copying to or from the GPU");
}

void lp_device_upload(lp_cuda_device *device, void *to, const void *from, size_t size)
{
    const char *what = "copying to the GPU";
    lp_cuda_check(device, cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, device->copy_stream), what);
    lp_cuda_check(device, cudaEventRecord(device->copied, device->copy_stream), what);
    lp_cuda_check(device, cudaStreamWaitEvent(device->streams[0], device->copied, 0), what);
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
