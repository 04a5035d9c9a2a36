/* cuda_plugin.h: the entry point of the plugin liblapse_cuda.so, shared by the library and the plugin. */
#ifndef LP_CUDA_PLUGIN_H
#define LP_CUDA_PLUGIN_H

#include "backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plugin and library share structures, and so must come from one build: LAPSE_INTERFACE is a hash of the headers that declare them,
 * which the build defines (cmake/cuda.cmake). */
#define LP_CUDA_VERSION ((uint32_t)LAPSE_INTERFACE)

/* Opens the first GPU. The backend lives until the process ends. `found` is filled with the GPU and what of it is used, or, where NULL is
 * returned, with why none can be used. */
__attribute__((visibility("default"))) const lp_backend *lp_cuda_open(uint32_t version, char *found, size_t size);
typedef const lp_backend *(*lp_cuda_open_function)(uint32_t version, char *found, size_t size);

#ifdef __cplusplus
}
#endif

#endif
