/* cuda_linear.cu: y = x W + bias + add, or x W^T, for each head: products of cuda_product.h, or in bf16 of copies
 * (cuda_product_packed.h). Gradients of weights are reductions over rows (cuda_reduction.h). */
#include "backend/cuda/cuda_product_packed.h"

/* In bf16: the transpose of y, features by tokens. */
template <bool transpose, typename shape>
static void launch_rows(const lp_cuda_run *run, const product_task &task, const product_store &given, lp_cuda_copy copy,
                        int heads, int largest)
{
    product_task transposed = task;
    transposed.rows = task.cols;
    transposed.cols = task.rows;
    transposed.a = task.b;
    transposed.b = task.a;
    product_store_rows<shape> store = {};
    (product_store &)store = given;
    store.copy = copy;
    bool floats = given.to || given.bias || given.add;
    store.quads = (given.head + copy.gap) % 4 == 0 &&
                  lp_vector_width((uintptr_t)given.to | (uintptr_t)given.bias | (uintptr_t)given.add,
                                  floats ? task.cols.most : 0) == 4;
    int blocks = PACKED_BLOCKS / 2 * shape::blocks / (heads * (int)lp_blocks(task.cols.most, shape::rows));
    int tiles = (int)lp_blocks(largest, shape::cols), ranges = blocks < 1 ? 1 : blocks < tiles ? blocks : tiles;
    packed_launch_precision<LP_PRECISION_BF16, transpose, true, shape>(run, transposed, store, heads, task.cols.most,
                                                                       ranges);
}

template <bool transpose> static void launch(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *weight = node->inputs[1], *y = node->outputs[0];
    int heads = node->attributes.heads, largest = lp_cuda_largest(run, y);
    int in = transpose ? weight->cols : weight->rows / heads, out = transpose ? weight->rows / heads : weight->cols;
    lp_cuda_copy x = lp_cuda_copy_from(run, node, 0), w = lp_cuda_copy_from(run, node, 1),
                 copy = lp_cuda_copy_to(run, y, heads);
    product_task task = {};
    task.shard = run->shard;
    task.rows = product_whole(y);
    task.cols = product_fixed(out);
    task.depth = product_fixed(in);
    task.chunks = 1;
    product_store store = {};
    store.to = lp_cuda_stores_floats(run, y) ? LP_OUTPUT(0) : NULL;
    store.bias = LP_INPUT(2);
    store.add = LP_INPUT(3);
    store.stride = heads * out;
    store.head = out;
    store.accumulate = LP_ADDS(0);
    store.pairs = lp_vector_width((uintptr_t)store.to | (uintptr_t)store.bias | (uintptr_t)store.add, out) > 1;
    if (!x.data) {
        task.a = {LP_INPUT(0), heads * in, in, lp_vector_width((uintptr_t)LP_INPUT(0), in)};
        task.b = {LP_INPUT(1), weight->cols, (int64_t)in * out, lp_vector_width((uintptr_t)LP_INPUT(1), weight->cols)};
        product_launch<true, transpose>(run, task, store, heads, largest, out);
        return;
    }
    task.a = packed_operand(x, in + x.gap);
    task.b = packed_operand(w, (int64_t)(transpose ? out : in) * w.stride);
    if (lp_blocks(out, packed_linear_narrow::rows) % 2) /* half of the last wide tile would be empty */
        launch_rows<transpose, packed_linear_narrow>(run, task, store, copy, heads, largest);
    else
        launch_rows<transpose, packed_linear>(run, task, store, copy, heads, largest);
}

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    if (node->attributes.transpose)
        launch<true>(node, run);
    else
        launch<false>(node, run);
}
