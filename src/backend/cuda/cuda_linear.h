/* cuda_linear.h: products that add up to one value, y = x1 W1 + x2 W2 + .. + bias + add, in one launch (cuda_linear.cu). A later product
 * reads the sum of those before it, which nothing else does, or accumulates into the same value. So the sum stays in registers and is
 * stored once. A single product may be followed by relu or its gradient, and dropout, which then change what is stored.
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
    /* What is done with their sum, in this order: */
    const lp_value *mask; /* 0 where this is not positive: the gradient of relu; NULL: it is none */
    const lp_node *drop;  /* dropout; NULL: none */
    bool relu;
} lp_product;

static inline lp_product lp_product_start(const lp_node *node)
{
    lp_product one = {};
    one.out = node->outputs[0];
    one.bias = node->inputs[2];
    one.add = node->inputs[3];
    one.accumulates = node->accumulate & 1;
    one.heads = node->attributes.heads;
    one.transpose = node->attributes.transpose;
    one.count = 1;
    return one;
}

/* Whether the node can be done with the result of a product that it alone reads, and is not the product's own. */
static inline bool lp_product_follows(const lp_node *node)
{
    return node->op->id == LP_OP_RELU || node->op->id == LP_OP_DROPOUT || node->op->id == LP_OP_RELU_GRADIENT;
}

/* Adds a node that comes later. False where one launch cannot compute both; *sum is then undefined. */
static inline bool lp_product_join(lp_product *sum, const lp_node *node)
{
    bool after = sum->mask || sum->drop || sum->relu;
    if (lp_product_follows(node)) {
        const lp_value *in = node->inputs[node->op->id == LP_OP_RELU_GRADIENT];
        bool good =
            in == sum->out && sum->heads == 1 && sum->count == 1 && !sum->add && !sum->accumulates && !node->accumulate;
        sum->out = node->outputs[0];
        if (node->op->id == LP_OP_RELU_GRADIENT) {
            sum->mask = node->inputs[0];
            return good && !after;
        }
        good = good && !sum->relu && !(sum->drop && node->op->id == LP_OP_DROPOUT);
        sum->drop = node->op->id == LP_OP_DROPOUT ? node : sum->drop;
        sum->relu = node->op->id == LP_OP_RELU;
        return good;
    }
    lp_product next = lp_product_start(node), both = next;
    bool reads = next.add == sum->out && !sum->accumulates, adds = next.accumulates && next.out == sum->out;
    bool good = reads != adds && next.heads == sum->heads && next.transpose == sum->transpose && !after &&
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
