/* cuda_reduction_kernel.cu: the kernels of a group of reductions.
 *
 * The first launch is bound by memory bandwidth, so its blocks keep many loads in flight. Outer products are those of cuda_product.h, whose
 * depth, the rows, is divided into chunks; column sums are always fp32.
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

/* ---- column sums --------------------------------------------------------------------------------------------- */

enum { COLUMN_WARPS = product_small::warps };

/* A row of a column: what is read of it. */
template <int type> struct column_term {
    static constexpr bool basis = type == LP_REDUCTION_BASIS, norm = type == LP_REDUCTION_NORM;
    float p, q, p_sine, q_sine, mean, scale;
    double time;

    __device__ void load(const reduction_task &task, int64_t row, int column)
    {
        int64_t at = row * task.p_stride + column;
        p = ((const float *)task.p)[at];
        if (type != LP_REDUCTION_COLUMN)
            q = ((const float *)task.q)[at];
        if (basis) {
            p_sine = ((const float *)task.p)[at + task.b];
            q_sine = ((const float *)task.q)[at + task.b];
            time = ((const double *)task.extra)[row];
        }
        if (norm) {
            mean = task.extra[2 * row];
            scale = task.extra[2 * row + 1];
        }
    }

    template <typename real> __device__ void add(real (&sum)[2]) const
    {
        if (basis)
            sum[0] += (real)(time * ((double)q_sine * p - (double)q * p_sine));
        else
            sum[0] += norm ? q * ((p - mean) * scale) : type == LP_REDUCTION_DOT ? p * q : p;
        if (norm || type == LP_REDUCTION_BOTH)
            sum[1] += q;
    }
};

/* A lane has a column, and each warp every COLUMN_WARPS-th row, with several under way. */
template <int type>
__device__ static inline void sum_columns(const reduction_task &task, const lp_cuda_shard *shard, int number)
{
    typedef std::conditional_t<type == LP_REDUCTION_BASIS, double, float> real;
    enum { IN_FLIGHT = type == LP_REDUCTION_BASIS ? 8 : 16 };
    LP_SHARED(real, sums);
    reduction_place place = reduction_place_of(task, number);
    int warp = (int)threadIdx.x >> 5, lane = (int)threadIdx.x & 31, column = place.col * REDUCTION_COLS + lane;
    int rows = (lp_rows_now(task.rows, shard) + task.rows_each - 1) / task.rows_each, begin, end;
    product_chunk<16>(rows, task.chunks, place.chunk, &begin, &end);
    end = column < task.b ? end : begin;
    real sum[2] = {};
#pragma unroll 1
    for (int row = begin + warp; row < end; row += IN_FLIGHT * COLUMN_WARPS) {
        column_term<type> terms[IN_FLIGHT] = {};
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            if (row + k * COLUMN_WARPS < end)
                terms[k].load(task, row + k * COLUMN_WARPS, column);
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            terms[k].add(sum);
    }
    lp_pdl_trigger();
    for (int i = 0; i < 2; i++)
        sums[64 * warp + 32 * i + lane] = sum[i];
    __syncthreads();
    if (warp > 1 || !task.out[warp] || column >= task.b)
        return;
    real total = 0;
    for (int i = 0; i < COLUMN_WARPS; i++)
        total += sums[64 * i + 32 * warp + lane];
    ((real *)task.out[warp])[(int64_t)place.chunk * task.step[warp] + column] = total;
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
            const float *from = slab + layout::offset(line, 4 * ((int)threadIdx.x % per_line));
            float4 four;
            if constexpr (layout::bf16) {
                float2 both = *(const float2 *)from;
                uint32_t low = __float_as_uint(both.x), high = __float_as_uint(both.y);
                four = make_float4(__uint_as_float(low << 16), __uint_as_float(low & 0xFFFF0000u),
                                   __uint_as_float(high << 16), __uint_as_float(high & 0xFFFF0000u));
            } else {
                four = *(const float4 *)from;
            }
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
        lp_pdl_trigger();
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

template <int precision, typename shape>
__device__ static inline void multiply(const reduction_task &task, const lp_cuda_shard *shard, int number)
{
    reduction_place at = reduction_place_of(task, number);
    product_place place = {at.row * shape::rows, 0, at.head, at.chunk, task.a, task.b};
    product_task product = {};
    product.shard = shard;
    product.depth = {task.rows, 0, INT32_MAX};
    product.chunks = task.chunks;
    product.a = {task.p, task.p_stride, task.p_head, task.p_width};
    product.b = {task.q, task.q_stride, task.q_head, task.q_width};
    product_outer outer = {};
    outer.store.to = (float *)task.out[0];
    outer.store.stride = task.b;
    outer.store.head = (int64_t)task.a * task.b;
    outer.store.chunk_step = task.step[0];
    outer.store.pairs = task.pairs;
    outer.sums = (float *)task.out[1];
    outer.sums_step = task.step[1];
    outer.sums_b = task.q_summed;
    product_tiles<precision, precision == LP_PRECISION_BF16, false, false, shape>(product, place, at.col, at.col + 1, 0,
                                                                                  shape::buffers, outer);
}

/* ---- the kernels --------------------------------------------------------------------------------------------- */

template <int precision, typename shape>
constexpr int partial_blocks = packed_blocks<precision, shape> < 2 ? packed_blocks<precision, shape> : 2;

template <int precision, typename shape>
__global__ void __launch_bounds__(shape::threads, (partial_blocks<precision, shape>))
    partial_kernel(const __grid_constant__ reduction_group group)
{
    int index = reduction_index(group.first), number = (int)blockIdx.x - group.first[index];
    const reduction_task &task = group.task[index];
    if (std::is_same_v<shape, product_small> && task.type == LP_REDUCTION_COLUMN)
        sum_columns<LP_REDUCTION_COLUMN>(task, group.shard, number);
    else if (std::is_same_v<shape, product_small> && task.type == LP_REDUCTION_DOT)
        sum_columns<LP_REDUCTION_DOT>(task, group.shard, number);
    else if (std::is_same_v<shape, product_small> && task.type == LP_REDUCTION_NORM)
        sum_columns<LP_REDUCTION_NORM>(task, group.shard, number);
    else if (std::is_same_v<shape, product_small> && task.type == LP_REDUCTION_BOTH)
        sum_columns<LP_REDUCTION_BOTH>(task, group.shard, number);
    else if (std::is_same_v<shape, product_small> && task.type == LP_REDUCTION_BASIS)
        sum_columns<LP_REDUCTION_BASIS>(task, group.shard, number);
    else
        multiply<precision, shape>(task, group.shard, number);
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

template <int precision, typename shape>
void launch_partial(const reduction_task *tasks, int count, const lp_cuda_run *run, int tiling)
{
    typedef packed_slabs<precision, false, false, shape> slabs;
    reduction_group group;
    unsigned blocks =
        reduction_gather(&group, tasks, count, run, [&](const reduction_task &task) { return task.tiling == tiling; });
    LP_LAUNCH(run, (partial_kernel<precision, shape>), blocks, shape::threads, slabs::bytes(0, shape::buffers), group);
}

} // namespace

void lp_cuda_reduction_launch(const reduction_task *tasks, int count, const lp_cuda_run *run)
{
    launch_partial<LP_PRECISION_BF16, packed_narrow>(tasks, count, run, REDUCTION_PACKED);
    if (tile_tensor(run)) {
        launch_partial<LP_PRECISION_TF32, product_large>(tasks, count, run, REDUCTION_LARGE);
        launch_partial<LP_PRECISION_TF32, product_small>(tasks, count, run, REDUCTION_SMALL);
    } else {
        launch_partial<LP_PRECISION_FP32, product_large>(tasks, count, run, REDUCTION_LARGE);
        launch_partial<LP_PRECISION_FP32, product_small>(tasks, count, run, REDUCTION_SMALL);
    }
}

void lp_cuda_reduction_launch_final(const lp_cuda_run *run, const reduction_outputs &outputs, unsigned blocks)
{
    LP_LAUNCH_PDL(run, final_kernel, blocks, FINAL_THREADS, 0, outputs);
}
