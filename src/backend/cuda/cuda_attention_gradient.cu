/* cuda_attention_gradient.cu: the gradient of attention, without a matrix of pairs and without sums whose order is left to chance.
 *
 * With p the shares, f what dropout makes of them, and D_q = dout_q . out_q + dtime_out_q . time_out_q:
 *
 *     dp(q, i) = dout_q . value_i + dtime_out_q . basis_i
 *     ds(q, i) = p (f dp - D_q)
 *
 *     dquery_q = scale sum_i ds key_i        dtime_query_q = scale sum_i ds basis_i
 *     dkey_i = scale sum_q ds query_q        dvalue_i = sum_q f p dout_q
 *     dbasis_i = scale sum_q ds time_query_q + sum_q f p dtime_out_q, over all heads
 *
 * One kernel makes D. In the next, half of the blocks take a tile of keys each and go over its queries, and the others take a tile of
 * queries and go over its keys: both make the shares again from the log of each row's sum. Making them twice costs two more products
 * than adding to dquery from many blocks would, and nothing waits for anything.
 */
#include "backend/cuda/cuda_attention.h"

namespace
{

typedef struct backward_task {
    attention_form form;
    const lp_cuda_shard *shard;
    const int32_t *segment;
    const float *query, *key, *value, *time_query, *basis, *log_sum, *out, *dout, *time_out, *dtime_out;
    float *inner; /* [T x H]: D */
    float *dquery, *dkey, *dvalue, *dtime_query, *dbasis;
    int adds; /* bit i: output i is added to */
} backward_task;

/* ---- D ------------------------------------------------------------------------------------------------------- */

__device__ float lane_dot(const float *a, const float *b, int count)
{
    float sum = 0;
    for (int c = (int)threadIdx.x & 31; c < count; c += 32)
        sum += a[c] * b[c];
    return sum;
}

/* A warp for each token and head. */
__global__ void __launch_bounds__(256) inner_products(backward_task task)
{
    const attention_form *form = &task.form;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) >> 5, token = i / form->heads;
    if (token >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    attention_head head = attention_head_of(form, (int)(i % form->heads));
    int64_t mine = token * head.stride + head.first, extra = token * head.extra_stride + head.extra_first;
    float sum = lane_dot(task.dout + mine, task.out + mine, form->cols);
    if (form->extra)
        sum += lane_dot(task.dtime_out + extra, task.time_out + extra, form->extra);
    sum = lp_warp_sum(sum);
    if ((threadIdx.x & 31) == 0)
        task.inner[i] = sum;
}

/* ---- what both sides share ----------------------------------------------------------------------------------- */

/* The parts of shared memory, in floats from its beginning; the last is its size. A block has the tokens of its tile and those of a
 * step, in either role; log_sum and inner belong to whichever are queries. */
typedef struct backward_layout {
    int keys, queries, shares, slopes, start, end, log_sum, inner, bits, size;
} backward_layout;

__host__ __device__ backward_layout backward_layout_of(const attention_form *form, bool by_keys)
{
    backward_layout at;
    int keys = by_keys ? form->rows : form->steps, queries = by_keys ? form->steps : form->rows;
    at.keys = 0;
    at.queries = at.keys + keys * form->key_stride;
    at.slopes = at.queries + queries * form->query_stride;
    at.shares = at.slopes + form->rows * form->share_stride;
    at.start = at.shares + (by_keys ? form->rows * form->share_stride : 0);
    at.end = at.start + form->rows;
    at.log_sum = at.end + form->rows;
    at.inner = at.log_sum + queries;
    at.bits = at.inner + queries;
    at.size = at.bits + (form->threshold ? (queries * (keys / 8 + 1) + 3) / 4 : 0);
    return at;
}

/* Tokens [first, first + present) as queries with the gradients of their outputs, their log sums and D. */
template <bool tensor>
__device__ void load_queries(const backward_task *task, attention_head head, float *memory, backward_layout parts,
                             int first, int present, int rows)
{
    const attention_form *form = &task->form;
    float *to = memory + parts.queries;
    int stride = form->query_stride, after = form->cols_wide + form->extra_wide;
    attention_load_queries<tensor>(to, form, head, task->query, task->time_query, first, present, rows);
    if (form->extra)
        tile_load<tensor>(to + after, stride, rows, form->extra_wide,
                          task->dtime_out + first * head.extra_stride + head.extra_first, head.extra_stride, present,
                          form->extra, 1);
    tile_load<tensor>(to + after + form->extra_wide, stride, rows, form->cols_wide,
                      task->dout + first * head.stride + head.first, head.stride, present, form->cols, 1);
    for (int r = (int)threadIdx.x; r < rows; r += (int)blockDim.x) {
        int64_t i = (int64_t)(first + r) * form->heads + head.number;
        memory[parts.log_sum + r] = r < present ? task->log_sum[i] : 0;
        memory[parts.inner + r] = r < present ? task->inner[i] : 0;
    }
}

/* Scores and dp of the warp's tiles: rows of a tile, columns of a step. */
template <bool tensor, int tiles>
__device__ void make_pairs(const attention_form *form, attention_range range, const float *rows, int row_stride,
                           const float *cols, int col_stride, int row_second, int col_second, int warp_col,
                           float (&score)[tiles][4], float (&slope)[tiles][4])
{
    int depth = form->cols_wide + form->extra_wide;
#pragma unroll
    for (int j = 0; j < tiles; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            score[j][i] = slope[j][i] = 0;
    const float *mine = cols + 8 * warp_col * col_stride;
    tile_rows<tensor>(score, range.from, range.count, rows, row_stride, mine, col_stride, 8 * form->warp_cols, depth);
    tile_rows<tensor>(slope, range.from, range.count, rows + row_second, row_stride, mine + col_second, col_stride,
                      8 * form->warp_cols, depth);
}

/* From score and dp of a pair: f p, and ds. */
__device__ float2 pair_of(float score, float slope, float log_sum, float inner, float factor)
{
    float p = __expf(score - log_sum);
    float2 both = {factor * p, p * (factor * slope - inner)};
    return both;
}

/* The warp's tiles of 8 columns of its sums. */
typedef struct columns {
    int first, count;
} columns;

__device__ columns columns_of(int all, int tiles, int warp_col)
{
    columns mine = {warp_col * tiles, max(min(all - warp_col * tiles, tiles), 0)};
    return mine;
}

/* ---- a tile of keys ------------------------------------------------------------------------------------------ */

/* Shares and slopes of the pairs of the warp's tiles, keys by queries. */
template <bool tensor, int tiles>
__device__ void write_key_pairs(const attention_form *form, attention_range range, const attention_bits *bits,
                                int first_key, int first_query, int group_row, int warp_col, const int *end,
                                const float *log_sum, const float *inner, const float (&score)[tiles][4],
                                const float (&slope)[tiles][4], float *shares, float *slopes)
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
        if (j < range.from || j >= range.count)
            continue;
        int col = 8 * (j * form->warp_cols + warp_col) + 2 * me.member;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = group_row + me.group + 8 * half, key = first_key + row;
            float share[2], ds[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int query = first_query + col + i;
                float2 pair = {0, 0};
                if (query >= key && query < end[row])
                    pair = pair_of(score[j][2 * half + i], slope[j][2 * half + i], log_sum[col + i], inner[col + i],
                                   attention_factor(bits, form, first_query, first_key, query, key));
                share[i] = tile_number<tensor>(pair.x);
                ds[i] = tile_number<tensor>(pair.y);
            }
            int place = (me.group + 8 * half) * form->share_stride + col;
            *(float2 *)(shares + place) = make_float2(share[0], share[1]);
            *(float2 *)(slopes + place) = make_float2(ds[0], ds[1]);
        }
    }
}

/* Sums of keys and values are of one head, and begin again with the next; those of the basis are of all. They go through the shared
 * memory of the keys, which stand in the same order. */
template <int tiles>
__device__ void store_keys(const backward_task *task, attention_head head, float *keys, int first, int present,
                           int group_row, columns mine, float (&sum)[tiles][4])
{
    const attention_form *form = &task->form;
    int stride = form->key_stride, wide = form->cols_wide, after = wide + form->extra_wide;
    __syncthreads();
    tile_put(keys + group_row * stride + 8 * mine.first, stride, mine.count, sum);
    __syncthreads();
    if (task->dkey)
        tile_store(task->dkey + first * head.stride + head.first, head.stride, present, form->cols, keys, stride, 1,
                   task->adds & 2);
    if (task->dvalue)
        tile_store(task->dvalue + first * head.stride + head.first, head.stride, present, form->cols, keys + after,
                   stride, 1, task->adds & 4);
    if (task->dbasis && head.number == form->heads - 1)
        tile_store(task->dbasis + (int64_t)first * form->extra, form->extra, present, form->extra, keys + wide, stride,
                   1, task->adds & 16);
#pragma unroll
    for (int j = 0; j < tiles; j++)
        if (8 * (mine.first + j) < wide || 8 * (mine.first + j) >= after)
            sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0;
}

template <bool tensor, int score_tiles, int out_tiles> __device__ void by_keys(const backward_task *task, float *memory)
{
    const attention_form *form = &task->form;
    backward_layout parts = backward_layout_of(form, true);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = (int)blockIdx.x * form->rows;
    if (first >= tokens)
        return;
    int present = min(form->rows, tokens - first), wide = form->cols_wide, after = wide + form->extra_wide;
    int *start = (int *)(memory + parts.start), *end = (int *)(memory + parts.end);
    attention_spans(task->shard, task->segment, first, form->rows, start, end);
    __syncthreads();

    int warp = tile_lane_now().warp, group_row = warp / form->warp_cols * 16, warp_col = warp % form->warp_cols;
    int query_end = end[form->rows - 1], group_end = end[group_row + 15];
    attention_bits bits = {(unsigned char *)(memory + parts.bits), form->rows / 8 + 1, start, first, form->rows};
    columns mine = columns_of((wide + after) / 8, out_tiles, warp_col);
    const float *keys = memory + parts.keys + group_row * form->key_stride, *queries = memory + parts.queries;
    float *shares = memory + parts.shares + group_row * form->share_stride;
    float *slopes = memory + parts.slopes + group_row * form->share_stride;
    float sum[out_tiles][4] = {};
    for (int number = 0; number < form->heads; number++) {
        attention_head head = attention_head_of(form, number);
        for (int query = first; query < query_end; query += form->steps) {
            __syncthreads();
            if (query == first)
                attention_load_keys<tensor>(memory + parts.keys, form, head, task->key, task->basis, task->value, first,
                                            present, form->rows);
            load_queries<tensor>(task, head, memory, parts, query, min(form->steps, query_end - query), form->steps);
            if (form->threshold)
                attention_bits_draw(&bits, form, task->shard, number, query, min(form->steps, query_end - query),
                                    first);
            __syncthreads();
            attention_range range = attention_range_of(form, query, first + group_row, group_end, warp_col);
            bool seen = range.low < range.high;
            if (seen) {
                float score[score_tiles][4], slope[score_tiles][4];
                make_pairs<tensor>(form, range, keys, form->key_stride, queries, form->query_stride, wide, after,
                                   warp_col, score, slope);
                write_key_pairs<tensor>(form, range, &bits, first, query, group_row, warp_col, end,
                                        memory + parts.log_sum, memory + parts.inner, score, slope, shares, slopes);
            }
            __syncthreads();
            if (seen) {
                const float *from = queries + 8 * range.low * form->query_stride + 8 * mine.first;
                int depth = 8 * (range.high - range.low), low = 8 * range.low;
                tile_columns<tensor>(sum, 0, min(mine.count, after / 8 - mine.first), slopes + low, form->share_stride,
                                     from, form->query_stride, depth);
                tile_columns<tensor>(sum, wide / 8 - mine.first, mine.count, shares + low, form->share_stride,
                                     from + form->extra_wide, form->query_stride, depth);
            }
        }
        store_keys(task, head, memory + parts.keys, first, present, group_row, mine, sum);
    }
}

/* ---- a tile of queries --------------------------------------------------------------------------------------- */

/* Slopes of the pairs of the warp's tiles, queries by keys. */
template <bool tensor, int tiles>
__device__ void write_query_pairs(const attention_form *form, attention_range range, const attention_bits *bits,
                                  int first_query, int present, int first_key, int group_row, int warp_col,
                                  const int *start, const float *log_sum, const float *inner,
                                  const float (&score)[tiles][4], const float (&slope)[tiles][4], float *slopes)
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < tiles; j++) {
        if (j < range.from || j >= range.count)
            continue;
        int col = 8 * (j * form->warp_cols + warp_col) + 2 * me.member;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = group_row + me.group + 8 * half, query = first_query + row;
            float ds[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int key = first_key + col + i;
                float2 pair = {0, 0};
                if (row < present && key >= start[row] && key <= query)
                    pair = pair_of(score[j][2 * half + i], slope[j][2 * half + i], log_sum[row], inner[row],
                                   attention_factor(bits, form, first_query, first_key, query, key));
                ds[i] = tile_number<tensor>(pair.y);
            }
            *(float2 *)(slopes + (me.group + 8 * half) * form->share_stride + col) = make_float2(ds[0], ds[1]);
        }
    }
}

/* Through the shared memory of the queries. */
template <int tiles>
__device__ void store_queries(const backward_task *task, attention_head head, float *queries, int first, int present,
                              int group_row, columns mine, const float (&sum)[tiles][4])
{
    const attention_form *form = &task->form;
    int stride = form->query_stride;
    __syncthreads();
    tile_put(queries + group_row * stride + 8 * mine.first, stride, mine.count, sum);
    __syncthreads();
    if (task->dquery)
        tile_store(task->dquery + first * head.stride + head.first, head.stride, present, form->cols, queries, stride,
                   form->scale, task->adds & 1);
    if (task->dtime_query)
        tile_store(task->dtime_query + first * head.extra_stride + head.extra_first, head.extra_stride, present,
                   form->extra, queries + form->cols_wide, stride, form->scale, task->adds & 8);
}

template <bool tensor, int score_tiles, int out_tiles>
__device__ void by_queries(const backward_task *task, float *memory, int number)
{
    const attention_form *form = &task->form;
    backward_layout parts = backward_layout_of(form, false);
    attention_head head = attention_head_of(form, number);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = (int)blockIdx.x * form->rows;
    if (first >= tokens)
        return;
    int present = min(form->rows, tokens - first), wide = form->cols_wide, after = wide + form->extra_wide;
    int *start = (int *)(memory + parts.start);
    attention_spans(task->shard, task->segment, first, form->rows, start, NULL);
    load_queries<tensor>(task, head, memory, parts, first, present, form->rows);
    __syncthreads();

    int warp = tile_lane_now().warp, group_row = warp / form->warp_cols * 16, warp_col = warp % form->warp_cols;
    int last = first + present - 1, group_first = start[group_row],
        group_end = min(first + group_row + 16, first + present);
    attention_bits bits = {(unsigned char *)(memory + parts.bits), form->steps / 8 + 1, start, first, form->rows};
    columns mine = columns_of(after / 8, out_tiles, warp_col);
    const float *queries = memory + parts.queries + group_row * form->query_stride, *keys = memory + parts.keys;
    float *slopes = memory + parts.slopes + group_row * form->share_stride;
    float sum[out_tiles][4] = {};
    for (int key = start[0]; key <= last; key += form->steps) {
        __syncthreads();
        attention_load_keys<tensor>(memory + parts.keys, form, head, task->key, task->basis, task->value, key,
                                    min(form->steps, last + 1 - key), form->steps);
        if (form->threshold)
            attention_bits_draw(&bits, form, task->shard, number, first, present, key);
        __syncthreads();
        attention_range range = attention_range_of(form, key, group_first, group_end, warp_col);
        bool seen = range.low < range.high;
        if (seen) {
            float score[score_tiles][4], slope[score_tiles][4];
            make_pairs<tensor>(form, range, queries, form->query_stride, keys, form->key_stride, after, wide, warp_col,
                               score, slope);
            write_query_pairs<tensor>(form, range, &bits, first, present, key, group_row, warp_col, start,
                                      memory + parts.log_sum, memory + parts.inner, score, slope, slopes);
        }
        __syncthreads();
        if (seen)
            tile_columns<tensor>(sum, 0, mine.count, slopes + 8 * range.low, form->share_stride,
                                 keys + 8 * range.low * form->key_stride + 8 * mine.first, form->key_stride,
                                 8 * (range.high - range.low));
    }
    store_queries(task, head, memory + parts.queries, first, present, group_row, mine, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Row 0 of the grid takes keys, the others the queries of a head each. */
template <bool tensor, int score_tiles, int out_tiles>
__global__ void __launch_bounds__(256, out_tiles <= 7 ? 2 : 1)
    attention_backward(const __grid_constant__ backward_task task)
{
    LP_SHARED(float, memory);
    if (blockIdx.y == 0)
        by_keys<tensor, score_tiles, out_tiles>(&task, memory);
    else
        by_queries<tensor, score_tiles, out_tiles>(&task, memory, (int)blockIdx.y - 1);
}

size_t shared_size(const attention_form *form)
{
    int keys = backward_layout_of(form, true).size, queries = backward_layout_of(form, false).size;
    return (size_t)(keys > queries ? keys : queries) * sizeof(float);
}

/* Tiles for the widths at hand. */
void choose_tiles(attention_form *form, int *out_tiles)
{
    int tiles = (2 * form->cols_wide + form->extra_wide) / 8;
    *out_tiles = tiles <= 28 ? 7 : tiles <= 56 ? 14 : 16;
    form->warp_rows = tiles <= 56 ? 2 : 1;
    form->warp_cols = tiles <= 56 ? 4 : 8;
    form->rows = 16 * form->warp_rows;
    form->key_stride = tile_stride(2 * form->cols_wide + form->extra_wide);
    form->query_stride = tile_stride(2 * form->cols_wide + 2 * form->extra_wide);
    for (form->steps = 64; form->steps >= 8; form->steps /= 2) {
        form->share_stride = tile_share_stride(form->steps);
        size_t size = shared_size(form);
        if (size <= ATTENTION_HALF_SHARED || (form->steps <= 32 && size <= ATTENTION_MOST_SHARED))
            return;
    }
    form->steps = 8;
}

template <bool tensor> void launch(const lp_cuda_run *run, const backward_task *task, int64_t tokens, int out_tiles)
{
    const attention_form *form = &task->form;
    backward_task with = *task;
    dim3 grid(lp_blocks(tokens, form->rows), 1 + (unsigned)form->heads);
    unsigned threads = 32u * (unsigned)(form->warp_rows * form->warp_cols);
    if (out_tiles == 7)
        LP_LAUNCH(run, (attention_backward<tensor, 2, 7>), grid, threads, shared_size(form), with);
    else if (out_tiles == 14)
        LP_LAUNCH(run, (attention_backward<tensor, 2, 14>), grid, threads, shared_size(form), with);
    else
        LP_LAUNCH(run, (attention_backward<tensor, 1, 16>), grid, threads, shared_size(form), with);
}

/* Whether two of the outputs are the same matrix, as where a query is its own key. */
bool met(float *const (&outputs)[5])
{
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            if (outputs[i] && outputs[i] == outputs[k])
                return true;
    return false;
}

void give(backward_task *task, float *const (&outputs)[5], int mask)
{
    float **places[] = {&task->dquery, &task->dkey, &task->dvalue, &task->dtime_query, &task->dbasis};
    for (int i = 0; i < 5; i++)
        *places[i] = mask >> i & 1 ? outputs[i] : NULL;
}

} // namespace

void lp_cuda_attention_gradient(const lp_node *node, const lp_cuda_run *run)
{
    backward_task task = {};
    int out_tiles;
    task.form = attention_form_of(node);
    choose_tiles(&task.form, &out_tiles);
    task.shard = run->shard;
    task.segment = run->segment;
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    task.inner = (float *)lp_cuda_scratch(run, (size_t)tokens * (size_t)task.form.heads * sizeof(float));
    if (!task.inner)
        return;
    task.query = LP_INPUT(0);
    task.key = LP_INPUT(1);
    task.value = LP_INPUT(2);
    task.time_query = LP_INPUT(3);
    task.basis = LP_INPUT(4);
    task.log_sum = LP_INPUT(5);
    task.out = LP_INPUT(6);
    task.dout = LP_INPUT(7);
    task.time_out = LP_INPUT(8);
    task.dtime_out = LP_INPUT(9);
    task.adds = (int)node->accumulate;
    float *const outputs[5] = {LP_OUTPUT(0), LP_OUTPUT(1), LP_OUTPUT(2), LP_OUTPUT(3), LP_OUTPUT(4)};
    LP_LAUNCH(run, inner_products, lp_blocks(tokens * task.form.heads, 8), 256, 0, task);
    /* Gradients that meet in one matrix come one after another. */
    int rounds = met(outputs) ? 5 : 1;
    for (int i = 0; i < rounds; i++) {
        give(&task, outputs, rounds == 1 ? 31 : 1 << i);
        if (tile_tensor(run))
            launch<true>(run, &task, tokens, out_tiles);
        else
            launch<false>(run, &task, tokens, out_tiles);
    }
}
