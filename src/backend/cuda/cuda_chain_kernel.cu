/* cuda_chain_kernel.cu: runs the program of a chain (cuda_chain.h) on 64 rows a block.
 *
 * A warp has every eighth row where a step works on elements or whole rows, lanes side by side along the columns; it reads all it needs of
 * these rows before it writes, so that one trip to memory is all it waits for. Products have 16 rows and half of the columns to a warp.
 * Between steps the block meets at a barrier. What a step draws or sums is what the kernels of single nodes draw and sum.
 */
#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { ROWS = LP_CHAIN_ROWS, WARPS = LP_CHAIN_WARPS, THREADS = 32 * WARPS, EACH = ROWS / WARPS, ROW_WARPS = ROWS / 16 };

#define TWO_PI 6.283185307179586476925

/* A block and its rows. */
typedef struct chain_block {
    const lp_cuda_shard *shard;
    float *memory;
    unsigned char *kept; /* dropout: [ROWS x GROUPS] */
    int first, present, warp, lane;
} chain_block;

enum { GROUPS = LP_CHAIN_COLS / 8 };

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* The block's rows of a value; at is NULL where they are absent. What a step is told lies in shared memory, where every store might
 * change it as far as the compiler knows: a step reads it once, into these. */
typedef struct view {
    const float *at;
    int stride;
} view;

typedef struct target {
    float *slot, *keep; /* either may be NULL */
    int stride, keep_stride;
} target;

__device__ inline view view_of(const chain_block &block, const chain_rows &rows)
{
    view mine = {rows.data, rows.stride};
    if (rows.place >= 0)
        mine.at = block.memory + rows.place;
    else if (mine.at)
        mine.at += (int64_t)block.first * mine.stride;
    return mine;
}

__device__ inline target target_of(const chain_block &block, const chain_result &result)
{
    target mine = {NULL, result.keep, result.stride, result.keep_stride};
    if (result.place >= 0)
        mine.slot = block.memory + result.place;
    if (mine.keep)
        mine.keep += (int64_t)block.first * mine.keep_stride;
    return mine;
}

/* Column c of rows warp + WARPS * (from + i); 0 where there is none. */
template <int width, int count>
__device__ inline void read_rows(const chain_block &block, lp_floats<width> (&to)[count], const view &rows, int from,
                                 int c)
{
    const float *at = rows.at + (block.warp + WARPS * from) * rows.stride + c;
#pragma unroll
    for (int i = 0; i < count; i++) {
        to[i] = lp_floats<width>();
        if (rows.at && block.warp + WARPS * (from + i) < block.present)
            to[i] = lp_read<width>(at + WARPS * i * rows.stride);
    }
}

/* To both places of a result, with what it is added to. */
template <int width>
__device__ inline void write_at(const target &to, int r, int c, lp_floats<width> value, const lp_floats<width> &old)
{
#pragma unroll
    for (int i = 0; i < width; i++)
        value.at[i] += old.at[i];
    if (to.slot)
        lp_write<width>(to.slot + r * to.stride + c, value, 0);
    if (to.keep)
        lp_write<width>(to.keep + r * to.keep_stride + c, value, 0);
}

template <int width, int count>
__device__ inline void write_rows(const chain_block &block, const target &to, int from, int c,
                                  const lp_floats<width> (&value)[count], const lp_floats<width> (&old)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++) {
        int r = block.warp + WARPS * (from + i);
        if (r < block.present)
            write_at<width>(to, r, c, value[i], old[i]);
    }
}

/* ---- steps on elements --------------------------------------------------------------------------------------- */

/* y = f(a, b, column) */
template <int width, typename function>
__device__ inline void each_element(const chain_block &block, const chain_step &step, const function &f)
{
    view first = view_of(block, step.input[0]), second = view_of(block, step.input[1]),
         before = view_of(block, step.result[0].old);
    target to = target_of(block, step.result[0]);
    int cols = step.cols;
    for (int c = width * block.lane; c < cols; c += 32 * width) {
        lp_floats<width> a[EACH], b[EACH], old[EACH];
        read_rows(block, a, first, 0, c);
        read_rows(block, b, second, 0, c);
        read_rows(block, old, before, 0, c);
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int k = 0; k < width; k++)
                a[i].at[k] = f(a[i].at[k], b[i].at[k], block.warp + WARPS * i, c + k);
        write_rows(block, to, 0, c, a, old);
    }
}

/* Which of the eight columns from 8 * group on are kept. */
__device__ inline unsigned char kept_bits(const chain_block &block, const chain_step &step, int row, int group)
{
    const lp_cuda_shard *shard = block.shard;
    lp_random_block drawn = lp_philox(shard->seed, step.purpose, shard->step,
                                      (shard->first_token + (uint64_t)row) * 65536 + (uint64_t)group);
    unsigned bits = 0;
#pragma unroll
    for (int c = 0; c < 8; c++)
        bits |= (unsigned)lp_dropout_keep(&drawn, c, step.threshold) << c;
    return (unsigned char)bits;
}

/* Four threads draw for a row. */
template <int width> __device__ inline void dropout(const chain_block &block, const chain_step &step)
{
    unsigned char *kept = block.kept;
    int groups = (step.cols + 7) / 8, r = (int)threadIdx.x >> 2;
    for (int group = (int)threadIdx.x & 3; group < groups; group += 4)
        kept[r * GROUPS + group] = kept_bits(block, step, block.first + r, group);
    __syncthreads();
    float scale = step.scale;
    each_element<width>(block, step, [=](float x, float, int row, int c) {
        return kept[row * GROUPS + (c >> 3)] >> (c & 7) & 1 ? x * scale : 0.0f;
    });
}

template <int width> __device__ inline void embed(const chain_block &block, const chain_step &step)
{
    const float *table = (const float *)step.whole[0];
    const int32_t *ids = (const int32_t *)step.whole[1] + block.first;
    target to = target_of(block, step.result[0]);
    int cols = step.cols;
    for (int c = width * block.lane; c < cols; c += 32 * width) {
        lp_floats<width> a[EACH], old[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int r = block.warp + WARPS * i;
            old[i] = a[i] = lp_floats<width>();
            if (r < block.present)
                a[i] = lp_read<width>(table + (int64_t)ids[r] * cols + c);
        }
        write_rows(block, to, 0, c, a, old);
    }
}

__device__ inline void basis(const chain_block &block, const chain_step &step)
{
    const double *frequency = (const double *)step.whole[1], *time = (const double *)step.whole[0] + block.first;
    lp_floats<1> none = {};
    target to = target_of(block, step.result[0]);
    int terms = step.terms;
    for (int f = block.lane; f < terms; f += 32) {
        double speed = frequency[f] * (1 / TWO_PI);
#pragma unroll 2
        for (int r = block.warp; r < block.present; r += WARPS) {
            double turns = time[r] * speed;
            float half_turns = (float)(2 * (turns - rint(turns))), sine, cosine;
            sincospif(half_turns, &sine, &cosine);
            lp_floats<1> both[2] = {{{cosine}}, {{sine}}};
            write_at<1>(to, r, f, both[0], none);
            write_at<1>(to, r, terms + f, both[1], none);
        }
    }
}

template <int width> __device__ inline void reflect(const chain_block &block, const chain_step &step)
{
    enum { PART = EACH / 2 };
    int count = step.terms, heads = step.heads;
    view x = view_of(block, step.input[0]), u = view_of(block, step.input[1]), before = view_of(block, step.result[0].old);
    target to = target_of(block, step.result[0]);
    for (int f = width * block.lane; f < count; f += 32 * width)
#pragma unroll 1
        for (int from = 0; from < EACH; from += PART) {
            lp_floats<width> cosine[PART], sine[PART];
            read_rows(block, cosine, u, from, f);
            read_rows(block, sine, u, from, count + f);
#pragma unroll 1
            for (int h = 0; h < heads; h++) {
                lp_floats<width> xc[PART], xs[PART], old[2][PART];
                int c = 2 * count * h + f;
                read_rows(block, xc, x, from, c);
                read_rows(block, xs, x, from, count + c);
                read_rows(block, old[0], before, from, c);
                read_rows(block, old[1], before, from, count + c);
#pragma unroll
                for (int i = 0; i < PART; i++)
#pragma unroll
                    for (int k = 0; k < width; k++) {
                        float one = xc[i].at[k], two = xs[i].at[k];
                        xc[i].at[k] = one * cosine[i].at[k] + two * sine[i].at[k];
                        xs[i].at[k] = one * sine[i].at[k] - two * cosine[i].at[k];
                    }
                write_rows(block, to, from, c, xc, old[0]);
                write_rows(block, to, from, count + c, xs, old[1]);
            }
        }
}

/* x, u, dy -> dx, du */
template <int width> __device__ inline void reflect_gradient(const chain_block &block, const chain_step &step)
{
    enum { PART = 2 };
    int count = step.terms, heads = step.heads;
    view x = view_of(block, step.input[0]), u = view_of(block, step.input[1]), dy = view_of(block, step.input[2]);
    view before = view_of(block, step.result[0].old), turned = view_of(block, step.result[1].old);
    target dx = target_of(block, step.result[0]), du = target_of(block, step.result[1]);
    for (int f = width * block.lane; f < count; f += 32 * width)
#pragma unroll 1
        for (int from = 0; from < EACH; from += PART) {
            lp_floats<width> cosine[PART], sine[PART], dcosine[PART], dsine[PART], none[PART] = {};
            read_rows(block, cosine, u, from, f);
            read_rows(block, sine, u, from, count + f);
            read_rows(block, dcosine, turned, from, f);
            read_rows(block, dsine, turned, from, count + f);
#pragma unroll 1
            for (int h = 0; h < heads; h++) {
                lp_floats<width> xc[PART], xs[PART], dc[PART], ds[PART], old[2][PART];
                int c = 2 * count * h + f;
                read_rows(block, xc, x, from, c);
                read_rows(block, xs, x, from, count + c);
                read_rows(block, dc, dy, from, c);
                read_rows(block, ds, dy, from, count + c);
                read_rows(block, old[0], before, from, c);
                read_rows(block, old[1], before, from, count + c);
#pragma unroll
                for (int i = 0; i < PART; i++)
#pragma unroll
                    for (int k = 0; k < width; k++) {
                        float one = dc[i].at[k], two = ds[i].at[k];
                        dcosine[i].at[k] += xc[i].at[k] * one - xs[i].at[k] * two;
                        dsine[i].at[k] += xs[i].at[k] * one + xc[i].at[k] * two;
                        dc[i].at[k] = one * cosine[i].at[k] + two * sine[i].at[k];
                        ds[i].at[k] = one * sine[i].at[k] - two * cosine[i].at[k];
                    }
                write_rows(block, dx, from, c, dc, old[0]);
                write_rows(block, dx, from, count + c, ds, old[1]);
            }
            write_rows(block, du, from, f, dcosine, none);
            write_rows(block, du, from, count + f, dsine, none);
        }
}

/* ---- norms --------------------------------------------------------------------------------------------------- */

enum { NORM_ROWS = 4 };

/* Columns width * (lane + 32 k) of NORM_ROWS of the warp's rows, at a time. */
template <int width> struct norm_rows {
    static constexpr int parts = LP_CHAIN_COLS / 32 / width;
    lp_floats<width> at[parts][NORM_ROWS];
};

template <int width>
__device__ inline void read_norm(const chain_block &block, norm_rows<width> &to, const view &rows, int from, int cols)
{
#pragma unroll
    for (int k = 0; k < norm_rows<width>::parts; k++) {
        int c = width * (block.lane + 32 * k);
        view there = {c < cols ? rows.at : NULL, rows.stride};
        read_rows(block, to.at[k], there, from, c);
    }
}

/* Of all rows, or the same for each. */
template <int width>
__device__ inline void read_factors(const chain_block &block, lp_floats<width> (&to)[norm_rows<width>::parts],
                                    const void *factors, int cols)
{
#pragma unroll
    for (int k = 0; k < norm_rows<width>::parts; k++) {
        int c = width * (block.lane + 32 * k);
        to[k] = lp_floats<width>();
        if (c < cols)
            to[k] = lp_read<width>((const float *)factors + c);
    }
}

template <int width> __device__ inline void layer_norm(const chain_block &block, const chain_step &step)
{
    constexpr int parts = norm_rows<width>::parts;
    int cols = step.cols;
    const float share = 1.0f / (float)cols, epsilon = step.shift;
    view from_rows = view_of(block, step.input[0]);
    target to = target_of(block, step.result[0]), moments = target_of(block, step.result[1]);
    lp_floats<width> gain[parts], shift[parts];
    read_factors<width>(block, gain, step.whole[1], cols);
    read_factors<width>(block, shift, step.whole[2], cols);
#pragma unroll 1
    for (int from = 0; from < EACH; from += NORM_ROWS) {
        norm_rows<width> x;
        float mean[NORM_ROWS], inverse[NORM_ROWS];
        read_norm(block, x, from_rows, from, cols);
#pragma unroll
        for (int i = 0; i < NORM_ROWS; i++) {
            float sum = 0, square = 0;
#pragma unroll
            for (int k = 0; k < parts * width; k++)
                sum += x.at[k / width][i].at[k % width];
            mean[i] = lp_warp_sum(sum) * share;
#pragma unroll
            for (int k = 0; k < parts * width; k++) {
                float apart = x.at[k / width][i].at[k % width] - mean[i];
                square += width * (block.lane + 32 * (k / width)) < cols ? apart * apart : 0;
            }
            inverse[i] = rsqrtf(lp_warp_sum(square) * share + epsilon);
        }
#pragma unroll
        for (int i = 0; i < NORM_ROWS; i++) {
            int r = block.warp + WARPS * (from + i);
            if (r >= block.present)
                continue;
            lp_floats<width> none = {};
#pragma unroll
            for (int k = 0; k < parts; k++) {
                int c = width * (block.lane + 32 * k);
#pragma unroll
                for (int j = 0; j < width; j++)
                    x.at[k][i].at[j] = (x.at[k][i].at[j] - mean[i]) * inverse[i] * gain[k].at[j] + shift[k].at[j];
                if (c < cols)
                    write_at<width>(to, r, c, x.at[k][i], none);
            }
            lp_floats<1> moment = {{block.lane ? inverse[i] : mean[i]}}, nothing = {};
            if (block.lane < 2)
                write_at<1>(moments, r, block.lane, moment, nothing);
        }
    }
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
template <int width> __device__ inline void layer_norm_gradient(const chain_block &block, const chain_step &step)
{
    constexpr int parts = norm_rows<width>::parts;
    int cols = step.cols;
    const float share = 1.0f / (float)cols;
    view x = view_of(block, step.input[0]), moments = view_of(block, step.input[2]), dy = view_of(block, step.input[3]);
    view before = view_of(block, step.result[0].old);
    target to = target_of(block, step.result[0]);
    lp_floats<width> gain[parts];
    read_factors<width>(block, gain, step.whole[1], cols);
#pragma unroll 1
    for (int from = 0; from < EACH; from += NORM_ROWS) {
        norm_rows<width> normal, g, old;
        float inverse[NORM_ROWS], mean[NORM_ROWS];
        read_norm(block, normal, x, from, cols);
        read_norm(block, g, dy, from, cols);
        read_norm(block, old, before, from, cols);
#pragma unroll
        for (int i = 0; i < NORM_ROWS; i++) {
            int r = block.warp + WARPS * (from + i);
            mean[i] = r < block.present ? moments.at[r * moments.stride] : 0;
            inverse[i] = r < block.present ? moments.at[r * moments.stride + 1] : 0;
        }
#pragma unroll
        for (int i = 0; i < NORM_ROWS; i++) {
            int r = block.warp + WARPS * (from + i);
            float sum = 0, dot = 0;
#pragma unroll
            for (int k = 0; k < parts * width; k++) {
                float *n = &normal.at[k / width][i].at[k % width], *slope = &g.at[k / width][i].at[k % width];
                *n = (*n - mean[i]) * inverse[i];
                *slope *= gain[k / width].at[k % width];
                sum += *slope;
                dot += *slope * *n;
            }
            sum = lp_warp_sum(sum) * share;
            dot = lp_warp_sum(dot) * share;
#pragma unroll
            for (int k = 0; k < parts; k++) {
                int c = width * (block.lane + 32 * k);
#pragma unroll
                for (int j = 0; j < width; j++)
                    g.at[k][i].at[j] = inverse[i] * (g.at[k][i].at[j] - sum - normal.at[k][i].at[j] * dot);
                if (r < block.present && c < cols)
                    write_at<width>(to, r, c, g.at[k][i], old.at[k][i]);
            }
        }
    }
}

/* ---- products ------------------------------------------------------------------------------------------------ */

/* sum[j] += x w_j on tensor cores for j < count, x [16 x deep], w_j the 8 columns from 8 j on; numbers are rounded on their way. */
template <bool transpose, int tiles>
__device__ inline void add_tensor(float (&sum)[tiles][4], int count, const float *x, int x_stride, const float *weight,
                                  int weight_stride, int deep)
{
    tile_lane me = tile_lane_now();
    const float *upper = x + me.group * x_stride + me.member, *lower = upper + 8 * x_stride;
    const float *right =
        weight + (transpose ? me.group * weight_stride + me.member : me.member * weight_stride + me.group);
    int column = 8 * (transpose ? weight_stride : 1), term = transpose ? 1 : weight_stride;
#pragma unroll 2
    for (int k = 0; k < deep; k += 8) {
        float left[4] = {tile_round(upper[k]), tile_round(lower[k]), tile_round(upper[k + 4]),
                         tile_round(lower[k + 4])};
        const float *here = right + k * term;
#pragma unroll
        for (int j = 0; j < tiles; j++)
            if (j < count)
                tile_multiply(sum[j], left, tile_round(here[j * column]), tile_round(here[j * column + 4 * term]));
    }
}

template <bool tensor, int tiles, int width>
__device__ inline void linear(const chain_block &block, const chain_step &step)
{
    int all = tile_pad(step.cols) / 8, half = (all + 1) / 2, deep = tile_pad(step.terms), x_stride = step.input[0].stride;
    int row = block.warp % ROW_WARPS * 16, side = block.warp / ROW_WARPS;
    int first = side ? half : 0, count = side ? all - half : half;
    const float *x = block.memory + step.input[0].place + row * x_stride;
    const float *weight = block.memory + step.weight + 8 * first * (step.transpose ? step.weight_stride : 1);
    float sum[tiles][4] = {};
    if (tensor && step.transpose)
        add_tensor<true, tiles>(sum, count, x, x_stride, weight, step.weight_stride, deep);
    else if (tensor)
        add_tensor<false, tiles>(sum, count, x, x_stride, weight, step.weight_stride, deep);
    else if (step.transpose)
        tile_rows<false, tiles>(sum, 0, count, x, x_stride, weight, step.weight_stride, 8, deep);
    else
        tile_columns<false, tiles>(sum, 0, count, x, x_stride, weight, step.weight_stride, deep);
    tile_lane me = tile_lane_now();
    const float *bias = (const float *)step.whole[2];
    view add = view_of(block, step.input[3]), old = view_of(block, step.result[0].old);
    target to = target_of(block, step.result[0]);
    int cols = step.cols;
#pragma unroll
    for (int part = 0; part < 2; part++) {
        int r = row + me.group + 8 * part;
        lp_floats<width> more[tiles][2 / width];
        /* All that is to be added is asked for before any of it is waited for. */
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int k = 0; k < 2 / width; k++) {
                int c = 8 * (first + j) + 2 * me.member + k * width;
                bool there = j < count && c < cols && r < block.present;
                lp_floats<width> none = {}, one = there && add.at ? lp_read<width>(add.at + r * add.stride + c) : none,
                                 two = there && old.at ? lp_read<width>(old.at + r * old.stride + c) : none,
                                 three = there && bias ? lp_read<width>(bias + c) : none;
#pragma unroll
                for (int i = 0; i < width; i++)
                    more[j][k].at[i] = one.at[i] + two.at[i] + three.at[i];
            }
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int k = 0; k < 2 / width; k++) {
                int c = 8 * (first + j) + 2 * me.member + k * width;
                lp_floats<width> value;
#pragma unroll
                for (int i = 0; i < width; i++)
                    value.at[i] = sum[j][2 * part + k * width + i];
                if (j < count && c < cols && r < block.present)
                    write_at<width>(to, r, c, value, more[j][k]);
            }
    }
}

/* ---- copies -------------------------------------------------------------------------------------------------- */

/* A warp takes a row. */
template <int width> __device__ inline void ask_rows(const chain_block &block, const chain_ask &ask)
{
    int present = ask.present < 0 ? block.present : ask.present, rows = ask.rows, cols = ask.cols, wide = ask.wide;
    int step = WARPS * ask.stride, from_step = WARPS * ask.from_stride;
    const float *source = ask.from + (ask.present < 0 ? (int64_t)block.first * ask.from_stride : 0);
    source += block.warp * ask.from_stride;
    float *first = block.memory + ask.place + block.warp * ask.stride;
    for (int c = width * block.lane; c < wide; c += 32 * width) {
        float *place = first + c;
        const float *from = source + c;
#pragma unroll 4
        for (int r = block.warp; r < rows; r += WARPS) {
            if (r < present && c < cols)
                tile_copy<width>(place, from);
            else
                lp_write<width>(place, lp_floats<width>{}, 0);
            place += step;
            from += from_step;
        }
    }
}

__device__ inline void ask(const chain_block &block, const chain_ask &one)
{
    if (one.width == 4)
        ask_rows<4>(block, one);
    else if (one.width == 2)
        ask_rows<2>(block, one);
    else
        ask_rows<1>(block, one);
}

/* Columns beyond those of a result, which products read as far as the next multiple of 8. */
__device__ inline void clear_pads(const chain_block &block, const chain_result &result)
{
    int r = (int)threadIdx.x >> 2;
    for (int c = result.pad + ((int)threadIdx.x & 3); c < result.pad_end; c += 4)
        block.memory[result.place + r * result.stride + c] = 0;
}

/* ---- the program --------------------------------------------------------------------------------------------- */

template <bool tensor, int width> __device__ inline void run_step(const chain_block &block, const chain_step &step)
{
    float scale = step.scale, shift = step.shift;
    const float *factor = (const float *)step.whole[1];
    switch (step.op) {
    case LP_OP_LINEAR:
        if (step.cols <= 64)
            linear<tensor, 4, width>(block, step);
        else
            linear<tensor, 8, width>(block, step);
        return;
    case LP_OP_ADD:
        return each_element<width>(block, step, [](float a, float b, int, int) { return a + b; });
    case LP_OP_RELU:
        return each_element<width>(block, step, [](float a, float, int, int) { return a > 0 ? a : 0; });
    case LP_OP_RELU_GRADIENT:
        return each_element<width>(block, step, [](float a, float b, int, int) { return a > 0 ? b : 0; });
    case LP_OP_MULTIPLY:
        return each_element<width>(block, step, [](float a, float b, int, int) { return a * b; });
    case LP_OP_AFFINE:
        return each_element<width>(block, step, [=](float a, float, int, int) { return scale * a + shift; });
    case LP_OP_SCALE_COLUMNS:
        return each_element<width>(block, step, [=](float a, float, int, int c) { return a * factor[c]; });
    case LP_OP_DROPOUT:
        return dropout<width>(block, step);
    case LP_OP_EMBED:
        return embed<width>(block, step);
    case LP_OP_BASIS:
        return basis(block, step);
    case LP_OP_REFLECT:
        return reflect<width>(block, step);
    case LP_OP_REFLECT_GRADIENT:
        return reflect_gradient<width>(block, step);
    case LP_OP_LAYER_NORM:
        return layer_norm<width>(block, step);
    case LP_OP_LAYER_NORM_GRADIENT:
        return layer_norm_gradient<width>(block, step);
    }
}

/* Brings the program to shared memory, 16 bytes at a time. */
__device__ inline void bring_program(float *memory, const void *program, int size)
{
    for (int i = (int)threadIdx.x; i < size / 16; i += THREADS)
        ((float4 *)memory)[i] = ((const float4 *)program)[i];
}

template <bool tensor, int width>
__global__ void __launch_bounds__(THREADS, 2)
    chain_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, const void *program, int count, int ask_count)
{
    LP_SHARED(float, memory);
    int first = (int)blockIdx.x * ROWS, size = lp_cuda_chain_size(count, ask_count);
    bring_program(memory, program, size);
    int present = lp_rows_now(rows, shard) - first;
    if (present <= 0)
        return;
    const chain_step *steps = (const chain_step *)memory;
    const chain_ask *asks = (const chain_ask *)(steps + count);
    chain_block block = {shard,
                         memory,
                         (unsigned char *)memory + size,
                         first,
                         min(present, (int)ROWS),
                         (int)threadIdx.x >> 5,
                         (int)threadIdx.x & 31};
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const chain_step &step = steps[i];
        int from = step.first_ask, ask_end = from + step.asks;
        if (step.waits)
            tile_wait();
        __syncthreads();
#pragma unroll 1
        for (; from < ask_end; from++)
            ask(block, asks[from]);
        if (step.late) {
            tile_wait();
            __syncthreads();
        }
        clear_pads(block, step.result[0]);
        clear_pads(block, step.result[1]);
        run_step<tensor, width>(block, step);
    }
}

template <bool tensor, int width> void launch(const lp_cuda_chain *chain, const lp_cuda_run *run)
{
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_chain mine = *chain;
    LP_LAUNCH(run, (chain_kernel<tensor, width>), mine.blocks, THREADS, (size_t)mine.shared * sizeof(float), shard,
              mine.rows, mine.program, mine.count, mine.ask_count);
}

} // namespace

void lp_cuda_chain_launch(const lp_cuda_chain *chain, const lp_cuda_run *run)
{
    if (tile_tensor(run))
        chain->width == 2 ? launch<true, 2>(chain, run) : launch<true, 1>(chain, run);
    else
        chain->width == 2 ? launch<false, 2>(chain, run) : launch<false, 1>(chain, run);
}
