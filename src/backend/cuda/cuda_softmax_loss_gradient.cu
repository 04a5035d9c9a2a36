/* cuda_softmax_loss_gradient.cu: the gradient of the softmax loss: two products of d, as cuda_softmax_loss.cu describes. */
#include "backend/cuda/cuda_softmax_loss.h"

namespace
{

enum { GRADIENT_EXTRA = 16 }; /* cost of a part of the slabs (packed_parts) */

/* Tiles of warpgroups, for up to 64, up to 128 and more columns. */
typedef wide_shape<64, 4, 2> wide_64;
typedef wide_shape<128, 6, 1> wide_128;
typedef wide_shape<256, 4, 1> wide_256;

/* Multiplies the product by *scale, and its rows by 1 / sum where there is one. */
typedef struct store_scaled : product_store {
    const float *scale, *sum;

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &task, const product_place &place, product_sums<shape> &sums,
                        float *memory) const
    {
        tile_lane me = tile_lane_now();
        int row = place.row + me.warp / shape::warps_across * shape::own_rows;
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            int r = min(row + product_row<precision, a_deep, shape>(i), place.rows - 1);
            float factor = sum ? *scale / sum[r] : *scale;
#pragma unroll
            for (int j = 0; j < shape::across; j++) {
                sums.pair(i, j)[0] *= factor;
                sums.pair(i, j)[1] *= factor;
            }
        }
        product_store::run<precision, a_deep, shape>(task, place, sums, memory);
    }
} store_scaled;

/* The same for items, with the column sums of d times weights, 1 / sum_t: on tensor cores by a tile of B whose columns are
 * all these weights. The warps of a row of warps divide its rows. */
typedef struct store_items : store_scaled {
    const lp_cuda_shard *shard;
    product_extent depth;
    int chunks;
    const void *weights; /* in the precision */
    float *out;          /* of the first chunk; NULL: none */
    int64_t out_step;
    int out_adds;
    int at;                             /* depth of the next slab */
    float total[2 * packed_wide::down]; /* of the lane's rows */

    /* Of the 16 rows of two sums. */
    template <typename shape> __device__ bool mine(const product_place &place, int m) const
    {
        return out && place.col == 0 && m % shape::warps_across == tile_lane_now().warp % shape::warps_across;
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void start(const product_place &place, product_sums<shape> &)
    {
        int end;
        product_chunk<precision == LP_PRECISION_BF16 ? LOSS_SLAB : LOSS_SLAB / 2>(product_count(depth, shard), chunks,
                                                                                  place.chunk, &at, &end);
    }

    template <typename shape, typename slab_a, typename slab_b>
    __device__ void copied(const product_place &place, const float *a, const float *)
    {
        constexpr int precision = slab_a::precision;
        tile_lane me = tile_lane_now();
        int row = me.warp / shape::warps_across * shape::own_rows;
#pragma unroll
        for (int m = 0; m < shape::down; m++) {
            if (!mine<shape>(place, m))
                continue;
            if constexpr (precision == LP_PRECISION_BF16) {
                constexpr bool wide = std::is_base_of_v<wide_slab, slab_a>;
                const float *weight = (const float *)((const uint16_t *)weights + at) + me.member;
                int line = 8 * (me.lane >> 4) + (me.lane & 7), first = row + 16 * m + 8 * (me.lane >> 3 & 1), step,
                    offset;
                if constexpr (wide) {
                    offset = wide_slab::at(first / 64 * 64 + line, first % 64 / 8);
                    step = wide_slab::line;
                } else {
                    offset = line * slab_a::stride + slab_a::at(first);
                    step = slab_a::stride;
                }
                tile_address from = tile_address_of(a + offset);
                float left[4], sum[4] = {total[2 * m], total[2 * m], total[2 * m + 1], total[2 * m + 1]};
#pragma unroll
                for (int k = 0; k < slab_a::depth; k += 16) {
                    tile_ldmatrix_trans(left, from, k * step);
                    tile_mma_bf16(sum, left, weight[k / 2], weight[k / 2 + 4]);
                }
                total[2 * m] = sum[0];
                total[2 * m + 1] = sum[2];
            } else {
                for (int k = me.member; k < slab_a::depth; k += 4)
#pragma unroll
                    for (int i = 2 * m; i < 2 * m + 2; i++)
                        total[i] = fmaf(a[k * slab_a::stride + row + product_row<precision, false, shape>(i)],
                                        ((const float *)weights)[at + k], total[i]);
            }
        }
        at += slab_a::depth;
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &task, const product_place &place, product_sums<shape> &sums,
                        float *memory) const
    {
        tile_lane me = tile_lane_now();
        store_scaled::run<precision, a_deep, shape>(task, place, sums, memory);
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            int row =
                place.row + me.warp / shape::warps_across * shape::own_rows + product_row<precision, a_deep, shape>(i);
            float all = *scale * (precision == LP_PRECISION_BF16 ? total[i] : tile_row_sum(total[i]));
            if (mine<shape>(place, i / 2) && me.member == 0 && row < place.rows)
                lp_store(out + place.chunk * out_step + row, all, out_adds);
        }
    }
} store_items;

/* A matrix or the vector of sums beside it: the sum over [parts x step], in their order. */
typedef struct parts_sum {
    const float *parts;
    float *out; /* NULL: nothing */
    int64_t step;
    int cols, accumulate;
} parts_sum;

__device__ void add_element(const parts_sum &sum, int parts, int64_t i, int rows)
{
    if (!sum.out || i >= (int64_t)rows * sum.cols)
        return;
    float total = 0;
    for (int part = 0; part < parts; part++)
        total += sum.parts[part * sum.step + i];
    lp_store(sum.out + i, total, sum.accumulate);
}

__global__ void __launch_bounds__(256)
    add_parts(const lp_cuda_shard *shard, product_extent rows, int parts, const __grid_constant__ parts_sum matrix,
              const __grid_constant__ parts_sum vector)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int count = product_count(rows, shard);
    if (i < matrix.step)
        add_element(matrix, parts, i, count);
    else
        add_element(vector, parts, i - matrix.step, count);
}

/* Calls act(shape) with the tile of a gradient. */
template <typename action> void with_gradient_shape(const lp_cuda_run *run, int cols, const action &act)
{
    if (!wide_supported(run) && cols > packed_narrow::cols)
        act(packed_wide());
    else if (!wide_supported(run))
        act(packed_narrow());
    else if (cols > wide_128::cols)
        act(wide_256());
    else if (cols > wide_64::cols)
        act(wide_128());
    else
        act(wide_64());
}

/* Parts of the depth of dz, or of ditems and dbias, for `count` items. */
int gradient_parts(const lp_cuda_run *run, bool by_items, int targets, int count, int cols)
{
    int rows = by_items ? count : loss_usual_rows(targets), depth = by_items ? loss_usual_rows(targets) : count,
        parts = 1;
    with_gradient_shape(run, cols, [&](auto chosen) {
        typedef decltype(chosen) shape;
        int64_t blocks = (int64_t)lp_blocks(rows, shape::rows) * lp_blocks(cols, shape::cols);
        /* PACKED_BLOCKS is two on a multiprocessor. */
        parts = packed_parts(2 / shape::blocks * blocks, (int)lp_blocks(depth, 128 / (int)loss_element_size(run)),
                             GRADIENT_EXTRA);
    });
    return parts;
}

typedef struct loss_gradient {
    loss_factors factors;
    int cols;
    int chunk;    /* items of a chunk */
    int parts[2]; /* of the depth of dz, and of ditems */
    void *d;      /* [rows x chunk] */
    float *partial;
} loss_gradient;

/* dz += d items, or ditems and dbias of a chunk of items. */
template <bool by_items>
void multiply_d(const lp_node *node, const lp_cuda_run *run, const loss_gradient &g, int first, int count)
{
    int cols = g.cols, rows = by_items ? count : g.factors.rows;
    float *to = LP_OUTPUT(by_items), *sums = by_items ? LP_OUTPUT(2) : NULL;
    int adds = by_items ? LP_ADDS(1) : first > 0 || LP_ADDS(0);
    if (!to && !sums)
        return;
    product_extent items = {lp_cuda_rows_of(node->inputs[1]), first, count, 0},
                   targets = product_whole(node->inputs[0]);
    product_task task = {};
    task.shard = run->shard;
    task.rows = by_items ? items : targets;
    task.depth = by_items ? targets : items;
    task.cols = product_fixed(cols);
    task.chunks = g.parts[by_items];
    task.a = loss_operand(run, g.d, g.chunk, 0);
    task.b = loss_operand(run, by_items ? g.factors.scaled : g.factors.items, g.factors.stride, by_items ? 0 : first);
    bool parts = task.chunks > 1;
    parts_sum matrix = {g.partial, to, (int64_t)rows * cols, cols, adds};
    parts_sum vector = {g.partial + task.chunks * matrix.step, sums, rows, 1, sums ? LP_ADDS(2) : 0};
    if (by_items) {
        matrix.out = to ? to + (int64_t)first * cols : NULL;
        vector.out = sums ? sums + first : NULL;
    }
    std::conditional_t<by_items, store_items, store_scaled> store = {};
    store.to = !to ? NULL : parts ? g.partial : matrix.out;
    store.stride = cols;
    store.chunk_step = matrix.step;
    store.accumulate = parts ? 0 : adds;
    store.pairs = lp_vector_width((uintptr_t)store.to, cols) > 1;
    store.scale = LP_INPUT(6);
    if constexpr (by_items) {
        store.shard = task.shard;
        store.depth = task.depth;
        store.chunks = task.chunks;
        store.weights = g.factors.inverse;
        store.out = !sums ? NULL : parts ? (float *)vector.parts : vector.out;
        store.out_step = vector.step;
        store.out_adds = parts ? 0 : vector.accumulate;
    } else {
        store.sum = g.factors.sum;
    }
    with_gradient_shape(run, cols, [&](auto chosen) {
        typedef decltype(chosen) shape;
        int tiles = (int)lp_blocks(cols, shape::cols);
        if constexpr (is_wide<shape>)
            wide_launch<!by_items, false, shape>(run, task, store, rows, tiles);
        else
            packed_launch<!by_items, false, shape>(run, task, store, rows, tiles);
    });
    if (parts)
        LP_LAUNCH(run, add_parts, lp_blocks(matrix.step + vector.step, 256), 256, 0, task.shard, task.rows, task.chunks,
                  matrix, vector);
}

} // namespace

void lp_cuda_softmax_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    loss_gradient g = {};
    g.cols = node->inputs[0]->cols;
    loss_memory kept = {}, scratch = {};
    if (!(kept.at = (char *)lp_cuda_side_buffer(run, node->inputs[5], 0)))
        return;
    loss_take_factors(node, run, true, &kept, &g.factors);
    int rows = g.factors.rows, items = lp_cuda_largest(run, node->inputs[1]);
    size_t column = (size_t)(rows < 1 ? 1 : rows) * packed_wide::cols * loss_element_size(run);
    size_t most = LOSS_D_SIZE / column < 1 ? 1 : LOSS_D_SIZE / column;
    g.chunk = g.factors.d ? g.factors.item_rows : (int)most * packed_wide::cols;
    int count = items < g.chunk ? items : g.chunk;
    size_t partial = 0;
    for (int by_items = 0; by_items < 2; by_items++) {
        g.parts[by_items] = gradient_parts(run, by_items, rows, count, g.cols);
        /* Each has a matrix and a vector. */
        size_t size = (size_t)g.parts[by_items] * (size_t)(by_items ? count : rows) * (size_t)(g.cols + 1);
        partial = size > partial ? size : partial;
    }
    for (int pass = 0; pass < 2; pass++) {
        scratch.take((char **)&g.d, g.factors.d ? 0 : (size_t)rows * (size_t)g.chunk, loss_element_size(run));
        scratch.take(&g.partial, partial);
        if (pass == 0 && !(scratch.at = (char *)lp_cuda_scratch(run, scratch.size)))
            return;
        scratch.size = 0;
    }
    g.d = g.factors.d ? g.factors.d : g.d;
    for (int first = 0; first < items; first += g.chunk, count = items - first < count ? items - first : count) {
        if (!g.factors.d)
            loss_compute_d(node, run, g.factors, first, count, g.d, g.chunk);
        multiply_d<false>(node, run, g, first, count);
        multiply_d<true>(node, run, g, first, count);
    }
}
