/* cuda_attention_at.cu: attention at a few positions (lp_attention_at), in fp32. A block takes a position and head. For
 * scores its warps divide the keys, and the lanes the columns; for sums of values a thread has a column and adds up the
 * keys in their order. */
#include "backend/cuda/cuda_attention_order.h"

typedef float real;
#define LP_ROW_LANES 32
#include "formula/softmax_row.h"

namespace
{

enum { THREADS = 512 };

typedef struct at_task {
    const lp_cuda_shard *shard;
    lp_cuda_bounds bounds;
    const int32_t *positions;
    lp_cuda_rows rows;             /* of the positions */
    int heads, cols, width, extra; /* columns of a head, of a row of keys, of the basis */
    float scale;
    const float *query, *key, *value, *time_query, *basis;
    float *out, *time_out;
} at_task;

/* The lane's part of a dot product. */
__device__ __forceinline__ float lane_dot(const float *x, const float *y, int count)
{
    float sum = 0;
#pragma unroll 4
    for (int c = (int)threadIdx.x % 32; c < count; c += 32)
        sum += x[c] * y[c];
    return sum;
}

__global__ void __launch_bounds__(THREADS, 3) attention_at_kernel(const __grid_constant__ at_task task)
{
    LP_SHARED(float, scores); /* [longest] */
    int lane = (int)threadIdx.x % 32, a = (int)blockIdx.x, head = (int)blockIdx.y;
    int cols = task.cols, extra = task.extra, width = task.width;
    if (a >= lp_rows_now(task.rows, task.shard))
        return;
    int last = task.positions[a], first = task.bounds.start[last], keys = last - first + 1;
    int64_t row = (int64_t)a * task.heads + head, key = (int64_t)first * width;
    key += width > cols ? head * cols : 0; /* 0: shared by all heads */
    const float *basis = task.basis + (int64_t)first * extra;
#pragma unroll 2
    for (int i = (int)threadIdx.x / 32; i < keys; i += THREADS / 32) {
        float sum = lane_dot(task.query + row * cols, task.key + key + (int64_t)i * width, cols);
        sum = lp_warp_sum(sum + lane_dot(task.time_query + row * extra, basis + (int64_t)i * extra, extra));
        if (lane == 0)
            scores[i] = task.scale * sum;
    }
    __syncthreads();
    float log_sum = lp_log_sum_exp_row(scores, keys, lane);
    for (int c = (int)threadIdx.x; c < cols + extra; c += THREADS) {
        bool of_time = c >= cols;
        const float *from = of_time ? basis + (c - cols) : task.value + key + c;
        int stride = of_time ? extra : width;
        float sum = 0;
#pragma unroll 8
        for (int i = 0; i < keys; i++)
            sum += expf(scores[i] - log_sum) * from[(int64_t)i * stride];
        *(of_time ? task.time_out + row * extra + (c - cols) : task.out + row * cols + c) = sum;
    }
}

} // namespace

void lp_cuda_attention_at(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *query = node->inputs[0];
    int heads = node->attributes.heads, cols = query->cols / heads, width = node->inputs[1]->cols;
    int extra = node->inputs[4] ? node->inputs[4]->cols : 0, positions = lp_cuda_largest(run, query);
    size_t longest = (size_t)run->run->plan->largest.longest;
    float scale = (float)node->attributes.scale;
    const int32_t *at = LP_INPUT_AS(int32_t, 5);
    lp_cuda_bounds bounds = lp_cuda_bounds_of(run);
    lp_cuda_rows rows = lp_cuda_rows_of(query);
    at_task task = {run->shard,  bounds,      at,           rows,        heads,       cols,
                    width,       extra,       scale,        LP_INPUT(0), LP_INPUT(1), LP_INPUT(2),
                    LP_INPUT(3), LP_INPUT(4), LP_OUTPUT(0), LP_OUTPUT(2)};
    LP_LAUNCH(run, attention_at_kernel, dim3((unsigned)positions, (unsigned)heads), THREADS, longest * sizeof(float),
              task);
}
