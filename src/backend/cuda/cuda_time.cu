/* cuda_time.cu: harmonics (log periods to angular frequencies w), basis u(t) = (cos wt, sin wt) and reflect.
 *
 * reflect multiplies each pair (x_c, x_s) by the reflection M(t) = [cos wt, sin wt; sin wt, -cos wt], so that products
 * of reflected vectors depend on lags. Phases are double until whole cycles are subtracted; frequencies and their
 * gradients are double. The gradient of a basis is a reduction over rows (cuda_reduction.cu).
 */
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
    LP_LAUNCH(run, harmonics_kernel, lp_blocks(size, 128), 128, 0, LP_INPUT(0), size, node->attributes.harmonics,
              LP_OUTPUT_AS(double, 0));
}

__global__ void harmonics_gradient_kernel(const double *frequency, const double *dfrequency, int periods, int count,
                                          float *dlog_period, int accumulate)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= periods)
        return;
    double sum = 0;
    for (int j = 0; j < count; j++)
        sum -= frequency[i * count + j] * dfrequency[i * count + j];
    lp_store(&dlog_period[i], (float)sum, accumulate);
}

void lp_cuda_harmonics_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int periods = node->outputs[0]->cols;
    LP_LAUNCH(run, harmonics_gradient_kernel, lp_blocks(periods, 128), 128, 0, LP_INPUT_AS(double, 0),
              LP_INPUT_AS(double, 1), periods, node->attributes.harmonics, LP_OUTPUT(0), LP_ADDS(0));
}

__global__ void basis_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int count, const double *time,
                             const double *frequency, float *u)
{
    int row = lp_row_index();
    if (row >= lp_rows_now(rows, shard))
        return;
    double at = time[row];
    float *here = u + (size_t)row * 2 * count;
#pragma unroll 1
    for (int f = (int)threadIdx.x; f < count; f += (int)blockDim.x) {
        double cycles = at * frequency[f] * (1 / TWO_PI);
        float half_cycles = (float)(2 * (cycles - rint(cycles))), sine, cosine;
        sincospif(half_cycles, &sine, &cosine);
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

typedef struct reflect_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    int heads, count;
    const float *x, *u, *dy; /* x: only of the gradient */
    float *dx, *du;          /* each can be NULL */
    int dx_accumulate, du_accumulate;
} reflect_task;

/* dx = M dy, and du if `gradient`. reflect has its input as dy and its output as dx. Stores dx before du: both can
 * be the same matrix, and du then accumulates. */
template <int n, bool gradient> __global__ void reflect_kernel(reflect_task task)
{
    int row = lp_row_index(), count = task.count;
    if (row >= lp_rows_now(task.rows, task.shard))
        return;
    const size_t angle = (size_t)row * 2 * count;
#pragma unroll 1
    for (int f = n * (int)threadIdx.x; f < count; f += n * (int)blockDim.x) {
        lp_vector<n> cosine = lp_vector_load<n>(task.u + angle + f),
                     sine = lp_vector_load<n>(task.u + angle + count + f);
        lp_vector<n> dcosine = {}, dsine = {};
#pragma unroll 1
        for (int h = 0; h < task.heads; h++) {
            size_t c = ((size_t)row * task.heads + h) * 2 * count + f, s = c + count;
            lp_vector<n> dc = lp_vector_load<n>(task.dy + c), ds = lp_vector_load<n>(task.dy + s), dxc, dxs;
            if constexpr (gradient) {
                lp_vector<n> xc = lp_vector_load<n>(task.x + c), xs = lp_vector_load<n>(task.x + s);
#pragma unroll
                for (int i = 0; i < n; i++) {
                    dcosine.at[i] += xc.at[i] * dc.at[i] - xs.at[i] * ds.at[i];
                    dsine.at[i] += xs.at[i] * dc.at[i] + xc.at[i] * ds.at[i];
                }
            }
#pragma unroll
            for (int i = 0; i < n; i++) {
                dxc.at[i] = dc.at[i] * cosine.at[i] + ds.at[i] * sine.at[i];
                dxs.at[i] = dc.at[i] * sine.at[i] - ds.at[i] * cosine.at[i];
            }
            if (!gradient || task.dx) {
                lp_vector_store<n>(task.dx + c, dxc, task.dx_accumulate);
                lp_vector_store<n>(task.dx + s, dxs, task.dx_accumulate);
            }
        }
        if (gradient && task.du) {
            lp_vector_store<n>(task.du + angle + f, dcosine, task.du_accumulate);
            lp_vector_store<n>(task.du + angle + count + f, dsine, task.du_accumulate);
        }
    }
}

template <bool gradient> static void launch_reflect(const lp_node *node, const lp_cuda_run *run, reflect_task task)
{
    const lp_value *x = node->inputs[0];
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(x);
    task.count = node->inputs[1]->cols / 2;
    task.heads = x->cols / (2 * task.count);
    task.u = LP_INPUT(1);
    task.dx = LP_OUTPUT(0);
    task.dx_accumulate = LP_ADDS(0);
    uintptr_t pointers = (uintptr_t)task.x | (uintptr_t)task.u | (uintptr_t)task.dy;
    int width = lp_vector_width(pointers | (uintptr_t)task.dx | (uintptr_t)task.du, task.count);
    dim3 block = lp_row_block(task.count / width);
    unsigned blocks = lp_blocks(lp_cuda_largest(run, x), block.y);
    lp_with_vector_width(width, [&](auto by) {
        LP_LAUNCH(run, (reflect_kernel<decltype(by)::value, gradient>), blocks, block, 0, task);
    });
}

void lp_cuda_reflect(const lp_node *node, const lp_cuda_run *run)
{
    reflect_task task = {};
    task.dy = LP_INPUT(0);
    launch_reflect<false>(node, run, task);
}

void lp_cuda_reflect_gradient(const lp_node *node, const lp_cuda_run *run)
{
    reflect_task task = {};
    task.x = LP_INPUT(0);
    task.dy = LP_INPUT(2);
    task.du = LP_OUTPUT(1);
    task.du_accumulate = LP_ADDS(1);
    launch_reflect<true>(node, run, task);
}
