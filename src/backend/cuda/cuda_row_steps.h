/* cuda_row_steps.h: the steps of cuda_steps.h on rows in registers, for chains of rows (cuda_row_chain.cu) and fused kernels
 * (cuda_fused.cu).
 *
 * A team of lanes shares a row. Every lane has the same columns of all values, so that the result of a step stays in its registers for the
 * next one, and it reads from memory only what it stored itself, what an earlier launch did, or the moments of a layer norm: a team
 * synchronizes between steps. Sums over the columns have the same order in every launch.
 */
#ifndef LP_CUDA_ROW_STEPS_H
#define LP_CUDA_ROW_STEPS_H

#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_steps.h"
#include "backend/cuda/cuda_tile.h"

enum { ROW_BLOCK_WARPS = 32 }; /* of a team that is a block, at most */

/* What a lane has of a value: `each` vectors of n floats of each of its rows, which follow one another. block: a team is all threads of a
 * block, instead of lanes of a warp. */
template <int floats, int vectors, int row_count, bool whole_block> struct row_shape {
    static constexpr int n = floats, each = vectors, rows = row_count;
    static constexpr bool block = whole_block;
};

typedef struct row_team {
    int row, rows;         /* the first one of the lane; of its rows, those that exist */
    int lane, lanes, cols; /* cols: of a row, or of half a row */
    int first;             /* column of the pass */
    const lp_cuda_shard *shard;
} row_team;

/* Vector k is that of row k / each of the lane, from column row_column(k) on. Zeros beyond the last column. */
template <typename shape> struct row_part {
    lp_vector<shape::n> at[shape::rows * shape::each];
};

template <typename shape> __device__ static inline int row_column(const row_team &me, int k)
{
    return me.first + shape::n * (me.lane + me.lanes * (k % shape::each));
}

template <typename shape> __device__ static inline bool row_exists(const row_team &me, int k)
{
    return k / shape::each < me.rows && row_column<shape>(me, k) < me.cols;
}

/* Tells the compiler that a pointer loaded from memory points to global memory. */
template <typename type> __device__ static inline type *row_global(type *data)
{
#ifdef __CUDACC__
    __builtin_assume(__isGlobal(data));
#endif
    return data;
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

/* Calls act(k, floats, copy) for the vectors that exist, with their addresses. */
template <typename shape, typename function>
__device__ static inline void row_each_address(const row_team &me, const lp_step_rows &rows, int c, const function &act)
{
    float *floats = row_global(rows.data) + (size_t)me.row * rows.stride + c;
    uint16_t *copy = row_global(rows.copy) + (size_t)me.row * rows.copy_stride + c;
#pragma unroll
    for (int k = 0; k < shape::rows * shape::each; k++) {
        int r = k / shape::each, column = row_column<shape>(me, k);
        if (row_exists<shape>(me, k))
            act(k, floats + r * rows.stride + column, copy + r * rows.copy_stride + column);
    }
}

/* Loads columns from c on. All loads are under way at once: none is in a branch of its own, where it would be waited for. */
template <typename shape>
__device__ static inline void row_load(const row_team &me, row_part<shape> &x, const lp_step_rows &from, int c = 0)
{
    constexpr int n = shape::n;
    x = {};
    if (from.copy)
        row_each_address<shape>(me, from, c,
                                [&](int k, float *, uint16_t *copy) { x.at[k] = lp_vector_load_bf16<n>(copy); });
    else
        row_each_address<shape>(me, from, c,
                                [&](int k, float *floats, uint16_t *) { x.at[k] = lp_vector_load<n>(floats); });
}

/* A number for each column. */
template <typename shape>
__device__ static inline void row_load_factors(const row_team &me, lp_vector<shape::n> (&x)[shape::each],
                                               const void *from)
{
#pragma unroll
    for (int m = 0; m < shape::each; m++) {
        x[m] = {};
        if (row_column<shape>(me, m) < me.cols)
            x[m] = lp_vector_load<shape::n>(row_global((const float *)from) + row_column<shape>(me, m));
    }
}

/* x = change(vector, column of the vector), for those that exist. */
template <typename shape, typename function>
__device__ static inline void row_each(const row_team &me, row_part<shape> &x, const function &change)
{
#pragma unroll
    for (int k = 0; k < shape::rows * shape::each; k++)
#pragma unroll
        for (int i = 0; i < shape::n; i++)
            if (row_column<shape>(me, k) < me.cols)
                x.at[k].at[i] = change(k, i);
}

/* Stores n numbers of a copy. */
template <int n> __device__ static inline void row_store_bf16(uint16_t *to, const lp_vector<n> &x)
{
    if constexpr (n == 1) {
        tile_store_two<false>(to, x.at[0], 0, false);
    } else {
        lp_vector<n / 2> both;
#pragma unroll
        for (int i = 0; i < n / 2; i++)
            both.at[i] = tile_pack_bf16(x.at[2 * i], x.at[2 * i + 1]);
        *(lp_vector<n / 2> *)to = both;
    }
}

/* Stores n numbers from column c of a row on. gaps: zeros before the column in the copy. */
template <int n>
__device__ static inline void row_store_vector(const lp_step_rows &to, int row, int c, const lp_vector<n> &x,
                                               int gaps = 0)
{
    if (to.data)
        *(lp_vector<n> *)(to.data + (size_t)row * to.stride + c) = x;
    if (to.copy)
        row_store_bf16<n>(to.copy + (size_t)row * to.copy_stride + c + gaps, x);
}

/* Adds old values, if there are any, to columns of a result from column c on. result: 0: the first of the step, 1: the second. */
template <typename shape>
__device__ static inline void row_add_old(const row_team &me, const lp_step &step, row_part<shape> &x, int result = 0,
                                          int c = 0)
{
    if (!(step.has >> result & 1u << LP_STEP_OLD))
        return;
    row_part<shape> old;
    row_load<shape>(me, old, step.rows[LP_STEP_OLD + result], c);
    row_each<shape>(me, x, [&](int k, int i) { return old.at[k].at[i] + x.at[k].at[i]; });
}

/* Stores them, if the step stores the result. */
template <typename shape>
__device__ static inline void row_store(const row_team &me, const lp_step &step, const row_part<shape> &x,
                                        int result = 0, int c = 0)
{
    constexpr int n = shape::n;
    const lp_step_rows &to = step.rows[LP_STEP_RESULT + result];
    if (!(step.has >> result & 1u << LP_STEP_RESULT))
        return;
    if (to.data)
        row_each_address<shape>(me, to, c,
                                [&](int k, float *floats, uint16_t *) { *(lp_vector<n> *)floats = x.at[k]; });
    if (to.copy)
        row_each_address<shape>(me, to, c, [&](int k, float *, uint16_t *copy) { row_store_bf16<n>(copy, x.at[k]); });
}

/* Two sums over the lanes of a team for each row, in all lanes. */
template <typename shape> __device__ static inline void row_sum(const row_team &me, float2 (&mine)[shape::rows])
{
    for (int lanes = shape::block ? 16 : me.lanes / 2; lanes > 0; lanes >>= 1)
#pragma unroll
        for (int r = 0; r < shape::rows; r++) {
            mine[r].x += __shfl_xor_sync(0xFFFFFFFFu, mine[r].x, lanes);
            mine[r].y += __shfl_xor_sync(0xFFFFFFFFu, mine[r].y, lanes);
        }
    if constexpr (shape::block) {
        __shared__ float2 sums[ROW_BLOCK_WARPS];
        __syncthreads();
        if (me.lane % 32 == 0)
            sums[me.lane / 32] = mine[0];
        __syncthreads();
        mine[0] = sums[0];
        for (int i = 1; i < me.lanes / 32; i++)
            mine[0] = make_float2(mine[0].x + sums[i].x, mine[0].y + sums[i].y);
    }
}

/* ---- steps --------------------------------------------------------------------------------------------------- */

/* Dropout of a column, by the 16 bits of its random number. */
__device__ static inline float row_dropped(const lp_step &step, float x, uint32_t bits)
{
    return (bits & 0xFFFFu) >= step.threshold ? x * step.scale : 0;
}

/* The random words of the 8 columns of a row with vector k. */
template <typename shape>
__device__ static inline lp_random_block row_random(const row_team &me, const lp_step &step, int k)
{
    const lp_cuda_shard *shard = me.shard;
    uint64_t row = shard->first_token + (uint64_t)(me.row + k / shape::each);
    return lp_philox(shard->seed, step.purpose, shard->step, row * 65536 + (uint64_t)(row_column<shape>(me, k) / 8));
}

/* Selected without an index, which would need memory. */
__device__ static inline uint32_t row_select(const uint32_t (&of)[4], int i)
{
    uint32_t low = i & 1 ? of[1] : of[0], high = i & 1 ? of[3] : of[2];
    return i & 2 ? high : low;
}

template <typename shape>
__device__ static inline void row_dropout(const row_team &me, const lp_step &step, row_part<shape> &x)
{
    constexpr int n = shape::n, vectors = shape::rows * shape::each;
    if constexpr (n == 2 && vectors % 4 == 0) {
        /* Four lanes share the words of 8 columns. Each draws those of every fourth vector for all: lane t has word t of vector t ^ k. */
        int t = me.lane & 3;
#pragma unroll
        for (int first = 0; first < vectors; first += 4) {
            lp_random_block block = row_random<shape>(me, step, first + t);
            uint32_t words[4];
#pragma unroll
            for (int k = 0; k < 4; k++)
                words[k] = __shfl_xor_sync(0xFFFFFFFFu, row_select(block.word, t ^ k), k);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                float &mine = x.at[first + i / 2].at[i % 2];
                mine = row_dropped(step, mine, row_select(words, t ^ i / 2) >> (16 * (i % 2)));
            }
        }
    } else {
#pragma unroll
        for (int k = 0; k < vectors; k++) {
            int c = row_column<shape>(me, k);
            if (c >= me.cols)
                continue;
            lp_random_block block = row_random<shape>(me, step, k);
            /* Of the four words, those of columns c and c + 2. */
            uint32_t low = c & 4 ? block.word[2] : block.word[0], high = c & 4 ? block.word[3] : block.word[1];
            uint32_t words[2] = {n < 4 && c & 2 ? high : low, high};
#pragma unroll
            for (int i = 0; i < n; i++)
                x.at[k].at[i] = row_dropped(step, x.at[k].at[i], words[i / 2] >> (16 * ((n == 1 ? c : i) & 1)));
        }
    }
}

/* Calls with(f) for x = f(x, y) of an elementwise op: y is OTHER. */
template <typename visitor> __device__ static inline void row_elementwise(const lp_step &step, const visitor &with)
{
    float scale = step.scale, shift = step.shift;
    switch (step.op) {
    case LP_OP_ADD:
        return with([](float x, float y) { return x + y; });
    case LP_OP_MULTIPLY:
        return with([](float x, float y) { return x * y; });
    case LP_OP_RELU:
        return with([](float x, float) { return x > 0 ? x : 0; });
    case LP_OP_RELU_GRADIENT:
        return with([](float x, float y) { return y > 0 ? x : 0; });
    case LP_OP_AFFINE:
        return with([=](float x, float) { return scale * x + shift; });
    }
}

template <typename shape>
__device__ static inline void row_layer_norm(const row_team &me, const lp_step &step, row_part<shape> &x)
{
    constexpr int n = shape::n, each = shape::each, rows = shape::rows;
    float inverse_cols = 1.0f / (float)me.cols, *moments = step.rows[LP_STEP_RESULT_SECOND].data;
    float2 sum[rows] = {}, square[rows] = {};
    lp_vector<n> gain[each], shift[each];
    row_load_factors<shape>(me, gain, step.factors);
    row_load_factors<shape>(me, shift, step.shifts);
#pragma unroll
    for (int k = 0; k < n * each * rows; k++)
        sum[k / (n * each)].x += x.at[k / n].at[k % n];
    row_sum<shape>(me, sum);
    row_each<shape>(me, x, [&](int k, int i) {
        float apart = x.at[k].at[i] - sum[k / each].x * inverse_cols;
        square[k / each].x += apart * apart;
        return apart;
    });
    row_sum<shape>(me, square);
#pragma unroll
    for (int r = 0; r < rows; r++) {
        square[r].x = rsqrtf(square[r].x * inverse_cols + step.shift);
        if (moments && r < me.rows && me.lane == 0)
            *(float2 *)(row_global(moments) + 2 * (size_t)(me.row + r)) =
                make_float2(sum[r].x * inverse_cols, square[r].x);
    }
    row_each<shape>(me, x, [&](int k, int i) {
        return x.at[k].at[i] * square[k / each].x * gain[k % each].at[i] + shift[k % each].at[i];
    });
}

/* With z = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - z * mean(g z)) */
template <typename shape>
__device__ static inline void row_layer_norm_gradient(const row_team &me, const lp_step &step, row_part<shape> &dy,
                                                      row_part<shape> &x)
{
    constexpr int each = shape::each, rows = shape::rows;
    float inverse_cols = 1.0f / (float)me.cols;
    lp_vector<shape::n> gain[each];
    row_load_factors<shape>(me, gain, step.factors);
    float2 moments[rows] = {}, sum[rows] = {};
#pragma unroll
    for (int r = 0; r < rows; r++)
        if (r < me.rows)
            moments[r] = *(const float2 *)(row_global(step.rows[LP_STEP_MORE].data) + 2 * (size_t)(me.row + r));
    row_each<shape>(me, dy, [&](int k, int i) {
        float &z = x.at[k].at[i], g = dy.at[k].at[i] * gain[k % each].at[i];
        z = (z - moments[k / each].x) * moments[k / each].y;
        sum[k / each].x += g;
        sum[k / each].y += g * z;
        return g;
    });
    row_sum<shape>(me, sum);
    row_each<shape>(me, dy, [&](int k, int i) {
        float2 all = sum[k / each];
        return moments[k / each].y * (dy.at[k].at[i] - all.x * inverse_cols - x.at[k].at[i] * (all.y * inverse_cols));
    });
}

/* The main input of a step, unless it is in registers. */
template <typename shape>
__device__ static inline void row_load_main(const row_team &me, const lp_step &step, row_part<shape> &x)
{
    const lp_step_rows &from = step.rows[LP_STEP_MAIN];
    if (step.has & 1u << LP_STEP_MAIN)
        row_load<shape>(me, x, from);
    if (!step.ids)
        return;
    x = {};
#pragma unroll
    for (int k = 0; k < shape::rows * shape::each; k++)
        if (row_exists<shape>(me, k))
            x.at[k] = lp_vector_load<shape::n>(row_global(from.data) + row_column<shape>(me, k) +
                                               (size_t)step.ids[me.row + k / shape::each] * from.stride);
}

/* A step whose result is in the registers. y: its second input, if that was loaded ahead. */
template <typename shape>
__device__ static inline void row_step(const row_team &me, const lp_step &step, row_part<shape> &x, row_part<shape> &y)
{
    row_load_main<shape>(me, step, x);
    bool other = step.has & 1u << LP_STEP_OTHER;
    if (other && !(step.has & LP_STEP_EARLY))
        row_load<shape>(me, y, step.rows[LP_STEP_OTHER]);
    if (step.op == LP_OP_LAYER_NORM) {
        row_layer_norm<shape>(me, step, x);
    } else if (step.op == LP_OP_LAYER_NORM_GRADIENT) {
        row_layer_norm_gradient<shape>(me, step, x, y);
    } else if (step.op == LP_OP_DROPOUT) {
        row_dropout<shape>(me, step, x);
    } else if (step.op == LP_OP_SCALE_COLUMNS) {
        lp_vector<shape::n> factors[shape::each];
        row_load_factors<shape>(me, factors, step.factors);
        row_each<shape>(me, x, [&](int k, int i) { return x.at[k].at[i] * factors[k % shape::each].at[i]; });
    } else if (other || step.op != LP_OP_ADD) { /* an ADD with one input changes nothing */
        row_elementwise(step, [&](auto f) {
            row_each<shape>(me, x, [&](int k, int i) { return f(x.at[k].at[i], y.at[k].at[i]); });
        });
    }
    row_add_old<shape>(me, step, x);
    row_store<shape>(me, step, x);
}

/* ---- cosines and sines --------------------------------------------------------------------------------------- */

/* n pairs of a row of the basis, from frequency f on. */
template <int n> __device__ static inline void row_basis(int row, int f, const lp_step &step)
{
    lp_vector<n> sine, cosine;
#pragma unroll
    for (int i = 0; i < n; i++)
        lp_time_sincos(step.time[row], ((const double *)step.factors)[f + i], &sine.at[i], &cosine.at[i]);
    row_store_vector<n>(step.rows[LP_STEP_RESULT], row, f, cosine);
    row_store_vector<n>(step.rows[LP_STEP_RESULT], row, step.frequencies + f, sine);
}

/* The reflection (c, s) -> (c cosine + s sine, c sine - s cosine), which is its own inverse and its own gradient. */
template <int n>
__device__ static inline void row_reflect(lp_vector<n> &c, lp_vector<n> &s, const lp_vector<n> &cosine,
                                          const lp_vector<n> &sine)
{
#pragma unroll
    for (int i = 0; i < n; i++) {
        float x = c.at[i] * cosine.at[i] + s.at[i] * sine.at[i];
        s.at[i] = c.at[i] * sine.at[i] - s.at[i] * cosine.at[i];
        c.at[i] = x;
    }
}

/* The gradient of its cosine and sine: of x = (c, s) and dy = (dc, ds). */
template <int n>
__device__ static inline void row_reflect_angle(lp_vector<n> &dcosine, lp_vector<n> &dsine, const lp_vector<n> &c,
                                                const lp_vector<n> &s, const lp_vector<n> &dc, const lp_vector<n> &ds)
{
#pragma unroll
    for (int i = 0; i < n; i++) {
        dcosine.at[i] += c.at[i] * dc.at[i] - s.at[i] * ds.at[i];
        dsine.at[i] += s.at[i] * dc.at[i] + c.at[i] * ds.at[i];
    }
}

#endif
