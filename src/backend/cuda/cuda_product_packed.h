/* cuda_product_packed.h: the product of cuda_product.h for operands that are packed: rounded to the precision in memory
 * (bf16, or floats), with rows that are padded with zeros to whole 16 bytes. They need not pass through registers, so slabs
 * of 128 bytes are copied asynchronously, and a warp has a tile of 64 x 64: half the reads of shared memory.
 *
 * Grid: (ranges of column tiles, row tiles, heads * chunks). A block computes the tiles of its range one after the other, and
 * copies the slabs of the next while it finishes one: a tile of a short depth would wait longer for its first slab than it
 * computes. Where the rows of A fit, they stay in shared memory for all tiles (`resident`). Two or three blocks run on a
 * multiprocessor.
 */
#ifndef LP_CUDA_PRODUCT_PACKED_H
#define LP_CUDA_PRODUCT_PACKED_H

#include "backend/cuda/cuda_product.h"

/* Buffers: slabs in shared memory, of which all but one are under way; alone: those of B where A is resident. Blocks: that
 * run on a multiprocessor. */
template <int rows, int cols, int warp_rows, int warp_cols, int slab_buffers, int resident_blocks, int b_buffers = 2>
struct packed_shape : product_shape<rows, cols, warp_rows, warp_cols> {
    static constexpr int buffers = slab_buffers, blocks = resident_blocks, alone = b_buffers;
};

typedef packed_shape<128, 128, 64, 64, 3, 2> packed_wide;
typedef packed_shape<128, 64, 64, 32, 3, 2> packed_narrow; /* for up to 64 columns */
/* Smaller tiles, which wait for less: gradients of weights; linear layers (features by tokens), and of 64 features. */
typedef packed_shape<64, 128, 32, 64, 4, 2> packed_outer;
typedef packed_shape<128, 64, 32, 32, 3, 2, 4> packed_linear;
typedef packed_shape<64, 64, 32, 32, 3, 3, 4> packed_linear_narrow;

/* bf16 in memory. */
typedef struct packed_bf16 {
    uint16_t bits;
} packed_bf16;

/* Numbers of 16 bytes. */
static inline int packed_unit(const lp_cuda_run *run)
{
    return tile_bf16(run) ? 8 : 4;
}

template <int precision, bool a_deep, bool b_deep, typename shape> struct packed_slabs {
    typedef std::conditional_t<precision == LP_PRECISION_BF16, packed_bf16, float> type;
    static constexpr int depth = 128 / (int)sizeof(type);
    typedef product_layout<precision, a_deep, shape::rows, depth> a;
    typedef product_layout<precision, b_deep, shape::cols, depth> b;
    /* Slabs of A that may stay in shared memory, beside buffers for B alone; otherwise the buffers hold both. */
    static constexpr int most_resident = 4;

    __host__ __device__ static int buffer(bool resident)
    {
        return (resident ? 0 : a::size) + b::size;
    }
    static size_t bytes(int resident, int buffers)
    {
        return sizeof(float) * (size_t)(resident * a::size + buffers * buffer(resident));
    }
};

/* width: floats of a copy. buffers: at least the slabs of the block, or shape::buffers; shape::alone for B alone. */
template <int precision, bool a_deep, bool b_deep, int width, typename shape, typename finish_type>
__global__ void __launch_bounds__(shape::threads, shape::blocks)
    packed_kernel(const __grid_constant__ product_task task, int resident, int buffers, finish_type finish)
{
    typedef packed_slabs<precision, a_deep, b_deep, shape> slabs;
    typedef typename slabs::a slab_a;
    typedef typename slabs::b slab_b;
    typedef typename slabs::type type;
    LP_SHARED(float, memory);
    lp_pdl_wait();
    lp_pdl_trigger();
    product_place place = {(int)blockIdx.y * shape::rows,        0,
                           (int)blockIdx.z / task.chunks,        (int)blockIdx.z % task.chunks,
                           product_count(task.rows, task.shard), product_count(task.cols, task.shard)};
    if (place.row >= place.rows)
        return;
    int64_t tiles = (place.cols + shape::cols - 1) / shape::cols;
    int tile = (int)(tiles * blockIdx.x / gridDim.x), last = (int)(tiles * (blockIdx.x + 1) / gridDim.x);
    product_sides<type> sides = product_sides_of<a_deep, b_deep, slabs::depth, type>(task, place);
    int begin = sides.begin, end = sides.end, size = slabs::buffer(resident);
    float *ring = memory + resident * slab_a::size;

    /* Copies the slabs of all tiles in their order. */
    int next_tile = tile, next_k = begin, next_buffer = 0;
    auto copy_a = [&](float *to, int k) {
        product_copy_columns<slab_a, shape::threads, width>(to, sides.a + k * sides.a_step, task.a.stride, sides.rows,
                                                            end - k);
    };
    auto copy_next = [&]() {
        if (next_tile < last && next_k < end) {
            float *to = ring + next_buffer * size;
            int col = next_tile * shape::cols;
            product_copy_columns<slab_b, shape::threads, width>(
                to, sides.b + col * (b_deep ? task.b.stride : 1) + next_k * sides.b_step, task.b.stride,
                place.cols - col, end - next_k);
            if (!resident)
                copy_a(to + slab_b::size, next_k);
            next_k += slabs::depth;
            if (next_k >= end) {
                next_k = begin;
                next_tile++;
            }
            next_buffer = next_buffer + 1 == buffers ? 0 : next_buffer + 1;
        }
        product_copies_end();
    };
    /* Of resident rows the first slabs come with those of B, all others with the last of these. */
    for (int i = 1, slab = 0, first = resident ? shape::alone : shape::buffers; i < first; i++) {
        for (; slab < resident && (slab < i || i + 1 == first); slab++)
            copy_a(memory + slab * slab_a::size, begin + slab * slabs::depth);
        copy_next();
    }
    float *buffer = ring, *stop = ring + buffers * size;
#pragma unroll 1
    for (; tile < last; tile++) {
        product_sums<shape> sums = {};
        const float *a = memory;
        float *from = buffer;
        place.col = tile * shape::cols;
        finish.template start<precision, a_deep, shape>(place, sums);
#pragma unroll 1
        for (int k = begin; k < end; k += slabs::depth, a += slab_a::size) {
            if (resident)
                product_copies_wait<shape::alone - 2>();
            else
                product_copies_wait<shape::buffers - 2>();
            __syncthreads();
            copy_next();
            from = buffer;
            const float *left = resident ? a : from + slab_b::size;
            product_multiply<a_deep, b_deep, shape, slab_a, slab_b>(sums, left, from, end - k);
            finish.template copied<shape, slab_a, slab_b>(place, left, from);
            buffer = buffer + size == stop ? ring : buffer + size;
        }
        finish.template run<precision, a_deep, shape>(task, place, sums, from);
    }
    __syncthreads();
    finish.template done<precision, a_deep, shape>(place, memory);
}

/* rows: of the largest shard; ranges: of the column tiles. */
template <int precision, bool a_deep, bool b_deep, int width, typename shape, typename finish_type>
static inline void packed_launch_precision(const lp_cuda_run *run, const product_task &task, const finish_type &finish,
                                           int heads, int rows, int ranges)
{
    typedef packed_slabs<precision, a_deep, b_deep, shape> slabs;
    dim3 grid((unsigned)ranges, lp_blocks(rows, shape::rows), (unsigned)(heads * task.chunks));
    int depth = (int)lp_blocks(task.depth.most, slabs::depth), resident = 0, buffers = shape::buffers;
    bool single = ranges == (int)lp_blocks(task.cols.most, shape::cols);
    if (!single && task.chunks == 1 && depth <= slabs::most_resident) {
        resident = depth;
        buffers = shape::alone;
    } else if (single && depth < buffers) {
        buffers = depth;
    }
    LP_LAUNCH_PDL(run, (packed_kernel<precision, a_deep, b_deep, width, shape, finish_type>), grid, shape::threads,
                  slabs::bytes(resident, buffers), task, resident, buffers, finish);
}

/* In the precision of the run. */
template <bool a_deep, bool b_deep, typename shape, typename finish_type>
static inline void packed_launch(const lp_cuda_run *run, const product_task &task, const finish_type &finish, int rows,
                                 int ranges)
{
    product_with_precision(run, [&](auto precision) {
        packed_launch_precision<decltype(precision)::value, a_deep, b_deep, 4, shape>(run, task, finish, 1, rows,
                                                                                      ranges);
    });
}

/* Blocks that run at once. Constant, so that results do not depend on the device. */
#ifdef LP_CUDA_EMULATED
enum { PACKED_BLOCKS = 4 };
#else
enum { PACKED_BLOCKS = 264 };
#endif

/* Parts into which each of `blocks` blocks with `units` units of work is divided: those with the least time. `extra`: what a
 * part costs, in half units. */
static inline int packed_parts(int64_t blocks, int units, int extra)
{
    int best = 1;
    int64_t least = INT64_MAX;
    for (int parts = 1; parts <= units && parts <= PACKED_BLOCKS; parts++) {
        int64_t time = (int64_t)lp_blocks(blocks * parts, PACKED_BLOCKS) * (2 * lp_blocks(units, parts) + extra);
        if (time < least) {
            least = time;
            best = parts;
        }
    }
    return best;
}

/* ---- copies in bf16 ------------------------------------------------------------------------------------------ */

/* product_store with a copy in bf16, for the only tile of a block. 16 rows of a warp at a time pass through shared memory, so
 * that neighbouring lanes have neighbouring columns. What is added comes to the L2 cache while the tile is multiplied. */
template <typename shape> struct product_store_rows : product_store {
    lp_cuda_copy copy; /* of C in bf16, of all heads; data NULL: none */
    int quads;         /* columns are a multiple of 4, pointers aligned to four floats, and at most one is added */

    /* Vectors of four columns: of a row, of a lane in 16 rows, and those that a lane loads at once. */
    static constexpr int line = shape::own_cols / 4, vectors = 16 * line / 32, each = shape::blocks > 1 ? 4 : 8;
    static constexpr int pitch = shape::own_cols + 8;
    typedef lp_vector<4> quad;

    /* Where a lane is: first row and column of its warp, from those of the tile on. */
    __device__ static int row_of(int m)
    {
        return tile_lane_now().warp / shape::warps_across * shape::own_rows + 16 * m;
    }
    __device__ static int col_of(void)
    {
        return tile_lane_now().warp % shape::warps_across * shape::own_cols;
    }

    template <int precision, bool a_deep, typename any>
    __device__ void start(const product_place &place, product_sums<any> &sums) const
    {
        if (quads && bias) {
            int left = place.col + col_of() + 2 * tile_lane_now().member;
#pragma unroll
            for (int j = 0; j < shape::across; j++) {
                float2 both = *(const float2 *)(bias + place.head * place.cols + min(left + 8 * j, place.cols - 2));
#pragma unroll
                for (int i = 0; i < 2 * shape::down; i++) {
                    sums.pair(i, j)[0] = both.x;
                    sums.pair(i, j)[1] = both.y;
                }
            }
        }
        const float *from = add ? add : to;
        for (int i = (int)threadIdx.x; (add || accumulate) && i < shape::rows * shape::cols / 32; i += shape::threads) {
            int row = place.row + i / (shape::cols / 32), col = place.col + i % (shape::cols / 32) * 32;
            if (row < place.rows && col < place.cols)
                tile_prefetch(from + place.head * head + row * stride + col);
        }
    }

    /* Vectors n to n + each - 1 of the lane, from row m on. Beyond the last row and column it loads these again: loads under a
     * condition would wait for each other. */
    __device__ static void load(quad (&x)[each], const product_place &place, int m, int n, const float *from,
                                int64_t step)
    {
        int last = place.rows - 1 - place.row, right = place.cols - 4 - place.col;
        from += place.row * step + place.col;
#pragma unroll
        for (int k = 0; k < each; k++) {
            int vector = tile_lane_now().lane + 32 * (n + k);
            x[k] = lp_vector_load<4>(from + min(row_of(m) + vector / line, last) * (int)step +
                                     min(col_of() + vector % line * 4, right));
        }
    }

    __device__ void store_quads(quad (&x)[each], const product_place &place, int m, int n, const float *staged) const
    {
        int first = place.row + row_of(m), left = place.col + col_of();
        float *floats = to + place.head * head + (int64_t)first * stride + left;
        uint16_t *copied = copy.data + place.head * head + (int64_t)first * copy.stride + left;
#pragma unroll
        for (int k = 0; k < each; k++) {
            int vector = tile_lane_now().lane + 32 * (n + k), row = vector / line, col = vector % line * 4;
            quad y = lp_vector_load<4>(staged + row * pitch + col);
#pragma unroll
            for (int i = 0; i < 4; i++)
                y.at[i] += x[k].at[i];
            if (first + row < place.rows && left + col < place.cols) {
                if (to)
                    *(quad *)(floats + row * (int)stride + col) = y;
                if (copy.data)
                    *(float2 *)(copied + row * copy.stride + col) =
                        make_float2(tile_pack_bf16(y.at[0], y.at[1]), tile_pack_bf16(y.at[2], y.at[3]));
            }
        }
    }

    __device__ void store_each(const product_place &place, int m, const float *staged) const
    {
#pragma unroll 4
        for (int n = tile_lane_now().lane; n < 16 * shape::own_cols; n += 32) {
            int row = place.row + row_of(m) + n / shape::own_cols, col = place.col + col_of() + n % shape::own_cols;
            int64_t at = place.head * head + row * stride + col;
            if (row >= place.rows || col >= place.cols)
                continue;
            float y = staged[n / shape::own_cols * pitch + n % shape::own_cols];
            y += bias ? bias[place.head * place.cols + col] : 0;
            y += add ? add[at] : 0;
            y += accumulate ? to[at] : 0;
            if (to)
                to[at] = y;
            if (copy.data)
                tile_store_two<false>(copy.data + place.head * head + (int64_t)row * copy.stride + col, y, 0, false);
        }
    }

    template <int precision, bool a_deep, typename any>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &sums,
                        float *memory) const
    {
        tile_lane me = tile_lane_now();
        float *staged = memory + me.warp * 16 * pitch;
        const float *from = add ? add + place.head * head : accumulate ? to + place.head * head : NULL;
        __syncthreads();
#pragma unroll
        for (int m = 0; m < shape::down; m++) {
            quad x[2][each] = {};
            for (int n = 0; quads && from && n < 2 && n * each < vectors; n++)
                load(x[n], place, m, n * each, from, stride);
#pragma unroll
            for (int j = 0; j < shape::across; j++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const float *sum = sums.pair(2 * m + i, j);
                    *(float2 *)(staged + (8 * i + me.group) * pitch + 8 * j + 2 * me.member) =
                        make_float2(sum[0], sum[1]);
                }
            __syncwarp();
#pragma unroll
            for (int n = 0; n < vectors; n += each)
                if (quads) {
                    store_quads(x[n / each % 2], place, m, n, staged);
                    if (from && n + 2 * each < vectors)
                        load(x[n / each % 2], place, m, n + 2 * each, from, stride);
                }
            if (!quads)
                store_each(place, m, staged);
            __syncwarp();
        }
    }
};

/* product_outer with the sums of either operand. */
typedef struct product_outer_copy : product_outer {
    template <typename shape, typename slab_a, typename slab_b>
    __device__ void copied(const product_place &place, const float *a, const float *b)
    {
        if (wanted(place) && sums_b)
            add_slab<shape::threads, slab_b>(b);
        else if (wanted(place))
            add_slab<shape::threads, slab_a>(a);
    }
} product_outer_copy;

/* An operand in bf16; cols: those of a head, if there are several. */
static inline product_operand packed_operand(lp_cuda_copy copy, int64_t head, int cols, int heads)
{
    return {copy.data, copy.stride, head, heads == 1 || cols % 8 == 0 ? 4 : 1};
}

/* In bf16. wide, narrow: tiles for more than 64 columns, and for fewer or odd ones. */
template <bool a_deep, bool b_deep, typename wide, typename narrow, typename finish_type>
static inline void packed_launch_copies(const lp_cuda_run *run, const product_task &task, const finish_type &finish,
                                        int heads, int rows, int cols)
{
    auto launch = [&](auto width, auto shape) {
        typedef decltype(shape) tile;
        packed_launch_precision<LP_PRECISION_BF16, a_deep, b_deep, decltype(width)::value, tile>(
            run, task, finish, heads, rows, (int)lp_blocks(cols, tile::cols));
    };
    if (task.a.width < 4 || task.b.width < 4)
        launch(lp_constant<1>(), narrow());
    else if (cols <= narrow::cols)
        launch(lp_constant<4>(), narrow());
    else
        launch(lp_constant<4>(), wide());
}

#endif
