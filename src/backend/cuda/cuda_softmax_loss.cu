/* cuda_softmax_loss.cu: softmax cross-entropy over a catalogue, and its gradient.
 *
 *     s(t, c) = z_t . item_c + bias_c + logq_c        loss_t = lse_t - s(t, target_t),  lse_t = log sum_c exp s(t, c)
 *     ds(t, c) = dloss (exp(s - lse_t) - [c = target_t])    dz = ds items    ditems = ds^T z    dbias = column sums
 *
 * z and the items are packed: rounded to the precision; in bf16 in blocks (cuda_product_wide.h). A product of them stores
 * exponentials, in the precision, relative to the target's score, which is known before:
 *
 *     e(t, c) = exp(s(t, c) - s(t, target_t))    sum_t = sum_c e(t, c)    d(t, c) = e(t, c) - sum_t [c = target_t]
 *     dz = dloss / sum_t (d items)    ditems = dloss d^T (z_t / sum_t)    dbias = dloss d^T (1 / sum_t)
 *
 * So the gradient is two more products, which read d as it is. Where d is too large to be kept (D_SIZE), the forward pass only adds up
 * the sums, and the gradient computes d again, a chunk of items after the other. Where exponentials overflow (a target is exp(69) times
 * less probable than some item), a warp computes the row relative to its maximum. Scores are multiplied by log2 e: exponentials are
 * powers of 2.
 */
#include "backend/cuda/cuda_product_wide.h"
#include "backend/cuda/cuda_reduce.h"

namespace
{

/* Bytes of d that are kept at most, or those of a chunk. The emulation takes several chunks of small catalogues. */
#ifdef LP_CUDA_EMULATED
enum { D_SIZE = 1 << 16 };
#else
enum { D_SIZE = 512 << 20 };
#endif
/* Warps of a block of pack_factors; rows and columns of a tile of scores. */
enum { WARPS = 8, SCORE_ROWS = 128, SCORE_COLS = 128 };

template <int precision>
using score_shape =
    std::conditional_t<precision == LP_PRECISION_BF16, wide_shape<SCORE_ROWS, SCORE_COLS, 2>, product_tile>;

/* For tiles of `width` columns. */
template <int precision, int width>
using gradient_shape =
    std::conditional_t<precision == LP_PRECISION_BF16,
                       wide_shape<width == 192 ? 192 : 128, width, width <= 128 ? 2 : 1>, product_tile>;

/* Below every score. Finite, so that no difference of two is NaN. */
#define LEAST_SCORE (-1e30f)
/* Sums of exponentials above it are computed again. */
#define MOST_SUM 0x1p100f

/* Packed matrices have numbers of the precision, and rows of `stride` of them. What follows `logq` lies in the side buffer of lse, if
 * there is a gradient. */
typedef struct loss_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows targets, items; /* rows of z, rows of the catalogue */
    int rows, lines, item_rows;  /* of the largest shard: rows of z; rows and items up to whole blocks and tiles */
    int first, count, d_stride;  /* the items of d, which are those of a chunk where it is not kept */
    int cols, stride, width;     /* of z and the table; of packed matrices; of a load of z and table */
    const int32_t *target;
    const float *z, *table, *bias, *logq;
    void *packed_z;      /* times log2 e */
    void *packed_items;  /* in their order */
    void *columns;       /* items in the order of columns of scores (column_of) */
    void *scaled;        /* z_t / sum_t */
    void *inverse;       /* 1 / sum_t; zeros up to a whole block */
    void *d;             /* [lines x d_stride]; NULL: it is not kept, or there is no gradient */
    float *terms;        /* of columns; LEAST_SCORE where there is no item */
    float *target_score; /* by the rounded factors */
    float *origin;       /* the score that exponentials are relative to: the target's, or the row's maximum */
    float *sum;          /* of exponentials */
    float *range_sums;   /* the same by ranges of columns, [ranges x rows]; NULL: not stored */
    int32_t *ranges;     /* of each row tile */
    double *losses;      /* sums of the blocks of finish_rows */
} loss_task;

__device__ float item_term(const loss_task &task, int item)
{
    float term = (task.bias[item] + (task.logq ? task.logq[item] : 0)) * TILE_LOG2_E;
    return term < LEAST_SCORE ? LEAST_SCORE : term; /* NaN stays */
}

/* ---- packed factors ------------------------------------------------------------------------------------------ */

template <int precision> __device__ float rounded(float x)
{
    return precision == LP_PRECISION_BF16   ? tile_round_bf16(x)
           : precision == LP_PRECISION_TF32 ? tile_round_tf32(x)
                                            : x;
}

/* Offset of an element of a packed matrix, or of d. */
template <int precision> __device__ int64_t packed_at(int64_t stride, int row, int col)
{
    return precision == LP_PRECISION_BF16 ? wide_at(stride, row, col) : row * stride + col;
}

/* Rounds and stores a number. */
template <int precision> __device__ void packed_store(void *to, int64_t at, float x)
{
    if constexpr (precision == LP_PRECISION_BF16)
        ((uint16_t *)to)[at] = (uint16_t)(__float_as_uint(tile_round_bf16(x)) >> 16);
    else
        ((float *)to)[at] = rounded<precision>(x);
}

/* Rounds and stores four neighbours of a row, times scale; returns them. */
template <int precision> __device__ float4 packed_store(void *to, int64_t at, float4 x, float scale)
{
    x = make_float4(rounded<precision>(x.x * scale), rounded<precision>(x.y * scale), rounded<precision>(x.z * scale),
                    rounded<precision>(x.w * scale));
    if constexpr (precision == LP_PRECISION_BF16)
        *(float2 *)((uint16_t *)to + at) = make_float2(tile_pack_bf16(x.x, x.y), tile_pack_bf16(x.z, x.w));
    else
        *(float4 *)((float *)to + at) = x;
    return x;
}

/* The column of scores that an item has. A lane of a product has two neighbouring columns of every 8, and stores those of
 * neighbouring items as one vector of 16 bytes. */
template <int precision> __device__ int column_of(int item)
{
    constexpr int unit = precision == LP_PRECISION_BF16 ? 8 : 4;
    int at = item % (4 * unit);
    return item - at + at % unit / 2 * 8 + at / unit * 2 + at % 2;
}

/* One warp for each row of z, then of items. */
template <int precision>
__global__ void __launch_bounds__(32 * WARPS) pack_factors(const __grid_constant__ loss_task task)
{
    int row = (int)blockIdx.x * WARPS + (int)(threadIdx.x >> 5), lane = (int)threadIdx.x & 31, cols = task.cols;
    lp_pdl_trigger();
    bool item = row >= task.rows;
    row -= item ? task.rows : 0;
    int count = lp_rows_now(item ? task.items : task.targets, task.shard);
    if (row >= (item ? task.item_rows : count))
        return;
    int other = item ? column_of<precision>(row) : task.target[row];
    auto load = [&](const float *from, int r, int c) {
        return product_load(from + (int64_t)r * cols + c, row < count ? cols - c : 0, task.width);
    };
    float score = 0;
    for (int c = 4 * lane; c < task.stride; c += 128) {
        float4 x = load(item ? task.table : task.z, row, c);
        x = packed_store<precision>(item ? task.packed_items : task.packed_z, packed_at<precision>(task.stride, row, c),
                                    x, item ? 1 : TILE_LOG2_E);
        if (item) {
            packed_store<precision>(task.columns, packed_at<precision>(task.stride, other, c), x, 1);
        } else {
            float4 y = load(task.table, other, c);
            score += x.x * rounded<precision>(y.x) + x.y * rounded<precision>(y.y) + x.z * rounded<precision>(y.z) +
                     x.w * rounded<precision>(y.w);
        }
    }
    score = lp_warp_sum(score);
    if (lane == 0 && item)
        task.terms[other] = row < count ? item_term(task, row) : LEAST_SCORE;
    else if (lane == 0)
        task.target_score[row] = task.origin[row] = score + item_term(task, other);
}

/* ---- exponentials -------------------------------------------------------------------------------------------- */

/* Stores exponentials, and their sums over the tiles of a warp. */
typedef struct store_exponentials : product_finish {
    loss_task loss;
    float total[2 * product_tile::down]; /* of the lane's own columns */

    /* Exponents without the product, which is added to them. */
    template <int precision, bool a_deep, typename shape>
    __device__ void start(const product_place &place, product_sums<shape> &products) const
    {
        product_all_pairs(products, place, [&](int row, int col, float *pair) {
            float2 two = *(const float2 *)(loss.terms + loss.first + col);
            float from = loss.origin[min(row, place.rows - 1)];
            pair[0] = two.x - from;
            pair[1] = two.y - from;
        });
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &products, float *)
    {
        constexpr bool bf16 = precision == LP_PRECISION_BF16;
        constexpr int pairs = bf16 ? 4 : 2; /* of a vector */
        tile_lane me = tile_lane_now();
        int col = me.warp % shape::warps_across * shape::own_cols + 2 * pairs * me.member;
        int rows = (place.rows + WIDE_BLOCK - 1) / WIDE_BLOCK * WIDE_BLOCK; /* with zeros up to a whole block */
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            int r = place.row + product_row<shape>(i);
#pragma unroll
            for (int j = 0; j < shape::across; j += pairs) {
                float all[4];
#pragma unroll
                for (int n = 0; n < pairs; n++) {
                    float x = tile_exp2(products.pair(i, j + n)[0]), y = tile_exp2(products.pair(i, j + n)[1]);
                    total[i] += x + y;
                    if constexpr (bf16)
                        all[n] = tile_pack_bf16(x, y);
                    else
                        *(float2 *)(all + 2 * n) = make_float2(rounded<precision>(x), rounded<precision>(y));
                }
                int64_t at = (int64_t)r * loss.d_stride + place.col + col + 8 * j;
                if constexpr (bf16)
                    at = wide_at(loss.d_stride, r, place.col) + j / 8 * WIDE_BLOCK * WIDE_BLOCK +
                         8 * (((j % 8 + me.member) ^ me.group) - me.group);
                if (loss.d && r < rows)
                    *(float4 *)((float *)loss.d + at / (bf16 ? 2 : 1)) =
                        r < place.rows ? make_float4(all[0], all[1], all[2], all[3]) : make_float4(0, 0, 0, 0);
            }
        }
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void done(const product_place &place, float *) const
    {
        tile_lane me = tile_lane_now();
        int64_t range = place.range * shape::warps_across + me.warp % shape::warps_across;
        if (!loss.range_sums)
            return;
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            int r = place.row + product_row<shape>(i);
            float row = tile_row_sum(total[i]);
            if (me.member == 0 && r < place.rows)
                loss.range_sums[range * loss.rows + r] = row;
        }
        if (threadIdx.x == 0)
            loss.ranges[place.row / SCORE_ROWS] = place.ranges * shape::warps_across;
    }
} store_exponentials;

/* A packed matrix, from row `first` on. */
product_operand operand_of(const lp_cuda_run *run, const void *matrix, int64_t stride, int first)
{
    return {(const char *)matrix + first * stride * (tile_bf16(run) ? 2 : 4), stride, 0};
}

template <int precision> void exponentials(const lp_cuda_run *run, const loss_task &loss)
{
    typedef score_shape<precision> shape;
    product_extent targets = {loss.targets, 0, INT32_MAX}, items = {loss.items, loss.first, loss.count, SCORE_COLS - 1};
    product_operand z = operand_of(run, loss.packed_z, loss.stride, 0),
                    columns = operand_of(run, loss.columns, loss.stride, loss.first);
    product_task task = {loss.shard, targets, items, product_fixed(loss.cols), 1, z, columns};
    store_exponentials finish = {{}, loss, {}};
    if constexpr (is_wide<shape>)
        wide_launch<true, true, shape>(run, task, finish, loss.rows);
    else
        product_launch<true, true>(run, task, finish, 1, loss.rows, loss.count);
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* By a warp: exponentials of a row relative to its maximum. Returns their sum. */
template <int precision> __device__ float row_again(const loss_task &task, int row, int lane)
{
    float origin = LEAST_SCORE, sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int item = lane; item < lp_rows_now(task.items, task.shard); item += 32) {
            float score = 0; /* the term, which may be large, is added last: every sum with it is rounded to its size */
            for (int c = 0; c < task.cols; c++)
                score += rounded<precision>(task.z[(int64_t)row * task.cols + c] * TILE_LOG2_E) *
                         rounded<precision>(task.table[(int64_t)item * task.cols + c]);
            score += item_term(task, item);
            float power = pass ? tile_exp2(score - origin) : 0;
            origin = pass ? origin : fmaxf(origin, score);
            sum += power;
            if (pass && task.d)
                packed_store<precision>(task.d, packed_at<precision>(task.d_stride, row, item), power);
        }
        origin = lp_warp_max(origin);
    }
    if (lane == 0)
        task.origin[row] = origin;
    return lp_warp_sum(sum);
}

/* d at the target of a row, if it is among its items. */
template <int precision> __device__ void store_target(const loss_task &task, int row, int target, float sum)
{
    int item = target - task.first;
    if (task.d && item >= 0 && item < task.count)
        packed_store<precision>(task.d, packed_at<precision>(task.d_stride, row, item),
                                tile_exp2(task.target_score[row] - task.origin[row]) - sum);
}

template <int precision> __global__ void __launch_bounds__(256) finish_chunk(const __grid_constant__ loss_task task)
{
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row < lp_rows_now(task.targets, task.shard))
        store_target<precision>(task, row, task.target[row], task.sum[row]);
}

/* Of a block: threads; rows, at most; vectors of z of a thread. */
enum { FINISH_THREADS = 256, FINISH_ROWS = 32, FINISH_AHEAD = 4 };

/* For `each` rows: adds up the sums, and computes losses, z_t / sum_t, and d at the targets. The last block adds up the loss. */
template <int precision>
__global__ void __launch_bounds__(FINISH_THREADS)
    finish_rows(const __grid_constant__ loss_task task, float *loss_sum, float *lse, int each, int stream)
{
    __shared__ float inverses[FINISH_ROWS];
    int thread = (int)threadIdx.x, lane = thread % 32, count = lp_rows_now(task.targets, task.shard);
    int whole = (count + WIDE_BLOCK - 1) / WIDE_BLOCK * WIDE_BLOCK, vectors = task.stride / 4; /* whole: with zeros */
    int first = (int)blockIdx.x * each, row = first + thread, lines = min(each, whole - first);
    auto load = [&](int i) {
        int r = first + i / vectors, c = i % vectors * 4;
        int present = i < lines * vectors && r < count ? task.cols - c : 0;
        return product_load(task.z + (int64_t)r * task.cols + c, present, task.width);
    };
    auto store = [&](int i, float4 x) {
        int line = i / vectors;
        if (i < lines * vectors)
            packed_store<precision>(task.scaled, packed_at<precision>(task.stride, first + line, i % vectors * 4), x,
                                    inverses[line]);
    };
    /* z is older than the exponentials, which this launch waits for. */
    float4 ahead[FINISH_AHEAD];
#pragma unroll
    for (int i = 0; i < FINISH_AHEAD; i++)
        ahead[i] = load(thread + i * FINISH_THREADS);
    bool mine = thread < each && row < count;
    int target = mine ? task.target[row] : 0;
    lp_pdl_wait();
    lp_pdl_trigger();
    float sum = 0;
    int ranges = mine ? task.ranges[row / SCORE_ROWS] : 0;
#pragma unroll 8
    for (int i = 0; i < ranges; i++)
        sum += task.range_sums[(int64_t)i * task.rows + row];
    if (thread < each)
        inverses[thread] = sum;
    if (__syncthreads_or(mine && !(sum < MOST_SUM))) {
        for (int i = thread / 32; i < each && first + i < count; i += FINISH_THREADS / 32)
            if (!(inverses[i] < MOST_SUM)) {
                float again = row_again<precision>(task, first + i, lane);
                if (lane == 0)
                    inverses[i] = again;
            }
        __syncthreads();
    }
    double loss = 0;
    if (mine) {
        sum = inverses[thread];
        float origin = task.origin[row], log_sum = logf(sum);
        task.sum[row] = sum;
        lse[row] = TILE_LN_2 * origin + log_sum;
        loss = (double)(TILE_LN_2 * (origin - task.target_score[row]) + log_sum);
        store_target<precision>(task, row, target, sum);
    }
    if (thread < each) {
        inverses[thread] = mine ? 1 / sum : 0;
        if (row < whole)
            packed_store<precision>(task.inverse, row, inverses[thread]);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < FINISH_AHEAD; i++)
        store(thread + i * FINISH_THREADS, ahead[i]);
    for (int i = thread + FINISH_AHEAD * FINISH_THREADS; i < lines * vectors; i += FINISH_THREADS)
        store(i, load(i));
    loss = lp_warp_sum(loss); /* the first warp has all rows */
    if (thread == 0)
        task.losses[blockIdx.x] = loss;
    if (!lp_last_block(stream))
        return;
    loss = 0;
    for (unsigned i = (unsigned)thread; i < gridDim.x; i += FINISH_THREADS)
        loss += task.losses[i];
    loss = lp_block_sum<FINISH_THREADS / 32>(loss);
    if (thread == 0)
        *loss_sum = (float)loss;
}

/* ---- products of d -------------------------------------------------------------------------------------------- */

/* Stores the product times *scale, its rows times 1 / sum where there is one; and of items the column sums of d times weights. */
typedef struct store_product : product_store {
    const float *scale, *sum;
    const float *weights;                /* 1 / sum_t; bf16 in bf16 */
    float *out;                          /* column sums; NULL: none */
    int out_adds, at;                    /* at: depth of the next slab */
    float total[2 * product_tile::down]; /* column sums of the lane's rows */

    /* Of the 16 rows of two sums: the warps of a row of warps divide its rows. */
    template <typename shape> __device__ bool mine(int m) const
    {
        return out && m % shape::warps_across == tile_lane_now().warp % shape::warps_across;
    }

    template <typename shape> __device__ void copied(const product_place &place, const float *a, const float *)
    {
#pragma unroll
        for (int m = 0; m < shape::down; m++) {
            if (place.col || !mine<shape>(m))
                continue;
            for (int k = tile_lane_now().member; k < PRODUCT_DEPTH; k += 4)
#pragma unroll
                for (int i = 2 * m; i < 2 * m + 2; i++)
                    total[i] = fmaf(a[product_row<shape>(i) * PRODUCT_STRIDE + k], weights[at + k], total[i]);
        }
        at += PRODUCT_DEPTH;
    }

    /* total: of the lane's i-th row, in the first of the four lanes that share it. */
    template <typename shape> __device__ void store_sum(const product_place &place, int i, float row_total) const
    {
        int row = place.row + product_row<shape>(i);
        if (mine<shape>(i / 2) && tile_lane_now().member == 0 && row < place.rows)
            lp_store(out + place.chunk * chunk_step + row, *scale * row_total, out_adds);
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &task, const product_place &place, product_sums<shape> &sums,
                        float *memory) const
    {
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            int row = min(place.row + product_row<shape>(i), place.rows - 1);
            float factor = sum ? *scale / sum[row] : *scale;
#pragma unroll
            for (int j = 0; j < 2 * shape::across; j++)
                sums.pair(i, j / 2)[j % 2] *= factor;
        }
        product_store::run<precision, a_deep, shape>(task, place, sums, memory);
#pragma unroll
        for (int i = 0; !is_wide<shape> && place.col == 0 && i < 2 * shape::down; i++)
            store_sum<shape>(place, i, tile_row_sum(total[i]));
    }
} store_product;

/* dz += d items, or ditems += d^T (z / sum) and dbias, of a chunk of items. */
typedef struct d_product {
    product_task task;
    store_product store;
    int rows;     /* of the largest shard; 0: nothing to compute */
    float *to[2]; /* the product and the column sums; may be NULL */
    int adds[2];
    float *parts; /* of both, [parts x chunk_step], that add_parts adds up; NULL: there is one part of the depth */
} d_product;

/* Adds up the parts in their order. */
__global__ void __launch_bounds__(256) add_parts(const __grid_constant__ d_product p)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, size = p.rows * p.store.stride;
    int64_t count = product_count(p.task.rows, p.task.shard);
    int of = i >= size;
    float total = 0;
    lp_pdl_wait();
    if (!p.to[of] || i >= (of ? size + count : count * p.store.stride))
        return;
#pragma unroll 4
    for (int part = 0; part < p.task.chunks; part++)
        total += p.parts[part * p.store.chunk_step + i];
    lp_store(p.to[of] + (of ? i - size : i), total, p.adds[of]);
}

/* Grid: tiles of columns, then of rows, then parts: of dz, and after that of ditems. So the long blocks of dz start first, and
 * the short ones of ditems fill the rest. */
template <bool by_items, int precision, typename shape>
__device__ void gradient_tile(const d_product &product, int index, wide_memory use)
{
    const product_task &task = product.task;
    int cols = (task.cols.most + shape::cols - 1) / shape::cols, tile = index % cols, end;
    int rows = (product.rows + shape::rows - 1) / shape::rows, row = index / cols % rows * shape::rows;
    product_place place = {row, 0, 0, index / cols / rows, product_count(task.rows, task.shard), task.cols.most};
    if (row >= place.rows)
        return;
    store_product store = product.store;
    store.out = by_items ? store.out : NULL; /* known to the compiler */
    if constexpr (is_wide<shape>) {
        wide_weights weights = {(const uint16_t *)store.weights, {}};
        wide_state state = wide_start(use);
        wide_tiles<!by_items, false, by_items, shape>(task, place, tile, tile + 1, use, store, weights, state);
        for (int i = 0; by_items && tile == 0 && i < 2; i++)
            store.store_sum<shape>(place, i, weights.sums[2 * i]);
    } else {
        product_chunk<PRODUCT_DEPTH>(product_count(task.depth, task.shard), task.chunks, place.chunk, &store.at, &end);
        place.col = tile * shape::cols;
        product_compute<precision, !by_items, false, shape>(task, place, store);
    }
}

template <int precision, typename shape>
__global__ void __launch_bounds__(shape::threads, shape::blocks)
    gradient_kernel(const __grid_constant__ d_product dz, const __grid_constant__ d_product ditems, int blocks_of_dz,
                    wide_memory use)
{
    int index = (int)blockIdx.x;
    lp_pdl_wait();
    lp_pdl_trigger();
    if (index < blocks_of_dz)
        gradient_tile<false, precision, shape>(dz, index, use);
    else
        gradient_tile<true, precision, shape>(ditems, index - blocks_of_dz, use);
}

/* ---- the launch ---------------------------------------------------------------------------------------------- */

/* Of the launch: the cost of a block, in slabs; tiles of parts whose sum costs a slab of all multiprocessors. */
enum { BLOCK_EXTRA = 6, PART_TILES = 20 };

/* Time of a launch, in slabs of a tile, if `slots` blocks run at once: `count` blocks of `slabs` slabs, then `more` of `less`. */
int64_t launch_time(int64_t slots, int64_t count, int64_t slabs, int64_t more, int64_t less)
{
    /* Two groups of slots, with the time when they are free. */
    int64_t free[2] = {count / slots * slabs, (count / slots + 1) * slabs};
    int64_t of[2] = {slots - count % slots, count % slots};
    while (more > 0) {
        int first = of[1] && free[1] < free[0];
        more -= of[first];
        free[first] += less;
    }
    return of[1] && free[1] > free[0] ? free[1] : free[0];
}

/* Chooses the parts of the depth of dz and of ditems that make the launch and adding them up short, for half of the largest shard and
 * for three quarters: windows of different lengths leave a part of it empty. Constant, so that results do not depend on the device. */
template <typename shape> void choose_parts(const loss_task &task, int slab, int (&best)[2])
{
    int64_t across = lp_blocks(task.cols, shape::cols), of_items = across * lp_blocks(task.count, shape::rows),
            least = INT64_MAX, slots = PACKED_BLOCKS / 2 * shape::blocks;
    int64_t most_z = 2 * PACKED_BLOCKS / (across * lp_blocks(task.rows, shape::rows) + 1),
            most_items = 2 * PACKED_BLOCKS / (of_items + 1);
    for (int p = 1; p == 1 || p <= most_z; p += 1 + p / 6)
        for (int q = 1; q == 1 || q <= most_items; q += 1 + q / 6) {
            int64_t time = 0;
            for (int quarters = 2; quarters <= 3; quarters++) {
                int64_t rows = (int64_t)task.rows * quarters / 4, of_z = across * lp_blocks(rows, shape::rows);
                int slabs_of_z = (int)lp_blocks(lp_blocks(task.count, slab), p) + BLOCK_EXTRA,
                    slabs_of_items = (int)lp_blocks(lp_blocks(rows, slab), q) + BLOCK_EXTRA;
                time += (p > 1 ? p * of_z : 0) + (q > 1 ? q * of_items : 0);
                time += PART_TILES * launch_time(slots, of_z * p, slabs_of_z, of_items * q, slabs_of_items);
            }
            if (time < least) {
                least = time;
                best[0] = p;
                best[1] = q;
            }
        }
}

/* step: floats of a part of the product and its column sums; memory: for the parts. */
d_product product_of(const lp_node *node, const lp_cuda_run *run, const loss_task &loss, bool by_items, int parts,
                     int64_t step, float *memory)
{
    d_product p = {};
    product_extent items = {loss.items, loss.first, loss.count, 0}, targets = {loss.targets, 0, INT32_MAX};
    int rows = by_items ? loss.count : loss.rows;
    for (int i = 0; i <= by_items; i++) {
        float *to = LP_OUTPUT(by_items + i);
        p.to[i] = to && by_items ? to + (int64_t)loss.first * (i ? 1 : loss.cols) : to;
        p.adds[i] = LP_ADDS(by_items + i) || (!by_items && loss.first > 0);
        p.rows = to ? rows : p.rows;
    }
    p.parts = parts > 1 && p.rows ? memory : NULL;
    product_operand d = operand_of(run, loss.d, loss.d_stride, 0),
                    other = by_items ? operand_of(run, loss.scaled, loss.stride, 0)
                                     : operand_of(run, loss.packed_items, loss.stride, loss.first);
    p.task = {run->shard, by_items ? items : targets, product_fixed(loss.cols), targets, parts, d, other};
    p.task.depth = by_items ? targets : items;
    p.store.to = p.parts && p.to[0] ? p.parts : p.to[0];
    p.store.out = p.parts && p.to[1] ? p.parts + (int64_t)rows * loss.cols : p.to[1];
    p.store.accumulate = p.parts ? 0 : p.adds[0];
    p.store.out_adds = p.parts ? 0 : p.adds[1];
    p.store.stride = loss.cols;
    p.store.chunk_step = step;
    p.store.pairs = lp_vector_width((uintptr_t)p.store.to, loss.cols) > 1;
    p.store.scale = LP_INPUT(6);
    p.store.sum = by_items ? NULL : loss.sum;
    p.store.weights = (const float *)loss.inverse;
    return p;
}

/* For one chunk of items after the other, where d is not kept. */
template <int precision, typename shape>
void launch_gradient(const lp_node *node, const lp_cuda_run *run, loss_task task)
{
    constexpr size_t element = precision == LP_PRECISION_BF16 ? 2 : 4;
    size_t tile = (size_t)task.lines * SCORE_COLS * element, tiles = tile && tile < D_SIZE ? D_SIZE / tile : 1;
    bool keeps = task.d;
    int items = task.count, parts[2] = {1, 1};
    task.d_stride = keeps ? task.item_rows : (int)tiles * SCORE_COLS;
    task.count = items < task.d_stride ? items : task.d_stride;
    task.range_sums = NULL;
    choose_parts<shape>(task, 128 / (int)element, parts);
    int64_t step[2] = {64 * (int64_t)lp_blocks((int64_t)task.rows * (task.cols + 1), 64),
                       64 * (int64_t)lp_blocks((int64_t)task.count * (task.cols + 1), 64)};
    size_t of_d = keeps ? 0 : (size_t)task.lines * (size_t)task.d_stride * element, bytes;
    char *scratch = (char *)lp_cuda_scratch(run, of_d + (size_t)(parts[0] * step[0] + parts[1] * step[1]) * 4);
    float *memory = (float *)(scratch + of_d);
    task.d = keeps ? task.d : scratch;
    wide_memory use = {};
    if constexpr (is_wide<shape>)
        use = wide_memory_of<shape>(0, &bytes);
    else
        bytes = product_bytes<shape>;
    for (; scratch && task.first < items; task.first += task.d_stride) {
        task.count = items - task.first < task.d_stride ? items - task.first : task.d_stride;
        if (!keeps) {
            exponentials<precision>(run, task);
            LP_LAUNCH(run, finish_chunk<precision>, lp_blocks(task.rows, 256), 256, 0, task);
        }
        d_product dz = product_of(node, run, task, false, parts[0], step[0], memory);
        d_product ditems = product_of(node, run, task, true, parts[1], step[1], memory + parts[0] * step[0]);
        unsigned across = lp_blocks(task.cols, shape::cols);
        unsigned of_dz = lp_blocks(dz.rows, shape::rows) * across * (unsigned)parts[0];
        unsigned of_items = lp_blocks(ditems.rows, shape::rows) * across * (unsigned)parts[1];
        LP_LAUNCH_PDL(run, (gradient_kernel<precision, shape>), of_dz + of_items, shape::threads, bytes, dz, ditems,
                      (int)of_dz, use);
        LP_LAUNCH_PDL(run, add_parts, dz.parts ? lp_blocks(step[0], 256) : 0, 256, 0, dz);
        LP_LAUNCH_PDL(run, add_parts, ditems.parts ? lp_blocks(step[1], 256) : 0, 256, 0, ditems);
    }
}

/* node: the loss or its gradient. False: out of memory. */
bool task_of(const lp_node *node, const lp_cuda_run *run, loss_task *task)
{
    bool loss = node->op->id == LP_OP_SOFTMAX_LOSS, gradient = !loss || node->outputs[0]->gradient;
    *task = {};
    task->shard = run->shard;
    task->targets = lp_cuda_rows_of(node->inputs[0]);
    task->items = lp_cuda_rows_of(node->inputs[1]);
    task->rows = lp_cuda_largest(run, node->inputs[0]);
    task->lines = WIDE_BLOCK * (int)lp_blocks(task->rows, WIDE_BLOCK);
    task->count = lp_cuda_largest(run, node->inputs[1]);
    task->item_rows = task->d_stride = SCORE_COLS * (int)lp_blocks(task->count, SCORE_COLS);
    task->cols = node->inputs[0]->cols;
    task->stride = WIDE_BLOCK * (int)lp_blocks(task->cols, WIDE_BLOCK);
    task->z = LP_INPUT(0);
    task->table = LP_INPUT(1);
    task->bias = LP_INPUT(2);
    task->logq = LP_INPUT(3);
    task->target = LP_INPUT_AS(int32_t, 4);
    task->width = lp_vector_width((uintptr_t)task->z | (uintptr_t)task->table, task->cols);
    size_t element = tile_bf16(run) ? 2 : 4, rows = (size_t)task->rows, items = (size_t)task->item_rows,
           of_z = (size_t)task->lines * (size_t)task->stride, of_items = items * (size_t)task->stride,
           of_d = (size_t)task->lines * items;
    /* Without memory it only adds up the sizes. */
    for (char *memory = NULL;;) {
        size_t size = 0;
        auto take = [&](auto **to, size_t count, size_t bytes) {
            *to = memory && count ? (std::remove_reference_t<decltype(*to)>)(memory + size) : NULL;
            size += (count * bytes + 255) / 256 * 256;
        };
        take(&task->packed_z, of_z, element);
        take(&task->packed_items, of_items, element);
        take(&task->columns, of_items, element);
        take(&task->scaled, of_z, element);
        take(&task->inverse, (size_t)task->lines, element);
        take(&task->d, gradient && of_d * element <= D_SIZE ? of_d : 0, element);
        take(&task->terms, items, sizeof(float));
        take(&task->target_score, rows, sizeof(float));
        take(&task->origin, rows, sizeof(float));
        take(&task->sum, rows, sizeof(float));
        take(&task->range_sums, 2 * (items / SCORE_COLS + 3) * rows, sizeof(float));
        take(&task->ranges, lp_blocks(task->rows, SCORE_ROWS), sizeof(int32_t));
        take(&task->losses, (size_t)task->lines + 1, sizeof(double));
        if (memory)
            return true;
        memory = (char *)(gradient ? lp_cuda_side_buffer(run, loss ? node->outputs[1] : node->inputs[5], size)
                                   : lp_cuda_scratch(run, size));
        if (!memory)
            return false;
    }
}

} // namespace

void lp_cuda_softmax_loss(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task;
    if (!task_of(node, run, &task))
        return;
    int each = FINISH_AHEAD * FINISH_THREADS * 4 / task.stride;
    each = each < 1 ? 1 : each > FINISH_ROWS ? (int)FINISH_ROWS : each;
    product_with_precision(run, [&](auto constant) {
        constexpr int precision = decltype(constant)::value;
        LP_LAUNCH(run, pack_factors<precision>, lp_blocks(task.rows + task.item_rows, WARPS), 32 * WARPS, 0, task);
        exponentials<precision>(run, task);
        LP_LAUNCH_PDL(run, finish_rows<precision>, lp_blocks(task.lines + 1, each), FINISH_THREADS, 0, task,
                      LP_OUTPUT(0), LP_OUTPUT(1), each, run->stream);
    });
}

void lp_cuda_softmax_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task;
    if (!task_of(node, run, &task))
        return;
    int width = tile_width(task.cols, 256, WIDE_BLOCK);
    product_with_precision(run, [&](auto constant) {
        constexpr int precision = decltype(constant)::value;
        auto launch = width == 64    ? launch_gradient<precision, gradient_shape<precision, 64>>
                      : width == 128 ? launch_gradient<precision, gradient_shape<precision, 128>>
                      : width == 192 ? launch_gradient<precision, gradient_shape<precision, 192>>
                                     : launch_gradient<precision, gradient_shape<precision, 256>>;
        launch(node, run, task);
    });
}
