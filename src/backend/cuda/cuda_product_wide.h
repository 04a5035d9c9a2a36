/* cuda_product_wide.h: products of packed operands (cuda_product_packed.h) in bf16 by warpgroups, on devices of compute
 * capability 9.0. Its tensor cores read both operands from shared memory (wgmma): a product reads less of it, and is up to
 * twice as fast.
 *
 * Grid and order of tiles are those of packed_kernel. A tile has 128 rows; a warp has 16 of them and all columns, so what is done with a
 * tile is the same type `finish`. A slab is 64 deep. Shared memory has lines of 128 bytes: 64 depths of a row where the
 * operand is deep, otherwise 64 rows of a depth, in blocks of 64 rows. Vector v of line l is at v ^ (l & 7), as wgmma reads it.
 *
 * The emulation adds up the same numbers one by one.
 */
#ifndef LP_CUDA_PRODUCT_WIDE_H
#define LP_CUDA_PRODUCT_WIDE_H

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_product_packed.h"

/* Stages: slabs in shared memory, at least 3. Blocks: that run on a multiprocessor. */
template <int cols, int slab_stages, int resident_blocks> struct wide_shape : product_shape<128, cols, 16, cols> {
    static constexpr int stages = slab_stages, blocks = resident_blocks;
};

template <typename shape> constexpr bool is_wide = false;
template <int cols, int stages, int blocks> constexpr bool is_wide<wide_shape<cols, stages, blocks>> = true;

/* The layout of a slab, for product_finish::copied. */
struct wide_slab {
    static constexpr int precision = LP_PRECISION_BF16, depth = 64, line = 32; /* floats of a line */

    /* Offset in floats of vector v of a line. */
    __device__ static int at(int l, int v)
    {
        return line * l + 4 * (v ^ (l & 7));
    }
};

/* The same for an operand of `rows` rows that is not deep. */
template <int rows> struct wide_layout : wide_slab {
    static constexpr int count = rows;
    static constexpr bool bf16 = true;

    /* Offset in floats of row i of a depth; i is even. */
    __device__ static int offset(int k, int i)
    {
        return at(i / 64 * 64 + k, i % 64 / 8) + i % 8 / 2;
    }
};

/* Floats of a slab of `count` rows. */
__host__ __device__ constexpr int wide_size(int count)
{
    return count * wide_slab::line;
}

/* from: the first row and depth; rows, depth: present from there on. width: floats of a copy, 4 or 1. */
template <bool deep, int count, int threads, int width = 4>
__device__ static inline void wide_copy(float *to, const uint16_t *from, int64_t stride, int rows, int depth)
{
    int v = (int)threadIdx.x % 8;
#pragma unroll
    for (int i = 0; i < count; i += threads / 8) {
        int l = i + (int)threadIdx.x / 8, row = deep ? l : l / 64 * 64 + 8 * v, k = deep ? 8 * v : l % 64;
        const float *source = (const float *)(from + (deep ? row * stride + k : k * stride + row));
#pragma unroll
        for (int n = 0; n < 4; n += width)
            tile_cp_async<width>(to + wide_slab::at(l, v) + n, source + n,
                                 row + (deep ? 0 : 2 * n) < rows && k + (deep ? 2 * n : 0) < depth);
    }
}

/* ---- tensor cores -------------------------------------------------------------------------------------------- */

#if defined(__CUDACC__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* d [64 x 2 * count] += a [64 x 16] b [16 x 2 * count], in the fragment layout of mma by warps of 16 rows. */
template <bool a_deep, bool b_deep> __device__ static inline void wide_mma(float (&d)[32], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                 "}, %32, %33, 1, 1, 1, %34, %35;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
                   "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31])
                 : "l"(a), "l"(b), "n"(!a_deep), "n"(!b_deep));
}

template <bool a_deep, bool b_deep> __device__ static inline void wide_mma(float (&d)[64], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                 "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
                 "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
                 "%62, %63"
                 "}, %64, %65, 1, 1, 1, %66, %67;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
                   "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
                   "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
                   "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
                   "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
                   "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
                   "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "l"(a), "l"(b), "n"(!a_deep), "n"(!b_deep));
}

template <bool a_deep, bool b_deep> __device__ static inline void wide_mma(float (&d)[128], uint64_t a, uint64_t b)
{
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
        "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
        "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
        "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "
        "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, "
        "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, "
        "%119, %120, %121, %122, %123, %124, %125, %126, %127"
        "}, %128, %129, 1, 1, 1, %130, %131;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
          "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
          "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
          "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
          "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
          "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
          "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
          "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]),
          "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]),
          "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]),
          "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]),
          "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]),
          "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]),
          "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
          "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]),
          "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]),
          "+f"(d[126]), "+f"(d[127])
        : "l"(a), "l"(b), "n"(!a_deep), "n"(!b_deep));
}

/* Descriptor of an operand: 8 lines of 128 bytes are 1,024 bytes, and blocks of 64 rows of an operand that is not deep are
 * 8,192 bytes apart. */
__device__ static inline uint64_t wide_operand(const float *shared, bool deep)
{
    uint64_t at = (uint64_t)__cvta_generic_to_shared(shared);
    return (at & 0x3FFFF) >> 4 | (uint64_t)(deep ? 1 : 8192 >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

/* sums += a b for a slab, asynchronously. a: of the warpgroup. 192 columns are 128 and 64; more than `most` sums are halves. */
template <bool a_deep, bool b_deep, int most = 128, int count>
__device__ static inline void wide_multiply(float (&sums)[count], const float *a, const float *b)
{
    constexpr int first = count == 96 || count > most ? 64 : count;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < wide_slab::depth; k += 16) {
        uint64_t left = wide_operand(a + (a_deep ? k / 2 : k * wide_slab::line), a_deep);
        const float *right = b + (b_deep ? k / 2 : k * wide_slab::line);
        wide_mma<a_deep, b_deep>((float(&)[first])sums, left, wide_operand(right, b_deep));
        if constexpr (count > first)
            wide_mma<a_deep, b_deep>((float(&)[count - first]) sums[first], left,
                                     wide_operand(right + wide_size(2 * first), b_deep));
    }
}

/* Ends a group of products. */
__device__ static inline void wide_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Until at most `later` groups of products are unfinished. */
template <int later> __device__ static inline void wide_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(later) : "memory");
}

/* The sums are in their registers from here on: the compiler would set those of later products between two products, which
 * would then wait for each other. */
template <int count> __device__ static inline void wide_pin(float (&sums)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : "+f"(sums[i])::"memory");
}

/* What the thread has copied becomes visible to wgmma. */
__device__ static inline void wide_fence(void)
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

#elif defined(__CUDACC__)

/* Not launched (wide_supported). */
template <bool a_deep, bool b_deep, int most = 128, int count>
__device__ static inline void wide_multiply(float (&)[count], const float *, const float *)
{
}
template <int count> __device__ static inline void wide_pin(float (&)[count])
{
}
__device__ static inline void wide_commit(void)
{
}
template <int later> __device__ static inline void wide_wait(void)
{
}
__device__ static inline void wide_fence(void)
{
}

#else
#include <emulate_wide.h>
#endif

static inline bool wide_supported(const lp_cuda_run *run)
{
#if defined(LP_CUDA_EMULATED)
    return tile_bf16(run);
#elif defined(LP_CUDA_90A)
    return tile_bf16(run) && lp_device_capability(run->device) == 90;
#else
    return run == NULL;
#endif
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Columns of a tile that are stored while the others are multiplied, if all its slabs have a stage. */
__host__ __device__ constexpr int wide_first(int cols)
{
    return cols > 128 ? 128 : cols;
}

/* Multiplies the tile in one or two groups of products. wait_next: until the next slab is there. Stages have `size` floats, B and
 * then A; a: of the warpgroup. */
template <bool a_deep, bool b_deep, typename shape, typename waiting>
__device__ static inline void wide_multiply_halves(product_sums<shape> &sums, const float *a, const float *b, int size,
                                                   int slabs, const waiting &wait_next)
{
    constexpr int first = wide_first(shape::cols), rest = shape::cols - first;
    wide_pin((float(&)[shape::cols / 2]) sums);
#pragma unroll 1
    for (int i = 0; i < slabs; i++) {
        wait_next();
        product_copies_end(); /* counted by wait_next */
        wide_multiply<a_deep, b_deep>((float(&)[first / 2]) sums, a + i * size, b + i * size);
    }
    wide_commit();
    if constexpr (rest > 0)
#pragma unroll 1
        for (int i = 0; i < slabs; i++)
            wide_multiply<a_deep, b_deep>((float(&)[rest / 2]) sums.at[0][first / 8], a + i * size,
                                          b + i * size + wide_size(first));
    wide_commit();
}

template <bool a_deep, bool b_deep, int width, typename shape, typename finish_type>
__global__ void __launch_bounds__(shape::threads, shape::blocks)
    wide_kernel(const __grid_constant__ product_task task, int resident, finish_type finish)
{
    constexpr int size_a = wide_size(shape::rows), size_b = wide_size(shape::cols), depth = wide_slab::depth;
    LP_SHARED(float, shared);
    /* Lines repeat after 1,024 bytes. */
    float *memory = shared + (1024 - ((uintptr_t)shared & 1023)) % 1024 / 4;
    lp_pdl_wait();
    lp_pdl_trigger();
    product_place place = {(int)blockIdx.y * shape::rows,        0,
                           (int)blockIdx.z / task.chunks,        (int)blockIdx.z % task.chunks,
                           product_count(task.rows, task.shard), product_count(task.cols, task.shard)};
    if (place.row >= place.rows)
        return;
    int64_t tiles = (place.cols + shape::cols - 1) / shape::cols;
    int tile = (int)(tiles * blockIdx.x / gridDim.x), last = (int)(tiles * (blockIdx.x + 1) / gridDim.x);
    product_sides<uint16_t> sides = product_sides_of<a_deep, b_deep, depth, uint16_t>(task, place);
    int begin = sides.begin, end = sides.end, size = size_b + (resident ? 0 : size_a);
    float *ring = memory + resident * size_a;

    /* Copies the slabs of all tiles in their order. */
    int next_tile = tile, next_k = begin, next_stage = 0;
    auto copy_a = [&](float *to, int k) {
        wide_copy<a_deep, shape::rows, shape::threads, width>(to, sides.a + k * sides.a_step, task.a.stride, sides.rows,
                                                              end - k);
    };
    auto copy_next = [&]() {
        if (next_tile < last && next_k < end) {
            float *to = ring + next_stage * size;
            int col = next_tile * shape::cols;
            wide_copy<b_deep, shape::cols, shape::threads, width>(
                to, sides.b + col * (b_deep ? task.b.stride : 1) + next_k * sides.b_step, task.b.stride,
                place.cols - col, end - next_k);
            if (!resident)
                copy_a(to + size_b, next_k);
            next_k += depth;
            if (next_k >= end) {
                next_k = begin;
                next_tile++;
            }
            next_stage = next_stage + 1 == shape::stages ? 0 : next_stage + 1;
        }
        product_copies_end();
    };
    bool whole = last - tile == 1 && end - begin <= shape::stages * depth; /* all slabs have a stage */
    for (int i = 0; i < resident; i++)
        copy_a(memory + i * size_a, begin + i * depth);
#pragma unroll 1
    for (int i = whole ? 0 : 2; i < shape::stages; i++)
        copy_next();
    int stage = 0, slabs = (end - begin + depth - 1) / depth, group = (int)threadIdx.x / 128 * wide_size(64);
    auto wait_next = [&]() {
        if (whole)
            product_copies_wait<shape::stages - 1>();
        else
            product_copies_wait<shape::stages - 3>();
        wide_fence();
        __syncthreads();
    };
#pragma unroll 1
    for (; tile < last; tile++) {
        product_sums<shape> sums = {};
        const float *a = memory;
        place.col = tile * shape::cols;
        finish.template start<LP_PRECISION_BF16, a_deep, shape>(place, sums);
        if (finish_type::staging > 0 && whole) {
            wide_multiply_halves<a_deep, b_deep>(sums, ring + size_b + group, ring, size, slabs, wait_next);
        } else {
#pragma unroll 1
            for (int k = begin; k < end; k += depth, a += size_a) {
                wait_next();
                copy_next(); /* to the stage of the slab before the last, whose product is finished */
                const float *right = ring + stage * size, *left = resident ? a : right + size_b;
                wide_multiply<a_deep, b_deep, finish_type::staging ? 64 : 128>((float(&)[shape::cols / 2]) sums,
                                                                               left + group, right);
                wide_commit();
                finish.template copied<shape, wide_layout<shape::rows>, wide_layout<shape::cols>>(place, left, right);
                wide_wait<1>();
                stage = stage + 1 == shape::stages ? 0 : stage + 1;
            }
            wide_wait<0>();
        }
        if constexpr (finish_type::staging > 0) {
            constexpr int first =
                wide_first(shape::cols) < shape::cols ? wide_first(shape::cols) / finish_type::cols : 0;
            float *staging = ring + (whole ? slabs : shape::stages) * size;
            finish.load(place, 0);
            wide_wait<1>();
            finish.template store_parts<0, first>(place, sums, staging);
            wide_wait<0>();
            finish.template store_parts<first, finish_type::parts>(place, sums, staging);
        } else {
            finish.template run<LP_PRECISION_BF16, a_deep, shape>(task, place, sums, memory);
        }
    }
    __syncthreads();
    finish.template done<LP_PRECISION_BF16, a_deep, shape>(place, memory);
}

/* rows: of the largest shard; ranges: of the column tiles. width: floats of a copy to shared memory. */
template <bool a_deep, bool b_deep, int width, typename shape, typename finish_type>
static inline void wide_launch_heads(const lp_cuda_run *run, const product_task &task, const finish_type &finish,
                                     int heads, int rows, int ranges)
{
    int depth = (int)lp_blocks(task.depth.most, wide_slab::depth);
    bool several = ranges < (int)lp_blocks(task.cols.most, shape::cols);
    int resident = several && task.chunks == 1 && depth <= 4 ? depth : 0;
    int stages = finish_type::staging > 0 && !several && depth < shape::stages ? depth : shape::stages;
    size_t floats = (size_t)(resident * wide_size(shape::rows) + finish_type::staging +
                             stages * (wide_size(shape::cols) + (resident ? 0 : wide_size(shape::rows))));
    dim3 grid((unsigned)ranges, lp_blocks(rows, shape::rows), (unsigned)(heads * task.chunks));
    LP_LAUNCH_PDL(run, (wide_kernel<a_deep, b_deep, width, shape, finish_type>), grid, shape::threads,
                  floats * sizeof(float) + 1024, task, resident, finish);
}

template <bool a_deep, bool b_deep, typename shape, typename finish_type>
static inline void wide_launch(const lp_cuda_run *run, const product_task &task, const finish_type &finish, int rows,
                               int ranges)
{
    wide_launch_heads<a_deep, b_deep, 4, shape>(run, task, finish, 1, rows, ranges);
}

#endif
