/* cuda_outer.cu: outer products over rows that are wide enough for whole tiles: gradients of weights as products
 * (cuda_product.h, in bf16 cuda_linear_wide.h) whose depth, the rows, is divided into chunks. The
 * group of reductions adds them (cuda_reduction.cu). */
#include "backend/cuda/cuda_linear_wide.h"
#include "backend/cuda/cuda_reduction_task.h"

enum { LEAST = 64, LEAST_AREA = 96 * 128, LEAST_COPY = 32 };

bool lp_cuda_outer_wide(const lp_node *node, bool copies)
{
    if (lp_cuda_rule_of(node)->reduction.type != LP_REDUCTION_OUTER)
        return false;
    int a = node->inputs[0]->cols / node->attributes.heads, b = node->inputs[1]->cols / node->attributes.heads;
    return copies ? a >= LEAST_COPY && b >= LEAST_COPY : a >= LEAST && b >= LEAST && a * b >= LEAST_AREA;
}

namespace
{

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

/* Chunks of the depth such that the tiles fill the device; a chunk has at least 256 rows. */
int product_chunks(int heads, int rows, int cols, int depth)
{
    int tiles = heads * (int)(lp_blocks(rows, product_large::rows) * lp_blocks(cols, product_large::cols));
    int most = (int)lp_blocks(depth, 256), chunks = tiles > 0 ? (int)lp_blocks(PRODUCT_BLOCKS, tiles) : 1;
    return chunks > most ? (most < 1 ? 1 : most) : chunks;
}

} // namespace

typedef linear_shape<64, 6, 1> outer_64; /* two blocks a multiprocessor would spill registers */
typedef linear_shape<128, 6, 1> outer_128;

/* Narrow tiles read more, but a product of few tiles has fewer chunks with them. */
static bool is_narrow(const lp_cuda_run *run, const reduction_task &task)
{
    return wide_supported(run) &&
           task.heads * lp_blocks(task.a, outer_128::rows) * lp_blocks(task.b, outer_128::cols) < 4;
}

int lp_cuda_outer_chunks(const lp_cuda_run *run, const reduction_task &task, int rows)
{
    return product_chunks(task.heads, task.a, is_narrow(run, task) ? 2 * task.b : task.b, rows);
}

void lp_cuda_outer_launch(const lp_node *node, const lp_cuda_run *run, const reduction_task &given)
{
    lp_cuda_copy p = lp_cuda_copy_from(run, node, 0), q = lp_cuda_copy_from(run, node, 1);
    product_task task = {};
    task.shard = run->shard;
    task.rows = product_fixed(given.a);
    task.cols = product_fixed(given.b);
    task.depth = {given.rows, 0, INT32_MAX};
    task.chunks = given.chunks;
    product_outer outer = {};
    outer.store.to = (float *)given.out[0];
    outer.store.stride = given.b;
    outer.store.head = (int64_t)given.a * given.b;
    outer.store.chunk_step = given.step[0];
    outer.store.pairs = lp_vector_width((uintptr_t)given.out[0], given.b) > 1;
    outer.sums = (float *)given.out[1];
    outer.sums_step = given.step[1];
    outer.sums_b = given.q_summed;
    if (p.data) {
        task.a = packed_operand(p, given.a + p.gap);
        task.b = packed_operand(q, given.b + q.gap);
        auto wide = [&](auto shape) {
            typedef decltype(shape) tile;
            linear_launch<false, false, tile>(run, task, outer, given.heads, given.a,
                                              (int)lp_blocks(given.b, tile::cols));
        };
        if (!wide_supported(run))
            packed_launch_precision<LP_PRECISION_BF16, false, false, packed_narrow>(
                run, task, outer, given.heads, given.a, (int)lp_blocks(given.b, packed_narrow::cols));
        else if (given.b <= outer_64::cols || is_narrow(run, given))
            wide(outer_64());
        else
            wide(outer_128());
    } else {
        task.a = {given.p, given.heads * given.a, given.a, lp_vector_width((uintptr_t)given.p, given.a)};
        task.b = {given.q, given.heads * given.b, given.b, lp_vector_width((uintptr_t)given.q, given.b)};
        product_launch<false, false>(run, task, outer, given.heads, given.a, given.b);
    }
}
