/* cuda_attention_gradient_tensor.cu: the gradient of attention for heads whose sums fit into a warp's registers
 * (cuda_attention_tensor.h; the equations are those of cuda_attention_gradient.cu).
 *
 * One kernel makes D and draws what dropout keeps. In the next, half of the blocks take tiles of keys and go over their queries, 16 at a
 * time, the others take queries and go over keys. A warp makes the scores and dp of its 16 rows and 16 tokens on the other side in
 * one run over the columns, and shares and slopes go from there to the next products without leaving its registers.
 */
#include "backend/cuda/cuda_attention_tensor.h"

namespace
{

enum { UNIT = 16, TILES = UNIT / 8 };

/* ---- D, and what dropout keeps ------------------------------------------------------------------------------- */

/* dout is rounded as it will be in dp: what is left of the slopes of a row, which should sum to 0, is then less. */
template <bool two> __device__ float tensor_dot(const float *dout, const float *out, int count)
{
    float sum = 0;
    for (int c = (int)threadIdx.x & 31; c < count; c += 32)
        sum += (two ? tile_round_two(dout[c]) : tile_round(dout[c])) * out[c];
    return sum;
}

/* A warp for each token and head. */
template <bool two> __global__ void __launch_bounds__(256) prepare(const __grid_constant__ attention_task task)
{
    const attention_form *form = &task.form;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    int token = (int)(i / form->heads);
    if (token >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    attention_head head = attention_head_of(form, (int)(i % form->heads));
    int64_t mine = token * head.stride + head.first, extra = token * head.extra_stride + head.extra_first;
    float sum = tensor_dot<two>(task.dout + mine, task.out + mine, form->cols);
    if (form->extra)
        sum += tensor_dot<two>(task.dtime_out + extra, task.time_out + extra, form->extra);
    if (form->threshold) {
        int s = attention_segment(task.segment, task.shard->segments, token);
        attention_draw(&task, head.number, token, task.segment[s]);
    }
    sum = lp_warp_sum(sum);
    if ((threadIdx.x & 31) == 0)
        task.inner[i] = sum;
}

/* ---- what both sides share ----------------------------------------------------------------------------------- */

/* The parts of shared memory, in floats from its beginning; the last is its size. */
typedef struct tensor_layout {
    int keys, queries, start, end, log_sum, inner, size;
} tensor_layout;

/* room: the stride of sums on their way out, which take the place of keys and queries. */
__host__ __device__ tensor_layout tensor_layout_of(const attention_form *form, bool by_keys, int room)
{
    tensor_layout at;
    int keys = by_keys ? form->rows : form->buffers * form->steps;
    int queries = by_keys ? form->buffers * form->steps : form->rows;
    at.keys = 0;
    at.queries = at.keys + keys * form->key_stride;
    at.start = at.queries + queries * form->query_stride;
    at.start = at.start > form->rows * room ? at.start : form->rows * room;
    at.end = at.start + form->rows;
    at.log_sum = at.end + form->rows;
    at.inner = at.log_sum + queries;
    at.size = at.inner + queries;
    return at;
}

/* Tokens [first, first + present) as queries with the gradients of their outputs, their log sums and D. */
template <typename shape, tile_moment moment>
__device__ void move_queries(const attention_task *task, attention_head head, float *memory, tensor_layout at,
                             int place, int first, int present, int rows)
{
    const attention_form *form = &task->form;
    float *to = memory + at.queries + place * shape::gradient_stride;
    constexpr int stride = shape::gradient_stride;
    attention_bring_queries<shape, moment>(task, head, to, stride, first, present, rows);
    if (form->extra)
        attention_move<shape, moment>(to, stride, shape::after, shape::extra, rows,
                                      task->dtime_out + first * head.extra_stride + head.extra_first, head.extra_stride,
                                      present, form->extra);
    attention_move<shape, moment>(to, stride, shape::after + shape::extra, shape::wide, rows,
                                  task->dout + first * head.stride + head.first, head.stride, present, form->cols);
    for (int r = (int)threadIdx.x; moment == TILE_ASK && r < rows; r += (int)blockDim.x) {
        int64_t i = (int64_t)(first + min(r, present - 1)) * form->heads + head.number;
        tile_copy<1>(memory + at.log_sum + place + r, task->log_sum + i);
        tile_copy<1>(memory + at.inner + place + r, task->inner + i);
    }
}

/* Scores and dp of 16 rows and 16 others: `second` is where dp's columns begin. */
template <typename shape, int right_stride>
__device__ void make_pairs(tile_source left, int left_second, tile_source right, int right_second,
                           float (&score)[TILES][4], float (&slope)[TILES][4])
{
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            score[j][i] = slope[j][i] = 0;
#pragma unroll 5
    for (int k = 0; k < shape::runs; k++) {
        float first[4], second[4];
        tile_load(first, left, 8 * k);
        tile_load(second, left, shape::at(left_second) + 8 * k);
        tile_pairs<shape::two, right_stride>(score, first, right, k);
        tile_pairs<shape::two, right_stride>(slope, second, right, k, shape::at(right_second));
    }
}

/* From score and dp of a pair: score becomes f p, slope scale * ds. */
__device__ void finish_pair(const attention_form *form, bool seen, bool kept, float log_sum, float inner, float *score,
                            float *slope)
{
    float p = seen ? tile_power((*score * form->scale - log_sum) * ATTENTION_LOG2_E) : 0;
    float factor = kept ? form->kept : 0;
    *score = factor * p;
    *slope = seen ? form->scale * p * (factor * *slope - inner) : 0;
}

/* ---- a tile of keys ------------------------------------------------------------------------------------------ */

/* Where a warp stands. */
typedef struct key_place {
    int group_row;   /* its first row in the tile */
    int key, end[2]; /* of the lane's first row; where the segments of its two rows end: 0 for no row */
    int high;        /* where the warp's queries end */
} key_place;

/* The warp's keys and 16 queries, which lie at `place` of those in shared memory. */
template <typename shape>
__device__ void take_queries(const attention_task *task, const float *memory, tensor_layout at, key_place mine,
                             tile_source keys, int origin, int first_query, int place, int head,
                             float (&sum)[shape::all][4])
{
    const attention_form *form = &task->form;
    const float *queries = memory + at.queries + place * shape::gradient_stride;
    const float *log_sum = memory + at.log_sum + place, *inner = memory + at.inner + place;
    tile_lane me = tile_lane_now();
    uint2 looked_up = {};
    int from = 0;
    if (form->threshold) {
        /* Lane i of 16 looks up the bits of query i for the warp's keys. */
        int query = min(first_query + (me.lane & 15), mine.high - 1);
        int start = ((const int *)(memory + at.start))[min(query - origin, form->rows - 1)];
        from = mine.key - me.group - start;
        looked_up = attention_look_up(task, attention_words(task, query, head), from);
    }
    float score[TILES][4], slope[TILES][4];
    make_pairs<shape, shape::gradient_stride>(keys, shape::wide, tile_right(queries, shape::gradient_stride),
                                              shape::after, score, slope);
    uint32_t word = form->threshold ? attention_keep(looked_up, from) : 0xFFFFFFFFu;
#pragma unroll
    for (int j = 0; j < TILES; j++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int col = 8 * j + 2 * me.member + i, query = first_query + col;
            uint32_t keep = __shfl_sync(0xFFFFFFFFu, word, col) >> me.group;
#pragma unroll
            for (int half = 0; half < 2; half++)
                finish_pair(form, query >= mine.key + 8 * half && query < mine.end[half], keep >> (8 * half) & 1,
                            log_sum[col], inner[col], &score[j][2 * half + i], &slope[j][2 * half + i]);
        }
    }
    tile_spread<shape::two, shape::gradient_stride, 0, shape::depth>(sum, slope, queries);
    tile_spread<shape::two, shape::gradient_stride, shape::wide / 8, shape::depth>(sum, score,
                                                                                   queries + shape::at(shape::after));
}

/* Sums of keys and values are of one head, and begin again with the next; those of the basis are of all. */
template <typename shape>
__device__ void store_keys(const attention_task *task, attention_head head, float *room, int first, int present,
                           int group_row, float (&sum)[shape::all][4])
{
    const attention_form *form = &task->form;
    constexpr int stride = shape::key_room;
    __syncthreads();
    tile_put(room + group_row * stride, stride, shape::all, sum);
    __syncthreads();
    if (task->dkey)
        tile_store(task->dkey + first * head.stride + head.first, head.stride, present, form->cols, room, stride,
                   task->adds & 2);
    if (task->dvalue)
        tile_store(task->dvalue + first * head.stride + head.first, head.stride, present, form->cols,
                   room + shape::after, stride, task->adds & 4);
    if (task->dbasis && head.number == form->heads - 1)
        tile_store(task->dbasis + (int64_t)first * form->extra, form->extra, present, form->extra, room + shape::wide,
                   stride, task->adds & 16);
#pragma unroll
    for (int j = 0; j < shape::all; j++)
        if (8 * j < shape::wide || 8 * j >= shape::after)
            sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0;
}

template <typename shape> __device__ void by_keys(const attention_task *task, float *memory)
{
    const attention_form *form = &task->form;
    tensor_layout at = tensor_layout_of(form, true, shape::key_room);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = (int)blockIdx.x * form->rows, steps = form->steps;
    if (first >= tokens)
        return;
    int present = min(form->rows, tokens - first), *start = (int *)(memory + at.start), *end = (int *)(memory + at.end);
    attention_spans(task->shard, task->segment, first, form->rows, start, end);
    __syncthreads();
    tile_lane me = tile_lane_now();
    int group_row = 16 * me.warp, query_end = end[form->rows - 1];
    key_place mine = {group_row, first + group_row + me.group, {0, 0}, end[group_row + 15]};
    for (int half = 0; half < 2; half++)
        mine.end[half] = mine.key + 8 * half < tokens ? end[group_row + me.group + 8 * half] : 0;
    tile_source keys = tile_left(memory + at.keys + group_row * shape::key_stride, shape::key_stride);
    float sum[shape::all][4] = {};
    for (int number = 0; number < form->heads; number++) {
        attention_head head = attention_head_of(form, number);
        int turn = 0;
        __syncthreads(); /* the last head has left */
        attention_bring_keys<shape, TILE_ASK>(task, head, memory + at.keys, first, present, form->rows);
        move_queries<shape, TILE_ASK>(task, head, memory, at, 0, first, min(steps, query_end - first), steps);
        tile_wait();
        attention_bring_keys<shape, TILE_SETTLE>(task, head, memory + at.keys, first, present, form->rows);
        for (int query = first, next; query < query_end; query = next, turn = form->buffers - 1 - turn) {
            next = query + steps;
            tile_wait();
            if (form->rounds)
                move_queries<shape, TILE_SETTLE>(task, head, memory, at, turn * steps, query,
                                                 min(steps, query_end - query), steps);
            __syncthreads();
            if (form->buffers == 2 && next < query_end)
                move_queries<shape, TILE_ASK>(task, head, memory, at, (1 - turn) * steps, next,
                                              min(steps, query_end - next), steps);
            for (int place = 0; place < steps; place += UNIT)
                if (query + place + UNIT > first + group_row && query + place < mine.high)
                    take_queries<shape>(task, memory, at, mine, keys, first, query + place, turn * steps + place,
                                        number, sum);
            if (form->buffers == 1 && next < query_end) {
                __syncthreads();
                move_queries<shape, TILE_ASK>(task, head, memory, at, 0, next, min(steps, query_end - next), steps);
            }
        }
        store_keys<shape>(task, head, memory, first, present, group_row, sum);
    }
}

/* ---- a tile of queries --------------------------------------------------------------------------------------- */

/* One of the lane's two rows. */
typedef struct query_row {
    int query, start; /* query < start where there is no such token */
    float log_sum, inner;
    const uint32_t *words;
} query_row;

/* The warp's queries and 16 keys. */
template <typename shape>
__device__ void take_keys(const attention_task *task, tile_source queries, const float *keys, int first_key,
                          const query_row (&row)[2], float (&sum)[shape::depth][4])
{
    const attention_form *form = &task->form;
    tile_lane me = tile_lane_now();
    uint2 looked_up[2] = {};
    if (form->threshold)
#pragma unroll
        for (int half = 0; half < 2; half++)
            looked_up[half] = attention_look_up(task, row[half].words, first_key - row[half].start);
    float score[TILES][4], slope[TILES][4];
    make_pairs<shape, shape::key_stride>(queries, shape::after, tile_right(keys, shape::key_stride), shape::wide, score,
                                         slope);
    uint32_t keep[2] = {0xFFFFFFFFu, 0xFFFFFFFFu};
    if (form->threshold)
#pragma unroll
        for (int half = 0; half < 2; half++)
            keep[half] = attention_keep(looked_up[half], first_key - row[half].start) >> (2 * me.member);
#pragma unroll
    for (int j = 0; j < TILES; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const query_row *mine = &row[i >> 1];
            int key = first_key + 8 * j + 2 * me.member + (i & 1);
            finish_pair(form, key >= mine->start && key <= mine->query, keep[i >> 1] >> (8 * j + (i & 1)) & 1,
                        mine->log_sum, mine->inner, &score[j][i], &slope[j][i]);
        }
    }
    tile_spread<shape::two, shape::key_stride, 0, shape::depth>(sum, slope, keys);
}

template <typename shape>
__device__ void store_queries(const attention_task *task, attention_head head, float *room, int first, int present,
                              int group_row, const float (&sum)[shape::depth][4])
{
    const attention_form *form = &task->form;
    constexpr int stride = shape::query_room;
    __syncthreads();
    tile_put(room + group_row * stride, stride, shape::depth, sum);
    __syncthreads();
    if (task->dquery)
        tile_store(task->dquery + first * head.stride + head.first, head.stride, present, form->cols, room, stride,
                   task->adds & 1);
    if (task->dtime_query)
        tile_store(task->dtime_query + first * head.extra_stride + head.extra_first, head.extra_stride, present,
                   form->extra, room + shape::wide, stride, task->adds & 8);
}

template <typename shape> __device__ void by_queries(const attention_task *task, float *memory, int number)
{
    const attention_form *form = &task->form;
    tensor_layout at = tensor_layout_of(form, false, shape::query_room);
    attention_head head = attention_head_of(form, number);
    int tokens = task->shard->rows[LP_ROWS_TOKENS], first = (int)blockIdx.x * form->rows, steps = form->steps;
    if (first >= tokens)
        return;
    int present = min(form->rows, tokens - first), end = first + present, *start = (int *)(memory + at.start), turn = 0;
    move_queries<shape, TILE_ASK>(task, head, memory, at, 0, first, present, form->rows);
    attention_spans(task->shard, task->segment, first, form->rows, start, NULL);
    __syncthreads();
    attention_bring_keys<shape, TILE_ASK>(task, head, memory + at.keys, start[0], min(steps, end - start[0]), steps);
    tile_wait();
    move_queries<shape, TILE_SETTLE>(task, head, memory, at, 0, first, present, form->rows);
    __syncthreads(); /* log sums of others */
    tile_lane me = tile_lane_now();
    int group_row = 16 * me.warp, low = start[group_row], high = min(first + group_row + 16, end);
    query_row row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int r = group_row + me.group + 8 * half, query = min(first + r, end - 1);
        query_row begun = {first + r < end ? query : start[r] - 1, start[r], memory[at.log_sum + r],
                           memory[at.inner + r], form->threshold ? attention_words(task, query, number) : NULL};
        row[half] = begun;
    }
    tile_source queries = tile_left(memory + at.queries + group_row * shape::gradient_stride, shape::gradient_stride);
    float sum[shape::depth][4] = {};
    for (int key = start[0], next; key < end; key = next, turn = form->buffers - 1 - turn) {
        float *keys = memory + at.keys + turn * steps * shape::key_stride;
        next = key + steps;
        tile_wait();
        if (form->rounds)
            attention_bring_keys<shape, TILE_SETTLE>(task, head, keys, key, min(steps, end - key), steps);
        __syncthreads();
        if (form->buffers == 2 && next < end)
            attention_bring_keys<shape, TILE_ASK>(task, head, memory + at.keys + (1 - turn) * steps * shape::key_stride,
                                                  next, min(steps, end - next), steps);
        for (int place = 0; place < steps; place += UNIT)
            if (key + place + UNIT > low && key + place < high)
                take_keys<shape>(task, queries, keys + place * shape::key_stride, key + place, row, sum);
        if (form->buffers == 1 && next < end) {
            __syncthreads();
            attention_bring_keys<shape, TILE_ASK>(task, head, keys, next, min(steps, end - next), steps);
        }
    }
    store_queries<shape>(task, head, memory, first, present, group_row, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Row 0 of the grid takes keys, the others the queries of a head each. */
template <typename shape, int threads, int blocks>
__global__ void __launch_bounds__(threads, blocks) tensor_backward(const __grid_constant__ attention_task task)
{
    LP_SHARED(float, memory);
    if (blockIdx.y == 0)
        by_keys<shape>(&task, memory);
    else
        by_queries<shape>(&task, memory, (int)blockIdx.y - 1);
}

template <typename shape, int threads, int blocks>
void launch(const lp_cuda_run *run, attention_task task, int64_t tokens, int rows, int steps, int buffers)
{
    attention_form *form = &task.form;
    attention_tiles(form, shape::wide, shape::extra, rows, steps, buffers, shape::key_stride, shape::gradient_stride);
    int keys = tensor_layout_of(form, true, shape::key_room).size,
        queries = tensor_layout_of(form, false, shape::query_room).size;
    size_t size = (size_t)(keys > queries ? keys : queries) * sizeof(float);
    LP_LAUNCH(run, (tensor_backward<shape, threads, blocks>), dim3(lp_blocks(tokens, rows), 1 + (unsigned)form->heads),
              (unsigned)(2 * rows), size, task);
}

attention_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = {};
    task.form = attention_form_of(node);
    task.shard = run->shard;
    task.segment = run->segment;
    task.query = LP_INPUT(0);
    task.key = LP_INPUT(1);
    task.value = LP_INPUT(2);
    task.time_query = LP_INPUT(3);
    task.basis = LP_INPUT(4);
    task.log_sum = (float *)LP_INPUT(5);
    task.out = (float *)LP_INPUT(6);
    task.dout = LP_INPUT(7);
    task.time_out = (float *)LP_INPUT(8);
    task.dtime_out = LP_INPUT(9);
    task.dquery = LP_OUTPUT(0);
    task.dkey = LP_OUTPUT(1);
    task.dvalue = LP_OUTPUT(2);
    task.dtime_query = LP_OUTPUT(3);
    task.dbasis = LP_OUTPUT(4);
    task.adds = (int)node->accumulate;
    return task;
}

} // namespace

bool lp_cuda_attention_gradient_tensor(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = task_of(node, run);
    const attention_form *form = &task.form;
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    size_t inner = ((size_t)tokens * (size_t)form->heads + 3) / 4 * 4;
    if (!attention_fits(form))
        return false;
    size_t size = attention_words_size(&task, run, tokens);
    if (size > ATTENTION_MOST_WORDS)
        return false;
    task.inner = (float *)lp_cuda_scratch(run, inner * sizeof(float) + size);
    if (!task.inner)
        return true;
    task.words = (uint32_t *)(task.inner + inner);
    if (attention_two(run))
        LP_LAUNCH(run, prepare<true>, lp_blocks(tokens * form->heads, 8), 256, 0, task);
    else
        LP_LAUNCH(run, prepare<false>, lp_blocks(tokens * form->heads, 8), 256, 0, task);
    if (form->extra && attention_two(run))
        launch<attention_shape<7, 13, true>, 128, 2>(run, task, tokens, 64, 64, 1);
    else if (form->extra)
        launch<attention_shape<7, 13>, 128, 2>(run, task, tokens, 64, 16, 2);
    else if (attention_two(run))
        launch<attention_shape<8, 0, true>, 128, 2>(run, task, tokens, 64, 64, 1);
    else
        launch<attention_shape<8, 0>, 128, 2>(run, task, tokens, 64, 32, 2);
    return true;
}
