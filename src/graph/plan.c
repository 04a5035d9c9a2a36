/* plan.c: first-fit memory planning over live ranges. */
#include "graph/plan.h"

#include "base/assert.h"

#include <limits.h>

typedef struct live_range {
    lp_value *value;
    int first, last; /* schedule levels, including the reuse delay; first < 0: unused */
    size_t size;
} live_range;

static void extend(live_range *ranges, const lp_value *value, lp_schedule_level level)
{
    if (!value || value->storage != LP_STORAGE_WORK)
        return;
    live_range *mine = &ranges[value->id];
    if (mine->first < 0 || level.first < mine->first)
        mine->first = level.first;
    if (level.last > mine->last)
        mine->last = level.last;
}

/* First fit: the lowest offset at which `mine` overlaps no placed value with an overlapping live range. `placed` is
 * sorted by offset. */
static size_t first_fit(const live_range *mine, live_range *const *placed, int placed_count)
{
    size_t offset = 0;
    for (int i = 0; i < placed_count; i++) {
        const live_range *other = placed[i];
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

/* Whether the bytes of these two are apart, or they are never live at once. */
static bool are_apart(const live_range *a, const live_range *b)
{
    bool same_time = a->first >= 0 && b->first >= 0 && a->last >= b->first && b->last >= a->first;
    return !same_time || a->value->offset + a->size <= b->value->offset ||
           b->value->offset + b->size <= a->value->offset;
}

/* Whether values that are live at once are apart, and all are in the work buffer, each at an aligned offset. */
static bool is_sound(const live_range *ranges, int count, size_t work_size)
{
    bool sound = true;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < i; k++)
            sound = sound && are_apart(&ranges[i], &ranges[k]);
        sound = sound && (ranges[i].first < 0 || (ranges[i].value->offset % LP_ALIGN == 0 &&
                                                  ranges[i].value->offset + ranges[i].size <= work_size));
    }
    return sound;
}

/* Whether node i, or one before it, writes the value. */
static bool is_written(const lp_graph *graph, int i, const lp_value *value)
{
    for (; i >= 0; i--)
        for (int k = 0; k < graph->nodes[i]->op->output_count; k++)
            if (graph->nodes[i]->outputs[k] == value)
                return true;
    return false;
}

/* Whether the inputs of node i that are in the work buffer have been written before. */
static bool has_inputs(const lp_graph *graph, int i)
{
    const lp_node *node = graph->nodes[i];
    for (int k = 0; k < node->op->input_count; k++)
        if (node->inputs[k] && node->inputs[k]->storage == LP_STORAGE_WORK &&
            !is_written(graph, i - 1, node->inputs[k]))
            return false;
    return true;
}

static void place_all(live_range *ranges, live_range **placed, int count, size_t *work_size)
{
    int placed_count = 0;
    for (int i = 0; i < count; i++) {
        live_range *mine = &ranges[i];
        if (mine->first < 0)
            continue;
        mine->value->offset = first_fit(mine, placed, placed_count);
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
                             const lp_schedule_level *levels, int reuse_delay, lapse_error *error)
{
    LP_TRY(lp_graph_status(graph, error));
    *plan = (lp_plan){.graph = graph, .real_size = real_size, .largest = *largest, .scheduled = levels != NULL};
    size_t count = (size_t)graph->value_count;
    live_range *ranges = lp_alloc(count, sizeof *ranges), **placed = lp_alloc(count, sizeof *placed);
    if (!ranges || !placed) {
        lp_free(ranges);
        lp_free(placed);
        return lp_fail_memory(error, "planning a graph", count * sizeof *ranges);
    }
    for (int i = 0; i < graph->value_count; i++) {
        lp_value *value = graph->values[i];
        size_t rows = (size_t)lp_value_rows(value, largest);
        size_t size = rows * (size_t)value->cols * lp_type_size(value->type, real_size);
        ranges[i] = (live_range){value, -1, -1, (size + LP_ALIGN - 1) / LP_ALIGN * LP_ALIGN};
    }
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        lp_schedule_level level = levels ? levels[i] : (lp_schedule_level){i, i};
        LP_ASSERT(level.first >= 0 && level.first <= level.last);
        LP_ASSERT(has_inputs(graph, i));
        for (int k = 0; k < node->op->input_count; k++)
            extend(ranges, node->inputs[k], level);
        for (int k = 0; k < node->op->output_count; k++)
            extend(ranges, node->outputs[k], level);
        if (node->op->scratch) {
            size_t scratch = node->op->scratch(node, largest, real_size);
            plan->scratch_size = scratch > plan->scratch_size ? scratch : plan->scratch_size;
        }
    }
    for (int i = 0; i < graph->value_count; i++) {
        if (graph->values[i]->optional && (levels || ranges[i].size > LP_OPTIONAL_BYTES)) {
            graph->values[i]->offset = LP_LEFT_OUT;
            ranges[i].first = -1;
        }
        if (ranges[i].first >= 0)
            ranges[i].last = graph->values[i]->retained ? INT_MAX : ranges[i].last + reuse_delay;
    }
    place_all(ranges, placed, graph->value_count, &plan->work_size);
    LP_ASSERT(is_sound(ranges, graph->value_count, plan->work_size));
    lp_free(ranges);
    lp_free(placed);
    return LAPSE_OK;
}
