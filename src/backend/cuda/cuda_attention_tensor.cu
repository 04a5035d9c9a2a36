/* cuda_attention_tensor.cu: attention for heads whose sums fit into a warp's registers (cuda_attention_tensor.h).
 *
 * As in cuda_attention.cu a query keeps the largest score so far, the sum of exp of all scores less that, and its sums of values and
 * basis; only that a larger score is taken note of when it is larger by far, since until then no number grows too large.
 */
#include "backend/cuda/cuda_attention_tensor.h"

namespace
{

/* The tiles of one kernel: `rows` queries, 16 to a warp, and `steps` keys at a time, in units of 8 * `tiles`. */
template <typename a_shape, int a_rows, int a_steps, int a_tiles> struct forward_tiles {
    typedef a_shape shape;
    static constexpr int rows = a_rows, steps = a_steps, tiles = a_tiles, unit = 8 * tiles, threads = 2 * rows;
    /* shared memory, in floats from its beginning */
    static constexpr int raw = 2 * steps * shape::key_stride;
    static constexpr int queries = raw + (shape::two ? steps * shape::key_raw : 0);
    static constexpr int words = queries + rows * shape::query_stride;
    static_assert(rows % 32 == 0 && steps % unit == 0, "whole warps and units");

    /* Floats of shared memory, with the words of all rows. */
    static int size(int word_stride)
    {
        return words + (word_stride ? rows * word_stride + 2 : 0);
    }
};

/* What a lane keeps of one of its two rows, g and g + 8 of the warp's. */
typedef struct tensor_row {
    int query, start; /* query < start where there is no such token: it sees no key */
    float peak, sum;  /* of scores times log2 e; the sum of this lane's own keys */
    const uint32_t *words;
} tensor_row;

/* ---- what dropout keeps -------------------------------------------------------------------------------------- */

/* Where a block would have many words to draw: 8 threads for each token and head. */
__global__ void __launch_bounds__(256) draw_words(const __grid_constant__ attention_task task)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) >> 3;
    int token = (int)(i / task.form.heads), head = (int)(i % task.form.heads);
    if (token >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    int s = attention_segment(task.segment, task.shard->segments, token);
    attention_draw<8, 1>(&task, attention_words(&task, token, head), head, token, task.segment[s],
                         (int)threadIdx.x & 7);
}

/* ---- one unit of keys ---------------------------------------------------------------------------------------- */

/* By how much a score must be larger than the largest to take its place; a power of 2. */
enum { FAR = 8 };

/* Masks and scales the scores; returns the largest of each row, with those before. */
template <bool whole, int tiles>
__device__ __forceinline__ void settle_scores(float scale, int first_key, const tensor_row (&row)[2],
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

/* Sums of a lane are of other rows than its scores. */
template <int all> __device__ __forceinline__ void scale_sums(const float (&worth)[2], float (&sum)[all][2][4])
{
    int member = tile_lane_now().member;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float one = __shfl_sync(0xFFFFFFFFu, worth[half], 8 * member);
        float other = __shfl_sync(0xFFFFFFFFu, worth[half], 8 * member + 4);
#pragma unroll
        for (int m = 0; m < all; m++) {
            sum[m][half][0] *= one;
            sum[m][half][1] *= other;
            sum[m][half][2] *= one;
            sum[m][half][3] *= other;
        }
    }
}

/* The warp's rows and 8 * tiles keys. */
template <typename shape, int tiles>
__device__ void take_unit(const attention_task *task, tile_source queries, const float *keys, int first_key, bool whole,
                          tensor_row (&row)[2], float (&sum)[shape::query_sums][2][4])
{
    const attention_form *form = &task->form;
    uint2 looked_up[2] = {};
    if (task->word_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            looked_up[half] = attention_look_up(task, row[half].words, first_key - row[half].start);
    float score[tiles][4] = {}, largest[2], worth[2];
    tile_source right = tile_right(keys, shape::key_stride);
#pragma unroll
    for (int k = 0; k < shape::runs; k++) {
        float left[4];
        tile_load(left, queries, 8 * k);
        tile_pairs<shape::two, shape::key_stride>(score, left, right, k);
    }
    uint32_t keep[2] = {0xFFFFFFFFu, 0xFFFFFFFFu};
    if (task->word_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            keep[half] = attention_keep(looked_up[half], first_key - row[half].start) >> (2 * tile_lane_now().member);
    int risen = 0;
    if (whole)
        settle_scores<true>(form->scale * ATTENTION_LOG2_E, first_key, row, score, largest);
    else
        settle_scores<false>(form->scale * ATTENTION_LOG2_E, first_key, row, score, largest);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        /* Where no key was seen yet the largest is -infinity, and may not be taken from itself. */
        if (!(largest[half] <= row[half].peak + FAR))
            risen = 1;
        else
            largest[half] = row[half].peak;
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
    if (__any_sync(0xFFFFFFFFu, risen))
        scale_sums(worth, sum);
    tile_spread_transposed<shape::two, shape::key_stride, 0, shape::query_sums>(sum, score,
                                                                                keys + shape::at(shape::wide));
}

/* ---- the end ------------------------------------------------------------------------------------------------- */

/* Joins the lanes of a row, and stores what comes out: columns of the basis stand first, then those of the values. `first` is the warp's
 * first query. */
template <typename shape>
__device__ __forceinline__ void finish_rows(const attention_task *task, attention_head head, int64_t first, int present,
                                            tensor_row (&row)[2], float (&sum)[shape::query_sums][2][4])
{
    const attention_form *form = &task->form;
    float worth[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half].sum += __shfl_xor_sync(0xFFFFFFFFu, row[half].sum, 1);
        row[half].sum += __shfl_xor_sync(0xFFFFFFFFu, row[half].sum, 2);
        worth[half] = form->kept / row[half].sum;
        if (tile_lane_now().member == 0 && row[half].query >= row[half].start)
            task->log_sum[(int64_t)row[half].query * form->heads + head.number] =
                row[half].peak * ATTENTION_LN_2 + logf(row[half].sum);
    }
    scale_sums(worth, sum);
    if constexpr (shape::extra > 0)
        attention_give<shape::two, 0, 0, shape::extra>(task->time_out + first * head.extra_stride + head.extra_first,
                                                       head.extra_stride, present, form->extra, task->pairs & 2, 0,
                                                       sum);
    attention_give<shape::two, 0, shape::extra, shape::wide>(task->out + first * head.stride + head.first, head.stride,
                                                             present, form->cols, task->pairs & 1, 0, sum);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Asks for keys from `first` on. */
template <typename tiles>
__device__ __forceinline__ void ask_keys(const attention_task *task, int head, float *memory, int turn, int first,
                                         int last)
{
    typedef typename tiles::shape shape;
    constexpr int stride = shape::two ? shape::key_raw : shape::key_stride;
    float *to = shape::two ? memory + tiles::raw : memory + turn * tiles::steps * shape::key_stride;
    attention_bring<shape, ATTENTION_ASK, stride, tiles::steps, tiles::threads>(task->keys, ATTENTION_KEYS, task->plain,
                                                                                head, to, first, last + 1 - first);
}

/* What the block has drawn, for the gradient. */
template <int threads>
__device__ __forceinline__ void leave_words(const attention_task *task, const uint32_t *words, int head, int first,
                                            int rows)
{
    int stride = task->word_stride, heads = task->form.heads;
    uint32_t *left = task->left + 1 + ((int64_t)first * heads + head) * stride;
    for (int i = (int)threadIdx.x; i < rows * stride; i += threads)
        left[heads == 1 ? i : i / stride * heads * stride + i % stride] = words[i];
}

template <typename tiles, int blocks>
__global__ void __launch_bounds__(tiles::threads, blocks) tensor_forward(const __grid_constant__ attention_task task)
{
    typedef typename tiles::shape shape;
    LP_SHARED(float, memory);
    lp_pdl_trigger();
    attention_probe probe = attention_probe_of(&task);
    attention_head head = attention_head_of(&task.form, (int)blockIdx.y);
    int tokens = task.shard->rows[LP_ROWS_TOKENS], segments = task.shard->segments;
    int first = (int)blockIdx.x * tiles::rows, last = min(first + tiles::rows, tokens) - 1;
    if (first >= tokens)
        return;
    tile_lane me = tile_lane_now();
    float *queries = memory + tiles::queries;
    attention_bring<shape, shape::two ? ATTENTION_PACK : ATTENTION_ASK, shape::query_stride, tiles::rows,
                    tiles::threads>(task.queries, ATTENTION_QUERIES, task.plain, head.number, queries, first,
                                    last - first + 1);
    attention_near near = attention_near_of(task.segment, segments, tokens, probe, first);
    ask_keys<tiles>(&task, head.number, memory, 0, near.begin, last);

    /* The lane's rows, the warp's first and last, and the one whose words it draws: two threads for each, and those of long segments in
     * all warps. */
    int group_row = 16 * me.warp, drawn = (me.lane >> 1) * (tiles::threads / 32) + me.warp;
    int tokens_of[] = {min(first + group_row + me.group, last), min(first + group_row + me.group + 8, last),
                       min(first + group_row, last), min(first + group_row + 15, last), min(first + drawn, last)};
    int start[5], end[5];
    attention_find(task.segment, segments, near, last, tokens_of, start, end);
    uint32_t *words = (uint32_t *)(memory + tiles::words) + 1;
    if (task.word_stride && !task.words && first + drawn <= last)
        attention_draw<2, 2>(&task, words + drawn * task.word_stride, head.number, first + drawn, start[4],
                             me.lane & 1);

    /* The keys that some of the warp's rows see, and those that all of them do. */
    int low = start[2], high = tokens_of[3];
    int all_low = start[3], all_high = first + group_row + 15 <= last ? first + group_row : -1;
    tensor_row row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = tokens_of[half];
        bool there = first + group_row + me.group + 8 * half <= last;
        tensor_row begun = {there ? query : start[half] - 1, start[half], -INFINITY, 0,
                            task.words ? attention_words(&task, query, head.number)
                                       : words + (query - first) * task.word_stride};
        row[half] = begun;
    }
    tile_source mine = tile_left(queries + group_row * shape::query_stride, shape::query_stride);
    float sum[shape::query_sums][2][4] = {};
    int turn = 0;
#pragma unroll 1
    for (int key = near.begin, next; key <= last; key = next, turn = 1 - turn) {
        float *keys = memory + turn * tiles::steps * shape::key_stride;
        next = key + tiles::steps;
        tile_wait();
        if (shape::two)
            attention_settle<shape, shape::key_stride, shape::key_raw, tiles::steps, tiles::threads>(
                task.keys, task.plain, keys, memory + tiles::raw);
        __syncthreads();
        if (next <= last)
            ask_keys<tiles>(&task, head.number, memory, 1 - turn, next, last);
#pragma unroll 1
        for (int place = 0; place < tiles::steps; place += tiles::unit)
            if (key + place + tiles::unit > low && key + place <= high)
                take_unit<shape, tiles::tiles>(&task, mine, keys + place * shape::key_stride, key + place,
                                               key + place >= all_low && key + place + tiles::unit - 1 <= all_high, row,
                                               sum);
    }
    if (task.left && !task.words)
        leave_words<tiles::threads>(&task, words, head.number, first, last + 1 - first);
    finish_rows<shape>(&task, head, first + group_row, last + 1 - first - group_row, row, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

template <typename tiles, int blocks> void launch(const lp_cuda_run *run, attention_task task, int64_t tokens)
{
    attention_parts<typename tiles::shape>(&task);
    size_t size = (size_t)tiles::size(task.words ? 0 : task.word_stride) * sizeof(float);
    LP_LAUNCH(run, (tensor_forward<tiles, blocks>), dim3(lp_blocks(tokens, tiles::rows), (unsigned)task.form.heads),
              (unsigned)tiles::threads, size, task);
}

/* Two blocks of each fit on a multiprocessor. */
typedef forward_tiles<attention_shape<7, 13>, 64, 32, 4> with_basis;
typedef forward_tiles<attention_shape<7, 13, true>, 64, 32, 4> with_basis_two;
typedef forward_tiles<attention_shape<8, 0>, 64, 64, 4> without_basis;
typedef forward_tiles<attention_shape<8, 0, true>, 64, 64, 4> without_basis_two;

attention_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = {};
    task.form = attention_form_of(node);
    task.shard = run->shard;
    task.segment = run->segment;
    task.most_segments = run->largest_segments;
    task.in.query = LP_INPUT(0);
    task.in.key = LP_INPUT(1);
    task.in.value = LP_INPUT(2);
    task.in.time_query = LP_INPUT(3);
    task.in.basis = LP_INPUT(4);
    task.out = LP_OUTPUT(0);
    task.log_sum = LP_OUTPUT(1);
    task.time_out = LP_OUTPUT(2);
    task.pairs = attention_even(task.out, task.form.cols, 2) | attention_even(task.time_out, task.form.extra, 2) << 1;
    return task;
}

/* Words of a row that are drawn by its block, into shared memory. */
enum { MOST_WORDS = 16 };

} // namespace

bool lp_cuda_attention_tensor(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = task_of(node, run);
    const attention_form *form = &task.form;
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    if (!attention_fits(form))
        return false;
    size_t size = attention_words_size(&task, run, tokens);
    if (size && size <= ATTENTION_MOST_WORDS)
        task.left = (uint32_t *)lp_cuda_side_buffer(run, node->outputs[1], size);
    if (task.word_stride > MOST_WORDS) {
        if (size > ATTENTION_MOST_WORDS)
            return false;
        task.words = task.left ? task.left : (uint32_t *)lp_cuda_scratch(run, size);
        if (!task.words)
            return true;
        LP_LAUNCH(run, draw_words, lp_blocks(tokens * form->heads, 32), 256, 0, task);
    }
    if (form->extra && attention_two(run))
        launch<with_basis_two, 2>(run, task, tokens);
    else if (form->extra)
        launch<with_basis, 2>(run, task, tokens);
    else if (attention_two(run))
        launch<without_basis_two, 2>(run, task, tokens);
    else
        launch<without_basis, 2>(run, task, tokens);
    return true;
}
