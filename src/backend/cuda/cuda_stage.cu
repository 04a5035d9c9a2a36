#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_bce_loss.h"
#include "backend/cuda/cuda_sums.h"

namespace
{

/* A piece, with what decides where it goes. */
typedef struct candidate {
    lp_stage_piece piece;
    lp_cuda_stage_type type;
    unsigned by_row; /* inputs of which it reads its own row alone */
    lp_rows rows_of; /* of a chain */
    int rows, cols;
    int moment;
    bool taken; /* by a stage */
    bool along; /* the first pack does its work */
} candidate;

/* ---- moments ------------------------------------------------------------------------------------------------- */

/* How a piece touches a value. */
typedef struct contact {
    bool reads, writes, whole; /* whole: not only row by row */
} contact;

contact contact_of(const candidate *one, const lp_value *value)
{
    const lp_node *node = one->piece.node;
    contact found = {};
    for (int i = 0; i < node->op->input_count; i++)
        if (node->inputs[i] == value) {
            found.reads = true;
            found.whole = found.whole || !(one->by_row >> i & 1);
        }
    for (int i = 0; i < node->op->output_count; i++)
        found.writes = found.writes || (node->outputs[i] == value && lp_piece_makes(&one->piece, i));
    found.whole = found.whole || one->type != LP_STAGE_CHAIN;
    return found;
}

bool same_chain(const candidate *a, const candidate *b)
{
    return a->type == LP_STAGE_CHAIN && b->type == LP_STAGE_CHAIN && a->rows_of == b->rows_of && a->rows == b->rows &&
           a->cols == b->cols;
}

bool same_choice(const candidate *loss, const candidate *gradient)
{
    return loss->type == LP_STAGE_CHOICE && gradient->type == LP_STAGE_CHOICE &&
           lp_cuda_bce_loss_fusable(loss->piece.node, gradient->piece.node);
}

/* The earliest moment for `later` as far as the value goes, that `earlier` touches before it. */
int moment_after(const candidate *earlier, const candidate *later, const lp_value *value)
{
    contact a = contact_of(earlier, value), b = contact_of(later, value);
    if (!(a.writes && (b.reads || b.writes)) && !(a.reads && b.writes))
        return 0;
    if (same_chain(earlier, later) && !a.whole && !b.whole)
        return earlier->moment;
    /* Sums are added to the same place in the order of the pieces. */
    if (earlier->type == LP_STAGE_SUMS && later->type == LP_STAGE_SUMS && !a.reads && !b.reads)
        return earlier->moment;
    if (same_choice(earlier, later) && value == earlier->piece.node->outputs[1])
        return earlier->moment;
    return earlier->moment + 1;
}

void find_moment(candidate *all, int at)
{
    candidate *mine = &all[at];
    const lp_node *node = mine->piece.node;
    for (int i = 0; i < at; i++) {
        if (all[i].piece.node == node) {
            /* Pieces of one node write different outputs; but what a choice's loss is made of comes with its slopes. */
            if (node->op->id == LP_OP_BCE_LOSS && mine->moment <= all[i].moment)
                mine->moment = all[i].moment + 1;
            continue;
        }
        for (int k = 0; k < node->op->input_count + node->op->output_count; k++) {
            int out = k - node->op->input_count;
            const lp_value *value = out < 0 ? node->inputs[k] : node->outputs[out];
            if (!value || (out >= 0 && !lp_piece_makes(&mine->piece, out)))
                continue;
            int moment = moment_after(&all[i], mine, value);
            mine->moment = moment > mine->moment ? moment : mine->moment;
        }
    }
}

/* ---- pieces -------------------------------------------------------------------------------------------------- */

unsigned outputs_of(const lp_node *node)
{
    unsigned all = 0;
    for (int i = 0; i < node->op->output_count; i++)
        all |= node->outputs[i] ? 1u << i : 0;
    return all;
}

void add(candidate *all, int *count, const lp_node *node, int number, unsigned outputs, lp_cuda_stage_type type,
         unsigned by_row)
{
    const lp_value *out = node->outputs[0] ? node->outputs[0] : node->inputs[0];
    candidate one = {};
    one.piece.node = node;
    one.piece.number = number;
    one.piece.outputs = outputs;
    one.type = type;
    one.by_row = by_row;
    one.rows_of = out->rows_of;
    one.rows = out->rows_of == LP_ROWS_FIXED ? out->rows : 0;
    one.cols = type == LP_STAGE_CHAIN ? lp_cuda_chain_cols(node) : 0;
    all[(*count)++] = one;
}

/* One or two; returns how many there are now. */
int add_pieces(candidate *all, int count, const lp_node *node, int number)
{
    unsigned there = outputs_of(node), by_row = 0, sums = 0;
    unsigned rows = lp_cuda_chain_takes(node, &by_row) & there;
    if (!lp_cuda_sums_takes(node, &sums))
        sums = 0;
    if (node->op->id == LP_OP_BCE_LOSS) {
        add(all, &count, node, number, there & 2, LP_STAGE_CHOICE, 0);
        add(all, &count, node, number, there & 1, LP_STAGE_NODE, 0);
        return count;
    }
    if (node->op->id == LP_OP_BCE_LOSS_GRADIENT && there & 1) {
        add(all, &count, node, number, 1, LP_STAGE_CHOICE, 0);
        there &= ~1u;
        if (!there)
            return count;
    }
    if (!there || (rows | sums) != there) {
        add(all, &count, node, number, there, LP_STAGE_NODE, 0);
        return count;
    }
    if (rows)
        add(all, &count, node, number, rows, LP_STAGE_CHAIN, by_row);
    if (sums)
        add(all, &count, node, number, sums, LP_STAGE_SUMS, 0);
    return count;
}

/* ---- stages -------------------------------------------------------------------------------------------------- */

/* Whether the piece can go where the first of these is. */
bool joins(const candidate *first, const candidate *other)
{
    if (other->taken || other->moment != first->moment || other->type != first->type)
        return false;
    return first->type == LP_STAGE_SUMS || same_chain(first, other) || same_choice(first, other);
}

bool has_room(const lp_cuda_stage *stage)
{
    return stage->count < (stage->type == LP_STAGE_SUMS ? (int)LP_CUDA_SUMS_MOST : (int)LP_CHAIN_STEPS);
}

/* The stage that begins with this piece: as many as belong to it and have room. A piece that finds none ends it, since those after it may
 * wait for it. */
void fill_stage(candidate *all, int count, int at, lp_cuda_stage *stage, lp_stage_piece *pieces)
{
    stage->type = all[at].type;
    stage->moment = all[at].moment;
    stage->pieces = pieces;
    for (int i = at; i < count; i++) {
        if (i > at && (stage->type == LP_STAGE_NODE || !joins(&all[at], &all[i])))
            continue;
        if (!has_room(stage))
            break;
        pieces[stage->count++] = all[i].piece;
        all[i].taken = true;
    }
}

/* A whole node that nobody joins has a kernel of its own, and needs no packed weight. */
void leave_alone(candidate *all, int count)
{
    for (int i = 0; i < count; i++) {
        bool alone = all[i].piece.outputs == outputs_of(all[i].piece.node);
        for (int k = 0; alone && k < count; k++)
            alone = k == i || !(joins(&all[i], &all[k]) || joins(&all[k], &all[i]));
        if (alone)
            all[i].type = LP_STAGE_NODE;
    }
}

/* A piece that touches a value twice counts once. */
void count_touches(const candidate *all, int count, const lp_graph *graph, int *touches)
{
    for (int v = 0; v < graph->value_count; v++)
        for (int i = 0; i < count; i++) {
            contact found = contact_of(&all[i], graph->values[v]);
            touches[v] += found.reads || found.writes;
        }
}

bool is_product(const candidate *one)
{
    return one->type == LP_STAGE_CHAIN && one->piece.node->op->id == LP_OP_LINEAR;
}

/* Whether all that a node makes are weights that packs make of what it reads. */
bool packs_make(const candidate *all, int count, const lp_node *node)
{
    bool found = false;
    if (node->op->id != LP_OP_SCALE_COLUMNS)
        return false;
    for (int i = 0; i < count; i++) {
        if (all[i].piece.node == node || !contact_of(&all[i], node->outputs[0]).reads)
            continue;
        const lp_node *reader = all[i].piece.node;
        found = is_product(&all[i]) && reader->inputs[1] == node->outputs[0] && lp_cuda_packed_maker(reader) == node;
        if (!found)
            return false;
    }
    return found && !node->outputs[0]->retained;
}

/* When a product's weight has been made; -1: before the step. */
int weight_moment(const candidate *all, int at)
{
    int moment = -1;
    if (lp_cuda_packed_maker(all[at].piece.node))
        return moment;
    for (int i = 0; i < at; i++)
        if (contact_of(&all[i], all[at].piece.node->inputs[1]).writes && all[i].moment > moment)
            moment = all[i].moment;
    return moment;
}

/* Whether the node has little to do, from parameters and inputs alone: such come along with the first pack. */
bool is_small(const candidate *one)
{
    const lp_node *node = one->piece.node;
    return one->moment == 0 && one->type == LP_STAGE_NODE && !node->accumulate &&
           (node->op->id == LP_OP_GATHER || node->op->id == LP_OP_HARMONICS);
}

/* The nodes whose work the first pack does: those that make what it scales, and at most LP_PACK_ALONG small ones. Returns their number. */
int add_along(candidate *all, int count, lp_stage_piece *pieces)
{
    int found = 0, small = 0;
    for (int i = 0; i < count; i++) {
        bool comes = is_small(&all[i]) && small < LP_PACK_ALONG;
        small += comes;
        all[i].along = comes || (all[i].type == LP_STAGE_NODE && packs_make(all, count, all[i].piece.node));
        if (all[i].along)
            pieces[found++] = all[i].piece;
    }
    return found;
}

/* Packs what has been made at this moment. Returns the number of pieces. */
int add_pack(lp_cuda_stages *stages, candidate *all, int count, int moment, lp_stage_piece *pieces)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        if (is_product(&all[i]) && weight_moment(all, i) == moment) {
            stages->packed[all[i].piece.number] = stages->packed_size;
            stages->packed_size += lp_cuda_packed_size(all[i].piece.node);
            pieces[found++] = all[i].piece;
        }
    if (found && moment < 0)
        found += add_along(all, count, pieces + found);
    lp_cuda_stage stage = {LP_STAGE_PACK, moment, pieces, found, false};
    if (found)
        stages->all[stages->count++] = stage;
    return found;
}

/* The stages of a moment that are lazy, or are not: those others wait for come first. Returns the place of the next piece. */
lp_stage_piece *add_stages(lp_cuda_stages *stages, candidate *all, int count, int moment, bool lazy,
                           lp_stage_piece *pieces)
{
    for (int i = 0; i < count; i++) {
        if (all[i].taken || all[i].moment != moment || lp_piece_lazy(all[i].type, &all[i].piece) != lazy)
            continue;
        lp_cuda_stage *stage = &stages->all[stages->count++];
        fill_stage(all, count, i, stage, pieces);
        stage->packed = all[i].along;
        pieces += stage->count;
    }
    return pieces;
}

} // namespace

bool lp_cuda_stages_make(const lp_graph *graph, bool one_by_one, lp_arena *arena, lp_cuda_stages *stages)
{
    size_t most = 4 * (size_t)graph->node_count + LP_PACK_ALONG + 2, values = (size_t)graph->value_count + 1;
    candidate *all = (candidate *)lp_alloc(most, sizeof *all);
    lp_stage_piece *pieces = (lp_stage_piece *)lp_arena_alloc(arena, most * sizeof *pieces);
    *stages = lp_cuda_stages();
    stages->all = (lp_cuda_stage *)lp_arena_alloc(arena, most * sizeof *stages->all);
    stages->touches = (int *)lp_arena_alloc(arena, values * sizeof *stages->touches);
    stages->packed = (size_t *)lp_arena_alloc(arena, most * sizeof *stages->packed);
    bool good = all && pieces && stages->all && stages->touches && stages->packed;
    int count = 0, last = 0;
    for (int i = 0; good && i < graph->node_count; i++) {
        if (one_by_one)
            add(all, &count, graph->nodes[i], i, outputs_of(graph->nodes[i]), LP_STAGE_NODE, 0);
        else
            count = add_pieces(all, count, graph->nodes[i], i);
    }
    for (int i = 0; i < count; i++) {
        if (one_by_one)
            all[i].moment = i;
        else
            find_moment(all, i);
    }
    for (int i = 0; i < count; i++)
        last = all[i].moment > last ? all[i].moment : last;
    if (good)
        count_touches(all, count, graph, stages->touches);
    leave_alone(all, count);
    for (int moment = -1; good && moment <= last; moment++) {
        pieces = add_stages(stages, all, count, moment, false, pieces);
        pieces = add_stages(stages, all, count, moment, true, pieces);
        pieces += add_pack(stages, all, count, moment, pieces);
    }
    lp_free(all);
    return good;
}

bool lp_cuda_arrange(const lp_graph *graph, lp_schedule_level *moments)
{
    lp_arena arena = {};
    lp_cuda_stages stages;
    bool good = lp_cuda_stages_make(graph, false, &arena, &stages);
    for (int i = 0; i < graph->node_count; i++)
        moments[i] = {-1, -1};
    for (int s = 0; good && s < stages.count; s++)
        for (int p = 0; stages.all[s].type != LP_STAGE_PACK && p < stages.all[s].count; p++) {
            lp_schedule_level *mine = &moments[stages.all[s].pieces[p].number];
            mine->first = mine->first < 0 ? stages.all[s].moment : mine->first;
            mine->last = stages.all[s].moment;
        }
    lp_arena_clear(&arena);
    return good;
}
