/* cuda_device.cu: the device, as CUDA's runtime offers it, or as the emulation does. */
#include "backend/cuda/cuda_device.h"
#include "base/clock.h"

#include <stdio.h>

static char problem[300];

const char *lp_device_problem(void)
{
    return problem[0] ? problem : NULL;
}

void lp_device_problem_set(const char *what, const char *reason)
{
    if (!problem[0])
        snprintf(problem, sizeof problem, "%s: %s", what, reason);
}

#ifdef __CUDACC__

static cudaStream_t lanes[LP_CUDA_LANES]; /* all but the first are used in recordings alone */
static int lane;                          /* in use */
static cudaEvent_t signals[LP_DEVICE_SIGNALS + LP_CUDA_LANES];
static cudaStream_t deliveries;
static cudaEvent_t marks[LP_DEVICE_USERS][LP_DEVICE_MARKS], arrived[LP_DEVICE_USERS][LP_DEVICE_MARKS];
static cudaDeviceProp properties;
static bool open_already;

void lp_cuda_check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        lp_device_problem_set(what, cudaGetErrorString(error));
}

cudaStream_t lp_cuda_stream(const lp_cuda_run *run)
{
    (void)run;
    return lanes[lane];
}

cudaLaunchConfig_t lp_cuda_early(const lp_cuda_run *run, dim3 grid, dim3 block, size_t shared_bytes,
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
    config.numAttrs = lp_device_level() >= 90; /* older devices know no such thing, and begin later */
    return config;
}

const char *lp_device_open(void)
{
    static char reason[200];
    int count = 0;
    if (open_already)
        return NULL;
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return "there is no NVIDIA driver on this machine";
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count == 0)
        return "the driver finds no GPU";
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&properties, 0);
    if (error == cudaSuccess)
        error = cudaSetDevice(0);
    int least = 0, greatest = 0; /* priorities */
    if (error == cudaSuccess)
        error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    for (int i = 0; error == cudaSuccess && i < LP_CUDA_LANES; i++)
        error =
            cudaStreamCreateWithPriority(&lanes[i], cudaStreamNonBlocking, i < LP_CUDA_FIRST_LAZY ? greatest : least);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&deliveries, cudaStreamNonBlocking);
    for (int i = 0; i < LP_DEVICE_USERS * LP_DEVICE_MARKS; i++) {
        if (error == cudaSuccess)
            error = cudaEventCreateWithFlags(&marks[0][i], cudaEventDisableTiming);
        if (error == cudaSuccess)
            error = cudaEventCreateWithFlags(&arrived[0][i], cudaEventDisableTiming);
    }
    if (error != cudaSuccess) {
        snprintf(reason, sizeof reason, "%s", cudaGetErrorString(error));
        return reason;
    }
    open_already = true;
    return NULL;
}

int lp_device_level(void)
{
    return 10 * properties.major + properties.minor;
}

const char *lp_device_name(void)
{
    return properties.name;
}

void *lp_device_alloc(size_t size)
{
    void *data = NULL;
    if (cudaMalloc(&data, size ? size : 1) != cudaSuccess) {
        (void)cudaGetLastError(); /* the caller reports it */
        return NULL;
    }
    lp_cuda_check(cudaMemsetAsync(data, 0, size, lanes[0]), "clearing memory");
    return data;
}

void lp_device_free(void *data)
{
    if (data)
        lp_cuda_check(cudaFree(data), "freeing memory");
}

void *lp_device_pinned(size_t size)
{
    void *data = NULL;
    if (cudaMallocHost(&data, size ? size : 1) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return data;
}

void lp_device_pinned_free(void *data)
{
    if (data)
        lp_cuda_check(cudaFreeHost(data), "freeing memory");
}

void lp_device_upload(void *to, const void *from, size_t size)
{
    if (size)
        lp_cuda_check(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, lanes[0]), "copying to the GPU");
}

void lp_device_fetch(void *to, const void *from, size_t size)
{
    if (size)
        lp_cuda_check(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, lanes[0]), "copying from the GPU");
}

void lp_device_download(void *to, const void *from, size_t size)
{
    lp_device_fetch(to, from, size);
    lp_device_sync();
}

void lp_device_clear(void *data, size_t size)
{
    if (size)
        lp_cuda_check(cudaMemsetAsync(data, 0, size, lanes[lane]), "clearing memory");
}

void lp_device_sync(void)
{
    lp_cuda_check(cudaStreamSynchronize(lanes[0]), "running on the GPU");
}

void lp_device_mark(lp_device_user user, int mark)
{
    lp_cuda_check(cudaEventRecord(marks[user][mark], lanes[0]), "marking the stream");
}

void lp_device_wait(lp_device_user user, int mark)
{
    lp_cuda_check(cudaEventSynchronize(marks[user][mark]), "running on the GPU");
}

void lp_device_deliver(lp_device_user user, int mark, void *to, const void *from, size_t size)
{
    cudaEvent_t event = arrived[user][mark];
    if (size)
        lp_cuda_check(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, deliveries), "copying to the GPU");
    lp_cuda_check(cudaEventRecord(event, deliveries), "copying to the GPU");
    lp_cuda_check(cudaStreamWaitEvent(lanes[0], event, 0), "copying to the GPU");
}

void lp_device_move(void *to, const void *from, size_t size)
{
    if (size)
        lp_cuda_check(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, lanes[0]), "copying on the GPU");
}

void lp_device_use(int number)
{
    lane = number;
}

static cudaEvent_t *signal_of(int number)
{
    if (!signals[number])
        lp_cuda_check(cudaEventCreateWithFlags(&signals[number], cudaEventDisableTiming), "recording a step");
    return &signals[number];
}

void lp_device_signal(int number)
{
    lp_cuda_check(cudaEventRecord(*signal_of(number), lanes[lane]), "recording a step");
}

void lp_device_wait_for(int number)
{
    lp_cuda_check(cudaStreamWaitEvent(lanes[lane], *signal_of(number), 0), "recording a step");
}

/* The other lanes begin after what the first has done so far. */
bool lp_device_record_begin(void)
{
    if (cudaStreamBeginCapture(lanes[0], cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return false;
    lp_device_use(0);
    lp_device_signal(LP_DEVICE_SIGNALS);
    for (int i = 1; i < LP_CUDA_LANES; i++) {
        lp_device_use(i);
        lp_device_wait_for(LP_DEVICE_SIGNALS);
    }
    lp_device_use(0);
    return true;
}

void lp_device_join(void)
{
    for (int i = 1; i < LP_CUDA_LANES; i++) {
        lp_device_use(i);
        lp_device_signal(LP_DEVICE_SIGNALS + i);
        lp_device_use(0);
        lp_device_wait_for(LP_DEVICE_SIGNALS + i);
    }
}

void *lp_device_record_end(void)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t recording = NULL;
    lp_device_join();
    cudaError_t error = cudaStreamEndCapture(lanes[0], &graph);
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&recording, graph, 0);
    lp_cuda_check(error, "recording a step");
    if (graph)
        lp_cuda_check(cudaGraphDestroy(graph), "recording a step");
    return recording;
}

void lp_device_replay(void *recording)
{
    lp_cuda_check(cudaGraphLaunch((cudaGraphExec_t)recording, lanes[0]), "replaying a step");
}

void lp_device_record_free(void *recording)
{
    if (recording)
        lp_cuda_check(cudaGraphExecDestroy((cudaGraphExec_t)recording), "freeing a recording");
}

/* Some 20 microseconds of nothing. */
__global__ void idle_kernel(long long cycles)
{
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

static cudaEvent_t watch[2];

void lp_device_watch_start(void)
{
    for (int i = 0; i < 2; i++)
        if (!watch[i])
            lp_cuda_check(cudaEventCreate(&watch[i]), "making a clock");
    idle_kernel<<<1, 1, 0, lanes[0]>>>(40000);
    lp_cuda_check(cudaEventRecord(watch[0], lanes[0]), "reading the clock");
}

double lp_device_watch_stop(void)
{
    float milliseconds = 0;
    lp_cuda_check(cudaEventRecord(watch[1], lanes[0]), "reading the clock");
    lp_cuda_check(cudaEventSynchronize(watch[1]), "running on the GPU");
    lp_cuda_check(cudaEventElapsedTime(&milliseconds, watch[0], watch[1]), "reading the clock");
    return 1e-3 * (double)milliseconds;
}

#else

static double watch_start;

void lp_device_watch_start(void)
{
    watch_start = lp_clock_seconds();
}

double lp_device_watch_stop(void)
{
    return lp_clock_seconds() - watch_start;
}

const char *lp_device_open(void)
{
    return NULL;
}

int lp_device_level(void)
{
    return 90;
}

const char *lp_device_name(void)
{
    return "emulated";
}

void *lp_device_alloc(size_t size)
{
    return lp_alloc(size, 1);
}

void lp_device_free(void *data)
{
    lp_free(data);
}

void *lp_device_pinned(size_t size)
{
    return lp_alloc(size, 1);
}

void lp_device_pinned_free(void *data)
{
    lp_free(data);
}

void lp_device_upload(void *to, const void *from, size_t size)
{
    if (size)
        memcpy(to, from, size);
}

void lp_device_fetch(void *to, const void *from, size_t size)
{
    if (size)
        memcpy(to, from, size);
}

void lp_device_download(void *to, const void *from, size_t size)
{
    lp_device_fetch(to, from, size);
}

void lp_device_clear(void *data, size_t size)
{
    if (size)
        memset(data, 0, size);
}

void lp_device_sync(void)
{
}

void lp_device_mark(lp_device_user user, int mark)
{
    (void)user, (void)mark;
}

void lp_device_wait(lp_device_user user, int mark)
{
    (void)user, (void)mark;
}

void lp_device_deliver(lp_device_user user, int mark, void *to, const void *from, size_t size)
{
    (void)user, (void)mark;
    lp_device_upload(to, from, size);
}

void lp_device_move(void *to, const void *from, size_t size)
{
    lp_device_upload(to, from, size);
}

void lp_device_use(int lane)
{
    (void)lane;
}

void lp_device_signal(int number)
{
    (void)number;
}

void lp_device_wait_for(int number)
{
    (void)number;
}

void lp_device_join(void)
{
}

bool lp_device_record_begin(void)
{
    return false;
}

void *lp_device_record_end(void)
{
    return NULL;
}

void lp_device_replay(void *recording)
{
    (void)recording;
}

void lp_device_record_free(void *recording)
{
    (void)recording;
}

#endif
