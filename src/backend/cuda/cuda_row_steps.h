/* cuda_row_steps.h: the steps of cuda_steps.h on rows in registers, for chains of rows (cuda_row_chain.cu) and fused kernels
 * (cuda_fused.cu).
 *
 * A team of lanes shares a row. Every lane has the same columns of all values, so that the result of a step stays in its registers for the
 * next one, and it reads from memory only what it stored itself or what an earlier launch did. Sums over the columns have the same
 * order in every launch.
 */
#ifndef LP_CUDA_ROW_STEPS_H
#define LP_CUDA_ROW_STEPS_H

#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_steps.h"
#include "backend/cuda/cuda_tile.h"

enum { ROW_BLOCK_WARPS = 32 }; /* of a team that is a block, at most */

/* What a lane has: `each` vectors of n floats of each of its rows, which are 8 apart. block: a team is all threads of a block, instead of
 * lanes of a warp. */
template <int floats, int vectors, int row_count, bool whole_block> struct row_shape {
    static constexpr int n = floats, each = vectors, rows = row_count;
    static constexpr bool block = whole_block;
};

typedef struct row_team {
    int row, end;          /* the lane's first row; number of rows */
    int lane, lanes, cols; /* cols: of a row, or of half a row */
    int first;             /* column of the pass */
    const lp_cuda_shard *shard;

    __device__ bool exists(int r) const
    {
        return row + 8 * r < end;
    }
} row_team;

/* A lane's columns of a value: vector m begins at row_column(m). Zeros beyond the last column. */
template <typename shape> struct row_part {
    lp_vector<shape::n> at[shape::rows][shape::each];
};

template <typename shape> __device__ static inline int row_column(const row_team &me, int m)
{
    return me.first + shape::n * (me.lane + me.lanes * m);
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

/* Rows of floats, or of a copy in bf16. */
typedef struct row_source {
    const float *floats;
    const uint16_t *copy; /* NULL: none */
    int stride, copy_stride;

    template <int n> __device__ lp_vector<n> at(int row, int c) const
    {
        return copy ? lp_vector_load_bf16<n>(row_global(copy) + (size_t)row * copy_stride + c)
                    : lp_vector_load<n>(row_global(floats) + (size_t)row * stride + c);
    }
} row_source;

/* Rows that a step reads, from column c on. */
__device__ static inline row_source row_source_of(const lp_step &step, int which, int c = 0)
{
    const lp_step_rows &rows = step.rows[which];
    return {rows.data + c, rows.copy ? rows.copy + c : NULL, rows.stride, rows.copy_stride};
}

template <typename shape>
__device__ static inline void row_load(const row_team &me, row_part<shape> &x, const row_source &from)
{
#pragma unroll
    for (int r = 0; r < shape::rows; r++)
#pragma unroll
        for (int m = 0; m < shape::each; m++) {
            int c = row_column<shape>(me, m);
            x.at[r][m] = {};
            if (me.exists(r) && c < me.cols)
                x.at[r][m] = from.at<shape::n>(me.row + 8 * r, c);
        }
}

/* A number for each column: in all rows. */
template <typename shape>
__device__ static inline void row_load_factors(const row_team &me, lp_vector<shape::n> (&x)[shape::each],
                                               const float *from)
{
#pragma unroll
    for (int m = 0; m < shape::each; m++) {
        x[m] = {};
        if (row_column<shape>(me, m) < me.cols)
            x[m] = lp_vector_load<shape::n>(row_global(from) + row_column<shape>(me, m));
    }
}

/* x = change(row, vector, column of the vector), for the columns that exist. */
template <typename shape, typename function>
__device__ static inline void row_each(const row_team &me, row_part<shape> &x, const function &change)
{
#pragma unroll
    for (int m = 0; m < shape::each; m++)
#pragma unroll
        for (int i = 0; i < shape::rows * shape::n; i++)
            if (row_column<shape>(me, m) < me.cols)
                x.at[i / shape::n][m].at[i % shape::n] = change(i / shape::n, m, i % shape::n);
}

/* Stores n numbers of a result of a step (0: the first, 1: the second) from column c of the row on; adds: after the old values are added
 * where there are any, and x becomes the sum. gaps: zeros before the column in the copy. */
template <int n>
__device__ static inline void row_store_vector(const lp_step &step, int result, int row, int c, lp_vector<n> &x,
                                               int gaps = 0, bool adds = true)
{
    const lp_step_rows &to = step.rows[LP_STEP_RESULT + result];
    const float *old = step.rows[LP_STEP_OLD + result].data;
    size_t at = (size_t)row * to.stride + c;
    if (adds && old) {
        lp_vector<n> before = lp_vector_load<n>(row_global(old) + at);
#pragma unroll
        for (int i = 0; i < n; i++)
            x.at[i] = before.at[i] + x.at[i];
    }
    if (to.data)
        *(lp_vector<n> *)(row_global(to.data) + at) = x;
    if (!to.copy)
        return;
    uint16_t *packed = row_global(to.copy) + (size_t)row * to.copy_stride + c + gaps;
    if constexpr (n == 1) {
        tile_store_two<false>(packed, x.at[0], 0, false);
    } else {
        lp_vector<n / 2> both;
#pragma unroll
        for (int i = 0; i < n / 2; i++)
            both.at[i] = tile_pack_bf16(x.at[2 * i], x.at[2 * i + 1]);
        *(lp_vector<n / 2> *)packed = both;
    }
}

/* Stores x as columns of a result from column `first` on, if the step stores it. */
template <typename shape>
__device__ static inline void row_store(const row_team &me, const lp_step &step, row_part<shape> &x, int result = 0,
                                        int first = 0, bool adds = true)
{
    if (!(step.head.has >> result & (1u << LP_STEP_RESULT | 1u << LP_STEP_OLD)))
        return;
#pragma unroll
    for (int r = 0; r < shape::rows; r++)
#pragma unroll
        for (int m = 0; m < shape::each; m++)
            if (me.exists(r) && row_column<shape>(me, m) < me.cols)
                row_store_vector<shape::n>(step, result, me.row + 8 * r, first + row_column<shape>(me, m), x.at[r][m],
                                           0, adds);
}

/* Two sums over the lanes of a team for each row, in all lanes. */
template <typename shape> __device__ static inline void row_sum(const row_team &me, float2 (&mine)[shape::rows])
{
#pragma unroll
    for (int r = 0; r < shape::rows; r++)
        for (int lanes = shape::block ? 16 : me.lanes / 2; lanes > 0; lanes >>= 1) {
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

/* The random words of 8 columns of a row. */
__device__ static inline lp_random_block row_random(const row_team &me, const lp_step &step, int r, int c)
{
    const lp_cuda_shard *shard = me.shard;
    uint64_t row = shard->first_token + (uint64_t)(me.row + 8 * r);
    return lp_philox(shard->seed, step.purpose, shard->step, row * 65536 + (uint64_t)(c / 8));
}

template <typename shape>
__device__ static inline void row_dropout(const row_team &me, const lp_step &step, row_part<shape> &x)
{
    constexpr int n = shape::n;
#pragma unroll
    for (int k = 0; k < shape::rows * shape::each; k++) {
        int c = row_column<shape>(me, k % shape::each);
        if (c >= me.cols)
            continue;
        lp_random_block block = row_random(me, step, k / shape::each, c);
        /* Of the four words, those of columns c and c + 2: selected without an index, which would need memory. */
        uint32_t low = c & 4 ? block.word[2] : block.word[0], high = c & 4 ? block.word[3] : block.word[1];
        uint32_t words[2] = {n < 4 && c & 2 ? high : low, high};
#pragma unroll
        for (int i = 0; i < n; i++) {
            float &mine = x.at[k / shape::each][k % shape::each].at[i];
            mine = row_dropped(step, mine, words[i / 2] >> (16 * ((n == 1 ? c : i) & 1)));
        }
    }
}

/* Calls with(f) for x = f(x, y) of an elementwise op: y is OTHER, or the factors of the columns. */
template <typename visitor> __device__ static inline void row_elementwise(const lp_step &step, const visitor &with)
{
    float scale = step.scale, shift = step.shift;
    switch (step.head.op) {
    case LP_OP_ADD:
        return with([](float x, float y) { return x + y; });
    case LP_OP_MULTIPLY:
    case LP_OP_SCALE_COLUMNS:
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
    row_load_factors<shape>(me, gain, (const float *)step.factors);
    row_load_factors<shape>(me, shift, step.shifts);
#pragma unroll
    for (int k = 0; k < rows * each * n; k++)
        sum[k / (each * n)].x += x.at[k / (each * n)][k / n % each].at[k % n];
    row_sum<shape>(me, sum);
    row_each<shape>(me, x, [&](int r, int m, int i) {
        float apart = x.at[r][m].at[i] - sum[r].x * inverse_cols;
        square[r].x += apart * apart;
        return apart;
    });
    row_sum<shape>(me, square);
#pragma unroll
    for (int r = 0; r < rows; r++) {
        square[r].x = rsqrtf(square[r].x * inverse_cols + step.shift);
        if (moments && me.exists(r) && me.lane == 0)
            *(float2 *)(moments + 2 * (size_t)(me.row + 8 * r)) = make_float2(sum[r].x * inverse_cols, square[r].x);
    }
    row_each<shape>(
        me, x, [&](int r, int m, int i) { return x.at[r][m].at[i] * square[r].x * gain[m].at[i] + shift[m].at[i]; });
}

/* With z = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - z * mean(g z)) */
template <typename shape>
__device__ static inline void row_layer_norm_gradient(const row_team &me, const lp_step &step, row_part<shape> &dy,
                                                      row_part<shape> &x)
{
    constexpr int rows = shape::rows;
    float inverse_cols = 1.0f / (float)me.cols;
    lp_vector<shape::n> gain[shape::each];
    row_load_factors<shape>(me, gain, (const float *)step.factors);
    float2 moments[rows] = {}, sum[rows] = {};
#pragma unroll
    for (int r = 0; r < rows; r++)
        if (me.exists(r))
            moments[r] = *(const float2 *)(row_global(step.rows[LP_STEP_MORE].data) + 2 * (size_t)(me.row + 8 * r));
    row_each<shape>(me, dy, [&](int r, int m, int i) {
        float &z = x.at[r][m].at[i], g = dy.at[r][m].at[i] * gain[m].at[i];
        z = (z - moments[r].x) * moments[r].y;
        sum[r].x += g;
        sum[r].y += g * z;
        return g;
    });
    row_sum<shape>(me, sum);
    row_each<shape>(me, dy, [&](int r, int m, int i) {
        return moments[r].y * (dy.at[r][m].at[i] - inverse_cols * (sum[r].x + x.at[r][m].at[i] * sum[r].y));
    });
}

/* The main input of a step, unless it is in registers. */
template <typename shape>
__device__ static inline void row_load_main(const row_team &me, const lp_step &step, row_part<shape> &x)
{
    if (step.head.has & 1u << LP_STEP_MAIN)
        row_load<shape>(me, x, row_source_of(step, LP_STEP_MAIN));
    if (!step.ids)
        return;
    const lp_step_rows &table = step.rows[LP_STEP_MAIN];
#pragma unroll
    for (int r = 0; r < shape::rows; r++) {
        const float *row =
            row_global(table.data) + (me.exists(r) ? (size_t)step.ids[me.row + 8 * r] * table.stride : 0);
#pragma unroll
        for (int m = 0; m < shape::each; m++) {
            x.at[r][m] = {};
            if (me.exists(r) && row_column<shape>(me, m) < me.cols)
                x.at[r][m] = lp_vector_load<shape::n>(row + row_column<shape>(me, m));
        }
    }
}

/* A step whose result is in the registers. y: its second input, if that was loaded ahead. */
template <typename shape>
__device__ static inline void row_step(const row_team &me, const lp_step &step, row_part<shape> &x, row_part<shape> &y)
{
    row_load_main<shape>(me, step, x);
    bool other = step.head.has & 1u << LP_STEP_OTHER;
    if (other && !(step.head.has & LP_STEP_EARLY))
        row_load<shape>(me, y, row_source_of(step, LP_STEP_OTHER));
    if (step.head.op == LP_OP_LAYER_NORM) {
        row_layer_norm<shape>(me, step, x);
    } else if (step.head.op == LP_OP_LAYER_NORM_GRADIENT) {
        row_layer_norm_gradient<shape>(me, step, x, y);
    } else if (step.head.op == LP_OP_DROPOUT) {
        row_dropout<shape>(me, step, x);
    } else if (other || step.head.op != LP_OP_ADD) { /* a value alone is added to nothing */
        if (step.head.op == LP_OP_SCALE_COLUMNS)
#pragma unroll
            for (int r = 0; r < shape::rows; r++)
                row_load_factors<shape>(me, y.at[r], (const float *)step.factors);
        row_elementwise(step, [&](auto f) {
            row_each<shape>(me, x, [&](int r, int m, int i) { return f(x.at[r][m].at[i], y.at[r][m].at[i]); });
        });
    }
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
    row_store_vector<n>(step, 0, row, f, cosine);
    row_store_vector<n>(step, 0, row, step.frequencies + f, sine);
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
