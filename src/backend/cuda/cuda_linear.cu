/* cuda_linear.cu: y = x W + bias + add, or x W^T, for each head: products of floats (cuda_product.h), or in bf16 of copies
 * (cuda_linear_wide.h). A stage of products adds several up to one y. Gradients of
 * weights are reductions over rows (cuda_reduction.h). */
#include "backend/cuda/cuda_linear.h"

#include "backend/cuda/cuda_linear_wide.h"

/* Tiles of 128 tokens by up to 256 features, of which a block computes one. */
typedef linear_shape<64, 4, 2> linear_64;
typedef linear_shape<128, 4, 1> linear_128;
typedef linear_shape<128, 4, 2> linear_shallow; /* of a depth of 64: one block stores while another loads */
typedef linear_shape<192, 4, 1> linear_192;
typedef linear_shape<256, 4, 1> linear_256;
/* Of several products: kernels of their own, because what a single one does not need makes it slower. */
typedef linear_shape<128, 6, 1> linear_joined_128;

typedef linear_task<LP_PRODUCT_MOST> joined_task;

/* In bf16. */
template <bool transpose, typename shape, bool has_after, typename task_type>
static void launch_rows(const lp_cuda_run *run, const task_type &task, const product_store &given, lp_cuda_copy copy,
                        const product_after &after, int heads, int largest)
{
    product_store_rows<shape, has_after> store = {};
    (product_store &)store = given;
    store.copy = copy;
    store.after = after;
    store.shard = run->shard;
    bool floats = given.to || given.bias || given.add || after.mask;
    uintptr_t pointers = (uintptr_t)given.to | (uintptr_t)given.bias | (uintptr_t)given.add | (uintptr_t)after.mask;
    int cols = task.of[0].cols.most;
    store.quads = (given.head + copy.gap) % 4 == 0 && lp_vector_width(pointers, floats ? cols : 0) == 4 &&
                  !(given.add && given.accumulate);
    linear_launch<true, transpose, shape>(run, task, store, heads, largest);
}

/* What follows the product of a stage. */
static product_after after_of(const lp_product &product, const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    product_after after = {};
    for (int i = 0; i < count; i++)
        if (parts[i].node->op->id == LP_OP_RELU_GRADIENT)
            after.mask_copy = lp_cuda_copy_from(run, parts[i].node, 0);
    if (product.mask && !after.mask_copy.data)
        after.mask = (const float *)lp_run_data(run->run, product.mask);
    if (product.drop) {
        after.threshold = lp_dropout_threshold(product.drop->attributes.rate);
        after.purpose = lp_dropout_purpose(product.drop->attributes.stream);
        after.scale = (float)(65536.0 / (65536.0 - after.threshold));
    }
    after.relu = product.relu;
    return after;
}

/* The product of a node, without what is done with it. */
template <bool transpose> static product_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *weight = node->inputs[1];
    int heads = node->attributes.heads;
    int in = transpose ? weight->cols : weight->rows / heads, out = transpose ? weight->rows / heads : weight->cols;
    lp_cuda_copy x = lp_cuda_copy_from(run, node, 0), w = lp_cuda_copy_from(run, node, 1);
    product_task task = {};
    task.shard = run->shard;
    task.rows = product_whole(node->outputs[0]);
    task.cols = product_fixed(out);
    task.depth = product_fixed(in);
    task.chunks = 1;
    if (x.data) {
        task.a = packed_operand(x, in + x.gap);
        task.b = packed_operand(w, (int64_t)(transpose ? out : in) * w.stride);
    } else {
        task.a = {LP_INPUT(0), heads * in, in, lp_vector_width((uintptr_t)LP_INPUT(0), in)};
        task.b = {LP_INPUT(1), weight->cols, (int64_t)in * out, lp_vector_width((uintptr_t)LP_INPUT(1), weight->cols)};
    }
    return task;
}

template <bool transpose> static void launch(const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    lp_product product = lp_product_of(parts, count);
    const lp_value *y = product.out;
    auto data = [&](const lp_value *value) { return value ? (float *)lp_run_data(run->run, value) : NULL; };
    int heads = parts->node->attributes.heads, largest = lp_cuda_largest(run, y), out = y->cols / heads;
    lp_cuda_copy copy = lp_cuda_copy_to(run, y, heads);
    linear_task<1> task = {{task_of<transpose>(parts->node, run)}, 1};
    product_store store = {};
    store.to = lp_cuda_stores_floats(run, y) ? data(y) : NULL;
    store.bias = data(product.bias);
    store.add = data(product.add);
    store.stride = y->cols;
    store.head = out;
    store.accumulate = product.accumulates;
    store.pairs = lp_vector_width((uintptr_t)store.to | (uintptr_t)store.bias | (uintptr_t)store.add, out) > 1;
    product_after after = after_of(product, parts, count, run);
    auto with = [&](auto shape, const auto &of) {
        launch_rows<transpose, decltype(shape), false>(run, of, store, copy, after, heads, largest);
    };
    auto with_after = [&](auto shape) {
        launch_rows<transpose, decltype(shape), true>(run, task, store, copy, after, heads, largest);
    };
    bool fits_192 = lp_blocks(out, linear_192::cols) == lp_blocks(out, linear_256::cols);
    joined_task joined = {{task.of[0]}, product.count};
    for (int i = 1; i < product.count; i++)
        joined.of[i] = task_of<transpose>(parts[i].node, run);
    if (!lp_cuda_copy_from(run, parts->node, 0).data)
        product_launch<true, transpose>(run, task.of[0], store, heads, largest, out);
    else if (product.count < count && out <= linear_128::cols)
        with_after(linear_128());
    else if (product.count < count && fits_192)
        with_after(linear_192());
    else if (product.count < count)
        with_after(linear_256());
    else if (count > 1 && out <= linear_joined_128::cols)
        with(linear_joined_128(), joined);
    else if (count > 1 && fits_192)
        with(linear_192(), joined);
    else if (count > 1)
        with(linear_256(), joined);
    else if (out <= linear_64::cols)
        with(linear_64(), task);
    else if (task.of[0].depth.most <= WIDE_BLOCK)
        with(linear_shallow(), task);
    else if (out <= linear_128::cols)
        with(linear_128(), task);
    else if (fits_192)
        with(linear_192(), task);
    else
        with(linear_256(), task);
}

void lp_cuda_products(const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    if (parts->node->attributes.transpose)
        launch<true>(parts, count, run);
    else
        launch<false>(parts, count, run);
}

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, 1};
    lp_cuda_products(&part, 1, run);
}

bool lp_cuda_bf16_supported(const lp_cuda_device *device)
{
#if defined(LP_CUDA_EMULATED)
    return device != NULL;
#elif defined(LP_CUDA_90A)
    return lp_device_capability(device) == 90;
#else
    return device == NULL;
#endif
}
