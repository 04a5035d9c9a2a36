/* cuda_sums_task.h: a group of sums, as its kernels see it (cuda_sums.cu fills it in, cuda_sums_kernel.cu works it off). Both halves go as
 * arguments of a launch, which may be 4 KB.
 */
#ifndef LP_CUDA_SUMS_TASK_H
#define LP_CUDA_SUMS_TASK_H

#include "backend/cuda/cuda_sums.h"

enum { SUMS_WARPS = 8, SUMS_THREADS = 32 * SUMS_WARPS };
/* A warp multiplies so many columns of p with as many of q; a block has no more than this of both together. */
enum { SUMS_WIDE = 32, SUMS_LONG = 128, SUMS_SHORT = 64 };
/* Columns that a block can sum. */
enum { SUMS_COLS = 256 };
/* Places in shared memory for rows, at most. */
enum { SUMS_SLOTS = 8 };
/* What a warp hands on of an outer product, for each of its lanes. */
enum { SUMS_LANE = SUMS_WIDE * SUMS_WIDE / 32 + 4 };
/* Sums that a block of the second launch makes. */
enum { SUMS_EACH = 32 };

typedef enum sums_type {
    SUMS_OUTER,  /* p^T q, and the columns of p or of q */
    SUMS_COLUMN, /* p */
    SUMS_DOT,    /* p * q */
    SUMS_NORM,   /* q * normal(p), and q; extra: the moments of each row */
    SUMS_BASIS /* extra * (p x q), where halves of the rows are the coordinates; extra: the time of each row, in double */
} sums_type;

/* Rows of p and q lie in shared memory while they are summed: in each of some slots `depth` rows of p, then as many of q, then what is
 * extra. All slots are on their way at first, and each is filled again once it has been worked on. A block sums the rows of one chunk
 * for one part: a_wide columns of p and b_wide of q in one head, or b_wide columns of both. */
typedef struct sums_task {
    const float *p, *q, *extra;
    void *out[2]; /* the first chunk's place, or the output itself; NULL: not wanted */
    int step[2];  /* elements from chunk to chunk */
    lp_cuda_rows rows;
    int chunks, heads, a, b;       /* a, b: columns, of a head */
    int down, across;              /* parts of a head */
    short type;                    /* sums_type */
    short a_wide, b_wide;          /* of a part */
    short p_stride, q_stride;      /* floats from row to row in shared memory */
    short depth, slots;            /* rows of a slot, and how many of them */
    signed char p_width, q_width;  /* floats that are copied at a time, where not in bulk */
    signed char spread;            /* rows from lane to lane of a product */
    signed char warps_down, warps; /* of a set of warps; sets each take every so many rows */
    signed char sets;              /* of an outer product; else: rows that the threads take at once */
    bool bulk;                     /* parts are whole rows */
    bool q_summed;                 /* the columns are of q, not of p */
    bool pairs;                    /* two sums of a row may be stored as one */
} sums_task;

typedef struct sums_group {
    int first[LP_CUDA_SUMS_MOST]; /* block of each task; beyond the tasks, the largest int */
    const lp_cuda_shard *shard;
    sums_task task[LP_CUDA_SUMS_MOST];
} sums_group;

/* out = (adds: out +) the sum of all slices */
typedef struct sums_output {
    void *out;
    const void *partial;
    int size, step, slices;
    bool adds, is_double;
} sums_output;

enum { SUMS_OUTPUTS = 2 * LP_CUDA_SUMS_MOST };

typedef struct sums_outputs {
    int first[SUMS_OUTPUTS];
    sums_output output[SUMS_OUTPUTS];
} sums_outputs;

static_assert(sizeof(sums_group) <= 4096 && sizeof(sums_outputs) <= 4096, "arguments of a launch");

/* Floats of a slot up to q, and up to what is extra. */
__host__ __device__ static inline int sums_slot_q(const sums_task &task)
{
    return task.depth * task.p_stride;
}

__host__ __device__ static inline int sums_slot_extra(const sums_task &task)
{
    return task.depth * (task.p_stride + (task.q ? task.q_stride : 0));
}

__host__ __device__ static inline int sums_slot(const sums_task &task)
{
    return sums_slot_extra(task) + (task.extra ? 2 * task.depth : 0);
}

/* bulk: no part of any task is less than whole rows. */
void lp_cuda_sums_launch(const lp_cuda_run *run, const sums_group &group, bool bulk, unsigned blocks, size_t shared);
void lp_cuda_sums_add_up(const lp_cuda_run *run, const sums_outputs &outputs, unsigned blocks);

#endif
