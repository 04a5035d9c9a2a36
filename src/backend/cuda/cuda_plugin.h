/* cuda_plugin.h: what the library and the plugin liblapse_cuda.so say to each other. */
#ifndef LP_CUDA_PLUGIN_H
#define LP_CUDA_PLUGIN_H

#ifdef __cplusplus
#include "backend/cuda/cuda.h"
extern "C" {
#else
#include "backend/backend.h"
#endif

/* Plugin and library share structures and so must be of one build. The number says whether they are: it changes with what they
 * share, as far as sizes can tell. */
#define LP_CUDA_VERSION                                                                                      \
    ((uint32_t)(sizeof(lp_run) * 31 + sizeof(lp_node) * 37 + sizeof(lp_value) * 41 + sizeof(lp_graph) * 43 + \
                sizeof(lp_plan) * 47 + sizeof(lp_backend) * 53 + LP_OP_COUNT * 59))

/* The plugin's entry, found by the name "lp_cuda_open". NULL and a reason where there is no device to use. */
__attribute__((visibility("default"))) const lp_backend *lp_cuda_open(uint32_t version, const char **reason);
typedef const lp_backend *(*lp_cuda_open_function)(uint32_t version, const char **reason);

#ifdef __cplusplus
}
#endif

#endif
