/* cuda_reduction_task.h: a group of reductions as its kernels see it. cuda_reduction.cu fills it, cuda_reduction_kernel.cu executes it. Both
 * structures are passed as kernel arguments, which are limited to 4 KB.
 */
#ifndef LP_CUDA_REDUCTION_TASK_H
#define LP_CUDA_REDUCTION_TASK_H

#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_rules.h"

enum { REDUCTION_WARPS = 8, REDUCTION_THREADS = 32 * REDUCTION_WARPS };
/* A warp computes WIDE x WIDE elements of an outer product; a block up to LONG x SHORT. */
enum { REDUCTION_WIDE = 32, REDUCTION_LONG = 128, REDUCTION_SHORT = 64 };
/* Columns that a block sums, at most; and of a parameter. */
enum { REDUCTION_COLS = 256, REDUCTION_FEW_COLS = 32 };
/* Slots for rows in shared memory, at most. */
enum { REDUCTION_SLOTS = 8 };
/* Floats of an outer product and its column sums in each lane of a warp. */
enum { REDUCTION_LANE = REDUCTION_WIDE * REDUCTION_WIDE / 32 + 4 };
/* From which size on a lane of the second launch has four elements of an output, instead of one. */
enum { REDUCTION_FOURS = 8192 };

/* One reduction. Its rows are divided into chunks, and its columns into tiles: a_wide columns of p and b_wide of q in one head, or
 * b_wide columns of both. A block sums one chunk for one tile. Rows are copied to slots in shared memory, each with `depth` rows of p, then of
 * q, then of extra. All slots are loaded at the start, and each is loaded again after use. */
typedef struct reduction_task {
    const float *p, *q, *extra;
    void *out[2]; /* partial sums of the first chunk, or the output itself; NULL: absent */
    int step[2];  /* elements from chunk to chunk */
    lp_cuda_rows rows;
    int chunks, heads, a, b;       /* a, b: columns of a head in p and q */
    int down, across;              /* tiles of a head */
    short type;                    /* lp_reduction_type */
    short a_wide, b_wide;          /* columns of a tile */
    short p_stride, q_stride;      /* floats from row to row in shared memory */
    short depth, slots;            /* rows of a slot, and number of slots */
    signed char p_width, q_width;  /* floats of a vector copy, where not bulk */
    signed char spread;            /* rows between neighbouring lanes of an outer product */
    signed char warps_down, warps; /* of a set, which covers a tile; the sets divide the rows */
    signed char sets;              /* of an outer product; otherwise: rows that the threads read at a time */
    bool bulk;                     /* tiles are whole rows, copied by bulk copies */
    bool q_summed;                 /* out[1] sums columns of q, not of p */
    bool pairs;                    /* out[0] can be stored two floats at a time */
} reduction_task;

typedef struct reduction_group {
    int first[LP_CUDA_REDUCTION_MAX]; /* first block of each task, ascending; INT_MAX beyond the tasks */
    const lp_cuda_shard *shard;
    reduction_task task[LP_CUDA_REDUCTION_MAX];
} reduction_group;

/* out = sum of all slices; adds: out += it. A slice is the partial sum of a chunk. */
typedef struct reduction_output {
    void *out;
    const void *partial;
    int size, step, slices;
    bool adds, is_double, fours;
} reduction_output;

enum { REDUCTION_OUTPUTS = 2 * LP_CUDA_REDUCTION_MAX };

typedef struct reduction_outputs {
    int first[REDUCTION_OUTPUTS];
    reduction_output output[REDUCTION_OUTPUTS];
} reduction_outputs;

static_assert(sizeof(reduction_group) <= 4096 && sizeof(reduction_outputs) <= 4096, "arguments of a launch");

/* Offsets of q and extra in a slot, and the size of a slot, in floats. */
__host__ __device__ static inline int reduction_slot_q(const reduction_task &task)
{
    return task.depth * task.p_stride;
}

__host__ __device__ static inline int reduction_slot_extra(const reduction_task &task)
{
    return task.depth * (task.p_stride + (task.q ? task.q_stride : 0));
}

__host__ __device__ static inline int reduction_slot(const reduction_task &task)
{
    return reduction_slot_extra(task) + (task.extra ? 2 * task.depth : 0);
}

/* cuda_outer.cu: wide outer products (lp_cuda_outer_wide). The first sets the chunks of the tasks. rows: of the largest shard. */
void lp_cuda_outer_chunks(const lp_stage_part *parts, reduction_task *tasks, const int *rows, int count,
                          const lp_cuda_run *run);
void lp_cuda_outer_launch(const lp_stage_part *parts, const reduction_task *tasks, int count, const lp_cuda_run *run);

/* bulk: all tasks are. */
void lp_cuda_reduction_launch_partial(const lp_cuda_run *run, const reduction_group &group, bool bulk, unsigned blocks,
                                      size_t shared);
void lp_cuda_reduction_launch_final(const lp_cuda_run *run, const reduction_outputs &outputs, unsigned blocks);

#endif
