/* cuda_softmax_loss.cu: softmax cross-entropy over a catalogue.
 *
 *     s(t, c) = z_t . item_c + bias_c + logq_c        loss_t = lse_t - s(t, target_t),  lse_t = log sum_c exp s(t, c)
 *     ds(t, c) = dloss (exp(s - lse_t) - [c = target_t])    dz = ds items    ditems = ds^T z    dbias = column sums
 *
 * z and the items are packed (cuda_product.h), or in blocks (cuda_product_wide.h). A product of them stores
 * exponentials, in the precision, relative to the target's score, which is known before:
 *
 *     e(t, c) = exp(s(t, c) - s(t, target_t))    sum_t = sum_c e(t, c)    d(t, c) = e(t, c) - sum_t [c = target_t]
 *     dz = dloss / sum_t (d items)    ditems = dloss d^T (z_t / sum_t)    dbias = dloss d^T (1 / sum_t)
 *
 * So the gradient is two more products, which read d as it is. Where d is too large to be kept (LOSS_D_SIZE), the forward
 * pass only adds up the sums, and the gradient computes d again, for one chunk of items after the other. Where exponentials
 * overflow, because a target is exp(69) times less probable than some item, a warp computes the row relative to its maximum.
 * Scores are multiplied by log2 e inside of the kernels: exponentials are powers of 2.
 */
#include "backend/cuda/cuda_reduce.h"
#include "backend/cuda/cuda_softmax_loss.h"

namespace
{

/* Tiles of a block: few, so that the last blocks of a launch are short. The emulation has several blocks of small catalogues. */
#ifdef LP_CUDA_EMULATED
enum { WARPS = 8, BLOCK_TILES = 2 };
#else
enum { WARPS = 8, BLOCK_TILES = 4 };
#endif

typedef wide_shape<128, 128, 2> wide_scores;
enum { SCORE_ROWS = 128 }; /* of a tile, here and of packed_wide */

/* Below every score. Finite, so that no difference of two is NaN. */
#define LEAST_SCORE (-1e30f)
/* Sums of exponentials above it are computed again. */
#define MOST_SUM 0x1p100f

typedef struct loss_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows targets, items; /* rows of z, rows of the catalogue */
    int cols;                    /* of both */
    int width;                   /* of a load of z and table */
    const float *z, *table, *bias, *logq;
    const int32_t *target;
    float *loss, *lse;
    double *losses;  /* sums of the blocks of finish_rows */
    float *sums;     /* of exponentials, [ranges x rows] */
    int32_t *ranges; /* of each row tile */
} loss_task;

__device__ float item_term(const loss_task &task, int item)
{
    float term = (task.bias[item] + (task.logq ? task.logq[item] : 0)) * TILE_LOG2_E;
    return term < LEAST_SCORE ? LEAST_SCORE : term; /* NaN stays */
}

/* ---- packed factors ------------------------------------------------------------------------------------------ */

template <int precision> __device__ float rounded(float x)
{
    return precision == LP_PRECISION_BF16   ? tile_round_bf16(x)
           : precision == LP_PRECISION_TF32 ? tile_round_tf32(x)
                                            : x;
}

/* Stores four neighbours of a packed matrix. */
template <int precision> __device__ void store_four(void *to, int64_t at, float4 x)
{
    if constexpr (precision == LP_PRECISION_BF16)
        *(float2 *)((uint16_t *)to + at) = make_float2(tile_pack_bf16(x.x, x.y), tile_pack_bf16(x.z, x.w));
    else
        *(float4 *)((float *)to + at) = make_float4(rounded<precision>(x.x), rounded<precision>(x.y),
                                                    rounded<precision>(x.z), rounded<precision>(x.w));
}

__device__ float4 times(float4 x, float scale)
{
    return make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale);
}

template <int precision> __device__ float dot(float4 x, float4 y)
{
    return rounded<precision>(x.x) * rounded<precision>(y.x) + rounded<precision>(x.y) * rounded<precision>(y.y) +
           rounded<precision>(x.z) * rounded<precision>(y.z) + rounded<precision>(x.w) * rounded<precision>(y.w);
}

/* The column of scores that an item has. A lane of a product has two neighbouring columns of every 8, and stores those of
 * neighbouring items as one vector of 16 bytes. */
template <int precision> __device__ int column_of(int item)
{
    constexpr int unit = precision == LP_PRECISION_BF16 ? 8 : 4;
    int at = item % (4 * unit);
    return item - at + at % unit / 2 * 8 + at / unit * 2 + at % 2;
}

/* One warp for each row of z, then of items. */
template <int precision>
__global__ void __launch_bounds__(32 * WARPS)
    pack_factors(const __grid_constant__ loss_task task, const __grid_constant__ loss_factors to)
{
    int row = (int)blockIdx.x * WARPS + (int)(threadIdx.x >> 5), lane = (int)threadIdx.x & 31, cols = task.cols;
    lp_pdl_trigger();
    if (row >= to.rows) {
        row -= to.rows;
        int count = lp_rows_now(task.items, task.shard), column = column_of<precision>(row);
        if (row >= to.item_rows)
            return;
        for (int c = 4 * lane; c < to.stride; c += 128) {
            float4 x = product_load(task.table + (int64_t)row * cols + c, row < count ? cols - c : 0, task.width);
            store_four<precision>(to.items, loss_at(to, to.stride, row, c), x);
            store_four<precision>(to.columns, loss_at(to, to.stride, column, c), x);
        }
        if (lane == 0)
            to.terms[column] = row < count ? item_term(task, row) : LEAST_SCORE;
    } else if (row < lp_rows_now(task.targets, task.shard)) {
        int target = task.target[row];
        float score = 0;
        for (int c = 4 * lane; c < to.stride; c += 128) {
            float4 x = product_load(task.z + (int64_t)row * cols + c, cols - c, task.width);
            float4 y = product_load(task.table + (int64_t)target * cols + c, cols - c, task.width);
            x = times(x, TILE_LOG2_E);
            score += dot<precision>(x, y);
            store_four<precision>(to.z, loss_at(to, to.stride, row, c), x);
        }
        score = lp_warp_sum(score);
        if (lane == 0)
            to.target[row] = to.origin[row] = score + item_term(task, target);
    }
}

int round_up(int64_t count, int unit)
{
    return (int)((count + unit - 1) / unit * unit);
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

template <int precision> __device__ void packed_store(void *to, int64_t at, float x)
{
    if constexpr (precision == LP_PRECISION_BF16)
        ((uint16_t *)to)[at] = (uint16_t)(__float_as_uint(tile_round_bf16(x)) >> 16);
    else
        ((float *)to)[at] = rounded<precision>(x);
}

/* d at the target of a row. */
template <int precision> __device__ void store_target(void *d, int64_t at, float score, float origin, float sum)
{
    packed_store<precision>(d, at, tile_exp2(score - origin) - sum);
}

/* By a warp: exponentials of a row relative to its maximum. Returns their sum. */
template <int precision>
__device__ float row_again(const loss_task &task, const loss_factors &factors, int row, int lane)
{
    int count = lp_rows_now(task.items, task.shard);
    float origin = LEAST_SCORE, sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int item = lane; item < count; item += 32) {
            float score = 0;
            for (int c = 0; c < task.cols; c++)
                score += packed_at<precision>(factors.z, loss_at(factors, factors.stride, row, c)) *
                         packed_at<precision>(factors.items, loss_at(factors, factors.stride, item, c));
            score += item_term(task, item);
            float power = tile_exp2(score - origin);
            if (pass == 0)
                origin = fmaxf(origin, score);
            else if (factors.d)
                packed_store<precision>(factors.d, loss_at(factors, factors.item_rows, row, item), power);
            sum += pass == 0 ? 0 : power;
        }
        origin = lp_warp_max(origin);
    }
    if (lane == 0)
        factors.origin[row] = origin;
    return lp_warp_sum(sum);
}

/* ---- exponentials -------------------------------------------------------------------------------------------- */

/* Stores exponentials, and their sums over the tiles of a block. */
typedef struct store_exponentials : product_finish {
    const float *terms, *origin;
    void *to; /* [rows x stride]; NULL: not stored */
    int64_t stride, capacity;
    float *sums;                        /* [ranges x capacity]; NULL: not stored */
    int32_t *ranges;                    /* of each row tile */
    float total[2 * packed_wide::down]; /* of the lane's own columns */

    /* Exponents without the product, which is added to them. */
    template <int precision, bool a_deep, typename shape>
    __device__ void start(const product_place &place, product_sums<shape> &products) const
    {
        float from[2 * shape::down];
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++)
            from[i] = origin[min(place.row + product_row<shape>(i), place.rows - 1)];
#pragma unroll
        for (int j = 0; j < shape::across; j++) {
            float2 two = *(const float2 *)(terms + place.col + product_col<shape>(j));
#pragma unroll
            for (int i = 0; i < 2 * shape::down; i++) {
                products.pair(i, j)[0] = two.x - from[i];
                products.pair(i, j)[1] = two.y - from[i];
            }
        }
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &products, float *)
    {
        constexpr bool bf16 = precision == LP_PRECISION_BF16;
        constexpr int pairs = bf16 ? 4 : 2; /* of a vector */
        tile_lane me = tile_lane_now();
        int col = me.warp % shape::warps_across * shape::own_cols + 2 * pairs * me.member;
        /* In blocks there are zeros up to the last line of one. */
        constexpr int whole = is_wide<shape> ? WIDE_BLOCK : 1;
        int rows = (place.rows + whole - 1) / whole * whole;
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            int r = place.row + product_row<shape>(i);
#pragma unroll
            for (int j = 0; j < shape::across; j += pairs) {
                float all[4];
#pragma unroll
                for (int n = 0; n < pairs; n++) {
                    const float *x = products.pair(i, j + n);
                    float2 two = {tile_exp2(x[0]), tile_exp2(x[1])};
                    total[i] += two.x + two.y;
                    if constexpr (bf16) {
                        all[n] = tile_pack_bf16(two.x, two.y);
                    } else {
                        all[2 * n] = rounded<precision>(two.x);
                        all[2 * n + 1] = rounded<precision>(two.y);
                    }
                }
                int64_t at = r * stride + place.col + col + 8 * j;
                if constexpr (is_wide<shape>)
                    at = wide_at(stride, r, place.col) + j / 8 * WIDE_BLOCK * WIDE_BLOCK +
                         8 * (((j % 8 + me.member) ^ me.group) - me.group);
                if (to && r < rows)
                    *(float4 *)((float *)to + at / (bf16 ? 2 : 1)) =
                        r < place.rows ? make_float4(all[0], all[1], all[2], all[3]) : make_float4(0, 0, 0, 0);
            }
        }
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void done(const product_place &place, float *memory) const
    {
        tile_lane me = tile_lane_now();
        if (!sums)
            return;
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            float row = tile_row_sum(total[i]);
            if (me.member == 0) /* memory: [warps across x rows] */
                memory[me.warp % shape::warps_across * shape::rows + product_row<shape>(i)] = row;
        }
        __syncthreads();
        static_assert(shape::threads >= shape::rows && shape::rows == SCORE_ROWS, "a thread for each row");
        int r = (int)threadIdx.x;
        if (r == 0)
            ranges[place.row / SCORE_ROWS] = place.ranges;
        if (r >= shape::rows || place.row + r >= place.rows)
            return;
        float row = memory[r];
#pragma unroll
        for (int i = 1; i < shape::warps_across; i++)
            row += memory[i * shape::rows + r];
        sums[place.range * capacity + place.row + r] = row;
    }
} store_exponentials;

/* For `count` items from `first` on. to: [rows x stride] or NULL. Stores the sums where loss.sums is not NULL. */
void exponentials(const lp_node *node, const lp_cuda_run *run, const loss_task &loss, const loss_factors &factors,
                  int first, int count, void *to, int stride)
{
    product_task task = {};
    task.shard = loss.shard;
    task.rows = product_whole(node->inputs[0]);
    task.cols = {loss.items, first, count, packed_wide::cols - 1};
    task.depth = product_fixed(loss.cols);
    task.chunks = 1;
    task.a = loss_operand(run, factors.z, factors.stride, 0);
    task.b = loss_operand(run, factors.columns, factors.stride, first);
    store_exponentials finish = {};
    finish.terms = factors.terms + first;
    finish.origin = factors.origin;
    finish.to = to;
    finish.stride = stride;
    finish.capacity = factors.rows;
    finish.sums = loss.sums;
    finish.ranges = loss.ranges;
    if (wide_supported(run))
        wide_launch<true, true, wide_scores>(run, task, finish, factors.rows);
    else
        product_with_precision(run, [&](auto constant) {
            constexpr int precision = decltype(constant)::value;
            packed_launch_precision<precision, true, true, packed_large<precision>>(
                run, task, finish, 1, factors.rows, (int)lp_blocks(count, BLOCK_TILES * packed_wide::cols));
        });
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

enum { FINISH_THREADS = 256, FINISH_ROWS = 32, FINISH_AHEAD = 4 }; /* of a block, at most; vectors of z of a thread */

/* For `each` rows: merges the ranges, and computes losses, z_t / sum_t, and d at the targets. The last block adds up the loss. */
template <int precision>
__global__ void __launch_bounds__(FINISH_THREADS)
    finish_rows(const __grid_constant__ loss_task task, const __grid_constant__ loss_factors factors, int each,
                int stream)
{
    __shared__ float inverses[FINISH_ROWS];
    int thread = (int)threadIdx.x, lane = thread % 32, count = lp_rows_now(task.targets, task.shard);
    int whole = (count + LOSS_SLAB - 1) / LOSS_SLAB * LOSS_SLAB; /* zeros follow up to a whole slab */
    int first = (int)blockIdx.x * each, row = first + thread, vectors = factors.stride / 4;
    int lines = factors.scaled ? min(each, (factors.blocked ? whole : count) - first) : 0;
    auto load = [&](int i) {
        int r = first + i / vectors, c = i % vectors * 4;
        bool present = i < lines * vectors && r < count;
        return product_load(task.z + (int64_t)r * task.cols + c, present ? task.cols - c : 0, task.width);
    };
    auto store = [&](int i, float4 x) {
        int line = i / vectors;
        if (i < lines * vectors)
            store_four<precision>(factors.scaled, loss_at(factors, factors.stride, first + line, i % vectors * 4),
                                  times(x, inverses[line]));
    };
    /* z is older than the exponentials, which this launch waits for. */
    float4 ahead[FINISH_AHEAD];
#pragma unroll
    for (int i = 0; i < FINISH_AHEAD; i++)
        ahead[i] = load(thread + i * FINISH_THREADS);
    bool mine = thread < each && row < count;
    int target = mine ? task.target[row] : 0;
    lp_pdl_wait();
    lp_pdl_trigger();
    float sum = 0, score = mine ? factors.target[row] : 0;
    int ranges = mine ? task.ranges[row / SCORE_ROWS] : 0;
#pragma unroll 8
    for (int i = 0; i < ranges; i++)
        sum += task.sums[(int64_t)i * factors.rows + row];
    if (thread < each)
        inverses[thread] = sum;
    if (__syncthreads_or(mine && !(sum < MOST_SUM))) {
        for (int i = thread / 32; i < each && first + i < count; i += FINISH_THREADS / 32)
            if (!(inverses[i] < MOST_SUM)) {
                float again = row_again<precision>(task, factors, first + i, lane);
                if (lane == 0)
                    inverses[i] = again;
            }
        __syncthreads();
    }
    double loss = 0;
    if (mine) {
        sum = inverses[thread];
        float origin = factors.origin[row], log_sum = logf(sum);
        factors.sum[row] = sum;
        task.lse[row] = TILE_LN_2 * origin + log_sum;
        loss = (double)(TILE_LN_2 * (origin - score) + log_sum);
        if (factors.d)
            store_target<precision>(factors.d, loss_at(factors, factors.item_rows, row, target), score, origin, sum);
    }
    if (thread < each) {
        float inverse = mine ? 1 / sum : 0;
        inverses[thread] = inverse;
        if (factors.inverse && row < whole)
            packed_store<precision>(factors.inverse, row, inverse);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < FINISH_AHEAD; i++)
        store(thread + i * FINISH_THREADS, ahead[i]);
    for (int i = thread + FINISH_AHEAD * FINISH_THREADS; i < lines * vectors; i += FINISH_THREADS)
        store(i, load(i));
    if (thread < 32) {
        loss = lp_warp_sum(loss);
        if (thread == 0)
            task.losses[blockIdx.x] = loss;
    }
    if (!lp_last_block(stream))
        return;
    loss = 0;
    for (unsigned i = (unsigned)thread; i < gridDim.x; i += FINISH_THREADS)
        loss += task.losses[i];
    loss = lp_block_sum<FINISH_THREADS / 32>(loss);
    if (thread == 0)
        *task.loss = (float)loss;
}

/* d at targets among the items of a chunk. */
template <int precision>
__global__ void __launch_bounds__(256)
    finish_chunk(const __grid_constant__ loss_task task, const __grid_constant__ loss_factors factors, void *d,
                 int stride, int first, int count)
{
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    int item = row < lp_rows_now(task.targets, task.shard) ? task.target[row] - first : -1;
    if (item >= 0 && item < count)
        store_target<precision>(d, loss_at(factors, stride, row, item), factors.target[row], factors.origin[row],
                                factors.sum[row]);
}

loss_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task = {};
    task.shard = run->shard;
    task.targets = lp_cuda_rows_of(node->inputs[0]);
    task.items = lp_cuda_rows_of(node->inputs[1]);
    task.z = LP_INPUT(0);
    task.table = LP_INPUT(1);
    task.bias = LP_INPUT(2);
    task.logq = LP_INPUT(3);
    task.target = LP_INPUT_AS(int32_t, 4);
    task.cols = node->inputs[0]->cols;
    task.width = lp_vector_width((uintptr_t)task.z | (uintptr_t)task.table, task.cols);
    return task;
}

} // namespace

void loss_take_factors(const lp_node *node, const lp_cuda_run *run, bool gradient, loss_memory *memory,
                       loss_factors *to)
{
    size_t element = loss_element_size(run);
    to->rows = lp_cuda_largest(run, node->inputs[0]);
    to->item_rows = round_up(lp_cuda_largest(run, node->inputs[1]), packed_wide::cols);
    to->blocked = wide_supported(run);
    to->stride = round_up(node->inputs[0]->cols, to->blocked ? (int)WIDE_BLOCK : packed_unit(run));
    size_t rows = (size_t)to->rows, items = (size_t)to->item_rows, stride = (size_t)to->stride;
    size_t lines = to->blocked ? (size_t)round_up(to->rows, WIDE_BLOCK) : rows;
    memory->take((char **)&to->z, lines * stride, element);
    memory->take((char **)&to->items, items * stride, element);
    memory->take((char **)&to->columns, items * stride, element);
    memory->take(&to->terms, items);
    memory->take(&to->target, rows);
    memory->take(&to->origin, rows);
    memory->take(&to->sum, rows);
    if (!gradient)
        return;
    memory->take((char **)&to->scaled, lines * stride, element);
    memory->take((char **)&to->inverse, (size_t)round_up(to->rows, LOSS_SLAB), element);
    if (lines * items * element <= LOSS_D_SIZE)
        memory->take((char **)&to->d, lines * items, element);
}

void lp_cuda_softmax_loss(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task = task_of(node, run);
    loss_factors factors = {};
    bool gradient = node->outputs[0]->gradient;
    int items = lp_cuda_largest(run, node->inputs[1]), rows = lp_cuda_largest(run, node->inputs[0]);
    loss_memory kept = {}, scratch = {};
    for (int pass = 0; pass < 2; pass++) {
        loss_memory *memory = gradient ? &kept : &scratch;
        loss_take_factors(node, run, gradient, memory, &factors);
        scratch.take(&task.sums, (size_t)factors.item_rows / packed_wide::cols * (size_t)rows);
        scratch.take(&task.ranges, lp_blocks(rows, SCORE_ROWS));
        scratch.take(&task.losses, (size_t)round_up(rows + 1, LOSS_SLAB));
        if (pass == 0 && gradient && !(kept.at = (char *)lp_cuda_side_buffer(run, node->outputs[1], kept.size)))
            return;
        if (pass == 0 && !(scratch.at = (char *)lp_cuda_scratch(run, scratch.size)))
            return;
        kept.size = scratch.size = 0;
    }
    task.loss = LP_OUTPUT(0);
    task.lse = LP_OUTPUT(1);
    int each = FINISH_AHEAD * FINISH_THREADS * 4 / factors.stride;
    each = each < 1 ? 1 : each > FINISH_ROWS ? (int)FINISH_ROWS : each;
    product_with_precision(run, [&](auto constant) {
        constexpr int precision = decltype(constant)::value;
        LP_LAUNCH(run, pack_factors<precision>, lp_blocks(rows + factors.item_rows, WARPS), 32 * WARPS, 0, task,
                  factors);
        exponentials(node, run, task, factors, 0, items, factors.d, factors.item_rows);
        LP_LAUNCH_PDL(run, finish_rows<precision>, lp_blocks(round_up(rows + 1, LOSS_SLAB), each), FINISH_THREADS, 0,
                      task, factors, each, run->stream);
    });
}

void loss_compute_d(const lp_node *node, const lp_cuda_run *run, const loss_factors &factors, int first, int count,
                    void *d, int stride)
{
    loss_task task = task_of(node, run);
    exponentials(node, run, task, factors, first, count, d, stride);
    product_with_precision(run, [&](auto precision) {
        LP_LAUNCH(run, finish_chunk<decltype(precision)::value>, lp_blocks(factors.rows, 256), 256, 0, task, factors, d,
                  stride, first, count);
    });
}
