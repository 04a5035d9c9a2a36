/* cuda_lists.h: the ids of an input, sorted: which of its elements have which id.
 *
 * Made on the host for every shard, for each input of ids that some node's gradient sums by (lp_cuda_sorted_by). The
 * elements of an id stand together and in their order.
 */
#ifndef LP_CUDA_LISTS_H
#define LP_CUDA_LISTS_H

#include "backend/cuda/cuda.h"

/* On the device, but for the largest numbers. Id v has the elements order[starts[v]] .. order[starts[v + 1] - 1], as far as v is
 * below *ids; later ones have none. */
typedef struct lp_cuda_lists {
    const int32_t *ids, *starts, *order;
    int largest_ids, largest_elements;
} lp_cuda_lists;

/* Where input k of the node holds ids that its kernel wants sorted: the value whose rows they are; otherwise NULL. */
const lp_value *lp_cuda_sorted_by(const lp_node *node, int k);

/* Those of an input of the graph that a node wanted. */
lp_cuda_lists lp_cuda_lists_of(const lp_cuda_run *run, const lp_value *ids);

/* ---- for cuda_program.cu ------------------------------------------------------------------------------------- */

/* Where the parts lie in a block of memory. */
typedef struct lp_cuda_list_layout {
    size_t starts, order, size; /* the number of ids at 0 */
    int largest_ids, largest_elements;
} lp_cuda_list_layout;

/* For at most so many elements and ids. */
lp_cuda_list_layout lp_cuda_list_plan(int64_t elements, int64_t ids);
lp_cuda_lists lp_cuda_list_view(const lp_cuda_list_layout *layout, const char *block);
/* Fills a block. Sorts in a room of so many numbers: a block that has been copied to a device is no longer in the cache, and one that
 * is filled in a straight run comes back sooner than one that is jumped about in. */
size_t lp_cuda_list_room(const lp_cuda_list_layout *layout);
void lp_cuda_list_fill(const lp_cuda_list_layout *layout, char *block, const int32_t *ids, int64_t elements,
                       int32_t *room);

#endif
