/* cuda_reduction_task.h: a group of reductions as its kernels see it. cuda_reduction.cu fills it, cuda_reduction_kernel.cu and cuda_outer.cu
 * execute it. Groups and outputs are passed as kernel arguments, which are limited to 4 KB.
 */
#ifndef LP_CUDA_REDUCTION_TASK_H
#define LP_CUDA_REDUCTION_TASK_H

#include "backend/cuda/cuda_reduction.h"

/* The tiles of a task: columns of sums, or products of one of these shapes. Outer products by warpgroups have one number for each
 * combination of two bits. */
enum {
    REDUCTION_SMALL,            /* 64 x 64, of floats; and columns */
    REDUCTION_LARGE,            /* 128 x 128, of floats */
    REDUCTION_WIDE,             /* of copies in bf16, by warpgroups (cuda_outer.cu) */
    REDUCTION_WIDE_BY_HEAD = 1, /* two heads of up to 64 rows in a tile */
    REDUCTION_WIDE_Q_SUMMED = 2,
    REDUCTION_TILINGS = REDUCTION_WIDE + 4
};

/* Column sums: columns of a tile, floats from row to row in shared memory, and rows that are copied at once, at most. */
enum { REDUCTION_COLS = 32, REDUCTION_COLS_STRIDE = 40, REDUCTION_DEPTH = 64 };
/* Bytes of shared memory of a block with small tiles, at most. With half of that blocks of outer products run beside attention's gradient,
 * and an epoch with fused kernels took 10 % longer. */
enum { REDUCTION_SHARED = 110 * 1024 };

/* One reduction. Its rows are divided into chunks, and its columns into tiles: tile_rows columns of p by tile_cols of q in one head or in
 * two, or tile_cols columns of both. A block sums one chunk for one tile. */
typedef struct reduction_task {
    const void *p, *q; /* floats, or bf16 */
    const float *extra;
    void *out[2]; /* partial sums of the first chunk, or the output itself; NULL: absent */
    int step[2];  /* elements from chunk to chunk */
    lp_cuda_rows rows;
    int chunks, heads, a, b;                /* a, b: columns of a head in p and q */
    int p_stride, q_stride, p_head, q_head; /* elements from row to row, and from head to head */
    int down, across, tiles;                /* tiles of heads_each heads, one or two; and of all heads */
    int shared;                             /* bytes of shared memory, of small tiles */
    short type;                             /* lp_reduction_type */
    short tiling;                           /* which kernel computes it */
    short rows_each;                        /* rows of which p and q have one sum */
    short tile_rows, tile_cols;
    signed char heads_each;
    signed char p_width, q_width; /* floats of a vector copy */
    bool q_summed;                /* out[1] sums columns of q, not of p */
    bool pairs;                   /* out[0] can be stored two floats at a time */
} reduction_task;

typedef struct reduction_group {
    int first[LP_CUDA_REDUCTION_MAX]; /* first block of each task, ascending; INT_MAX beyond the tasks */
    const lp_cuda_shard *shard;
    reduction_task task[LP_CUDA_REDUCTION_MAX];
} reduction_group;

/* out = sum of all slices; adds: out += it. A slice is the partial sum of a chunk. */
typedef struct reduction_output {
    void *out, *partial;
    int size, step, slices;
    bool adds, is_double, fours; /* fours: a lane of the second launch has four elements, instead of one */
} reduction_output;

enum { REDUCTION_OUTPUTS = 2 * LP_CUDA_REDUCTION_MAX };

typedef struct reduction_outputs {
    int first[REDUCTION_OUTPUTS];
    reduction_output output[REDUCTION_OUTPUTS];
} reduction_outputs;

static_assert(sizeof(reduction_group) <= 4096 && sizeof(reduction_outputs) <= 4096, "arguments of a launch");

/* Gathers the tasks for which `wanted` returns true; returns the number of their blocks. */
template <typename condition>
static inline unsigned reduction_gather(reduction_group *group, const reduction_task *tasks, int count,
                                        const lp_cuda_run *run, const condition &wanted)
{
    int found = 0, blocks = 0;
    group->shard = run->shard;
    for (int i = 0; i < count; i++)
        if (wanted(tasks[i])) {
            group->first[found] = blocks;
            group->task[found++] = tasks[i];
            blocks += tasks[i].chunks * tasks[i].tiles;
        }
    for (; found < LP_CUDA_REDUCTION_MAX; found++)
        group->first[found] = INT32_MAX;
    return (unsigned)blocks;
}

/* The last index whose first block is not after this one; see reduction_group.first. */
template <int count> __device__ static inline int reduction_index(const int (&first)[count])
{
    int index = 0;
#pragma unroll 1
    while (index + 1 < count && first[index + 1] <= (int)blockIdx.x)
        index++;
    return index;
}

/* What a block of the group computes: a chunk, a tile, and its first head. */
typedef struct reduction_place {
    int chunk, head, row, col; /* row, col: numbers of tiles */
} reduction_place;

__device__ static inline reduction_place reduction_place_of(const reduction_task &task, int number)
{
    int chunk = number / task.tiles, tile = number % task.tiles, rows = tile / task.across;
    return {chunk, rows / task.down * task.heads_each, rows % task.down, tile % task.across};
}

/* cuda_outer.cu: outer products by warpgroups: columns of a tile that the task needs; launches of the tasks. */
int lp_cuda_outer_cols(const reduction_task &task);
void lp_cuda_outer_launch(const reduction_task *tasks, int count, const lp_cuda_run *run);

/* cuda_reduction_kernel.cu: launches of the other tasks, and the second launch. */
void lp_cuda_reduction_launch(const reduction_task *tasks, int count, const lp_cuda_run *run);
void lp_cuda_reduction_launch_final(const lp_cuda_run *run, const reduction_outputs &outputs, unsigned blocks);

#endif
