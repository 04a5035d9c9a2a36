/* cuda_linear.cu: y = x W + bias + add, or x W^T, for each head: products of cuda_product.h, or in bf16 of copies
 * (cuda_linear_wide.h; on devices without wgmma cuda_product_packed.h). Gradients of weights are reductions over rows (cuda_reduction.h). */
#include "backend/cuda/cuda_linear_wide.h"

/* Tiles of 128 tokens by up to 256 features, of which a block computes one. */
typedef linear_shape<64, 4, 2> linear_64;
typedef linear_shape<128, 4, 1> linear_128;
typedef linear_shape<128, 4, 2> linear_shallow; /* of a depth of 64: one block stores while another loads */
typedef linear_shape<192, 4, 1> linear_192;
typedef linear_shape<256, 4, 1> linear_256;

/* In bf16. */
template <bool transpose, typename shape>
static void launch_rows(const lp_cuda_run *run, const product_task &task, const product_store &given, lp_cuda_copy copy,
                        int heads, int largest)
{
    product_store_rows<shape> store = {};
    (product_store &)store = given;
    store.copy = copy;
    bool floats = given.to || given.bias || given.add;
    uintptr_t pointers = (uintptr_t)given.to | (uintptr_t)given.bias | (uintptr_t)given.add;
    store.quads = (given.head + copy.gap) % 4 == 0 && lp_vector_width(pointers, floats ? task.cols.most : 0) == 4 &&
                  !(given.add && given.accumulate);
    int tiles = (int)lp_blocks(task.cols.most, shape::cols);
    if constexpr (is_linear<shape>)
        linear_launch<true, transpose, shape>(run, task, store, heads, largest, tiles);
    else
        packed_launch_precision<LP_PRECISION_BF16, true, transpose, shape>(run, task, store, heads, largest, tiles);
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
    auto with = [&](auto shape) { launch_rows<transpose, decltype(shape)>(run, task, store, copy, heads, largest); };
    if (!wide_supported(run))
        with(packed_narrow());
    else if (out <= linear_64::cols)
        with(linear_64());
    else if (in <= WIDE_BLOCK)
        with(linear_shallow());
    else if (out <= linear_128::cols)
        with(linear_128());
    else if (lp_blocks(out, linear_192::cols) == lp_blocks(out, linear_256::cols))
        with(linear_192());
    else
        with(linear_256());
}

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    if (node->attributes.transpose)
        launch<true>(node, run);
    else
        launch<false>(node, run);
}
