/* cuda_sums_task.h: a group of sums, as its kernels see it (cuda_sums.cu fills it in, cuda_sums_kernel.cu works it off). Both halves go as
 * arguments of a launch, which may be 4 KB.
 */
#ifndef LP_CUDA_SUMS_TASK_H
#define LP_CUDA_SUMS_TASK_H

#include "backend/cuda/cuda_sums.h"

enum { SUMS_WARPS = 8, SUMS_THREADS = 32 * SUMS_WARPS };
/* Columns of q that a warp multiplies with 16 of p, as tiles of 8; and columns that a block can sum. */
enum { SUMS_WIDE = 64, SUMS_TILES = SUMS_WIDE / 8, SUMS_COLS = 128 };
/* Sums that a block of the second launch makes. */
enum { SUMS_EACH = 32 };

typedef enum sums_kind {
    SUMS_OUTER,  /* p^T q, and the columns of p or of q */
    SUMS_COLUMN, /* p */
    SUMS_DOT,    /* p * q */
    SUMS_NORM,   /* q * normal(p), and q; extra: the moments of each row */
    SUMS_BASIS /* extra * (p x q), where halves of the rows are the coordinates; extra: the time of each row, in double */
} sums_kind;

/* Rows of p and q lie in shared memory while they are summed, `depth` of them at a time and twice over: one half is on its way while the
 * other is worked on. A block sums the rows of one chunk for one part: a_wide columns of p and b_wide of q in one head, or b_wide
 * columns of both. */
typedef struct sums_task {
    const float *p, *q, *extra;
    void *out[2]; /* the first chunk's place, or the output itself; NULL: not wanted */
    int step[2];  /* elements from chunk to chunk */
    lp_cuda_rows rows;
    int kind, chunks;
    int heads, a, b;          /* columns, of a head */
    int a_wide, b_wide;       /* of a part */
    int down, across;         /* parts of a head */
    short p_stride, q_stride; /* floats from row to row in shared memory */
    short depth;              /* rows of a half of shared memory */
    short p_width, q_width;   /* floats that are copied at a time */
    int half;                 /* floats of a half of shared memory */
    bool q_summed;            /* the columns are of q, not of p */
    bool pairs;               /* two sums of a row may be stored as one */
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

/* How the warps of a block share an outer product: `down` times `across` have a place of their own in the result, and so many sets of them
 * each take every so many rows. */
typedef struct sums_warps {
    int down, across, sets;
} sums_warps;

__host__ __device__ static inline sums_warps sums_warps_of(const sums_task &task)
{
    sums_warps warps = {task.a_wide / 16, (task.b_wide + SUMS_WIDE - 1) / SUMS_WIDE, 0};
    warps.sets = SUMS_WARPS / (warps.down * warps.across);
    return warps;
}

void lp_cuda_sums_launch(const lp_cuda_run *run, const sums_group &group, unsigned blocks, size_t shared);
void lp_cuda_sums_add_up(const lp_cuda_run *run, const sums_outputs &outputs, unsigned blocks);

#endif
