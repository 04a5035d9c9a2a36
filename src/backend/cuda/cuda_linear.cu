/* cuda_linear.cu: y = x W + bias + add, or x W^T, for each head: products of floats (cuda_product.h), or in bf16 of copies, by warpgroups.
 * A stage of products adds several up to one y. Gradients of weights are reductions over rows (cuda_reduction.h).
 *
 * In bf16 (wgmma, cuda_product_wide.h) the grid is (column tiles, row tiles, heads). A tile has 128 rows; a warp has 16 of them and all
 * columns. A slab is 64 deep. All threads copy it from copies row by row (cuda_packed.h) to shared memory, 16 bytes at a time, to lines of
 * 128 bytes as wide_at numbers them: 64 depths of a row where the operand is deep, otherwise 64 rows of a depth, in blocks of 64 rows.
 * Beyond the last column a copy has zeros up to whole vectors.
 */
#include "backend/cuda/cuda_linear.h"

#include "backend/cuda/cuda_product_wide.h"

namespace
{

/* ---- storing a tile ------------------------------------------------------------------------------------------- */

/* product_store with copies in bf16, for the only tile of a block. */
typedef struct linear_store : product_store {
    lp_cuda_copy copy;       /* of C, of all heads; data NULL: none */
    lp_cuda_copy other_copy; /* `other` in bf16; data NULL: it is floats, or there is none */
    int quads; /* columns begin at multiples of 4 in floats and copies, zeros may be stored beyond the last */
} linear_store;

/* Parts of a warp's tile, of 16 rows and up to 64 columns, pass through shared memory, so that neighbouring lanes have neighbouring
 * columns. The other operand of the first part is loaded before the tile is multiplied, and that of the others while the part before is
 * stored. A warp has 16 rows and all columns. */
template <typename shape> struct linear_store_rows : linear_store {
    static constexpr int cols = shape::cols > 192 || (shape::cols > 64 && shape::blocks > 1) ? 32 : 64; /* of a part */
    static constexpr int parts = shape::cols / cols, staging = shape::warps * 16 * cols;
    /* Vectors of a lane, of four columns; lanes that have a row; rows between the vectors of a lane. */
    static constexpr int vectors = cols / 8, lanes = cols / 4, step = 32 / lanes;
    typedef lp_vector<4> quad;
    quad held[vectors], held_bias; /* of the lane's vectors of a part; held: of the other operand */

    /* Row of the lane's first vector, and column of those of part i, from those of the tile on. */
    __device__ static int row_of_lane()
    {
        return (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / lanes;
    }
    __device__ static int col_of_lane(int i)
    {
        return i * cols + (int)threadIdx.x % lanes * 4;
    }

    /* Where an element of a part is staged, without bank conflicts. */
    __device__ static int staged_at(int row, int col)
    {
        return row * cols + (col ^ row % vectors * 8);
    }

    /* The other operand from the first row and column of the tile on. */
    __device__ const float *floats_of_other(const product_place &place) const
    {
        return quads && other ? other + place.head * head + place.row * stride + place.col : NULL;
    }
    __device__ const uint16_t *copy_of_other(const product_place &place) const
    {
        int64_t first = place.head * (head + other_copy.gap) + (int64_t)place.row * other_copy.stride + place.col;
        return quads && other_copy.data ? other_copy.data + first : NULL;
    }

    /* Beyond the last row and column it loads these again: loads under a condition would wait for each other. */
    __device__ void load(const product_place &place, int i, const float *floats, const uint16_t *packed)
    {
        int row = row_of_lane(), last = place.rows - 1 - place.row;
        int col = min(col_of_lane(i), (place.cols - place.col - 1) / 4 * 4);
        held_bias = {};
#pragma unroll
        for (int n = 0; n < vectors; n++)
            held[n] = {};
        if (floats)
#pragma unroll
            for (int n = 0; n < vectors; n++)
                held[n] = lp_vector_load<4>(floats + min(row + step * n, last) * (int)stride + col);
        if (packed)
#pragma unroll
            for (int n = 0; n < vectors; n++)
                held[n] = lp_vector_load_bf16<4>(packed + min(row + step * n, last) * other_copy.stride + col);
        if (quads && bias)
            held_bias = lp_vector_load<4>(bias + place.head * place.cols + place.col + col);
    }

    /* floats, copied: of the first row and column of the tile. */
    __device__ void store_quads(const product_place &place, int i, const float *staged, float *floats,
                                uint16_t *copied) const
    {
        int row = row_of_lane(), col = col_of_lane(i),
            present = col < place.cols - place.col ? place.rows - place.row - row : 0;
        int lane = tile_lane_now().lane;
        floats += row * (int)stride + col;
        copied += row * copy.stride + col;
#pragma unroll
        for (int n = 0; n < vectors; n++) {
            quad y = lp_vector_load<4>(staged + staged_at(lane / lanes + step * n, lane % lanes * 4));
#pragma unroll
            for (int k = 0; k < 4; k++)
                y.at[k] += held[n].at[k] + held_bias.at[k];
            if (to && step * n < present)
                *(quad *)(floats + step * n * (int)stride) = y;
            if (copy.data && step * n < present)
                *(float2 *)(copied + step * n * copy.stride) =
                    make_float2(tile_pack_bf16(y.at[0], y.at[1]), tile_pack_bf16(y.at[2], y.at[3]));
        }
    }

    __device__ void store_each(const product_place &place, int i, const float *staged) const
    {
        int lane = tile_lane_now().lane, first = row_of_lane() - lane / lanes;
#pragma unroll 1
        for (int n = lane; n < 16 * cols; n += 32) {
            int row = place.row + first + n / cols, col = place.col + i * cols + n % cols;
            int64_t at = place.head * head + row * stride + col;
            if (row >= place.rows || col >= place.cols)
                continue;
            auto in_copy = [&](const lp_cuda_copy &of) {
                return of.data + place.head * (head + of.gap) + (int64_t)row * of.stride + col;
            };
            float y = staged[staged_at(n / cols, n % cols)] + (bias ? bias[place.head * place.cols + col] : 0);
            float with = other ? other[at] : other_copy.data ? lp_vector_load_bf16<1>(in_copy(other_copy)).at[0] : 0;
            y += with;
            if (to)
                to[at] = y;
            if (copy.data)
                tile_store_two<false>(in_copy(copy), y, 0, false);
        }
    }

    /* memory: `staging` floats. The loop is not unrolled: where kernels alternate, instructions that run once are loaded from memory as
     * often as they run. */
    __device__ void store_tile(const product_place &place, product_sums<shape> &sums, float *memory)
    {
        tile_lane me = tile_lane_now();
        float *staged = memory + me.warp * 16 * cols, *floats = to + place.head * head + place.row * stride + place.col;
        uint16_t *copied = copy.data + place.head * (head + copy.gap) + (int64_t)place.row * copy.stride + place.col;
        const float *other_floats = floats_of_other(place);
        const uint16_t *other_packed = copy_of_other(place);
#pragma unroll 1
        for (int i = 0; i < parts; i++) {
#pragma unroll
            for (int part = 0; part < parts; part++)
#pragma unroll
                for (int k = 0; i == part && k < cols / 4; k++) {
                    const float *sum = sums.pair(k % 2, part * (cols / 8) + k / 2);
                    *(float2 *)(staged + staged_at(k % 2 * 8 + me.group, k / 2 * 8 + 2 * me.member)) =
                        make_float2(sum[0], sum[1]);
                }
            __syncwarp();
            if (quads)
                store_quads(place, i, staged, floats, copied);
            else
                store_each(place, i, staged);
            if (i + 1 < parts)
                load(place, i + 1, other_floats, other_packed);
            __syncwarp();
        }
    }
};

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Stages are slabs in shared memory, at least 3. Blocks is how many run on a multiprocessor. */
template <int cols, int slab_stages, int resident_blocks> struct linear_shape : product_shape<128, cols, 16, cols> {
    static constexpr int stages = slab_stages, blocks = resident_blocks;
};

/* Products whose sum a launch stores: of equal rows, columns and heads. */
template <int most> struct linear_task {
    product_task of[most];
    int count;
};

/* A block computes one tile. */
template <bool b_deep, typename shape, int most>
__global__ void __launch_bounds__(shape::threads, shape::blocks)
    linear_kernel(const __grid_constant__ linear_task<most> task, linear_store_rows<shape> store)
{
    constexpr int size_b = wide_size(shape::cols), size = size_b + wide_size(shape::rows), depth = WIDE_BLOCK;
    LP_SHARED(float, shared);
    /* Lines repeat after 1,024 bytes. */
    float *ring = shared + (1024 - ((uintptr_t)shared & 1023)) % 1024 / 4;
    lp_pdl_wait();
    lp_pdl_trigger();
    const product_task *product = task.of;
    product_place place = {(int)blockIdx.y * shape::rows,
                           (int)blockIdx.x * shape::cols,
                           (int)blockIdx.z,
                           0,
                           lp_rows_now(product->rows, product->shard),
                           product->cols.fixed};
    if (place.row >= place.rows)
        return;
    int slabs = 0;
#pragma unroll
    for (int i = 0; i < most; i++)
        slabs += i < task.count ? (task.of[i].depth.fixed + depth - 1) / depth : 0;

    /* Copies the slabs of all products in their order. */
    int next_k = 0;
    auto copy_next = [&](int stage) {
        int present = product->depth.fixed - next_k;
        if (present <= 0)
            return;
        float *to = ring + stage * size;
        wide_copy_rows<b_deep, shape::cols, shape::threads>(
            to, product_at<b_deep, uint16_t>(product->b, place.head, place.col, next_k), (int)product->b.stride,
            place.cols - place.col, present);
        wide_copy_rows<true, shape::rows, shape::threads>(
            to + size_b, product_at<true, uint16_t>(product->a, place.head, place.row, next_k), (int)product->a.stride,
            place.rows - place.row, present);
        next_k += depth;
        if (most > 1 && present <= depth && product + 1 < task.of + task.count) {
            product++;
            next_k = 0;
        }
    };
    product_sums<shape> sums = {};
    store.load(place, 0, store.floats_of_other(place), store.copy_of_other(place));
    wide_slabs<shape::stages, 1>(slabs, copy_next, [&](int stage) {
        const float *right = ring + stage * size, *left = right + size_b;
        wide_multiply<true, b_deep>((float(&)[shape::cols / 2]) sums,
                                    left + (int)threadIdx.x / 128 * wide_size(WIDE_BLOCK), right);
    });
    store.store_tile(place, sums, ring + min(slabs, shape::stages) * size);
}

typedef linear_task<LP_PRODUCT_MOST> joined_task;
typedef void (*linear_launcher)(const lp_cuda_run *run, const joined_task &task, const linear_store &store, int heads,
                                int rows);

/* rows: of the largest shard. */
template <bool transpose, typename shape, int most>
void launch_tiles(const lp_cuda_run *run, const joined_task &given, const linear_store &store, int heads, int rows)
{
    linear_task<most> task = {{}, given.count};
    linear_store_rows<shape> finish = {};
    (linear_store &)finish = store;
    int slabs = 0;
    for (int i = 0; i < given.count; i++) {
        task.of[i] = given.of[i];
        slabs += (int)lp_blocks(task.of[i].depth.fixed, WIDE_BLOCK);
    }
    int stages = slabs < shape::stages ? slabs : shape::stages;
    size_t floats = (size_t)(finish.staging + stages * (wide_size(shape::cols) + wide_size(shape::rows)));
    dim3 grid(lp_blocks(task.of[0].cols.fixed, shape::cols), lp_blocks(rows, shape::rows), (unsigned)heads);
    LP_LAUNCH_PDL(run, (linear_kernel<transpose, shape, most>), grid, shape::threads, floats * sizeof(float) + 1024,
                  task, finish);
}

/* most: a product alone has a kernel of its own, because what a launch does not need makes it slower. */
template <bool transpose, int most> linear_launcher launcher_of(int cols, int depth)
{
    /* Of a small tile, one block stores while another loads. */
    if (most == 1 && cols <= 64)
        return launch_tiles<transpose, linear_shape<64, 4, 2>, 1>;
    if (most == 1 && depth <= WIDE_BLOCK)
        return launch_tiles<transpose, linear_shape<128, 4, 2>, 1>;
    if (cols <= 128)
        return launch_tiles<transpose, linear_shape<128, most == 1 ? 4 : 6, 1>, most>;
    return lp_blocks(cols, 192) == lp_blocks(cols, 256) ? launch_tiles<transpose, linear_shape<192, 4, 1>, most>
                                                        : launch_tiles<transpose, linear_shape<256, 4, 1>, most>;
}

/* ---- products of a stage -------------------------------------------------------------------------------------- */

/* The product of a node, without what is added to it. */
template <bool transpose> product_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *weight = node->inputs[1];
    int heads = node->attributes.heads;
    int in = transpose ? weight->cols : weight->rows / heads, out = transpose ? weight->rows / heads : weight->cols;
    lp_cuda_copy x = lp_cuda_copy_from(run, node, 0), w = lp_cuda_copy_from(run, node, 1);
    product_operand a = {LP_INPUT(0), heads * in, in}, b = {LP_INPUT(1), weight->cols, (int64_t)in * out};
    if (x.data) {
        a = {x.data, x.stride, in + x.gap};
        b = {w.data, w.stride, (int64_t)(transpose ? out : in) * w.stride};
    }
    return {run->shard, lp_cuda_rows_of(node->outputs[0]), product_fixed(out), product_fixed(in), 1, a, b};
}

template <bool transpose> void launch(const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    lp_product product = lp_product_of(parts, count);
    const lp_value *y = product.out;
    auto data = [&](const lp_value *value) { return value ? (float *)lp_run_data(run->run, value) : NULL; };
    int heads = product.heads, largest = lp_cuda_largest(run, y), out = y->cols / heads;
    joined_task task = {{}, count};
    for (int i = 0; i < count; i++)
        task.of[i] = task_of<transpose>(parts[i].node, run);
    linear_store store = {};
    store.to = lp_cuda_stores_floats(run, y) ? data(y) : NULL;
    store.bias = data(product.bias);
    store.other = product.accumulates ? store.to : data(product.add);
    store.stride = y->cols;
    store.head = out;
    uintptr_t pointers = (uintptr_t)store.to | (uintptr_t)store.bias | (uintptr_t)store.other;
    if (product.add && product.accumulates) { /* rare: in a launch of its own */
        const float *add = data(product.add);
        float *to = store.to;
        lp_cuda_each(run, y, y->cols, [=] __device__(int64_t i, int) { to[i] += add[i]; });
    }
    if (!lp_cuda_copy_from(run, parts->node, 0).data)
        return product_launch<true, transpose>(run, task.of[0], (const product_store &)store, heads, largest, out);
    store.copy = lp_cuda_copy_to(run, y, heads);
    if (product.accumulates && !store.to)
        store.other_copy = store.copy;
    store.quads = (out + store.copy.gap) % 4 == 0 && lp_vector_width(pointers, pointers ? out : 0) == 4;
    auto launch = count > 1 ? launcher_of<transpose, LP_PRODUCT_MOST> : launcher_of<transpose, 1>;
    launch(out, task.of[0].depth.fixed)(run, task, store, heads, largest);
}

} // namespace

void lp_cuda_products(const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    if (count > LP_PRODUCT_MOST) /* stages are built so that there are none (lp_product_join) */
        lp_device_problem_set(run->device, "a sum of products", "it has more products than a launch can add up");
    else if (parts->node->attributes.transpose)
        launch<true>(parts, count, run);
    else
        launch<false>(parts, count, run);
}

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, 1};
    lp_cuda_products(&part, 1, run);
}

bool lp_cuda_bf16_supported(const lp_cuda_device *device)
{
#if defined(LP_CUDA_90A) || defined(LP_CUDA_EMULATED)
    return device->capability == 90;
#else
    return device == NULL;
#endif
}
