/* cuda_reduction_kernel.cu: the kernels of a group of reductions.
 *
 * The first launch is bound by memory bandwidth: rows of column sums and of small outer products pass through a ring of slabs in shared
 * memory, with many loads in flight. Large outer products are those of cuda_product.h, whose depth, the rows, is divided into chunks. Column
 * sums are always fp32.
 *
 * The second adds the partial sums. It uses programmatic dependent launch, so that its blocks are resident when the first kernel ends.
 *
 * The rows of a chunk depend only on the numbers of rows and chunks, the number of chunks only on the largest shard, and the chunks are added
 * in a fixed order: two runs give the same bits.
 */
#include "backend/cuda/cuda_product_packed.h"
#include "backend/cuda/cuda_reduction_task.h"

namespace
{

/* Blocks with small tiles, two of which run on a multiprocessor. */
enum { SMALL_WARPS = 8, SMALL_THREADS = 32 * SMALL_WARPS };

/* ---- rows in shared memory ----------------------------------------------------------------------------------- */

/* Starts to copy the present rows and columns of a slab, by vectors of `width` floats; the others are zeros. Neighbouring threads have
 * neighbouring vectors. */
template <typename layout, int width>
__device__ static inline void copy_vectors(float *to, const float *from, int stride, int rows, int cols)
{
    constexpr int vectors = layout::count / width, step = SMALL_THREADS / vectors;
    int line = (int)threadIdx.x / vectors, at = (int)threadIdx.x % vectors * width;
    from += line * stride + at;
    to += line * layout::stride + at;
#pragma unroll 4
    for (int i = 0; i < layout::depth; i += step, from += step * stride)
        tile_cp_async<width>(to + i * layout::stride, from, at < cols && line + i < rows);
}

template <typename layout>
__device__ static inline void copy_slab(float *to, const float *from, int stride, int width, int rows, int cols)
{
    if (width == 4)
        copy_vectors<layout, 4>(to, from, stride, rows, cols);
    else if (width == 2)
        copy_vectors<layout, 2>(to, from, stride, rows, cols);
    else
        copy_vectors<layout, 1>(to, from, stride, rows, cols);
}

/* Takes the rows from begin to end in slabs of `depth` rows, each `size` floats of shared memory: copy(to, k) starts to copy those from
 * row k on, consume(slab) adds them up. As many slabs as shared memory holds are under way. On return all threads are done with them. */
template <int depth, int size, typename copier, typename consumer>
__device__ static inline void for_each_slab(int begin, int end, const copier &copy, const consumer &consume)
{
    constexpr int buffers = REDUCTION_SHARED / (4 * size);
    LP_SHARED(float, memory);
    auto copy_next = [&](int k, int buffer) {
        if (k < end)
            copy(memory + buffer * size, k);
        product_copies_end();
    };
#pragma unroll 1
    for (int i = 0; i < buffers - 1; i++)
        copy_next(begin + i * depth, i);
    int buffer = 0;
#pragma unroll 1
    for (int k = begin; k < end; k += depth) {
        product_copies_wait<buffers - 2>();
        __syncthreads();
        copy_next(k + (buffers - 1) * depth, buffer == 0 ? buffers - 1 : buffer - 1);
        consume(memory + buffer * size);
        buffer = buffer + 1 == buffers ? 0 : buffer + 1;
    }
    lp_pdl_trigger();
    __syncthreads();
}

/* ---- column sums --------------------------------------------------------------------------------------------- */

/* A lane has a column, and each warp every SMALL_WARPS-th row. Shared memory has 32 columns of p and of q; of a basis their cosines, then their
 * sines; then the extra numbers of each row. Rows beyond the last are zeros. */
template <int type>
__device__ static inline void sum_columns(const reduction_task &task, const lp_cuda_shard *shard, int number)
{
    constexpr bool basis = type == LP_REDUCTION_BASIS, norm = type == LP_REDUCTION_NORM;
    constexpr int halves = basis ? 2 : 1, matrices = type == LP_REDUCTION_COLUMN ? 1 : 2 * halves,
                  depth = REDUCTION_DEPTH / halves;
    typedef product_layout<LP_PRECISION_FP32, false, REDUCTION_COLS, depth> layout;
    static_assert(layout::stride == REDUCTION_COLS_STRIDE && REDUCTION_DEPTH % depth == 0, "shared memory of a task");
    typedef std::conditional_t<basis, double, float> real;
    reduction_place place = reduction_place_of(task, number);
    int warp = (int)threadIdx.x >> 5, lane = (int)threadIdx.x & 31, first = place.col * REDUCTION_COLS;
    int rows = (lp_rows_now(task.rows, shard) + task.rows_each - 1) / task.rows_each, begin, end;
    product_chunk<16>(rows, task.chunks, place.chunk, &begin, &end);
    auto copy = [&](float *to, int k) {
#pragma unroll 1
        for (int m = 0; m < matrices; m++)
            copy_slab<layout>(to + m * layout::size,
                              (const float *)(m < halves ? task.p : task.q) + (int64_t)k * task.p_stride +
                                  m % halves * task.b + first,
                              task.p_stride, task.p_width, end - k, task.b - first);
        if ((basis || norm) && threadIdx.x < depth)
            tile_cp_async<2>(to + matrices * layout::size + 2 * threadIdx.x,
                             task.extra + 2 * ((int64_t)k + threadIdx.x), k + (int)threadIdx.x < end);
    };
    real one = 0, other = 0;
    auto add = [&](const float *slab) {
        const float *p = slab + lane, *q = p + halves * layout::size, *extra = slab + matrices * layout::size;
#pragma unroll 4
        for (int line = warp; line < depth; line += SMALL_WARPS) {
            int at = line * layout::stride, sine = at + layout::size;
            if constexpr (basis)
                one += ((const double *)extra)[line] * ((double)q[sine] * p[at] - (double)q[at] * p[sine]);
            else if constexpr (norm)
                one += q[at] * ((p[at] - extra[2 * line]) * extra[2 * line + 1]);
            else
                one += type == LP_REDUCTION_DOT ? p[at] * q[at] : p[at];
            if constexpr (norm || type == LP_REDUCTION_BOTH)
                other += q[at];
        }
    };
    for_each_slab<depth, matrices * layout::size + 2 * depth>(begin, end, copy, add);
    LP_SHARED(real, sums);
    sums[64 * warp + lane] = one;
    sums[64 * warp + 32 + lane] = other;
    __syncthreads();
    if (warp > 1 || !task.out[warp] || first + lane >= task.b)
        return;
    real sum = 0;
    for (int i = 0; i < SMALL_WARPS; i++)
        sum += sums[64 * i + 32 * warp + lane];
    ((real *)task.out[warp])[(int64_t)place.chunk * task.step[warp] + first + lane] = sum;
}

/* ---- outer products ------------------------------------------------------------------------------------------ */

/* C = A^T B for a chunk of the depth, with the sums of A's or B's columns. Rows and columns of C are both contiguous in
 * memory, so a thread loads the same four columns of every slab. */
struct product_outer : product_finish {
    product_store store;
    float *sums; /* of the first chunk; NULL: none */
    int64_t sums_step;
    int sums_b;   /* of B's columns, not of A's */
    float4 total; /* of a thread */

    __device__ bool wanted(const product_place &place) const
    {
        return sums && (sums_b ? place.row : place.col) == 0;
    }

    template <typename shape, typename slab_a, typename slab_b>
    __device__ void copied(const product_place &place, const float *a, const float *b)
    {
        if (wanted(place) && sums_b)
            add_slab<shape::threads, slab_b>(b);
        else if (wanted(place))
            add_slab<shape::threads, slab_a>(a);
    }

    /* The thread's four columns of a slab in shared memory, whose lines are depths. */
    template <int threads, typename layout> __device__ void add_slab(const float *slab)
    {
        constexpr int per_line = layout::count / 4;
#pragma unroll
        for (int line = (int)threadIdx.x / per_line; line < layout::depth; line += threads / per_line) {
            float4 four = *(const float4 *)(slab + line * layout::stride + 4 * ((int)threadIdx.x % per_line));
            total.x += four.x;
            total.y += four.y;
            total.z += four.z;
            total.w += four.w;
        }
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &task, const product_place &place, product_sums<shape> &sums_of,
                        float *memory) const
    {
        if (threadIdx.x < 32 * shape::warps)
            store.run<precision, a_deep, shape>(task, place, sums_of, memory);
        if (!wanted(place))
            return;
        __syncthreads();
        float4 *all = (float4 *)memory;
        all[threadIdx.x] = total;
        __syncthreads();
        static_assert(4 * shape::threads % shape::rows == 0 && 4 * shape::threads % shape::cols == 0 &&
                          shape::rows <= shape::threads && shape::cols <= shape::threads,
                      "columns of a thread");
        int each = (sums_b ? shape::cols : shape::rows) / 4;
        int col = (int)threadIdx.x, count = sums_b ? place.cols : place.rows, first = sums_b ? place.col : place.row;
        if (col >= 4 * each || first + col >= count)
            return;
        float sum = 0;
        for (int i = col / 4; i < shape::threads; i += each)
            sum += memory[4 * i + col % 4];
        sums[place.chunk * sums_step + place.head * count + first + col] = sum;
    }
};

__device__ static inline product_outer outer_of(const reduction_task &task)
{
    product_outer outer = {};
    outer.store.to = (float *)task.out[0];
    outer.store.stride = task.b;
    outer.store.head = (int64_t)task.a * task.b;
    outer.store.chunk_step = task.step[0];
    outer.store.pairs = task.pairs;
    outer.sums = (float *)task.out[1];
    outer.sums_step = task.step[1];
    outer.sums_b = task.q_summed;
    return outer;
}

/* A block of small tiles has more slabs under way than one of cuda_product.h, does not round its factors, since tensor cores ignore the
 * lower bits, and may have two sets of warps, which divide every slab. */
template <int tile_rows, int tile_cols> struct small_shape : product_shape<tile_rows, tile_cols, 32, 32> {
    static constexpr int threads = SMALL_THREADS,
                         sets = SMALL_WARPS / product_shape<tile_rows, tile_cols, 32, 32>::warps;
};

template <int precision, typename shape>
__device__ static inline void multiply_small(const reduction_task &task, const lp_cuda_shard *shard, int number)
{
    typedef packed_slabs<precision, false, false, shape> slabs;
    typedef typename slabs::a slab_a;
    typedef typename slabs::b slab_b;
    constexpr int depth = slabs::depth, part = depth / shape::sets, elements = shape::down * shape::across * 4;
    reduction_place at = reduction_place_of(task, number);
    product_place place = {at.row * shape::rows, at.col * shape::cols, at.head, at.chunk, task.a, task.b};
    const float *p = (const float *)task.p + at.head * task.p_head + place.row;
    const float *q = (const float *)task.q + at.head * task.q_head + place.col;
    int warp = (int)threadIdx.x >> 5, set = warp / shape::warps, begin, end;
    int row = warp % shape::warps / shape::warps_across * 32, col = warp % shape::warps_across * 32;
    product_chunk<depth>(lp_rows_now(task.rows, shard), task.chunks, at.chunk, &begin, &end);
    product_outer outer = outer_of(task);
    product_sums<shape> sums = {};
    auto copy = [&](float *to, int k) {
        copy_slab<slab_a>(to, p + (int64_t)k * task.p_stride, task.p_stride, task.p_width, end - k, task.a - place.row);
        copy_slab<slab_b>(to + slab_a::size, q + (int64_t)k * task.q_stride, task.q_stride, task.q_width, end - k,
                          task.b - place.col);
    };
    auto multiply = [&](const float *a) {
        const float *b = a + slab_a::size;
        const float *a_part = a + set * part * slab_a::stride, *b_part = b + set * part * slab_b::stride;
        if constexpr (precision == LP_PRECISION_FP32) {
            typedef product_shape<shape::rows, shape::cols, 32, 16> strip;
#pragma unroll
            for (int j = 0; j < shape::across; j += strip::across) {
                product_sums<strip> more = {};
                product_add_slab<false, false, strip, slab_a, slab_b, part>(more, a_part, row, b_part, col + 8 * j);
#pragma unroll
                for (int i = 0; i < elements / 2; i++)
                    sums.at[i / 8][j + i / 4 % 2][i % 4] += more.at[i / 8][i / 4 % 2][i % 4];
            }
        } else {
            product_add_slab<false, false, shape, slab_a, slab_b, part>(sums, a_part, row, b_part, col);
        }
        outer.copied<shape, slab_a, slab_b>(place, a, b);
    };
    for_each_slab<depth, slab_a::size + slab_b::size>(begin, end, copy, multiply);
    LP_SHARED(float, memory);
    if constexpr (shape::sets == 2) {
        float *exchange = memory + threadIdx.x % (32 * shape::warps);
#pragma unroll
        for (int i = 0; i < elements && set == 1; i++)
            exchange[32 * shape::warps * i] = sums.at[i / 16][i / 4 % 4][i % 4];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < elements && set == 0; i++)
            sums.at[i / 16][i / 4 % 4][i % 4] += exchange[32 * shape::warps * i];
    }
    outer.run<precision, false, shape>(product_task(), place, sums, memory);
}

/* ---- the kernels --------------------------------------------------------------------------------------------- */

template <int precision>
__global__ void __launch_bounds__(SMALL_THREADS, 2) small_kernel(const __grid_constant__ reduction_group group)
{
    int index = reduction_index(group.first), number = (int)blockIdx.x - group.first[index];
    const reduction_task &task = group.task[index];
    if (task.type == LP_REDUCTION_COLUMN)
        sum_columns<LP_REDUCTION_COLUMN>(task, group.shard, number);
    else if (task.type == LP_REDUCTION_DOT)
        sum_columns<LP_REDUCTION_DOT>(task, group.shard, number);
    else if (task.type == LP_REDUCTION_NORM)
        sum_columns<LP_REDUCTION_NORM>(task, group.shard, number);
    else if (task.type == LP_REDUCTION_BOTH)
        sum_columns<LP_REDUCTION_BOTH>(task, group.shard, number);
    else if (task.type == LP_REDUCTION_BASIS)
        sum_columns<LP_REDUCTION_BASIS>(task, group.shard, number);
    else if (task.tile_rows == 128)
        multiply_small<precision, small_shape<128, 64>>(task, group.shard, number);
    else if (task.tile_cols == 128)
        multiply_small<precision, small_shape<64, 128>>(task, group.shard, number);
    else
        multiply_small<precision, small_shape<64, 64>>(task, group.shard, number);
}

/* One tile of cuda_product.h. */
template <int precision, typename shape>
__global__ void __launch_bounds__(shape::threads, (packed_blocks<precision, shape>))
    large_kernel(const __grid_constant__ reduction_group group)
{
    lp_pdl_trigger();
    int index = reduction_index(group.first);
    const reduction_task &task = group.task[index];
    reduction_place at = reduction_place_of(task, (int)blockIdx.x - group.first[index]);
    product_place place = {at.row * shape::rows, 0, at.head, at.chunk, task.a, task.b};
    product_task product = {};
    product.shard = group.shard;
    product.depth = {task.rows, 0, INT32_MAX};
    product.chunks = task.chunks;
    product.a = {task.p, task.p_stride, task.p_head, task.p_width};
    product.b = {task.q, task.q_stride, task.q_head, task.q_width};
    product_outer outer = outer_of(task);
    product_tiles<precision, false, false, false, shape>(product, place, at.col, at.col + 1, 0, shape::buffers, outer);
}

enum { FINAL_WARPS = 8, FINAL_THREADS = 32 * FINAL_WARPS };

/* Neighbours of a slice, whose number of elements is a multiple of four. */
template <typename type, int n> struct alignas(n * sizeof(type) < 16 ? n * sizeof(type) : 16) reduction_some {
    type at[n];
};

/* A lane has n outputs. Each warp adds every FINAL_WARPS-th slice, with several loads in flight. */
template <typename type, int n>
__device__ static inline void add_slices(const reduction_output &output, int block, reduction_some<type, n> *sums)
{
    enum { IN_FLIGHT = n == 1 ? 16 : 8 };
    int warp = (int)threadIdx.x >> 5, slices = output.slices, first = 32 * n * block;
    int i = first + n * ((int)threadIdx.x & 31), mine = first + (int)threadIdx.x;
    bool stores = threadIdx.x < 32 * n && mine < output.size;
    type *out = (type *)output.out, total = stores && output.adds ? out[mine] : 0;
    const type *partial = (const type *)output.partial + i + (int64_t)warp * output.step;
    int64_t apart = (int64_t)FINAL_WARPS * output.step;
    reduction_some<type, n> sum = {}, none = {};
    lp_pdl_wait();
#pragma unroll 1
    for (; i < output.size && warp < slices; warp += IN_FLIGHT * FINAL_WARPS) {
        reduction_some<type, n> part[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++, partial += apart)
            part[k] = warp + k * FINAL_WARPS < slices ? *(const reduction_some<type, n> *)partial : none;
#pragma unroll
        for (int k = 0; k < n * IN_FLIGHT; k++)
            sum.at[k % n] += part[k / n].at[k % n];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (!stores)
        return;
    for (int w = 0; w < FINAL_WARPS; w++)
        total += sums[32 * w + (int)threadIdx.x / n].at[threadIdx.x % n];
    out[mine] = total;
}

__global__ void __launch_bounds__(FINAL_THREADS) final_kernel(const __grid_constant__ reduction_outputs outputs)
{
    __shared__ reduction_some<float, 4> sums[FINAL_THREADS];
    int index = reduction_index(outputs.first);
    const reduction_output &output = outputs.output[index];
    int block = (int)blockIdx.x - outputs.first[index];
    if (output.is_double)
        add_slices(output, block, (reduction_some<double, 1> *)sums);
    else if (output.fours)
        add_slices(output, block, sums);
    else
        add_slices(output, block, (reduction_some<float, 1> *)sums);
}

/* The tasks of a tiling. shared: bytes that all of them need. */
template <typename kernel_type>
void launch(const reduction_task *tasks, int count, const lp_cuda_run *run, int tiling, kernel_type kernel, int threads,
            size_t shared)
{
    reduction_group group;
    unsigned blocks = reduction_gather(&group, tasks, count, run, [&](const reduction_task &task) {
        shared = task.tiling == tiling && (size_t)task.shared > shared ? (size_t)task.shared : shared;
        return task.tiling == tiling;
    });
    LP_LAUNCH(run, kernel, blocks, threads, shared, group);
}

template <int precision, typename shape>
void launch_large(const reduction_task *tasks, int count, const lp_cuda_run *run, int tiling)
{
    typedef packed_slabs<precision, false, false, shape> slabs;
    launch(tasks, count, run, tiling, large_kernel<precision, shape>, shape::threads, slabs::bytes(0, shape::buffers));
}

} // namespace

void lp_cuda_reduction_launch(const reduction_task *tasks, int count, const lp_cuda_run *run)
{
    if (tile_tensor(run)) {
        launch_large<LP_PRECISION_TF32, product_large>(tasks, count, run, REDUCTION_LARGE);
        launch(tasks, count, run, REDUCTION_SMALL, small_kernel<LP_PRECISION_TF32>, SMALL_THREADS, 0);
    } else {
        launch_large<LP_PRECISION_FP32, product_large>(tasks, count, run, REDUCTION_LARGE);
        launch(tasks, count, run, REDUCTION_SMALL, small_kernel<LP_PRECISION_FP32>, SMALL_THREADS, 0);
    }
}

void lp_cuda_reduction_launch_final(const lp_cuda_run *run, const reduction_outputs &outputs, unsigned blocks)
{
    LP_LAUNCH_PDL(run, final_kernel, blocks, FINAL_THREADS, 0, outputs);
}
