/* reduce.h: the order in which the results of a batch's shards are added: one fixed binary tree over the shard index.
 *
 * The leaves are shards 0, 1, ... A node of height h covers the 2^h shards from a multiple of 2^h on. Its value is the left child's plus
 * the right child's, or that of the only child that has a value: a shard has none of a table row that it does not use. So the sum over the
 * shards of a node is the same number, whoever computes it and however many threads, devices or machines share the work.
 */
#ifndef LP_REDUCE_H
#define LP_REDUCE_H

#include <stdint.h>

/* Height of the lowest node that covers both shards. */
static inline int lp_tree_height(uint32_t a, uint32_t b)
{
    int height = 0;
    for (uint32_t differ = a ^ b; differ; differ >>= 1)
        height++;
    return height;
}

/* The sum of one number per shard. */
static inline double lp_tree_sum(const float *values, int first, int count)
{
    int half = 1;
    if (count <= 1)
        return count == 1 ? (double)values[first] : 0;
    while (2 * half < count)
        half *= 2;
    return lp_tree_sum(values, first, half) + lp_tree_sum(values, first + half, count - half);
}

#endif
