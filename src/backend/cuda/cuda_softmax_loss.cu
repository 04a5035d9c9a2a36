/* cuda_softmax_loss.cu: softmax cross-entropy over a catalogue.
 *
 *     s(t, c) = z_t . item_c + bias_c + logq_c        loss_t = lse_t - s(t, target_t),  lse_t = log sum_c exp s(t, c)
 *     ds(t, c) = dloss (exp(s - lse_t) - [c = target_t])    dz = ds items    ditems = ds^T z    dbias = column sums
 *
 * z and the items are packed (cuda_product_packed.h). Forward, a product whose blocks keep the maximum and the sum of
 * exponentials of each row over their tiles; a second kernel merges the blocks in their order. The gradient takes the items
 * in chunks: a product computes the scores again and stores ds, packed, and two products follow. A chunk is as large as
 * scratch memory allows (DSCORES_SIZE), so that no catalogue needs more. Scores and lse are multiplied by log2 e inside of
 * the kernels.
 */
#include "backend/cuda/cuda_product_packed.h"

namespace
{

/* Bytes of the dscores of a chunk. The emulation takes several chunks of small catalogues. */
#ifdef LP_CUDA_EMULATED
enum { WARPS = 8, DSCORES_SIZE = 1 << 16 };
#else
enum { WARPS = 8, DSCORES_SIZE = 256 << 20 };
#endif

/* Costs of a part of a product (packed_parts): a part of the tiles of scores, and of the slabs of a gradient. */
enum { SCORES_EXTRA = 1, GRADIENT_EXTRA = 16 };

/* Below every score. Finite, so that no difference of two is NaN. */
#define LEAST_SCORE (-1e30f)

typedef struct loss_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows targets, items; /* rows of z, rows of the catalogue */
    int cols;                    /* of both */
    const float *z, *table, *bias, *logq, *lse, *dloss;
    const int32_t *target;
} loss_task;

__device__ float item_term(const loss_task &task, int item)
{
    return task.bias[item] + (task.logq ? task.logq[item] : 0);
}

/* ---- packed factors ------------------------------------------------------------------------------------------ */

typedef struct loss_factors {
    void *z, *items;
    float *terms; /* of items; LEAST_SCORE from the last on, up to a whole tile */
    int stride;   /* numbers from row to row */
    int rows, item_rows, width;
} loss_factors;

/* Rows of z, then of items. */
template <int precision>
__global__ void __launch_bounds__(LP_ROW_THREADS) pack_factors(const __grid_constant__ loss_task task, loss_factors to)
{
    int row = lp_row_index(), cols = task.cols;
    bool item = row >= to.rows;
    row -= item ? to.rows : 0;
    int count = lp_rows_now(item ? task.items : task.targets, task.shard);
    if (item && row < to.item_rows && threadIdx.x == 0) {
        float term = row < count ? item_term(task, row) * TILE_LOG2_E : LEAST_SCORE;
        to.terms[row] = term < LEAST_SCORE ? LEAST_SCORE : term; /* NaN stays */
    }
    if (row >= count)
        return;
    const float *from = (item ? task.table : task.z) + (int64_t)row * cols;
    constexpr int unit = precision == LP_PRECISION_BF16 ? 8 : 4;
    float4 *line = (float4 *)(item ? to.items : to.z) + (int64_t)row * (to.stride / unit);
    for (int v = (int)threadIdx.x; v < to.stride / unit; v += (int)blockDim.x) {
        float4 x = product_load(from + unit * v, cols - unit * v, to.width);
        if constexpr (precision == LP_PRECISION_BF16) {
            float4 y = product_load(from + unit * v + 4, cols - unit * v - 4, to.width);
            x = make_float4(tile_pack_bf16(x.x, x.y), tile_pack_bf16(x.z, x.w), tile_pack_bf16(y.x, y.y),
                            tile_pack_bf16(y.z, y.w));
        } else if constexpr (precision == LP_PRECISION_TF32) {
            x = make_float4(tile_round_tf32(x.x), tile_round_tf32(x.y), tile_round_tf32(x.z), tile_round_tf32(x.w));
        }
        line[v] = x;
    }
}

int round_up(int64_t count, int unit)
{
    return (int)((count + unit - 1) / unit * unit);
}

/* Hands out parts of scratch memory, or only adds up their sizes as long as there is none. */
typedef struct loss_scratch {
    char *at;
    size_t size;

    template <typename type> void take(type **to, size_t count, size_t element = sizeof(type))
    {
        *to = at ? (type *)(at + size) : NULL;
        size += (count * element + 255) / 256 * 256;
    }
} loss_scratch;

size_t element_size(const lp_cuda_run *run)
{
    return tile_bf16(run) ? 2 : 4;
}

void take_factors(const lp_node *node, const lp_cuda_run *run, loss_scratch *scratch, loss_factors *to)
{
    to->rows = lp_cuda_largest(run, node->inputs[0]);
    to->item_rows = round_up(lp_cuda_largest(run, node->inputs[1]), packed_wide::cols);
    to->stride = round_up(node->inputs[0]->cols, packed_unit(run));
    scratch->take((char **)&to->z, (size_t)to->rows * (size_t)to->stride, element_size(run));
    scratch->take((char **)&to->items, (size_t)to->item_rows * (size_t)to->stride, element_size(run));
    scratch->take(&to->terms, (size_t)to->item_rows);
}

void pack(const lp_cuda_run *run, const loss_task &task, loss_factors &to)
{
    dim3 block = lp_row_block(to.stride / packed_unit(run));
    to.width = lp_vector_width((uintptr_t)task.z | (uintptr_t)task.table, task.cols);
    product_with_precision(run, [&](auto precision) {
        LP_LAUNCH(run, pack_factors<decltype(precision)::value>, lp_blocks(to.rows + to.item_rows, block.y), block, 0,
                  task, to);
    });
}

/* From row `first` on. */
product_operand operand_of(const lp_cuda_run *run, const void *factor, int64_t stride, int first)
{
    return {(const char *)factor + (size_t)first * (size_t)stride * element_size(run), stride, 0, 4};
}

/* z items^T, for `count` items from `first` on. */
product_task scores_of(const lp_node *node, const lp_cuda_run *run, const loss_task &loss, const loss_factors &factors,
                       int first, int count)
{
    product_task task = {};
    task.shard = loss.shard;
    task.rows = product_whole(node->inputs[0]);
    task.cols = {loss.items, first, count};
    task.depth = product_fixed(loss.cols);
    task.chunks = 1;
    task.a = operand_of(run, factors.z, factors.stride, 0);
    task.b = operand_of(run, factors.items, factors.stride, first);
    return task;
}

int score_ranges(int rows, int items)
{
    return packed_parts(lp_blocks(rows, packed_wide::rows), (int)lp_blocks(items, packed_wide::cols), SCORES_EXTRA);
}

/* ---- forward ------------------------------------------------------------------------------------------------- */

/* Online softmax over some items of a row: maximum, and sum of exp2(score - maximum). */
typedef struct loss_state {
    float row_max, row_sum;
} loss_state;

__device__ loss_state merge(loss_state a, loss_state b)
{
    float row_max = fmaxf(a.row_max, b.row_max);
    return {row_max, a.row_sum * tile_exp2(a.row_max - row_max) + b.row_sum * tile_exp2(b.row_max - row_max)};
}

__device__ loss_state merge_lanes(loss_state mine, int lanes)
{
#pragma unroll
    for (int mask = 1; mask < lanes; mask *= 2)
        mine = merge(
            mine, {__shfl_xor_sync(0xFFFFFFFFu, mine.row_max, mask), __shfl_xor_sync(0xFFFFFFFFu, mine.row_sum, mask)});
    return mine;
}

/* Leaves the state of each row over the tiles of a block. */
typedef struct row_states : product_finish {
    loss_state *to; /* [ranges x capacity] */
    int64_t capacity;
    loss_state state[2 * packed_wide::down]; /* of the lane's own columns */

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &, const product_place &, product_sums<shape> &sums, float *,
                        const float *terms)
    {
        tile_lane me = tile_lane_now();
        const float *term = terms + me.warp % shape::warps_across * shape::own_cols + 2 * me.member;
        float2 both[shape::across];
#pragma unroll
        for (int j = 0; j < shape::across; j++)
            both[j] = *(const float2 *)(term + 8 * j);
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            float row_max = state[i].row_max;
#pragma unroll
            for (int j = 0; j < shape::across; j++) {
                float *x = sums.pair(i, j);
                x[0] = fmaf(x[0], TILE_LOG2_E, both[j].x);
                x[1] = fmaf(x[1], TILE_LOG2_E, both[j].y);
                row_max = fmaxf(row_max, fmaxf(x[0], x[1]));
            }
            float sum = state[i].row_sum * tile_exp2(state[i].row_max - row_max);
#pragma unroll
            for (int j = 0; j < shape::across; j++)
                sum += tile_exp2(sums.pair(i, j)[0] - row_max) + tile_exp2(sums.pair(i, j)[1] - row_max);
            state[i] = {row_max, sum};
        }
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void done(const product_place &place, float *memory) const
    {
        tile_lane me = tile_lane_now();
        loss_state *all = (loss_state *)memory; /* [warps across x rows] */
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            loss_state row = merge_lanes(state[i], 4);
            int r = me.warp / shape::warps_across * shape::own_rows + product_row<precision, a_deep, shape>(i);
            if (me.member == 0)
                all[me.warp % shape::warps_across * shape::rows + r] = row;
        }
        __syncthreads();
        static_assert(shape::threads >= shape::rows, "a thread for each row");
        int r = (int)threadIdx.x;
        if (r >= shape::rows || place.row + r >= place.rows)
            return;
        loss_state row = all[r];
#pragma unroll
        for (int i = 1; i < shape::warps_across; i++)
            row = merge(row, all[i * shape::rows + r]);
        to[blockIdx.x * capacity + place.row + r] = row;
    }
} row_states;

/* One warp for each row: merges its ranges and computes the loss at its target. */
__global__ void __launch_bounds__(32 * WARPS)
    merge_ranges(const __grid_constant__ loss_task task, const loss_state *states, int64_t capacity, int ranges,
                 float *lse, float *losses)
{
    int64_t t = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    int lane = (int)threadIdx.x & 31, cols = task.cols;
    if (t >= lp_rows_now(task.targets, task.shard))
        return;
    int target = task.target[t];
    float dot = 0;
    for (int c = lane; c < cols; c += 32)
        dot += task.z[t * cols + c] * task.table[(int64_t)target * cols + c];
    dot = lp_warp_sum(dot) + item_term(task, target);
    loss_state all = {LEAST_SCORE, 0};
    for (int i = lane; i < ranges; i += 32)
        all = merge(all, states[i * capacity + t]);
    all = merge_lanes(all, 32);
    if (lane == 0) {
        float sum = TILE_LN_2 * all.row_max + logf(all.row_sum);
        lse[t] = sum;
        losses[t] = sum - dot;
    }
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

/* Stores the dscores of a chunk of items, [rows x stride], with zeros up to whole tiles. */
typedef struct store_dscores : product_finish {
    loss_task loss;
    void *to; /* bf16 where that is the precision, otherwise float */
    int64_t stride;
    int first; /* item of the chunk */

    /* Packs 32 rows of the warp's tile at a time in shared memory, to store whole lines. */
    template <typename shape>
    __device__ void store_packed(int row, int rows, int col, product_sums<shape> &sums, float *memory) const
    {
        constexpr int width = shape::own_cols / 2, line = width + 4, per_line = width / 4, group = 32;
        static_assert(shape::warps * group * line <= shape::cols * (32 + 4), "fits a slab of B");
        tile_lane me = tile_lane_now();
        float *mine = memory + me.warp * group * line;
        __syncthreads(); /* the slab has been read */
#pragma unroll
        for (int part = 0; part < shape::own_rows / group; part++) {
#pragma unroll
            for (int i = 0; i < group / 8; i++)
#pragma unroll
                for (int j = 0; j < shape::across; j++) {
                    const float *ds = sums.pair(group / 8 * part + i, j);
                    mine[(8 * i + me.group) * line + 4 * j + me.member] = tile_pack_bf16(ds[0], ds[1]);
                }
            __syncwarp();
#pragma unroll
            for (int i = me.lane / per_line; i < group; i += 32 / per_line) {
                int r = row + group * part + i;
                if (r < rows)
                    ((float4 *)to)[(r * stride + col) / 8 + me.lane % per_line] =
                        *(const float4 *)(mine + i * line + 4 * (me.lane % per_line));
            }
            __syncwarp();
        }
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &sums, float *memory,
                        const float *terms) const
    {
        tile_lane me = tile_lane_now();
        float scale = *loss.dloss;
        int row = place.row + me.warp / shape::warps_across * shape::own_rows;
        int col = me.warp % shape::warps_across * shape::own_cols;
        float2 both[shape::across];
#pragma unroll
        for (int j = 0; j < shape::across; j++)
            both[j] = *(const float2 *)(terms + col + 8 * j + 2 * me.member);
        col += place.col;
#pragma unroll
        for (int i = 0; i < 2 * shape::down; i++) {
            int r = row + product_row<precision, a_deep, shape>(i);
            bool exists = r < place.rows;
            float lse = exists ? loss.lse[r] * TILE_LOG2_E : 0;
            int target = exists ? loss.target[r] - first - col - 2 * me.member : -1;
#pragma unroll
            for (int j = 0; j < shape::across; j++) {
                float *ds = sums.pair(i, j);
                float2 p = {tile_exp2(fmaf(ds[0], TILE_LOG2_E, both[j].x - lse)),
                            tile_exp2(fmaf(ds[1], TILE_LOG2_E, both[j].y - lse))};
                ds[0] = scale * (target == 8 * j ? p.x - 1 : p.x);
                ds[1] = scale * (target == 8 * j + 1 ? p.y - 1 : p.y);
                if (precision == LP_PRECISION_TF32) {
                    ds[0] = tile_round_tf32(ds[0]);
                    ds[1] = tile_round_tf32(ds[1]);
                }
                if (precision != LP_PRECISION_BF16 && exists)
                    *(float2 *)((float *)to + r * stride + col + 8 * j + 2 * me.member) = make_float2(ds[0], ds[1]);
            }
        }
        if constexpr (precision == LP_PRECISION_BF16)
            store_packed(row, place.rows, col, sums, memory);
    }
} store_dscores;

/* A matrix or the vector of sums beside it: the sum over [parts x step], in their order. */
typedef struct parts_sum {
    const float *parts;
    float *out; /* NULL: nothing */
    int64_t step;
    int cols, accumulate;
} parts_sum;

__device__ void add_element(const parts_sum &sum, int parts, int64_t i, int rows)
{
    if (!sum.out || i >= (int64_t)rows * sum.cols)
        return;
    float total = 0;
    for (int part = 0; part < parts; part++)
        total += sum.parts[part * sum.step + i];
    lp_store(sum.out + i, total, sum.accumulate);
}

__global__ void __launch_bounds__(256)
    add_parts(const lp_cuda_shard *shard, product_extent rows, int parts, const __grid_constant__ parts_sum matrix,
              const __grid_constant__ parts_sum vector)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int count = product_count(rows, shard);
    if (i < matrix.step)
        add_element(matrix, parts, i, count);
    else
        add_element(vector, parts, i - matrix.step, count);
}

typedef struct loss_gradient {
    loss_task loss;
    loss_factors factors;
    int chunk;     /* items of a chunk */
    void *dscores; /* [rows x chunk] */
    float *partial;
} loss_gradient;

/* Parts of the depth of dz, or of ditems and dbias. */
int gradient_parts(const lp_cuda_run *run, int rows, int cols, int depth)
{
    int tile_cols = cols > packed_narrow::cols ? (int)packed_wide::cols : (int)packed_narrow::cols;
    return packed_parts((int64_t)lp_blocks(rows, packed_wide::rows) * lp_blocks(cols, tile_cols),
                        (int)lp_blocks(depth, 128 / (int)element_size(run)), GRADIENT_EXTRA);
}

/* Floats of the parts: each has a matrix and a vector. */
size_t partial_size(const lp_cuda_run *run, int rows, int cols, int depth)
{
    return (size_t)gradient_parts(run, rows, cols, depth) * (size_t)rows * (size_t)(cols + 1);
}

/* dz += ds items, or ditems and dbias of a chunk of items. */
template <bool by_items>
void multiply_dscores(const lp_node *node, const lp_cuda_run *run, const loss_gradient &g, int first, int count)
{
    int cols = g.loss.cols, rows = by_items ? count : g.factors.rows, depth = by_items ? g.factors.rows : count;
    float *to = LP_OUTPUT(by_items), *sums = by_items ? LP_OUTPUT(2) : NULL;
    int adds = by_items ? LP_ADDS(1) : first > 0 || LP_ADDS(0);
    if (!to && !sums)
        return;
    product_extent items = {g.loss.items, first, count}, targets = product_whole(node->inputs[0]);
    product_task task = {};
    task.shard = g.loss.shard;
    task.rows = by_items ? items : targets;
    task.depth = by_items ? targets : items;
    task.cols = product_fixed(cols);
    task.chunks = gradient_parts(run, rows, cols, depth);
    task.a = operand_of(run, g.dscores, g.chunk, 0);
    task.b = operand_of(run, by_items ? g.factors.z : g.factors.items, g.factors.stride, by_items ? 0 : first);
    bool parts = task.chunks > 1;
    parts_sum matrix = {g.partial, to, (int64_t)rows * cols, cols, adds};
    parts_sum vector = {g.partial + task.chunks * matrix.step, sums, rows, 1, sums ? LP_ADDS(2) : 0};
    if (by_items) {
        matrix.out = to ? to + (int64_t)first * cols : NULL;
        vector.out = sums ? sums + first : NULL;
    }
    product_outer outer = {};
    outer.store.to = !to ? NULL : parts ? g.partial : matrix.out;
    outer.store.stride = cols;
    outer.store.chunk_step = matrix.step;
    outer.store.accumulate = parts ? 0 : adds;
    outer.store.pairs = lp_vector_width((uintptr_t)outer.store.to, cols) > 1;
    outer.sums = !sums ? NULL : parts ? (float *)vector.parts : vector.out;
    outer.sums_step = vector.step;
    outer.sums_adds = parts ? 0 : vector.accumulate;
    if (cols > packed_narrow::cols)
        packed_launch<!by_items, false, packed_wide>(run, task, NULL, outer, rows,
                                                     (int)lp_blocks(cols, packed_wide::cols));
    else
        packed_launch<!by_items, false, packed_narrow>(run, task, NULL, outer, rows, 1);
    if (parts)
        LP_LAUNCH(run, add_parts, lp_blocks(matrix.step + vector.step, 256), 256, 0, task.shard, task.rows, task.chunks,
                  matrix, vector);
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
    return task;
}

} // namespace

void lp_cuda_softmax_loss(const lp_node *node, const lp_cuda_run *run)
{
    loss_task task = task_of(node, run);
    loss_factors factors = {};
    row_states finish = {};
    float *losses;
    int rows = lp_cuda_largest(run, node->inputs[0]), items = lp_cuda_largest(run, node->inputs[1]);
    int ranges = score_ranges(rows, items);
    finish.capacity = rows;
    for (loss_state &state : finish.state)
        state = {LEAST_SCORE, 0};
    loss_scratch scratch = {};
    for (int pass = 0; pass < 2; pass++) {
        take_factors(node, run, &scratch, &factors);
        scratch.take(&finish.to, (size_t)ranges * (size_t)rows);
        scratch.take(&losses, (size_t)rows);
        if (pass == 0 && !(scratch.at = (char *)lp_cuda_scratch(run, scratch.size)))
            return;
        scratch.size = 0;
    }
    pack(run, task, factors);
    packed_launch<true, true, packed_wide>(run, scores_of(node, run, task, factors, 0, items), factors.terms, finish,
                                           rows, ranges);
    LP_LAUNCH(run, merge_ranges, lp_blocks(rows, WARPS), 32 * WARPS, 0, task, finish.to, finish.capacity, ranges,
              LP_OUTPUT(1), losses);
    lp_cuda_loss_sum(run, node->inputs[0], losses, LP_OUTPUT(0));
}

void lp_cuda_softmax_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    loss_gradient g = {};
    g.loss = task_of(node, run);
    g.loss.lse = LP_INPUT(5);
    g.loss.dloss = LP_INPUT(6);
    int rows = lp_cuda_largest(run, node->inputs[0]), items = lp_cuda_largest(run, node->inputs[1]);
    int64_t most = (int64_t)(DSCORES_SIZE / element_size(run)) / (rows < 1 ? 1 : rows) / packed_wide::cols;
    int64_t tiles = lp_blocks(items, packed_wide::cols);
    g.chunk = (int)(most < 1 ? 1 : most < tiles ? most : tiles) * packed_wide::cols;
    int count = items < g.chunk ? items : g.chunk;
    size_t of_z = partial_size(run, rows, g.loss.cols, count), of_items = partial_size(run, count, g.loss.cols, rows);
    loss_scratch scratch = {};
    for (int pass = 0; pass < 2; pass++) {
        take_factors(node, run, &scratch, &g.factors);
        scratch.take((char **)&g.dscores, (size_t)rows * (size_t)g.chunk, element_size(run));
        scratch.take(&g.partial, of_z > of_items ? of_z : of_items);
        if (pass == 0 && !(scratch.at = (char *)lp_cuda_scratch(run, scratch.size)))
            return;
        scratch.size = 0;
    }
    pack(run, g.loss, g.factors);
    for (int first = 0; first < items; first += g.chunk, count = items - first < count ? items - first : count) {
        store_dscores store = {};
        store.loss = g.loss;
        store.to = g.dscores;
        store.stride = g.chunk;
        store.first = first;
        packed_launch<true, true, packed_wide>(run, scores_of(node, run, g.loss, g.factors, first, count),
                                               g.factors.terms + first, store, rows, score_ranges(rows, count));
        multiply_dscores<false>(node, run, g, first, count);
        multiply_dscores<true>(node, run, g, first, count);
    }
}
