/* cuda_product.h: the matrix product of every width and precision:  C [rows x cols] = A [rows x depth] B [depth x cols].
 *
 * Grid: (ranges of column tiles, row tiles, heads * chunks). A block computes the tiles of its range one after the other, for one head
 * and one chunk of the depth. It takes the depth in slabs of 128 bytes, which are copied asynchronously: while one is multiplied, the
 * next are under way, those of the next tile, too. Where the rows of A fit, they stay in shared memory for all tiles (`resident`).
 *
 * Operands are floats, or packed: floats that are rounded to the precision in memory, with rows that are padded with zeros to whole 16
 * bytes. In tf32 each thread rounds the floats that it copied, in place. In fp32 tensor cores multiply, too: each factor is a sum of
 * two tf32 numbers (tile_mma_fp32), and the sums of a slab are added by ordinary additions, because tensor cores truncate theirs. Sums
 * are always fp32. Copies in bf16 (cuda_packed.h) are multiplied by warpgroups (cuda_product_wide.h); in bf16 operands without copies
 * are multiplied in tf32 here.
 *
 * The depth of an operand may be contiguous in memory (`deep`: A by rows, B transposed) or its rows of C may be (A
 * transposed, as in A^T B, or B by rows). Shared memory has the same order, and lanes read floats in either order. Strides of shared
 * memory avoid bank conflicts: 4 modulo 32 floats for ldmatrix, 8 where lanes read floats along the other side.
 *
 * What is done with a tile is a type `finish` (a kernel argument, product_finish). cuda_product_packed.h has those that store it.
 */
#ifndef LP_CUDA_PRODUCT_H
#define LP_CUDA_PRODUCT_H

#include <type_traits>

#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

/* Tile of a block, and of each of its warps. A lane has warp_rows * warp_cols / 32 sums. */
template <int block_rows, int block_cols, int warp_rows, int warp_cols> struct product_shape {
    static constexpr int rows = block_rows, cols = block_cols, warps_across = block_cols / warp_cols;
    static constexpr int warps = block_rows / warp_rows * warps_across, threads = 32 * warps;
    static constexpr int down = warp_rows / 16, across = warp_cols / 8; /* 16 x 8 tiles of a warp */
    static constexpr int own_rows = warp_rows, own_cols = warp_cols;
};

/* Buffers: slabs in shared memory, of which all but one are under way; alone: those of B where A is resident. Blocks: that
 * run on a multiprocessor. */
template <int rows, int cols, int warp_rows, int warp_cols, int slab_buffers, int resident_blocks>
struct packed_shape : product_shape<rows, cols, warp_rows, warp_cols> {
    static constexpr int buffers = slab_buffers, blocks = resident_blocks, alone = 2;
};

typedef packed_shape<128, 128, 64, 64, 3, 2> packed_wide;
typedef packed_shape<128, 64, 64, 32, 3, 2> packed_narrow;  /* for up to 64 columns */
typedef packed_shape<128, 128, 64, 32, 3, 2> product_large; /* of floats, and of all operands in fp32 */
typedef packed_shape<64, 64, 32, 32, 3, 4> product_small;

template <int precision>
using packed_large = std::conditional_t<precision == LP_PRECISION_FP32, product_large, packed_wide>;
/* In fp32 a block has more registers. */
template <int precision, typename shape>
constexpr int packed_blocks = precision == LP_PRECISION_FP32 ? shape::blocks / 2 : shape::blocks;

/* An operand: rows (of A), or columns (of B), by depth. */
typedef struct product_operand {
    const void *data;     /* of the first head; float, or bf16 where it is packed */
    int64_t stride, head; /* elements from row to row in memory, from head to head */
    int width;            /* floats of a copy: 4, 2 or 1; packed operands have 4 */
} product_operand;

/* A side of a product: from `first` on, at most `most`, rounded up to a multiple of `pad` + 1, a power of 2. The pointers
 * of operands and results begin there. */
typedef struct product_extent {
    lp_cuda_rows of;
    int first, most, pad = 0;
} product_extent;

static inline product_extent product_fixed(int count)
{
    return {{LP_ROWS_FIXED, count}, 0, count};
}

static inline product_extent product_whole(const lp_value *value)
{
    return {lp_cuda_rows_of(value), 0, INT32_MAX};
}

__device__ static inline int product_count(const product_extent &side, const lp_cuda_shard *shard)
{
    return (max(min(lp_rows_now(side.of, shard) - side.first, side.most), 0) + side.pad) & ~side.pad;
}

typedef struct product_task {
    const lp_cuda_shard *shard;
    product_extent rows, cols, depth;
    int chunks; /* of the depth */
    product_operand a, b;
} product_task;

/* The part of C that a block computes. */
typedef struct product_place {
    int row, col, head, chunk;
    int rows, cols;            /* of the whole product */
    int range = 0, ranges = 1; /* of the column tiles, where blocks divide them */
} product_place;

/* ---- loads --------------------------------------------------------------------------------------------------- */

/* Four neighbours, of which `present` exist; zeros for the others. */
__device__ static inline float4 product_load(const float *from, int present, int width)
{
    float4 x = {0, 0, 0, 0};
    if (width == 4 && present >= 4)
        return *(const float4 *)from;
    if (width == 2 && present >= 4) {
        float2 low = *(const float2 *)from, high = *(const float2 *)(from + 2);
        return make_float4(low.x, low.y, high.x, high.y);
    }
    if (present > 0)
        x.x = from[0];
    if (present > 1)
        x.y = from[1];
    if (present > 2)
        x.z = from[2];
    if (present > 3)
        x.w = from[3];
    return x;
}

/* Ends a group of asynchronous copies; waits until at most `later` groups of this thread are unfinished. The emulation
 * copies at once. */
__device__ static inline void product_copies_end(void)
{
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int later> __device__ static inline void product_copies_wait(void)
{
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group %0;" ::"n"(later) : "memory");
#endif
}

/* Layout in shared memory of a slab of an operand with `count` rows of C. */
template <int slab_precision, bool slab_deep, int slab_count, int slab_depth> struct product_layout {
    static constexpr int precision = slab_precision, depth = slab_depth, count = slab_count;
    static constexpr bool deep = slab_deep;
    /* A line is contiguous in memory. */
    static constexpr int lines = deep ? count : depth, line = deep ? depth : count;
    static constexpr int stride = line + (deep ? 4 : 8), size = lines * stride; /* in floats */
};

/* A thread copies the same four columns of several lines, in copies of `width` floats. What is not present is not read. */
template <typename layout, int threads, int width>
__device__ static inline void product_copy_columns(float *to, const float *from, int64_t from_stride, int rows,
                                                   int depth)
{
    constexpr int vectors = layout::line / 4, step = threads / vectors;
    static_assert(threads % vectors == 0 && layout::lines % step == 0, "whole columns");
    int line = (int)threadIdx.x / vectors, at = 4 * ((int)threadIdx.x % vectors);
    int floats = (layout::deep ? depth : rows) - at, present = (layout::deep ? rows : depth) - line;
    const float *source = from + line * from_stride + at;
    to += line * layout::stride + at;
#pragma unroll
    for (int i = 0; i < layout::lines; i += step, source += step * from_stride)
#pragma unroll
        for (int n = 0; n < 4; n += width) {
            int some = i < present ? min(max(floats - n, 0), width) : 0;
            tile_cp_async_part<width>(to + i * layout::stride + n, source + n, some);
        }
}

/* Starts to copy a slab. from: the first row and depth; rows, depth: present from there on. */
template <typename layout, int threads>
__device__ static inline void product_copy(float *to, const float *from, int64_t from_stride, int width, int rows,
                                           int depth)
{
    if (width == 4)
        product_copy_columns<layout, threads, 4>(to, from, from_stride, rows, depth);
    else if (width == 2)
        product_copy_columns<layout, threads, 2>(to, from, from_stride, rows, depth);
    else
        product_copy_columns<layout, threads, 1>(to, from, from_stride, rows, depth);
}

/* What the thread has copied of a slab, to be rounded to tf32. */
template <typename layout, int threads> struct product_copied {
    static constexpr int vectors = layout::line / 4, step = threads / vectors, count = layout::lines / step;
    float4 held[count];

    __device__ static float4 *at(float *slab, int i)
    {
        int line = (int)threadIdx.x / vectors + i * step;
        return (float4 *)(slab + line * layout::stride) + (int)threadIdx.x % vectors;
    }
    __device__ void load(float *slab)
    {
#pragma unroll
        for (int i = 0; i < count; i++)
            held[i] = *at(slab, i);
    }
    __device__ void store(float *slab) const
    {
#pragma unroll
        for (int i = 0; i < count; i++)
            *at(slab, i) = make_float4(tile_round_tf32(held[i].x), tile_round_tf32(held[i].y),
                                       tile_round_tf32(held[i].z), tile_round_tf32(held[i].w));
    }
};

/* ---- products of slabs --------------------------------------------------------------------------------------- */

/* Row of a lane's i-th sum, and the first column of its tile j, from those of the block on. */
template <typename shape> __device__ static inline int product_row(int i)
{
    tile_lane me = tile_lane_now();
    return me.warp / shape::warps_across * shape::own_rows + 8 * i + me.group;
}

template <typename shape> __device__ static inline int product_col(int j)
{
    tile_lane me = tile_lane_now();
    return me.warp % shape::warps_across * shape::own_cols + 8 * j + 2 * me.member;
}

/* The sums of a lane for row i and tile j of columns: two neighbours. */
template <typename shape> struct product_sums {
    float at[shape::down][shape::across][4];
    __device__ float *pair(int i, int j)
    {
        return &at[i / 2][j][i % 2 * 2];
    }
};

template <int precision>
__device__ static inline void product_mma(float (&sum)[4], const float (&a)[4], float b0, float b1)
{
    if constexpr (precision == LP_PRECISION_FP32)
        tile_mma_fp32(sum, a, b0, b1);
    else
        tile_mma<false>(sum, a, b0, b1);
}

/* 8 floats of the slab at a time, `present` in all. */
template <bool a_deep, bool b_deep, typename shape, typename slab_a, typename slab_b, int present>
__device__ static inline void product_add_slab(product_sums<shape> &sums, const float *a, int row, const float *b,
                                               int col)
{
    constexpr int depth = 8;
    tile_lane me = tile_lane_now();
    /* Addresses for ldmatrix: of matrix lane / 8, row lane % 8. */
    int which = me.lane >> 3, line = me.lane & 7;
    tile_address from_a = tile_address_of(a + (row + (me.lane & 15)) * slab_a::stride + 4 * (which >> 1));
    tile_address from_b = tile_address_of(b + (col + line + 8 * (which >> 1)) * slab_b::stride + 4 * (which & 1));
#pragma unroll(slab_a::precision == LP_PRECISION_FP32 ? 1 : present / depth)
    for (int k = 0; k < present; k += depth) {
        float left[shape::down][4], right[4];
#pragma unroll
        for (int m = 0; m < shape::down; m++) {
            if constexpr (a_deep) {
                tile_ldmatrix(left[m], from_a, 16 * m * slab_a::stride + k);
            } else {
                const float *here = a + (k + me.member) * slab_a::stride + row + 16 * m + me.group;
                left[m][0] = here[0];
                left[m][1] = here[8];
                left[m][2] = here[4 * slab_a::stride];
                left[m][3] = here[4 * slab_a::stride + 8];
            }
        }
#pragma unroll
        for (int j = 0; j < shape::across; j += 2) {
            if constexpr (b_deep) {
                tile_ldmatrix(right, from_b, 8 * j * slab_b::stride + k);
            } else {
                const float *here = b + (k + me.member) * slab_b::stride + col + 8 * j + me.group;
                right[0] = here[0];
                right[1] = here[4 * slab_b::stride];
                right[2] = here[8];
                right[3] = here[4 * slab_b::stride + 8];
            }
#pragma unroll
            for (int m = 0; m < shape::down; m++) {
                product_mma<slab_a::precision>(sums.at[m][j], left[m], right[0], right[1]);
                product_mma<slab_a::precision>(sums.at[m][j + 1], left[m], right[2], right[3]);
            }
        }
    }
}

/* Multiplies a slab of a block for the tile of this warp, or the first half of it if not more is present. In fp32 a strip of 16 columns
 * after another. */
template <bool a_deep, bool b_deep, typename shape, typename slab_a, typename slab_b>
__device__ static inline void product_multiply(product_sums<shape> &sums, const float *a, const float *b, int present)
{
    int warp = tile_lane_now().warp;
    int row = warp / shape::warps_across * shape::own_rows, col = warp % shape::warps_across * shape::own_cols;
    if constexpr (slab_a::precision == LP_PRECISION_FP32) {
        typedef product_shape<shape::rows, shape::cols, shape::own_rows, shape::own_cols % 64 ? shape::own_cols : 16>
            strip;
#pragma unroll
        for (int j = 0; j < shape::across; j += strip::across) {
            product_sums<strip> part = {};
            product_add_slab<a_deep, b_deep, strip, slab_a, slab_b, slab_a::depth>(part, a, row, b, col + 8 * j);
#pragma unroll
            for (int i = 0; i < shape::down * strip::across * 4; i++)
                sums.at[i / 4 / strip::across][j + i / 4 % strip::across][i % 4] +=
                    part.at[i / 4 / strip::across][i / 4 % strip::across][i % 4];
        }
    } else if (present > slab_a::depth / 2) {
        product_add_slab<a_deep, b_deep, shape, slab_a, slab_b, slab_a::depth>(sums, a, row, b, col);
    } else {
        product_add_slab<a_deep, b_deep, shape, slab_a, slab_b, slab_a::depth / 2>(sums, a, row, b, col);
    }
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* The chunk of the depth: whole slabs. */
template <int slab> __device__ static inline void product_chunk(int depth, int chunks, int chunk, int *begin, int *end)
{
    int slabs = (depth + slab - 1) / slab, each = slabs / chunks, longer = slabs % chunks;
    *begin = (chunk * each + min(chunk, longer)) * slab;
    *end = min(*begin + (each + (chunk < longer)) * slab, depth);
}

/* The operands of a block: where its rows and columns begin, and how many there are. */
template <typename type> struct product_sides {
    const type *a, *b;
    int64_t a_step, b_step; /* elements from one depth to the next */
    int rows, cols, begin, end;
};

template <bool a_deep, bool b_deep, int slab, typename type>
__device__ static inline product_sides<type> product_sides_of(const product_task &task, const product_place &place)
{
    product_sides<type> sides;
    sides.a = (const type *)task.a.data + place.head * task.a.head + place.row * (a_deep ? task.a.stride : 1);
    sides.b = (const type *)task.b.data + place.head * task.b.head + place.col * (b_deep ? task.b.stride : 1);
    sides.a_step = a_deep ? 1 : task.a.stride;
    sides.b_step = b_deep ? 1 : task.b.stride;
    sides.rows = place.rows - place.row;
    sides.cols = place.cols - place.col;
    product_chunk<slab>(product_count(task.depth, task.shard), task.chunks, place.chunk, &sides.begin, &sides.end);
    return sides;
}

/* What is done with a tile. The default is nothing. */
struct product_finish {
    static constexpr int staging = 0; /* floats of shared memory that it needs beside the slabs */

    /* The begin of a tile. */
    template <int precision, bool a_deep, typename shape>
    __device__ void start(const product_place &, product_sums<shape> &) const
    {
    }
    /* A slab of A and B. Floats are not rounded yet, and of them only what the thread has copied is there. */
    template <typename shape, typename slab_a, typename slab_b>
    __device__ void copied(const product_place &, const float *, const float *)
    {
    }
    /* run: the sums of a tile, and shared memory to use after a barrier. done: the end of the block's tiles. */
    template <int precision, bool a_deep, typename shape> __device__ void done(const product_place &, float *)
    {
    }
};

template <int precision, bool a_deep, bool b_deep, typename shape> struct packed_slabs {
    static constexpr int depth = 32;
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

/* Computes the column tiles tile .. last - 1 of the rows and the chunk of `place`. buffers: at least the slabs of the block, or
 * shape::buffers; shape::alone for B alone. */
template <int precision, bool packed, bool a_deep, bool b_deep, typename shape, typename finish_type>
__device__ static inline void product_tiles(const product_task &task, product_place place, int tile, int last,
                                            int resident, int buffers, finish_type &finish)
{
    typedef packed_slabs<precision, a_deep, b_deep, shape> slabs;
    typedef typename slabs::a slab_a;
    typedef typename slabs::b slab_b;
    constexpr bool rounds = precision == LP_PRECISION_TF32 && !packed;
    resident = packed ? resident : 0; /* known to the compiler: fewer registers */
    LP_SHARED(float, memory);
    product_sides<float> sides = product_sides_of<a_deep, b_deep, slabs::depth, float>(task, place);
    int begin = sides.begin, end = sides.end, size = slabs::buffer(resident);
    float *ring = memory + resident * slab_a::size;

    /* Copies the slabs of all tiles in their order. */
    int next_tile = tile, next_k = begin, next_buffer = 0;
    auto copy_a = [&](float *to, int k) {
        product_copy<slab_a, shape::threads>(to, sides.a + k * sides.a_step, task.a.stride, packed ? 4 : task.a.width,
                                             sides.rows, end - k);
    };
    auto copy_next = [&]() {
        if (next_tile < last && next_k < end) {
            float *to = ring + next_buffer * size;
            int col = next_tile * shape::cols;
            product_copy<slab_b, shape::threads>(
                to, sides.b + col * (b_deep ? task.b.stride : 1) + next_k * sides.b_step, task.b.stride,
                packed ? 4 : task.b.width, place.cols - col, end - next_k);
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
            if constexpr (rounds) {
                finish.template copied<shape, slab_a, slab_b>(place, buffer + slab_b::size, buffer);
                product_copied<slab_a, shape::threads> of_a;
                product_copied<slab_b, shape::threads> of_b;
                of_a.load(buffer + slab_b::size);
                of_b.load(buffer);
                of_a.store(buffer + slab_b::size);
                of_b.store(buffer);
            }
            __syncthreads();
            copy_next();
            from = buffer;
            const float *left = resident ? a : from + slab_b::size;
            product_multiply<a_deep, b_deep, shape, slab_a, slab_b>(sums, left, from, end - k);
            if constexpr (!rounds)
                finish.template copied<shape, slab_a, slab_b>(place, left, from);
            buffer = buffer + size == stop ? ring : buffer + size;
        }
        finish.template run<precision, a_deep, shape>(task, place, sums, from);
        if (!packed) /* a block of floats has one tile */
            break;
    }
    __syncthreads();
    finish.template done<precision, a_deep, shape>(place, memory);
}

template <int precision, bool packed, bool a_deep, bool b_deep, typename shape, typename finish_type>
__global__ void __launch_bounds__(shape::threads, packed_blocks<precision, shape>)
    product_kernel(const __grid_constant__ product_task task, int resident, int buffers, finish_type finish)
{
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
    int64_t tiles = (place.cols + shape::cols - 1) / shape::cols;
    int tile = (int)(tiles * blockIdx.x / gridDim.x), last = (int)(tiles * (blockIdx.x + 1) / gridDim.x);
    if (place.row < place.rows)
        product_tiles<precision, packed, a_deep, b_deep, shape>(task, place, tile, last, resident, buffers, finish);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* rows: of the largest shard; ranges: of the column tiles. */
template <int precision, bool a_deep, bool b_deep, typename shape, bool packed = true, typename finish_type>
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
    LP_LAUNCH_PDL(run, (product_kernel<precision, packed, a_deep, b_deep, shape, finish_type>), grid, shape::threads,
                  slabs::bytes(resident, buffers), task, resident, buffers, finish);
}

/* Calls act(precision) with the precision of the run as a constant. */
template <typename action> static inline void product_with_precision(const lp_cuda_run *run, const action &act)
{
    if (run->run->precision == LP_PRECISION_FP32)
        act(std::integral_constant<int, LP_PRECISION_FP32>());
    else if (run->run->precision == LP_PRECISION_TF32)
        act(std::integral_constant<int, LP_PRECISION_TF32>());
    else
        act(std::integral_constant<int, LP_PRECISION_BF16>());
}

/* Blocks of large tiles that fill the device: one for each of 132 multiprocessors. Constant, so that results do not depend on it. The
 * emulation uses large tiles and several chunks for fewer, so that tests reach them. */
#ifdef LP_CUDA_EMULATED
enum { PRODUCT_BLOCKS = 4 };
#else
enum { PRODUCT_BLOCKS = 132 };
#endif

/* Floats, in fp32, or tf32 in all other precisions. Tiles are large where there are enough of them: they read half as much. rows, cols: of
 * the largest shard. */
template <bool a_deep, bool b_deep, typename finish_type>
static inline void product_launch(const lp_cuda_run *run, const product_task &task, const finish_type &finish,
                                  int heads, int rows, int cols)
{
    auto launch = [&](auto shape) {
        typedef decltype(shape) tile;
        int ranges = (int)lp_blocks(cols, tile::cols);
        if (tile_tensor(run))
            packed_launch_precision<LP_PRECISION_TF32, a_deep, b_deep, tile, false>(run, task, finish, heads, rows,
                                                                                    ranges);
        else
            packed_launch_precision<LP_PRECISION_FP32, a_deep, b_deep, tile, false>(run, task, finish, heads, rows,
                                                                                    ranges);
    };
    int64_t tiles = (int64_t)lp_blocks(rows, product_large::rows) * lp_blocks(cols, product_large::cols);
    if (cols >= 96 && rows >= 96 && tiles * heads * task.chunks >= PRODUCT_BLOCKS)
        launch(product_large());
    else
        launch(product_small());
}

/* Blocks that run at once. Constant, so that results do not depend on the device. */
#ifdef LP_CUDA_EMULATED
enum { PACKED_BLOCKS = 4 };
#else
enum { PACKED_BLOCKS = 264 };
#endif

#endif
