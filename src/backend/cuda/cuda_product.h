/* cuda_product.h: the matrix product of every width and precision:  C [rows x cols] = A [rows x depth] B [depth x cols].
 *
 * Grid: (column tiles, row tiles, heads * chunks). A block computes one tile of C for one head and one chunk of the
 * depth. It takes the depth in slabs of 32, which are copied asynchronously: while a slab is multiplied, the next two are
 * under way. Each thread rounds what it copied itself, in place, to tf32 for tensor cores; fp32 stays exact and is
 * multiplied by ordinary multiply-adds. Sums are always fp32. cuda_product_packed.h multiplies operands that are rounded
 * in memory already: in bf16 all that have copies (cuda_packed.h), the others are multiplied in tf32.
 *
 * The depth of an operand may be contiguous in memory (`deep`: A by rows, B transposed) or its rows of C may be (A
 * transposed, as in A^T B, or B by rows). Shared memory has the same order; ldmatrix transposes bf16 where needed, and
 * lanes read tf32 and fp32 in either order. Strides of shared memory avoid bank conflicts: 4 modulo 32 floats for
 * ldmatrix, 8 where lanes read tf32 and fp32 along the other side.
 *
 * What is done with a tile is a type `finish` (a kernel argument): `run` gets the sums of each lane, two neighbouring
 * columns at a time (product_pairs), and shared memory to use after a barrier; `loaded` sees every slab that the thread
 * has loaded.
 */
#ifndef LP_CUDA_PRODUCT_H
#define LP_CUDA_PRODUCT_H

#include <type_traits>

#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

enum { PRODUCT_SLAB = 32 };

/* Tile of a block, and of each of its warps. A lane has warp_rows * warp_cols / 32 sums. */
template <int block_rows, int block_cols, int warp_rows, int warp_cols> struct product_shape {
    static constexpr int rows = block_rows, cols = block_cols, warps_across = block_cols / warp_cols;
    static constexpr int warps = block_rows / warp_rows * warps_across, threads = 32 * warps;
    static constexpr int down = warp_rows / 16, across = warp_cols / 8; /* 16 x 8 tiles of a warp */
    static constexpr int own_rows = warp_rows, own_cols = warp_cols;
};

typedef product_shape<128, 128, 64, 32> product_large;
typedef product_shape<64, 64, 32, 32> product_small;

/* An operand: rows (of A), or columns (of B), by depth. */
typedef struct product_operand {
    const void *data;     /* of the first head; float, or bf16 where it is packed */
    int64_t stride, head; /* elements from row to row in memory, from head to head */
    int width;            /* elements of a load: 4, 2 or 1 */
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
    static constexpr bool deep = slab_deep, bf16 = precision == LP_PRECISION_BF16;
    static constexpr int per_float = bf16 ? 2 : 1; /* numbers that are copied as one */
    /* A line is contiguous in memory. */
    static constexpr int lines = deep ? count : depth, line = (deep ? depth : count) / per_float;
    static constexpr int stride = line + (deep || bf16 ? 4 : 8), size = lines * stride; /* in floats */

    /* Offset in floats of number i of a line. */
    __device__ static constexpr int at(int i)
    {
        return i / per_float;
    }
    __device__ static constexpr int offset(int line_index, int i)
    {
        return line_index * stride + at(i);
    }
};

/* A thread copies the same four columns of several lines, in copies of `width` floats. What is not present is not read. */
template <typename layout, int threads, int width, typename type>
__device__ static inline void product_copy_columns(float *to, const type *from, int64_t from_stride, int rows,
                                                   int depth)
{
    constexpr int vectors = layout::line / 4, step = threads / vectors;
    static_assert(threads % vectors == 0 && layout::lines % step == 0, "whole columns");
    int line = (int)threadIdx.x / vectors, at = 4 * ((int)threadIdx.x % vectors);
    int floats = ((layout::deep ? depth : rows) + layout::per_float - 1) / layout::per_float - at;
    int present = (layout::deep ? rows : depth) - line;
    const type *source = from + line * from_stride + at * layout::per_float;
    to += line * layout::stride + at;
#pragma unroll
    for (int i = 0; i < layout::lines; i += step, source += step * from_stride)
#pragma unroll
        for (int n = 0; n < 4; n += width) {
            int some = i < present ? min(max(floats - n, 0), width) : 0;
            tile_cp_async_part<width>(to + i * layout::stride + n, (const float *)(const void *)source + n, some);
        }
}

/* Starts to copy a slab. from: the first row and depth; rows, depth: present from there on. */
template <typename layout, int threads, typename type>
__device__ static inline void product_copy(float *to, const type *from, int64_t from_stride, int width, int rows,
                                           int depth)
{
    if (width == 4)
        product_copy_columns<layout, threads, 4>(to, from, from_stride, rows, depth);
    else if (width == 2)
        product_copy_columns<layout, threads, 2>(to, from, from_stride, rows, depth);
    else
        product_copy_columns<layout, threads, 1>(to, from, from_stride, rows, depth);
}

/* A slab of floats: what a thread copied of it, to be rounded. */
template <int precision, bool deep, int count, int threads>
struct product_slab : product_layout<precision, deep, count, PRODUCT_SLAB> {
    typedef product_layout<precision, deep, count, PRODUCT_SLAB> layout;
    static constexpr int per_line = layout::line / 4, vectors = layout::lines * per_line / threads;

    float4 held[vectors];

    __device__ void load(const float *slab)
    {
#pragma unroll
        for (int i = 0; i < vectors; i++) {
            int v = (int)threadIdx.x + i * threads;
            held[i] = *(const float4 *)(slab + v / per_line * layout::stride + 4 * (v % per_line));
        }
    }

    __device__ void store(float *slab) const
    {
        if constexpr (precision == LP_PRECISION_TF32)
#pragma unroll
            for (int i = 0; i < vectors; i++) {
                int v = (int)threadIdx.x + i * threads;
                float4 x = held[i];
                *(float4 *)(slab + v / per_line * layout::stride + 4 * (v % per_line)) =
                    make_float4(tile_round_tf32(x.x), tile_round_tf32(x.y), tile_round_tf32(x.z), tile_round_tf32(x.w));
            }
    }
};

/* ---- products of slabs --------------------------------------------------------------------------------------- */

/* Row of a lane's i-th sum from the warp's first on. Of a transposed A in fp32 they are neighbours, to be read as vectors. */
template <int precision, bool a_deep, typename shape> __device__ static inline int product_row(int i)
{
    tile_lane me = tile_lane_now();
    if (precision == LP_PRECISION_FP32 && !a_deep)
        return 2 * shape::down * me.group + i;
    return 8 * i + me.group;
}

/* The sums of a lane for row i and tile j of columns: two neighbours. */
template <typename shape> struct product_sums {
    float at[shape::down][shape::across][4];
    __device__ float *pair(int i, int j)
    {
        return &at[i / 2][j][i % 2 * 2];
    }
};

/* On tensor cores: 8 floats of the slab at a time, which are 16 numbers in bf16; `present` numbers in all. */
template <bool a_deep, bool b_deep, typename shape, typename slab_a, typename slab_b, int present>
__device__ static inline void product_slab_tensor(product_sums<shape> &sums, const float *a, int row, const float *b,
                                                  int col)
{
    constexpr bool bf16 = slab_a::bf16;
    constexpr int depth = bf16 ? 16 : 8;
    tile_lane me = tile_lane_now();
    /* Addresses for ldmatrix: of matrix lane / 8, row lane % 8. */
    int which = me.lane >> 3, line = me.lane & 7;
    int a_line = a_deep ? row + (me.lane & 15) : 8 * (which >> 1) + line;
    int a_at = a_deep ? (bf16 ? slab_a::at(8 * (which >> 1)) : 4 * (which >> 1)) : slab_a::at(row + 8 * (which & 1));
    int b_line = b_deep ? col + line + 8 * (which >> 1) : 8 * (which & 1) + line;
    int b_at = b_deep ? (bf16 ? slab_b::at(8 * (which & 1)) : 4 * (which & 1)) : slab_b::at(col + 8 * (which >> 1));
    tile_address from_a = tile_address_of(a + a_line * slab_a::stride + a_at);
    tile_address from_b = tile_address_of(b + b_line * slab_b::stride + b_at);
#pragma unroll
    for (int k = 0; k < present; k += depth) {
        float left[shape::down][4], right[4];
#pragma unroll
        for (int m = 0; m < shape::down; m++) {
            if constexpr (a_deep) {
                tile_ldmatrix(left[m], from_a, 16 * m * slab_a::stride + slab_a::at(k));
            } else if constexpr (bf16) {
                tile_ldmatrix_trans(left[m], from_a, k * slab_a::stride + slab_a::at(16 * m));
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
                tile_ldmatrix(right, from_b, 8 * j * slab_b::stride + slab_b::at(k));
            } else if constexpr (bf16) {
                tile_ldmatrix_trans(right, from_b, k * slab_b::stride + slab_b::at(8 * j));
            } else {
                const float *here = b + (k + me.member) * slab_b::stride + col + 8 * j + me.group;
                right[0] = here[0];
                right[1] = here[4 * slab_b::stride];
                right[2] = here[8];
                right[3] = here[4 * slab_b::stride + 8];
            }
#pragma unroll
            for (int m = 0; m < shape::down; m++) {
                tile_mma<bf16>(sums.at[m][j], left[m], right[0], right[1]);
                tile_mma<bf16>(sums.at[m][j + 1], left[m], right[2], right[3]);
            }
        }
    }
}

/* fp32: two terms of the depth at a time. */
template <bool a_deep, bool b_deep, typename shape, typename slab_a, typename slab_b>
__device__ static inline void product_slab_float(product_sums<shape> &sums, const float *a, int row, const float *b,
                                                 int col)
{
    constexpr int rows = 2 * shape::down, cols = 2 * shape::across;
    tile_lane me = tile_lane_now();
    const float *left = a_deep ? a + (row + me.group) * slab_a::stride : a + row + rows * me.group;
    const float *right = b_deep ? b + (col + 2 * me.member) * slab_b::stride : b + col + 2 * me.member;
#pragma unroll 4
    for (int k = 0; k < slab_a::depth; k += 2) {
        float x[rows][2], y[cols][2];
#pragma unroll
        for (int i = 0; a_deep && i < rows; i++) {
            float2 two = *(const float2 *)(left + 8 * i * slab_a::stride + k);
            x[i][0] = two.x;
            x[i][1] = two.y;
        }
#pragma unroll
        for (int i = 0; !a_deep && i < rows; i += 4)
#pragma unroll
            for (int n = 0; n < 2; n++) {
                float4 four = *(const float4 *)(left + (k + n) * slab_a::stride + i);
                x[i][n] = four.x;
                x[i + 1][n] = four.y;
                x[i + 2][n] = four.z;
                x[i + 3][n] = four.w;
            }
#pragma unroll
        for (int j = 0; j < cols; j += 2)
#pragma unroll
            for (int n = 0; n < 2; n++) {
                const float *here =
                    b_deep ? right + (4 * j + n) * slab_b::stride + k : right + (k + n) * slab_b::stride + 4 * j;
                float2 two = *(const float2 *)here;
                y[b_deep ? j + n : j][b_deep ? 0 : n] = two.x;
                y[b_deep ? j + n : j + 1][b_deep ? 1 : n] = two.y;
            }
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int i = 0; i < rows; i++)
#pragma unroll
                for (int j = 0; j < cols; j++) {
                    float *sum = &sums.at[i / 2][j / 2][i % 2 * 2 + j % 2];
                    *sum = fmaf(x[i][n], y[j][n], *sum);
                }
    }
}

/* Multiplies a slab of a block for the tile of this warp, or the first half of it if not more is present. */
template <bool a_deep, bool b_deep, typename shape, typename slab_a, typename slab_b>
__device__ static inline void product_multiply(product_sums<shape> &sums, const float *a, const float *b, int present)
{
    int warp = tile_lane_now().warp;
    int row = warp / shape::warps_across * shape::own_rows, col = warp % shape::warps_across * shape::own_cols;
    if constexpr (slab_a::precision == LP_PRECISION_FP32)
        product_slab_float<a_deep, b_deep, shape, slab_a, slab_b>(sums, a, row, b, col);
    else if (present > slab_a::depth / 2)
        product_slab_tensor<a_deep, b_deep, shape, slab_a, slab_b, slab_a::depth>(sums, a, row, b, col);
    else
        product_slab_tensor<a_deep, b_deep, shape, slab_a, slab_b, slab_a::depth / 2>(sums, a, row, b, col);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Calls each(row, col, sums) for every row of the lane and every pair of neighbouring columns. */
template <int precision, bool a_deep, typename shape, typename function>
__device__ static inline void product_all_pairs(product_sums<shape> &sums, const product_place &place,
                                                const function &each)
{
    tile_lane me = tile_lane_now();
    int row = place.row + me.warp / shape::warps_across * shape::own_rows;
    int col = place.col + me.warp % shape::warps_across * shape::own_cols + 2 * me.member;
#pragma unroll
    for (int i = 0; i < 2 * shape::down; i++) {
        int r = row + product_row<precision, a_deep, shape>(i);
#pragma unroll
        for (int j = 0; j < shape::across; j++)
            each(r, col + 8 * j, sums.pair(i, j));
    }
}

/* The same for pairs that begin inside the product; the second column may be outside. */
template <int precision, bool a_deep, typename shape, typename function>
__device__ static inline void product_pairs(product_sums<shape> &sums, const product_place &place, const function &each)
{
    product_all_pairs<precision, a_deep>(sums, place, [&](int row, int col, float *sum) {
        if (row < place.rows && col < place.cols)
            each(row, col, sum);
    });
}

/* The chunk of the depth: whole slabs. */
template <int slab = PRODUCT_SLAB>
__device__ static inline void product_chunk(int depth, int chunks, int chunk, int *begin, int *end)
{
    int slabs = (depth + slab - 1) / slab, each = slabs / chunks, longer = slabs % chunks;
    *begin = (chunk * each + min(chunk, longer)) * slab;
    *end = min(*begin + (each + (chunk < longer)) * slab, depth);
}

template <int precision, bool a_deep, bool b_deep, typename shape> struct product_slabs {
    typedef product_slab<precision, a_deep, shape::rows, shape::threads> a;
    typedef product_slab<precision, b_deep, shape::cols, shape::threads> b;
    static constexpr int size = a::size + b::size; /* of a buffer, in floats */
    static constexpr int buffers = 3;
    static constexpr size_t bytes = (size_t)(buffers * size) * sizeof(float);
};

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

template <bool a_deep, bool b_deep, typename slabs, typename shape, typename finish_type>
__device__ static inline void product_sum(const product_task &task, const product_place &place,
                                          const product_sides<float> &sides, product_sums<shape> &sums, float *memory,
                                          finish_type &finish)
{
    auto copy = [&](int k, int slot) {
        float *to = memory + slot * slabs::size;
        if (k < sides.end) {
            product_copy<typename slabs::a::layout, shape::threads>(to, sides.a + k * sides.a_step, task.a.stride,
                                                                    task.a.width, sides.rows, sides.end - k);
            product_copy<typename slabs::b::layout, shape::threads>(to + slabs::a::size, sides.b + k * sides.b_step,
                                                                    task.b.stride, task.b.width, sides.cols,
                                                                    sides.end - k);
        }
        product_copies_end();
    };
    copy(sides.begin, 0);
    copy(sides.begin + PRODUCT_SLAB, 1);
    int slot = 0;
#pragma unroll 1
    for (int k = sides.begin; k < sides.end; k += PRODUCT_SLAB) {
        float *a = memory + slot * slabs::size, *b = a + slabs::a::size;
        product_copies_wait<1>();
        {
            typename slabs::a left;
            typename slabs::b right;
            left.load(a);
            right.load(b);
            finish.loaded(place, left.held, right.held);
            left.store(a);
            right.store(b);
        }
        __syncthreads();
        copy(k + 2 * PRODUCT_SLAB, slot == 0 ? 2 : slot - 1);
        product_multiply<a_deep, b_deep, shape, typename slabs::a, typename slabs::b>(sums, a, b, PRODUCT_SLAB);
        slot = slot == 2 ? 0 : slot + 1;
    }
    __syncthreads();
}

template <int precision, bool a_deep, bool b_deep, typename shape, typename finish_type>
__global__ void __launch_bounds__(shape::threads, (precision == LP_PRECISION_FP32 ? 256 : 512) / shape::threads)
    product_kernel(product_task task, finish_type finish)
{
    LP_SHARED(float, memory);
    product_place place = {(int)blockIdx.y * shape::rows,        (int)blockIdx.x * shape::cols,
                           (int)blockIdx.z / task.chunks,        (int)blockIdx.z % task.chunks,
                           product_count(task.rows, task.shard), product_count(task.cols, task.shard)};
    if (place.row >= place.rows || place.col >= place.cols)
        return;
    product_sums<shape> sums = {};
    product_sum<a_deep, b_deep, product_slabs<precision, a_deep, b_deep, shape>>(
        task, place, product_sides_of<a_deep, b_deep, PRODUCT_SLAB, float>(task, place), sums, memory, finish);
    finish.template run<precision, a_deep, shape>(task, place, sums, memory);
}

/* Launches the product with the tile `shape`. rows, cols: of the largest shard. */
template <int precision, bool a_deep, bool b_deep, typename shape, typename finish_type>
static inline void product_launch_shape(const lp_cuda_run *run, const product_task &task, const finish_type &finish,
                                        int heads, int rows, int cols)
{
    dim3 grid(lp_blocks(cols, shape::cols), lp_blocks(rows, shape::rows), (unsigned)(heads * task.chunks));
    LP_LAUNCH(run, (product_kernel<precision, a_deep, b_deep, shape, finish_type>), grid, shape::threads,
              (product_slabs<precision, a_deep, b_deep, shape>::bytes), task, finish);
}

/* Blocks of large tiles that fill the device: one for each of 132 multiprocessors. Constant, so that results do not depend on it. The
 * emulation uses large tiles and several chunks for fewer, so that tests reach them. */
#ifdef LP_CUDA_EMULATED
enum { PRODUCT_BLOCKS = 4 };
#else
enum { PRODUCT_BLOCKS = 132 };
#endif

/* Whether large tiles are used: they read half as much, but there must be enough of them. */
static inline bool product_is_large(int rows, int cols, int batch)
{
    return cols >= 96 && rows >= 96 &&
           (int64_t)lp_blocks(rows, product_large::rows) * lp_blocks(cols, product_large::cols) * batch >=
               PRODUCT_BLOCKS;
}

template <int precision, bool a_deep, bool b_deep, typename finish_type>
static inline void product_launch_precision(const lp_cuda_run *run, const product_task &task, const finish_type &finish,
                                            int heads, int rows, int cols)
{
    if (product_is_large(rows, cols, heads * task.chunks))
        product_launch_shape<precision, a_deep, b_deep, product_large>(run, task, finish, heads, rows, cols);
    else
        product_launch_shape<precision, a_deep, b_deep, product_small>(run, task, finish, heads, rows, cols);
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

/* In fp32, or tf32 in all other precisions. */
template <bool a_deep, bool b_deep, typename finish_type>
static inline void product_launch(const lp_cuda_run *run, const product_task &task, const finish_type &finish,
                                  int heads, int rows, int cols)
{
    if (tile_tensor(run))
        product_launch_precision<LP_PRECISION_TF32, a_deep, b_deep>(run, task, finish, heads, rows, cols);
    else
        product_launch_precision<LP_PRECISION_FP32, a_deep, b_deep>(run, task, finish, heads, rows, cols);
}

/* What a finish does if it does not say otherwise. */
struct product_finish {
    static constexpr bool has_terms = false; /* of columns, which cuda_product_wide.h copies to `tile_terms` */
    static constexpr int staging = 0;        /* floats of shared memory that it needs beside the slabs */

    template <int of_a, int of_b>
    __device__ void loaded(const product_place &, const float4 (&)[of_a], const float4 (&)[of_b])
    {
    }

    /* Packed operands: the begin of a tile, a slab of A and B, and the end of the block's tiles. */
    template <int precision, bool a_deep, typename shape>
    __device__ void start(const product_place &, product_sums<shape> &) const
    {
    }
    template <typename shape, typename slab_a, typename slab_b>
    __device__ void copied(const product_place &, const float *, const float *)
    {
    }
    template <int precision, bool a_deep, typename shape> __device__ void done(const product_place &, float *)
    {
    }
};

/* ---- storing the product ------------------------------------------------------------------------------------- */

/* C = A B + bias + add, or C += it. Chunk n is stored n * chunk_step floats further on. */
typedef struct product_store : product_finish {
    float *to;               /* NULL: nothing is stored */
    const float *bias, *add; /* bias: one for each column of all heads; add: like C; may be NULL */
    int64_t stride, head;    /* floats from row to row, from head to head */
    int64_t chunk_step;
    int accumulate;
    int pairs; /* columns are even, and pointers aligned to two floats */

    /* two: both columns of every pair exist. Sums outside the product, which nothing stores, get what is added to the
     * last row and column: loads under a condition would wait for each other. */
    template <bool two, int precision, bool a_deep, typename shape>
    __device__ void plus(product_sums<shape> &sums, const product_place &place, const float *from, int64_t step) const
    {
        product_all_pairs<precision, a_deep>(sums, place, [&](int row, int col, float *sum) {
            const float *here = from + min(row, place.rows - 1) * step;
            if constexpr (two) {
                float2 both = *(const float2 *)(here + min(col, place.cols - 2));
                sum[0] += both.x;
                sum[1] += both.y;
            } else {
                sum[0] += here[min(col, place.cols - 1)];
                sum[1] += here[min(col + 1, place.cols - 1)];
            }
        });
    }

    /* All loads come before the first store, so that none waits for another. */
    template <bool two, int precision, bool a_deep, typename shape>
    __device__ void finish(const product_place &place, product_sums<shape> &sums) const
    {
        float *first = to + place.head * head + place.chunk * chunk_step;
        if (bias)
            plus<two, precision, a_deep>(sums, place, bias + place.head * place.cols, 0);
        if (add)
            plus<two, precision, a_deep>(sums, place, add + place.head * head, stride);
        if (accumulate)
            plus<two, precision, a_deep>(sums, place, first, stride);
        product_pairs<precision, a_deep>(sums, place, [&](int row, int col, const float *sum) {
            tile_store_two<two>(first + row * stride + col, sum[0], sum[1], col + 1 < place.cols);
        });
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &sums, float *) const
    {
        if (to && pairs)
            finish<true, precision, a_deep>(place, sums);
        else if (to)
            finish<false, precision, a_deep>(place, sums);
    }
} product_store;

#endif
