/* cuda_attention_tensor.cu: attention on tensor cores (cuda_attention_tensor.h); equations in cuda_attention.cu.
 *
 * Grid: (query tiles of 64, heads); 128 threads, 16 query rows a warp; 32 or 64 keys an inner tile, double-buffered.
 * Shared memory: 75 to 100 KiB, so two blocks run on a multiprocessor. The online softmax rescales its accumulators
 * only if the row maximum rises by more than RESCALE_THRESHOLD: until then no number overflows. Scores are multiplied
 * by log2 e and exponentiated by 2^x.
 */
#include "backend/cuda/cuda_attention_tensor.h"

namespace
{

/* Tiles of one kernel: `rows` queries, 16 for each warp; `inner_rows` keys, processed in units of 8 * `tiles`.
 * With the defaults, two blocks run on a multiprocessor. */
template <typename a_shape, int a_rows = 64, int a_inner_rows = a_shape::basis_dim ? 32 : 64, int a_tiles = 4>
struct forward_tiles {
    typedef a_shape shape;
    static constexpr int rows = a_rows, inner_rows = a_inner_rows, tiles = a_tiles, unit = 8 * tiles,
                         threads = 2 * rows;
    /* offsets in shared memory, in floats */
    static constexpr int raw = 2 * inner_rows * shape::key_stride;
    static constexpr int queries = raw + (shape::bf16 ? inner_rows * shape::key_raw : 0);
    static constexpr int mask = queries + rows * shape::query_stride;
    static_assert(rows % 32 == 0 && inner_rows % unit == 0, "rows fill warps and inner rows fill units");

    /* Floats of shared memory, mask included. */
    static int size(int mask_stride)
    {
        return mask + (mask_stride ? rows * mask_stride + 2 : 0);
    }
};

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
    int token = (int)(i / task.config.heads), head = (int)(i % task.config.heads);
    if (token >= task.shard->rows[LP_ROWS_TOKENS])
        return;
    int s = attention_segment(task.segment, task.shard->segments, token);
    attention_mask_draw<8, 1>(&task, attention_mask_row(&task, token, head), head, token, task.segment[s],
                              (int)threadIdx.x & 7);
}

/* ---- one unit of keys ---------------------------------------------------------------------------------------- */

/* log2 of the growth of a score over the row maximum that forces a rescale. */
enum { RESCALE_THRESHOLD = 8 };

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

/* Processes the warp's rows and 8 * tiles keys. */
template <typename shape, int tiles>
__device__ void process_unit(const attention_task *task, tile_address queries, const float *keys, int first_key,
                             bool unmasked, row_state (&row)[2], float (&sum)[shape::query_sums][2][4])
{
    const attention_config *config = &task->config;
    uint2 loaded[2] = {};
    if (task->mask_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            loaded[half] = attention_mask_load(task, row[half].mask, first_key - row[half].start);
    float score[tiles][4] = {}, new_max[2], rescale[2];
    tile_address right = tile_b_address(keys, shape::key_stride);
#pragma unroll
    for (int k = 0; k < shape::k_steps; k++) {
        float left[4];
        tile_ldmatrix(left, queries, 8 * k);
        tile_mma_nt<shape::bf16, shape::key_stride>(score, left, right, k);
    }
    uint32_t keep[2] = {0xFFFFFFFFu, 0xFFFFFFFFu};
    if (task->mask_stride)
#pragma unroll
        for (int half = 0; half < 2; half++)
            keep[half] =
                attention_mask_extract(loaded[half], first_key - row[half].start) >> (2 * tile_lane_now().member);
    int rescale_any = 0;
    if (unmasked)
        mask_scores<true>(config->scale * TILE_LOG2_E, first_key, row, score, new_max);
    else
        mask_scores<false>(config->scale * TILE_LOG2_E, first_key, row, score, new_max);
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
                float probability = tile_exp2(score[j][2 * half + i] - base);
                row[half].row_sum += probability;
                score[j][2 * half + i] = keep[half] >> (8 * j + i) & 1 ? probability : 0;
            }
    }
    if (__any_sync(0xFFFFFFFFu, rescale_any))
        rescale_sums(rescale, sum);
    tile_mma_nn_transposed<shape::bf16, shape::key_stride, 0, shape::query_sums>(sum, score,
                                                                                 keys + shape::at(shape::head_dim));
}

/* ---- results ------------------------------------------------------------------------------------------------- */

/* Reduces the row sums over lanes, and stores the output: columns of the basis first, then the values. `first`: the
 * warp's first query. */
template <typename shape>
__device__ __forceinline__ void finish_rows(const attention_task *task, attention_head head, int64_t first, int present,
                                            row_state (&row)[2], float (&sum)[shape::query_sums][2][4])
{
    const attention_config *config = &task->config;
    float rescale[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        row[half].row_sum = tile_row_sum(row[half].row_sum);
        rescale[half] = config->dropout_scale / row[half].row_sum;
        if (tile_lane_now().member == 0 && row[half].query >= row[half].start)
            task->lse[(int64_t)row[half].query * config->heads + head.index] =
                row[half].row_max * TILE_LN_2 + logf(row[half].row_sum);
    }
    rescale_sums(rescale, sum);
    if constexpr (shape::basis_dim > 0)
        attention_store_tiles<shape::bf16, 0, 0, shape::basis_dim>(
            task->time_out + first * head.basis_stride + head.basis_first, head.basis_stride, present,
            config->basis_dim, task->vectorized & 2, 0, sum);
    attention_store_tiles<shape::bf16, 0, shape::basis_dim, shape::head_dim>(
        task->out + first * head.stride + head.first, head.stride, present, config->head_dim, task->vectorized & 1, 0,
        sum);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* Starts the copy of keys from `first` on. */
template <typename tiles>
__device__ __forceinline__ void copy_keys(const attention_task *task, int head, float *memory, int buffer, int first,
                                          int last)
{
    typedef typename tiles::shape shape;
    constexpr int stride = shape::bf16 ? shape::key_raw : shape::key_stride;
    float *to = shape::bf16 ? memory + tiles::raw : memory + buffer * tiles::inner_rows * shape::key_stride;
    attention_stage_tokens<shape, ATTENTION_COPY, stride, tiles::inner_rows, tiles::threads>(
        task->keys, ATTENTION_KEYS, task->aligned, head, to, first, last + 1 - first);
}

/* Saves the mask that the block has drawn for the gradient. */
template <int threads>
__device__ __forceinline__ void save_mask(const attention_task *task, const uint32_t *mask, int head, int first,
                                          int rows)
{
    int stride = task->mask_stride, heads = task->config.heads;
    uint32_t *saved = task->saved_mask + 1 + ((int64_t)first * heads + head) * stride;
    for (int i = (int)threadIdx.x; i < rows * stride; i += threads)
        saved[heads == 1 ? i : i / stride * heads * stride + i % stride] = mask[i];
}

template <typename tiles, int blocks>
__global__ void __launch_bounds__(tiles::threads, blocks) tensor_forward(const __grid_constant__ attention_task task)
{
    typedef typename tiles::shape shape;
    LP_SHARED(float, memory);
    lp_pdl_trigger();
    attention_probe probe = attention_probe_of(&task);
    attention_head head = attention_head_of(&task.config, (int)blockIdx.y);
    int tokens = task.shard->rows[LP_ROWS_TOKENS], segments = task.shard->segments;
    int first = (int)blockIdx.x * tiles::rows, last = min(first + tiles::rows, tokens) - 1;
    if (first >= tokens)
        return;
    tile_lane me = tile_lane_now();
    float *queries = memory + tiles::queries;
    attention_stage_tokens<shape, shape::bf16 ? ATTENTION_PACK : ATTENTION_COPY, shape::query_stride, tiles::rows,
                           tiles::threads>(task.queries, ATTENTION_QUERIES, task.aligned, head.index, queries, first,
                                           last - first + 1);
    attention_cursor cursor = attention_cursor_of(task.segment, segments, tokens, probe, first);
    copy_keys<tiles>(&task, head.index, memory, 0, cursor.begin, last);

    /* Tokens whose segment this lane needs: its two rows, the warp's first and last row, and the row whose mask it
     * draws. Two threads draw a row, and neighbouring rows go to different warps, which balances long segments. */
    int group_row = 16 * me.warp, drawn = (me.lane >> 1) * (tiles::threads / 32) + me.warp;
    int tokens_of[] = {min(first + group_row + me.group, last), min(first + group_row + me.group + 8, last),
                       min(first + group_row, last), min(first + group_row + 15, last), min(first + drawn, last)};
    int start[5], end[5];
    attention_find_bounds(task.segment, segments, cursor, last, tokens_of, start, end);
    uint32_t *mask = (uint32_t *)(memory + tiles::mask) + 1;
    if (task.mask_stride && !task.mask && first + drawn <= last)
        attention_mask_draw<2, 2>(&task, mask + drawn * task.mask_stride, head.index, first + drawn, start[4],
                                  me.lane & 1);

    /* Keys visible to some of the warp's rows; keys visible to all. */
    int low = start[2], high = tokens_of[3];
    int all_low = start[3], all_high = first + group_row + 15 <= last ? first + group_row : -1;
    row_state row[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = tokens_of[half];
        bool valid = first + group_row + me.group + 8 * half <= last;
        row_state begun = {valid ? query : start[half] - 1, start[half], -INFINITY, 0,
                           task.mask ? attention_mask_row(&task, query, head.index)
                                     : mask + (query - first) * task.mask_stride};
        row[half] = begun;
    }
    tile_address mine = tile_a_address(queries + group_row * shape::query_stride, shape::query_stride);
    float sum[shape::query_sums][2][4] = {};
    int buffer = 0;
#pragma unroll 1
    for (int key = cursor.begin, next; key <= last; key = next, buffer = 1 - buffer) {
        float *keys = memory + buffer * tiles::inner_rows * shape::key_stride;
        next = key + tiles::inner_rows;
        tile_cp_async_wait();
        if (shape::bf16)
            attention_pack_tokens<shape, shape::key_stride, shape::key_raw, tiles::inner_rows, tiles::threads>(
                task.keys, task.aligned, keys, memory + tiles::raw);
        __syncthreads();
        if (next <= last)
            copy_keys<tiles>(&task, head.index, memory, 1 - buffer, next, last);
#pragma unroll 1
        for (int offset = 0; offset < tiles::inner_rows; offset += tiles::unit)
            if (key + offset + tiles::unit > low && key + offset <= high)
                process_unit<shape, tiles::tiles>(&task, mine, keys + offset * shape::key_stride, key + offset,
                                                  key + offset >= all_low && key + offset + tiles::unit - 1 <= all_high,
                                                  row, sum);
    }
    if (task.saved_mask && !task.mask)
        save_mask<tiles::threads>(&task, mask, head.index, first, last + 1 - first);
    finish_rows<shape>(&task, head, first + group_row, last + 1 - first - group_row, row, sum);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

template <typename tiles, int blocks = 2> void launch(const lp_cuda_run *run, attention_task task, int64_t tokens)
{
    attention_parts<typename tiles::shape>(&task);
    size_t size = (size_t)tiles::size(task.mask ? 0 : task.mask_stride) * sizeof(float);
    LP_LAUNCH(run, (tensor_forward<tiles, blocks>), dim3(lp_blocks(tokens, tiles::rows), (unsigned)task.config.heads),
              (unsigned)tiles::threads, size, task);
}

attention_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = attention_task_of<attention_task>(node, run);
    task.max_segments = run->largest_segments;
    task.out = LP_OUTPUT(0);
    task.lse = LP_OUTPUT(1);
    task.time_out = LP_OUTPUT(2);
    task.vectorized = attention_aligned(task.out, task.config.head_dim, 2) |
                      attention_aligned(task.time_out, task.config.basis_dim, 2) << 1;
    return task;
}

/* Mask words of a row that a block draws itself, into shared memory. */
enum { MAX_BLOCK_WORDS = 16 };

} // namespace

bool lp_cuda_attention_tensor(const lp_node *node, const lp_cuda_run *run)
{
    attention_task task = task_of(node, run);
    const attention_config *config = &task.config;
    int64_t tokens = lp_cuda_largest(run, node->inputs[0]);
    if (!attention_fits(config))
        return false;
    size_t size = attention_mask_size(&task, run, tokens);
    if (size && size <= ATTENTION_MASK_LIMIT)
        task.saved_mask = (uint32_t *)lp_cuda_side_buffer(run, node->outputs[1], size);
    if (task.mask_stride > MAX_BLOCK_WORDS) {
        if (size > ATTENTION_MASK_LIMIT)
            return false;
        task.mask = task.saved_mask ? task.saved_mask : (uint32_t *)lp_cuda_scratch(run, size);
        if (!task.mask)
            return true;
        LP_LAUNCH(run, draw_mask, lp_blocks(tokens * config->heads, 32), 256, 0, task);
    }
    attention_with_shape(run, config, [&](auto shape) { launch<forward_tiles<decltype(shape)>>(run, task, tokens); });
    return true;
}
