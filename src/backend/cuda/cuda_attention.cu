/* cuda_attention.cu: causal attention over packed segments with online softmax; no score matrix is stored.
 *
 *     s(q, i) = scale (query_q . key_i + time_query_q . basis_i)      p = softmax of s over i <= q in q's segment
 *     out_q = sum_i f p value_i    time_out_q = sum_i f p basis_i    lse_q = log sum_i exp s   (f: dropout factor)
 *
 * Grid: (query tiles, heads, divisions of the output columns); 16 query rows a warp. A warp keeps for every query the
 * row maximum, the row sum of exp(s - maximum) and the output accumulators; they are rescaled only if the row maximum
 * rises by more than RESCALE_THRESHOLD: until then no number overflows. Scores are multiplied by log2 e and
 * exponentiated by 2^x.
 */
#include "backend/cuda/cuda_attention.h"

namespace
{

/* log2 of the growth of a score over the row maximum that forces a rescale; mask words of a row that a block draws
 * itself, into shared memory; blocks that run at once, so that their order does not matter. */
enum { RESCALE_THRESHOLD = 8, MAX_BLOCK_WORDS = 16, RESIDENT_BLOCKS = 256 };

/* Keys that a warp processes at once: `words` times 32, `tiles` times 8. An inner tile is a multiple, and with fixed
 * widths that number. */
template <int words> struct key_unit {
    static constexpr int tiles = 4 * words, keys = 32 * words;
};

/* Buffers of an inner tile. With fixed widths: two if two blocks then run on a multiprocessor; the mask takes up to 4
 * KiB. */
template <typename shape, int words> __host__ __device__ int buffers_of(const attention_task *task)
{
    if constexpr (shape::fixed)
        return 4 * (2 * key_unit<words>::keys * shape::key_stride(NULL) +
                    ATTENTION_ROWS * (shape::query_stride(NULL) + MAX_BLOCK_WORDS) + 66) <=
                       TILE_HALF_SHARED
                   ? 2
                   : 1;
    else
        return task->buffers;
}

/* Offsets in shared memory, in floats; size is the total. */
typedef struct forward_layout {
    int queries, mask, size;
} forward_layout;

template <typename shape, int words> __host__ __device__ forward_layout layout_of(const attention_task *task)
{
    forward_layout at;
    int inner_rows = shape::fixed ? key_unit<words>::keys : task->inner_rows;
    at.queries = buffers_of<shape, words>(task) * inner_rows * shape::key_stride(task);
    at.mask = at.queries + shape::rows(task) * shape::query_stride(task) + 64;
    at.size = at.mask + (task->mask_stride && !task->mask ? shape::rows(task) * task->mask_stride + 2 : 0);
    return at;
}

/* State of one of a lane's two rows, g and g + 8 of the warp's 16. */
typedef struct row_state {
    int query, start;       /* query < start if there is no such token: all keys are masked */
    float row_max, row_sum; /* of scores times log2 e; the sum over this lane's keys */
    const uint32_t *mask;
} row_state;

/* ---- dropout mask -------------------------------------------------------------------------------------------- */

/* For segments longer than a block draws itself: 8 threads for each token and head. */
__global__ void __launch_bounds__(256) draw_mask(const __grid_constant__ attention_task task)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) >> 3;
    int token = (int)(i / task.heads), head = (int)(i % task.heads);
    if (token >= task.shard->rows[task.rows_of])
        return;
    int low = 0, high = task.shard->segments;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (task.segment[middle] <= token)
            low = middle;
        else
            high = middle;
    }
    attention_mask_draw<8, 1>(&task, attention_mask_row(&task, token, head), head, token, task.segment[low],
                              (int)threadIdx.x & 7);
}

/* ---- one unit of keys ---------------------------------------------------------------------------------------- */

/* Scales and masks the scores; returns the row maxima, those before included. */
template <bool unmasked, int tiles>
__device__ __forceinline__ void mask_scores(float scale, int first_key, const row_state (&row)[2],
                                            float (&score)[tiles][4], float (&new_max)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        new_max[half] = row[half].row_max;
        int low = row[half].start - first_key - 2 * me.member, high = row[half].query - first_key - 2 * me.member;
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float *mine = &score[j][2 * half + i];
                bool visible = unmasked || (8 * j + i >= low && 8 * j + i <= high);
                *mine = visible ? *mine * scale : -INFINITY;
                new_max[half] = fmaxf(new_max[half], *mine);
            }
        new_max[half] = tile_row_max(new_max[half]);
    }
}

/* Accumulators of a lane belong to other rows than its scores. */
template <int all> __device__ __forceinline__ void rescale_sums(const float (&rescale)[2], float (&sum)[all][2][4])
{
    int member = tile_lane_now().member;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float one = __shfl_sync(0xFFFFFFFFu, rescale[half], 8 * member);
        float other = __shfl_sync(0xFFFFFFFFu, rescale[half], 8 * member + 4);
#pragma unroll
        for (int m = 0; m < all; m++) {
            sum[m][half][0] *= one;
            sum[m][half][1] *= other;
            sum[m][half][2] *= one;
            sum[m][half][3] *= other;
        }
    }
}

/* Processes the warp's rows and a unit of keys. */
template <typename shape, int words>
__device__ void process_unit(const attention_task *task, tile_address queries, const float *keys, int first_key,
                             bool unmasked, row_state (&row)[2], float (&sum)[shape::query_sums][2][4])
{
    constexpr int tiles = key_unit<words>::tiles;
    int stride = shape::key_stride(task), steps = shape::head(task) + shape::basis(task);
    uint2 loaded[2][words] = {};
    if (task->mask_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int w = 0; w < words; w++)
                loaded[half][w] = attention_mask_load(task, row[half].mask, first_key + 32 * w - row[half].start);
    float score[tiles][4] = {}, new_max[2], rescale[2];
    tile_address right = tile_b_address(keys, stride);
#pragma unroll(shape::fixed ? 64 : 4)
    for (int k = 0; k < steps; k++) {
        float left[4];
        tile_ldmatrix(left, queries, 8 * k);
        attention_multiply<shape::precision>(score, left, right, stride, 8 * k);
    }
    uint32_t keep[2][words];
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int w = 0; w < words; w++)
            keep[half][w] = task->mask_stride ? attention_mask_extract(loaded[half][w], first_key - row[half].start) >>
                                                    (2 * tile_lane_now().member)
                                              : 0xFFFFFFFFu;
    int rescale_any = 0;
    if (unmasked)
        mask_scores<true>(task->scale * TILE_LOG2_E, first_key, row, score, new_max);
    else
        mask_scores<false>(task->scale * TILE_LOG2_E, first_key, row, score, new_max);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        /* Before the first visible key the maximum is -infinity, and -infinity - -infinity is NaN. */
        if (!(new_max[half] <= row[half].row_max + RESCALE_THRESHOLD))
            rescale_any = 1;
        else
            new_max[half] = row[half].row_max;
        float base = new_max[half] == -INFINITY ? 0 : new_max[half];
        rescale[half] = tile_exp2(row[half].row_max - base);
        row[half].row_max = new_max[half];
        row[half].row_sum *= rescale[half];
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float probability = attention_round<shape::precision>(tile_exp2(score[j][2 * half + i] - base));
                row[half].row_sum += probability;
                score[j][2 * half + i] = keep[half][j / 4] >> (8 * (j % 4) + i) & 1 ? probability : 0;
            }
    }
    if (__any_sync(0xFFFFFFFFu, rescale_any))
        rescale_sums(rescale, sum);
    attention_accumulate<shape, true>(sum, score,
                                      keys + shape::first(task, 1) + shape::wide * shape::first_tile(task->query_tiles),
                                      stride, 0, shape::tiles(shape::sums(steps), task->query_tiles));
}

/* ---- results ------------------------------------------------------------------------------------------------- */

/* Reduces the row sums over lanes, and stores the output: columns of the basis first, then the values. `first`: the
 * warp's first query. */
template <typename shape>
__device__ __forceinline__ void finish_rows(const attention_task *task, int head, int64_t first, int present,
                                            row_state (&row)[2], float *stage, float (&sum)[shape::query_sums][2][4])
{
    int tile = shape::first_tile(task->query_tiles), begin = shape::columns(shape::basis(task));
    int tiles = shape::tiles(shape::sums(shape::head(task) + shape::basis(task)), task->query_tiles);
    int64_t stride = (int64_t)task->heads * task->head_dim, basis_stride = (int64_t)task->heads * task->basis_dim;
    float rescale[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half].row_sum = tile_row_sum(row[half].row_sum);
        rescale[half] = task->dropout_scale / row[half].row_sum;
        if (tile_lane_now().member == 0 && tile == 0 && row[half].query >= row[half].start)
            task->lse[(int64_t)row[half].query * task->heads + head] =
                row[half].row_max * TILE_LN_2 + logf(row[half].row_sum);
    }
    rescale_sums(rescale, sum);
    if (shape::basis(task))
        attention_store<shape>(task->time_out ? task->time_out + first * basis_stride + head * task->basis_dim : NULL,
                               basis_stride, attention_copy_at(task, task->copies[3], first, head, task->basis_dim),
                               present, task->basis_dim, begin, tile, 0, tiles, 0, task->vectorized & 2, 0, stage,
                               shape::query_stride(task), sum);
    attention_store<shape>(task->out + first * stride + head * task->head_dim, stride, {}, present, task->head_dim,
                           shape::columns(shape::head(task)), tile, 0, tiles, begin, task->vectorized & 1, 0, stage,
                           shape::query_stride(task), sum);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Saves the mask that the block has drawn for the gradient. */
__device__ __forceinline__ void save_mask(const attention_task *task, const uint32_t *mask, int head, int first,
                                          int rows, int threads)
{
    int stride = task->mask_stride, heads = task->heads;
    uint32_t *saved = task->saved_mask + 1 + ((int64_t)first * heads + head) * stride;
    for (int i = (int)threadIdx.x; i < rows * stride; i += threads)
        saved[heads == 1 ? i : i / stride * heads * stride + i % stride] = mask[i];
}

template <typename shape, int words, int blocks>
__global__ void __launch_bounds__(2 * ATTENTION_ROWS, blocks)
    attention_forward(const __grid_constant__ attention_task task)
{
    LP_SHARED(float, memory);
    lp_pdl_trigger();
    attention_probe probe = attention_probe_of(&task);
    constexpr int unit = key_unit<words>::keys;
    forward_layout parts = layout_of<shape, words>(&task);
    int head = (int)blockIdx.y, rows = shape::rows(&task), threads = shape::threads(&task);
    int inner_rows = shape::fixed ? unit : task.inner_rows, buffers = buffers_of<shape, words>(&task);
    int key_stride = shape::key_stride(&task), query_stride = shape::query_stride(&task);
    int tokens = task.shard->rows[task.rows_of], segments = task.shard->segments;
    int first = (int)blockIdx.x * rows;
    if (task.order) {
        int divided = ATTENTION_ROWS / rows, work = task.order[(int)blockIdx.x / divided];
        first = work & 1 ? (work >> 1) * ATTENTION_ROWS + (int)blockIdx.x % divided * rows : tokens;
    }
    int last = min(first + rows, tokens) - 1;
    if (first >= tokens)
        return;
    tile_lane me = tile_lane_now();
    float *queries = memory + parts.queries;
    auto copy_keys = [&](int buffer, int from) {
        attention_copy<shape>(&task, task.keys, ATTENTION_KEYS, head, memory + buffer * inner_rows * key_stride,
                              key_stride, inner_rows, from, last + 1 - from);
    };
    attention_cursor cursor = attention_cursor_of(task.segment, segments, tokens, probe, first);
    lp_pdl_wait();
    attention_copy<shape>(&task, task.queries, ATTENTION_QUERIES, head, queries, query_stride, rows, first,
                          last - first + 1);
    copy_keys(0, cursor.begin);

    /* Tokens whose segment this lane needs: its two rows, the warp's first and last row, and the row whose mask it
     * draws. Two threads draw a row, and neighbouring rows go to different warps, which balances long segments. */
    int group_row = 16 * me.warp, drawn = (me.lane >> 1) * (threads / 32) + me.warp;
    int tokens_of[] = {min(first + group_row + me.group, last), min(first + group_row + me.group + 8, last),
                       min(first + group_row, last), min(first + group_row + 15, last), min(first + drawn, last)};
    int start[5], end[5];
    attention_find_bounds(task.segment, segments, cursor, last, tokens_of, start, end);
    uint32_t *mask = (uint32_t *)(memory + parts.mask) + 1;
    if (task.mask_stride && !task.mask && first + drawn <= last)
        attention_mask_draw<2, 2>(&task, mask + drawn * task.mask_stride, head, first + drawn, start[4], me.lane & 1);

    /* Keys visible to some of the warp's rows; keys visible to all. */
    int low = start[2], high = tokens_of[3];
    int all_low = start[3], all_high = first + group_row + 15 <= last ? first + group_row : -1;
    row_state row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = tokens_of[half];
        bool valid = first + group_row + me.group + 8 * half <= last;
        row_state begun = {valid ? query : start[half] - 1, start[half], -INFINITY, 0,
                           task.mask ? attention_mask_row(&task, query, head)
                                     : mask + (query - first) * task.mask_stride};
        row[half] = begun;
    }
    tile_address mine = tile_a_address(queries + group_row * query_stride, query_stride);
    float sum[shape::query_sums][2][4] = {};
    int buffer = 0;
#pragma unroll 1
    for (int key = cursor.begin, next; key <= last; key = next, buffer = buffers - 1 - buffer) {
        const float *keys = memory + buffer * inner_rows * key_stride;
        next = key + inner_rows;
        tile_cp_async_wait();
        __syncthreads();
        if (buffers == 2 && next <= last)
            copy_keys(1 - buffer, next);
#pragma unroll 1
        for (int offset = 0; offset < inner_rows; offset += unit)
            if (key + offset + unit > low && key + offset <= high)
                process_unit<shape, words>(&task, mine, keys + offset * key_stride, key + offset,
                                           key + offset >= all_low && key + offset + unit - 1 <= all_high, row, sum);
        if (buffers == 1 && next <= last) {
            __syncthreads();
            copy_keys(0, next);
        }
    }
    if (task.saved_mask && !task.mask)
        save_mask(&task, mask, head, first, last + 1 - first, threads);
    finish_rows<shape>(&task, head, first + group_row, last + 1 - first - group_row, row,
                       queries + group_row * query_stride, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

template <typename shape, int words, int blocks = 2>
void launch(const lp_cuda_run *run, attention_task task, int64_t tokens)
{
    constexpr int inner = key_unit<words>::keys;
    static const attention_choice choices[] = {
        {64, inner, 2}, {64, inner, 1}, {32, inner, 2}, {32, inner, 1}, {16, inner, 1}};
    int divisions = attention_divide(shape::sums(task.head + task.basis), shape::query_sums, &task.query_tiles);
    if (divisions > 1 && task.mask_stride)
        task.mask = task.saved_mask; /* drawn once for all of them */
    attention_choose(&task, choices, [](const attention_task *with) { return layout_of<shape, words>(with).size; });
    if (task.mask)
        LP_LAUNCH(run, draw_mask, lp_blocks(tokens * task.heads, 32), 256, 0, task);
    unsigned tiles = lp_blocks(tokens, shape::rows(&task));
    if (tiles * (unsigned)(task.heads * divisions) > RESIDENT_BLOCKS) {
        task.order = lp_cuda_attention_order_of(run);
        tiles = (unsigned)(ATTENTION_ROWS / shape::rows(&task)) * (unsigned)lp_cuda_attention_order_tiles(run);
    }
    dim3 grid(tiles, (unsigned)task.heads, (unsigned)divisions);
    size_t size = (size_t)layout_of<shape, words>(&task).size * sizeof(float);
    LP_LAUNCH_PDL(run, (attention_forward<shape, words, blocks>), grid, (unsigned)shape::threads(&task), size, task);
}

template <lp_precision precision> void launch_any(const lp_cuda_run *run, const attention_task *task, int64_t tokens)
{
    constexpr int words = precision == LP_PRECISION_BF16 ? 2 : 1;
    typedef attention_shape<precision, 12, 0> narrow;
    int tiles = narrow::sums(task->head + task->basis);
    if (tiles <= 6)
        launch<attention_shape<precision, 6, 0>, words, 3>(run, *task, tokens);
    else if (lp_blocks(tiles, 18) < lp_blocks(tiles, 12))
        launch<attention_shape<precision, 18, 0>, 1>(run, *task, tokens);
    else
        launch<narrow, words>(run, *task, tokens);
}

} // namespace

attention_part attention_part_of(const lp_node *node, const lp_cuda_run *run, int i, bool by_head)
{
    const lp_value *value = node->inputs[i];
    if (!value)
        return {};
    int cols = by_head ? value->cols / node->attributes.heads : value->cols;
    lp_cuda_copy copy = lp_cuda_copy_from(run, node, i);
    if (copy.data)
        return {
            (const float *)copy.data, copy.stride / 2, by_head ? (cols + copy.gap) / 2 : 0, (cols + 7) / 8 * 4, 4, 0};
    const float *from = LP_INPUT(i);
    attention_part part = {from, value->cols, by_head ? cols : 0, cols, 1, 0};
    if (attention_aligned(from, cols, 4))
        part.vector = 4;
    else if (attention_aligned(from, cols, 2))
        part.vector = 2;
    while (part.shift < 5 && part.vector << part.shift < tile_pad(cols))
        part.shift++;
    return part;
}

attention_task attention_task_of(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = {};
    int heads = node->attributes.heads, step = tile_bf16(run) ? 16 : 8;
    task.shard = run->shard;
    task.segment = run->segment;
    task.max_segments = run->largest_segments;
    task.rows_of = node->inputs[0]->rows_of;
    task.heads = heads;
    task.head_dim = node->inputs[0]->cols / heads;
    task.basis_dim = node->inputs[4] ? node->inputs[4]->cols : 0;
    task.head = (int)lp_blocks(task.head_dim, step);
    task.basis = (int)lp_blocks(task.basis_dim, step);
    task.scale = (float)node->attributes.scale;
    task.dropout_threshold = lp_dropout_threshold(node->attributes.rate);
    task.dropout_purpose = lp_dropout_purpose(node->attributes.stream);
    task.dropout_scale = (float)(65536.0 / (65536.0 - task.dropout_threshold));
    task.queries[0] = attention_part_of(node, run, 0, true);
    task.keys[0] = attention_part_of(node, run, 1, true);
    task.keys[2] = attention_part_of(node, run, 2, true);
    task.queries[1] = attention_part_of(node, run, 3, true);
    task.keys[1] = attention_part_of(node, run, 4, false);
    return task;
}

void lp_cuda_attention(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = attention_task_of(node, run);
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    task.out = LP_OUTPUT(0);
    task.lse = LP_OUTPUT(1);
    task.time_out = node->outputs[2] && lp_cuda_stores_floats(run, node->outputs[2]) ? LP_OUTPUT(2) : NULL;
    if (node->outputs[2])
        task.copies[3] = lp_cuda_copy_to(run, node->outputs[2], task.heads);
    task.vectorized =
        attention_aligned(task.out, task.head_dim, 2) | attention_aligned(task.time_out, task.basis_dim, 2) << 1;
    task.aligned = attention_parts_aligned(&task);
    size_t size = attention_mask_size(&task, run, tokens);
    if (size) {
        task.saved_mask = (uint32_t *)lp_cuda_side_buffer(run, node->outputs[1], size);
        task.mask = task.mask_stride > MAX_BLOCK_WORDS ? task.saved_mask : NULL;
        if (!task.saved_mask)
            return;
    }
    attention_with_shape(run, &task, [&](auto chosen) {
        typedef decltype(chosen) shape;
        if constexpr (shape::fixed) {
            constexpr int words = !shape::bf16 && shape::basis(NULL) == 0 ? 2 : 1, sums = shape::query_sums;
            constexpr int blocks = !shape::bf16 || sums > 12 ? 2 : sums > 7 ? 3 : 4; /* as many as have registers */
            launch<shape, words, blocks>(run, task, tokens);
        } else {
            launch_any<shape::precision>(run, &task, tokens);
        }
    });
}
