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

#include <algorithm>

namespace
{

enum { RESCALE_THRESHOLD = 8 /* log2 of the growth of a score over the row maximum that forces a rescale */ };

/* Softmax of the lane's two rows. */
typedef struct softmax_state {
    float max[2], sum[2]; /* of scores times log2 e; the sum over this lane's keys */
} softmax_state;

/* ---- dropout mask -------------------------------------------------------------------------------------------- */

/* Draws the mask of a query and head with two threads: thread `part` draws every second byte. The compiler interleaves
 * two of them, which hides the latency of Philox. */
__device__ __forceinline__ void draw_mask(const attention_task *task, int head, int token, int part)
{
    unsigned char *bytes = (unsigned char *)attention_mask_row(task, token, head);
    uint32_t below = (task->dropout_threshold << 16) - 1;
    int keys = token + 1 - task->bounds.start[token];
    uint64_t query_index = (task->shard->first_token + (uint64_t)token) * (uint64_t)task->heads + (uint64_t)head;
    uint64_t seed = task->shard->seed;
    uint32_t step = task->shard->step;
#pragma unroll 2
    for (int block = part; 8 * block < keys; block += 2) {
        lp_random_block drawn = lp_philox(seed, task->dropout_purpose, step, query_index * 65536 + (uint64_t)block);
        unsigned keep = 0;
#pragma unroll
        for (int bit = 0; bit < 8; bit++) /* lp_dropout_keep, with both sides 16 bits higher */
            keep |= (unsigned)((bit % 2 ? drawn.word[bit / 2] : drawn.word[bit / 2] << 16) > below) << bit;
        bytes[block] = (unsigned char)keep;
    }
}

/* ---- one unit of keys ---------------------------------------------------------------------------------------- */

/* Scales and masks the scores; returns the row maxima, those before included. */
template <bool unmasked, int tiles>
__device__ __forceinline__ void mask_scores(float scale, int first_key, const attention_queries &mine,
                                            const softmax_state &softmax, float (&score)[tiles][4], float (&new_max)[2])
{
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        new_max[half] = softmax.max[half];
        int low = mine.start[half] - first_key - 2 * me.member, high = mine.query[half] - first_key - 2 * me.member;
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float *here = &score[j][2 * half + i];
                bool visible = unmasked || (8 * j + i >= low && 8 * j + i <= high);
                *here = visible ? *here * scale : -INFINITY;
                new_max[half] = fmaxf(new_max[half], *here);
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
        for (int m = 0; m < all; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[m][half][i] *= i % 2 ? other : one;
    }
}

/* Processes the warp's rows and a unit of keys. */
template <typename shape>
__device__ void process_unit(const attention_task *task, tile_address queries, const float *keys, int first_key,
                             const attention_queries &mine, softmax_state &softmax,
                             float (&sum)[shape::query_sums][2][4])
{
    constexpr int tiles = shape::tiles;
    attention_size size = shape::size(task);
    int stride = size.key_stride, steps = size.head + size.basis;
    uint2 loaded[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        loaded[half] = attention_mask_load(task, mine.mask[half], first_key - mine.start[half]);
    float score[tiles][4] = {}, new_max[2], rescale[2];
    tile_address right = tile_b_address(keys, stride);
#pragma unroll(shape::fixed ? 64 : 4)
    for (int k = 0; k < steps; k++) {
        float left[4];
        tile_ldmatrix(left, queries, 8 * k);
        attention_multiply<shape::precision>(right, stride, 8 * k, score, left);
    }
    uint32_t keep[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        keep[half] = tile_funnel_shift(loaded[half].x, loaded[half].y, first_key - mine.start[half]) >>
                     (2 * tile_lane_now().member);
    int rescale_any = 0;
    if (first_key >= mine.all_low && first_key + shape::inner_rows - 1 <= mine.all_high)
        mask_scores<true>(task->scale * TILE_LOG2_E, first_key, mine, softmax, score, new_max);
    else
        mask_scores<false>(task->scale * TILE_LOG2_E, first_key, mine, softmax, score, new_max);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        /* Before the first visible key the maximum is -infinity, and -infinity - -infinity is NaN. */
        if (!(new_max[half] <= softmax.max[half] + RESCALE_THRESHOLD))
            rescale_any = 1;
        else
            new_max[half] = softmax.max[half];
        float base = new_max[half] == -INFINITY ? 0 : new_max[half];
        rescale[half] = tile_exp2(softmax.max[half] - base);
        softmax.max[half] = new_max[half];
        softmax.sum[half] *= rescale[half];
#pragma unroll
        for (int j = 0; j < tiles; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float probability = attention_round<shape::precision>(tile_exp2(score[j][2 * half + i] - base));
                softmax.sum[half] += probability;
                score[j][2 * half + i] = keep[half] >> (8 * j + i) & 1 ? probability : 0;
            }
    }
    if (__any_sync(0xFFFFFFFFu, rescale_any))
        rescale_sums(rescale, sum);
    attention_accumulate<shape, true>(sum, score,
                                      keys + size.first(1) + shape::wide * shape::first_tile(shape::query_sums), stride,
                                      0, shape::block_tiles(shape::sums(steps), shape::query_sums));
}

/* ---- results ------------------------------------------------------------------------------------------------- */

/* Reduces the row sums over lanes, and stores the output: columns of the basis first, then the values. */
template <typename shape>
__device__ __forceinline__ void finish_rows(const attention_task *task, int head, const attention_queries &mine,
                                            softmax_state &softmax, float *stage, float (&sum)[shape::query_sums][2][4])
{
    attention_size size = shape::size(task);
    attention_rows rows = {head, mine.first, mine.high + 1 - mine.first, stage, size.query_stride};
    float rescale[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        softmax.sum[half] = tile_row_sum(softmax.sum[half]);
        rescale[half] = task->dropout_scale / softmax.sum[half];
        if (tile_lane_now().member == 0 && shape::first_tile(shape::query_sums) == 0 &&
            mine.query[half] >= mine.start[half])
            task->lse[(int64_t)mine.query[half] * task->heads + head] =
                softmax.max[half] * TILE_LN_2 + logf(softmax.sum[half]);
    }
    rescale_sums(rescale, sum);
    attention_store<shape, true>(task->results[1], rows, size.basis, 0, sum);
    attention_store<shape, false>(task->results[0], rows, size.head, shape::columns(size.basis), sum);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

template <typename shape, int blocks>
__global__ void __launch_bounds__(2 * ATTENTION_ROWS, blocks)
    attention_forward(const __grid_constant__ attention_task task)
{
    LP_SHARED(float, memory);
    lp_pdl_trigger();
    constexpr int inner = shape::inner_rows;
    attention_size size = shape::size(&task);
    int head = (int)blockIdx.y, rows = size.rows, tokens = task.shard->rows[task.rows_of];
    int key_stride = size.key_stride, query_stride = size.query_stride;
    int divided = ATTENTION_ROWS / rows, work = task.bounds.order[(int)blockIdx.x / divided];
    int first = (work >> 1) * ATTENTION_ROWS + (int)blockIdx.x % divided * rows, end = min(first + rows, tokens);
    if (!(work & 1) || first >= tokens)
        return;
    tile_lane me = tile_lane_now();
    float *queries = memory + size.buffers * inner * key_stride;
    auto copy_keys = [&](int buffer, int from) {
        attention_copy<shape>(&task, task.keys, head, memory + buffer * inner * key_stride, key_stride, inner, from,
                              end - from);
    };
    int begin = task.bounds.start[first];
    attention_queries mine = attention_queries_of(&task, head, first, end);
    lp_pdl_wait();
    attention_copy<shape>(&task, task.queries, head, queries, query_stride, rows, first, end - first);
    copy_keys(0, begin);
    /* Two threads draw the mask of a row, and neighbouring rows go to different warps, which balances long segments. */
    int drawn = first + (me.lane >> 1) * (rows / 16) + me.warp;
    if (task.mask_stride && drawn < end)
        draw_mask(&task, head, drawn, me.lane & 1);
    float *own = queries + (mine.first - first) * query_stride;
    tile_address address = tile_a_address(own, query_stride);
    softmax_state softmax = {{-INFINITY, -INFINITY}, {}};
    float sum[shape::query_sums][2][4] = {};
    attention_each_tile<shape>(size.buffers, begin, end, copy_keys, [&](int buffer, int key) {
        if (key + inner > mine.low && key <= mine.high)
            process_unit<shape>(&task, address, memory + buffer * inner * key_stride, key, mine, softmax, sum);
    });
    finish_rows<shape>(&task, head, mine, softmax, own, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

template <typename shape> void launch(const lp_cuda_run *run, const attention_task &task)
{
    constexpr int sums = shape::query_sums;
    constexpr int blocks = !shape::fixed || !shape::bf16 || sums > 12 ? 2 : sums > 7 ? 3 : 4; /* that have registers */
    unsigned divisions = lp_blocks(shape::sums(task.size.head + task.size.basis), sums);
    attention_size size = shape::size(&task);
    unsigned tiles = lp_cuda_attention_order_tiles(run->run->plan->largest.rows[LP_ROWS_TOKENS]);
    dim3 grid(tiles * (unsigned)(ATTENTION_ROWS / size.rows), (unsigned)task.heads, divisions);
    LP_LAUNCH_PDL(run, (attention_forward<shape, blocks>), grid, 2 * (unsigned)size.rows,
                  (size_t)attention_floats(size, shape::inner_rows, false) * sizeof(float), task);
}

/* Input i of the node as a part; in bf16 its copy. by_head: every head has its own columns. */
attention_part attention_part_of(const lp_node *node, const lp_cuda_run *run, int i, bool by_head)
{
    const lp_value *value = node->inputs[i];
    if (!value)
        return {};
    int cols = by_head ? value->cols / node->attributes.heads : value->cols;
    lp_cuda_copy copy = lp_cuda_copy_from(run, node, i);
    if (copy.data)
        return {(const float *)copy.data, copy.stride / 2, by_head ? (cols + copy.gap) / 2 : 0, (cols + 7) / 8 * 4};
    return {LP_INPUT(i), value->cols, by_head ? cols : 0, cols};
}

/* A tile costs a fixed amount and one unit for every 16 rows of the other side; a unit of a key tile takes longer than
 * one of a query tile. TILE_BITS: of an entry, below its cost. */
enum { UNIT = 16, FIXED_COST = 3, KEY_TILE_COST = 4, QUERY_TILE_COST = 3, MAX_COST = 1023, TILE_BITS = 21 };

} // namespace

void lp_cuda_attention_order(const int32_t *segment, int segments, int64_t max_tokens, int32_t *start)
{
    int tokens = segment[segments], tiles = (int)lp_cuda_attention_order_tiles(max_tokens);
    int32_t *end = start + max_tokens, *order = end + max_tokens;
    for (int s = 0; s < segments; s++) {
        std::fill(start + segment[s], start + segment[s + 1], segment[s]);
        std::fill(end + segment[s], end + segment[s + 1], segment[s + 1]);
    }
    for (int i = 0; i < tiles; i++) {
        int first = i / 2 * ATTENTION_ROWS, last = std::min(first + ATTENTION_ROWS, tokens) - 1, cost = 0;
        if (first < tokens) {
            int rows = i % 2 ? last + 1 - start[first] : end[last] - first;
            cost = (FIXED_COST + (rows + UNIT - 1) / UNIT) * (i % 2 ? QUERY_TILE_COST : KEY_TILE_COST);
        }
        order[i] = (MAX_COST - std::min<int>(cost, MAX_COST)) << TILE_BITS | i;
    }
    std::sort(order, order + tiles);
    for (int i = 0; i < tiles; i++)
        order[i] &= (1 << TILE_BITS) - 1;
}

attention_result attention_result_of(const lp_node *node, const lp_cuda_run *run, int i, int heads)
{
    const lp_value *value = node->outputs[i];
    if (!value)
        return {};
    int cols = value->cols / heads;
    float *to = lp_cuda_stores_floats(run, value) ? LP_OUTPUT(i) : NULL;
    lp_cuda_copy copy = lp_cuda_copy_to(run, value, heads);
    if (heads == 1)
        copy.gap = copy.stride - cols;
    return {to, copy, cols, value->cols, LP_ADDS(i) != 0};
}

attention_task attention_task_of(const lp_node *node, const lp_cuda_run *run, bool backward)
{
    attention_task task = {};
    int step = tile_bf16(run) ? 16 : 8;
    task.shard = run->shard;
    task.bounds = lp_cuda_bounds_of(run);
    task.rows_of = node->inputs[0]->rows_of;
    task.heads = node->attributes.heads;
    task.head_dim = node->inputs[0]->cols / task.heads;
    task.basis_dim = node->inputs[4] ? node->inputs[4]->cols : 0;
    task.size = attention_size_of((int)lp_blocks(task.head_dim, step), (int)lp_blocks(task.basis_dim, step),
                                  backward && step == 8 ? 16 : 32, backward, run->device->shared, run->device->half);
    task.scale = (float)node->attributes.scale;
    task.dropout_threshold = lp_dropout_threshold(node->attributes.rate);
    task.dropout_purpose = lp_dropout_purpose(node->attributes.stream);
    task.dropout_scale = (float)(65536.0 / (65536.0 - task.dropout_threshold));
    task.mask_stride = task.dropout_threshold ? (run->run->plan->largest.longest + 31) / 32 : 0;
    task.queries[0] = attention_part_of(node, run, 0, true);
    task.keys[0] = attention_part_of(node, run, 1, true);
    task.keys[2] = attention_part_of(node, run, 2, true);
    task.queries[1] = attention_part_of(node, run, 3, true);
    task.keys[1] = attention_part_of(node, run, 4, false);
    task.queries[2] = attention_part_of(node, run, 9, true);
    task.queries[3] = attention_part_of(node, run, 7, true);
    task.aligned = task.head_dim % 2 == 0 && task.basis_dim % 4 == 0; /* matrices themselves are aligned to 16 bytes */
    return task;
}

void lp_cuda_attention(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = attention_task_of(node, run, false);
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    task.results[0] = attention_result_of(node, run, 0, task.heads);
    task.results[1] = attention_result_of(node, run, 2, task.heads);
    task.lse = LP_OUTPUT(1);
    if (task.mask_stride) {
        size_t words = (size_t)tokens * (size_t)task.heads * (size_t)task.mask_stride + 2;
        task.mask = (uint32_t *)lp_cuda_side_buffer(run, node->outputs[1], words * sizeof *task.mask);
        if (!task.mask)
            return;
    }
    attention_with_shape<false>(run, &task, [&](auto shape) { launch<decltype(shape)>(run, task); });
}
