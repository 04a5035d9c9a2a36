#include "graph/plan.h"

#include <limits.h>

typedef struct life {
    lp_value *value;
    int first, last; /* moments; the rest of its place included */
    size_t size;
} life;

static void touch(life *lives, const lp_value *value, lp_schedule_level when)
{
    if (!value || value->storage != LP_STORAGE_WORK)
        return;
    life *mine = &lives[value->id];
    if (mine->first < 0 || when.first < mine->first)
        mine->first = when.first;
    if (when.last > mine->last)
        mine->last = when.last;
}

/* First fit: the lowest offset at which `mine` overlaps no placed value that lives at the same time. `placed` is
 * sorted by offset. */
static size_t find_place(const life *mine, life *const *placed, int placed_count)
{
    size_t offset = 0;
    for (int i = 0; i < placed_count; i++) {
        const life *other = placed[i];
        if (other->last < mine->first || mine->last < other->first)
            continue;
        size_t end = other->value->offset + other->size;
        if (other->value->offset >= offset + mine->size)
            break;
        if (end > offset)
            offset = end;
    }
    return offset;
}

static void place_all(life *lives, life **placed, int count, size_t *work_size)
{
    int placed_count = 0;
    for (int i = 0; i < count; i++) {
        life *mine = &lives[i];
        if (mine->first < 0)
            continue;
        mine->value->offset = find_place(mine, placed, placed_count);
        int at = placed_count++;
        while (at > 0 && placed[at - 1]->value->offset > mine->value->offset) {
            placed[at] = placed[at - 1];
            at--;
        }
        placed[at] = mine;
        if (mine->value->offset + mine->size > *work_size)
            *work_size = mine->value->offset + mine->size;
    }
}

lapse_status lp_plan_make(lp_plan *plan, lp_graph *graph, const lp_extent *largest, size_t real_size,
                          lapse_error *error)
{
    return lp_plan_make_at(plan, graph, largest, real_size, NULL, 0, error);
}

lapse_status lp_plan_make_at(lp_plan *plan, lp_graph *graph, const lp_extent *largest, size_t real_size,
                             const lp_schedule_level *moments, int rest, lapse_error *error)
{
    LP_TRY(lp_graph_status(graph, error));
    *plan = (lp_plan){.graph = graph, .real_size = real_size, .largest = *largest, .arranged = moments};
    size_t count = (size_t)graph->value_count;
    life *lives = lp_alloc(count, sizeof *lives), **placed = lp_alloc(count, sizeof *placed);
    if (!lives || !placed) {
        lp_free(lives);
        lp_free(placed);
        return lp_fail_memory(error, "planning a graph", count * sizeof *lives);
    }
    for (int i = 0; i < graph->value_count; i++) {
        lp_value *value = graph->values[i];
        size_t rows = (size_t)lp_value_rows(value, largest);
        size_t size = rows * (size_t)value->cols * lp_type_size(value->type, real_size);
        lives[i] = (life){value, -1, -1, (size + LP_ALIGN - 1) / LP_ALIGN * LP_ALIGN};
    }
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        lp_schedule_level when = moments ? moments[i] : (lp_schedule_level){i, i};
        for (int k = 0; k < node->op->input_count; k++)
            touch(lives, node->inputs[k], when);
        for (int k = 0; k < node->op->output_count; k++)
            touch(lives, node->outputs[k], when);
        if (node->op->scratch) {
            size_t scratch = node->op->scratch(node, largest, real_size);
            plan->scratch_size = scratch > plan->scratch_size ? scratch : plan->scratch_size;
        }
    }
    for (int i = 0; i < graph->value_count; i++)
        if (lives[i].first >= 0)
            lives[i].last = graph->values[i]->kept ? INT_MAX : lives[i].last + rest;
    place_all(lives, placed, graph->value_count, &plan->work_size);
    lp_free(lives);
    lp_free(placed);
    return LAPSE_OK;
}
