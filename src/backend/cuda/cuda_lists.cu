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

lp_cuda_list_layout lp_cuda_list_plan(int64_t elements, int64_t ids)
{
    lp_cuda_list_layout layout;
    layout.largest_ids = (int)ids;
    layout.largest_elements = (int)elements;
    layout.starts = sizeof(int32_t);
    layout.order =
        lp_cuda_align(layout.starts + ((size_t)ids + 2) * sizeof(int32_t)); /* one more, for the counting sort */
    layout.size = layout.order + lp_cuda_align((size_t)elements * sizeof(int32_t));
    return layout;
}

lp_cuda_lists lp_cuda_list_view(const lp_cuda_list_layout *layout, const char *at)
{
    lp_cuda_lists lists = {(const int32_t *)at, (const int32_t *)(at + layout->starts),
                           (const int32_t *)(at + layout->order), layout->largest_ids, layout->largest_elements};
    return lists;
}

/* Strictly increasing ids, such as target positions, are sorted already and occur once. */
static bool is_increasing(const int32_t *ids, int64_t elements)
{
    enum { CHUNK = 256 }; /* without an exit inside, so that the compiler vectorizes it */
    bool good = true;
    for (int64_t first = 1; good && first < elements; first += CHUNK) {
        int64_t end = first + CHUNK < elements ? first + CHUNK : elements;
        int32_t wrong = 0;
        for (int64_t i = first; i < end; i++)
            wrong |= ids[i - 1] >= ids[i];
        good = !wrong;
    }
    return good;
}

static void fill_increasing(const int32_t *ids, int32_t elements, int32_t *starts, int32_t *order)
{
    int32_t v = 0, all = elements > 0 && ids[elements - 1] == elements - 1; /* then every id occurs */
    for (int32_t i = 0; i < elements; i++)
        order[i] = i;
    for (int32_t i = 0; !all && i < elements; i++)
        for (; v <= ids[i]; v++)
            starts[v] = i;
    for (; all && v < elements; v++)
        starts[v] = v;
    starts[v] = elements;
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

size_t lp_cuda_list_sort_size(const lp_cuda_list_layout *layout)
{
    return (size_t)layout->largest_ids + 2 + (size_t)layout->largest_elements;
}

void lp_cuda_list_fill(const lp_cuda_list_layout *layout, char *to, const int32_t *ids, int64_t elements,
                       int32_t *sort_buffer)
{
    int32_t *id_count = (int32_t *)to, *starts = (int32_t *)(to + layout->starts);
    int32_t *order = (int32_t *)(to + layout->order), largest = -1;
    if (is_increasing(ids, elements)) {
        *id_count = elements ? ids[elements - 1] + 1 : 0;
        fill_increasing(ids, (int32_t)elements, starts, order);
        return;
    }
    for (int64_t i = 0; i < elements; i++)
        largest = ids[i] > largest ? ids[i] : largest;
    *id_count = largest + 1;
    int32_t *sorted = sort_buffer + *id_count + 2;
    sort_ids(ids, (int32_t)elements, *id_count, sort_buffer, sorted);
    memcpy(starts, sort_buffer, ((size_t)*id_count + 1) * sizeof *starts);
    memcpy(order, sorted, (size_t)elements * sizeof *order);
}
