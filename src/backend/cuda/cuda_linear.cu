/* cuda_linear.cu: y = x W + bias + add, or x W^T, for each head: products of cuda_product.h, or in bf16 of copies
 * (cuda_product_packed.h). Gradients of weights are reductions over rows (cuda_reduction.h). */
#include "backend/cuda/cuda_product_packed.h"

template <bool transpose> static void launch(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *weight = node->inputs[1], *y = node->outputs[0];
    int heads = node->attributes.heads, largest = lp_cuda_largest(run, y);
    int in = transpose ? weight->cols : weight->rows / heads, out = transpose ? weight->rows / heads : weight->cols;
    lp_cuda_copy x = lp_cuda_copy_from(run, node, 0), w = lp_cuda_copy_from(run, node, 1);
    product_task task = {};
    task.shard = run->shard;
    task.rows = product_whole(y);
    task.cols = product_fixed(out);
    task.depth = product_fixed(in);
    task.chunks = 1;
    product_store_copy store = {};
    store.to = lp_cuda_stores_floats(run, y) ? LP_OUTPUT(0) : NULL;
    store.copy = lp_cuda_copy_to(run, y);
    store.quads = out % 4 == 0;
    store.bias = LP_INPUT(2);
    store.add = LP_INPUT(3);
    store.stride = heads * out;
    store.head = out;
    store.accumulate = LP_ADDS(0);
    store.pairs = lp_vector_width((uintptr_t)store.to | (uintptr_t)store.bias | (uintptr_t)store.add, out) > 1;
    if (x.data) {
        task.a = packed_operand(x, in, in, heads);
        task.b = packed_operand(w, (int64_t)(transpose ? out : in) * w.stride, 0, heads);
        packed_launch_copies<true, transpose, packed_linear, packed_linear_narrow>(run, task, store, heads, largest,
                                                                                   out);
    } else {
        task.a = {LP_INPUT(0), heads * in, in, lp_vector_width((uintptr_t)LP_INPUT(0), in)};
        task.b = {LP_INPUT(1), weight->cols, (int64_t)in * out, lp_vector_width((uintptr_t)LP_INPUT(1), weight->cols)};
        product_launch<true, transpose>(run, task, (const product_store &)store, heads, largest, out);
    }
}

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    if (node->attributes.transpose)
        launch<true>(node, run);
    else
        launch<false>(node, run);
}
