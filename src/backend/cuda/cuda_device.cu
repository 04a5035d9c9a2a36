/* cuda_device.cu: the device through the CUDA runtime, which tests/emulate replaces by one on the CPU. */
#include "backend/cuda/cuda_device.h"

#include <stdio.h>

struct lp_cuda_device {
    char first_error[300];                 /* empty: none */
    cudaStream_t streams[LP_CUDA_STREAMS]; /* all but the first are used only during capture */
    cudaStream_t copy_stream;
    int current;                                            /* stream of launches */
    cudaEvent_t events[LP_DEVICE_EVENTS + LP_CUDA_STREAMS]; /* created on first use */
    cudaEvent_t released[LP_DEVICE_USERS][LP_DEVICE_RING], uploaded[LP_DEVICE_USERS][LP_DEVICE_RING];
    cudaEvent_t timer[2];
    int capability;
};

const char *lp_device_problem(const lp_cuda_device *device)
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

cudaStream_t lp_cuda_stream(const lp_cuda_run *run)
{
    return run->device->streams[run->device->current];
}

#ifdef __CUDACC__
cudaLaunchConfig_t lp_cuda_pdl_config(const lp_cuda_run *run, dim3 grid, dim3 block, size_t shared_bytes,
                                      cudaLaunchAttribute *attribute)
{
    cudaLaunchConfig_t config = {};
    *attribute = {};
    attribute->id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute->val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = lp_cuda_stream(run);
    config.attrs = attribute;
    config.numAttrs = run->device->capability >= 90; /* without programmatic dependent launch: a plain launch */
    return config;
}
#endif

static cudaError_t create_streams(lp_cuda_device *device)
{
    int least = 0, greatest = 0; /* priorities */
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    for (int i = 0; error == cudaSuccess && i < LP_CUDA_STREAMS; i++)
        error = cudaStreamCreateWithPriority(&device->streams[i], cudaStreamNonBlocking,
                                             i < LP_CUDA_FIRST_LOW_PRIORITY ? greatest : least);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&device->copy_stream, cudaStreamNonBlocking);
    for (int i = 0; error == cudaSuccess && i < LP_DEVICE_USERS * LP_DEVICE_RING; i++) {
        error = cudaEventCreateWithFlags(&device->released[0][i], cudaEventDisableTiming);
        if (error == cudaSuccess)
            error = cudaEventCreateWithFlags(&device->uploaded[0][i], cudaEventDisableTiming);
    }
    return error;
}

/* NULL, or why the GPU cannot be used. */
static const char *open_first(lp_cuda_device *device)
{
    int driver = 0, count = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return "there is no NVIDIA driver on this machine";
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count == 0)
        return "the driver finds no GPU";
    cudaDeviceProp properties = {};
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&properties, 0);
    if (error == cudaSuccess)
        error = cudaSetDevice(0);
    if (error == cudaSuccess)
        error = create_streams(device);
    device->capability = 10 * properties.major + properties.minor;
    return error == cudaSuccess ? NULL : cudaGetErrorString(error);
}

int lp_device_capability(const lp_cuda_device *device)
{
    return device->capability;
}

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
    if (data)
        lp_cuda_check(device, cudaFree(data), "freeing memory");
}

void *lp_device_pinned(lp_cuda_device *, size_t size)
{
    void *data = NULL;
    if (cudaMallocHost(&data, size ? size : 1) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return data;
}

void lp_device_pinned_free(lp_cuda_device *device, void *data)
{
    if (data)
        lp_cuda_check(device, cudaFreeHost(data), "freeing memory");
}

void lp_device_upload(lp_cuda_device *device, void *to, const void *from, size_t size)
{
    if (size)
        lp_cuda_check(device, cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, device->streams[0]),
                      "copying to the GPU");
}

void lp_device_fetch(lp_cuda_device *device, void *to, const void *from, size_t size)
{
    if (size)
        lp_cuda_check(device, cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, device->streams[0]),
                      "copying from the GPU");
}

void lp_device_download(lp_cuda_device *device, void *to, const void *from, size_t size)
{
    lp_device_fetch(device, to, from, size);
    lp_device_sync(device);
}

void lp_device_sync(lp_cuda_device *device)
{
    lp_cuda_check(device, cudaStreamSynchronize(device->streams[0]), "running on the GPU");
}

void lp_device_ring_release(lp_cuda_device *device, lp_device_user user, int index)
{
    lp_cuda_check(device, cudaEventRecord(device->released[user][index], device->streams[0]), "recording an event");
}

void lp_device_ring_acquire(lp_cuda_device *device, lp_device_user user, int index)
{
    lp_cuda_check(device, cudaEventSynchronize(device->released[user][index]), "running on the GPU");
}

void lp_device_upload_ahead(lp_cuda_device *device, lp_device_user user, int index, void *to, const void *from,
                            size_t size)
{
    cudaEvent_t event = device->uploaded[user][index];
    if (size)
        lp_cuda_check(device, cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, device->copy_stream),
                      "copying to the GPU");
    lp_cuda_check(device, cudaEventRecord(event, device->copy_stream), "copying to the GPU");
    lp_cuda_check(device, cudaStreamWaitEvent(device->streams[0], event, 0), "copying to the GPU");
}

void lp_device_copy(lp_cuda_device *device, void *to, const void *from, size_t size)
{
    if (size)
        lp_cuda_check(device, cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, device->streams[0]),
                      "copying on the GPU");
}

void lp_device_set_stream(lp_cuda_device *device, int number)
{
    device->current = number;
}

static cudaEvent_t event_of(lp_cuda_device *device, int number)
{
    if (!device->events[number])
        lp_cuda_check(device, cudaEventCreateWithFlags(&device->events[number], cudaEventDisableTiming),
                      "capturing a step");
    return device->events[number];
}

void lp_device_record_event(lp_cuda_device *device, int number)
{
    lp_cuda_check(device, cudaEventRecord(event_of(device, number), device->streams[device->current]),
                  "capturing a step");
}

void lp_device_wait_event(lp_cuda_device *device, int number)
{
    lp_cuda_check(device, cudaStreamWaitEvent(device->streams[device->current], event_of(device, number), 0),
                  "capturing a step");
}

/* Forks the other streams from the first, which the capture requires. */
bool lp_device_capture_begin(lp_cuda_device *device)
{
    if (cudaStreamBeginCapture(device->streams[0], cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return false;
    lp_device_set_stream(device, 0);
    return true;
}

void lp_device_fork_streams(lp_cuda_device *device)
{
    lp_device_record_event(device, LP_DEVICE_EVENTS);
    for (int i = 1; i < LP_CUDA_STREAMS; i++) {
        lp_device_set_stream(device, i);
        lp_device_wait_event(device, LP_DEVICE_EVENTS);
    }
    lp_device_set_stream(device, 0);
}

void lp_device_join_streams(lp_cuda_device *device)
{
    for (int i = 1; i < LP_CUDA_STREAMS; i++) {
        lp_device_set_stream(device, i);
        lp_device_record_event(device, LP_DEVICE_EVENTS + i);
        lp_device_set_stream(device, 0);
        lp_device_wait_event(device, LP_DEVICE_EVENTS + i);
    }
}

void *lp_device_capture_end(lp_cuda_device *device)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t captured = NULL;
    lp_device_join_streams(device);
    cudaError_t error = cudaStreamEndCapture(device->streams[0], &graph);
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&captured, graph, cudaGraphInstantiateFlagUseNodePriority);
    lp_cuda_check(device, error, "capturing a step");
    if (graph)
        lp_cuda_check(device, cudaGraphDestroy(graph), "capturing a step");
    return captured;
}

void lp_device_graph_launch(lp_cuda_device *device, void *captured)
{
    lp_cuda_check(device, cudaGraphLaunch((cudaGraphExec_t)captured, device->streams[0]), "replaying a step");
}

void lp_device_graph_free(lp_cuda_device *device, void *captured)
{
    if (captured)
        lp_cuda_check(device, cudaGraphExecDestroy((cudaGraphExec_t)captured), "freeing a captured step");
}

/* About 20 microseconds on a clock of 2 GHz. */
__global__ void idle_kernel(long long cycles)
{
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

void lp_device_timer_start(lp_cuda_device *device)
{
    for (int i = 0; i < 2; i++)
        if (!device->timer[i])
            lp_cuda_check(device, cudaEventCreate(&device->timer[i]), "creating a timer");
    lp_cuda_run run = {};
    run.device = device;
    LP_LAUNCH(&run, idle_kernel, 1, 1, 0, 40000);
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

lp_cuda_device *lp_device_open(char *reason, size_t size)
{
    lp_cuda_device *device = (lp_cuda_device *)lp_alloc(1, sizeof *device);
    const char *why = device ? open_first(device) : "there is not enough memory";
    if (!why)
        return device;
    snprintf(reason, size, "%s", why);
    lp_free(device);
    return NULL;
}
