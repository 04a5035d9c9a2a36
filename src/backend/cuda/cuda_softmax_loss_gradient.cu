/* cuda_softmax_loss_gradient.cu: the gradient of the softmax loss: two products of d, as cuda_softmax_loss.cu describes. */
#include "backend/cuda/cuda_softmax_loss.h"

namespace
{

/* Of the launch: the cost of a block, in slabs; tiles of parts whose sum costs a slab of all multiprocessors. */
enum { BLOCK_EXTRA = 6, PART_TILES = 20 };

/* Multiplies the product by *scale, and its rows by 1 / sum where there is one. */
typedef struct store_scaled : product_store {
    const float *scale, *sum;

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &task, const product_place &place, product_sums<shape> &sums,
                        float *memory) const
    {
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            int row = min(place.row + product_row<shape>(i), place.rows - 1);
            float factor = sum ? *scale / sum[row] : *scale;
#pragma unroll
            for (int j = 0; j < shape::across; j++) {
                sums.pair(i, j)[0] *= factor;
                sums.pair(i, j)[1] *= factor;
            }
        }
        product_store::run<precision, a_deep, shape>(task, place, sums, memory);
    }
} store_scaled;

/* The same for items, with the column sums of d times weights, 1 / sum_t. The warps of a row of warps divide its rows. */
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
#pragma unroll
        for (int m = 0; m < shape::down; m++) {
            if (!mine<shape>(place, m))
                continue;
            for (int k = me.member; k < slab_a::depth; k += 4)
#pragma unroll
                for (int i = 2 * m; i < 2 * m + 2; i++)
                    total[i] = fmaf(packed_at<precision>(a + k * slab_a::stride, product_row<shape>(i)),
                                    packed_at<precision>(weights, at + k), total[i]);
        }
        at += slab_a::depth;
    }

    /* all: the sums of the lane's rows, in the first of the four lanes that share them. */
    template <typename shape> __device__ void store_sums(const product_place &place, const float *all) const
    {
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            int row = place.row + product_row<shape>(i);
            if (mine<shape>(place, i / 2) && tile_lane_now().member == 0 && row < place.rows)
                lp_store(out + place.chunk * out_step + row, *scale * all[i], out_adds);
        }
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &task, const product_place &place, product_sums<shape> &sums,
                        float *memory) const
    {
        store_scaled::run<precision, a_deep, shape>(task, place, sums, memory);
        float all[2 * shape::down];
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++)
            all[i] = tile_row_sum(total[i]);
        store_sums<shape>(place, all);
    }
} store_items;

/* ---- sums of parts ------------------------------------------------------------------------------------------- */

/* A matrix, or the vector of sums beside it: the sum over [parts x step], in their order. */
typedef struct parts_sum {
    const float *from;
    float *out;
    int64_t step;
    product_extent rows;
    int cols, parts, accumulate;
} parts_sum;

/* dz, ditems and dbias. */
typedef struct parts_sums {
    parts_sum of[3];
    int count;
} parts_sums;

__global__ void __launch_bounds__(256) add_parts(const lp_cuda_shard *shard, const __grid_constant__ parts_sums sums)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    lp_pdl_wait();
    for (int n = 0; n < sums.count; i -= sums.of[n].step, n++) {
        const parts_sum &sum = sums.of[n];
        if (i >= sum.step)
            continue;
        if (i >= (int64_t)product_count(sum.rows, shard) * sum.cols)
            return;
        float total = 0;
#pragma unroll 4
        for (int part = 0; part < sum.parts; part++)
            total += sum.from[part * sum.step + i];
        lp_store(sum.out + i, total, sum.accumulate);
        return;
    }
}

/* ---- the products -------------------------------------------------------------------------------------------- */

/* dz += d items, or ditems and dbias, of a chunk of items. */
typedef struct d_product {
    product_task task;
    store_items store;
    int rows; /* of the largest shard; 0: nothing to compute */
} d_product;

/* Grid: tiles of columns, then of rows, then parts: of dz, and after that of ditems. So the long blocks of dz start first, and
 * the short ones of ditems fill the rest. */
template <bool by_items, int precision, typename shape>
__device__ void gradient_tile(const d_product &product, int index, wide_memory use)
{
    int cols = (product.task.cols.most + shape::cols - 1) / shape::cols, tile = index % cols;
    int rows = (product.rows + shape::rows - 1) / shape::rows;
    product_place place = {index / cols % rows * shape::rows,
                           0,
                           0,
                           index / cols / rows,
                           product_count(product.task.rows, product.task.shard),
                           product.task.cols.most};
    if (place.row >= place.rows)
        return;
    if constexpr (is_wide<shape>) {
        wide_weights sums = {(const uint16_t *)product.store.weights, {}};
        store_scaled store = product.store;
        wide_state state = wide_start(use);
        wide_tiles<!by_items, false, by_items, shape>(product.task, place, tile, tile + 1, use, store, sums, state);
        const float all[2] = {sums.sums[0], sums.sums[2]};
        if (by_items && tile == 0)
            product.store.template store_sums<shape>(place, all);
    } else {
        std::conditional_t<by_items, store_items, store_scaled> store = product.store;
        product_tiles<precision, true, !by_items, false, shape>(product.task, place, tile, tile + 1, 0, shape::buffers,
                                                                store);
    }
}

template <int precision, typename shape>
__global__ void __launch_bounds__(shape::threads, packed_blocks<precision, shape>)
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

/* Calls act(precision, shape) with the precision and the tile of a gradient. */
template <typename action> void with_gradient_shape(const lp_cuda_run *run, int cols, const action &act)
{
    std::integral_constant<int, LP_PRECISION_BF16> bf16;
    if (!wide_supported(run))
        return product_with_precision(run, [&](auto precision) {
            if (cols > packed_narrow::cols)
                act(precision, packed_large<decltype(precision)::value>());
            else
                act(precision, packed_narrow());
        });
    switch (tile_width(cols, 256, WIDE_BLOCK)) {
    case 64:
        return act(bf16, wide_shape<128, 64, 2>());
    case 128:
        return act(bf16, wide_shape<128, 128, 2>());
    case 192:
        return act(bf16, wide_shape<192, 192, 1>());
    default:
        return act(bf16, wide_shape<128, 256, 1>());
    }
}

/* Bytes of shared memory of a block, and what a product by warpgroups uses it for. */
template <int precision, typename shape> size_t gradient_memory(wide_memory *use)
{
    if constexpr (is_wide<shape>) {
        size_t bytes;
        *use = wide_memory_of<shape>(0, &bytes);
        return bytes;
    } else {
        size_t of_z = packed_slabs<precision, true, false, shape>::bytes(0, shape::buffers),
               of_items = packed_slabs<precision, false, false, shape>::bytes(0, shape::buffers);
        return of_z > of_items ? of_z : of_items;
    }
}

typedef struct loss_gradient {
    loss_factors factors;
    int cols;
    int chunk;             /* items of a chunk */
    int parts[2] = {1, 1}; /* of the depth of dz, and of ditems */
    void *d;               /* [rows x chunk] */
    float *partial[2];
} loss_gradient;

/* Time of a launch, in slabs of a tile, if `slots` blocks run at once: `count` blocks of `slabs` slabs, then `more` of `less`. */
int64_t launch_time(int slots, int64_t count, int slabs, int64_t more, int less)
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

/* Time of the launch and of adding up the parts, for half of the largest shard to three quarters of it: windows of
 * different lengths leave a part of it empty. */
template <typename shape> int64_t gradient_time(int targets, int items, int cols, int slab, const int (&parts)[2])
{
    int64_t time = 0, across = lp_blocks(cols, shape::cols), of_items = across * lp_blocks(items, shape::rows);
    for (int part = 8; part <= 12; part++) {
        int rows = (int)((int64_t)targets * part / 16);
        int64_t of_z = across * lp_blocks(rows, shape::rows);
        int slabs[2] = {(int)lp_blocks(lp_blocks(items, slab), parts[0]) + BLOCK_EXTRA,
                        (int)lp_blocks(lp_blocks(rows, slab), parts[1]) + BLOCK_EXTRA};
        time += PART_TILES * launch_time(PACKED_BLOCKS / 2 * shape::blocks, of_z * parts[0], slabs[0],
                                         of_items * parts[1], slabs[1]);
        time += (parts[0] > 1 ? parts[0] * of_z : 0) + (parts[1] > 1 ? parts[1] * of_items : 0);
    }
    return time;
}

/* Chooses the parts of both products, for `count` items. Constant, so that results do not depend on the device. */
void choose_parts(const lp_cuda_run *run, int count, loss_gradient *g)
{
    with_gradient_shape(run, g->cols, [&](auto, auto chosen) {
        typedef decltype(chosen) shape;
        /* Parts of at least a slab, and of at most two blocks for each that runs at once. */
        int rows = g->factors.rows, slab = 128 / (int)loss_element_size(run), parts[2] = {1, 1};
        int slabs[2] = {(int)lp_blocks(count, slab), (int)lp_blocks(rows, slab)};
        int64_t tiles[2] = {lp_blocks(rows, shape::rows), lp_blocks(count, shape::rows)}, least = INT64_MAX;
        auto more = [&](int i) {
            return parts[i] == 1 || (parts[i] <= slabs[i] && tiles[i] * parts[i] <= 2 * PACKED_BLOCKS);
        };
        for (parts[0] = 1; more(0); parts[0] += 1 + parts[0] / 6)
            for (parts[1] = 1; more(1); parts[1] += 1 + parts[1] / 6) {
                int64_t time = gradient_time<shape>(rows, count, g->cols, slab, parts);
                if (time >= least)
                    continue;
                least = time;
                g->parts[0] = parts[0];
                g->parts[1] = parts[1];
            }
    });
}

/* Adds the sums of its parts to *sums. */
d_product product_of(const lp_node *node, const lp_cuda_run *run, const loss_gradient &g, bool by_items, int first,
                     int count, parts_sums *sums)
{
    int cols = g.cols, rows = by_items ? count : g.factors.rows;
    float *to = LP_OUTPUT(by_items), *out = by_items ? LP_OUTPUT(2) : NULL;
    int adds = by_items ? LP_ADDS(1) : first > 0 || LP_ADDS(0), out_adds = out ? LP_ADDS(2) : 0;
    if (by_items) {
        to = to ? to + (int64_t)first * cols : NULL;
        out = out ? out + first : NULL;
    }
    product_extent items = {lp_cuda_rows_of(node->inputs[1]), first, count, 0},
                   targets = product_whole(node->inputs[0]);
    d_product p = {};
    p.rows = to || out ? rows : 0;
    p.task.shard = run->shard;
    p.task.rows = by_items ? items : targets;
    p.task.depth = by_items ? targets : items;
    p.task.cols = product_fixed(cols);
    p.task.chunks = g.parts[by_items];
    p.task.a = loss_operand(run, g.d, g.chunk, 0);
    p.task.b = loss_operand(run, by_items ? g.factors.scaled : g.factors.items, g.factors.stride, by_items ? 0 : first);
    bool parts = p.task.chunks > 1;
    parts_sum matrix = {g.partial[by_items], to, (int64_t)rows * cols, p.task.rows, cols, p.task.chunks, adds};
    parts_sum vector = {matrix.from + p.task.chunks * matrix.step, out, rows, p.task.rows, 1, p.task.chunks, out_adds};
    if (parts && to)
        sums->of[sums->count++] = matrix;
    if (parts && out)
        sums->of[sums->count++] = vector;
    p.store.to = to && parts ? (float *)matrix.from : to;
    p.store.stride = cols;
    p.store.chunk_step = matrix.step;
    p.store.accumulate = parts ? 0 : adds;
    p.store.pairs = lp_vector_width((uintptr_t)p.store.to, cols) > 1;
    p.store.scale = LP_INPUT(6);
    p.store.sum = by_items ? NULL : g.factors.sum;
    p.store.shard = p.task.shard;
    p.store.depth = p.task.depth;
    p.store.chunks = p.task.chunks;
    p.store.weights = g.factors.inverse;
    p.store.out = out && parts ? (float *)vector.from : out;
    p.store.out_step = vector.step;
    p.store.out_adds = parts ? 0 : out_adds;
    return p;
}

/* For `count` items from `first` on. */
void multiply_d(const lp_node *node, const lp_cuda_run *run, const loss_gradient &g, int first, int count)
{
    parts_sums sums = {};
    d_product dz = product_of(node, run, g, false, first, count, &sums);
    d_product ditems = product_of(node, run, g, true, first, count, &sums);
    with_gradient_shape(run, g.cols, [&](auto constant, auto chosen) {
        constexpr int precision = decltype(constant)::value;
        typedef decltype(chosen) shape;
        unsigned tiles = lp_blocks(g.cols, shape::cols),
                 blocks[2] = {lp_blocks(dz.rows, shape::rows) * tiles * (unsigned)dz.task.chunks,
                              lp_blocks(ditems.rows, shape::rows) * tiles * (unsigned)ditems.task.chunks};
        wide_memory use = {};
        size_t bytes = gradient_memory<precision, shape>(&use);
        LP_LAUNCH_PDL(run, (gradient_kernel<precision, shape>), blocks[0] + blocks[1], shape::threads, bytes, dz,
                      ditems, (int)blocks[0], use);
    });
    int64_t all = 0;
    for (int i = 0; i < sums.count; i++)
        all += sums.of[i].step;
    LP_LAUNCH_PDL(run, add_parts, lp_blocks(all, 256), 256, 0, run->shard, sums);
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
    int rows = g.factors.rows, lines = (int)lp_blocks(rows, WIDE_BLOCK) * WIDE_BLOCK,
        items = lp_cuda_largest(run, node->inputs[1]);
    size_t column = (size_t)(lines < 1 ? 1 : lines) * packed_wide::cols * loss_element_size(run);
    size_t most = LOSS_D_SIZE / column < 1 ? 1 : LOSS_D_SIZE / column;
    g.chunk = g.factors.d ? g.factors.item_rows : (int)most * packed_wide::cols;
    int count = items < g.chunk ? items : g.chunk;
    choose_parts(run, count, &g);
    for (int pass = 0; pass < 2; pass++) {
        scratch.take((char **)&g.d, g.factors.d ? 0 : (size_t)lines * (size_t)g.chunk, loss_element_size(run));
        /* Each has a matrix and a vector. */
        for (int by_items = 0; by_items < 2; by_items++)
            scratch.take(&g.partial[by_items],
                         g.parts[by_items] == 1
                             ? 0
                             : (size_t)g.parts[by_items] * (size_t)(by_items ? count : rows) * (size_t)(g.cols + 1));
        if (pass == 0 && !(scratch.at = (char *)lp_cuda_scratch(run, scratch.size)))
            return;
        scratch.size = 0;
    }
    g.d = g.factors.d ? g.factors.d : g.d;
    for (int first = 0; first < items; first += g.chunk, count = items - first < count ? items - first : count) {
        if (!g.factors.d)
            loss_compute_d(node, run, g.factors, first, count, g.d, g.chunk);
        multiply_d(node, run, g, first, count);
    }
}
