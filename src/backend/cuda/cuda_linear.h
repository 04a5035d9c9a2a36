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
} lp_product;

static inline lp_product lp_product_start(const lp_node *node)
{
    return {node->outputs[0],           node->inputs[2],        node->inputs[3],
            (node->accumulate & 1) > 0, node->attributes.heads, node->attributes.transpose};
}

/* Adds a product that comes later. False, and no change, where one launch cannot compute both. */
static inline bool lp_product_join(lp_product *sum, const lp_node *node)
{
    lp_product next = lp_product_start(node), both = next;
    bool reads = next.add == sum->out && !sum->accumulates, adds = next.accumulates && next.out == sum->out;
    both.bias = next.bias ? next.bias : sum->bias;
    both.add = next.add && !reads ? next.add : sum->add;
    both.accumulates = reads ? next.accumulates : sum->accumulates;
    if (reads == adds || next.heads != sum->heads || next.transpose != sum->transpose ||
        !lp_value_same_shape(next.out, sum->out) || (next.bias && sum->bias) ||
        (next.add && sum->add && !reads) || (both.add && both.accumulates))
        return false;
    *sum = both;
    return true;
}

static inline lp_product lp_product_of(const lp_stage_part *parts, int count)
{
    lp_product sum = lp_product_start(parts->node);
    for (int i = 1; i < count; i++)
        lp_product_join(&sum, parts[i].node);
    return sum;
}

/* Whether runs on this device, in this precision, launch a stage of products as one. */
bool lp_cuda_products_join(const lp_cuda_run *run);

void lp_cuda_products(const lp_stage_part *parts, int count, const lp_cuda_run *run);

#endif
