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
#include "backend/cuda/cuda_attention_tensor.h"

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
    int key_buffers = by_keys ? 1 : form->buffers, query_buffers = by_keys ? form->buffers : 1;
    at.keys = 0;
    at.queries = at.keys + key_buffers * keys * form->key_stride;
    at.slopes = at.queries + query_buffers * queries * form->query_stride;
    at.shares = at.slopes + form->rows * form->share_stride;
    at.start = at.shares + (by_keys ? form->rows * form->share_stride : 0);
    at.end = at.start + form->rows;
    at.log_sum = at.end + form->rows;
    at.inner = at.log_sum + query_buffers * queries;
    at.bits = at.inner + query_buffers * queries;
    at.size = at.bits + (form->threshold ? (queries * (keys / 8 + 1) + 3) / 4 : 0);
    return at;
}

/* Tokens [first, first + present) as queries with the gradients of their outputs, their log sums and D. */
template <bool tensor, tile_moment moment>
__device__ void move_queries(const backward_task *task, attention_head head, float *memory, backward_layout parts,
                             int turn, int first, int present, int rows)
{
    const attention_form *form = &task->form;
    int stride = form->query_stride, after = form->cols_wide + form->extra_wide;
    float *to = memory + parts.queries + turn * rows * stride;
    attention_move_queries<tensor, moment>(to, form, head, task->query, task->time_query, first, present, rows);
    if (form->extra)
        tile_move<tensor, moment>(to + after, stride, rows, form->extra_wide,
                                  task->dtime_out + first * head.extra_stride + head.extra_first, head.extra_stride,
                                  present, form->extra);
    tile_move<tensor, moment>(to + after + form->extra_wide, stride, rows, form->cols_wide,
                              task->dout + first * head.stride + head.first, head.stride, present, form->cols);
    for (int r = (int)threadIdx.x; moment == TILE_ASK && r < rows; r += (int)blockDim.x) {
        int64_t i = (int64_t)(first + min(r, present - 1)) * form->heads + head.number;
        tile_copy<1>(memory + parts.log_sum + turn * rows + r, task->log_sum + i);
        tile_copy<1>(memory + parts.inner + turn * rows + r, task->inner + i);
    }
}

/* Tokens [first, first + present) as keys. */
template <bool tensor, tile_moment moment>
__device__ void move_keys(const backward_task *task, attention_head head, float *keys, int first, int present, int rows)
{
    attention_move_keys<tensor, moment>(keys, &task->form, head, task->key, task->basis, task->value, first, present,
                                        rows);
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

/* From score and dp of a pair: f p, and scale * ds. */
__device__ float2 pair_of(float scale, float score, float slope, float log_sum, float inner, float factor)
{
    float p = __expf(score * scale - log_sum);
    float2 both = {factor * p, scale * p * (factor * slope - inner)};
    return both;
}

/* Where a warp stands. */
typedef struct place {
    int group_row, warp_col; /* first row of its group in the tile; which of the group's warps */
    int first_tile, count;   /* its tiles of 8 columns of the sums */
    int low, high;           /* the tokens on the other side that its group has pairs with */
} place;

__device__ place place_of(const attention_form *form, int all, int tiles)
{
    int warp = tile_lane_now().warp, warp_col = warp % form->warp_cols;
    place at = {
        warp / form->warp_cols * 16, warp_col, warp_col * tiles, max(min(all - warp_col * tiles, tiles), 0), 0, 0};
    return at;
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
                    pair = pair_of(form->scale, score[j][2 * half + i], slope[j][2 * half + i], log_sum[col + i],
                                   inner[col + i], attention_factor(bits, form, first_query, first_key, query, key));
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
                           place at, float (&sum)[tiles][4])
{
    const attention_form *form = &task->form;
    int stride = form->key_stride, wide = form->cols_wide, after = wide + form->extra_wide;
    __syncthreads();
    tile_put(keys + at.group_row * stride + 8 * at.first_tile, stride, at.count, sum);
    __syncthreads();
    if (task->dkey)
        tile_store(task->dkey + first * head.stride + head.first, head.stride, present, form->cols, keys, stride,
                   task->adds & 2);
    if (task->dvalue)
        tile_store(task->dvalue + first * head.stride + head.first, head.stride, present, form->cols, keys + after,
                   stride, task->adds & 4);
    if (task->dbasis && head.number == form->heads - 1)
        tile_store(task->dbasis + (int64_t)first * form->extra, form->extra, present, form->extra, keys + wide, stride,
                   task->adds & 16);
#pragma unroll
    for (int j = 0; j < tiles; j++)
        if (8 * (at.first_tile + j) < wide || 8 * (at.first_tile + j) >= after)
            sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0;
}

/* One step: the block's keys and the queries from `first_query` on, which lie in buffer `turn`. */
template <bool tensor, int score_tiles, int out_tiles>
__device__ void take_queries(const attention_form *form, backward_layout parts, float *memory, place at,
                             const attention_bits *bits, int first, int first_query, int turn, const int *end,
                             float (&sum)[out_tiles][4])
{
    int wide = form->cols_wide, after = wide + form->extra_wide;
    const float *keys = memory + parts.keys + at.group_row * form->key_stride;
    const float *queries = memory + parts.queries + turn * form->steps * form->query_stride;
    float *shares = memory + parts.shares + at.group_row * form->share_stride;
    float *slopes = memory + parts.slopes + at.group_row * form->share_stride;
    attention_range range = attention_range_of(form, first_query, at.low, at.high, at.warp_col);
    bool seen = range.low < range.high;
    if (seen) {
        float score[score_tiles][4], slope[score_tiles][4];
        make_pairs<tensor>(form, range, keys, form->key_stride, queries, form->query_stride, wide, after, at.warp_col,
                           score, slope);
        write_key_pairs<tensor>(form, range, bits, first, first_query, at.group_row, at.warp_col, end,
                                memory + parts.log_sum + turn * form->steps, memory + parts.inner + turn * form->steps,
                                score, slope, shares, slopes);
    }
    __syncthreads();
    if (!seen)
        return;
    const float *from = queries + 8 * range.low * form->query_stride + 8 * at.first_tile;
    int depth = 8 * (range.high - range.low), low = 8 * range.low;
    tile_columns<tensor>(sum, 0, min(at.count, after / 8 - at.first_tile), slopes + low, form->share_stride, from,
                         form->query_stride, depth);
    tile_columns<tensor>(sum, wide / 8 - at.first_tile, at.count, shares + low, form->share_stride,
                         from + form->extra_wide, form->query_stride, depth);
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

    place at = place_of(form, (wide + after) / 8, out_tiles);
    at.low = first + at.group_row;
    at.high = end[at.group_row + 15];
    int query_end = end[form->rows - 1];
    attention_bits bits = {(unsigned char *)(memory + parts.bits), form->rows / 8 + 1, start, first, form->rows};
    float sum[out_tiles][4] = {};
    for (int number = 0; number < form->heads; number++) {
        attention_head head = attention_head_of(form, number);
        int turn = 0;
        __syncthreads(); /* the last head has left */
        move_keys<tensor, TILE_ASK>(task, head, memory + parts.keys, first, present, form->rows);
        move_queries<tensor, TILE_ASK>(task, head, memory, parts, 0, first, min(form->steps, query_end - first),
                                       form->steps);
        tile_wait();
        move_keys<tensor, TILE_SETTLE>(task, head, memory + parts.keys, first, present, form->rows);
        for (int query = first, next; query < query_end; query = next, turn = form->buffers - 1 - turn) {
            int here = min(form->steps, query_end - query);
            next = query + form->steps;
            tile_wait();
            move_queries<tensor, TILE_SETTLE>(task, head, memory, parts, turn, query, here, form->steps);
            if (form->threshold)
                attention_bits_draw(&bits, form, task->shard, number, query, here, first);
            __syncthreads();
            if (form->buffers == 2 && next < query_end)
                move_queries<tensor, TILE_ASK>(task, head, memory, parts, 1 - turn, next,
                                               min(form->steps, query_end - next), form->steps);
            take_queries<tensor, score_tiles>(form, parts, memory, at, &bits, first, query, turn, end, sum);
            if (form->buffers == 1 && next < query_end) {
                __syncthreads();
                move_queries<tensor, TILE_ASK>(task, head, memory, parts, 0, next, min(form->steps, query_end - next),
                                               form->steps);
            }
        }
        store_keys(task, head, memory + parts.keys, first, present, at, sum);
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
                    pair = pair_of(form->scale, score[j][2 * half + i], slope[j][2 * half + i], log_sum[row],
                                   inner[row], attention_factor(bits, form, first_query, first_key, query, key));
                ds[i] = tile_number<tensor>(pair.y);
            }
            *(float2 *)(slopes + (me.group + 8 * half) * form->share_stride + col) = make_float2(ds[0], ds[1]);
        }
    }
}

/* Through the shared memory of the queries. */
template <int tiles>
__device__ void store_queries(const backward_task *task, attention_head head, float *queries, int first, int present,
                              place at, const float (&sum)[tiles][4])
{
    const attention_form *form = &task->form;
    int stride = form->query_stride;
    __syncthreads();
    tile_put(queries + at.group_row * stride + 8 * at.first_tile, stride, at.count, sum);
    __syncthreads();
    if (task->dquery)
        tile_store(task->dquery + first * head.stride + head.first, head.stride, present, form->cols, queries, stride,
                   task->adds & 1);
    if (task->dtime_query)
        tile_store(task->dtime_query + first * head.extra_stride + head.extra_first, head.extra_stride, present,
                   form->extra, queries + form->cols_wide, stride, task->adds & 8);
}

/* One step: the block's queries and the keys from `first_key` on. */
template <bool tensor, int score_tiles, int out_tiles>
__device__ void take_keys(const attention_form *form, backward_layout parts, float *memory, place at,
                          const attention_bits *bits, int first, int present, int first_key, const float *keys,
                          const int *start, float (&sum)[out_tiles][4])
{
    int wide = form->cols_wide, after = wide + form->extra_wide;
    const float *queries = memory + parts.queries + at.group_row * form->query_stride;
    float *slopes = memory + parts.slopes + at.group_row * form->share_stride;
    attention_range range = attention_range_of(form, first_key, at.low, at.high, at.warp_col);
    bool seen = range.low < range.high;
    if (seen) {
        float score[score_tiles][4], slope[score_tiles][4];
        make_pairs<tensor>(form, range, queries, form->query_stride, keys, form->key_stride, after, wide, at.warp_col,
                           score, slope);
        write_query_pairs<tensor>(form, range, bits, first, present, first_key, at.group_row, at.warp_col, start,
                                  memory + parts.log_sum, memory + parts.inner, score, slope, slopes);
    }
    __syncthreads();
    if (seen)
        tile_columns<tensor>(sum, 0, at.count, slopes + 8 * range.low, form->share_stride,
                             keys + 8 * range.low * form->key_stride + 8 * at.first_tile, form->key_stride,
                             8 * (range.high - range.low));
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
    int present = min(form->rows, tokens - first), end = first + present;
    int *start = (int *)(memory + parts.start), size = form->steps * form->key_stride, turn = 0;
    move_queries<tensor, TILE_ASK>(task, head, memory, parts, 0, first, present, form->rows);
    attention_spans(task->shard, task->segment, first, form->rows, start, NULL);
    __syncthreads();
    move_keys<tensor, TILE_ASK>(task, head, memory + parts.keys, start[0], min(form->steps, end - start[0]),
                                form->steps);
    tile_wait();
    move_queries<tensor, TILE_SETTLE>(task, head, memory, parts, 0, first, present, form->rows);

    place at = place_of(form, (form->cols_wide + form->extra_wide) / 8, out_tiles);
    at.low = start[at.group_row];
    at.high = min(first + at.group_row + 16, end);
    attention_bits bits = {(unsigned char *)(memory + parts.bits), form->steps / 8 + 1, start, first, form->rows};
    float sum[out_tiles][4] = {};
    for (int key = start[0], next; key < end; key = next, turn = form->buffers - 1 - turn) {
        float *keys = memory + parts.keys + turn * size;
        next = key + form->steps;
        tile_wait();
        move_keys<tensor, TILE_SETTLE>(task, head, keys, key, min(form->steps, end - key), form->steps);
        if (form->threshold)
            attention_bits_draw(&bits, form, task->shard, number, first, present, key);
        __syncthreads();
        if (form->buffers == 2 && next < end)
            move_keys<tensor, TILE_ASK>(task, head, memory + parts.keys + (1 - turn) * size, next,
                                        min(form->steps, end - next), form->steps);
        take_keys<tensor, score_tiles>(form, parts, memory, at, &bits, first, present, key, keys, start, sum);
        if (form->buffers == 1 && next < end) {
            __syncthreads();
            move_keys<tensor, TILE_ASK>(task, head, keys, next, min(form->steps, end - next), form->steps);
        }
    }
    store_queries(task, head, memory + parts.queries, first, present, at, sum);
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

/* Tiles for the widths at hand. Returns how many tiles of 8 columns of the output a warp takes. */
int choose_tiles(attention_form *form)
{
    int tiles = (2 * form->cols_wide + form->extra_wide) / 8;
    int out_tiles = tiles <= 28 ? 7 : tiles <= 56 ? 14 : 16;
    form->warp_rows = tiles <= 56 ? 2 : 1;
    form->warp_cols = tiles <= 56 ? 4 : 8;
    form->rows = 16 * form->warp_rows;
    form->key_stride = tile_stride(2 * form->cols_wide + form->extra_wide);
    form->query_stride = tile_stride(2 * form->cols_wide + 2 * form->extra_wide);
    static const int choices[][2] = {{32, 2}, {32, 1}, {16, 1}, {8, 1}};
    for (int i = 0; i < 4; i++) {
        form->steps = choices[i][0];
        form->buffers = choices[i][1];
        form->share_stride = tile_share_stride(form->steps);
        size_t size = shared_size(form);
        if (size <= ATTENTION_HALF_SHARED || (form->buffers == 1 && form->steps <= 32 && size <= ATTENTION_MOST_SHARED))
            break;
    }
    return out_tiles;
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

backward_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    backward_task task = {};
    task.form = attention_form_of(node);
    task.shard = run->shard;
    task.segment = run->segment;
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
    return task;
}

} // namespace

void lp_cuda_attention_gradient(const lp_node *node, const lp_cuda_run *run)
{
    float *const outputs[5] = {LP_OUTPUT(0), LP_OUTPUT(1), LP_OUTPUT(2), LP_OUTPUT(3), LP_OUTPUT(4)};
    if (tile_tensor(run) && !met(outputs) && lp_cuda_attention_gradient_tensor(node, run))
        return;
    backward_task task = task_of(node, run);
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    int out_tiles = choose_tiles(&task.form);
    task.inner = (float *)lp_cuda_scratch(run, (size_t)tokens * (size_t)task.form.heads * sizeof(float));
    if (!task.inner)
        return;
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
