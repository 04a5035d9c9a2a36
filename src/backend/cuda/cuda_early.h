/* cuda_early.h: launches that begin before the kernel ahead of them has ended.
 *
 * A step is a chain of some hundred kernels of a few microseconds, and from the end of one to the first instruction of the next
 * the device needs about one more. A kernel launched early is on the multiprocessors by then. It must begin with lp_begin, which lets the
 * one after it come, and then waits until all that came before has ended and can be seen. What comes before that line in a kernel may
 * read nothing from memory.
 */
#ifndef LP_CUDA_EARLY_H
#define LP_CUDA_EARLY_H

#include "backend/cuda/cuda.h"

#include <stdlib.h>

#ifdef __CUDACC__

__device__ static inline void lp_begin(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Only where LAPSE_CUDA_EARLY is 1. Asked for while a step is recorded, not when it is replayed. */
static inline bool lp_cuda_early(void)
{
    const char *said = getenv("LAPSE_CUDA_EARLY");
    return said && strcmp(said, "1") == 0;
}

/* LP_LAUNCH for such kernels. */
#define LP_LAUNCH_EARLY(run, kernel, grid, block, shared_bytes, ...)                                \
    do {                                                                                            \
        cudaLaunchConfig_t lp_config = {};                                                          \
        cudaLaunchAttribute lp_early = {};                                                          \
        lp_early.id = cudaLaunchAttributeProgrammaticStreamSerialization;                           \
        lp_early.val.programmaticStreamSerializationAllowed = 1;                                    \
        lp_config.gridDim = (grid);                                                                 \
        lp_config.blockDim = (block);                                                               \
        lp_config.dynamicSmemBytes = (shared_bytes);                                                \
        lp_config.stream = lp_cuda_stream(run);                                                     \
        lp_config.attrs = &lp_early;                                                                \
        lp_config.numAttrs = lp_cuda_early();                                                       \
        if (lp_config.dynamicSmemBytes > 48 * 1024)                                                 \
            lp_cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, \
                                               (int)lp_config.dynamicSmemBytes),                    \
                          #kernel);                                                                 \
        if (lp_config.gridDim.x && lp_config.gridDim.y && lp_config.gridDim.z)                      \
            lp_cuda_check(cudaLaunchKernelEx(&lp_config, kernel, __VA_ARGS__), #kernel);            \
    } while (0)

#else

__device__ static inline void lp_begin(void)
{
}

#define LP_LAUNCH_EARLY LP_LAUNCH

#endif

#endif
