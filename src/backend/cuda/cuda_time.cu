/* cuda_time.cu: frequencies, their cosines and sines, and shifts of time. Phases are double until they have lost their whole
 * turns; frequencies and their gradients are double throughout. The gradient of a basis is a sum over rows (cuda_reduction.cu). */
#include "backend/cuda/cuda_rows.h"

#define TWO_PI 6.283185307179586476925

__global__ void harmonics_kernel(const float *log_period, int size, int count, double *frequency)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < size)
        frequency[i] = lp_harmonic(log_period, i, count);
}

void lp_cuda_harmonics(const lp_node *node, const lp_cuda_run *run)
{
    int size = node->outputs[0]->cols;
    LP_LAUNCH(run, harmonics_kernel, lp_blocks(size, 128), 128, 0, LP_INPUT(0), size, node->with.harmonics,
              LP_OUTPUT_AS(double, 0));
}

__global__ void harmonics_gradient_kernel(const double *frequency, const double *dfrequency, int periods, int count,
                                          float *dlog_period, int adds)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= periods)
        return;
    double sum = 0;
    for (int j = 0; j < count; j++)
        sum -= frequency[i * count + j] * dfrequency[i * count + j];
    lp_store(&dlog_period[i], (float)sum, adds);
}

void lp_cuda_harmonics_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int periods = node->outputs[0]->cols;
    LP_LAUNCH(run, harmonics_gradient_kernel, lp_blocks(periods, 128), 128, 0, LP_INPUT_AS(double, 0),
              LP_INPUT_AS(double, 1), periods, node->with.harmonics, LP_OUTPUT(0), LP_ADDS(0));
}

__global__ void basis_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int count, const double *time,
                             const double *frequency, float *u)
{
    int row = lp_row_here();
    if (row >= lp_rows_now(rows, shard))
        return;
    double at = time[row];
    float *here = u + (size_t)row * 2 * count;
#pragma unroll 1
    for (int f = (int)threadIdx.x; f < count; f += (int)blockDim.x) {
        double turns = at * frequency[f] * (1 / TWO_PI);
        float half_turns = (float)(2 * (turns - rint(turns))), sine, cosine;
        sincospif(half_turns, &sine, &cosine);
        here[f] = cosine;
        here[count + f] = sine;
    }
}

void lp_cuda_basis(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    int count = node->inputs[1]->cols;
    dim3 block = lp_row_block(count);
    LP_LAUNCH(run, basis_kernel, lp_blocks(lp_cuda_largest(run, out), block.y), block, 0, run->shard,
              lp_cuda_rows_of(out), count, LP_INPUT_AS(double, 0), LP_INPUT_AS(double, 1), LP_OUTPUT(0));
}

template <int n>
__global__ void reflect_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int heads, int count, const float *x,
                               const float *u, float *y, int adds)
{
    int row = lp_row_here();
    if (row >= lp_rows_now(rows, shard))
        return;
    const float *turn = u + (size_t)row * 2 * count;
#pragma unroll 1
    for (int f = n * (int)threadIdx.x; f < count; f += n * (int)blockDim.x) {
        lp_floats<n> cosine = lp_read<n>(turn + f), sine = lp_read<n>(turn + count + f), yc, ys;
#pragma unroll 1
        for (int h = 0; h < heads; h++) {
            size_t c = ((size_t)row * heads + h) * 2 * count + f, s = c + count;
            lp_floats<n> xc = lp_read<n>(x + c), xs = lp_read<n>(x + s);
#pragma unroll
            for (int i = 0; i < n; i++) {
                yc.at[i] = xc.at[i] * cosine.at[i] + xs.at[i] * sine.at[i];
                ys.at[i] = xc.at[i] * sine.at[i] - xs.at[i] * cosine.at[i];
            }
            lp_write<n>(y + c, yc, adds);
            lp_write<n>(y + s, ys, adds);
        }
    }
}

void lp_cuda_reflect(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *value = node->inputs[0];
    int count = node->inputs[1]->cols / 2, heads = value->cols / (2 * count), largest = lp_cuda_largest(run, value);
    const float *x = LP_INPUT(0), *u = LP_INPUT(1);
    float *y = LP_OUTPUT(0);
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_rows rows = lp_cuda_rows_of(value);
    int adds = LP_ADDS(0), width = lp_width((uintptr_t)x | (uintptr_t)u | (uintptr_t)y, count);
    dim3 block = lp_row_block(count / width);
    lp_by_width(width, [&](auto by) {
        LP_LAUNCH(run, reflect_kernel<decltype(by)::value>, lp_blocks(largest, block.y), block, 0, shard, rows, heads,
                  count, x, u, y, adds);
    });
}

typedef struct reflect_gradient_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    int heads, count;
    const float *x, *u, *dy;
    float *dx, *du; /* each may be NULL */
    int dx_adds, du_adds;
} reflect_gradient_task;

/* dx before du, which may lie at the same place and is added to it then. */
template <int n> __global__ void reflect_gradient_kernel(reflect_gradient_task task)
{
    int row = lp_row_here(), count = task.count;
    if (row >= lp_rows_now(task.rows, task.shard))
        return;
    const size_t turn = (size_t)row * 2 * count;
#pragma unroll 1
    for (int f = n * (int)threadIdx.x; f < count; f += n * (int)blockDim.x) {
        lp_floats<n> cosine = lp_read<n>(task.u + turn + f), sine = lp_read<n>(task.u + turn + count + f);
        lp_floats<n> dcosine = {}, dsine = {};
#pragma unroll 1
        for (int h = 0; h < task.heads; h++) {
            size_t c = ((size_t)row * task.heads + h) * 2 * count + f, s = c + count;
            lp_floats<n> xc = lp_read<n>(task.x + c), xs = lp_read<n>(task.x + s), dc = lp_read<n>(task.dy + c);
            lp_floats<n> ds = lp_read<n>(task.dy + s), dxc, dxs;
#pragma unroll
            for (int i = 0; i < n; i++) {
                dcosine.at[i] += xc.at[i] * dc.at[i] - xs.at[i] * ds.at[i];
                dsine.at[i] += xs.at[i] * dc.at[i] + xc.at[i] * ds.at[i];
                dxc.at[i] = dc.at[i] * cosine.at[i] + ds.at[i] * sine.at[i];
                dxs.at[i] = dc.at[i] * sine.at[i] - ds.at[i] * cosine.at[i];
            }
            if (task.dx) {
                lp_write<n>(task.dx + c, dxc, task.dx_adds);
                lp_write<n>(task.dx + s, dxs, task.dx_adds);
            }
        }
        if (task.du) {
            lp_write<n>(task.du + turn + f, dcosine, task.du_adds);
            lp_write<n>(task.du + turn + count + f, dsine, task.du_adds);
        }
    }
}

void lp_cuda_reflect_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *x = node->inputs[0];
    reflect_gradient_task task = {};
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(x);
    task.count = node->inputs[1]->cols / 2;
    task.heads = x->cols / (2 * task.count);
    task.x = LP_INPUT(0);
    task.u = LP_INPUT(1);
    task.dy = LP_INPUT(2);
    task.dx = LP_OUTPUT(0);
    task.du = LP_OUTPUT(1);
    task.dx_adds = LP_ADDS(0);
    task.du_adds = LP_ADDS(1);
    uintptr_t pointers = (uintptr_t)task.x | (uintptr_t)task.u | (uintptr_t)task.dy;
    int width = lp_width(pointers | (uintptr_t)task.dx | (uintptr_t)task.du, task.count);
    dim3 block = lp_row_block(task.count / width);
    unsigned blocks = lp_blocks(lp_cuda_largest(run, x), block.y);
    lp_by_width(width,
                [&](auto by) { LP_LAUNCH(run, reflect_gradient_kernel<decltype(by)::value>, blocks, block, 0, task); });
}
