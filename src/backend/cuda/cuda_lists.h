/* cuda_lists.h: the elements of an id input grouped by id, as a compressed list (offsets and elements). Gradients by id read it, so that
 * they need no atomics. The host builds it for every shard (cuda_upload.cu).
 */
#ifndef LP_CUDA_LISTS_H
#define LP_CUDA_LISTS_H

#include "backend/cuda/cuda.h"

/* Id v < *ids has the elements order[starts[v]] .. order[starts[v + 1] - 1], ascending; larger ids have none. */
typedef struct lp_cuda_lists {
    const int32_t *ids, *starts, *order;
    int largest_ids, largest_elements;
} lp_cuda_lists;

/* The lists of a graph input of ids that the kernel of a node needs sorted (lp_cuda_rule.by_id), on the device. */
lp_cuda_lists lp_cuda_lists_of(const lp_cuda_run *run, const lp_value *ids);

#endif
