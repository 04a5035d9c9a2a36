/* cuda_softmax_loss.cu: softmax cross-entropy over a catalogue.
 *
 *     s(t, c) = z_t . item_c + bias_c + logq_c        loss_t = lse_t - s(t, target_t),  lse_t = log sum_c exp s(t, c)
 *     ds(t, c) = dloss (exp(s - lse_t) - [c = target_t])    dz = ds items    ditems = ds^T z    dbias = column sums
 *
 * Forward, a product (cuda_product.h) whose tiles leave the maximum and the sum of exponentials of each row, which a
 * second kernel merges in the order of the tiles. The gradient takes the items in chunks: a product computes the scores
 * again and stores ds, in bf16 where that is the precision, and two products follow. A chunk is as large as scratch
 * memory allows (DSCORES_SIZE), so that no catalogue needs more. Narrow states on tensor cores keep all of this on chip
 * instead (cuda_softmax_loss_tensor.cu), which recomputes the scores twice.
 */
#include "backend/cuda/cuda_product.h"
#include "backend/cuda/cuda_softmax_loss.h"

namespace
{

/* Bytes of the dscores of a chunk. The emulation takes several chunks of small catalogues. */
#ifdef LP_CUDA_EMULATED
enum { WARPS = 8, DSCORES_SIZE = 1 << 16 };
#else
enum { WARPS = 8, DSCORES_SIZE = 256 << 20 };
#endif

/* ---- forward ------------------------------------------------------------------------------------------------- */

/* Leaves the softmax state of each row over the columns of a tile. */
typedef struct row_states {
    loss_task loss;

    template <int of_a, int of_b>
    __device__ void loaded(const product_place &, const float4 (&)[of_a], const float4 (&)[of_b])
    {
    }

    template <typename shape> __device__ void copied(const product_place &, const float *, int)
    {
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &sums,
                        float *memory) const
    {
        tile_lane me = tile_lane_now();
        int warp_col = me.warp % shape::warps_across, warp_row = me.warp / shape::warps_across * shape::own_rows;
        int first = place.col + warp_col * shape::own_cols + 2 * me.member;
        float term[shape::across][2];
#pragma unroll
        for (int j = 0; j < shape::across; j++)
#pragma unroll
            for (int n = 0; n < 2; n++)
                term[j][n] = loss_item_term(&loss, first + 8 * j + n, place.cols);
        float *row_max = memory, *row_sum = memory + shape::warps_across * shape::rows;
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            loss_softmax row = {-INFINITY, 0};
#pragma unroll
            for (int j = 0; j < shape::across; j++)
#pragma unroll
                for (int n = 0; n < 2; n++)
                    row.row_max = fmaxf(row.row_max, sums.pair(i, j)[n] + term[j][n]);
#pragma unroll
            for (int j = 0; j < shape::across && row.row_max > -INFINITY; j++)
#pragma unroll
                for (int n = 0; n < 2; n++)
                    row.row_sum += __expf(sums.pair(i, j)[n] + term[j][n] - row.row_max);
            row = loss_softmax_merge_lanes(row);
            int at = warp_col * shape::rows + warp_row + product_row<precision, a_deep, shape>(i);
            if (me.member == 0) {
                row_max[at] = row.row_max;
                row_sum[at] = row.row_sum;
            }
        }
        __syncthreads();
        int r = (int)threadIdx.x;
        if (r >= shape::rows || place.row + r >= place.rows)
            return;
        loss_softmax all = {-INFINITY, 0};
        for (int i = 0; i < shape::warps_across; i++) {
            loss_softmax other = {row_max[i * shape::rows + r], row_sum[i * shape::rows + r]};
            all = loss_softmax_merge(all, other);
        }
        int64_t split = place.col / shape::cols;
        loss.partial[split * loss.capacity + place.row + r] = all.row_max;
        loss.partial_sums[split * loss.capacity + place.row + r] = all.row_sum;
    }
} row_states;

/* One warp for each row: merges its splits and computes the loss at its target. */
__global__ void __launch_bounds__(32 * WARPS) loss_merge_splits(const __grid_constant__ loss_task task)
{
    int64_t t = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    int lane = (int)threadIdx.x & 31, cols = task.cols;
    if (t >= lp_rows_now(task.targets, task.shard))
        return;
    int target = task.target[t];
    float dot = 0;
    for (int c = lane; c < cols; c += 32)
        dot += task.z[t * cols + c] * task.table[(int64_t)target * cols + c];
    dot = lp_warp_sum(dot) + loss_item_term(&task, target, target + 1);
    loss_softmax all = {-INFINITY, 0};
    int tiles = task.tile_cols ? (lp_rows_now(task.items, task.shard) + task.tile_cols - 1) / task.tile_cols
                               : task.splits;
    for (int i = 0; i < tiles; i++) {
        loss_softmax other = {task.partial[i * task.capacity + t], task.partial_sums[i * task.capacity + t]};
        all = loss_softmax_merge(all, other);
    }
    if (lane == 0) {
        float lse = all.row_max + logf(all.row_sum);
        task.out[t] = lse;
        task.losses[t] = lse - dot;
    }
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

/* Stores the dscores of a chunk of items, [rows x stride]. */
typedef struct store_dscores {
    loss_task loss;
    void *to; /* bf16 where that is the precision, otherwise float */
    int64_t stride;
    int first; /* item of the chunk */

    template <int of_a, int of_b>
    __device__ void loaded(const product_place &, const float4 (&)[of_a], const float4 (&)[of_b])
    {
    }

    template <typename shape> __device__ void copied(const product_place &, const float *, int)
    {
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &sums, float *) const
    {
        float scale = *loss.dloss;
        int items = lp_rows_now(loss.items, loss.shard);
        product_pairs<precision, a_deep>(sums, place, [&](int row, int col, const float *sum) {
            float lse = loss.lse[row], ds[2];
            int target = loss.target[row] - first;
#pragma unroll
            for (int n = 0; n < 2; n++) {
                float score = sum[n] + loss_item_term(&loss, first + col + n, items);
                ds[n] = scale * (__expf(score - lse) - (col + n == target ? 1.0f : 0.0f));
            }
            int64_t at = row * stride + col; /* stride is even: a column beyond the last is stored as well */
            if constexpr (precision == LP_PRECISION_BF16)
                ((float *)to)[at / 2] = tile_pack_bf16(ds[0], ds[1]);
            else
                *(float2 *)((float *)to + at) = make_float2(ds[0], ds[1]);
        });
    }
} store_dscores;

/* out [rows x cols] = sum over splits of [splits x step], in their order. */
__global__ void __launch_bounds__(256) add_splits(const lp_cuda_shard *shard, product_extent rows, const float *partial,
                                                  int64_t step, int cols, int splits, float *out, int accumulate)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (int64_t)product_count(rows, shard) * cols)
        return;
    float sum = 0;
    for (int s = 0; s < splits; s++)
        sum += partial[s * step + i];
    lp_store(out + i, sum, accumulate);
}

/* ---- factors in bf16 ----------------------------------------------------------------------------------------- */

enum { PACK = 8 }; /* numbers of 16 bytes: rows and columns are padded with zeros to a multiple of it */

/* to [rows x stride] = from [rows x cols], a thread for two columns. */
__global__ void __launch_bounds__(256)
    pack_rows(const lp_cuda_shard *shard, lp_cuda_rows rows, const float *from, int cols, float *to, int stride)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int count = lp_rows_now(rows, shard), pairs = stride / 2, row = (int)(i / pairs), col = 2 * (int)(i % pairs);
    if (row >= (count + PACK - 1) / PACK * PACK)
        return;
    const float *source = from + (int64_t)row * cols + col;
    float x = row < count && col < cols ? source[0] : 0, y = row < count && col + 1 < cols ? source[1] : 0;
    to[i] = tile_pack_bf16(x, y);
}

/* z or items as products read them: packed where the precision is bf16, otherwise as they are. */
typedef struct loss_factor {
    const void *data;
    int stride, element; /* numbers from row to row; bytes of a number */
} loss_factor;

int padded(int count)
{
    return (count + PACK - 1) / PACK * PACK;
}

/* Bytes of a packed factor. */
size_t packed_size(const lp_cuda_run *run, const lp_value *value)
{
    size_t rows = (size_t)padded(lp_cuda_largest(run, value));
    return tile_bf16(run) ? (rows * (size_t)padded(value->cols) * 2 + 255) / 256 * 256 : 0;
}

loss_factor pack(const lp_cuda_run *run, const lp_value *value, const float *from, void *scratch)
{
    int cols = value->cols, stride = padded(cols);
    if (!tile_bf16(run))
        return {from, cols, 4};
    int64_t size = (int64_t)padded(lp_cuda_largest(run, value)) * (stride / 2);
    lp_cuda_rows rows = lp_cuda_rows_of(value);
    LP_LAUNCH(run, pack_rows, lp_blocks(size, 256), 256, 0, run->shard, rows, from, cols, (float *)scratch, stride);
    return {scratch, stride, 2};
}

product_operand operand_of(const loss_factor &factor, int first)
{
    const char *data = (const char *)factor.data + (int64_t)first * factor.stride * factor.element;
    return {data, factor.stride, 0, lp_vector_width((uintptr_t)data, factor.stride)};
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

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
    return task;
}

/* z items^T, for `count` items from `first` on. */
product_task scores_of(const lp_node *node, const loss_task &loss, const loss_factor &z, const loss_factor &items,
                       int first, int count)
{
    product_task task = {};
    task.shard = loss.shard;
    task.rows = product_whole(node->inputs[0]);
    task.cols = {loss.items, first, count, 0};
    task.depth = product_fixed(loss.cols);
    task.chunks = 1;
    task.a = operand_of(z, 0);
    task.b = operand_of(items, first);
    return task;
}

/* The gradient of a chunk of items, and its part of dz. */
typedef struct chunk_gradient {
    const lp_node *node;
    const lp_cuda_run *run;
    loss_task loss;
    loss_factor z, items;
    int rows, cols; /* of the largest shard */
    void *dscores;
    int64_t stride; /* of dscores */
    int splits;     /* of the rows, for ditems */
    float *partial, *partial_sums;
} chunk_gradient;

void add_to_rows(const chunk_gradient *g, int first, int count, float *dz, bool accumulate)
{
    product_task task = {};
    task.shard = g->loss.shard;
    task.rows = product_whole(g->node->inputs[0]);
    task.cols = product_fixed(g->cols);
    task.depth = {g->loss.items, first, count, 0};
    task.chunks = 1;
    task.a = {g->dscores, g->stride, 0, 4};
    task.b = operand_of(g->items, first);
    product_store store = {};
    store.to = dz;
    store.stride = g->cols;
    store.accumulate = accumulate;
    store.pairs = lp_vector_width((uintptr_t)dz, g->cols) > 1;
    product_launch<true, false, true>(g->run, task, store, 1, g->rows, g->cols);
}

void sum_by_item(const chunk_gradient *g, int first, int count)
{
    const lp_node *node = g->node;
    const lp_cuda_run *run = g->run;
    float *ditems = LP_OUTPUT(1), *dbias = LP_OUTPUT(2);
    bool split = g->splits > 1 || !ditems;
    product_task task = {};
    task.shard = g->loss.shard;
    task.rows = {g->loss.items, first, count, 0};
    task.cols = product_fixed(g->cols);
    task.depth = product_whole(node->inputs[0]);
    task.chunks = g->splits;
    task.a = {g->dscores, g->stride, 0, 4};
    task.b = operand_of(g->z, 0);
    int64_t step = (int64_t)count * g->cols;
    product_outer outer = {};
    outer.store.to = split ? g->partial : ditems + (int64_t)first * g->cols;
    outer.store.stride = g->cols;
    outer.store.chunk_step = step;
    outer.store.accumulate = split ? 0 : LP_ADDS(1);
    outer.store.pairs = lp_vector_width((uintptr_t)outer.store.to, g->cols) > 1;
    outer.sums = !dbias ? NULL : split ? g->partial_sums : dbias + first;
    outer.sums_step = count;
    outer.sums_adds = split ? 0 : LP_ADDS(2);
    product_launch<false, false, true>(run, task, outer, 1, count, g->cols);
    if (!split)
        return;
    if (ditems)
        LP_LAUNCH(run, add_splits, lp_blocks(step, 256), 256, 0, task.shard, task.rows, g->partial, step, g->cols,
                  g->splits, ditems + (int64_t)first * g->cols, LP_ADDS(1));
    if (dbias)
        LP_LAUNCH(run, add_splits, lp_blocks(count, 256), 256, 0, task.shard, task.rows, g->partial_sums,
                  (int64_t)count, 1, g->splits, dbias + first, LP_ADDS(2));
}

/* Bytes for `count` floats or less, aligned. */
size_t aligned(size_t count)
{
    return (count * sizeof(float) + 255) / 256 * 256;
}

void gradient_by_products(const lp_node *node, const lp_cuda_run *run, const loss_task &loss)
{
    chunk_gradient g = {};
    int items = lp_cuda_largest(run, node->inputs[1]), element = tile_bf16(run) ? 2 : 4;
    g.node = node;
    g.run = run;
    g.loss = loss;
    g.rows = lp_cuda_largest(run, node->inputs[0]);
    g.cols = loss.cols;
    int64_t most = (int64_t)DSCORES_SIZE / element / (g.rows < 1 ? 1 : g.rows) / product_large::cols;
    int chunk = most < 1                             ? product_large::cols
                : most * product_large::cols < items ? (int)most * product_large::cols
                                                     : items;
    g.stride = padded(chunk);
    g.splits = product_chunks(1, chunk, g.cols, g.rows);
    size_t dscores = aligned((size_t)g.rows * (size_t)g.stride * (size_t)element / 4);
    size_t partial = aligned((size_t)g.splits * (size_t)chunk * (size_t)g.cols);
    size_t sums = aligned((size_t)g.splits * (size_t)chunk), of_z = packed_size(run, node->inputs[0]);
    char *scratch = (char *)lp_cuda_scratch(run, dscores + partial + sums + of_z + packed_size(run, node->inputs[1]));
    if (!scratch)
        return;
    g.dscores = scratch;
    g.partial = (float *)(scratch + dscores);
    g.partial_sums = (float *)(scratch + dscores + partial);
    g.z = pack(run, node->inputs[0], loss.z, scratch + dscores + partial + sums);
    g.items = pack(run, node->inputs[1], loss.table, scratch + dscores + partial + sums + of_z);
    for (int first = 0; first < items; first += chunk) {
        int count = items - first < chunk ? items - first : chunk;
        store_dscores store = {loss, g.dscores, g.stride, first};
        product_task scores = scores_of(node, loss, g.z, g.items, first, count);
        scores.cols.unit = tile_bf16(run) ? PACK : 0; /* dscores are 0 beyond the last item, where copies read them */
        product_launch<true, true, true>(run, scores, store, 1, g.rows, count);
        if (LP_OUTPUT(0))
            add_to_rows(&g, first, count, LP_OUTPUT(0), first > 0 || LP_ADDS(0));
        if (LP_OUTPUT(1) || LP_OUTPUT(2))
            sum_by_item(&g, first, count);
    }
}

/* Gradient of one side on chip: rows of z, or items. */
void launch_side(const lp_cuda_run *run, loss_task *task, bool by_items, int64_t rows)
{
    product_extent all = {by_items ? task->items : task->targets, 0, INT32_MAX, 0};
    lp_cuda_softmax_tensor_backward(run, task, by_items, rows);
    if (task->splits == 1)
        return;
    if (task->out)
        LP_LAUNCH(run, add_splits, lp_blocks(rows * task->cols, 256), 256, 0, task->shard, all, task->partial,
                  task->capacity * task->cols, task->cols, task->splits, task->out, task->out_accumulate);
    if (task->dbias)
        LP_LAUNCH(run, add_splits, lp_blocks(rows, 256), 256, 0, task->shard, all, task->partial_sums, task->capacity,
                  1, task->splits, task->dbias, task->dbias_accumulate);
}

} // namespace

void lp_cuda_softmax_loss(const lp_node *node, const lp_cuda_run *run)
{
    row_states finish = {task_of(node, run)};
    loss_task *task = &finish.loss;
    int rows = lp_cuda_largest(run, node->inputs[0]), items = lp_cuda_largest(run, node->inputs[1]);
    bool on_chip = lp_cuda_softmax_tensor(run, task, rows, items);
    task->tile_cols = on_chip                            ? 0
                      : product_is_large(rows, items, 1) ? (int)product_large::cols
                                                         : (int)product_small::cols;
    int tiles = on_chip ? task->splits : (int)lp_blocks(items, task->tile_cols);
    task->capacity = rows;
    size_t part = (size_t)tiles * (size_t)rows;
    size_t states = aligned(2 * part + (size_t)rows), of_z = on_chip ? 0 : packed_size(run, node->inputs[0]);
    char *scratch = (char *)lp_cuda_scratch(run, states + of_z + (on_chip ? 0 : packed_size(run, node->inputs[1])));
    if (!scratch)
        return;
    task->partial = (float *)scratch;
    task->partial_sums = task->partial + part;
    task->losses = task->partial_sums + part;
    task->out = LP_OUTPUT(1);
    if (on_chip) {
        lp_cuda_softmax_tensor_forward(run, task, rows);
    } else {
        loss_factor z = pack(run, node->inputs[0], task->z, scratch + states);
        loss_factor table = pack(run, node->inputs[1], task->table, scratch + states + of_z);
        product_launch<true, true, true>(run, scores_of(node, *task, z, table, 0, INT32_MAX), finish, 1, rows, items);
    }
    loss_task with = *task;
    LP_LAUNCH(run, loss_merge_splits, lp_blocks(rows, WARPS), 32 * WARPS, 0, with);
    lp_cuda_loss_sum(run, node->inputs[0], task->losses, LP_OUTPUT(0));
}

void lp_cuda_softmax_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    loss_task by_rows = task_of(node, run);
    by_rows.lse = LP_INPUT(5);
    by_rows.dloss = LP_INPUT(6);
    loss_task by_items = by_rows;
    int64_t rows = lp_cuda_largest(run, node->inputs[0]), items = lp_cuda_largest(run, node->inputs[1]);
    int cols = node->inputs[0]->cols;
    if (!lp_cuda_softmax_tensor(run, &by_rows, rows, items) ||
        !lp_cuda_softmax_tensor(run, &by_items, items, rows)) {
        gradient_by_products(node, run, by_rows);
        return;
    }
    by_rows.capacity = rows;
    by_rows.out = LP_OUTPUT(0);
    by_rows.out_accumulate = LP_ADDS(0);
    by_items.capacity = items;
    by_items.out = LP_OUTPUT(1);
    by_items.out_accumulate = LP_ADDS(1);
    by_items.dbias = LP_OUTPUT(2);
    by_items.dbias_accumulate = LP_ADDS(2);
    /* The two passes run one after the other and share scratch. */
    size_t row_size = by_rows.splits > 1 ? (size_t)by_rows.splits * (size_t)rows * (size_t)cols : 0;
    size_t item_size =
        by_items.splits > 1 ? (size_t)by_items.splits * (size_t)items * ((size_t)cols + 1) : 0;
    size_t size = row_size > item_size ? row_size : item_size;
    float *scratch = size ? (float *)lp_cuda_scratch(run, size * sizeof(float)) : NULL;
    if (size && !scratch)
        return;
    by_rows.partial = by_items.partial = scratch;
    by_items.partial_sums = scratch ? scratch + (size_t)by_items.splits * (size_t)items * (size_t)cols : NULL;
    if (by_rows.out)
        launch_side(run, &by_rows, false, rows);
    if (by_items.out || by_items.dbias)
        launch_side(run, &by_items, true, items);
}
