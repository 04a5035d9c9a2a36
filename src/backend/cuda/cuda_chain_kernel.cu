/* cuda_chain_kernel.cu: runs the program of a chain (cuda_chain.h), 16 rows to a warp.
 *
 * A lane has two rows, g and g + 8 of the warp's, and of every tile of 8 columns two side by side. Columns beyond a value's own are 0.
 * What a step draws or sums is what the kernels of single nodes draw and sum, but for the order of terms.
 */
#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { TILES = LP_CHAIN_TILES, WARPS = LP_CHAIN_WARPS, THREADS = 32 * WARPS };
enum { DRAWS = 2 * TILES }; /* random blocks of a lane's two rows: one for each tile */

#define TWO_PI 6.283185307179586476925

/* Half a value: element i of tile j is row g + 8 (i / 2), column 8 j + 2 t + i % 2. */
typedef struct strip {
    float at[TILES][4];
} strip;

/* A lane: its first column, its rows, and which of them there are. */
typedef struct chain_lane {
    const lp_cuda_shard *shard;
    uint4 *drawn; /* the warp's: [8 x DRAWS] */
    int group, member, column;
    int64_t row;
    bool there[2];
} chain_lane;

__device__ inline float2 read_two(const float *from, bool there)
{
    float2 none = {0, 0};
    return there ? *(const float2 *)from : none;
}

/* Where the lane's first column of its first row is, in half `part` of so many columns. */
__device__ inline float *place_of(const chain_lane &me, const chain_rows &rows, int part, int cols)
{
    return rows.data + me.row * rows.stride + part * cols + me.column;
}

/* x = rows, or more by them. Rows may be absent. */
template <bool adds>
__device__ inline void read_strip(const chain_lane &me, strip &x, const chain_rows &rows, int part, int cols)
{
    const float *first = place_of(me, rows, part, cols), *second = first + 8 * rows.stride;
    bool upper = rows.data && me.there[0], lower = rows.data && me.there[1];
    if (adds && !rows.data)
        return;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        bool column = me.column + 8 * j < cols;
        float2 one = read_two(first + 8 * j, column && upper), two = read_two(second + 8 * j, column && lower);
        x.at[j][0] = adds ? x.at[j][0] + one.x : one.x;
        x.at[j][1] = adds ? x.at[j][1] + one.y : one.y;
        x.at[j][2] = adds ? x.at[j][2] + two.x : two.x;
        x.at[j][3] = adds ? x.at[j][3] + two.y : two.y;
    }
}

__device__ inline void write_strip(const chain_lane &me, const strip &x, const chain_rows &rows, int part, int cols)
{
    float *first = place_of(me, rows, part, cols), *second = first + 8 * rows.stride;
    if (!rows.data)
        return;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        bool column = me.column + 8 * j < cols;
        if (column && me.there[0])
            *(float2 *)(first + 8 * j) = make_float2(x.at[j][0], x.at[j][1]);
        if (column && me.there[1])
            *(float2 *)(second + 8 * j) = make_float2(x.at[j][2], x.at[j][3]);
    }
}

/* Numbers of columns, the same for all rows. */
__device__ inline float2 read_factors(const chain_lane &me, const float *factors, int j, int cols)
{
    return read_two(factors + me.column + 8 * j, factors && me.column + 8 * j < cols);
}

/* ---- products ------------------------------------------------------------------------------------------------ */

/* sum += x W, W [in x out] as it lies in memory; transposed [out x in]. A step of the tensor core takes the terms 8 j + 2 t in the place of
 * t, and 8 j + 2 t + 1 in that of t + 4: as the lane has them. */
template <bool transpose>
__device__ inline void multiply(const chain_lane &me, strip &sum, const strip &x, const float *weight, int stride,
                                int in, int out)
{
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        const float left[4] = {tile_round(x.at[j][0]), tile_round(x.at[j][2]), tile_round(x.at[j][1]), tile_round(x.at[j][3])};
        int term = 8 * j + me.column;
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            int column = 8 * i + me.group;
            bool there = term < in && column < out;
            float2 right;
            if (transpose) {
                right = read_two(weight + column * stride + term, there);
            } else {
                right.x = there ? weight[term * stride + column] : 0;
                right.y = there ? weight[(term + 1) * stride + column] : 0;
            }
            tile_multiply(sum.at[i], left, tile_round(right.x), tile_round(right.y));
        }
    }
}

/* y = x W + bias + addend + what was there. `x` stays as it is for a product that follows. */
__device__ inline void linear(const chain_lane &me, const chain_step &step, strip &here, strip &x)
{
    int cols = step.cols, in = step.in_cols, stride = step.weight_stride;
    const float *bias = (const float *)step.factors;
    if (step.follows)
        x = here;
#pragma unroll 1
    for (int to = 0; to < step.parts; to++) {
        strip sum;
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            float2 more = read_factors(me, bias ? bias + to * cols : NULL, j, cols);
            sum.at[j][0] = sum.at[j][2] = more.x;
            sum.at[j][1] = sum.at[j][3] = more.y;
        }
        read_strip<true>(me, sum, step.other[0], to, cols);
        read_strip<true>(me, sum, step.old[0], to, cols);
#pragma unroll 1
        for (int from = 0; from < step.in_parts; from++) {
            if (!step.follows && (!step.again || step.in_parts > 1) && (to == 0 || step.in_parts > 1))
                read_strip<false>(me, x, step.main, from, in);
            if (step.transpose)
                multiply<true>(me, sum, x, step.weight + to * cols * stride + from * in, stride, in, cols);
            else
                multiply<false>(me, sum, x, step.weight + from * in * stride + to * cols, stride, in, cols);
        }
        write_strip(me, sum, step.result[0], to, cols);
        if (step.parts == 1)
            here = sum;
    }
}

/* ---- elements ------------------------------------------------------------------------------------------------ */

/* The random words of a lane's rows: the four lanes of a row draw in turn, a block for each tile, and find their own two columns in
 * those of the others. */
__device__ inline void draw(const chain_lane &me, const chain_step &step)
{
    const lp_cuda_shard *shard = me.shard;
    uint64_t first = shard->first_token + (uint64_t)me.row;
    __syncwarp();
#pragma unroll 1
    for (int i = me.member; i < DRAWS; i += 4) {
        int lower = i >= TILES, tile = lower ? i - TILES : i;
        lp_random_block block =
            lp_philox(shard->seed, step.purpose, shard->step, (first + (lower ? 8 : 0)) * 65536 + (uint64_t)tile);
        me.drawn[me.group * DRAWS + i] = make_uint4(block.word[0], block.word[1], block.word[2], block.word[3]);
    }
    __syncwarp();
}

__device__ inline void drop(const chain_lane &me, strip &x, float scale, uint32_t threshold)
{
    const uint32_t *words = (const uint32_t *)(me.drawn + me.group * DRAWS) + me.member;
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t word = words[4 * (j + half * TILES)];
            x.at[j][2 * half] = (word & 0xFFFFu) >= threshold ? x.at[j][2 * half] * scale : 0;
            x.at[j][2 * half + 1] = word >> 16 >= threshold ? x.at[j][2 * half + 1] * scale : 0;
        }
}

/* x = f(x, y), where y is the other input's part. */
__device__ inline void apply(const chain_lane &me, const chain_step &step, strip &x, int part)
{
    int op = step.op, cols = step.cols;
    float scale = step.scale, shift = step.shift;
    if (op == LP_OP_ADD)
        return read_strip<true>(me, x, step.other[0], part, cols);
    if (op == LP_OP_DROPOUT)
        return drop(me, x, scale, step.threshold);
    if (op == LP_OP_RELU_GRADIENT || op == LP_OP_MULTIPLY) {
        strip y;
        read_strip<false>(me, y, step.other[0], part, cols);
#pragma unroll
        for (int k = 0; k < 4 * TILES; k++) {
            float other = y.at[k / 4][k % 4], *mine = &x.at[k / 4][k % 4];
            *mine = op == LP_OP_MULTIPLY ? *mine * other : other > 0 ? *mine : 0;
        }
        return;
    }
    const float *factors = step.factors ? (const float *)step.factors + part * cols : NULL;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        bool column = me.column + 8 * j < cols;
        float2 factor = read_factors(me, factors, j, cols);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float *mine = &x.at[j][i];
            if (op == LP_OP_RELU)
                *mine = *mine > 0 ? *mine : 0;
            else if (op == LP_OP_AFFINE)
                *mine = column ? scale * *mine + shift : 0;
            else if (op == LP_OP_SCALE_COLUMNS)
                *mine *= i % 2 ? factor.y : factor.x;
        }
    }
}

/* Rows of a table. */
__device__ inline void read_table(const chain_lane &me, const chain_step &step, strip &x, int part)
{
    const int32_t *ids = step.ids + me.row;
    int cols = step.cols, stride = step.main.stride;
    const float *table = step.main.data + part * cols + me.column;
    const float *first = table + (me.there[0] ? (int64_t)ids[0] * stride : 0);
    const float *second = table + (me.there[1] ? (int64_t)ids[8] * stride : 0);
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        bool column = me.column + 8 * j < cols;
        float2 one = read_two(first + 8 * j, column && me.there[0]), two = read_two(second + 8 * j, column && me.there[1]);
        x.at[j][0] = one.x;
        x.at[j][1] = one.y;
        x.at[j][2] = two.x;
        x.at[j][3] = two.y;
    }
}

__device__ inline void each_element(const chain_lane &me, const chain_step &step, strip &here)
{
    if (step.op == LP_OP_DROPOUT)
        draw(me, step);
#pragma unroll 1
    for (int part = 0; part < step.parts; part++) {
        if (step.ids)
            read_table(me, step, here, part);
        else if (!step.follows)
            read_strip<false>(me, here, step.main, part, step.cols);
        apply(me, step, here, part);
        read_strip<true>(me, here, step.old[0], part, step.cols);
        write_strip(me, here, step.result[0], part, step.cols);
    }
}

/* ---- norms --------------------------------------------------------------------------------------------------- */

/* The sum over the four lanes of a row. */
__device__ inline float row_sum(float value)
{
    value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
    return value + __shfl_xor_sync(0xFFFFFFFFu, value, 2);
}

__device__ inline void layer_norm(const chain_lane &me, const chain_step &step, strip &x)
{
    int cols = step.cols;
    float share = 1.0f / (float)cols, mean[2], inverse[2];
    if (!step.follows)
        read_strip<false>(me, x, step.main, 0, cols);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float sum = 0, square = 0;
#pragma unroll
        for (int j = 0; j < TILES; j++)
            sum += x.at[j][2 * half] + x.at[j][2 * half + 1];
        mean[half] = row_sum(sum) * share;
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            float one = x.at[j][2 * half] - mean[half], two = x.at[j][2 * half + 1] - mean[half];
            square += me.column + 8 * j < cols ? one * one + two * two : 0;
        }
        inverse[half] = rsqrtf(row_sum(square) * share + step.shift);
        float2 *moments = (float2 *)(step.result[1].data + (me.row + 8 * half) * 2);
        if (step.result[1].data && me.there[half] && me.member == 0)
            *moments = make_float2(mean[half], inverse[half]);
    }
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float2 gain = read_factors(me, (const float *)step.factors, j, cols);
        float2 shift = read_factors(me, step.shifts, j, cols);
#pragma unroll
        for (int i = 0; i < 4; i++)
            x.at[j][i] = (x.at[j][i] - mean[i / 2]) * inverse[i / 2] * (i % 2 ? gain.y : gain.x) + (i % 2 ? shift.y : shift.x);
    }
    write_strip(me, x, step.result[0], 0, cols);
}

/* With n = (x - mean) * inverse and g = dy * gain:  dx = inverse * (g - mean(g) - n * mean(g n)) */
__device__ inline void layer_norm_gradient(const chain_lane &me, const chain_step &step, strip &here)
{
    int cols = step.cols;
    float share = 1.0f / (float)cols;
    strip normal;
    if (!step.follows)
        read_strip<false>(me, here, step.main, 0, cols);
    read_strip<false>(me, normal, step.other[0], 0, cols);
    const float *first = step.other[1].data + me.row * 2;
    float2 moments[2] = {read_two(first, me.there[0]), read_two(first + 16, me.there[1])};
    float sum[2] = {0, 0}, dot[2] = {0, 0};
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float2 gain = read_factors(me, (const float *)step.factors, j, cols);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            normal.at[j][i] = (normal.at[j][i] - moments[i / 2].x) * moments[i / 2].y;
            here.at[j][i] *= i % 2 ? gain.y : gain.x;
            sum[i / 2] += here.at[j][i];
            dot[i / 2] += here.at[j][i] * normal.at[j][i];
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        sum[half] = row_sum(sum[half]) * share;
        dot[half] = row_sum(dot[half]) * share;
    }
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            here.at[j][i] = me.column + 8 * j < cols ? moments[i / 2].y * (here.at[j][i] - sum[i / 2] -
                                                                         normal.at[j][i] * dot[i / 2])
                                                   : 0;
    read_strip<true>(me, here, step.old[0], 0, cols);
    write_strip(me, here, step.result[0], 0, cols);
}

/* ---- time ---------------------------------------------------------------------------------------------------- */

__device__ inline void basis(const chain_lane &me, const chain_step &step)
{
    const double *frequency = (const double *)step.factors, *time = step.time + me.row;
    int cols = step.cols, stride = step.result[0].stride;
    float *to = step.result[0].data + me.row * stride + me.column;
    double at[2] = {me.there[0] ? time[0] : 0, me.there[1] ? time[8] : 0};
#pragma unroll 1
    for (int j = 0; me.column + 8 * j < cols; j++) {
        double speed[2] = {frequency[me.column + 8 * j] * (1 / TWO_PI), frequency[me.column + 8 * j + 1] * (1 / TWO_PI)};
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sine[2], cosine[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                double turns = at[half] * speed[i];
                sincospif((float)(2 * (turns - rint(turns))), &sine[i], &cosine[i]);
            }
            float *here = to + 8 * half * stride + 8 * j;
            if (me.there[half]) {
                *(float2 *)here = make_float2(cosine[0], cosine[1]);
                *(float2 *)(here + cols) = make_float2(sine[0], sine[1]);
            }
        }
    }
}

/* One row of a pair of tiles: cosines and sines, or what belongs to them. */
typedef struct turn {
    float2 c, s;
} turn;

__device__ inline turn read_turn(const chain_rows &rows, int64_t place, int cols, bool there)
{
    turn one = {read_two(rows.data + place, there && rows.data), read_two(rows.data + place + cols, there && rows.data)};
    return one;
}

__device__ inline void write_turn(const chain_rows &rows, int64_t place, int cols, bool there, const turn &value,
                                  const turn &old)
{
    if (!there || !rows.data)
        return;
    *(float2 *)(rows.data + place) = make_float2(value.c.x + old.c.x, value.c.y + old.c.y);
    *(float2 *)(rows.data + place + cols) = make_float2(value.s.x + old.s.x, value.s.y + old.s.y);
}

/* (c, s) -> (c cosine + s sine, c sine - s cosine) */
__device__ inline turn reflected(const turn &x, const turn &u)
{
    turn y = {make_float2(x.c.x * u.c.x + x.s.x * u.s.x, x.c.y * u.c.y + x.s.y * u.s.y),
              make_float2(x.c.x * u.s.x - x.s.x * u.c.x, x.c.y * u.s.y - x.s.y * u.c.y)};
    return y;
}

/* x, u -> y; or where there are three: dy, u, x -> dx, du. */
__device__ inline void reflect(const chain_lane &me, const chain_step &step)
{
    int cols = step.cols;
    bool backward = step.op == LP_OP_REFLECT_GRADIENT;
#pragma unroll 2
    for (int k = 0; k < 2 * TILES; k++) {
        int half = k & 1, c = me.column + 4 * (k - half);
        bool there = me.there[half] && c < cols;
        int64_t place = (me.row + 8 * half) * step.main.stride + c;
        turn x = read_turn(step.main, place, cols, there), u = read_turn(step.other[0], place, cols, there);
        turn old = read_turn(step.old[0], place, cols, there);
        if (backward) {
            turn from = read_turn(step.other[1], place, cols, there), more = read_turn(step.old[1], place, cols, there);
            turn du = {make_float2(from.c.x * x.c.x - from.s.x * x.s.x, from.c.y * x.c.y - from.s.y * x.s.y),
                       make_float2(from.s.x * x.c.x + from.c.x * x.s.x, from.s.y * x.c.y + from.c.y * x.s.y)};
            write_turn(step.result[1], place, cols, there, du, more);
        }
        write_turn(step.result[0], place, cols, there, reflected(x, u), old);
    }
}

/* ---- the program --------------------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    chain_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, const chain_step *program, int count)
{
    __shared__ chain_step steps[LP_CHAIN_STEPS];
    __shared__ uint4 drawn[WARPS][8 * DRAWS];
    for (int i = (int)threadIdx.x; i < count * (int)(sizeof(chain_step) / 8); i += THREADS)
        ((uint2 *)steps)[i] = ((const uint2 *)program)[i];
    tile_lane lane = tile_lane_now();
    int present = lp_rows_now(rows, shard);
    int64_t first = ((int64_t)blockIdx.x * WARPS + lane.warp) * LP_CHAIN_ROWS, row = first + lane.group;
    chain_lane me = {shard,      drawn[lane.warp], lane.group, lane.member, 2 * lane.member, row,
                     {row < present, row + 8 < present}};
    __syncthreads();
    if (first >= present)
        return;
    strip here = {}, x = {};
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const chain_step &step = steps[i];
        switch (step.op) {
        case LP_OP_LINEAR:
            linear(me, step, here, x);
            break;
        case LP_OP_LAYER_NORM:
            layer_norm(me, step, here);
            break;
        case LP_OP_LAYER_NORM_GRADIENT:
            layer_norm_gradient(me, step, here);
            break;
        case LP_OP_BASIS:
            basis(me, step);
            break;
        case LP_OP_REFLECT:
        case LP_OP_REFLECT_GRADIENT:
            reflect(me, step);
            break;
        default:
            each_element(me, step, here);
        }
        __syncwarp(); /* moments are read by others than wrote them */
    }
}

} // namespace

bool lp_cuda_chain_runs(const lp_cuda_run *run)
{
    return tile_tensor(run);
}

void lp_cuda_chain_launch(const lp_cuda_chain *chain, const lp_cuda_run *run)
{
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_chain mine = *chain;
    LP_LAUNCH(run, chain_kernel, mine.blocks, THREADS, 0, shard, mine.rows, mine.program, mine.count);
}
