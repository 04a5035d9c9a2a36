/* cuda_embed.cu: the gradient of an embedding lookup: the sum of dy over the tokens of each id (cuda_by_id.h). In a table of few rows,
 * such as that of a field with two categories, the tokens of an id are divided into parts with a block each, and a second launch adds
 * the parts in their order. */
#include "backend/cuda/cuda_by_id.h"

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

void lp_cuda_embed_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *table = node->outputs[0];
    int cols = table->cols, adds = LP_ADDS(0);
    token_lists lists = {lp_cuda_lists_of(run, node->inputs[1]), 1};
    int64_t ids = lp_cuda_largest(run, table), elements = lists.tokens.largest_elements;
    float *out = LP_OUTPUT(0), *partial = out;
    /* Tables whose number of rows differs between shards have one part. */
    if (table->rows_of == LP_ROWS_FIXED && elements > ids * PART_TOKENS) {
        lists.parts = (int)lp_blocks(elements, ids * PART_TOKENS);
        partial = (float *)lp_cuda_scratch(run, (size_t)ids * lists.parts * cols * sizeof *partial);
        if (!partial)
            return;
    }
    lp_by_id_output to = {partial, NULL, cols, adds && lists.parts == 1, 0};
    lp_by_id_reduce(run, table, lists, elements, PIECE, LP_INPUT(0), to, lists.parts);
    int parts = lists.parts; /* partial [ids x parts x cols] */
    lp_cuda_each(run, parts > 1 ? (int)ids * cols : 0, [=] __device__(int i) {
        float sum = 0;
#pragma unroll 4
        for (int k = 0; k < parts; k++)
            sum += partial[((size_t)(i / cols) * (parts - 1) + k) * cols + i];
        lp_store(&out[i], sum, adds);
    });
}
