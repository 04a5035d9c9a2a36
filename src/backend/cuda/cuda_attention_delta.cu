/* cuda_attention_delta.cu: what the gradient of attention needs of every query and head before it starts: the
 * log-sum-exp, and delta = dout . out + dtime_out . time_out - dlse (cuda_attention_gradient.cu).
 */
#include "backend/cuda/cuda_attention.h"
#include "backend/cuda/cuda_rows.h"

namespace
{

enum { THREADS = 256 };

/* dout as dp reads it, so that the dscores of a row, which sum to 0, leave less error. Copies are rounded. */
template <lp_precision precision> __device__ __forceinline__ float rounded(float x)
{
    return precision == LP_PRECISION_TF32 ? tile_truncate_tf32(x) : x;
}

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

/* Part of the dot product of rows of dout and out that one of 8 threads computes. bf16: dout is a copy with zeros
 * behind its columns. together: groups of columns whose loads are under way at once. */
template <lp_precision precision, int together, int vector>
__device__ __forceinline__ float dot_by(const float *dout, const float *out, const uint16_t *out_copy, int cols)
{
    constexpr bool bf16 = precision == LP_PRECISION_BF16;
    float sum = 0;
#pragma unroll 1
    for (int first = 8 * ((int)threadIdx.x & 7); first < cols; first += 64 * together) {
        float x[together][8], y[together][8];
#pragma unroll
        for (int n = 0; n < together; n++) {
            load_eight<bf16 ? 8 : vector>(x[n], dout, bf16 ? (const uint16_t *)dout : NULL, first + 64 * n, cols);
            load_eight<vector>(y[n], out, out_copy, first + 64 * n, cols);
        }
#pragma unroll
        for (int n = 0; n < together; n++)
#pragma unroll
            for (int i = 0; i < 8; i++)
                sum += first + 64 * n + (bf16 ? 0 : i) < cols ? rounded<precision>(x[n][i]) * y[n][i] : 0;
    }
    return sum;
}

/* i: number of the token and head. */
template <lp_precision precision, int together>
__device__ __forceinline__ float dot(const attention_task &task, int64_t i, const attention_part &part,
                                     const float *out, lp_cuda_copy out_copy, int cols, int vector)
{
    uint32_t token = (uint32_t)i / (uint32_t)task.heads, head = (uint32_t)i % (uint32_t)task.heads;
    const float *dout = part.from + (int64_t)token * part.stride + head * part.head_step;
    const uint16_t *second = attention_copy_at(out_copy, task.heads, token, (int)head, cols).data;
    out += i * cols;
    if constexpr (precision == LP_PRECISION_BF16)
        if (vector == 8)
            return dot_by<precision, together, 8>(dout, NULL, second, cols);
    return vector == 4   ? dot_by<precision, together, 4>(dout, out, second, cols)
           : vector == 2 ? dot_by<precision, together, 2>(dout, out, second, cols)
                         : dot_by<precision, together, 1>(dout, out, second, cols);
}

/* 8 threads for each token and head. */
template <lp_precision precision>
__global__ void __launch_bounds__(THREADS, 5)
    compute_delta(const __grid_constant__ attention_task task, int vector, int time_vector)
{
    lp_pdl_trigger();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) >> 3;
    bool valid = i < (int64_t)task.shard->rows[task.rows_of] * task.heads;
    float sum = 0;
    if (valid) {
        sum = dot<precision, 1>(task, i, task.queries[3], task.out, {}, task.head_dim, vector);
        if (task.basis_dim)
            sum += dot<precision, 2>(task, i, task.queries[2], task.time_out, task.time_out_copy, task.basis_dim,
                                     time_vector);
    }
    for (int offset = 4; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (valid && (threadIdx.x & 7) == 0)
        task.row_stats[i] = make_float2(task.lse[i] * TILE_LOG2_E, sum - (task.dlse ? task.dlse[i] : 0));
}

template <lp_precision precision> void launch(const lp_cuda_run *run, const attention_task &task, int64_t tokens)
{
    constexpr bool bf16 = precision == LP_PRECISION_BF16; /* dout is a copy */
    auto vector_of = [](const float *x, const float *y, int cols) {
        int vector = 4;
        while (!(bf16 || attention_aligned(x, cols, vector)) || !attention_aligned(y, cols, vector))
            vector /= 2;
        return vector;
    };
    lp_cuda_copy copy = task.time_out_copy;
    LP_LAUNCH(run, (compute_delta<precision>), lp_blocks(tokens * task.heads, THREADS / 8), THREADS, 0, task,
              vector_of(task.queries[3].from, task.out, task.head_dim),
              copy.data && (task.basis_dim + copy.gap) % 8 == 0
                  ? 8
                  : vector_of(task.queries[2].from, copy.data ? NULL : task.time_out, task.basis_dim));
}

} // namespace

void attention_delta(const lp_cuda_run *run, const attention_task *task, int64_t tokens)
{
    attention_with_shape<true>(run, task, [&](auto shape) { launch<decltype(shape)::precision>(run, *task, tokens); });
}
