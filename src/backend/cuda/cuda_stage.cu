/* cuda_stage.cu: splits nodes into parts, finds their levels, and groups them into stages. */
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_linear.h"
#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_steps.h"

namespace
{

/* A part that is to be assigned to a stage. */
typedef struct candidate {
    lp_stage_part part;
    lp_cuda_stage_type type;
    int level;
    bool assigned;
    int first;      /* of the products that are added up to it; otherwise its own index */
    lp_product sum; /* what they give so far */
} candidate;

/* Levels that the memory of a sum over rows is kept for beyond its own: such sums run late. */
enum { LATE = 8 };

/* ---- levels -------------------------------------------------------------------------------------------------- */

/* Whether rows of the outputs depend on the same rows of some inputs only. */
bool is_by_row(const candidate *one)
{
    return one->type == LP_STAGE_FUSED || one->type == LP_STAGE_ROWS;
}

/* Whether a part that uses the value has rows of its outputs depend on other rows of it. */
bool uses_whole(const candidate *one, const lp_value *value)
{
    bool whole = !is_by_row(one);
    const lp_node *node = one->part.node;
    for (int i = 0; i < node->op->input_count; i++) {
        lp_step_role role = i < LP_STEP_INPUTS ? lp_cuda_rule_of(node)->step.role[i] : LP_ROLE_NONE;
        whole = whole || (node->inputs[i] == value && (role < LP_ROLE_MAIN || role > LP_ROLE_IDS));
    }
    return whole;
}

bool same_row_kernel(const candidate *a, const candidate *b)
{
    const lp_node *x = a->part.node, *y = b->part.node;
    const lp_value *one = lp_step_shape(x), *two = lp_step_shape(y);
    bool same_rows = one->rows_of == two->rows_of && (one->rows_of != LP_ROWS_FIXED || one->rows == two->rows);
    if (!is_by_row(a) || a->type != b->type || !same_rows)
        return false;
    return a->type == LP_STAGE_FUSED ? lp_fused_cols(x) == lp_fused_cols(y)
                                     : one->cols == two->cols && lp_step_frequencies(x) == lp_step_frequencies(y);
}

bool same_loss(const candidate *loss, const candidate *gradient)
{
    return loss->type == LP_STAGE_LOSS && gradient->type == LP_STAGE_LOSS &&
           loss->part.node->outputs[1] == gradient->part.node->inputs[4];
}

/* The lowest level of `later` that the use of the value by `earlier` permits. */
int level_after(const candidate *earlier, const candidate *later, const lp_value *value)
{
    const lp_stage_part *a = &earlier->part, *b = &later->part;
    bool written = lp_part_writes(b, value);
    if (!(lp_part_writes(a, value) && (lp_part_reads(b, value) || written)) && !(lp_part_reads(a, value) && written))
        return 0;
    if (same_row_kernel(earlier, later) && !uses_whole(earlier, value) && !uses_whole(later, value))
        return earlier->level;
    /* A group of reductions accumulates into one output in part order. */
    if (earlier->type == LP_STAGE_REDUCTION && later->type == LP_STAGE_REDUCTION && !lp_part_reads(a, value) &&
        !lp_part_reads(b, value))
        return earlier->level;
    if (same_loss(earlier, later) && value == earlier->part.node->outputs[1])
        return earlier->level;
    return earlier->level + 1;
}

/* Whether product `at` can be joined to those up to `last`, the latest of its group: nothing else uses their sum, or changes what they read,
 * before it. */
bool follows(const candidate *all, int count, int last, int at, lp_product *sum)
{
    const candidate *before = &all[last];
    *sum = before->sum;
    if (before->type != LP_STAGE_PRODUCT || !lp_product_join(sum, all[at].part.node))
        return false;
    const lp_value *inner = before->sum.out;
    bool stored = inner == sum->out, good = stored || (inner->storage == LP_STORAGE_WORK && !inner->retained);
    for (int i = last + 1; good && i < at; i++)
        good = all[i].first != before->first;
    for (int i = before->first; good && i < (stored ? at : count); i++) {
        if (all[i].first == before->first || i == at)
            continue;
        good = !lp_part_reads(&all[i].part, inner) && !lp_part_writes(&all[i].part, inner);
        for (int m = before->first; good && m < i && i < at; m++)
            for (int k = 0; all[m].first == before->first && k < all[m].part.node->op->input_count; k++)
                good = good && !lp_part_writes(&all[i].part, all[m].part.node->inputs[k]);
    }
    return good;
}

/* Joins product `at` to earlier ones, at the higher of their levels. */
void join_products(candidate *all, int at, int last, const lp_product *sum)
{
    candidate *mine = &all[at];
    int level = mine->level > all[last].level ? mine->level : all[last].level;
    mine->first = all[last].first;
    mine->sum = *sum;
    for (int i = mine->first; i <= at; i++)
        if (all[i].first == mine->first)
            all[i].level = level;
}

void find_level(candidate *all, int count, int at)
{
    candidate *mine = &all[at];
    const lp_node *node = mine->part.node;
    lp_product sum;
    int last = mine->type == LP_STAGE_PRODUCT ? at - 1 : -1;
    while (last >= 0 && !follows(all, count, last, at, &sum))
        last--;
    for (int i = 0; i < at; i++) {
        if (last >= 0 && all[i].first == all[last].first)
            continue;
        if (all[i].part.node == node) {
            /* Parts of one node write different outputs. But one may read a side buffer that another leaves, and sums over rows come
             * after a chain, with those of the next level. */
            bool later = lp_cuda_rule_of(node)->ordered || all[i].type == LP_STAGE_ROWS;
            if (later && mine->level <= all[i].level)
                mine->level = all[i].level + 1;
            continue;
        }
        for (int k = 0; k < node->op->input_count + node->op->output_count; k++) {
            int out = k - node->op->input_count;
            const lp_value *value = out < 0 ? node->inputs[k] : node->outputs[out];
            int level = value ? level_after(&all[i], mine, value) : 0;
            mine->level = level > mine->level ? level : mine->level;
        }
    }
    if (last >= 0)
        join_products(all, at, last, &sum);
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

void add(candidate *all, int *count, const lp_node *node, int number, unsigned outputs, lp_cuda_stage_type type)
{
    candidate one = {};
    one.part = {node, number, outputs};
    one.type = type;
    one.first = *count;
    if (type == LP_STAGE_PRODUCT)
        one.sum = lp_product_start(node);
    all[(*count)++] = one;
}

/* Adds the one or two parts of a node. */
void add_parts(candidate *all, int *count, const lp_node *node, int number, bool fuses)
{
    const lp_cuda_rule *rule = lp_cuda_rule_of(node);
    unsigned present = lp_outputs_of(node), together = rule->together & present;
    unsigned reduced = rule->reduction.outputs & present, rest = present & ~together & ~reduced;
    unsigned fused = fuses ? lp_cuda_fused_supports(node) & present : 0;
    unsigned rows = fused ? fused : lp_cuda_row_chain_supports(node) & present;
    lp_cuda_stage_type type = rows && rows == rest           ? fused ? LP_STAGE_FUSED : LP_STAGE_ROWS
                              : node->op->id == LP_OP_LINEAR ? LP_STAGE_PRODUCT
                                                             : LP_STAGE_NODE;
    if (together)
        add(all, count, node, number, together, LP_STAGE_LOSS);
    if (rest || !present)
        add(all, count, node, number, rest, type);
    if (reduced)
        add(all, count, node, number, reduced, LP_STAGE_REDUCTION);
}

/* Whether the part computes gradients of parameters from values of their size, and nothing else writes these in another type of stage. */
bool is_leaf(const candidate *all, int count, const candidate *one)
{
    const lp_node *node = one->part.node;
    bool leaf = one->type != LP_STAGE_PRODUCT;
    for (int i = 0; leaf && i < node->op->input_count; i++)
        leaf = !node->inputs[i] || node->inputs[i]->rows_of == LP_ROWS_FIXED;
    for (int i = 0; leaf && i < node->op->output_count; i++) {
        leaf = !node->outputs[i] || node->outputs[i]->storage == LP_STORAGE_GRADIENT;
        for (int k = 0; leaf && node->outputs[i] && k < count; k++)
            leaf = all[k].type == one->type || !lp_part_writes(&all[k].part, node->outputs[i]);
    }
    return leaf;
}

/* The parts of a graph with their levels, in node order; the caller frees them. unscheduled: whole nodes, a level for each. NULL when out
 * of memory. */
candidate *list_parts(const lp_graph *graph, bool unscheduled, int *count)
{
    candidate *all = (candidate *)lp_alloc(2 * (size_t)graph->node_count + 1, sizeof *all);
    bool fuses = lp_cuda_fused_suits(graph);
    *count = 0;
    for (int i = 0; all && i < graph->node_count; i++)
        if (unscheduled)
            add(all, count, graph->nodes[i], i, lp_outputs_of(graph->nodes[i]), LP_STAGE_NODE);
        else
            add_parts(all, count, graph->nodes[i], i, fuses);
    for (int i = 0; i < *count; i++)
        if (unscheduled)
            all[i].level = i;
        else
            find_level(all, *count, i);
    int last = 0;
    for (int i = 0; i < *count; i++)
        last = all[i].level > last ? all[i].level : last;
    for (int i = 0; !unscheduled && i < *count; i++)
        if (is_leaf(all, *count, &all[i])) /* together they are few launches, and no sum over rows waits for them */
            all[i].level = last;
    return all;
}

/* ---- stages -------------------------------------------------------------------------------------------------- */

/* Whether `other` can run in the stage that starts with `first`. */
bool joins(const candidate *first, const candidate *other)
{
    if (other->assigned || other->level != first->level || other->type != first->type)
        return false;
    return first->type == LP_STAGE_REDUCTION || same_row_kernel(first, other) || same_loss(first, other) ||
           (first->type == LP_STAGE_PRODUCT && first->first == other->first);
}

/* Adds the stage that starts with part `at`. It ends at the first matching part that does not fit, because later parts may depend on
 * that one. */
void add_stage(lp_cuda_stages *stages, candidate *all, int count, int at)
{
    lp_cuda_stage *stage = &stages->all[stages->count++];
    *stage = {all[at].type, all[at].level, stages->parts_end, 0, 0};
    int most = stage->type == LP_STAGE_ROWS ? (int)LP_ROW_CHAIN_STEPS : (int)LP_STAGE_PARTS;
    for (int i = at; i < count && stage->count < most; i++)
        if (i == at || joins(&all[at], &all[i])) {
            *stages->parts_end++ = all[i].part;
            stage->count++;
            all[i].assigned = true;
        }
}

/* A whole node alone in its stage uses the kernel of its op, which needs no packed weight. Sums over rows stay reductions. */
void unfuse_singles(candidate *all, int count)
{
    for (int i = 0; i < count; i++) {
        bool alone = all[i].type != LP_STAGE_REDUCTION && all[i].part.outputs == lp_outputs_of(all[i].part.node);
        for (int k = 0; alone && k < count; k++)
            alone = k == i || !(joins(&all[i], &all[k]) || joins(&all[k], &all[i]));
        if (alone)
            all[i].type = LP_STAGE_NODE;
    }
}

/* Whether packs compute the output of the node: it scales the columns of a parameter, and is only the weight of fused products. */
bool scaled_by_pack(const candidate *all, int count, const lp_node *node)
{
    bool found = node->op->id == LP_OP_SCALE_COLUMNS && !node->accumulate && !node->outputs[0]->retained &&
                 node->inputs[0]->storage == LP_STORAGE_PARAMETER && node->inputs[1]->storage == LP_STORAGE_PARAMETER;
    int readers = 0;
    for (int i = 0; found && i < count; i++)
        if (lp_part_reads(&all[i].part, node->outputs[0])) {
            found = all[i].type == LP_STAGE_FUSED && lp_part_is_product(&all[i].part) &&
                    all[i].part.node->inputs[0] != node->outputs[0];
            readers++;
        }
    return found && readers;
}

/* Assigns memory to the steps of fused kernels and to the packed weights of their products. */
void place_steps(lp_cuda_stages *stages)
{
    for (int s = 0; s < stages->count; s++) {
        lp_cuda_stage *stage = &stages->all[s];
        if (stage->type != LP_STAGE_FUSED)
            continue;
        stage->first_step = stages->step_count;
        stages->step_count += stage->count;
        for (lp_stage_part *part = stage->parts; part < stage->parts + stage->count; part++) {
            if (!lp_part_is_product(part))
                continue;
            part->packed = stages->packed_size;
            stages->packed_size += (size_t)LP_PACK_BLOCK * lp_fused_halves(part->node->inputs[0]->cols) *
                                   lp_fused_halves(part->node->outputs[0]->cols);
            part->packed_after = -1;
            for (int i = 0; i < s; i++)
                for (int p = 0; p < stages->all[i].count; p++)
                    if (lp_part_writes(&stages->all[i].parts[p], part->node->inputs[1]))
                        part->packed_after = i;
        }
    }
}

} // namespace

bool lp_cuda_stages_build(const lp_graph *graph, bool unscheduled, bool fused, bool joined, lp_arena *arena,
                          lp_cuda_stages *stages)
{
    size_t most = 2 * (size_t)graph->node_count + 1; /* a node has at most two parts */
    int count;
    candidate *all = list_parts(graph, unscheduled, &count);
    *stages = lp_cuda_stages();
    stages->all = (lp_cuda_stage *)lp_arena_alloc(arena, most * sizeof *stages->all);
    stages->parts_end = (lp_stage_part *)lp_arena_alloc(arena, most * sizeof *stages->parts_end);
    bool good = all && stages->all && stages->parts_end;
    for (int i = 0; good && i < count; i++)
        if (all[i].type == LP_STAGE_FUSED ? !fused : all[i].type == LP_STAGE_PRODUCT && !joined)
            all[i].type = LP_STAGE_NODE;
    if (good)
        unfuse_singles(all, count);
    for (int i = 0; good && i < count; i++)
        all[i].assigned = scaled_by_pack(all, count, all[i].part.node);
    for (int level = 0; good && level < count; level++)
        for (int off_path = 0; off_path < 2; off_path++)
            for (int i = 0; i < count; i++)
                if (!all[i].assigned && all[i].level == level &&
                    lp_part_off_path(all[i].type, &all[i].part) == (off_path == 1))
                    add_stage(stages, all, count, i);
    if (good)
        place_steps(stages);
    lp_free(all);
    return good;
}

bool lp_cuda_stage_levels(const lp_graph *graph, lp_schedule_level *levels)
{
    int count;
    candidate *all = list_parts(graph, false, &count);
    for (int i = 0; i < count; i++) {
        lp_schedule_level *mine = &levels[all[i].part.number];
        bool first = i == 0 || all[i - 1].part.number != all[i].part.number;
        mine->first = first || all[i].level < mine->first ? all[i].level : mine->first;
        int end = all[i].level + (all[i].type == LP_STAGE_REDUCTION ? LATE : 0);
        mine->last = first || end > mine->last ? end : mine->last;
    }
    lp_free(all);
    return all != NULL;
}
