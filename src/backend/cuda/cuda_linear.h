/* cuda_linear.h: what the two ways to make products share: ordinary arithmetic and tensor cores. */
#ifndef LP_CUDA_LINEAR_H
#define LP_CUDA_LINEAR_H

#include "backend/cuda/cuda_reduce.h"

enum { LP_LINEAR_TILE = 64 }; /* rows and columns of outputs that a block makes */

/* y = x W (+ bias + add), for each head. */
typedef struct lp_linear_task {
    const float *x, *weight, *bias, *add;
    float *y;
    int heads, in, out, adds; /* columns of a head */
} lp_linear_task;

/* partial[chunk][h][i][j] = sum over the chunk's rows of p[t][h][i] q[t][h][j]. */
typedef struct lp_outer_task {
    const float *p, *q;
    float *partial;
    int heads, a, b;
} lp_outer_task;

/* Column `col` of head h of row `row`, where there is one. */
__device__ static inline void lp_linear_store(const lp_linear_task &task, int rows, int row, int h, int col, float sum)
{
    if (row >= rows || col >= task.out)
        return;
    size_t place = ((size_t)row * task.heads + h) * task.out + col;
    float bias = task.bias ? task.bias[h * task.out + col] : 0, add = task.add ? task.add[place] : 0;
    lp_store(&task.y[place], sum + (bias + add), task.adds);
}

/* For at most `largest` rows. */
void lp_cuda_linear_tensor(const lp_cuda_run *run, lp_cuda_rows rows, int largest, lp_linear_task task, bool transpose);
void lp_cuda_outer_tensor(const lp_cuda_run *run, lp_cuda_rows rows, int chunks, lp_outer_task task);

#endif
