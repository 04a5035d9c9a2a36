#include "backend/cuda/cuda_lists.h"

const lp_value *lp_cuda_sorted_by(const lp_node *node, int k)
{
    if (node->op->id == LP_OP_EMBED_GRADIENT && k == 1)
        return node->outputs[0];
    if (node->op->id == LP_OP_BCE_LOSS_GRADIENT && (k == 2 || k == 3))
        return node->inputs[1];
    return NULL;
}

static size_t round_up(size_t size)
{
    return (size + 255) / 256 * 256;
}

lp_cuda_list_layout lp_cuda_list_plan(int64_t elements, int64_t ids)
{
    lp_cuda_list_layout layout;
    layout.largest_ids = (int)ids;
    layout.largest_elements = (int)elements;
    layout.starts = sizeof(int32_t);
    layout.order = round_up(layout.starts + ((size_t)ids + 2) * sizeof(int32_t)); /* one more, for the sorting */
    layout.size = layout.order + round_up((size_t)elements * sizeof(int32_t));
    return layout;
}

lp_cuda_lists lp_cuda_list_view(const lp_cuda_list_layout *layout, const char *block)
{
    lp_cuda_lists lists = {(const int32_t *)block, (const int32_t *)(block + layout->starts),
                           (const int32_t *)(block + layout->order), layout->largest_ids, layout->largest_elements};
    return lists;
}

/* Ids that grow from element to element, as places that are asked at do, are sorted already and occur once. */
static bool grows(const int32_t *ids, int64_t elements)
{
    enum { TOGETHER = 256 }; /* without a way out between them, so that the compiler makes vectors of it */
    bool good = true;
    for (int64_t first = 1; good && first < elements; first += TOGETHER) {
        int64_t end = first + TOGETHER < elements ? first + TOGETHER : elements;
        int32_t wrong = 0;
        for (int64_t i = first; i < end; i++)
            wrong |= ids[i - 1] >= ids[i];
        good = !wrong;
    }
    return good;
}

static void fill_grown(const int32_t *ids, int32_t elements, int32_t *starts, int32_t *order)
{
    int32_t v = 0, all = elements > 0 && ids[elements - 1] == elements - 1; /* then there is every id */
    for (int32_t i = 0; i < elements; i++)
        order[i] = i;
    for (int32_t i = 0; !all && i < elements; i++)
        for (; v <= ids[i]; v++)
            starts[v] = i;
    for (; all && v < elements; v++)
        starts[v] = v;
    starts[v] = elements;
}

/* Counting sort: stable, so elements of an id keep their order. Counts stand two places late; summed up, one place late are the
 * places where ids begin; and when all elements have been placed, each has moved on to where the next id begins. */
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

size_t lp_cuda_list_room(const lp_cuda_list_layout *layout)
{
    return (size_t)layout->largest_ids + 2 + (size_t)layout->largest_elements;
}

void lp_cuda_list_fill(const lp_cuda_list_layout *layout, char *block, const int32_t *ids, int64_t elements,
                       int32_t *room)
{
    int32_t *id_count = (int32_t *)block, *starts = (int32_t *)(block + layout->starts);
    int32_t *order = (int32_t *)(block + layout->order), largest = -1;
    if (grows(ids, elements)) {
        *id_count = elements ? ids[elements - 1] + 1 : 0;
        fill_grown(ids, (int32_t)elements, starts, order);
        return;
    }
    for (int64_t i = 0; i < elements; i++)
        largest = ids[i] > largest ? ids[i] : largest;
    *id_count = largest + 1;
    int32_t *sorted = room + *id_count + 2;
    sort_ids(ids, (int32_t)elements, *id_count, room, sorted);
    memcpy(starts, room, ((size_t)*id_count + 1) * sizeof *starts);
    memcpy(order, sorted, (size_t)elements * sizeof *order);
}
