/* emulate_runtime.h: the CUDA runtime on a CPU. Device memory is host memory, and every call completes before it returns. Only what
 * the backend calls is here.
 *
 * Stream capture works: a captured graph has the launches and waits of each stream. A replay runs them in an order as far from that of the
 * capture as the waits allow, so that a missing dependency gives wrong results. */
#ifndef LP_EMULATE_RUNTIME_H
#define LP_EMULATE_RUNTIME_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <functional>
#include <vector>

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation, cudaErrorInvalidValue, cudaErrorNotSupported };
enum { LP_EMULATE_SHARED = 227 * 1024 }; /* bytes of shared memory of a block, at most, on any device */
enum cudaMemcpyKind { cudaMemcpyDefault };
enum { cudaStreamNonBlocking, cudaEventDisableTiming, cudaStreamCaptureModeThreadLocal };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout };
enum { cudaSharedmemCarveoutMaxShared = 100, cudaGraphInstantiateFlagUseNodePriority = 8 };
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization };

struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        int programmaticStreamSerializationAllowed;
    } val;
};

struct cudaDeviceProp {
    char name[256];
    int major, minor, multiProcessorCount;
    size_t sharedMemPerBlockOptin, sharedMemPerMultiprocessor, reservedSharedMemPerBlock;
};

/* The environment variable LAPSE_EMULATE has the compute capability of the emulated device (default: 90). */
static inline cudaDeviceProp lp_emulate_device(void)
{
    static const struct {
        int capability;
        size_t block, multiprocessor; /* KiB of shared memory */
    } devices[] = {{90, 227, 228}, {80, 163, 164}, {86, 99, 100}, {89, 99, 100}, {100, 227, 228}, {120, 99, 100}};
    const char *text = getenv("LAPSE_EMULATE");
    size_t i = sizeof devices / sizeof *devices - 1;
    while (i > 0 && devices[i].capability != (text ? atoi(text) : 90))
        i--;
    int capability = devices[i].capability;
    return {"emulated GPU", capability / 10, capability % 10, 1, devices[i].block << 10, devices[i].multiprocessor << 10, 1 << 10};
}

/* A launch; without a function, a wait for the first `position` items of a stream. */
struct lp_emulate_item {
    std::function<void()> launch;
    size_t stream, position;
};

/* By stream. */
struct lp_emulate_graph {
    std::vector<std::vector<lp_emulate_item>> streams;
};
typedef lp_emulate_graph *cudaGraph_t, *cudaGraphExec_t;

struct lp_emulate_stream {
    size_t number;
    lp_emulate_graph *captured; /* NULL: launches are executed */
};
typedef lp_emulate_stream *cudaStream_t;

/* Recorded at this time; during a capture, after the first `position` items of a stream. */
struct lp_emulate_event {
    double seconds;
    lp_emulate_graph *captured;
    size_t stream, position;
};
typedef lp_emulate_event *cudaEvent_t;

inline std::vector<cudaStream_t> lp_emulate_streams;
inline lp_emulate_graph *lp_emulate_captured; /* by the capture in progress; NULL: there is none */

static inline cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}
static inline const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory"
           : error == cudaErrorInvalidValue   ? "invalid argument"
                                              : "not supported";
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
    *properties = lp_emulate_device();
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
    *data = lp_emulate_captured ? NULL : aligned_alloc(256, aligned); /* CUDA does not allow it during a capture */
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
static inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int)
{
    *stream = new lp_emulate_stream{lp_emulate_streams.size(), NULL};
    lp_emulate_streams.push_back(*stream);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return lp_emulate_captured ? cudaErrorNotSupported : cudaSuccess;
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = (cudaEvent_t)calloc(1, sizeof **event);
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    return cudaEventCreate(event);
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    size_t position = stream->captured ? stream->captured->streams[stream->number].size() : 0;
    *event = {(double)now.tv_sec + 1e-9 * (double)now.tv_nsec, stream->captured, stream->number, position};
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return lp_emulate_captured ? cudaErrorNotSupported : cudaSuccess;
}
static inline cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    *milliseconds = (float)(1e3 * (to->seconds - from->seconds));
    return cudaSuccess;
}

/* ---- launches and captured graphs ---------------------------------------------------------------------------- */

static inline cudaError_t cudaFuncSetAttribute(const void *, int attribute, int value)
{
    bool bytes = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize;
    return bytes && (size_t)value > lp_emulate_device().sharedMemPerBlockOptin ? cudaErrorInvalidValue : cudaSuccess;
}
/* Executes or captures a launch. */
static inline void lp_emulate_submit(cudaStream_t stream, const std::function<void()> &launch)
{
    if (stream && stream->captured)
        stream->captured->streams[stream->number].push_back({launch, 0, 0});
    else
        launch();
}
/* A stream joins the capture when it waits for a captured event. */
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    if (event->captured != lp_emulate_captured)
        return cudaErrorNotSupported;
    stream->captured = event->captured;
    if (stream->captured)
        stream->captured->streams[stream->number].push_back({nullptr, event->stream, event->position});
    return cudaSuccess;
}
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int)
{
    if (lp_emulate_captured)
        return cudaErrorNotSupported;
    stream->captured = lp_emulate_captured = new lp_emulate_graph;
    lp_emulate_captured->streams.resize(lp_emulate_streams.size());
    return cudaSuccess;
}
/* Fails where no stream waits for all that another one has captured. */
static inline cudaError_t cudaStreamEndCapture(cudaStream_t origin, cudaGraph_t *graph)
{
    bool joined = true;
    *graph = origin->captured;
    for (cudaStream_t stream : lp_emulate_streams) {
        size_t all = (*graph)->streams[stream->number].size();
        bool found = stream == origin || all == 0;
        for (const std::vector<lp_emulate_item> &items : (*graph)->streams)
            for (const lp_emulate_item &item : items)
                found = found || (!item.launch && item.stream == stream->number && item.position == all);
        joined = joined && found;
        stream->captured = NULL;
    }
    lp_emulate_captured = NULL;
    return joined ? cudaSuccess : cudaErrorNotSupported;
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *captured, cudaGraph_t graph, unsigned)
{
    *captured = new lp_emulate_graph(*graph);
    return cudaSuccess;
}
static inline cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t captured)
{
    delete captured;
    return cudaSuccess;
}
/* Advances one stream after the other as far as its waits allow, the last one first. */
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t captured, cudaStream_t)
{
    std::vector<size_t> done(captured->streams.size());
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t s = done.size(); s-- > 0;) {
            const std::vector<lp_emulate_item> &items = captured->streams[s];
            for (; done[s] < items.size(); done[s]++, moved = true) {
                const lp_emulate_item &item = items[done[s]];
                if (!item.launch && done[item.stream] < item.position)
                    break;
                if (item.launch)
                    item.launch();
            }
        }
    }
    for (size_t s = 0; s < done.size(); s++)
        if (done[s] < captured->streams[s].size())
            return cudaErrorNotSupported;
    return cudaSuccess;
}

#endif
