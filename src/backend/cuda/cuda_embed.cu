/* cuda_embed.cu: the gradient of an embedding lookup: the sum of dy over the tokens of each id (cuda_by_id.h). */
#include "backend/cuda/cuda_by_id.h"
#include "backend/cuda/cuda_reduce.h"
#include "backend/cuda/cuda_rows.h"

/* The tokens of each id. */
struct token_lists {
    static constexpr bool in_pieces = true;
    lp_cuda_lists tokens;
    __device__ lp_id_elements elements(int id) const
    {
        lp_id_elements all = {{0, 0}, {0, 0}};
        all.count[0] = lp_elements_of(tokens, id, &all.begin[0]);
        return all;
    }
    __device__ void find(const lp_id_elements &all, int i, int *row, float *weight) const
    {
        *row = tokens.order[all.begin[0] + i];
        *weight = 1;
    }
};

/* blockIdx.y: a part of the columns, as wide as a warp. A launch waits for memory, so as many warps as possible run. */
template <int n, int lanes>
__global__ void __launch_bounds__(LP_BY_ID_MAX_WARPS * 32, 2)
    embed_gradient_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, token_lists lists, lp_by_id_shape shape,
                          const float *dy, lp_by_id_output to)
{
    int first = (int)blockIdx.y * lp_row_vectors<n, lanes>::COLS;
    to.out += first;
    to.cols -= first;
    to.cols = min(to.cols, (int)lp_row_vectors<n, lanes>::COLS);
    lp_sum_ids<n, lanes>(lists, shape, (int)blockIdx.x, lp_rows_now(rows, shard), dy + first, to);
}

/* Tables of few rows, such as a field with two categories: `parts` blocks reduce the tokens of a row, and the last
 * block adds the parts in their order. */
enum { PART_TOKENS = 512 };

template <int n>
__global__ void __launch_bounds__(LP_BY_ID_MAX_WARPS * 32)
    embed_parts_kernel(token_lists lists, int parts, int ids, const float *dy, float *partial, lp_by_id_output to,
                       int stream)
{
    int part = (int)blockIdx.x % parts;
    lp_id_elements mine = lists.elements((int)blockIdx.x / parts);
    int each = (mine.count[0] + parts - 1) / parts, first = min(part * each, mine.count[0]);
    mine.begin[0] += first;
    mine.count[0] = min(each, mine.count[0] - first);
    lp_by_id_output output = {partial, NULL, to.cols, to.cols, 0, 0};
    lp_sum_id_by_block<n>(lists, (int)blockIdx.x, mine, dy, output);
    if (!lp_last_block(stream))
        return;
    for (int i = (int)threadIdx.x; i < ids * to.cols; i += (int)blockDim.x) {
        int id = i / to.cols, c = i - id * to.cols;
        float sum = 0;
#pragma unroll 4
        for (int k = 0; k < parts; k++)
            sum += partial[((size_t)id * parts + k) * to.cols + c];
        lp_store(&to.out[i], sum, to.accumulate);
    }
}

/* Blocks that reduce the tokens of a row. Tables whose number of rows differs between shards have one. */
static int parts_of(const lp_value *table, const token_lists &lists)
{
    int64_t most = (int64_t)table->rows * PART_TOKENS;
    bool few = table->rows_of == LP_ROWS_FIXED && lists.tokens.largest_elements > most;
    return few ? (int)lp_blocks(lists.tokens.largest_elements, most) : 1;
}

static void embed_gradient_in_parts(const lp_node *node, const lp_cuda_run *run, token_lists lists, int parts)
{
    const lp_value *out = node->outputs[0];
    int ids = out->rows, stream = run->stream;
    size_t blocks = (size_t)ids * (size_t)parts;
    float *partial = (float *)lp_cuda_scratch(run, blocks * (size_t)out->cols * sizeof *partial);
    if (!partial)
        return;
    const float *dy = LP_INPUT(0);
    lp_by_id_output to = {LP_OUTPUT(0), NULL, out->cols, out->cols, LP_ADDS(0), 0};
    lp_with_vector_width(lp_vector_width((uintptr_t)dy | (uintptr_t)partial, out->cols), [&](auto by) {
        LP_LAUNCH(run, embed_parts_kernel<decltype(by)::value>, (unsigned)blocks, LP_BY_ID_MAX_WARPS * 32, 0, lists,
                  parts, ids, dy, partial, to, stream);
    });
}

void lp_cuda_embed_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    token_lists lists = {lp_cuda_lists_of(run, node->inputs[1])};
    int parts = parts_of(out, lists);
    if (parts > 1) {
        embed_gradient_in_parts(node, run, lists, parts);
        return;
    }
    const float *dy = LP_INPUT(0);
    lp_by_id_output to = {LP_OUTPUT(0), NULL, out->cols, out->cols, LP_ADDS(0), 0};
    lp_by_id_shape shape = lp_by_id_shape_of(lp_cuda_largest(run, out), lists.tokens.largest_elements);
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_rows rows = lp_cuda_rows_of(out);
    lp_with_vector_width(lp_vector_width((uintptr_t)dy | (uintptr_t)to.out, out->cols), [&](auto by) {
        lp_with_lanes(shape, [&](auto lanes) {
            constexpr int n = decltype(by)::value, wide = lp_row_vectors<n, decltype(lanes)::value>::COLS;
            LP_LAUNCH(run, (embed_gradient_kernel<n, decltype(lanes)::value>),
                      dim3((unsigned)shape.blocks, lp_blocks(out->cols, wide)), (unsigned)shape.threads, 0, shard, rows,
                      lists, shape, dy, to);
        });
    });
}
