/* cuda_lists.cu: builds the lists by a counting sort. */
#include "backend/cuda/cuda_lists.h"
#include "backend/cuda/cuda_rules.h"

const lp_value *lp_cuda_sorted_by(const lp_node *node, int k)
{
    const lp_cuda_rule *rule = lp_cuda_rule_of(node);
    if (!(rule->by_id >> k & 1))
        return NULL;
    return rule->table < LP_NODE_INPUTS ? node->inputs[rule->table] : node->outputs[rule->table - LP_NODE_INPUTS];
}

/* The number of ids, and their starts: two more than there are ids, for the counting sort. */
static size_t order_offset(int64_t ids)
{
    return lp_cuda_align(((size_t)ids + 3) * sizeof(int32_t));
}

size_t lp_cuda_lists_size(int64_t ids, int64_t elements)
{
    return order_offset(ids) + lp_cuda_align((size_t)elements * sizeof(int32_t));
}

lp_cuda_lists lp_cuda_lists_at(const char *at, int64_t ids, int64_t elements)
{
    const int32_t *count = (const int32_t *)at;
    lp_cuda_lists lists = {count, count + 1, (const int32_t *)(at + order_offset(ids)), (int)ids, (int)elements};
    return lists;
}

/* Stable counting sort. The count of id v is at starts[v + 2]; after the prefix sum, starts[v + 1] is the start of id v, and when all
 * elements are placed it has advanced to the start of id v + 1. */
static void sort_ids(const int32_t *__restrict ids, int32_t elements, int32_t id_count, int32_t *__restrict starts,
                     int32_t *__restrict order)
{
    memset(starts, 0, ((size_t)id_count + 2) * sizeof *starts);
    int32_t *counts = starts + 2, *next = starts + 1;
    for (int32_t i = 0; i < elements; i++)
        counts[ids[i]]++;
    for (int32_t v = 0; v < id_count; v++)
        next[v + 1] += next[v];
    for (int32_t i = 0; i < elements; i++)
        order[next[ids[i]]++] = i;
}

void lp_cuda_lists_fill(const lp_cuda_lists *lists, const int32_t *ids, int64_t elements)
{
    int32_t largest = -1;
    for (int64_t i = 0; i < elements; i++)
        largest = ids[i] > largest ? ids[i] : largest;
    *(int32_t *)lists->ids = largest + 1;
    sort_ids(ids, (int32_t)elements, largest + 1, (int32_t *)lists->starts, (int32_t *)lists->order);
}
