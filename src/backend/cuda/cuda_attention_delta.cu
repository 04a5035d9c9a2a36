/* cuda_attention_delta.cu: what the gradient of attention needs of every query and head before it starts: the
 * log-sum-exp, and delta = dout . out + dtime_out . time_out - dlse (cuda_attention_gradient.cu). Where bf16 has no
 * copies of dout and dtime_out, it makes them.
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

/* `vector` numbers are read together, and 4 times that many loads are on their way at once. bf16: reads the copies of dout
 * and out, where they are (copied, out_copied); without one of dout also stores the packed row of it, `padded` floats. */
template <lp_precision precision, int vector, bool copied, bool out_copied>
__device__ __forceinline__ float dot_by(const float *dout, const uint16_t *copy, const float *out,
                                        const uint16_t *out_copy, int cols, float *packed, int padded)
{
    constexpr bool bf16 = precision == LP_PRECISION_BF16;
    constexpr int each = bf16 ? 4 : vector, together = 4;
    int part = (int)threadIdx.x & 7, end = bf16 && !copied ? 2 * padded : cols;
    float sum = 0;
#pragma unroll 1
    for (int first = each * part; first < end; first += 8 * each * together) {
        float x[together][each], y[together][each];
#pragma unroll
        for (int n = 0; n < together; n++)
#pragma unroll
            for (int k = 0; k < each; k += vector) {
                int c = first + 8 * each * n + k, at = min(c, cols - vector); /* no branch that waits for the load */
                lp_vector<vector> both[2] = {
                    copied ? lp_vector_load_bf16<vector>(copy + at) : lp_vector_load<vector>(dout + at),
                    out_copied ? lp_vector_load_bf16<vector>(out_copy + at) : lp_vector_load<vector>(out + at)};
#pragma unroll
                for (int i = 0; i < vector; i++) {
                    x[n][k + i] = c < cols ? both[0].at[i] : 0;
                    y[n][k + i] = both[1].at[i];
                }
            }
#pragma unroll
        for (int n = 0; n < together; n++) {
#pragma unroll
            for (int k = 0; k < each; k++)
                sum += (copied ? x[n][k] : rounded<precision>(x[n][k])) * y[n][k]; /* copies are rounded */
            if constexpr (bf16 && !copied) {
                int c = first + 8 * each * n;
                if (c < end)
                    *(float2 *)(packed + c / 2) =
                        make_float2(tile_pack_bf16(x[n][0], x[n][1]), tile_pack_bf16(x[n][2], x[n][3]));
            }
        }
    }
    return sum;
}

struct yes {
    static constexpr bool value = true;
};
struct no {
    static constexpr bool value = false;
};

/* i: number of the token and head. packed: rows of dout in bf16, to be read or written. */
template <lp_precision precision>
__device__ __forceinline__ float dot(const attention_task &task, int64_t i, const float *dout, bool copied,
                                     const float *out, lp_cuda_copy out_copy, int cols, int vector,
                                     const attention_part &packed)
{
    dout += i * cols;
    out += i * cols;
    uint32_t token = (uint32_t)i / (uint32_t)task.heads, head = (uint32_t)i % (uint32_t)task.heads;
    int64_t at = (int64_t)token * packed.stride + head * packed.head_step;
    const uint16_t *copy = copied ? (const uint16_t *)(packed.from + at) : NULL;
    float *to = (float *)packed.from + at;
    const uint16_t *second = attention_copy_at(out_copy, token, (int)head * cols).data;
    auto by = [&](auto with_copy, auto with_second) {
        constexpr bool one = decltype(with_copy)::value, two = decltype(with_second)::value;
        return vector == 4   ? dot_by<precision, 4, one, two>(dout, copy, out, second, cols, to, packed.cols)
               : vector == 2 ? dot_by<precision, 2, one, two>(dout, copy, out, second, cols, to, packed.cols)
                             : dot_by<precision, 1, one, two>(dout, copy, out, second, cols, to, packed.cols);
    };
    if constexpr (precision == LP_PRECISION_BF16)
        return copy ? (second ? by(yes(), yes()) : by(yes(), no())) : second ? by(no(), yes()) : by(no(), no());
    else
        return by(no(), no());
}

/* 8 threads for each token and head. In bf16 the gradients are those of queries[2] and [3], which have copies or get them. */
template <lp_precision precision>
__global__ void __launch_bounds__(THREADS, 4) compute_delta(const __grid_constant__ attention_task task, int vector,
                                                            int time_vector, bool copied, bool time_copied)
{
    lp_pdl_trigger();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) >> 3;
    bool valid = i < (int64_t)task.shard->rows[task.rows_of] * task.heads;
    float sum = 0;
    if (valid) {
        sum = dot<precision>(task, i, task.dout, copied, task.out, {}, task.head_dim, vector, task.queries[3]);
        if (task.basis_dim)
            sum += dot<precision>(task, i, task.dtime_out, time_copied, task.time_out, task.time_out_copy,
                                  task.basis_dim, time_vector, task.queries[2]);
    }
    for (int offset = 4; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    if (valid && (threadIdx.x & 7) == 0)
        task.row_stats[i] = make_float2(task.lse[i] * TILE_LOG2_E, (sum - (task.dlse ? task.dlse[i] : 0)) * task.scale);
}

template <lp_precision precision>
void launch(const lp_cuda_run *run, const attention_task &task, int64_t tokens, bool copied, bool time_copied)
{
    auto vector_of = [](const float *x, const float *y, int cols) {
        int vector = 4;
        while (!attention_aligned(x, cols, vector) || !attention_aligned(y, cols, vector))
            vector /= 2;
        return vector;
    };
    LP_LAUNCH(run, (compute_delta<precision>), lp_blocks(tokens * task.heads, THREADS / 8), THREADS, 0, task,
              vector_of(task.dout, task.out, task.head_dim), vector_of(task.dtime_out, task.time_out, task.basis_dim),
              copied, time_copied);
}

} // namespace

void attention_delta(const lp_cuda_run *run, const attention_task *task, int64_t tokens, bool copied, bool time_copied)
{
    if (tile_bf16(run))
        launch<LP_PRECISION_BF16>(run, *task, tokens, copied, time_copied);
    else if (tile_tensor(run))
        launch<LP_PRECISION_TF32>(run, *task, tokens, false, false);
    else
        launch<LP_PRECISION_FP32>(run, *task, tokens, false, false);
}
