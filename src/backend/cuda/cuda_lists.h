/* cuda_lists.h: the elements of an id input grouped by id, as a compressed list (offsets and elements). Gradients by id read it, so that
 * they need no atomics. The host builds it for every shard, for each input that lp_cuda_sorted_by names.
 */
#ifndef LP_CUDA_LISTS_H
#define LP_CUDA_LISTS_H

#include "backend/cuda/cuda.h"

/* Id v < *ids has the elements order[starts[v]] .. order[starts[v + 1] - 1], ascending; larger ids have none. */
typedef struct lp_cuda_lists {
    const int32_t *ids, *starts, *order;
    int largest_ids, largest_elements;
} lp_cuda_lists;

/* If the kernel of the node needs the ids of input k sorted: the value whose rows they index; otherwise NULL. */
const lp_value *lp_cuda_sorted_by(const lp_node *node, int k);

/* The lists of a graph input for which lp_cuda_sorted_by is not NULL, on the device. */
lp_cuda_lists lp_cuda_lists_of(const lp_cuda_run *run, const lp_value *ids);

/* ---- for cuda_upload.cu --------------------------------------------------------------------------------------- */

/* Parts of an upload are aligned to 256 bytes. */
static inline size_t lp_cuda_align(size_t size)
{
    return (size + 255) / 256 * 256;
}

/* Lists of at most this many ids and elements, in lp_cuda_lists_size bytes from `at`. */
lp_cuda_lists lp_cuda_lists_at(const char *at, int64_t ids, int64_t elements);
size_t lp_cuda_lists_size(int64_t ids, int64_t elements);
/* Fills lists in host memory. */
void lp_cuda_lists_fill(const lp_cuda_lists *lists, const int32_t *ids, int64_t elements);

#endif
