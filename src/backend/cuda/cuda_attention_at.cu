/* cuda_attention_at.cu: attention at a few positions (lp_attention_at), in fp32. A block takes a position and the heads
 * that share its keys, up to four; its warps divide the keys, and the lanes the columns. It reads the keys twice, for
 * scores and for sums of values; positions share nothing. */
#include "backend/cuda/cuda_attention_order.h"
#include "backend/cuda/cuda_rows.h"

namespace
{

enum { WARPS = 16, MOST_HEADS = 4 /* of a block */ };

typedef struct at_task {
    const lp_cuda_shard *shard;
    lp_cuda_bounds bounds;
    const int32_t *positions;
    lp_cuda_rows rows;             /* of the positions */
    int heads, cols, width, extra; /* columns of a head, of a row of keys, of the basis */
    int group;                     /* heads of a block */
    int longest;                   /* tokens of a segment */
    float scale;
    const float *query, *key, *value, *time_query, *basis;
    float *out, *time_out;
} at_task;

/* Adds the lane's part of the products of `group` vectors x with a row to sum. */
template <int n>
__device__ void add_products(float (&sum)[MOST_HEADS], int group, const float *x, const float *row, int cols)
{
#pragma unroll 2
    for (int c = (int)threadIdx.x % 32 * n; c < cols; c += 32 * n) {
        lp_vector<n> some = lp_vector_load<n>(row + c);
#pragma unroll
        for (int g = 0; g < MOST_HEADS; g++) {
            if (g == group)
                break;
            lp_vector<n> mine = lp_vector_load<n>(x + g * cols + c);
#pragma unroll
            for (int j = 0; j < n; j++)
                sum[g] += mine.at[j] * some.at[j];
        }
    }
}

/* out [group x cols] = sum of probability times row, over `keys` rows; probability [group x longest]. partial [WARPS x
 * group x 32n] is shared memory. */
template <int n>
__device__ void sum_rows(const float *probability, int longest, int group, const float *rows, int stride, int cols,
                         int keys, float *partial, float *out)
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int from = 0; from < cols; from += 32 * n) {
        lp_vector<n> sum[MOST_HEADS] = {};
        int column = from + lane * n;
#pragma unroll 8
        for (int i = warp; i < keys && column < cols; i += WARPS) {
            lp_vector<n> row = lp_vector_load<n>(rows + (int64_t)i * stride + column);
#pragma unroll
            for (int g = 0; g < MOST_HEADS; g++)
#pragma unroll
                for (int j = 0; j < n && g < group; j++)
                    sum[g].at[j] += probability[g * longest + i] * row.at[j];
        }
#pragma unroll
        for (int g = 0; g < MOST_HEADS; g++)
            if (g < group)
                *(lp_vector<n> *)&partial[((warp * group + g) * 32 + lane) * n] = sum[g];
        __syncthreads();
        for (int i = (int)threadIdx.x; i < group * 32 * n; i += WARPS * 32) {
            int g = i / (32 * n), c = from + i % (32 * n);
            float all = 0;
            for (int w = 0; w < WARPS; w++)
                all += partial[w * group * 32 * n + i];
            if (c < cols)
                out[g * cols + c] = all;
        }
        __syncthreads();
    }
}

template <int n> __global__ void __launch_bounds__(WARPS * 32) attention_at_kernel(const __grid_constant__ at_task task)
{
    LP_SHARED(float, partial);
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, a = (int)blockIdx.x, longest = task.longest;
    int group = task.group, head = (int)blockIdx.y * group;
    float *scores = partial + WARPS * group * 32 * n; /* [group x longest] */
    if (a >= lp_rows_now(task.rows, task.shard))
        return;
    int last = task.positions[a], first = task.bounds.start[last], keys = last - first + 1;
    int column = task.width > task.cols ? head * task.cols : 0; /* 0: shared by all heads */
    int64_t row = (int64_t)a * task.heads + head, key = (int64_t)first * task.width + column;
    const float *basis = task.basis + (int64_t)first * task.extra;
#pragma unroll 2
    for (int i = warp; i < keys; i += WARPS) {
        float sum[MOST_HEADS] = {};
        add_products<n>(sum, group, task.query + row * task.cols, task.key + key + (int64_t)i * task.width, task.cols);
        add_products<n>(sum, group, task.time_query + row * task.extra, basis + (int64_t)i * task.extra, task.extra);
#pragma unroll
        for (int g = 0; g < MOST_HEADS; g++) {
            float score = task.scale * lp_warp_sum(sum[g]);
            if (lane == 0 && g < group)
                scores[g * longest + i] = score;
        }
    }
    __syncthreads();
    if (warp < group) {
        float *mine = scores + warp * longest, log_sum = lp_row_lse(mine, keys, lane);
        for (int i = lane; i < keys; i += 32)
            mine[i] = expf(mine[i] - log_sum);
    }
    __syncthreads();
    sum_rows<n>(scores, longest, group, task.value + key, task.width, task.cols, keys, partial,
                task.out + row * task.cols);
    sum_rows<n>(scores, longest, group, basis, task.extra, task.extra, keys, partial, task.time_out + row * task.extra);
}

} // namespace

void lp_cuda_attention_at(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *query = node->inputs[0];
    int heads = node->attributes.heads, cols = query->cols / heads, width = node->inputs[1]->cols;
    int extra = node->inputs[4] ? node->inputs[4]->cols : 0, positions = lp_cuda_largest(run, query);
    int group = width > cols || heads % 2 ? 1 : heads % 4 ? 2 : 4; /* heads that share the keys */
    int longest = run->run->plan->largest.longest;
    float scale = (float)node->attributes.scale;
    const int32_t *at = LP_INPUT_AS(int32_t, 5);
    lp_cuda_bounds bounds = lp_cuda_bounds_of(run);
    lp_cuda_rows rows = lp_cuda_rows_of(query);
    at_task task = {run->shard,  bounds,      at,          rows,        heads,        cols,
                    width,       extra,       group,       longest,     scale,        LP_INPUT(0),
                    LP_INPUT(1), LP_INPUT(2), LP_INPUT(3), LP_INPUT(4), LP_OUTPUT(0), LP_OUTPUT(2)};
    uintptr_t pointers = (uintptr_t)task.query | (uintptr_t)task.key | (uintptr_t)task.value |
                         (uintptr_t)task.time_query | (uintptr_t)task.basis;
    lp_with_vector_width(lp_vector_width(pointers, cols | extra), [&](auto by) {
        constexpr int n = decltype(by)::value;
        size_t floats = (size_t)group * (size_t)(WARPS * 32 * n + longest);
        LP_LAUNCH(run, attention_at_kernel<n>, dim3((unsigned)positions, (unsigned)(heads / group)), WARPS * 32,
                  floats * sizeof(float), task);
    });
}
