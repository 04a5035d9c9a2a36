/* cuda_linear.cu: y = x W + bias + add, or x W^T, for each head: products of cuda_product.h. Gradients of weights are
 * reductions over rows (cuda_reduction.h). */
#include "backend/cuda/cuda_product.h"

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *weight = node->inputs[1], *y = node->outputs[0];
    bool transpose = node->attributes.transpose;
    int heads = node->attributes.heads;
    int in = transpose ? weight->cols : weight->rows / heads, out = transpose ? weight->rows / heads : weight->cols;
    product_task task = {};
    task.shard = run->shard;
    task.rows = product_whole(y);
    task.cols = product_fixed(out);
    task.depth = product_fixed(in);
    task.chunks = 1;
    task.a = {LP_INPUT(0), heads * in, in, lp_vector_width((uintptr_t)LP_INPUT(0), in)};
    task.b = {LP_INPUT(1), weight->cols, (int64_t)in * out, lp_vector_width((uintptr_t)LP_INPUT(1), weight->cols)};
    product_store store = {};
    store.to = LP_OUTPUT(0);
    store.bias = LP_INPUT(2);
    store.add = LP_INPUT(3);
    store.stride = heads * out;
    store.head = out;
    store.accumulate = LP_ADDS(0);
    store.pairs = lp_vector_width((uintptr_t)store.to | (uintptr_t)store.bias | (uintptr_t)store.add, out) > 1;
    int largest = lp_cuda_largest(run, y);
    if (transpose)
        product_launch<true, true>(run, task, store, heads, largest, out);
    else
        product_launch<true, false>(run, task, store, heads, largest, out);
}
