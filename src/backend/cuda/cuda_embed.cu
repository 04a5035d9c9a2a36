/* cuda_embed.cu: the gradient of an embedding lookup: the sum of dy over the tokens of each id (cuda_by_id.h). In a table of few rows,
 * such as that of a field with two categories, the tokens of an id are divided into parts with a block each, and the last block of the
 * launch adds the parts in their order. */
#include "backend/cuda/cuda_by_id.h"
#include "backend/cuda/cuda_reduce.h"

enum { PIECE = 8, PART_TOKENS = 512 };

/* The tokens of each part of each id. */
struct token_lists {
    lp_cuda_lists tokens;
    int parts; /* of an id */
    __device__ lp_id_elements elements(int place) const
    {
        int begin, count = lp_elements_of(tokens, place / parts, &begin);
        int each = (count + parts - 1) / parts, first = min(place % parts * each, count);
        return {{begin + first, 0}, {min(each, count - first), 0}};
    }
    __device__ void find(const lp_id_elements &all, int i, int *row, float *weight) const
    {
        *row = tokens.order[all.begin[0] + i];
        *weight = 1;
    }
};

/* blockIdx.y: a part of the columns, as wide as a warp. partial [ids x parts x cols], NULL: there is one part. A launch waits for
 * memory, so as many warps as possible run. */
template <int n, int lanes>
__global__ void __launch_bounds__(LP_BY_ID_THREADS, 4)
    embed_gradient_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, token_lists lists, lp_by_id_shape shape,
                          const float *dy, float *out, float *partial, int cols, int adds, int stream)
{
    int first = (int)blockIdx.y * 32 * n, ids = lp_rows_now(rows, shard), parts = lists.parts;
    lp_by_id_output to = {
        (partial ? partial : out) + first, NULL, min(cols - first, 32 * n), cols, adds && !partial, 0};
    lp_sum_ids<n, lanes>(lists, shape, (int)blockIdx.x, ids * parts, dy + first, to);
    if (!partial || !lp_last_block(stream))
        return;
    for (int i = (int)threadIdx.x; i < ids * cols; i += LP_BY_ID_THREADS) {
        int id = i / cols, c = i - id * cols;
        float sum = 0;
#pragma unroll 4
        for (int k = 0; k < parts; k++)
            sum += partial[((size_t)id * parts + k) * cols + c];
        lp_store(&out[i], sum, adds);
    }
}

void lp_cuda_embed_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *table = node->outputs[0];
    int cols = table->cols, stream = run->stream;
    token_lists lists = {lp_cuda_lists_of(run, node->inputs[1]), 1};
    int64_t ids = lp_cuda_largest(run, table), elements = lists.tokens.largest_elements;
    float *partial = NULL;
    /* Tables whose number of rows differs between shards have one part. */
    if (table->rows_of == LP_ROWS_FIXED && elements > ids * PART_TOKENS) {
        lists.parts = (int)lp_blocks(elements, ids * PART_TOKENS);
        partial = (float *)lp_cuda_scratch(run, (size_t)ids * lists.parts * cols * sizeof *partial);
        if (!partial)
            return;
    }
    const float *dy = LP_INPUT(0);
    float *out = LP_OUTPUT(0);
    lp_by_id_shape shape = lp_by_id_shape_of(ids * lists.parts, elements, PIECE);
    lp_with_vector_width(lp_vector_width((uintptr_t)dy | (uintptr_t)out, cols), [&](auto by) {
        lp_with_lanes(shape, [&](auto lanes) {
            constexpr int n = decltype(by)::value;
            LP_LAUNCH(run, (embed_gradient_kernel<n, decltype(lanes)::value>),
                      dim3((unsigned)shape.blocks, lp_blocks(cols, 32 * n)), LP_BY_ID_THREADS, 0, run->shard,
                      lp_cuda_rows_of(table), lists, shape, dy, out, partial, cols, LP_ADDS(0), stream);
        });
    });
}
