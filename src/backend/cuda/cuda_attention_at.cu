/* cuda_attention_at.cu: attention at a few positions (lp_attention_at), in fp32. A block takes a position and a head; its warps divide the
 * keys, and the lanes the columns. Keys and values are read from the L2 cache: nothing is shared between positions. */
#include "backend/cuda/cuda_rows.h"

namespace
{

/* KEYS: scored by a warp at once. COLUMNS: of a pass over the values. MOST_BLOCKS: along the positions, of which there may be as many as
 * tokens in the largest shard. */
enum { WARPS = 8, KEYS = 4, LANE_COLUMNS = 4, COLUMNS = 32 * LANE_COLUMNS, MOST_BLOCKS = 1024 };

typedef struct at_task {
    const lp_cuda_shard *shard;
    const int32_t *segment, *positions;
    lp_cuda_rows rows;             /* of the positions */
    int heads, cols, width, extra; /* columns of a head, of a row of keys, of the basis */
    float scale;
    const float *query, *key, *value, *time_query, *basis;
    float *out, *time_out;
} at_task;

/* Adds the lane's part of the products of x with `count` <= KEYS rows to sum. */
__device__ void add_products(float sum[KEYS], const float *x, const float *rows, int stride, int cols, int count)
{
    for (int c = (int)threadIdx.x % 32; c < cols; c += 32) {
        float mine = x[c];
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            sum[k] += k < count ? mine * rows[(int64_t)k * stride + c] : 0;
    }
}

/* out [cols] = sum of probability times row, over `keys` rows. partial [WARPS x COLUMNS] is shared memory. */
__device__ void sum_rows(const float *probability, const float *rows, int stride, int cols, int keys, float *partial,
                         float *out)
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int from = 0; from < cols; from += COLUMNS) {
        float sum[LANE_COLUMNS] = {};
#pragma unroll 4
        for (int i = warp; i < keys; i += WARPS) {
            const float *row = rows + (int64_t)i * stride + from + lane;
#pragma unroll
            for (int k = 0; k < LANE_COLUMNS; k++)
                if (from + 32 * k + lane < cols)
                    sum[k] += probability[i] * row[32 * k];
        }
#pragma unroll
        for (int k = 0; k < LANE_COLUMNS; k++)
            partial[warp * COLUMNS + 32 * k + lane] = sum[k];
        __syncthreads();
        for (int c = (int)threadIdx.x; c < COLUMNS && from + c < cols; c += WARPS * 32) {
            float all = 0;
            for (int w = 0; w < WARPS; w++)
                all += partial[w * COLUMNS + c];
            out[from + c] = all;
        }
        __syncthreads();
    }
}

__global__ void __launch_bounds__(WARPS * 32) attention_at_kernel(const __grid_constant__ at_task task)
{
    LP_SHARED(float, partial); /* [WARPS x COLUMNS], then the scores of the longest segment */
    float *scores = partial + WARPS * COLUMNS;
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, head = (int)blockIdx.y;
    for (int a = (int)blockIdx.x; a < lp_rows_now(task.rows, task.shard); a += (int)gridDim.x) {
        int last = task.positions[a], first = task.segment[lp_segment_of(task.segment, task.shard->segments, last)];
        int keys = last - first + 1,
            column = task.width > task.cols ? head * task.cols : 0; /* 0: shared by all heads */
        int64_t row = (int64_t)a * task.heads + head, key = (int64_t)first * task.width + column;
        const float *basis = task.basis + (int64_t)first * task.extra;
        for (int i = warp * KEYS; i < keys; i += WARPS * KEYS) {
            float sum[KEYS] = {};
            add_products(sum, task.query + row * task.cols, task.key + key + (int64_t)i * task.width, task.width,
                         task.cols, keys - i);
            add_products(sum, task.time_query + row * task.extra, basis + (int64_t)i * task.extra, task.extra,
                         task.extra, keys - i);
#pragma unroll
            for (int k = 0; k < KEYS; k++) {
                sum[k] = lp_warp_sum(sum[k]);
                if (lane == k && i + k < keys)
                    scores[i + k] = task.scale * sum[k];
            }
        }
        __syncthreads();
        float log_sum = lp_row_lse(scores, keys, lane);
        __syncthreads();
        for (int i = (int)threadIdx.x; i < keys; i += WARPS * 32)
            scores[i] = expf(scores[i] - log_sum);
        __syncthreads();
        sum_rows(scores, task.value + key, task.width, task.cols, keys, partial, task.out + row * task.cols);
        sum_rows(scores, basis, task.extra, task.extra, keys, partial, task.time_out + row * task.extra);
    }
}

} // namespace

void lp_cuda_attention_at(const lp_node *node, const lp_cuda_run *run)
{
    at_task task = {};
    task.shard = run->shard;
    task.segment = run->segment;
    task.positions = LP_INPUT_AS(int32_t, 5);
    task.rows = lp_cuda_rows_of(node->inputs[0]);
    task.heads = node->attributes.heads;
    task.cols = node->inputs[0]->cols / task.heads;
    task.width = node->inputs[1]->cols;
    task.extra = node->inputs[4] ? node->inputs[4]->cols : 0;
    task.scale = (float)node->attributes.scale;
    task.query = LP_INPUT(0);
    task.key = LP_INPUT(1);
    task.value = LP_INPUT(2);
    task.time_query = LP_INPUT(3);
    task.basis = LP_INPUT(4);
    task.out = LP_OUTPUT(0);
    task.time_out = LP_OUTPUT(2);
    int rows = lp_cuda_largest(run, node->inputs[0]);
    size_t floats = WARPS * COLUMNS + (size_t)run->run->plan->largest.longest;
    LP_LAUNCH(run, attention_at_kernel, dim3((unsigned)(rows < MOST_BLOCKS ? rows : MOST_BLOCKS), (unsigned)task.heads),
              WARPS * 32, floats * sizeof(float), task);
}
