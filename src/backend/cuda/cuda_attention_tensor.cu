/* cuda_attention_tensor.cu: attention for heads whose sums fit into a warp's registers (cuda_attention_tensor.h).
 *
 * As in cuda_attention.cu a query keeps the largest score so far, the sum of exp of all scores less that, and its sums of values and
 * basis. There are 16 rows to a warp, and often too few of them to keep the device busy: then two warps share them, one with the odd
 * and one with the even units of keys, and their sums are joined at the end.
 */
#include "backend/cuda/cuda_attention_tensor.h"

namespace
{

/* The parts of shared memory, in floats from its beginning; the last is its size. */
typedef struct tensor_layout {
    int keys, queries, start, peak, size;
} tensor_layout;

/* room: the stride of sums on their way out, which take the place of keys and queries. */
__host__ __device__ tensor_layout tensor_layout_of(const attention_form *form, int room)
{
    tensor_layout at;
    at.keys = 0;
    at.queries = at.keys + form->buffers * form->steps * form->key_stride;
    at.start = at.queries + form->rows * form->query_stride;
    at.start = at.start > form->rows * room ? at.start : form->rows * room;
    at.peak = at.start + form->rows;
    at.size = at.peak + 2 * form->rows;
    return at;
}

/* What a lane keeps of one of its two rows, g and g + 8 of the warp's. */
typedef struct tensor_row {
    int query, start; /* query < start where there is no such token: it sees no key */
    float peak, sum;  /* of scores times log2 e; the sum of this lane's own keys */
    const uint32_t *words;
} tensor_row;

/* ---- what dropout keeps -------------------------------------------------------------------------------------- */

/* A warp for each token and head. */
__global__ void __launch_bounds__(256) draw_words(const __grid_constant__ attention_task task)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    int token = (int)(i / task.form.heads);
    if (token >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    int s = attention_segment(task.segment, task.shard->segments, token);
    attention_draw(&task, (int)(i % task.form.heads), token, task.segment[s]);
}

/* ---- one unit of keys ---------------------------------------------------------------------------------------- */

/* Masks and scales the scores; returns the largest of each row, with those before. */
template <int tiles>
__device__ void settle_scores(float scale, int first_key, bool whole, const tensor_row (&row)[2],
                              float (&score)[tiles][4], float (&largest)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        largest[half] = row[half].peak;
        int low = row[half].start - first_key - 2 * me.member, high = row[half].query - first_key - 2 * me.member;
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float *mine = &score[j][2 * half + i];
                bool seen = whole || (8 * j + i >= low && 8 * j + i <= high);
                *mine = seen ? *mine * scale : -INFINITY;
                largest[half] = fmaxf(largest[half], *mine);
            }
        largest[half] = fmaxf(largest[half], __shfl_xor_sync(0xFFFFFFFFu, largest[half], 1));
        largest[half] = fmaxf(largest[half], __shfl_xor_sync(0xFFFFFFFFu, largest[half], 2));
    }
}

/* The warp's rows and 8 * tiles keys. */
template <typename shape, int tiles>
__device__ void take_unit(const attention_task *task, tile_source queries, const float *keys, int first_key, bool whole,
                          tensor_row (&row)[2], float (&sum)[shape::depth][4])
{
    const attention_form *form = &task->form;
    uint2 looked_up[2] = {};
    if (form->threshold)
#pragma unroll
        for (int half = 0; half < 2; half++)
            looked_up[half] = attention_look_up(task, row[half].words, first_key - row[half].start);
    float score[tiles][4] = {}, largest[2], worth[2];
    tile_source right = tile_right(keys, shape::key_stride);
#pragma unroll 4
    for (int k = 0; k < shape::runs; k++) {
        float left[4];
        tile_load(left, queries, 8 * k);
        tile_pairs<shape::two, shape::key_stride>(score, left, right, k);
    }
    uint32_t keep[2] = {0xFFFFFFFFu, 0xFFFFFFFFu};
    if (form->threshold)
#pragma unroll
        for (int half = 0; half < 2; half++)
            keep[half] = attention_keep(looked_up[half], first_key - row[half].start) >> (2 * tile_lane_now().member);
    settle_scores(form->scale * ATTENTION_LOG2_E, first_key, whole, row, score, largest);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        /* Where no key was seen yet the largest is -infinity, and may not be taken from itself. */
        float base = largest[half] == -INFINITY ? 0 : largest[half];
        worth[half] = tile_power(row[half].peak - base);
        row[half].peak = largest[half];
        row[half].sum *= worth[half];
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float share = tile_power(score[j][2 * half + i] - base);
                row[half].sum += share;
                score[j][2 * half + i] = keep[half] >> (8 * j + i) & 1 ? share : 0;
            }
    }
    if (__any_sync(0xFFFFFFFFu, worth[0] != 1 || worth[1] != 1))
#pragma unroll
        for (int j = 0; j < shape::depth; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[j][i] *= worth[i >> 1];
    tile_spread<shape::two, shape::key_stride, 0, shape::depth>(sum, score, keys + shape::at(shape::wide));
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

/* The lanes of a row, and the two warps that share it; row.sum is then that of all its keys, in those that hold the first part. */
template <typename shape>
__device__ void join_rows(const attention_form *form, float *room, float *peak, int group_row, int part,
                          tensor_row (&row)[2], float (&sum)[shape::depth][4])
{
    tile_lane me = tile_lane_now();
    float *mine = room + group_row * shape::query_room, worth[2], other[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half].sum += __shfl_xor_sync(0xFFFFFFFFu, row[half].sum, 1);
        row[half].sum += __shfl_xor_sync(0xFFFFFFFFu, row[half].sum, 2);
    }
    if ((int)blockDim.x == 2 * form->rows)
        return;
    __syncthreads(); /* keys and queries are not read any more */
    if (part == 1) {
        tile_put(mine, shape::query_room, shape::depth, sum);
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (me.member == 0) {
                peak[group_row + me.group + 8 * half] = row[half].peak;
                peak[form->rows + group_row + me.group + 8 * half] = row[half].sum;
            }
    }
    __syncthreads();
    if (part == 1)
        return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int r = group_row + me.group + 8 * half;
        float largest = fmaxf(row[half].peak, peak[r]), base = largest == -INFINITY ? 0 : largest;
        worth[half] = tile_power(row[half].peak - base);
        other[half] = tile_power(peak[r] - base);
        row[half].peak = largest;
        row[half].sum = row[half].sum * worth[half] + peak[form->rows + r] * other[half];
    }
#pragma unroll
    for (int j = 0; j < shape::depth; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *place = mine + (me.group + 8 * (i >> 1)) * shape::query_room + 8 * j + 2 * me.member;
            sum[j][i] = sum[j][i] * worth[i >> 1] + place[i & 1] * other[i >> 1];
        }
}

/* Columns of the basis come first, then those of the values. */
template <typename shape>
__device__ void store_sums(const attention_task *task, attention_head head, float *room, int group_row, int part,
                           int first, int present, const tensor_row (&row)[2], float (&sum)[shape::depth][4])
{
    const attention_form *form = &task->form;
    tile_lane me = tile_lane_now();
    float worth[2] = {form->kept / row[0].sum, form->kept / row[1].sum};
#pragma unroll
    for (int j = 0; j < shape::depth; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[j][i] *= worth[i >> 1];
    __syncthreads();
    if (part == 0) {
        tile_put(room + group_row * shape::query_room, shape::query_room, shape::depth, sum);
#pragma unroll
        for (int half = 0; half < 2; half++)
            if (me.member == 0 && row[half].query >= row[half].start)
                task->log_sum[(int64_t)row[half].query * form->heads + head.number] =
                    row[half].peak * ATTENTION_LN_2 + logf(row[half].sum);
    }
    __syncthreads();
    if (form->extra)
        tile_store(task->time_out + first * head.extra_stride + head.extra_first, head.extra_stride, present,
                   form->extra, room, shape::query_room, 0);
    tile_store(task->out + first * head.stride + head.first, head.stride, present, form->cols, room + shape::extra,
               shape::query_room, 0);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

template <typename shape, tile_moment moment>
__device__ void move_keys(const attention_task *task, attention_head head, float *keys, int first, int last)
{
    int steps = task->form.steps, left = last + 1 - first;
    attention_bring_keys<shape, moment>(task, head, keys, first, min(steps, left), min(steps, (left + 31) / 32 * 32));
}

/* tiles: of 8 keys, in a unit. */
template <typename shape, int tiles, int threads, int blocks>
__global__ void __launch_bounds__(threads, blocks) tensor_forward(const __grid_constant__ attention_task task)
{
    LP_SHARED(float, memory);
    const attention_form *form = &task.form;
    tensor_layout at = tensor_layout_of(form, shape::query_room);
    attention_head head = attention_head_of(form, (int)blockIdx.y);
    int tokens = task.shard->rows[LP_ROWS_TOKENS], first = (int)blockIdx.x * form->rows;
    if (first >= tokens)
        return;
    int last = min(first + form->rows, tokens) - 1, present = last - first + 1, *start = (int *)(memory + at.start);
    float *queries = memory + at.queries;
    attention_bring_queries<shape, TILE_ASK>(&task, head, queries, shape::query_stride, first, present, form->rows);
    attention_spans(task.shard, task.segment, first, form->rows, start, NULL);
    __syncthreads();
    move_keys<shape, TILE_ASK>(&task, head, memory + at.keys, start[0], last);
    tile_wait();
    attention_bring_queries<shape, TILE_SETTLE>(&task, head, queries, shape::query_stride, first, present, form->rows);

    tile_lane me = tile_lane_now();
    int group_row = me.warp % form->warp_rows * 16, part = me.warp / form->warp_rows;
    int parts = (int)blockDim.x / (2 * form->rows), unit = 8 * tiles;
    /* The keys that some of the warp's rows see, and those that all of them do. */
    int low = start[group_row], high = min(first + group_row + 15, last);
    int all_low = start[group_row + 15], all_high = first + group_row + 15 <= last ? first + group_row : -1;
    tensor_row row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int r = group_row + me.group + 8 * half, query = min(first + r, last);
        tensor_row begun = {first + r <= last ? query : start[r] - 1, start[r], -INFINITY, 0,
                            form->threshold ? attention_words(&task, query, head.number) : NULL};
        row[half] = begun;
    }
    tile_source mine = tile_left(queries + group_row * shape::query_stride, shape::query_stride);
    float sum[shape::depth][4] = {};
    int turn = 0;
    for (int key = start[0], next; key <= last; key = next, turn = form->buffers - 1 - turn) {
        float *keys = memory + at.keys + turn * form->steps * shape::key_stride;
        next = key + form->steps;
        tile_wait();
        if (form->rounds)
            move_keys<shape, TILE_SETTLE>(&task, head, keys, key, last);
        __syncthreads();
        if (form->buffers == 2 && next <= last)
            move_keys<shape, TILE_ASK>(&task, head, memory + at.keys + (1 - turn) * form->steps * shape::key_stride,
                                       next, last);
        for (int place = part * unit; place < form->steps; place += parts * unit)
            if (key + place + unit > low && key + place <= high)
                take_unit<shape, tiles>(&task, mine, keys + place * shape::key_stride, key + place,
                                        key + place >= all_low && key + place + unit - 1 <= all_high, row, sum);
        if (form->buffers == 1 && next <= last) {
            __syncthreads();
            move_keys<shape, TILE_ASK>(&task, head, keys, next, last);
        }
    }
    join_rows<shape>(form, memory, memory + at.peak, group_row, part, row, sum);
    store_sums<shape>(&task, head, memory, group_row, part, first, present, row, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* parts: warps that share 16 rows. */
template <typename shape, int tiles, int threads, int blocks>
void launch(const lp_cuda_run *run, attention_task task, int64_t tokens, int rows, int steps, int buffers, int parts)
{
    attention_form *form = &task.form;
    attention_tiles(form, shape::wide, shape::extra, rows, steps, buffers, shape::key_stride, shape::query_stride);
    size_t size = (size_t)tensor_layout_of(form, shape::query_room).size * sizeof(float);
    LP_LAUNCH(run, (tensor_forward<shape, tiles, threads, blocks>),
              dim3(lp_blocks(tokens, rows), (unsigned)form->heads), (unsigned)(2 * rows * parts), size, task);
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
    task.out = LP_OUTPUT(0);
    task.log_sum = LP_OUTPUT(1);
    task.time_out = LP_OUTPUT(2);
    return task;
}

} // namespace

bool lp_cuda_attention_tensor(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = task_of(node, run);
    const attention_form *form = &task.form;
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    if (!attention_fits(form))
        return false;
    size_t size = attention_words_size(&task, run, tokens);
    if (size > ATTENTION_MOST_WORDS)
        return false;
    if (size) {
        task.words = (uint32_t *)lp_cuda_scratch(run, size);
        if (!task.words)
            return true;
        LP_LAUNCH(run, draw_words, lp_blocks(tokens * form->heads, 8), 256, 0, task);
    }
    if (form->extra && attention_two(run))
        launch<attention_shape<7, 13, true>, 2, 256, 2>(run, task, tokens, 64, 128, 1, 2);
    else if (form->extra)
        launch<attention_shape<7, 13>, 2, 256, 2>(run, task, tokens, 64, 32, 2, 2);
    else if (attention_two(run))
        launch<attention_shape<8, 0, true>, 4, 256, 2>(run, task, tokens, 64, 128, 1, 2);
    else
        launch<attention_shape<8, 0>, 4, 256, 2>(run, task, tokens, 64, 64, 2, 2);
    return true;
}
