/* cuda_product.h: the matrix product of floats, of every width:  C [rows x cols] = A [rows x depth] B [depth x cols].
 *
 * Grid: (column tiles, row tiles, heads * chunks). A block computes one tile, for one head and one chunk of the depth. It takes the depth
 * in slabs of 32, which are copied asynchronously: while one is multiplied, the next are under way. Copies are of single floats, so
 * widths and alignments are free.
 *
 * In tf32 factors are rounded when they are read from shared memory. In fp32 tensor cores multiply, too: each factor is a sum of two tf32
 * numbers (tile_mma_fp32), and the sums of a slab are added by ordinary additions, because tensor cores truncate theirs. Sums are always
 * fp32. Copies in bf16 (cuda_packed.h) are multiplied by warpgroups (cuda_product_wide.h); in bf16 operands without copies are
 * multiplied in tf32 here.
 *
 * The depth of an operand may be contiguous in memory (`deep`: A by rows, B transposed) or its rows of C may be (A transposed, as in
 * A^T B, or B by rows). In shared memory the depth always is. A stride of 4 modulo 32 floats avoids bank conflicts.
 */
#ifndef LP_CUDA_PRODUCT_H
#define LP_CUDA_PRODUCT_H

#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

/* A size that tests exceed with little data: of devices, and of the emulation. */
#ifdef LP_CUDA_EMULATED
#define LP_SIZE(device, emulation) (emulation)
#else
#define LP_SIZE(device, emulation) (device)
#endif

/* Tile of a block, and of each of its warps. A lane has warp_rows * warp_cols / 32 sums. */
template <int block_rows, int block_cols, int warp_rows, int warp_cols> struct product_shape {
    static constexpr int rows = block_rows, cols = block_cols, warps_across = block_cols / warp_cols;
    static constexpr int warps = block_rows / warp_rows * warps_across, threads = 32 * warps;
    static constexpr int down = warp_rows / 16, across = warp_cols / 8; /* 16 x 8 tiles of a warp */
    static constexpr int own_rows = warp_rows, own_cols = warp_cols;
};

/* The tile of floats, and the number of blocks that run on a multiprocessor. */
struct product_tile : product_shape<128, 64, 32, 64> {
    static constexpr int blocks = 2;
};

/* Depth of a slab; floats of shared memory from row to row; slabs in shared memory, of which all but one are under way. */
enum { PRODUCT_DEPTH = 32, PRODUCT_STRIDE = PRODUCT_DEPTH + 4, PRODUCT_BUFFERS = 3 };

/* The parts of the shared memory of a block. */
template <typename shape>
constexpr size_t product_bytes = sizeof(float) * PRODUCT_BUFFERS *(shape::rows + shape::cols) * PRODUCT_STRIDE;

/* An operand: rows (of A), or columns (of B), by depth. */
typedef struct product_operand {
    const void *data;     /* of the first head; float, or bf16 */
    int64_t stride, head; /* elements from row to row in memory, from head to head */
} product_operand;

static inline lp_cuda_rows product_fixed(int count)
{
    return {LP_ROWS_FIXED, count};
}

typedef struct product_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows, cols, depth; /* cols: a fixed number */
    int chunks;                     /* of the depth */
    product_operand a, b;
    int first = 0,
        most = INT32_MAX; /* of products of floats: of the depth, where the operands begin; and from there on */
} product_task;

/* The part of C that a block computes. */
typedef struct product_place {
    int row, col, head, chunk;
    int rows, cols;            /* of the whole product */
    int range = 0, ranges = 1; /* of the column tiles, where blocks divide them */
} product_place;

/* ---- loads --------------------------------------------------------------------------------------------------- */

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

/* Starts to copy a slab of `count` rows. from: the first row and depth; rows, depth: present from there on. A warp copies 32 depths of a
 * row, or 4 depths of 8 rows, so that it reads whole sectors and has no bank conflicts. */
template <bool deep, int count, int threads>
__device__ static inline void product_copy(float *to, const float *from, int stride, int rows, int depth)
{
    int lane = (int)threadIdx.x % 32;
#pragma unroll 8
    for (int i = (int)threadIdx.x / 32; i < count; i += threads / 32) {
        int row = deep ? i : i * 8 % count + lane % 8, k = deep ? lane : i * 8 / count * 4 + lane / 8;
        tile_cp_async<1>(to + row * PRODUCT_STRIDE + k, from + (deep ? row * stride + k : k * stride + row),
                         row < rows && k < depth);
    }
}

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

/* Adds the product of two slabs for the tile of this warp. */
template <int precision, typename shape>
__device__ static inline void product_multiply(product_sums<shape> &sums, const float *a, const float *b)
{
    constexpr bool fp32 = precision == LP_PRECISION_FP32;
    int warp = tile_lane_now().warp;
    tile_address from_a =
        tile_a_address(a + warp / shape::warps_across * shape::own_rows * PRODUCT_STRIDE, PRODUCT_STRIDE);
    tile_address from_b =
        tile_b_address(b + warp % shape::warps_across * shape::own_cols * PRODUCT_STRIDE, PRODUCT_STRIDE);
    product_sums<shape> part = {};
    product_sums<shape> &to = fp32 ? part : sums;
    auto load = [&](float(&four)[4], tile_address from, int row, int k) {
        tile_ldmatrix(four, from, row * PRODUCT_STRIDE + k);
#pragma unroll
        for (int i = 0; i < 4 && !fp32; i++)
            four[i] = tile_round_tf32(four[i]);
    };
    auto multiply = [&](float(&sum)[4], const float(&left)[4], float b0, float b1) {
        if constexpr (fp32)
            tile_mma_fp32(sum, left, b0, b1);
        else
            tile_mma_tf32(sum, left, b0, b1);
    };
#pragma unroll(fp32 ? 1 : PRODUCT_DEPTH / 8)
    for (int k = 0; k < PRODUCT_DEPTH; k += 8) {
        float left[shape::down][4], right[4];
#pragma unroll
        for (int m = 0; m < shape::down; m++)
            load(left[m], from_a, 16 * m, k);
#pragma unroll
        for (int j = 0; j < shape::across; j += 2) {
            load(right, from_b, 8 * j, k);
#pragma unroll
            for (int m = 0; m < shape::down; m++) {
                multiply(to.at[m][j], left[m], right[0], right[1]);
                multiply(to.at[m][j + 1], left[m], right[2], right[3]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < shape::down * shape::across * 4 && fp32; i++)
        (&sums.at[0][0][0])[i] += (&part.at[0][0][0])[i];
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* The chunk of the depth: whole slabs. */
template <int slab> __device__ static inline void product_chunk(int depth, int chunks, int chunk, int *begin, int *end)
{
    int slabs = (depth + slab - 1) / slab, each = slabs / chunks, longer = slabs % chunks;
    *begin = (chunk * each + min(chunk, longer)) * slab;
    *end = min(*begin + (each + (chunk < longer)) * slab, depth);
}

/* An operand from a row and a depth on. */
template <bool deep, typename type>
__device__ static inline const type *product_at(const product_operand &of, int head, int row, int k)
{
    return (const type *)of.data + head * of.head + (deep ? row * of.stride + k : k * of.stride + row);
}

/* Calls each(row, col, sums) for every row of the lane and every pair of neighbouring columns. */
template <typename shape, typename function>
__device__ static inline void product_all_pairs(product_sums<shape> &sums, const product_place &place,
                                                const function &each)
{
#pragma unroll
    for (int i = 0; i < 2 * shape::down; i++)
#pragma unroll
        for (int j = 0; j < shape::across; j++)
            each(place.row + product_row<shape>(i), place.col + product_col<shape>(j), sums.pair(i, j));
}

/* C = A B + bias + other. Chunk n is stored n * chunk_step floats further on. */
typedef struct product_store {
    float *to;                 /* NULL: nothing is stored */
    const float *bias, *other; /* bias: one for each column of all heads; other: like C, or C itself; may be NULL */
    int64_t stride, head;      /* floats from row to row, from head to head */
    int64_t chunk_step;

    /* Sums outside the product, which nothing stores, get what is added to the last row and column: loads under a condition would wait
     * for each other. */
    template <typename shape>
    __device__ void plus(product_sums<shape> &sums, const product_place &place, const float *from, int64_t step) const
    {
        product_all_pairs(sums, place, [&](int row, int col, float *sum) {
            const float *here = from + min(row, place.rows - 1) * step;
            sum[0] += here[min(col, place.cols - 1)];
            sum[1] += here[min(col + 1, place.cols - 1)];
        });
    }

    /* two: both columns of every pair exist, and are aligned. */
    template <bool two, typename shape>
    __device__ void store(product_sums<shape> &sums, const product_place &place) const
    {
        float *first = to + place.head * head + place.chunk * chunk_step;
        product_all_pairs(sums, place, [&](int row, int col, const float *sum) {
            if (row < place.rows && col < place.cols)
                tile_store_two<two>(first + row * stride + col, sum[0], sum[1], col + 1 < place.cols);
        });
    }

    /* All loads come before the first store, so that none waits for another. */
    template <typename shape> __device__ void run(const product_place &place, product_sums<shape> &sums) const
    {
        if (bias)
            plus(sums, place, bias + place.head * place.cols, 0);
        if (other)
            plus(sums, place, other + place.head * head, stride);
        if (to && (4 * (uint64_t)(stride | head) | (uintptr_t)to) % 8 == 0)
            store<true>(sums, place);
        else if (to)
            store<false>(sums, place);
    }
} product_store;

template <int precision, bool a_deep, bool b_deep>
__global__ void __launch_bounds__(product_tile::threads, product_tile::blocks)
    product_kernel(const __grid_constant__ product_task task, product_store store)
{
    typedef product_tile shape;
    constexpr int size_b = shape::cols * PRODUCT_STRIDE, size = size_b + shape::rows * PRODUCT_STRIDE;
    LP_SHARED(float, memory);
    lp_pdl_wait();
    lp_pdl_trigger();
    product_place place = {(int)blockIdx.y * shape::rows,      (int)blockIdx.x * shape::cols,
                           (int)blockIdx.z / task.chunks,      (int)blockIdx.z % task.chunks,
                           lp_rows_now(task.rows, task.shard), task.cols.fixed};
    if (place.row >= place.rows || place.col >= place.cols)
        return;
    int begin, end;
    int depth = min(lp_rows_now(task.depth, task.shard) - task.first, task.most);
    product_chunk<PRODUCT_DEPTH>(max(depth, 0), task.chunks, place.chunk, &begin, &end);
    auto copy = [&](int k, float *to) {
        if (k < end) {
            product_copy<b_deep, shape::cols, shape::threads>(
                to, product_at<b_deep, float>(task.b, place.head, place.col, k), (int)task.b.stride,
                place.cols - place.col, end - k);
            product_copy<a_deep, shape::rows, shape::threads>(
                to + size_b, product_at<a_deep, float>(task.a, place.head, place.row, k), (int)task.a.stride,
                place.rows - place.row, end - k);
        }
        product_copies_end();
    };
    product_sums<shape> sums = {};
    for (int i = 0; i + 1 < PRODUCT_BUFFERS; i++)
        copy(begin + i * PRODUCT_DEPTH, memory + i * size);
    float *now = memory, *before = memory + (PRODUCT_BUFFERS - 1) * size;
#pragma unroll 1
    for (int k = begin; k < end; k += PRODUCT_DEPTH) {
        product_copies_wait<PRODUCT_BUFFERS - 2>();
        __syncthreads();
        copy(k + (PRODUCT_BUFFERS - 1) * PRODUCT_DEPTH, before);
        product_multiply<precision, shape>(sums, now + size_b, now);
        before = now;
        now = now == memory + (PRODUCT_BUFFERS - 1) * size ? memory : now + size;
    }
    store.run(place, sums);
}

/* In fp32, or tf32 in all other precisions. rows, cols: of the largest shard. */
template <bool a_deep, bool b_deep>
static inline void product_launch(const lp_cuda_run *run, const product_task &task, const product_store &store,
                                  int heads, int rows, int cols)
{
    typedef product_tile shape;
    dim3 grid(lp_blocks(cols, shape::cols), lp_blocks(rows, shape::rows), (unsigned)(heads * task.chunks));
    auto product = tile_tensor(run) ? product_kernel<LP_PRECISION_TF32, a_deep, b_deep>
                                    : product_kernel<LP_PRECISION_FP32, a_deep, b_deep>;
    LP_LAUNCH_PDL(run, product, grid, shape::threads, product_bytes<shape>, task, store);
}

#endif
