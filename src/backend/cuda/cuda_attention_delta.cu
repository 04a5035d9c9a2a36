/* cuda_attention_delta.cu: what the gradient of attention needs of every query and head before it starts: the
 * log-sum-exp, and delta = dout . out + dtime_out . time_out - dlse (cuda_attention_gradient.cu).
 */
#include "backend/cuda/cuda_attention.h"
#include "backend/cuda/cuda_rows.h"

namespace
{

enum { THREADS = 256 };

/* Loads 8 numbers from column c on, `vector` together, of a row of `cols`, or of its copy in bf16 if that is not NULL.
 * Addresses stay in the row instead of a condition, which would wait for the load; numbers beyond it are undefined,
 * but zeros in a copy that is loaded by 8. */
template <int vector>
__device__ __forceinline__ void load_eight(float (&x)[8], const float *from, const uint16_t *copy, int c, int cols)
{
#pragma unroll
    for (int k = 0; k < 8; k += vector) {
        int at = vector == 8 ? min(c, (cols - 1) / 8 * 8) : min(c + k, cols - vector);
        lp_vector<vector> some;
        if (vector == 8 || copy)
            some = lp_vector_load_bf16<vector>(copy + at);
        else
            some = lp_vector_load<vector>(from + at);
#pragma unroll
        for (int i = 0; i < vector; i++)
            x[k + i] = some.at[i];
    }
}

/* Part of the dot product of rows of dout and out that one of 8 threads computes; i: number of the token and head.
 * bf16: dout is a copy with zeros behind its columns. vector: numbers of out, or of its copy, that are loaded at once,
 * and of dout in other precisions. together: groups of columns whose loads are under way at once. tf32: dout is truncated
 * as in dp, so that the dscores of a row, which sum to 0, leave less error. */
template <lp_precision precision, int together, int vector>
__device__ __forceinline__ float dot(const attention_task &task, int64_t i, const attention_part &part,
                                     const float *out, lp_cuda_copy out_copy, int cols)
{
    constexpr bool bf16 = precision == LP_PRECISION_BF16;
    uint32_t token = (uint32_t)i / (uint32_t)task.heads, head = (uint32_t)i % (uint32_t)task.heads;
    const float *dout = part.from + (int64_t)token * part.stride + head * part.head_step;
    const uint16_t *copy = attention_copy_at(out_copy, task.heads, token, (int)head, cols).data;
    float sum = 0;
#pragma unroll 1
    for (int first = 8 * ((int)threadIdx.x & 7); first < cols; first += 64 * together) {
        float x[together][8], y[together][8];
#pragma unroll
        for (int n = 0; n < together; n++) {
            load_eight<bf16 ? 8 : vector>(x[n], dout, bf16 ? (const uint16_t *)dout : NULL, first + 64 * n, cols);
            load_eight<vector>(y[n], out + i * cols, copy, first + 64 * n, cols);
        }
#pragma unroll
        for (int n = 0; n < together; n++)
#pragma unroll
            for (int k = 0; k < 8; k++) {
                float dx = precision == LP_PRECISION_TF32 ? tile_truncate_tf32(x[n][k]) : x[n][k];
                sum += first + 64 * n + (bf16 ? 0 : k) < cols ? dx * y[n][k] : 0;
            }
    }
    return sum;
}

/* 8 threads for each token and head. vector, time_vector: of out and of time_out. */
template <lp_precision precision, int vector, int time_vector>
__global__ void __launch_bounds__(THREADS, 5) compute_delta(const __grid_constant__ attention_task task)
{
    lp_pdl_trigger();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) >> 3;
    bool valid = i < (int64_t)task.shard->rows[task.rows_of] * task.heads;
    float sum = 0;
    if (valid)
        sum =
            dot<precision, 1, vector>(task, i, task.queries[3], task.out, {}, task.head_dim) +
            dot<precision, 2, time_vector>(task, i, task.queries[2], task.time_out, task.time_out_copy, task.basis_dim);
    for (int offset = 4; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (valid && (threadIdx.x & 7) == 0)
        task.row_stats[i] = make_float2(task.lse[i] * TILE_LOG2_E, sum - (task.dlse ? task.dlse[i] : 0));
}

} // namespace

void attention_delta(const lp_cuda_run *run, const attention_task *task, int64_t tokens)
{
    const lp_cuda_copy &copy = task->time_out_copy;
    attention_with_shape<true>(run, task, [&](auto shape) {
        constexpr lp_precision precision = decltype(shape)::precision;
        constexpr int vector = decltype(shape)::bf16 ? 4 : 2, time_vector = 2 * vector;
        bool whole = copy.data ? (task->basis_dim + copy.gap) % 8 == 0 : time_vector == 4 || !task->basis_dim;
        bool aligned = task->aligned && whole && attention_aligned(task->out, task->head_dim, vector) &&
                       (copy.data || attention_aligned(task->time_out, task->basis_dim, 4));
        auto delta_kernel = aligned ? compute_delta<precision, vector, time_vector> : compute_delta<precision, 1, 1>;
        LP_LAUNCH(run, delta_kernel, lp_blocks(tokens * task->heads, THREADS / 8), THREADS, 0, *task);
    });
}
