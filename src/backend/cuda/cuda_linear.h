/* cuda_linear.h: products that add up to one value, y = x1 W1 + x2 W2 + .. + bias + add, in one launch (cuda_linear.cu). A later product
 * reads the sum of those before it, which nothing else does, or accumulates into the same value. So the sum stays in registers and is
 * stored once.
 */
#ifndef LP_CUDA_LINEAR_H
#define LP_CUDA_LINEAR_H

#include "backend/cuda/cuda_stage.h"

/* What a stage of products stores. */
typedef struct lp_product {
    const lp_value *out, *bias, *add; /* bias and add may be NULL */
    bool accumulates;                 /* into `out` */
    int heads;
    bool transpose;
    int count; /* of products */
} lp_product;

static inline lp_product lp_product_start(const lp_node *node)
{
    const lp_attributes *with = &node->attributes;
    bool accumulates = node->accumulate & 1;
    return {node->outputs[0], node->inputs[2], node->inputs[3], accumulates, with->heads, with->transpose, 1};
}

/* Adds a product that comes later. False where one launch cannot compute both; *sum is then undefined. */
static inline bool lp_product_join(lp_product *sum, const lp_node *node)
{
    lp_product next = lp_product_start(node), both = next;
    bool reads = next.add == sum->out && !sum->accumulates, adds = next.accumulates && next.out == sum->out;
    bool good = reads != adds && next.heads == sum->heads && next.transpose == sum->transpose &&
                lp_value_same_shape(next.out, sum->out) && !(next.bias && sum->bias) &&
                !(next.add && sum->add && !reads) && sum->count < LP_PRODUCT_MOST;
    both.bias = next.bias ? next.bias : sum->bias;
    both.add = next.add && !reads ? next.add : sum->add;
    both.accumulates = reads ? next.accumulates : sum->accumulates;
    both.count = sum->count + 1;
    *sum = both;
    return good && !(both.add && both.accumulates);
}

static inline lp_product lp_product_of(const lp_stage_part *parts, int count)
{
    lp_product sum = lp_product_start(parts->node);
    for (int i = 1; i < count; i++)
        lp_product_join(&sum, parts[i].node);
    return sum;
}

/* Whether the value passes from one part of a stage to a later one, and is not stored. */
static inline bool lp_product_keeps(const lp_cuda_stage *stage, const lp_value *value)
{
    bool found = false;
    for (int p = 0; stage->type == LP_STAGE_PRODUCT && p + 1 < stage->count; p++)
        found = found || stage->parts[p].node->outputs[0] == value;
    return found && value != stage->parts[stage->count - 1].node->outputs[0];
}

/* Whether the device multiplies in bf16, by warpgroups (cuda_product_wide.h); otherwise its runs are in tf32. */
bool lp_cuda_bf16_supported(const lp_cuda_device *device);

void lp_cuda_products(const lp_stage_part *parts, int count, const lp_cuda_run *run);

#endif
