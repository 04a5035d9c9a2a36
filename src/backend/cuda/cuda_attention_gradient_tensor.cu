/* cuda_attention_gradient_tensor.cu: the gradient of attention for heads whose sums fit into a warp's registers
 * (cuda_attention_tensor.h; the equations are those of cuda_attention_gradient.cu).
 *
 * One kernel makes D; what dropout keeps was left by attention, or is drawn here where that did not run. In the next, which begins
 * meanwhile, some blocks take tiles of keys and go over their queries, 16 at a time, the others take queries and go over keys; those with most
 * to do begin first (cuda_attention_order.h). A warp makes the scores and dp of its 16 rows and 16 tokens on the other side in
 * one run over the columns, and shares and slopes go from there to the next products without leaving its registers.
 */
#include "backend/cuda/cuda_attention_tensor.h"

namespace
{

enum { UNIT = 16, TILES = UNIT / 8, ROWS = ATTENTION_ROWS, THREADS = 256 /* of prepare */ };

/* ---- D, and what dropout keeps ------------------------------------------------------------------------------- */

/* The product of out and dout, with dout as it will be in dp: what is left of the slopes of a row, which should sum to 0, is then less. 8
 * threads have a row; `count` numbers of it are asked for at once. */
template <int count, int tiles> struct row_part {
    float x[tiles][count];

    __device__ __forceinline__ void look_up(const float *row, int cols)
    {
#pragma unroll
        for (int n = 0; n < tiles; n++) {
            int c = count * (8 * n + ((int)threadIdx.x & 7));
            if constexpr (count == 4) {
                float4 all = c < cols ? *(const float4 *)(row + c) : make_float4(0, 0, 0, 0);
                x[n][0] = all.x;
                x[n][1] = all.y;
                x[n][2] = all.z;
                x[n][3] = all.w;
            } else if constexpr (count == 2) {
                float2 both = c < cols ? *(const float2 *)(row + c) : make_float2(0, 0);
                x[n][0] = both.x;
                x[n][1] = both.y;
            } else {
                x[n][0] = c < cols ? row[c] : 0;
            }
        }
    }
};

template <bool two, int count, int tiles>
__device__ __forceinline__ float dot(const row_part<count, tiles> &dout, const row_part<count, tiles> &out)
{
    float sum = 0;
#pragma unroll
    for (int n = 0; n < tiles; n++)
#pragma unroll
        for (int i = 0; i < count; i++)
            sum += (two ? tile_round_two(dout.x[n][i]) : tile_cut(dout.x[n][i])) * out.x[n][i];
    return sum;
}

/* 8 threads for each token and head. `even`: rows may be read by pairs, those of the basis by fours. */
template <bool two, bool even>
__global__ void __launch_bounds__(THREADS, 4) prepare(const __grid_constant__ attention_task task)
{
    const attention_form *form = &task.form;
    lp_pdl_trigger();
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) >> 3, all = i & ~(int64_t)3;
    int tokens = task.shard->rows[LP_ROWS_TOKENS], segments = task.shard->segments;
    int token = (int)(i / form->heads), warp_token = (int)(all / form->heads);
    if (warp_token >= tokens)
        return;
    attention_head head = attention_head_of(form, (int)(i % form->heads));
    bool there = token < tokens;
    int64_t mine = token * head.stride + head.first, extra = token * head.extra_stride + head.extra_first;
    row_part<even ? 2 : 1, even ? 4 : 8> x[2];
    row_part<even ? 4 : 1, even ? 4 : 13> y[2];
    x[0].look_up(task.in.dout + mine, there ? form->cols : 0);
    x[1].look_up(task.out + mine, there ? form->cols : 0);
    y[0].look_up(task.in.dtime_out + extra, there ? form->extra : 0);
    y[1].look_up(task.time_out + extra, there ? form->extra : 0);
    if (form->threshold && !task.left) {
        attention_probe probe = attention_probe_of(&task);
        attention_near near = attention_near_of(task.segment, segments, tokens, probe, warp_token);
        int token_of[] = {min(token, tokens - 1)}, start[1], end[1];
        attention_find(task.segment, segments, near, min(warp_token + 3, tokens - 1), token_of, start, end);
        if (there)
            attention_draw<8, 1>(&task, attention_words(&task, token, head.number), head.number, token, start[0],
                                 (int)threadIdx.x & 7);
    }
    float sum = dot<two>(x[0], x[1]) + dot<two>(y[0], y[1]);
    for (int lanes = 4; lanes > 0; lanes >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, lanes);
    if (there && (threadIdx.x & 7) == 0)
        task.marks[i] = make_float2(task.log_sum[i] * ATTENTION_LOG2_E, sum * form->scale);
}

/* ---- what both sides share ----------------------------------------------------------------------------------- */

/* The tiles of one kernel: `steps` tokens on the other side at a time. */
template <typename a_shape, int a_steps> struct backward_tiles {
    typedef a_shape shape;
    static constexpr int rows = ROWS, steps = a_steps, threads = 2 * rows;
    /* shared memory, in floats from its beginning: of a block that takes keys */
    static constexpr int key_queries = rows * shape::key_stride;
    static constexpr int key_raw = key_queries + 2 * steps * shape::gradient_stride;
    static constexpr int key_start = key_raw + (shape::two ? steps * shape::gradient_raw : 0);
    static constexpr int key_end = key_start + rows;
    static constexpr int key_marks = key_end + rows;
    static constexpr int key_size = key_marks + 4 * steps;
    /* and of one that takes queries */
    static constexpr int query_keys = rows * shape::gradient_stride;
    static constexpr int query_raw = query_keys + 2 * steps * shape::key_stride;
    static constexpr int query_size = query_raw + (shape::two ? steps * shape::key_raw : 0);
    static constexpr int size = key_size > query_size ? key_size : query_size;
    static_assert(rows % 32 == 0 && steps % UNIT == 0, "whole warps and units");
};

/* Scores and dp of 16 rows and 16 others: `second` is where dp's columns begin. */
template <typename shape, int right_stride, int left_second, int right_second>
__device__ __forceinline__ void make_pairs(tile_source left, tile_source right, float (&score)[TILES][4],
                                           float (&slope)[TILES][4])
{
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            score[j][i] = slope[j][i] = 0;
#pragma unroll
    for (int k = 0; k < shape::runs; k++) {
        float first[4], second[4];
        tile_load(first, left, 8 * k);
        tile_load(second, left, shape::at(left_second) + 8 * k);
        tile_pairs<shape::two, right_stride>(score, first, right, k);
        tile_pairs<shape::two, right_stride>(slope, second, right, k, shape::at(right_second));
    }
}

/* The factors of a pair that are the same for all. */
typedef struct pair_scale {
    float score, kept, slope; /* scale * log2 e; what dropout scales by; that times scale */
} pair_scale;

__device__ static inline pair_scale pair_scale_of(const attention_form *form)
{
    pair_scale scale = {form->scale * ATTENTION_LOG2_E, form->kept, form->kept * form->scale};
    return scale;
}

/* From score and dp of a pair: score becomes f p, slope scale * ds. */
__device__ __forceinline__ void finish_pair(pair_scale scale, bool seen, bool kept, float2 mark, float *score,
                                            float *slope)
{
    float p = tile_power(*score * scale.score - mark.x);
    float ds = p * ((kept ? *slope * scale.slope : 0) - mark.y);
    *score = seen && kept ? p * scale.kept : 0;
    *slope = seen ? ds : 0;
}

/* ---- a tile of keys ------------------------------------------------------------------------------------------ */

/* Where a warp stands. */
typedef struct key_place {
    int group_row;   /* its first row in the tile */
    int key, end[2]; /* of the lane's first row; where the segments of its two rows end: 0 for no row */
    int high;        /* where the warp's queries end */
    int all_end;     /* where those end that all its rows see */
} key_place;

template <bool whole>
__device__ __forceinline__ void finish_queries(pair_scale scale, key_place mine, int first_query, uint32_t word,
                                               const float2 *marks, float (&score)[TILES][4], float (&slope)[TILES][4])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        float4 both = *(const float4 *)(marks + 8 * j + 2 * me.member);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int col = 8 * j + 2 * me.member + i, query = first_query + col;
            uint32_t keep = __shfl_sync(0xFFFFFFFFu, word, col) >> me.group;
            float2 mark = i ? make_float2(both.z, both.w) : make_float2(both.x, both.y);
#pragma unroll
            for (int half = 0; half < 2; half++)
                finish_pair(scale, whole || (query >= mine.key + 8 * half && query < mine.end[half]),
                            keep >> (8 * half) & 1, mark, &score[j][2 * half + i], &slope[j][2 * half + i]);
        }
    }
}

/* The warp's keys and 16 queries, with their marks. */
template <typename tiles>
__device__ __forceinline__ void take_queries(const attention_task *task, key_place mine, tile_source keys,
                                             const float *queries, const float2 *marks, const int *start, int origin,
                                             int first_query, int head, float (&sum)[tiles::shape::key_sums][2][4])
{
    typedef typename tiles::shape shape;
    tile_lane me = tile_lane_now();
    uint2 looked_up = {};
    int from = 0;
    if (task->word_stride) {
        /* Lane i of 16 looks up the bits of query i for the warp's keys. */
        int query = min(first_query + (me.lane & 15), mine.high - 1);
        from = origin + mine.group_row - start[min(query - origin, tiles::rows - 1)];
        looked_up = attention_look_up(task, attention_words(task, query, head), from);
    }
    float score[TILES][4], slope[TILES][4];
    make_pairs<shape, shape::gradient_stride, shape::wide, shape::after>(
        keys, tile_right(queries, shape::gradient_stride), score, slope);
    uint32_t word = task->word_stride ? attention_keep(looked_up, from) : 0xFFFFFFFFu;
    pair_scale scale = pair_scale_of(&task->form);
    if (first_query >= origin + mine.group_row + 15 && first_query + UNIT <= mine.all_end)
        finish_queries<true>(scale, mine, first_query, word, marks, score, slope);
    else
        finish_queries<false>(scale, mine, first_query, word, marks, score, slope);
    constexpr int wide = shape::wide_sums, extra = (shape::extra + 15) / 16, stride = shape::gradient_stride;
    constexpr bool whole = shape::extra % 16 == 0;
    tile_spread_transposed<shape::two, stride, 0, wide>(sum, slope, queries);
    tile_spread_transposed<shape::two, stride, wide, extra, whole>(sum, slope, queries + shape::at(shape::wide));
    tile_spread_transposed<shape::two, stride, wide, shape::query_sums>(sum, score, queries + shape::at(shape::after));
}

/* Asks for the queries from `first` on, and for their marks. */
template <typename tiles>
__device__ __forceinline__ void ask_marks(const attention_task *task, int head, float *memory, int turn, int first,
                                          int end)
{
    int r = (int)threadIdx.x;
    if (r < tiles::steps)
        tile_copy<2>(memory + tiles::key_marks + 2 * (turn * tiles::steps + r),
                     (const float *)(task->marks + (int64_t)min(first + r, end - 1) * task->form.heads + head));
}

template <typename tiles>
__device__ __forceinline__ void ask_queries(const attention_task *task, int head, float *memory, int turn, int first,
                                            int end)
{
    typedef typename tiles::shape shape;
    constexpr int stride = shape::two ? shape::gradient_raw : shape::gradient_stride;
    float *to = memory + (shape::two ? tiles::key_raw : tiles::key_queries + turn * tiles::steps * stride);
    attention_bring<shape, ATTENTION_ASK, stride, tiles::steps, tiles::threads>(
        task->queries, ATTENTION_GRADIENTS, task->plain, head, to, first, end - first);
}

/* Sums of keys and values are of one head, and begin again with the next; those of the basis are of all. `key` is the warp's first. */
template <typename shape>
__device__ __forceinline__ void store_keys(const attention_task *task, attention_head head, int64_t key, int tokens,
                                           float (&sum)[shape::key_sums][2][4])
{
    const attention_form *form = &task->form;
    constexpr int rest = shape::wide_sums;
    int present = tokens - (int)key;
    if (task->dkey)
        attention_give<shape::two, 0, 0, shape::wide>(task->dkey + key * head.stride + head.first, head.stride, present,
                                                      form->cols, task->pairs & 2, task->adds & 2, sum);
    if (task->dvalue)
        attention_give<shape::two, rest, shape::extra, shape::wide>(task->dvalue + key * head.stride + head.first,
                                                                    head.stride, present, form->cols, task->pairs & 4,
                                                                    task->adds & 4, sum);
    if constexpr (shape::extra > 0)
        if (task->dbasis && head.number == form->heads - 1)
            attention_give<shape::two, rest, 0, shape::extra>(task->dbasis + key * form->extra, form->extra, present,
                                                              form->extra, task->pairs & 16, task->adds & 16, sum);
    /* A lane's columns of one tile may be of the basis and of the values. */
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int m = 0; m < shape::key_sums; m++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int col = 16 * (m - rest) + (shape::two ? me.group + 8 * (i >> 1 & 1) : 2 * me.group);
            if (m < rest || col >= shape::extra)
                sum[m][i >> 2][i & 3] = 0;
        }
}

template <typename tiles>
__device__ __forceinline__ void by_keys(const attention_task *task, float *memory, int tile, int first_head, int heads)
{
    typedef typename tiles::shape shape;
    constexpr attention_way way = shape::two ? ATTENTION_PACK : ATTENTION_ASK;
    const attention_form *form = &task->form;
    attention_probe probe = attention_probe_of(task);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = tile * tiles::rows;
    if (first >= tokens)
        return;
    tile_lane me = tile_lane_now();
    int *start = (int *)(memory + tiles::key_start), *end = (int *)(memory + tiles::key_end);
    float *queries = memory + tiles::key_queries;
    const float2 *marks = (const float2 *)(memory + tiles::key_marks);
    int segments = task->shard->segments, last = min(first + tiles::rows, tokens) - 1;
    key_place mine = {16 * me.warp, first + 16 * me.warp + me.group, {0, 0}, 0, 0};
    tile_source keys = tile_left(memory + mine.group_row * shape::key_stride, shape::key_stride);
    float sum[shape::key_sums][2][4] = {};
#pragma unroll 1
    for (int number = first_head; number < first_head + heads; number++) {
        attention_bring<shape, way, shape::key_stride, tiles::rows, tiles::threads>(
            task->keys, ATTENTION_KEYS, task->plain, number, memory, first, tokens - first);
        ask_queries<tiles>(task, number, memory, 0, first, tokens);
        if (number == first_head) {
            attention_near near = attention_near_of(task->segment, segments, tokens, probe, first);
            int r = (int)threadIdx.x & (tiles::rows - 1), token[] = {min(first + r, last)}, from[1], to[1];
            attention_find(task->segment, segments, near, last, token, from, to);
            start[r] = from[0];
            end[r] = to[0];
            __syncthreads();
            mine.high = end[mine.group_row + 15];
            mine.all_end = first + mine.group_row + 15 < tokens ? end[mine.group_row] : 0;
            for (int half = 0; half < 2; half++)
                mine.end[half] = mine.key + 8 * half < tokens ? end[mine.key - first + 8 * half] : 0;
            lp_pdl_wait();
        }
        ask_marks<tiles>(task, number, memory, 0, first, tokens);
        int query_end = end[tiles::rows - 1], turn = 0;
#pragma unroll 1
        for (int query = first, next; query < query_end; query = next, turn = 1 - turn) {
            float *now = queries + turn * tiles::steps * shape::gradient_stride;
            next = query + tiles::steps;
            tile_wait();
            if (shape::two)
                attention_settle<shape, shape::gradient_stride, shape::gradient_raw, tiles::steps, tiles::threads>(
                    task->queries, task->plain, now, memory + tiles::key_raw);
            __syncthreads();
            if (next < query_end) {
                ask_queries<tiles>(task, number, memory, 1 - turn, next, query_end);
                ask_marks<tiles>(task, number, memory, 1 - turn, next, query_end);
            }
#pragma unroll 1
            for (int place = 0; place < tiles::steps; place += UNIT)
                if (query + place + UNIT > first + mine.group_row && query + place < mine.high)
                    take_queries<tiles>(task, mine, keys, now + place * shape::gradient_stride,
                                        marks + turn * tiles::steps + place, start, first, query + place, number, sum);
        }
        store_keys<shape>(task, attention_head_of(form, number), first + mine.group_row, tokens, sum);
        __syncthreads(); /* before keys of the next head come */
    }
}

/* ---- a tile of queries --------------------------------------------------------------------------------------- */

/* One of the lane's two rows. */
typedef struct query_row {
    int query, start; /* query < start where there is no such token */
    float2 mark;
    const uint32_t *words;
} query_row;

template <bool whole>
__device__ __forceinline__ void finish_keys(pair_scale scale, const query_row (&row)[2], int first_key,
                                            const uint32_t (&keep)[2], float (&score)[TILES][4],
                                            float (&slope)[TILES][4])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < TILES; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const query_row *mine = &row[i >> 1];
            int key = first_key + 8 * j + 2 * me.member + (i & 1);
            finish_pair(scale, whole || (key >= mine->start && key <= mine->query),
                        keep[i >> 1] >> (8 * j + (i & 1)) & 1, mine->mark, &score[j][i], &slope[j][i]);
        }
    }
}

/* The warp's queries and 16 keys; whole: all see all of them. */
template <typename shape>
__device__ __forceinline__ void take_keys(const attention_task *task, tile_source queries, const float *keys,
                                          int first_key, bool whole, const query_row (&row)[2],
                                          float (&sum)[shape::query_sums][2][4])
{
    uint2 looked_up[2] = {};
    if (task->word_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            looked_up[half] = attention_look_up(task, row[half].words, first_key - row[half].start);
    float score[TILES][4], slope[TILES][4];
    make_pairs<shape, shape::key_stride, shape::after, shape::wide>(queries, tile_right(keys, shape::key_stride), score,
                                                                    slope);
    uint32_t keep[2] = {0xFFFFFFFFu, 0xFFFFFFFFu};
    if (task->word_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            keep[half] = attention_keep(looked_up[half], first_key - row[half].start) >> (2 * tile_lane_now().member);
    pair_scale scale = pair_scale_of(&task->form);
    if (whole)
        finish_keys<true>(scale, row, first_key, keep, score, slope);
    else
        finish_keys<false>(scale, row, first_key, keep, score, slope);
    tile_spread_transposed<shape::two, shape::key_stride, 0, shape::query_sums>(sum, slope, keys);
}

/* Asks for the keys from `first` on. */
template <typename tiles>
__device__ __forceinline__ void ask_keys(const attention_task *task, int head, float *memory, int turn, int first,
                                         int end)
{
    typedef typename tiles::shape shape;
    constexpr int stride = shape::two ? shape::key_raw : shape::key_stride;
    float *to = memory + (shape::two ? tiles::query_raw : tiles::query_keys + turn * tiles::steps * stride);
    attention_bring<shape, ATTENTION_ASK, stride, tiles::steps, tiles::threads>(task->keys, ATTENTION_KEYS, task->plain,
                                                                                head, to, first, end - first);
}

/* `query` is the warp's first. */
template <typename shape>
__device__ __forceinline__ void store_queries(const attention_task *task, attention_head head, int64_t query, int end,
                                              float (&sum)[shape::query_sums][2][4])
{
    const attention_form *form = &task->form;
    int present = end - (int)query;
    if (task->dquery)
        attention_give<shape::two, 0, 0, shape::wide>(task->dquery + query * head.stride + head.first, head.stride,
                                                      present, form->cols, task->pairs & 1, task->adds & 1, sum);
    if constexpr (shape::extra > 0)
        if (task->dtime_query)
            attention_give<shape::two, 0, shape::wide, shape::extra>(
                task->dtime_query + query * head.extra_stride + head.extra_first, head.extra_stride, present,
                form->extra, task->pairs & 8, task->adds & 8, sum);
}

template <typename tiles>
__device__ __forceinline__ void by_queries(const attention_task *task, float *memory, int tile, int number)
{
    typedef typename tiles::shape shape;
    constexpr attention_way way = shape::two ? ATTENTION_PACK : ATTENTION_ASK;
    attention_probe probe = attention_probe_of(task);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = tile * tiles::rows;
    if (first >= tokens)
        return;
    tile_lane me = tile_lane_now();
    int segments = task->shard->segments, end = min(first + tiles::rows, tokens), turn = 0;
    attention_bring<shape, way, shape::gradient_stride, tiles::rows, tiles::threads>(
        task->queries, ATTENTION_GRADIENTS, task->plain, number, memory, first, end - first);
    attention_near near = attention_near_of(task->segment, segments, tokens, probe, first);
    ask_keys<tiles>(task, number, memory, 0, near.begin, end);
    /* the lane's rows, and the warp's first and last */
    int group_row = 16 * me.warp, from = first + group_row + me.group;
    int tokens_of[] = {min(from, end - 1), min(from + 8, end - 1), min(first + group_row, end - 1),
                       min(first + group_row + 15, end - 1)};
    int start[4], ends[4];
    attention_find(task->segment, segments, near, end - 1, tokens_of, start, ends);
    int low = start[2], high = min(first + group_row + 16, end);
    int all_low = start[3], all_high = first + group_row + 16 <= end ? first + group_row : -1;
    lp_pdl_wait();
    query_row row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = tokens_of[half];
        query_row begun = {from + 8 * half < end ? query : start[half] - 1, start[half],
                           task->marks[(int64_t)query * task->form.heads + number],
                           attention_words(task, query, number)};
        row[half] = begun;
    }
    tile_source queries = tile_left(memory + group_row * shape::gradient_stride, shape::gradient_stride);
    float sum[shape::query_sums][2][4] = {};
#pragma unroll 1
    for (int key = near.begin, next; key < end; key = next, turn = 1 - turn) {
        float *keys = memory + tiles::query_keys + turn * tiles::steps * shape::key_stride;
        next = key + tiles::steps;
        tile_wait();
        if (shape::two)
            attention_settle<shape, shape::key_stride, shape::key_raw, tiles::steps, tiles::threads>(
                task->keys, task->plain, keys, memory + tiles::query_raw);
        __syncthreads();
        if (next < end)
            ask_keys<tiles>(task, number, memory, 1 - turn, next, end);
#pragma unroll 1
        for (int place = 0; place < tiles::steps; place += UNIT)
            if (key + place + UNIT > low && key + place < high)
                take_keys<shape>(task, queries, keys + place * shape::key_stride, key + place,
                                 key + place >= all_low && key + place + UNIT - 1 <= all_high, row, sum);
    }
    store_queries<shape>(task, attention_head_of(&task->form, number), first + group_row, end, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* The sums of the basis are of all heads, so where there is one a block of keys takes them all. */
template <typename tiles, int blocks>
__global__ void __launch_bounds__(tiles::threads, blocks) tensor_backward(const __grid_constant__ attention_task task)
{
    LP_SHARED(float, memory);
    lp_pdl_trigger();
    int work = task.order[blockIdx.x], tile = work >> 1, head = (int)blockIdx.y;
    if (work & 1)
        by_queries<tiles>(&task, memory, tile, head);
    else if (!tiles::shape::extra)
        by_keys<tiles>(&task, memory, tile, head, 1);
    else if (head == 0)
        by_keys<tiles>(&task, memory, tile, 0, task.form.heads);
}

template <typename tiles, int blocks> void launch(const lp_cuda_run *run, attention_task task)
{
    attention_parts<typename tiles::shape>(&task);
    dim3 grid((unsigned)(2 * task.tiles), (unsigned)task.form.heads);
    LP_LAUNCH_PDL(run, (tensor_backward<tiles, blocks>), grid, (unsigned)tiles::threads,
                    (size_t)tiles::size * sizeof(float), task);
}

void launch_prepare(const lp_cuda_run *run, const attention_task *task, int64_t tokens)
{
    attention_task with = *task;
    int cols = task->form.cols, extra = task->form.extra;
    bool even = attention_even(task->in.dout, cols, 2) && attention_even(task->out, cols, 2) &&
                attention_even(task->in.dtime_out, extra, 4) && attention_even(task->time_out, extra, 4);
    unsigned blocks = lp_blocks(tokens * task->form.heads, THREADS / 8);
    if (attention_two(run) && even)
        LP_LAUNCH(run, (prepare<true, true>), blocks, THREADS, 0, with);
    else if (attention_two(run))
        LP_LAUNCH(run, (prepare<true, false>), blocks, THREADS, 0, with);
    else if (even)
        LP_LAUNCH(run, (prepare<false, true>), blocks, THREADS, 0, with);
    else
        LP_LAUNCH(run, (prepare<false, false>), blocks, THREADS, 0, with);
}

/* Two blocks of each fit on a multiprocessor. */
typedef backward_tiles<attention_shape<7, 13>, 16> with_basis;
typedef backward_tiles<attention_shape<7, 13, true>, 32> with_basis_two;
typedef backward_tiles<attention_shape<8, 0>, 32> without_basis;
typedef backward_tiles<attention_shape<8, 0, true>, 32> without_basis_two;

attention_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = {};
    task.form = attention_form_of(node);
    task.shard = run->shard;
    task.segment = run->segment;
    task.most_segments = run->largest_segments;
    task.order = lp_cuda_attention_order_of(run);
    task.in.query = LP_INPUT(0);
    task.in.key = LP_INPUT(1);
    task.in.value = LP_INPUT(2);
    task.in.time_query = LP_INPUT(3);
    task.in.basis = LP_INPUT(4);
    task.log_sum = (float *)LP_INPUT(5);
    task.out = (float *)LP_INPUT(6);
    task.in.dout = LP_INPUT(7);
    task.time_out = (float *)LP_INPUT(8);
    task.in.dtime_out = LP_INPUT(9);
    task.dquery = LP_OUTPUT(0);
    task.dkey = LP_OUTPUT(1);
    task.dvalue = LP_OUTPUT(2);
    task.dtime_query = LP_OUTPUT(3);
    task.dbasis = LP_OUTPUT(4);
    task.adds = (int)node->accumulate;
    const float *const results[] = {task.dquery, task.dkey, task.dvalue, task.dtime_query, task.dbasis};
    for (int i = 0; i < 5; i++)
        task.pairs |= attention_even(results[i], i < 3 ? task.form.cols : task.form.extra, 2) << i;
    return task;
}

/* Marks, and `words` bytes of words where attention left none. */
bool ask_scratch(attention_task *task, const lp_cuda_run *run, int64_t tokens, size_t words)
{
    size_t marks = (size_t)tokens * (size_t)task->form.heads;
    task->tiles = (int)lp_blocks(tokens, ROWS);
    task->marks = (float2 *)lp_cuda_scratch(run, marks * sizeof(float2) + (task->left ? 0 : words));
    task->words = task->left ? task->left : (uint32_t *)(task->marks + marks);
    return task->marks != NULL;
}

} // namespace

bool lp_cuda_attention_gradient_tensor(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = task_of(node, run);
    const attention_form *form = &task.form;
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    if (!attention_fits(form))
        return false;
    size_t words = attention_words_size(&task, run, tokens);
    task.left = words ? (uint32_t *)lp_cuda_side_buffer(run, node->inputs[5], 0) : NULL;
    if (words > ATTENTION_MOST_WORDS || !ask_scratch(&task, run, tokens, words))
        return words <= ATTENTION_MOST_WORDS;
    launch_prepare(run, &task, tokens);
    lp_cuda_release_low_priority(run);
    if (form->extra && attention_two(run))
        launch<with_basis_two, 2>(run, task);
    else if (form->extra)
        launch<with_basis, 2>(run, task);
    else if (attention_two(run))
        launch<without_basis_two, 2>(run, task);
    else
        launch<without_basis, 2>(run, task);
    return true;
}
