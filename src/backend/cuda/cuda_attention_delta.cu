/* cuda_attention_delta.cu: what the gradient of attention needs of every query and head before it starts: the
 * log-sum-exp, and delta = dout . out + dtime_out . time_out - dlse (cuda_attention_gradient.cu).
 */
#include "backend/cuda/cuda_attention.h"
#include "backend/cuda/cuda_rows.h"

namespace
{

enum { THREADS = 256 };

/* Part of the dot product of rows of out and dout that one of 8 threads computes. dout is rounded as in dp, so that the
 * dscores of a row, which sum to 0, leave less error. */
template <lp_precision precision> __device__ __forceinline__ float rounded(float x)
{
    return precision == LP_PRECISION_BF16   ? tile_round_bf16(x)
           : precision == LP_PRECISION_TF32 ? tile_truncate_tf32(x)
                                            : x;
}

/* `vector` numbers are read together, and 4 times that many loads are on their way at once. bf16: dout is a copy, and out where
 * out_copy is not NULL. */
template <lp_precision precision, int vector>
__device__ __forceinline__ float dot_by(const float *dout, const float *out, const uint16_t *out_copy, int cols)
{
    constexpr bool bf16 = precision == LP_PRECISION_BF16;
    constexpr int each = bf16 ? 4 : vector, together = 4;
    float sum = 0;
#pragma unroll 1
    for (int first = each * ((int)threadIdx.x & 7); first < cols; first += 8 * each * together) {
        float x[together][each], y[together][each];
#pragma unroll
        for (int n = 0; n < together; n++)
#pragma unroll
            for (int k = 0; k < each; k += vector) {
                int c = first + 8 * each * n + k, at = min(c, cols - vector); /* no branch that waits for the load */
                lp_vector<vector> both[2] = {
                    bf16 ? lp_vector_load_bf16<vector>((const uint16_t *)dout + at) : lp_vector_load<vector>(dout + at),
                    bf16 && out_copy ? lp_vector_load_bf16<vector>(out_copy + at) : lp_vector_load<vector>(out + at)};
#pragma unroll
                for (int i = 0; i < vector; i++) {
                    x[n][k + i] = c < cols ? both[0].at[i] : 0;
                    y[n][k + i] = both[1].at[i];
                }
            }
#pragma unroll
        for (int n = 0; n < together; n++)
#pragma unroll
            for (int k = 0; k < each; k++)
                sum += (bf16 ? x[n][k] : rounded<precision>(x[n][k])) * y[n][k]; /* copies are rounded */
    }
    return sum;
}

/* i: number of the token and head. */
template <lp_precision precision>
__device__ __forceinline__ float dot(const attention_task &task, int64_t i, const attention_part &part,
                                     const float *out, lp_cuda_copy out_copy, int cols, int vector)
{
    uint32_t token = (uint32_t)i / (uint32_t)task.heads, head = (uint32_t)i % (uint32_t)task.heads;
    const float *dout = part.from + (int64_t)token * part.stride + head * part.head_step;
    const uint16_t *second = attention_copy_at(out_copy, token, (int)head, cols).data;
    out += i * cols;
    return vector == 4   ? dot_by<precision, 4>(dout, out, second, cols)
           : vector == 2 ? dot_by<precision, 2>(dout, out, second, cols)
                         : dot_by<precision, 1>(dout, out, second, cols);
}

/* 8 threads for each token and head. */
template <lp_precision precision>
__global__ void __launch_bounds__(THREADS, 4)
    compute_delta(const __grid_constant__ attention_task task, int vector, int time_vector)
{
    lp_pdl_trigger();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) >> 3;
    bool valid = i < (int64_t)task.shard->rows[task.rows_of] * task.heads;
    float sum = 0;
    if (valid) {
        sum = dot<precision>(task, i, task.queries[3], task.out, {}, task.head_dim, vector);
        if (task.basis_dim)
            sum += dot<precision>(task, i, task.queries[2], task.time_out, task.time_out_copy, task.basis_dim,
                                  time_vector);
    }
    for (int offset = 4; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (valid && (threadIdx.x & 7) == 0)
        task.row_stats[i] = make_float2(task.lse[i] * TILE_LOG2_E, (sum - (task.dlse ? task.dlse[i] : 0)) * task.scale);
}

template <lp_precision precision> void launch(const lp_cuda_run *run, const attention_task &task, int64_t tokens)
{
    auto vector_of = [](const float *x, const float *y, int cols) {
        int vector = 4;
        while (!attention_aligned(x, cols, vector) || !attention_aligned(y, cols, vector))
            vector /= 2;
        return vector;
    };
    LP_LAUNCH(run, (compute_delta<precision>), lp_blocks(tokens * task.heads, THREADS / 8), THREADS, 0, task,
              vector_of(task.queries[3].from, task.out, task.head_dim),
              vector_of(task.queries[2].from, task.time_out, task.basis_dim));
}

} // namespace

void attention_delta(const lp_cuda_run *run, const attention_task *task, int64_t tokens)
{
    if (tile_bf16(run))
        launch<LP_PRECISION_BF16>(run, *task, tokens);
    else if (tile_tensor(run))
        launch<LP_PRECISION_TF32>(run, *task, tokens);
    else
        launch<LP_PRECISION_FP32>(run, *task, tokens);
}
