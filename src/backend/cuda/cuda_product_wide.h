/* cuda_product_wide.h: products in bf16 by warpgroups, on devices of compute capability 9.0. Their tensor cores read both
 * operands from shared memory (wgmma).
 *
 * Operands lie in device memory as tensor cores read them from shared memory: in blocks of 64 x 64 numbers, 8,192 bytes each,
 * row by row (wide_at). A block has 64 lines of 128 bytes; vector v of line l, of 16 bytes, is at v ^ (l & 7). So one thread
 * starts a copy of whole blocks (cp.async.bulk), and an mbarrier tells when it is complete. A matrix serves in either role: its
 * lines may be the rows of C (`deep`: each has 64 depths) or the depth. Lines and columns up to whole blocks exist, and are
 * zeros where they belong to the depth.
 *
 * A warp has 16 rows of a tile and all columns. A slab is 64 deep.
 *
 * The emulation adds up the same numbers one by one.
 */
#ifndef LP_CUDA_PRODUCT_WIDE_H
#define LP_CUDA_PRODUCT_WIDE_H

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_product.h"
#include "backend/cuda/cuda_reduction_copy.h"

/* Rows and columns of a block, and the depth of a slab; bytes of a block. */
enum { WIDE_BLOCK = 64, WIDE_BYTES = 2 * WIDE_BLOCK * WIDE_BLOCK };

/* The number of blocks that run on a multiprocessor. */
template <int rows, int cols, int resident_blocks> struct wide_shape : product_shape<rows, cols, 16, cols> {
    static constexpr int blocks = resident_blocks;
};

/* Floats of a line, and of `count` lines. */
enum { WIDE_LINE = 32 };
__host__ __device__ constexpr int wide_size(int count)
{
    return count * WIDE_LINE;
}

/* Offset of a number in a matrix of `stride` columns, a multiple of WIDE_BLOCK. */
__device__ static inline int64_t wide_at(int64_t stride, int row, int col)
{
    int line = row % WIDE_BLOCK, vector = col % WIDE_BLOCK / 8 ^ (line & 7);
    return (row - line) * stride + (col - col % WIDE_BLOCK) * WIDE_BLOCK + line * WIDE_BLOCK + 8 * vector + col % 8;
}

/* Whole blocks of at most `most` rows or columns from `first` on, of `count`. */
__device__ static inline int wide_blocks(int first, int count, int most)
{
    return (min(count - first, most) + WIDE_BLOCK - 1) / WIDE_BLOCK;
}

/* By one thread: starts to copy the blocks of a slab, `count` of them from row `first` on. */
template <bool deep>
__device__ static inline void wide_copy(float *to, const product_operand &from, int first, int k, int count,
                                        reduction_barrier *barrier)
{
    const uint16_t *data = (const uint16_t *)from.data;
    if constexpr (deep)
        for (int i = 0; i < count; i++)
            reduction_copy_bulk(to + i * wide_size(WIDE_BLOCK),
                                (const float *)(data + (first + i * WIDE_BLOCK) * from.stride + k * WIDE_BLOCK),
                                WIDE_BYTES, barrier);
    else
        reduction_copy_bulk(to, (const float *)(data + k * from.stride + first * WIDE_BLOCK),
                            (uint32_t)count * WIDE_BYTES, barrier);
}

/* By all threads: starts to copy a slab of a matrix that lies row by row. A row of it has whole vectors, with zeros beyond the last
 * column. from: the first row and depth; rows, depth: present from there on. */
template <bool deep, int count, int threads>
__device__ static inline void wide_copy_rows(float *to, const uint16_t *from, int stride, int rows, int depth)
{
    int line = (int)threadIdx.x / 8, v = (int)threadIdx.x % 8;
    from += line * stride + 8 * v;
    to += WIDE_LINE * line + 4 * (v ^ (line & 7));
    static_assert(WIDE_BLOCK % (threads / 8) == 0 && threads / 8 % 8 == 0, "lines of a thread");
#pragma unroll
    for (int i = 0; i < count; i += threads / 8) {
        int block = i / WIDE_BLOCK * WIDE_BLOCK, row = deep ? line + i : 8 * v + block,
            k = deep ? 8 * v : line + i - block;
        tile_cp_async<4>(to + WIDE_LINE * i, (const float *)(from + (deep ? i * stride : (i - block) * stride + block)),
                         row < rows && k < depth);
    }
}

/* ---- tensor cores -------------------------------------------------------------------------------------------- */

#ifdef __CUDACC__

/* Other devices do not launch what uses it (lp_cuda_bf16_supported). */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define WIDE_ASM(...) asm volatile(__VA_ARGS__)
#else
#define WIDE_ASM(...) (void)0
#endif

/* d [64 x 2 * count] += a [64 x 16] b [16 x 2 * count], in the fragment layout of mma by warps of 16 rows. */
#define WIDE_F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WIDE_F32(i)                                                                                                 \
    WIDE_F4(i), WIDE_F4(i + 4), WIDE_F4(i + 8), WIDE_F4(i + 12), WIDE_F4(i + 16), WIDE_F4(i + 20), WIDE_F4(i + 24), \
        WIDE_F4(i + 28)
/* Numbers of the operands: tens, and those up to a count. */
#define WIDE_TEN(t) "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7, %" t "8, %" t "9, "
#define WIDE_N30 WIDE_TEN("") WIDE_TEN("1") WIDE_TEN("2")
#define WIDE_N60 WIDE_N30 WIDE_TEN("3") WIDE_TEN("4") WIDE_TEN("5")
#define WIDE_N90 WIDE_N60 WIDE_TEN("6") WIDE_TEN("7") WIDE_TEN("8")
#define WIDE_N32 WIDE_N30 "%30, %31"
#define WIDE_N64 WIDE_N60 "%60, %61, %62, %63"
#define WIDE_N96 WIDE_N90 "%90, %91, %92, %93, %94, %95"
#define WIDE_N128 WIDE_N90 WIDE_TEN("9") WIDE_TEN("10") WIDE_TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127"
#define WIDE_MMA(count, cols, numbers, a_number, b_number, a_order, b_order, ...)                                    \
    template <bool a_deep, bool b_deep>                                                                              \
    __device__ static inline void wide_mma(float(&d)[count], uint64_t a, uint64_t b)                                 \
    {                                                                                                                \
        (void)d, (void)a, (void)b;                                                                                   \
        WIDE_ASM("wgmma.mma_async.sync.aligned.m64n" cols "k16.f32.bf16.bf16 {" numbers "}, " a_number ", " b_number \
                 ", 1, 1, 1, " a_order ", " b_order ";"                                                              \
                 : __VA_ARGS__                                                                                       \
                 : "l"(a), "l"(b), "n"(!a_deep), "n"(!b_deep));                                                      \
    }
WIDE_MMA(4, "8", "%0, %1, %2, %3", "%4", "%5", "%6", "%7", WIDE_F4(0))
WIDE_MMA(32, "64", WIDE_N32, "%32", "%33", "%34", "%35", WIDE_F32(0))
WIDE_MMA(64, "128", WIDE_N64, "%64", "%65", "%66", "%67", WIDE_F32(0), WIDE_F32(32))
WIDE_MMA(96, "192", WIDE_N96, "%96", "%97", "%98", "%99", WIDE_F32(0), WIDE_F32(32), WIDE_F32(64))
WIDE_MMA(128, "256", WIDE_N128, "%128", "%129", "%130", "%131", WIDE_F32(0), WIDE_F32(32), WIDE_F32(64), WIDE_F32(96))

/* Descriptor of an operand: 8 lines of 128 bytes are 1,024 bytes, and blocks of 64 rows of an operand that is not deep are
 * 8,192 bytes apart. */
__device__ static inline uint64_t wide_operand(const float *shared, bool deep)
{
    uint64_t at = (uint64_t)__cvta_generic_to_shared(shared);
    return (at & 0x3FFFF) >> 4 | (uint64_t)(deep ? 1 : 8192 >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

/* Before the products of a slab, and after them. */
__device__ static inline void wide_begin(void)
{
    WIDE_ASM("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ static inline void wide_end(void)
{
    WIDE_ASM("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* sums += a b for a slab, asynchronously. a: of the warpgroup. */
template <bool a_deep, bool b_deep, int count>
__device__ static inline void wide_multiply(float (&sums)[count], const float *a, const float *b)
{
#pragma unroll
    for (int k = 0; k < WIDE_BLOCK; k += 16)
        wide_mma<a_deep, b_deep>(sums, wide_operand(a + (a_deep ? k / 2 : k * WIDE_LINE), a_deep),
                                 wide_operand(b + (b_deep ? k / 2 : k * WIDE_LINE), b_deep));
}

/* The same with a B of 8 columns, of which the first are the weights; the others are whatever follows: a block of 8 x 8 numbers
 * begins every 16 bytes. */
template <bool a_deep>
__device__ static inline void wide_weigh(float (&sums)[4], const float *a, const uint16_t *weights)
{
    uint64_t at = (uint64_t)__cvta_generic_to_shared(weights);
#pragma unroll
    for (int k = 0; k < WIDE_BLOCK; k += 16)
        wide_mma<a_deep, true>(sums, wide_operand(a + (a_deep ? k / 2 : k * WIDE_LINE), a_deep),
                               (at + 2 * k & 0x3FFFF) >> 4 | (uint64_t)1 << 16 | (uint64_t)1 << 32);
}

/* Until the products of at most `later` slabs are unfinished. */
template <int later> __device__ static inline void wide_wait(void)
{
    WIDE_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(later) : "memory");
}

/* What the thread has copied becomes visible to wgmma. */
__device__ static inline void wide_fence(void)
{
    WIDE_ASM("fence.proxy.async;" ::: "memory");
}

#else
#include <emulate_wide.h>
#endif

/* The product of `slabs` slabs in a ring of `stages`, by all threads. copy(stage) starts to copy the next slab, if there is one;
 * multiply(stage) starts to multiply the next one. later: products that are unfinished when another starts; where there is a stage
 * for each slab, all are. */
template <int stages, int later, typename copy_function, typename multiply_function>
__device__ static inline void wide_slabs(int slabs, const copy_function &copy, const multiply_function &multiply)
{
    int stage = 0, next_stage = 0;
    /* One loop, also for the first copies: instructions that run once are loaded from memory as often as they run. */
#pragma unroll 1
    for (int i = -stages; i < slabs; i++) {
        if (i >= stages)
            product_copies_wait<stages - 2 - later>();
        else if (i >= 0)
            product_copies_wait<stages - 1>();
        if (i >= 0) {
            wide_fence();
            __syncthreads();
        }
        if (i < 0 || i > later) { /* to the stage of a slab whose product is finished */
            copy(next_stage);
            next_stage = next_stage + 1 == stages ? 0 : next_stage + 1;
        }
        product_copies_end();
        if (i < 0)
            continue;
        wide_begin();
        multiply(stage);
        wide_end();
        if (slabs > stages)
            wide_wait<later>();
        stage = stage + 1 == stages ? 0 : stage + 1;
    }
    wide_wait<0>();
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Shared memory: barriers; slabs of A that stay there for all column tiles of their rows; a ring of slabs, and the next that a block
 * computes. */
typedef struct wide_memory {
    int resident, stages;
    int stage = 0;
    uint32_t phase = 0;
} wide_memory;

/* The most stages; bytes of the barriers, behind which there are weights by stage. */
enum { WIDE_STAGES = 6, WIDE_BARRIERS = 1024 };

/* Floats of a stage. */
template <typename shape> __host__ __device__ constexpr int wide_stage(bool resident)
{
    return wide_size(shape::cols) + (resident ? 0 : wide_size(shape::rows));
}

/* Once for a block. */
__device__ static inline void wide_start(const wide_memory &use)
{
    LP_SHARED(reduction_barrier, barriers);
    for (int i = 0; threadIdx.x == 0 && i < use.stages; i++)
        reduction_barrier_init(barriers + i, 1);
}

/* Computes the column tiles tile .. last - 1 of the rows and the chunk of `place`. finish: start(place, sums) is called before a tile, which
 * may set the sums, and run(place, sums) after it. weighs: finish.weighed += A finish.weights. */
template <bool a_deep, bool b_deep, bool weighs, typename shape, typename finish_type>
__device__ static inline void wide_tiles(const product_task &task, product_place place, int tile, int last,
                                         wide_memory &use, finish_type &finish)
{
    constexpr int size_a = wide_size(shape::rows), size_b = wide_size(shape::cols);
    LP_SHARED(float, shared);
    reduction_barrier *barriers = (reduction_barrier *)shared;
    /* Lines repeat after 1,024 bytes. */
    float *memory = shared + (WIDE_BARRIERS - ((uintptr_t)shared & (WIDE_BARRIERS - 1))) / 4;
    float *ring = memory + use.resident * size_a;
    uint16_t *weights_of = (uint16_t *)(shared + 32);
    int size = wide_stage<shape>(use.resident), first = tile, begin, end;
    int left_blocks = wide_blocks(place.row, place.rows, shape::rows);
    product_chunk<WIDE_BLOCK>(lp_rows_now(task.depth, task.shard), task.chunks, place.chunk, &begin, &end);

    /* By one thread: copies the slabs of all tiles in their order. */
    int next_tile = tile, next_k = begin, next_stage = use.stage;
    auto copy_next = [&]() {
        if (next_tile >= last || next_k >= end)
            return;
        reduction_barrier *barrier = barriers + next_stage;
        float *to = ring + next_stage * size;
        int col = next_tile * shape::cols, right = wide_blocks(col, place.cols, shape::cols);
        int left = !use.resident || next_tile == first ? left_blocks : 0;
        reduction_barrier_expect(barrier, (uint32_t)(left + right) * WIDE_BYTES + (weighs ? 2 * WIDE_BLOCK : 0));
        wide_copy<b_deep>(to, task.b, col, next_k, right, barrier);
        if (left)
            wide_copy<a_deep>(use.resident ? memory + next_k / WIDE_BLOCK * size_a : to + size_b, task.a, place.row,
                              next_k, left, barrier);
        if constexpr (weighs)
            reduction_copy_bulk((float *)(weights_of + next_stage * WIDE_BLOCK),
                                (const float *)(finish.weights + next_k), 2 * WIDE_BLOCK, barrier);
        next_k += WIDE_BLOCK;
        if (next_k >= end) {
            next_k = begin;
            next_tile++;
        }
        next_stage = next_stage + 1 == use.stages ? 0 : next_stage + 1;
    };
    reduction_barriers_fence(); /* shared memory was used for something else before */
    __syncthreads();
    for (int i = 1; threadIdx.x == 0 && i < use.stages; i++)
        copy_next();
#pragma unroll 1
    for (; tile < last; tile++) {
        product_sums<shape> sums = {};
        const float *a = memory + (int)threadIdx.x / 128 * wide_size(WIDE_BLOCK);
        place.col = tile * shape::cols;
        finish.start(place, sums);
#pragma unroll 1
        for (int k = begin; k < end; k += WIDE_BLOCK, a += size_a) {
            const float *right = ring + use.stage * size;
            const float *left = use.resident ? a : right + size_b + (int)threadIdx.x / 128 * wide_size(WIDE_BLOCK);
            reduction_wait(barriers + use.stage, use.phase);
            wide_begin();
            wide_multiply<a_deep, b_deep>((float(&)[shape::cols / 2]) sums, left, right);
            if constexpr (weighs)
                wide_weigh<a_deep>(finish.weighed, left, weights_of + use.stage * WIDE_BLOCK);
            wide_end();
            wide_wait<1>();
            __syncthreads();
            if (threadIdx.x == 0)
                copy_next(); /* to the stage of the slab before, whose product is finished */
            use.stage++;
            if (use.stage == use.stages) {
                use.stage = 0;
                use.phase ^= 1;
            }
        }
        wide_wait<0>();
        finish.run(place, sums);
    }
    __syncthreads();
}

/* As many stages as fit beside `resident` slabs of A; *bytes: of the shared memory of a block. */
template <typename shape> static inline wide_memory wide_memory_of(int resident, size_t *bytes)
{
    size_t stage = sizeof(float) * (size_t)wide_stage<shape>(resident);
    size_t fixed = WIDE_BARRIERS + sizeof(float) * (size_t)(resident * wide_size(shape::rows));
    size_t most = shape::blocks == 1 ? (size_t)TILE_MAX_SHARED : (size_t)TILE_HALF_SHARED,
           stages = (most - fixed) / stage;
    stages = stages > WIDE_STAGES ? (size_t)WIDE_STAGES : stages;
    *bytes = fixed + stages * stage;
    return {resident, (int)stages};
}

/* Blocks that run at once: two on each of 132 multiprocessors. Constant, so that results do not depend on the device. */
enum { PACKED_BLOCKS = LP_SIZE(264, 4) };

#endif
