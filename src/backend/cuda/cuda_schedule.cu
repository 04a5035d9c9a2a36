#include "backend/cuda/cuda_schedule.h"

/* Bytes of one of the memories that nodes write. */
typedef struct extent_of_bytes {
    int memory; /* lp_place */
    size_t begin, end;
} bytes;

typedef struct node_bytes {
    bytes reads[LP_NODE_INPUTS + LP_NODE_OUTPUTS], writes[LP_NODE_OUTPUTS];
    int read_count, write_count;
} node_bytes;

/* The bytes of a value; false where nobody writes them. */
static bool bytes_of(const lp_plan *plan, const lp_value *value, bytes *out)
{
    if (!value || value->place == LP_PLACE_INPUT || value->place == LP_PLACE_PARAMETER)
        return false;
    size_t element = lp_type_size(value->type, plan->real_size), begin = value->offset;
    size_t rows = value->rows_of == LP_ROWS_FIXED ? (size_t)value->rows : (size_t)plan->largest.rows[value->rows_of];
    if (value->place == LP_PLACE_GRADIENT)
        begin *= element;
    else if (value->place == LP_PLACE_ROWS)
        begin *= (size_t)plan->largest.rows[LP_ROWS_ITEMS] * element;
    *out = {(int)value->place, begin, begin + rows * (size_t)value->cols * element};
    return true;
}

static node_bytes bytes_of_node(const lp_plan *plan, const lp_node *node)
{
    node_bytes all = {};
    bytes one;
    for (int i = 0; i < node->op->input_count; i++)
        if (bytes_of(plan, node->inputs[i], &one))
            all.reads[all.read_count++] = one;
    for (int i = 0; i < node->op->output_count; i++)
        if (bytes_of(plan, node->outputs[i], &one)) {
            all.writes[all.write_count++] = one;
            all.reads[all.read_count++] = one; /* in case it adds */
        }
    return all;
}

static bool overlap(const bytes *a, int a_count, const bytes *b, int b_count)
{
    for (int i = 0; i < a_count; i++)
        for (int k = 0; k < b_count; k++)
            if (a[i].memory == b[k].memory && a[i].begin < b[k].end && b[k].begin < a[i].end)
                return true;
    return false;
}

/* Outputs stand among the reads too, so two that write the same are seen. */
static bool conflict(const node_bytes *a, const node_bytes *b)
{
    return overlap(a->writes, a->write_count, b->reads, b->read_count) ||
           overlap(a->reads, a->read_count, b->writes, b->write_count);
}

typedef struct planner {
    int count;
    lp_cuda_slot *slots;
    bool *before;            /* [count x count]: node j comes after node i, directly or through others */
    int last[LP_CUDA_LANES]; /* newest node of each lane, -1: none */
} planner;

/* The lane whose newest node this one waits for anyway, the newest of them; otherwise the one that has rested longest. */
static int choose_lane(const planner *this_one, const bool *direct)
{
    int best = -1, oldest = 0;
    for (int lane = 0; lane < LP_CUDA_LANES; lane++) {
        int last = this_one->last[lane];
        if (last >= 0 && direct[last] && (best < 0 || last > this_one->last[best]))
            best = lane;
        if (last < this_one->last[oldest])
            oldest = lane;
    }
    return best >= 0 ? best : oldest;
}

/* Waits for what is not waited for already: of each lane the newest node that matters, since that has waited for the others. */
static void place_node(planner *this_one, int j, bool *direct)
{
    bool *mine = this_one->before + (size_t)j * this_one->count;
    lp_cuda_slot *slot = &this_one->slots[j];
    slot->lane = choose_lane(this_one, direct);
    int same = this_one->last[slot->lane];
    if (same >= 0)
        direct[same] = true;
    for (int i = j - 1; i >= 0; i--) {
        if (!direct[i] || mine[i])
            continue;
        mine[i] = true;
        for (int k = 0; k < i; k++)
            mine[k] = mine[k] || this_one->before[(size_t)i * this_one->count + k];
        if (this_one->slots[i].lane == slot->lane)
            continue;
        slot->waits[slot->wait_count++] = i;
        this_one->slots[i].awaited = true;
    }
    this_one->last[slot->lane] = j;
}

lp_cuda_slot *lp_cuda_schedule(const lp_plan *plan, lp_arena *arena)
{
    int count = plan->graph->node_count;
    lp_cuda_slot *slots = (lp_cuda_slot *)lp_arena_alloc(arena, ((size_t)count + 1) * sizeof *slots);
    node_bytes *all = (node_bytes *)lp_alloc((size_t)count, sizeof *all);
    bool *before = (bool *)lp_alloc((size_t)count * (size_t)count, 1), *direct = (bool *)lp_alloc((size_t)count, 1);
    bool good = slots && all && before && direct;
    planner this_one = {count, slots, before, {}};
    for (int lane = 0; lane < LP_CUDA_LANES; lane++)
        this_one.last[lane] = -1;
    for (int j = 0; good && j < count; j++) {
        all[j] = bytes_of_node(plan, plan->graph->nodes[j]);
        for (int i = 0; i < count; i++)
            direct[i] = i < j && conflict(&all[i], &all[j]);
        place_node(&this_one, j, direct);
    }
    lp_free(all);
    lp_free(before);
    lp_free(direct);
    return good ? slots : NULL;
}
