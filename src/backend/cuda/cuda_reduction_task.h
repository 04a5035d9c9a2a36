/* cuda_reduction_task.h: a group of reductions as its kernels see it. cuda_reduction.cu fills it, cuda_reduction_kernel.cu and
 * cuda_outer.cu execute it. The structures are passed as kernel arguments, which are limited to 4 KB.
 */
#ifndef LP_CUDA_REDUCTION_TASK_H
#define LP_CUDA_REDUCTION_TASK_H

#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_rules.h"

enum { REDUCTION_WARPS = 8, REDUCTION_THREADS = 32 * REDUCTION_WARPS };
/* A warp computes WIDE x WIDE elements of an outer product. */
enum { REDUCTION_WIDE = 32 };
/* Columns that a block sums, at most. */
enum { REDUCTION_COLS = 256 };
/* Slots for rows in shared memory, at most; their floats; and floats beyond them, because products read whole tiles of warps.
 * All devices have 99 KB for a block. */
enum { REDUCTION_SLOTS = 8, REDUCTION_SHARED = 25088, REDUCTION_PADDING = 64 };
/* Floats of an outer product and its column sums in each lane of a warp. */
enum { REDUCTION_LANE = REDUCTION_WIDE * REDUCTION_WIDE / 32 + 4 };

/* Which launch computes a task: that of the group, a product of floats, or a product of copies in bf16 (cuda_outer.cu). */
typedef enum reduction_launch { REDUCTION_GROUP, REDUCTION_PRODUCT, REDUCTION_WIDE_PRODUCT } reduction_launch;

/* One reduction. Its rows are divided into chunks, and columns into tiles; a block sums one chunk for one tile. In a group, bulk copies
 * bring whole rows to slots in shared memory, each with `depth` rows of p, then of q, then of extra. All slots are loaded at the
 * start, and each is loaded again after use. Without slots, column sums read global memory. */
typedef struct reduction_task {
    const void *p, *q; /* float; bf16 in a product of copies */
    const float *extra;
    void *out[2]; /* partial sums of the first chunk, or the output itself; NULL: absent */
    int step[2];  /* elements from chunk to chunk */
    lp_cuda_rows rows;
    int largest, chunks;    /* largest: rows of the largest shard */
    int heads, a, b;        /* a, b: columns of p and q in a head; b is 0 without q */
    int p_stride, q_stride; /* of outer products: elements from row to row */
    lp_reduction_type type;
    reduction_launch launch;
    int tile;         /* columns of a tile */
    int depth, slots; /* rows of a slot, and number of slots; 0: column sums from global memory */
    bool q_summed;    /* out[1] sums columns of q, not of p */
} reduction_task;

typedef struct reduction_group {
    int first[LP_CUDA_REDUCTION_MAX]; /* first block of each task, ascending; some have none */
    const lp_cuda_shard *shard;
    reduction_task task[LP_CUDA_REDUCTION_MAX];
} reduction_group;

/* out = sum of all slices; adds: out += it. A slice is the partial sum of a chunk. */
typedef struct reduction_output {
    void *out;
    void *partial; /* the slices; == out: there is one, which is the output */
    int size, step, slices;
    bool adds, is_double;
} reduction_output;

enum { REDUCTION_OUTPUTS = 2 * LP_CUDA_REDUCTION_MAX };

typedef struct reduction_outputs {
    int first[REDUCTION_OUTPUTS];
    reduction_output output[REDUCTION_OUTPUTS];
} reduction_outputs;

static_assert(sizeof(reduction_group) <= 4096 && sizeof(reduction_outputs) <= 4096, "arguments of a launch");

/* The last index whose first block is not after this one. */
template <int count> __device__ static inline int reduction_index(const int (&first)[count])
{
    int index = 0;
#pragma unroll 1
    while (index + 1 < count && first[index + 1] <= (int)blockIdx.x)
        index++;
    return index;
}

/* Columns of p that are summed, or of each half of it. */
__host__ __device__ static inline int reduction_cols(const reduction_task &task)
{
    return task.type == LP_REDUCTION_BASIS ? task.a / 2 : task.a;
}

__host__ __device__ static inline int reduction_tiles(const reduction_task &task)
{
    return (reduction_cols(task) + task.tile - 1) / task.tile;
}

/* Warps of a set, which covers an outer product; sets, which divide the rows. */
__host__ __device__ static inline int reduction_warps_down(const reduction_task &task)
{
    return (task.a + REDUCTION_WIDE - 1) / REDUCTION_WIDE;
}

__host__ __device__ static inline int reduction_warps(const reduction_task &task)
{
    return reduction_warps_down(task) * ((task.b + REDUCTION_WIDE - 1) / REDUCTION_WIDE);
}

__host__ __device__ static inline int reduction_sets(const reduction_task &task)
{
    return REDUCTION_WARPS / reduction_warps(task);
}

/* Offset of extra in a slot, and the size of a slot, in floats. */
__host__ __device__ static inline int reduction_slot_extra(const reduction_task &task)
{
    return task.depth * (task.a + task.b);
}

__host__ __device__ static inline int reduction_slot(const reduction_task &task)
{
    return reduction_slot_extra(task) + (task.extra ? 2 * task.depth : 0);
}

/* cuda_outer.cu: of these tasks, the outer products that are launches of their own. The first sets their chunks and tiles. */
void lp_cuda_outer_divide(reduction_task *tasks, int count);
void lp_cuda_outer_launch(const lp_cuda_run *run, const reduction_task *tasks, int count);

/* cuda_reduction_kernel.cu: the tasks of the group, and the sums of all slices. Sets the first blocks of both; entries without a task
 * or output are 0. */
void lp_cuda_reduction_launch(const lp_cuda_run *run, reduction_group *group, reduction_outputs *outputs);

#endif
