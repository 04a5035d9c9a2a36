#include "backend/cuda/cuda_lists.h"

const lp_value *lp_cuda_sorted_by(const lp_node *node, int k)
{
    if (node->op->id == LP_OP_EMBED_GRADIENT && k == 1)
        return node->outputs[0];
    if (node->op->id == LP_OP_CHOICE_LOSS_GRADIENT && (k == 2 || k == 3))
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
    int64_t full = elements / LP_CUDA_PIECE; /* pieces that are full; each divided id has one at least */
    layout.largest_pieces = (int)(full + (elements < ids ? elements : ids));
    layout.largest_groups = (int)full;
    layout.largest_partial = (int)(2 * full);
    layout.order = round_up(sizeof(lp_cuda_list_counts));
    layout.pieces = layout.order + round_up((size_t)elements * sizeof(int32_t));
    layout.groups = layout.pieces + round_up((size_t)layout.largest_pieces * sizeof(lp_cuda_piece));
    layout.size = layout.groups + round_up((size_t)layout.largest_groups * sizeof(lp_cuda_group));
    return layout;
}

lp_cuda_lists lp_cuda_list_view(const lp_cuda_list_layout *layout, const char *block)
{
    lp_cuda_lists lists = {(const lp_cuda_list_counts *)block,
                           (const int32_t *)(block + layout->order),
                           (const lp_cuda_piece *)(block + layout->pieces),
                           (const lp_cuda_group *)(block + layout->groups),
                           layout->largest_pieces,
                           layout->largest_groups,
                           layout->largest_partial};
    return lists;
}

/* Counting sort: stable, so elements of an id keep their order. Afterwards id v has order[starts[v - 1]] .. */
static void sort_ids(const int32_t *ids, int64_t elements, int64_t id_count, int32_t *starts, int32_t *order)
{
    memset(starts, 0, ((size_t)id_count + 1) * sizeof *starts);
    for (int64_t i = 0; i < elements; i++)
        starts[ids[i] + 1]++;
    for (int64_t v = 0; v < id_count; v++)
        starts[v + 1] += starts[v];
    for (int64_t i = 0; i < elements; i++)
        order[starts[ids[i]]++] = (int32_t)i;
}

/* Ids that grow from element to element, as places that are asked at do, are sorted already and occur once. */
static bool grows(const int32_t *ids, int64_t elements)
{
    bool good = true;
    for (int64_t i = 1; good && i < elements; i++)
        good = ids[i - 1] < ids[i];
    return good;
}

static void fill_grown(const int32_t *ids, int64_t elements, int32_t *order, lp_cuda_piece *pieces)
{
    for (int32_t i = 0; i < (int32_t)elements; i++) {
        order[i] = i;
        pieces[i] = {ids[i], i, i + 1, -1};
    }
}

void lp_cuda_list_fill(const lp_cuda_list_layout *layout, char *block, const int32_t *ids, int64_t elements,
                       int64_t id_count, int32_t *starts)
{
    lp_cuda_list_counts *counts = (lp_cuda_list_counts *)block;
    lp_cuda_piece *pieces = (lp_cuda_piece *)(block + layout->pieces);
    lp_cuda_group *groups = (lp_cuda_group *)(block + layout->groups);
    int32_t *order = (int32_t *)(block + layout->order), places = 0, begin = 0, piece = 0, group = 0;
    if (grows(ids, elements)) {
        fill_grown(ids, elements, order, pieces);
        *counts = {(int32_t)elements, 0};
        return;
    }
    sort_ids(ids, elements, id_count, starts, order);
    for (int32_t v = 0; begin < elements; v++) {
        int32_t end = starts[v];
        bool divided = end - begin > LP_CUDA_PIECE;
        if (divided)
            groups[group++] = {v, places, (end - begin + LP_CUDA_PIECE - 1) / LP_CUDA_PIECE};
        for (; begin < end; begin += LP_CUDA_PIECE) {
            int32_t stop = begin + LP_CUDA_PIECE < end ? begin + LP_CUDA_PIECE : end;
            pieces[piece++] = {v, begin, stop, divided ? places++ : -1};
        }
        begin = end;
    }
    *counts = {piece, group};
}
