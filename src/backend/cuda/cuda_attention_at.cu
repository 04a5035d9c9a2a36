/* cuda_attention_at.cu: attention at a few positions (lp_attention_at), in fp32. A block takes a position and the heads that share its
 * keys, up to four; its warps divide the keys, and the lanes the columns. It reads the keys twice, for scores and for sums of values;
 * positions share nothing. */
#include "backend/cuda/cuda_rows.h"

namespace
{

/* KEYS: scored by a warp at once. */
enum { WARPS = 16, KEYS = 2 };

typedef struct at_task {
    const lp_cuda_shard *shard;
    const int32_t *segment, *positions;
    lp_cuda_rows rows;             /* of the positions */
    int heads, cols, width, extra; /* columns of a head, of a row of keys, of the basis */
    int longest;                   /* tokens of a segment */
    float scale;
    const float *query, *key, *value, *time_query, *basis;
    float *out, *time_out;
} at_task;

/* The segment of a token, by a warp: one round of loads instead of a search, whose loads wait for each other. */
__device__ int segment_of(const at_task *task, int token)
{
    int before = 0;
    for (int s = (int)threadIdx.x % 32; s < task->shard->segments; s += 32)
        before += task->segment[s + 1] <= token;
    return lp_warp_sum(before);
}

/* Adds the lane's part of the products of `group` vectors x with `count` rows, at most KEYS, to sum. */
template <int n, int group>
__device__ void add_products(float sum[KEYS][group], const float *x, const float *rows, int stride, int cols, int count)
{
#pragma unroll 2
    for (int c = (int)threadIdx.x % 32 * n; c < cols; c += 32 * n) {
        lp_vector<n> row[KEYS];
#pragma unroll
        for (int k = 0; k < KEYS; k++) /* beyond the last row that one again: its sums are not used */
            row[k] = lp_vector_load<n>(rows + (int64_t)(k < count ? k : count - 1) * stride + c);
#pragma unroll
        for (int g = 0; g < group; g++) {
            lp_vector<n> mine = lp_vector_load<n>(x + g * cols + c);
#pragma unroll
            for (int k = 0; k < KEYS; k++)
#pragma unroll
                for (int j = 0; j < n; j++)
                    sum[k][g] += mine.at[j] * row[k].at[j];
        }
    }
}

/* The softmax of a row, in place, by a warp. */
__device__ void softmax_row(float *row, int count)
{
    int lane = (int)threadIdx.x % 32;
    float log_sum = lp_row_lse(row, count, lane);
    for (int i = lane; i < count; i += 32)
        row[i] = expf(row[i] - log_sum);
}

/* out [group x cols] = sum of probability times row, over `keys` rows; probability [group x longest]. partial [WARPS x group x 32n] is
 * shared memory. */
template <int n, int group>
__device__ void sum_rows(const float *probability, int longest, const float *rows, int stride, int cols, int keys,
                         float *partial, float *out)
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int from = 0; from < cols; from += 32 * n) {
        lp_vector<n> sum[group] = {};
        int column = from + lane * n;
#pragma unroll 8
        for (int i = warp; i < keys && column < cols; i += WARPS) {
            lp_vector<n> row = lp_vector_load<n>(rows + (int64_t)i * stride + column);
#pragma unroll
            for (int g = 0; g < group; g++)
#pragma unroll
                for (int j = 0; j < n; j++)
                    sum[g].at[j] += probability[g * longest + i] * row.at[j];
        }
#pragma unroll
        for (int g = 0; g < group; g++)
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

template <int n, int group>
__global__ void __launch_bounds__(WARPS * 32) attention_at_kernel(const __grid_constant__ at_task task)
{
    LP_SHARED(float, partial);
    float *scores = partial + WARPS * group * 32 * n; /* [group x longest] */
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, head = (int)blockIdx.y * group;
    int a = (int)blockIdx.x, longest = task.longest;
    if (a >= lp_rows_now(task.rows, task.shard))
        return;
    int last = task.positions[a], first = task.segment[segment_of(&task, last)], keys = last - first + 1;
    int column = task.width > task.cols ? head * task.cols : 0; /* 0: shared by all heads */
    int64_t row = (int64_t)a * task.heads + head, key = (int64_t)first * task.width + column;
    const float *basis = task.basis + (int64_t)first * task.extra;
    for (int i = warp * KEYS; i < keys; i += WARPS * KEYS) {
        float sum[KEYS][group] = {};
        add_products<n>(sum, task.query + row * task.cols, task.key + key + (int64_t)i * task.width, task.width,
                        task.cols, keys - i);
        add_products<n>(sum, task.time_query + row * task.extra, basis + (int64_t)i * task.extra, task.extra,
                        task.extra, keys - i);
#pragma unroll
        for (int k = 0; k < KEYS; k++)
#pragma unroll
            for (int g = 0; g < group; g++) {
                float score = task.scale * lp_warp_sum(sum[k][g]);
                if (lane == 0 && i + k < keys)
                    scores[g * longest + i + k] = score;
            }
    }
    __syncthreads();
    if (warp < group)
        softmax_row(scores + warp * longest, keys);
    __syncthreads();
    sum_rows<n, group>(scores, longest, task.value + key, task.width, task.cols, keys, partial,
                       task.out + row * task.cols);
    sum_rows<n, group>(scores, longest, basis, task.extra, task.extra, keys, partial, task.time_out + row * task.extra);
}

template <int group> void launch(const lp_cuda_run *run, const at_task &task, int positions)
{
    uintptr_t pointers = (uintptr_t)task.query | (uintptr_t)task.key | (uintptr_t)task.value |
                         (uintptr_t)task.time_query | (uintptr_t)task.basis;
    lp_with_vector_width(lp_vector_width(pointers, task.cols | task.extra), [&](auto by) {
        constexpr int n = decltype(by)::value;
        size_t floats = (size_t)WARPS * group * 32 * n + (size_t)group * (size_t)task.longest;
        LP_LAUNCH(run, (attention_at_kernel<n, group>), dim3((unsigned)positions, (unsigned)(task.heads / group)),
                  WARPS * 32, floats * sizeof(float), task);
    });
}

} // namespace

void lp_cuda_attention_at(const lp_node *node, const lp_cuda_run *run)
{
    at_task task = {};
    int positions = lp_cuda_largest(run, node->inputs[0]);
    task.shard = run->shard;
    task.segment = run->segment;
    task.positions = LP_INPUT_AS(int32_t, 5);
    task.rows = lp_cuda_rows_of(node->inputs[0]);
    task.heads = node->attributes.heads;
    task.cols = node->inputs[0]->cols / task.heads;
    task.width = node->inputs[1]->cols;
    task.extra = node->inputs[4] ? node->inputs[4]->cols : 0;
    task.longest = run->run->plan->largest.longest;
    task.scale = (float)node->attributes.scale;
    task.query = LP_INPUT(0);
    task.key = LP_INPUT(1);
    task.value = LP_INPUT(2);
    task.time_query = LP_INPUT(3);
    task.basis = LP_INPUT(4);
    task.out = LP_OUTPUT(0);
    task.time_out = LP_OUTPUT(2);
    bool shared = task.width == task.cols;
    if (shared && task.heads % 4 == 0)
        launch<4>(run, task, positions);
    else if (shared && task.heads % 2 == 0)
        launch<2>(run, task, positions);
    else
        launch<1>(run, task, positions);
}
