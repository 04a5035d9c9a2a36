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
template <int rows, int cols, int warp_rows, int warp_cols, int slab_buffers, int resident_blocks>
struct packed_shape : product_shape<rows, cols, warp_rows, warp_cols> {
    static constexpr int buffers = slab_buffers, blocks = resident_blocks, alone = 2;
};

typedef packed_shape<128, 128, 64, 64, 3, 2> packed_wide;
typedef packed_shape<128, 64, 64, 32, 3, 2> packed_narrow; /* for up to 64 columns */
typedef packed_shape<64, 128, 32, 64, 4, 2> packed_outer;  /* smaller, which waits for less: gradients of weights */

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

/* buffers: at least the slabs of the block, or shape::buffers; shape::alone for B alone. */
template <int precision, bool a_deep, bool b_deep, typename shape, typename finish_type>
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
    product_place place = {(int)blockIdx.y * shape::rows,
                           0,
                           (int)blockIdx.z / task.chunks,
                           (int)blockIdx.z % task.chunks,
                           product_count(task.rows, task.shard),
                           product_count(task.cols, task.shard),
                           (int)blockIdx.x,
                           (int)gridDim.x};
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
        product_copy_columns<slab_a, shape::threads, 4>(to, sides.a + k * sides.a_step, task.a.stride, sides.rows,
                                                        end - k);
    };
    auto copy_next = [&]() {
        if (next_tile < last && next_k < end) {
            float *to = ring + next_buffer * size;
            int col = next_tile * shape::cols;
            product_copy_columns<slab_b, shape::threads, 4>(
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
template <int precision, bool a_deep, bool b_deep, typename shape, typename finish_type>
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
    LP_LAUNCH_PDL(run, (packed_kernel<precision, a_deep, b_deep, shape, finish_type>), grid, shape::threads,
                  slabs::bytes(resident, buffers), task, resident, buffers, finish);
}

/* In the precision of the run. */
template <bool a_deep, bool b_deep, typename shape, typename finish_type>
static inline void packed_launch(const lp_cuda_run *run, const product_task &task, const finish_type &finish, int rows,
                                 int ranges)
{
    product_with_precision(run, [&](auto precision) {
        packed_launch_precision<decltype(precision)::value, a_deep, b_deep, shape>(run, task, finish, 1, rows, ranges);
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

/* What is done with a product before it is stored, in this order. */
typedef struct product_after {
    const float *mask;      /* like C: 0 where it is not positive; NULL: there is none, or a copy */
    lp_cuda_copy mask_copy; /* data NULL: there is none, or floats */
    uint32_t threshold;     /* of dropout; 0: there is none */
    uint32_t purpose;
    float scale;
    int relu;
} product_after;

/* product_store with a copy in bf16, for the only tile of a block. Parts of a warp's tile, of 16 rows and up to 64 columns, pass
 * through shared memory, so that neighbouring lanes have neighbouring columns. What is added to the first part is loaded before the
 * tile is multiplied, and to the others while the part before is stored; it comes to the L2 cache while the tile is multiplied. */
template <typename shape, bool has_after = false> struct product_store_rows : product_store {
    lp_cuda_copy copy; /* of C in bf16, of all heads; data NULL: none. Without floats it accumulates into the copy */
    int quads; /* columns begin at multiples of 4 in floats and copy, zeros may be stored beyond the last; at most one is added */
    product_after after; /* of one head; used if has_after */
    const lp_cuda_shard *shard;

    static constexpr int cols = shape::own_cols < 64 || shape::own_cols > 192 ||
                                        (shape::own_cols > 64 && shape::blocks > 1)
                                    ? 32
                                    : 64; /* of a part */
    static constexpr int across = shape::own_cols / cols, parts = shape::down * across;
    static constexpr int staging = shape::warps * 16 * cols;
    /* Vectors of a lane, of four columns; lanes that have a row; rows between the vectors of a lane. */
    static constexpr int vectors = cols / 8, lanes = cols / 4, step = 32 / lanes;
    typedef lp_vector<4> quad;
    quad held[vectors], held_bias; /* what is added to the lane's vectors of a part; held: or their mask */

    /* Row and column of the lane's first vector of part i, from those of the tile on. */
    __device__ static int row_of(int i)
    {
        tile_lane me = tile_lane_now();
        return me.warp / shape::warps_across * shape::own_rows + i / across * 16 + me.lane / lanes;
    }
    __device__ static int col_of(int i)
    {
        tile_lane me = tile_lane_now();
        return me.warp % shape::warps_across * shape::own_cols + i % across * cols + me.lane % lanes * 4;
    }

    /* Where an element of a part is staged, without bank conflicts. */
    __device__ static int staged_at(int row, int col)
    {
        return row * cols + (col ^ row % vectors * 8);
    }

    /* What is added to the first row and column of the tile, or their mask: in floats, or in bf16. NULL: nothing. */
    __device__ const float *added(const product_place &place) const
    {
        const float *from = has_after && after.mask ? after.mask : add ? add : accumulate ? to : NULL;
        return quads && from ? from + place.head * head + place.row * stride + place.col : NULL;
    }
    __device__ const uint16_t *added_copy(const product_place &place) const
    {
        lp_cuda_copy from = accumulate && !to ? copy : lp_cuda_copy();
        if (has_after && after.mask_copy.data)
            from = after.mask_copy;
        return quads && from.data
                   ? from.data + place.head * (head + from.gap) + (int64_t)place.row * from.stride + place.col
                   : NULL;
    }

    __device__ int packed_stride() const
    {
        return has_after && after.mask_copy.data ? after.mask_copy.stride : copy.stride;
    }

    /* Beyond the last row and column it loads these again: loads under a condition would wait for each other. */
    __device__ void load(const product_place &place, int i, const float *from, const uint16_t *packed)
    {
        int row = row_of(i), last = place.rows - 1 - place.row;
        int col = min(col_of(i), (place.cols - place.col - 1) / 4 * 4);
        held_bias = {};
#pragma unroll
        for (int n = 0; n < vectors; n++)
            held[n] = {};
        if (from)
#pragma unroll
            for (int n = 0; n < vectors; n++)
                held[n] = lp_vector_load<4>(from + min(row + step * n, last) * (int)stride + col);
        if (packed)
#pragma unroll
            for (int n = 0; n < vectors; n++)
                held[n] = lp_vector_load_bf16<4>(packed + min(row + step * n, last) * packed_stride() + col);
        if (quads && bias)
            held_bias = lp_vector_load<4>(bias + place.head * place.cols + place.col + col);
    }

    template <int precision, bool a_deep, typename any>
    __device__ void start(const product_place &place, product_sums<any> &)
    {
        const float *from = added(place);
        const uint16_t *packed = added_copy(place);
        load(place, 0, from, packed);
        constexpr int each = shape::threads / shape::rows; /* threads of a row */
        int row = (int)threadIdx.x / each, line = from ? 32 : 64;
        int last = place.row + row < place.rows && (from || packed) ? min(shape::cols, place.cols - place.col) : 0;
#pragma unroll 1
        for (int col = (int)threadIdx.x % each * line; col < last; col += each * line)
            tile_prefetch(from ? from + row * (int)stride + col
                               : (const float *)(packed + row * packed_stride() + col));
    }

    /* Random words of the lane's vectors, the first of which is at this row and column. The rounds are not unrolled. */
    __device__ void draw(uint32_t (&drawn)[vectors][2], int row, int col) const
    {
        uint32_t word[vectors][4] = {};
        uint64_t seed = after.threshold ? shard->seed : 0;
#pragma unroll
        for (int n = 0; n < vectors && after.threshold; n++) {
            uint64_t element = element_of(row + step * n, col);
            word[n][0] = (uint32_t)element;
            word[n][1] = (uint32_t)(element >> 32);
            word[n][2] = shard->step;
            word[n][3] = after.purpose;
        }
#pragma unroll 1
        for (int round = 0; after.threshold && round < LP_PHILOX_ROUNDS; round++)
#pragma unroll
            for (int n = 0; n < vectors; n++)
                lp_philox_round(word[n], seed, round);
#pragma unroll
        for (int n = 0; n < vectors; n++) {
            drawn[n][0] = col & 4 ? word[n][2] : word[n][0];
            drawn[n][1] = col & 4 ? word[n][3] : word[n][1];
        }
    }

    /* Eight columns share a block of random numbers. */
    __device__ uint64_t element_of(int row, int col) const
    {
        return (shard->first_token + (uint64_t)row) * 65536 + (uint64_t)(col / 8);
    }

    /* bits: the lower 16 are random. */
    __device__ float finished(float y, float mask, uint32_t bits) const
    {
        if (after.mask || after.mask_copy.data)
            y = mask > 0 ? y : 0;
        if (after.threshold)
            y = (bits & 0xFFFFu) >= after.threshold ? y * after.scale : 0;
        return after.relu && !(y > 0) ? 0 : y;
    }

    /* floats, copied: of the first row and column of the tile. */
    __device__ void store_quads(const product_place &place, int i, const float *staged, float *floats,
                                uint16_t *copied) const
    {
        int row = row_of(i), col = col_of(i), present = col < place.cols - place.col ? place.rows - place.row - row : 0;
        int lane = tile_lane_now().lane;
        floats += row * (int)stride + col;
        copied += row * copy.stride + col;
        uint32_t drawn[vectors][2];
        if constexpr (has_after)
            draw(drawn, place.row + row, place.col + col);
#pragma unroll
        for (int n = 0; n < vectors; n++) {
            quad y = lp_vector_load<4>(staged + staged_at(lane / lanes + step * n, lane % lanes * 4));
#pragma unroll
            for (int k = 0; k < 4; k++)
                if constexpr (has_after)
                    y.at[k] = finished(y.at[k] + held_bias.at[k], held[n].at[k], drawn[n][k / 2] >> 16 * (k % 2));
                else
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
        int lane = tile_lane_now().lane, first = row_of(i) - lane / lanes, left = col_of(i) - lane % lanes * 4;
#pragma unroll 1
        for (int n = lane; n < 16 * cols; n += 32) {
            int row = place.row + first + n / cols, col = place.col + left + n % cols;
            int64_t at = place.head * head + row * stride + col;
            if (row >= place.rows || col >= place.cols)
                continue;
            float y = staged[staged_at(n / cols, n % cols)];
            y += bias ? bias[place.head * place.cols + col] : 0;
            y += add ? add[at] : 0;
            uint16_t *packed = copy.data + place.head * (head + copy.gap) + (int64_t)row * copy.stride + col;
            y += !accumulate ? 0 : to ? to[at] : lp_vector_load_bf16<1>(packed).at[0];
            if constexpr (has_after) {
                lp_random_block block = {};
                if (after.threshold)
                    block = lp_philox(shard->seed, after.purpose, shard->step, element_of(row, col));
                uint32_t low = col & 4 ? block.word[2] : block.word[0], high = col & 4 ? block.word[3] : block.word[1];
                float mask = after.mask ? after.mask[at] : 0;
                if (after.mask_copy.data)
                    mask = lp_vector_load_bf16<1>(after.mask_copy.data + (int64_t)row * after.mask_copy.stride + col)
                               .at[0];
                y = finished(y, mask, (col & 2 ? high : low) >> 16 * (col & 1));
            }
            if (to)
                to[at] = y;
            if (copy.data)
                tile_store_two<false>(packed, y, 0, false);
        }
    }

    /* memory: `staging` floats. The loop is not unrolled: where kernels alternate, instructions that run once are loaded from memory as
     * often as they run. */
    __device__ void store_tile(const product_place &place, product_sums<shape> &sums, float *memory)
    {
        tile_lane me = tile_lane_now();
        float *staged = memory + me.warp * 16 * cols, *floats = to + place.head * head + place.row * stride + place.col;
        uint16_t *copied = copy.data + place.head * (head + copy.gap) + (int64_t)place.row * copy.stride + place.col;
        const float *from = added(place);
        const uint16_t *packed = added_copy(place);
#pragma unroll 1
        for (int i = 0; i < parts; i++) {
#pragma unroll
            for (int part = 0; part < parts; part++)
#pragma unroll
                for (int k = 0; i == part && k < cols / 4; k++) {
                    const float *sum = sums.pair(part / across * 2 + k % 2, part % across * (cols / 8) + k / 2);
                    *(float2 *)(staged + staged_at(k % 2 * 8 + me.group, k / 2 * 8 + 2 * me.member)) =
                        make_float2(sum[0], sum[1]);
                }
            __syncwarp();
            if (quads)
                store_quads(place, i, staged, floats, copied);
            else
                store_each(place, i, staged);
            if (i + 1 < parts)
                load(place, i + 1, from, packed);
            __syncwarp();
        }
    }

    template <int precision, bool a_deep, typename any>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &sums, float *memory)
    {
        __syncthreads();
        store_tile(place, sums, memory);
    }
};

/* An operand in bf16; head: numbers from head to head. */
static inline product_operand packed_operand(lp_cuda_copy copy, int64_t head)
{
    return {copy.data, copy.stride, head, 4};
}

/* In bf16. wide, narrow: tiles for more than 64 columns, and for fewer. */
template <bool a_deep, bool b_deep, typename wide, typename narrow, typename finish_type>
static inline void packed_launch_copies(const lp_cuda_run *run, const product_task &task, const finish_type &finish,
                                        int heads, int rows, int cols)
{
    auto launch = [&](auto shape) {
        typedef decltype(shape) tile;
        packed_launch_precision<LP_PRECISION_BF16, a_deep, b_deep, tile>(run, task, finish, heads, rows,
                                                                         (int)lp_blocks(cols, tile::cols));
    };
    if (cols <= narrow::cols)
        launch(narrow());
    else
        launch(wide());
}

#endif
