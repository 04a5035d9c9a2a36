/* cuda_upload.h: the layout of an upload, the single copy that brings all host data of a run to the device: lp_cuda_shard, the segments,
 * the order of attention's tiles, Adam's scalars and rows, the steps of fused kernels, and the inputs, with sorted ids where a kernel needs
 * them. All offsets are
 * those of the largest shard, so that launches do not depend on the shard.
 */
#ifndef LP_CUDA_UPLOAD_H
#define LP_CUDA_UPLOAD_H

#include "backend/cuda/cuda.h"

/* The elements of an id input grouped by id, as a compressed list. Gradients by id read it, so that they need no atomics. Id v < *ids has
 * the elements order[starts[v]] .. order[starts[v + 1] - 1], ascending; larger ids have none. */
typedef struct lp_cuda_lists {
    const int32_t *ids, *starts, *order;
    int largest_ids, largest_elements;
} lp_cuda_lists;

/* The lists of a graph input of ids that the kernel of a node needs sorted (lp_cuda_rule.by_id), on the device. */
lp_cuda_lists lp_cuda_lists_of(const lp_cuda_run *run, const lp_value *ids);

/* An input in an upload. */
typedef struct lp_cuda_input {
    const lp_value *value; /* NULL: no node reads it */
    size_t offset, list_offset;
    int64_t ids, elements; /* at most, where a kernel needs its ids sorted (lp_cuda_lists); otherwise 0 */
} lp_cuda_input;

/* Offsets in bytes; lp_cuda_shard is at 0. */
typedef struct lp_cuda_upload {
    size_t segment_offset, order_offset, adam_offset, steps_offset, size;
    lp_cuda_input *inputs; /* by slot; in an arena */
    int input_count;
} lp_cuda_upload;

/* Plans uploads for runs like sizes->run with up to sizes->largest_segments segments. steps: bytes. False when out of memory. */
bool lp_cuda_upload_plan(lp_cuda_upload *upload, const lp_cuda_run *sizes, size_t steps, lp_arena *arena);

/* Fills the upload of a run in host memory (staging), but for the steps; train_step may be NULL. */
void lp_cuda_upload_fill(const lp_cuda_upload *upload, const lp_run *run, const lp_train_step *train_step,
                         char *staging);

#endif
