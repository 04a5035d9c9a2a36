/* cuda_chain_kernel.cu: runs the program of a chain (cuda_chain.h) on 64 rows a block.
 *
 * The code is kept short: an instruction that a multiprocessor has not met takes longer to come than a hundred that it has, and a chain
 * goes through most of it once. So there is one loop for all that works on elements, with a product's bias and addend among it, few loops are
 * unrolled, and what an op has of its own is a line or two.
 *
 * A warp has every eighth row where a step works on elements, lanes side by side along the columns, and four rows at a time, so that what it
 * reads of them is under way at once. Norms have four lanes to a row, products 16 rows and half of the columns to a warp. Between steps the
 * block meets at a barrier. What a step draws or sums is what the kernels of single nodes draw and sum.
 */
#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { ROWS = LP_CHAIN_ROWS, WARPS = LP_CHAIN_WARPS, THREADS = 32 * WARPS, EACH = ROWS / WARPS, ROW_WARPS = ROWS / 16 };
enum { PART = 4 }; /* of these rows at a time */

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

/* Column c of rows warp + WARPS * (from + i); 0 where there is none. ids: which rows of a table they are; NULL: the block's own. */
template <int width>
__device__ inline void read_rows(const chain_block &block, lp_floats<width> (&to)[PART], const view &rows, int from,
                                 int c, const int32_t *ids = NULL)
{
    int first = block.warp + WARPS * from;
#pragma unroll
    for (int i = 0; i < PART; i++) {
        int r = first + WARPS * i;
        to[i] = lp_floats<width>();
        if (rows.at && r < block.present)
            to[i] = lp_read<width>(rows.at + (int64_t)(ids ? ids[r] : r) * rows.stride + c);
    }
}

/* To both places of a result. */
template <int width> __device__ inline void write_at(const target &to, int r, int c, const lp_floats<width> &value)
{
    if (to.slot)
        lp_write<width>(to.slot + r * to.stride + c, value, 0);
    if (to.keep)
        lp_write<width>(to.keep + r * to.keep_stride + c, value, 0);
}

template <int width>
__device__ inline void write_rows(const chain_block &block, const target &to, int from, int c,
                                  const lp_floats<width> (&value)[PART])
{
    int first = block.warp + WARPS * from;
#pragma unroll
    for (int i = 0; i < PART; i++)
        if (first + WARPS * i < block.present)
            write_at<width>(to, first + WARPS * i, c, value[i]);
}

/* ---- steps on elements --------------------------------------------------------------------------------------- */

/* a = f(a, b) for rows from `from` on and columns from c on, where factor is of the column. */
template <int width>
__device__ inline void apply(const chain_block &block, const chain_step &step, int from, int c,
                             lp_floats<width> (&a)[PART], const lp_floats<width> (&b)[PART], const lp_floats<width> &factor)
{
    float scale = step.scale, shift = step.shift;
#define EACH_ELEMENT(result)                                                        \
    _Pragma("unroll") for (int i = 0; i < PART; i++)                                \
        _Pragma("unroll") for (int k = 0; k < width; k++)                           \
    {                                                                               \
        float x = a[i].at[k], y = b[i].at[k], f = factor.at[k];                     \
        (void)y;                                                                    \
        (void)f;                                                                    \
        a[i].at[k] = (result);                                                      \
    }                                                                               \
    return
    switch (step.op) {
    case LP_OP_RELU:
        EACH_ELEMENT(x > 0 ? x : 0);
    case LP_OP_RELU_GRADIENT:
        EACH_ELEMENT(x > 0 ? y : 0);
    case LP_OP_MULTIPLY:
        EACH_ELEMENT(x * y);
    case LP_OP_AFFINE:
        EACH_ELEMENT(scale * x + shift);
    case LP_OP_SCALE_COLUMNS:
        EACH_ELEMENT(x * f);
    case LP_OP_DROPOUT: {
        const unsigned char *kept = block.kept + (block.warp + WARPS * from) * GROUPS + (c >> 3);
        EACH_ELEMENT(kept[WARPS * i * GROUPS] >> ((c & 7) + k) & 1 ? x * scale : 0.0f);
    }
    default: /* sums, and what is only moved */
        EACH_ELEMENT(x + y + f);
    }
#undef EACH_ELEMENT
}

/* All of them; a product is one of them when its sums are in shared memory: they get bias and addend. */
template <int width> __device__ inline void each_element(const chain_block &block, const chain_step &step)
{
    view first = view_of(block, step.input[0]), second = view_of(block, step.input[1]),
         before = view_of(block, step.result[0].old);
    target to = target_of(block, step.result[0]);
    const float *factors = (const float *)step.factors;
    const int32_t *ids = step.ids ? step.ids + block.first : NULL;
    int cols = step.cols;
    if (ids)
        first.at = step.input[0].data; /* the table's first row */
#pragma unroll 1
    for (int c = width * block.lane; c < cols; c += 32 * width) {
        lp_floats<width> factor = {};
        if (factors)
            factor = lp_read<width>(factors + c);
#pragma unroll 1
        for (int from = 0; from < EACH; from += PART) {
            lp_floats<width> a[PART], b[PART], old[PART];
            read_rows(block, a, first, from, c, ids);
            read_rows(block, b, second, from, c);
            read_rows(block, old, before, from, c);
            apply<width>(block, step, from, c, a, b, factor);
#pragma unroll
            for (int i = 0; i < PART * width; i++)
                a[i / width].at[i % width] += old[i / width].at[i % width];
            write_rows(block, to, from, c, a);
        }
    }
}

/* Which of the eight columns from 8 * group on are kept: four threads draw for a row. */
__device__ inline void draw(const chain_block &block, const chain_step &step)
{
    const lp_cuda_shard *shard = block.shard;
    int groups = (step.cols + 7) / 8, r = (int)threadIdx.x >> 2;
    uint32_t purpose = step.purpose, threshold = step.threshold;
    uint64_t seed = shard->seed, row = (shard->first_token + (uint64_t)(block.first + r)) * 65536;
#pragma unroll 1
    for (int group = (int)threadIdx.x & 3; group < groups; group += 4) {
        lp_random_block drawn = lp_philox(seed, purpose, shard->step, row + (uint64_t)group);
        unsigned bits = 0;
#pragma unroll
        for (int c = 0; c < 8; c++)
            bits |= (unsigned)lp_dropout_keep(&drawn, c, threshold) << c;
        block.kept[r * GROUPS + group] = (unsigned char)bits;
    }
    __syncthreads();
}

__device__ inline void basis(const chain_block &block, const chain_step &step)
{
    const double *frequency = (const double *)step.factors, *time = (const double *)step.time + block.first;
    target to = target_of(block, step.result[0]);
    int terms = step.terms;
#pragma unroll 1
    for (int f = block.lane; f < terms; f += 32) {
        double speed = frequency[f] * (1 / TWO_PI);
#pragma unroll 1
        for (int r = block.warp; r < block.present; r += WARPS) {
            double turns = time[r] * speed;
            lp_floats<1> sine, cosine;
            sincospif((float)(2 * (turns - rint(turns))), &sine.at[0], &cosine.at[0]);
            write_at<1>(to, r, f, cosine);
            write_at<1>(to, r, terms + f, sine);
        }
    }
}

/* ---- turns ---------------------------------------------------------------------------------------------------- */

/* (c, s) = (c cosine + s sine, c sine - s cosine) */
template <int width>
__device__ inline void turn(lp_floats<width> (&c)[PART], lp_floats<width> (&s)[PART], const lp_floats<width> (&cosine)[PART],
                            const lp_floats<width> (&sine)[PART])
{
#pragma unroll
    for (int i = 0; i < PART; i++)
#pragma unroll
        for (int k = 0; k < width; k++) {
            float one = c[i].at[k], two = s[i].at[k];
            c[i].at[k] = one * cosine[i].at[k] + two * sine[i].at[k];
            s[i].at[k] = one * sine[i].at[k] - two * cosine[i].at[k];
        }
}

/* Adds what is at these rows, and writes. */
template <int width>
__device__ inline void finish_rows(const chain_block &block, const view &before, const target &to, int from, int c,
                                   lp_floats<width> (&value)[PART])
{
    if (before.at) {
        lp_floats<width> old[PART];
        read_rows(block, old, before, from, c);
#pragma unroll
        for (int i = 0; i < PART * width; i++)
            value[i / width].at[i % width] += old[i / width].at[i % width];
    }
    write_rows(block, to, from, c, value);
}

/* x, u -> y, or with dy: x, u, dy -> dx, du. Both turn a row: x or dy. */
template <int width> __device__ inline void reflect(const chain_block &block, const chain_step &step, bool backward)
{
    int count = step.terms, heads = step.heads;
    view x = view_of(block, step.input[0]), u = view_of(block, step.input[1]);
    view turned = backward ? view_of(block, step.input[2]) : x, before = view_of(block, step.result[0].old);
    view before_u = view_of(block, step.result[1].old);
    target to = target_of(block, step.result[0]), du = target_of(block, step.result[1]);
    bool slopes = backward && (du.slot || du.keep);
#pragma unroll 1
    for (int f = width * block.lane; f < count; f += 32 * width)
#pragma unroll 1
        for (int from = 0; from < EACH; from += PART) {
            lp_floats<width> cosine[PART], sine[PART], dcosine[PART] = {}, dsine[PART] = {};
            read_rows(block, cosine, u, from, f);
            read_rows(block, sine, u, from, count + f);
#pragma unroll 1
            for (int h = 0; h < heads; h++) {
                lp_floats<width> yc[PART], ys[PART];
                int c = 2 * count * h + f;
                read_rows(block, yc, turned, from, c);
                read_rows(block, ys, turned, from, count + c);
                if (slopes) {
                    lp_floats<width> xc[PART], xs[PART];
                    read_rows(block, xc, x, from, c);
                    read_rows(block, xs, x, from, count + c);
#pragma unroll
                    for (int i = 0; i < PART; i++)
#pragma unroll
                        for (int k = 0; k < width; k++) {
                            dcosine[i].at[k] += xc[i].at[k] * yc[i].at[k] - xs[i].at[k] * ys[i].at[k];
                            dsine[i].at[k] += xs[i].at[k] * yc[i].at[k] + xc[i].at[k] * ys[i].at[k];
                        }
                }
                turn<width>(yc, ys, cosine, sine);
                finish_rows<width>(block, before, to, from, c, yc);
                finish_rows<width>(block, before, to, from, count + c, ys);
            }
            if (slopes) {
                finish_rows<width>(block, before_u, du, from, f, dcosine);
                finish_rows<width>(block, before_u, du, from, count + f, dsine);
            }
        }
}

/* ---- norms --------------------------------------------------------------------------------------------------- */

/* The sum over the four lanes of a row. */
__device__ inline float row_sum(float value)
{
    value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
    return value + __shfl_xor_sync(0xFFFFFFFFu, value, 2);
}

template <int width> __device__ inline void layer_norm(const chain_block &block, const chain_step &step)
{
    int cols = step.cols, r = (int)threadIdx.x >> 2, member = (int)threadIdx.x & 3;
    const float share = 1.0f / (float)cols, epsilon = step.shift;
    view rows = view_of(block, step.input[0]);
    target to = target_of(block, step.result[0]), moments = target_of(block, step.result[1]);
    const float *gain = (const float *)step.factors, *shift = (const float *)step.shifts;
    int last = r < block.present ? cols : 0; /* no columns in rows that are not there */
    const float *x = rows.at + r * rows.stride;
    float sum = 0, square = 0;
#pragma unroll 2
    for (int c = width * member; c < last; c += 4 * width)
        for (int k = 0; k < width; k++)
            sum += x[c + k];
    float mean = row_sum(sum) * share;
#pragma unroll 2
    for (int c = width * member; c < last; c += 4 * width)
        for (int k = 0; k < width; k++)
            square += (x[c + k] - mean) * (x[c + k] - mean);
    float inverse = rsqrtf(row_sum(square) * share + epsilon);
#pragma unroll 2
    for (int c = width * member; c < last; c += 4 * width) {
        lp_floats<width> value = lp_read<width>(x + c), by = lp_read<width>(gain + c), more = lp_read<width>(shift + c);
        for (int k = 0; k < width; k++)
            value.at[k] = (value.at[k] - mean) * inverse * by.at[k] + more.at[k];
        write_at<width>(to, r, c, value);
    }
    lp_floats<1> moment = {{member ? inverse : mean}};
    if (last && member < 2)
        write_at<1>(moments, r, member, moment);
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
template <int width> __device__ inline void layer_norm_gradient(const chain_block &block, const chain_step &step)
{
    int cols = step.cols, r = (int)threadIdx.x >> 2, member = (int)threadIdx.x & 3;
    const float share = 1.0f / (float)cols, *gain = (const float *)step.factors;
    view rows = view_of(block, step.input[0]), moments = view_of(block, step.input[2]),
         slopes = view_of(block, step.input[3]), before = view_of(block, step.result[0].old);
    target to = target_of(block, step.result[0]);
    int last = r < block.present ? cols : 0;
    const float *x = rows.at + r * rows.stride, *dy = slopes.at + r * slopes.stride;
    float mean = last ? moments.at[r * moments.stride] : 0, inverse = last ? moments.at[r * moments.stride + 1] : 0;
    float sum = 0, dot = 0;
#pragma unroll 2
    for (int c = width * member; c < last; c += 4 * width) {
        lp_floats<width> value = lp_read<width>(x + c), slope = lp_read<width>(dy + c), by = lp_read<width>(gain + c);
        for (int k = 0; k < width; k++) {
            float g = slope.at[k] * by.at[k];
            sum += g;
            dot += g * ((value.at[k] - mean) * inverse);
        }
    }
    sum = row_sum(sum) * share;
    dot = row_sum(dot) * share;
#pragma unroll 2
    for (int c = width * member; c < last; c += 4 * width) {
        lp_floats<width> value = lp_read<width>(x + c), slope = lp_read<width>(dy + c), by = lp_read<width>(gain + c),
                         old = {};
        if (before.at)
            old = lp_read<width>(before.at + r * before.stride + c);
        for (int k = 0; k < width; k++)
            value.at[k] = old.at[k] + inverse * (slope.at[k] * by.at[k] - sum - (value.at[k] - mean) * inverse * dot);
        write_at<width>(to, r, c, value);
    }
}

/* ---- products ------------------------------------------------------------------------------------------------ */

enum { TILES = LP_CHAIN_COLS / 8 / 2 }; /* of 16 x 8 that a warp has side by side */

/* sum[j] += x w_j on tensor cores for j < count, x [16 x deep], w_j the 8 columns from 8 j on; numbers are rounded on their way. Columns
 * and terms of the weight lie `column` and `term` floats apart. */
__device__ inline void add_tensor(float (&sum)[TILES][4], int count, const float *x, int x_stride, const float *weight,
                                  int column, int term, int deep)
{
    tile_lane me = tile_lane_now();
    const float *upper = x + me.group * x_stride + me.member, *lower = upper + 8 * x_stride;
    const float *right = weight + me.group * column + me.member * term;
#pragma unroll 1
    for (int k = 0; k < deep; k += 8) {
        float left[4] = {tile_round(upper[k]), tile_round(lower[k]), tile_round(upper[k + 4]),
                         tile_round(lower[k + 4])};
#pragma unroll
        for (int j = 0; j < TILES; j++)
            if (j < count)
                tile_multiply(sum[j], left, tile_round(right[8 * j * column]), tile_round(right[8 * j * column + 4 * term]));
        right += 8 * term;
    }
}

/* The sums go to shared memory, where they are added to what is there if step.inside says so. */
template <bool tensor> __device__ inline void product(const chain_block &block, const chain_step &step)
{
    int all = tile_pad(step.cols) / 8, half = (all + 1) / 2, deep = tile_pad(step.terms), x_stride = step.x.stride;
    int row = block.warp % ROW_WARPS * 16, side = block.warp / ROW_WARPS, weight_stride = step.weight_stride;
    int first = side ? half : 0, count = side ? all - half : half, column = step.transpose ? weight_stride : 1;
    const float *x = block.memory + step.x.place + row * x_stride;
    const float *weight = block.memory + step.weight + 8 * first * column;
    float sum[TILES][4] = {};
    if (tensor)
        add_tensor(sum, count, x, x_stride, weight, column, step.transpose ? 1 : weight_stride, deep);
    else if (step.transpose)
        tile_rows<false, TILES>(sum, 0, count, x, x_stride, weight, weight_stride, 8, deep);
    else
        tile_columns<false, TILES>(sum, 0, count, x, x_stride, weight, weight_stride, deep);
    tile_lane me = tile_lane_now();
    int c = 8 * first + 2 * me.member, last = step.wide - c, stride = step.stride;
    float *to = block.memory + step.sums + (row + me.group) * stride + c;
    bool inside = step.inside;
#pragma unroll
    for (int j = 0; j < TILES; j++)
        if (j < count && 8 * j < last) {
            float2 upper = {sum[j][0], sum[j][1]}, lower = {sum[j][2], sum[j][3]};
            float2 *above = (float2 *)(to + 8 * j), *below = (float2 *)(to + 8 * j + 8 * stride);
            if (inside) {
                upper = make_float2(upper.x + above->x, upper.y + above->y);
                lower = make_float2(lower.x + below->x, lower.y + below->y);
            }
            *above = upper;
            *below = lower;
        }
    __syncthreads();
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
#pragma unroll 1
    for (int c = width * block.lane; c < wide; c += 32 * width) {
        float *place = first + c;
        const float *from = source + c;
#pragma unroll 2
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

template <int width> __device__ inline void ask(const chain_block &block, const chain_ask &one)
{
    if (one.width == 4)
        ask_rows<4>(block, one);
    else
        ask_rows<width>(block, one);
}

/* Columns beyond those of a result, which products read as far as the next multiple of 8. */
__device__ inline void clear_pads(const chain_block &block, const chain_result &result)
{
    int r = (int)threadIdx.x >> 2, end = result.pad_end;
#pragma unroll 1
    for (int c = result.pad + ((int)threadIdx.x & 3); c < end; c += 4)
        block.memory[result.place + r * result.stride + c] = 0;
}

/* ---- the program --------------------------------------------------------------------------------------------- */

template <bool tensor, int width> __device__ inline void run_step(const chain_block &block, const chain_step &step)
{
    switch (step.op) {
    case LP_OP_BASIS:
        return basis(block, step);
    case LP_OP_REFLECT:
    case LP_OP_REFLECT_GRADIENT:
        return reflect<width>(block, step, step.op == LP_OP_REFLECT_GRADIENT);
    case LP_OP_LAYER_NORM:
        return layer_norm<width>(block, step);
    case LP_OP_LAYER_NORM_GRADIENT:
        return layer_norm_gradient<width>(block, step);
    case LP_OP_LINEAR:
        product<tensor>(block, step);
        if (step.done)
            return;
        break;
    case LP_OP_DROPOUT:
        draw(block, step);
        break;
    }
    each_element<width>(block, step);
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
            ask<width>(block, asks[from]);
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
