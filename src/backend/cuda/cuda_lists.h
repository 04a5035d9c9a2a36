/* cuda_lists.h: the ids of an input, sorted: which of its elements have which id.
 *
 * Made on the host for every shard, for each input of ids that some node's gradient sums by (lp_cuda_sorted_by). The
 * elements of an id stand together and in their order; an id with many is cut into pieces, so that no thread has much more to
 * do than the others.
 */
#ifndef LP_CUDA_LISTS_H
#define LP_CUDA_LISTS_H

#include "backend/cuda/cuda.h"

enum { LP_CUDA_PIECE = 32 }; /* elements of a piece at most */

/* Elements order[begin] .. order[end - 1] have this id. place: -1 where these are all, otherwise the number of the piece
 * among those of divided ids. */
typedef struct lp_cuda_piece {
    int32_t id, begin, end, place;
} lp_cuda_piece;

/* A divided id: pieces place .. place + count - 1. */
typedef struct lp_cuda_group {
    int32_t id, place, count;
} lp_cuda_group;

typedef struct lp_cuda_list_counts {
    int32_t pieces, groups;
} lp_cuda_list_counts;

/* On the device, but for the largest numbers. */
typedef struct lp_cuda_lists {
    const lp_cuda_list_counts *counts;
    const int32_t *order;
    const lp_cuda_piece *pieces;
    const lp_cuda_group *groups;
    int largest_pieces, largest_groups, largest_partial; /* partial: places */
} lp_cuda_lists;

/* Where input k of the node holds ids that its kernel wants sorted: the value whose rows they are; otherwise NULL. */
const lp_value *lp_cuda_sorted_by(const lp_node *node, int k);

/* Those of an input of the graph that a node wanted. */
lp_cuda_lists lp_cuda_lists_of(const lp_cuda_run *run, const lp_value *ids);

/* ---- for cuda_program.cu ------------------------------------------------------------------------------------- */

/* Where the parts lie in a block of memory. */
typedef struct lp_cuda_list_layout {
    size_t order, pieces, groups, size; /* counts at 0 */
    int largest_pieces, largest_groups, largest_partial;
} lp_cuda_list_layout;

/* For at most so many elements and ids. */
lp_cuda_list_layout lp_cuda_list_plan(int64_t elements, int64_t ids);
lp_cuda_lists lp_cuda_list_view(const lp_cuda_list_layout *layout, const char *block);
/* Fills a block. starts: room for ids + 1 numbers. */
void lp_cuda_list_fill(const lp_cuda_list_layout *layout, char *block, const int32_t *ids, int64_t elements,
                       int64_t id_count, int32_t *starts);

#endif
