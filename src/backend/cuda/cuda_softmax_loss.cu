/* cuda_softmax_loss.cu: softmax cross-entropy over a catalogue, and its gradient, in bf16 (cuda_softmax_floats.cu: in fp32 and tf32).
 *
 *     s(t, c) = z_t . item_c + bias_c + logq_c        loss_t = lse_t - s(t, target_t),  lse_t = log sum_c exp s(t, c)
 *     ds(t, c) = dloss (exp(s - lse_t) - [c = target_t])    dz = ds items    ditems = ds^T z    dbias = column sums
 *
 * z and the items are packed: in bf16, in blocks (cuda_product_wide.h). A product of them stores exponentials, in bf16, relative to the
 * target's score, which is known before:
 *
 *     e(t, c) = exp(s(t, c) - s(t, target_t))    sum_t = sum_c e(t, c)    d(t, c) = e(t, c) - sum_t [c = target_t]
 *     dz = dloss / sum_t (d items)    ditems = dloss d^T (z_t / sum_t)    dbias = dloss d^T (1 / sum_t)
 *
 * So the gradient is two more products, which read d as it is. Where exponentials overflow (a target is exp(69) times less probable than
 * some item), a warp computes the row relative to its maximum. Scores are multiplied by log2 e: exponentials are powers of 2. Where d is
 * too large to be kept (D_SIZE), the loss is computed in tf32, a chunk of items after the other.
 */
#include "backend/cuda/cuda_product_wide.h"
#include "backend/cuda/cuda_reduce.h"
#include "backend/cuda/cuda_reduction_task.h"

namespace
{

/* Bytes of d, at most. */
#define D_SIZE LP_SIZE((size_t)4 << 30, (size_t)3 << 16)
/* Warps of a block of pack_factors; rows and columns of a tile of scores. */
enum { WARPS = 8, SCORE_ROWS = 128, SCORE_COLS = 128 };

typedef wide_shape<SCORE_ROWS, SCORE_COLS, 2> score_shape;
/* For tiles of `width` columns. */
template <int width> using gradient_shape = wide_shape<width == 192 ? 192 : 128, width, width <= 128 ? 2 : 1>;

/* Below every score. Finite, so that no difference of two is NaN. */
#define LEAST_SCORE (-1e30f)
/* Sums of exponentials above it are computed again. */
#define MOST_SUM 0x1p100f

/* Packed matrices have rows of `stride` numbers. What follows `logq` lies in the side buffer of lse, if
 * there is a gradient. */
typedef struct loss_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows targets, items; /* rows of z, rows of the catalogue */
    int rows, lines, item_rows;  /* of the largest shard: rows of z; rows and items up to whole blocks and tiles */
    int count;                   /* of items */
    int cols, stride, width;     /* of z and the table; of packed matrices; of a load of z and table */
    const int32_t *target;
    const float *z, *table, *bias, *logq;
    uint16_t *packed_z;     /* times log2 e */
    uint16_t *packed_items; /* in their order */
    uint16_t *columns;      /* items in the order of columns of scores (column_of) */
    uint16_t *scaled;       /* z_t / sum_t */
    uint16_t *inverse;      /* 1 / sum_t; zeros up to a whole block */
    uint16_t *d;            /* [lines x item_rows]; NULL: there is no gradient */
    float *terms;           /* of columns; LEAST_SCORE where there is no item */
    float *target_score;    /* by the rounded factors */
    float *origin;          /* the score that exponentials are relative to: the target's, or the row's maximum */
    float *sum;             /* of exponentials */
    float *range_sums;      /* the same by ranges of columns, [ranges x rows] */
    int32_t *ranges;        /* of each row tile */
    double *losses;         /* sums of the blocks of finish_rows */
} loss_task;

__device__ float item_term(const loss_task &task, int item)
{
    float term = (task.bias[item] + (task.logq ? task.logq[item] : 0)) * TILE_LOG2_E;
    return term < LEAST_SCORE ? LEAST_SCORE : term; /* NaN stays */
}

/* ---- packed factors ------------------------------------------------------------------------------------------ */

/* Rounds and stores four neighbours of a row, times scale; returns them. */
__device__ float4 packed_store(uint16_t *to, float4 x, float scale)
{
    x = make_float4(tile_round_bf16(x.x * scale), tile_round_bf16(x.y * scale), tile_round_bf16(x.z * scale),
                    tile_round_bf16(x.w * scale));
    *(float2 *)to = make_float2(tile_pack_bf16(x.x, x.y), tile_pack_bf16(x.z, x.w));
    return x;
}

/* The column of scores that an item has. A lane of a product has two neighbouring columns of every 8, and stores those of
 * neighbouring items as one vector of 16 bytes. */
__device__ int column_of(int item)
{
    int at = item % 32;
    return item - at + at % 8 / 2 * 8 + at / 8 * 2 + at % 2;
}

/* One warp for each row of z, then of items. */
__global__ void __launch_bounds__(32 * WARPS) pack_factors(const __grid_constant__ loss_task task)
{
    int row = (int)blockIdx.x * WARPS + (int)(threadIdx.x >> 5), lane = (int)threadIdx.x & 31, cols = task.cols;
    lp_pdl_trigger();
    bool item = row >= task.rows;
    row -= item ? task.rows : 0;
    int count = lp_rows_now(item ? task.items : task.targets, task.shard);
    if (row >= (item ? task.item_rows : count))
        return;
    int other = item ? column_of(row) : task.target[row];
    auto load = [&](const float *from, int r, int c) {
        return lp_load_four(from + (int64_t)r * cols + c, row < count ? cols - c : 0, task.width);
    };
    float score = 0;
    for (int c = 4 * lane; c < task.stride; c += 128) {
        float4 x = load(item ? task.table : task.z, row, c);
        x = packed_store((item ? task.packed_items : task.packed_z) + wide_at(task.stride, row, c), x,
                         item ? 1 : TILE_LOG2_E);
        if (item) {
            packed_store(task.columns + wide_at(task.stride, other, c), x, 1);
        } else {
            float4 y = load(task.table, other, c);
            score += x.x * tile_round_bf16(y.x) + x.y * tile_round_bf16(y.y) + x.z * tile_round_bf16(y.z) +
                     x.w * tile_round_bf16(y.w);
        }
    }
    score = lp_warp_sum(score);
    if (lane == 0 && item)
        task.terms[other] = row < count ? item_term(task, row) : LEAST_SCORE;
    else if (lane == 0)
        task.target_score[row] = task.origin[row] = score + item_term(task, other);
}

/* ---- exponentials -------------------------------------------------------------------------------------------- */

/* Stores exponentials, and their sums over the tiles of a warp. */
typedef struct store_exponentials {
    loss_task loss;
    float total[2]; /* of the lane's own columns */

    /* Exponents without the product, which is added to them. */
    template <typename shape> __device__ void start(const product_place &place, product_sums<shape> &products) const
    {
        product_all_pairs(products, place, [&](int row, int col, float *pair) {
            float2 two = *(const float2 *)(loss.terms + col);
            float from = loss.origin[min(row, place.rows - 1)];
            pair[0] = two.x - from;
            pair[1] = two.y - from;
        });
    }

    template <typename shape> __device__ void run(const product_place &place, product_sums<shape> &products)
    {
        tile_lane me = tile_lane_now();
        int rows = (place.rows + WIDE_BLOCK - 1) / WIDE_BLOCK * WIDE_BLOCK; /* with zeros up to a whole block */
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int r = place.row + product_row<shape>(i);
#pragma unroll
            for (int j = 0; j < shape::across; j += 4) { /* a vector of 16 bytes */
                float all[4];
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    float x = tile_exp2(products.pair(i, j + n)[0]), y = tile_exp2(products.pair(i, j + n)[1]);
                    total[i] += x + y;
                    all[n] = tile_pack_bf16(x, y);
                }
                int64_t at = wide_at(loss.item_rows, r, place.col) + j / 8 * WIDE_BLOCK * WIDE_BLOCK +
                             8 * (((j % 8 + me.member) ^ me.group) - me.group);
                if (loss.d && r < rows)
                    *(float4 *)(loss.d + at) =
                        r < place.rows ? make_float4(all[0], all[1], all[2], all[3]) : make_float4(0, 0, 0, 0);
            }
        }
    }

    /* After the last tile of the rows. */
    template <typename shape> __device__ void done(const product_place &place) const
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int r = place.row + product_row<shape>(i);
            float row = tile_row_sum(total[i]);
            if (tile_lane_now().member == 0 && r < place.rows)
                loss.range_sums[(int64_t)place.range * loss.rows + r] = row;
        }
        if (threadIdx.x == 0)
            loss.ranges[place.row / SCORE_ROWS] = place.ranges;
    }
} store_exponentials;

/* All tiles of the product, by rows. Its blocks have equal numbers of them: a block computes the last ones of some rows and
 * the first ones of others, so several blocks share the columns of a row tile. */
__global__ void __launch_bounds__(score_shape::threads, score_shape::blocks)
    exponentials_kernel(const __grid_constant__ product_task task, wide_memory use, store_exponentials finish)
{
    typedef score_shape shape;
    lp_pdl_wait();
    lp_pdl_trigger();
    int items = lp_rows_now(finish.loss.items, task.shard);
    product_place place = {0, 0, 0, 0, lp_rows_now(task.rows, task.shard), (items + SCORE_COLS - 1) & -SCORE_COLS};
    int across = (place.cols + shape::cols - 1) / shape::cols, down = (place.rows + shape::rows - 1) / shape::rows;
    int64_t tiles = (int64_t)across * down, blocks = min((int64_t)gridDim.x, tiles), index = blockIdx.x;
    wide_start(use);
    if (index >= blocks)
        return;
    int64_t tile = tiles * index / blocks, last = tiles * (index + 1) / blocks;
    while (tile < last) {
        int64_t row = tile / across, first = row * across;
        int64_t end = min(last, first + across);
        store_exponentials finish_row = finish;
        place.row = (int)row * shape::rows;
        /* The blocks that have the first and the last tile of these rows. */
        int64_t first_block = ((first + 1) * blocks - 1) / tiles, last_block = ((first + across) * blocks - 1) / tiles;
        place.range = (int)(index - first_block);
        place.ranges = (int)(last_block - first_block) + 1;
        wide_tiles<true, true, false, shape>(task, place, (int)(tile - first), (int)(end - first), use, finish_row);
        finish_row.done<shape>(place);
        tile = end;
    }
}

void exponentials(const lp_cuda_run *run, const loss_task &loss)
{
    product_operand z = {loss.packed_z, loss.stride, 0}, columns = {loss.columns, loss.stride, 0};
    product_task task = {loss.shard, loss.targets, product_fixed(loss.item_rows), product_fixed(loss.cols), 1,
                         z,          columns};
    int depth = loss.stride / WIDE_BLOCK;
    int64_t tiles = (int64_t)lp_blocks(loss.rows, SCORE_ROWS) * (loss.item_rows / SCORE_COLS);
    size_t bytes;
    wide_memory use = wide_memory_of<score_shape>(depth <= 4 ? depth : 0, &bytes);
    store_exponentials finish = {loss, {}};
    LP_LAUNCH_PDL(run, exponentials_kernel, (unsigned)(tiles < PACKED_BLOCKS ? tiles : (int64_t)PACKED_BLOCKS),
                  score_shape::threads, bytes, task, use, finish);
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* By a warp: exponentials of a row relative to its maximum. Returns their sum. */
__device__ float row_again(const loss_task &task, int row, int lane)
{
    float origin = LEAST_SCORE, sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int item = lane; item < lp_rows_now(task.items, task.shard); item += 32) {
            float score = 0; /* the term, which may be large, is added last: every sum with it is rounded to its size */
            for (int c = 0; c < task.cols; c++)
                score += tile_round_bf16(task.z[(int64_t)row * task.cols + c] * TILE_LOG2_E) *
                         tile_round_bf16(task.table[(int64_t)item * task.cols + c]);
            score += item_term(task, item);
            float power = pass ? tile_exp2(score - origin) : 0;
            origin = pass ? origin : fmaxf(origin, score);
            sum += power;
            if (pass && task.d)
                tile_store_two<false>(task.d + wide_at(task.item_rows, row, item), power, 0, false);
        }
        origin = lp_warp_max(origin);
    }
    if (lane == 0)
        task.origin[row] = origin;
    return lp_warp_sum(sum);
}

/* Threads per block, at most this many rows per block, and vectors of z per thread. */
enum { FINISH_THREADS = 256, FINISH_ROWS = 32, FINISH_AHEAD = 4 };

/* For `each` rows: adds up the sums, and computes losses, z_t / sum_t, and d at the targets. The last block adds up the loss. */
__global__ void __launch_bounds__(FINISH_THREADS)
    finish_rows(const __grid_constant__ loss_task task, float *loss_sum, float *lse, int each, int stream)
{
    __shared__ float inverses[FINISH_ROWS];
    int thread = (int)threadIdx.x, lane = thread % 32, count = lp_rows_now(task.targets, task.shard);
    int whole = (count + WIDE_BLOCK - 1) / WIDE_BLOCK * WIDE_BLOCK, vectors = task.stride / 4; /* whole: with zeros */
    int first = (int)blockIdx.x * each, row = first + thread, lines = min(each, whole - first);
    auto load = [&](int i) {
        int r = first + i / vectors, c = i % vectors * 4;
        int present = i < lines * vectors && r < count ? task.cols - c : 0;
        return lp_load_four(task.z + (int64_t)r * task.cols + c, present, task.width);
    };
    auto store = [&](int i, float4 x) {
        int line = i / vectors;
        if (i < lines * vectors)
            packed_store(task.scaled + wide_at(task.stride, first + line, i % vectors * 4), x, inverses[line]);
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
    float sum = 0;
    int ranges = mine ? task.ranges[row / SCORE_ROWS] : 0;
#pragma unroll 8
    for (int i = 0; i < ranges; i++)
        sum += task.range_sums[(int64_t)i * task.rows + row];
    if (thread < each)
        inverses[thread] = sum;
    if (__syncthreads_or(mine && !(sum < MOST_SUM))) {
        for (int i = thread / 32; i < each && first + i < count; i += FINISH_THREADS / 32)
            if (!(inverses[i] < MOST_SUM)) {
                float again = row_again(task, first + i, lane);
                if (lane == 0)
                    inverses[i] = again;
            }
        __syncthreads();
    }
    double loss = 0;
    if (mine) {
        sum = inverses[thread];
        float origin = task.origin[row], log_sum = logf(sum);
        task.sum[row] = sum;
        lse[row] = TILE_LN_2 * origin + log_sum;
        loss = (double)(TILE_LN_2 * (origin - task.target_score[row]) + log_sum);
        if (task.d)
            tile_store_two<false>(task.d + wide_at(task.item_rows, row, target),
                                  tile_exp2(task.target_score[row] - origin) - sum, 0, false);
    }
    if (thread < each) {
        inverses[thread] = mine ? 1 / sum : 0;
        if (row < whole)
            tile_store_two<false>(task.inverse + row, inverses[thread], 0, false);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < FINISH_AHEAD; i++)
        store(thread + i * FINISH_THREADS, ahead[i]);
    for (int i = thread + FINISH_AHEAD * FINISH_THREADS; i < lines * vectors; i += FINISH_THREADS)
        store(i, load(i));
    loss = lp_warp_sum(loss); /* the first warp has all rows */
    if (thread == 0)
        task.losses[blockIdx.x] = loss;
    if (!lp_last_block(stream))
        return;
    loss = 0;
    for (unsigned i = (unsigned)thread; i < gridDim.x; i += FINISH_THREADS)
        loss += task.losses[i];
    loss = lp_block_sum<FINISH_THREADS / 32>(loss);
    if (thread == 0)
        *loss_sum = (float)loss;
}

/* ---- products of d -------------------------------------------------------------------------------------------- */

/* dz = d items, or ditems = d^T (z / sum) and dbias, or parts of them. */
typedef struct d_product {
    product_task task;
    int rows;                 /* of the largest shard; 0: nothing to compute */
    float *to[2];             /* the product, and the column sums of d times weights; may be NULL */
    int step[2];              /* floats of a part */
    const float *scale, *sum; /* factor of all, and divisors of the rows, or NULL */
    const uint16_t *weights;  /* 1 / sum_t */
} d_product;

typedef struct store_product {
    const d_product *of;
    const uint16_t *weights;
    float weighed[4]; /* of the lane's rows: 0 and 2, in the first lane of each four */

    template <typename shape> __device__ void start(const product_place &, product_sums<shape> &) const
    {
    }

    template <typename shape> __device__ void run(const product_place &place, product_sums<shape> &sums) const
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int row = min(place.row + product_row<shape>(i), place.rows - 1);
            float factor = of->sum ? *of->scale / of->sum[row] : *of->scale;
#pragma unroll
            for (int j = 0; j < 2 * shape::across; j++)
                sums.pair(i, j / 2)[j % 2] *= factor;
        }
        product_store store = {};
        store.to = of->to[0];
        store.stride = place.cols;
        store.chunk_step = of->step[0];
        store.run(place, sums);
    }
} store_product;

/* Grid: tiles of columns, then of rows, then parts: of dz, and after that of ditems. So the long blocks of dz start first, and
 * the short ones of ditems fill the rest. */
template <bool by_items, typename shape>
__device__ void gradient_tile(const d_product &product, int index, wide_memory use)
{
    const product_task &task = product.task;
    int cols = (task.cols.fixed + shape::cols - 1) / shape::cols, tile = index % cols;
    int rows = (product.rows + shape::rows - 1) / shape::rows, row = index / cols % rows * shape::rows;
    product_place place = {row, 0, 0, index / cols / rows, lp_rows_now(task.rows, task.shard), task.cols.fixed};
    if (row >= place.rows)
        return;
    store_product store = {&product, product.weights, {}};
    wide_start(use);
    wide_tiles<!by_items, false, by_items, shape>(task, place, tile, tile + 1, use, store);
    for (int i = 0; by_items && tile == 0 && i < 2; i++) {
        int at = row + product_row<shape>(i);
        if (product.to[1] && tile_lane_now().member == 0 && at < place.rows)
            product.to[1][place.chunk * product.step[1] + at] = *product.scale * store.weighed[2 * i];
    }
}

template <typename shape>
__global__ void __launch_bounds__(shape::threads, shape::blocks)
    gradient_kernel(const __grid_constant__ d_product dz, const __grid_constant__ d_product ditems, int blocks_of_dz,
                    wide_memory use)
{
    int index = (int)blockIdx.x;
    lp_pdl_wait();
    lp_pdl_trigger();
    if (index < blocks_of_dz)
        gradient_tile<false, shape>(dz, index, use);
    else
        gradient_tile<true, shape>(ditems, index - blocks_of_dz, use);
}

/* ---- the launch ---------------------------------------------------------------------------------------------- */

/* Rows of all parts of ditems, which fill what the blocks of dz leave of the device; slabs of a part, at least: fewer cost more to add
 * up than they save. */
enum { PART_ROWS = 14000, PART_SLABS = LP_SIZE(8, 1) };

/* Parts of a depth: as many as wanted, if they are not too short. */
int parts_of(int wanted, int depth)
{
    int most = depth / (WIDE_BLOCK * PART_SLABS);
    return most < 1 || wanted < 1 ? 1 : wanted < most ? wanted : most;
}

/* The outputs of a product get memory for their parts, from *memory on, where there are several or where they accumulate. */
d_product product_of(const lp_node *node, const lp_cuda_run *run, const loss_task &loss, bool by_items, int parts,
                     reduction_outputs *outputs, int *count, float **memory)
{
    d_product p = {};
    int rows = by_items ? loss.count : loss.rows;
    for (int i = 0; i <= by_items; i++) {
        int number = by_items + i, size = rows * (i ? 1 : loss.cols);
        p.to[i] = LP_OUTPUT(number);
        p.step[i] = (size + 3) / 4 * 4;
        p.rows = p.to[i] ? rows : p.rows;
        if (p.to[i] && (parts > 1 || LP_ADDS(number))) {
            outputs->output[(*count)++] = {p.to[i], *memory, size, p.step[i], parts, LP_ADDS(number) != 0, false};
            p.to[i] = *memory;
            *memory += (int64_t)parts * p.step[i];
        }
    }
    product_operand d = {loss.d, loss.item_rows, 0},
                    other = {by_items ? loss.scaled : loss.packed_items, loss.stride, 0};
    p.task = {run->shard,
              by_items ? loss.items : loss.targets,
              product_fixed(loss.cols),
              by_items ? loss.targets : loss.items,
              parts,
              d,
              other};
    p.scale = LP_INPUT(6);
    p.sum = by_items ? NULL : loss.sum;
    p.weights = loss.inverse;
    return p;
}

template <typename shape> void launch_gradient(const lp_node *node, const lp_cuda_run *run, const loss_task &task)
{
    /* Where dz has too few tiles to fill the device once, it is divided. Constant, so that results do not depend on the device. */
    int across = (int)lp_blocks(task.cols, shape::cols), wanted = PART_ROWS / (across * (task.item_rows + 1)),
        slots = PACKED_BLOCKS / 2 * shape::blocks, tiles = across * (int)lp_blocks(task.rows + 1, shape::rows);
    int parts[2] = {parts_of(slots / tiles, task.count), parts_of(wanted < 2 ? 2 : wanted, task.rows)}, count = 0;
    size_t bytes, lines = (size_t)(parts[0] * task.rows) + (size_t)(parts[1] * task.item_rows);
    wide_memory use = wide_memory_of<shape>(0, &bytes);
    float *memory = (float *)lp_cuda_scratch(run, lines * (size_t)(task.cols + 4) * sizeof *memory);
    if (!memory)
        return;
    reduction_group none = {}; /* the second launch of reductions adds up the parts */
    reduction_outputs outputs = {};
    d_product dz = product_of(node, run, task, false, parts[0], &outputs, &count, &memory);
    d_product ditems = product_of(node, run, task, true, parts[1], &outputs, &count, &memory);
    unsigned of_dz = lp_blocks(dz.rows, shape::rows) * (unsigned)(across * parts[0]);
    unsigned of_items = lp_blocks(ditems.rows, shape::rows) * (unsigned)(across * parts[1]);
    LP_LAUNCH_PDL(run, gradient_kernel<shape>, of_dz + of_items, shape::threads, bytes, dz, ditems, (int)of_dz, use);
    lp_cuda_reduction_launch(run, &none, &outputs);
}

/* node: the loss or its gradient. False: out of memory, or what is computed in floats. */
bool task_of(const lp_node *node, const lp_cuda_run *run, loss_task *task)
{
    bool loss = node->op->id == LP_OP_SOFTMAX_LOSS, gradient = !loss || node->outputs[0]->gradient;
    *task = {};
    task->shard = run->shard;
    task->targets = lp_cuda_rows_of(node->inputs[0]);
    task->items = lp_cuda_rows_of(node->inputs[1]);
    task->rows = lp_cuda_largest(run, node->inputs[0]);
    task->lines = WIDE_BLOCK * (int)lp_blocks(task->rows, WIDE_BLOCK);
    task->count = lp_cuda_largest(run, node->inputs[1]);
    task->item_rows = SCORE_COLS * (int)lp_blocks(task->count, SCORE_COLS);
    task->cols = node->inputs[0]->cols;
    task->stride = WIDE_BLOCK * (int)lp_blocks(task->cols, WIDE_BLOCK);
    task->z = LP_INPUT(0);
    task->table = LP_INPUT(1);
    task->bias = LP_INPUT(2);
    task->logq = LP_INPUT(3);
    task->target = LP_INPUT_AS(int32_t, 4);
    task->width = lp_vector_width((uintptr_t)task->z | (uintptr_t)task->table, task->cols);
    size_t rows = (size_t)task->rows, items = (size_t)task->item_rows,
           of_z = (size_t)task->lines * (size_t)task->stride, of_items = items * (size_t)task->stride,
           of_d = gradient ? (size_t)task->lines * items : 0;
    if (!tile_bf16(run) || of_d * sizeof *task->d > D_SIZE) {
        lp_cuda_softmax_floats(node, run);
        return false;
    }
    /* Without memory it only adds up the sizes. */
    for (char *memory = NULL;;) {
        size_t size = 0;
        auto take = [&](auto **to, size_t count) {
            *to = memory && count ? (std::remove_reference_t<decltype(*to)>)(memory + size) : NULL;
            size += (count * sizeof **to + 255) / 256 * 256;
        };
        take(&task->packed_z, of_z);
        take(&task->packed_items, of_items);
        take(&task->columns, of_items);
        take(&task->scaled, of_z);
        take(&task->inverse, (size_t)task->lines);
        take(&task->d, of_d);
        take(&task->terms, items);
        take(&task->target_score, rows);
        take(&task->origin, rows);
        take(&task->sum, rows);
        take(&task->range_sums, (items / SCORE_COLS + 3) * rows);
        take(&task->ranges, lp_blocks(task->rows, SCORE_ROWS));
        take(&task->losses, (size_t)task->lines + 1);
        if (memory)
            return true;
        memory = (char *)(gradient ? lp_cuda_side_buffer(run, loss ? node->outputs[1] : node->inputs[5], size)
                                   : lp_cuda_scratch(run, size));
        if (!memory)
            return false;
    }
}

} // namespace

void lp_cuda_softmax_loss(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task;
    if (!task_of(node, run, &task))
        return;
    int each = FINISH_AHEAD * FINISH_THREADS * 4 / task.stride;
    each = each < 1 ? 1 : each > FINISH_ROWS ? (int)FINISH_ROWS : each;
    LP_LAUNCH(run, pack_factors, lp_blocks(task.rows + task.item_rows, WARPS), 32 * WARPS, 0, task);
    exponentials(run, task);
    LP_LAUNCH_PDL(run, finish_rows, lp_blocks(task.lines + 1, each), FINISH_THREADS, 0, task, LP_OUTPUT(0),
                  LP_OUTPUT(1), each, run->stream);
}

void lp_cuda_softmax_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task;
    if (!task_of(node, run, &task))
        return;
    int width = tile_width(task.cols, 256, WIDE_BLOCK);
    auto launch = width == 64    ? launch_gradient<gradient_shape<64>>
                  : width == 128 ? launch_gradient<gradient_shape<128>>
                  : width == 192 ? launch_gradient<gradient_shape<192>>
                                 : launch_gradient<gradient_shape<256>>;
    launch(node, run, task);
}
