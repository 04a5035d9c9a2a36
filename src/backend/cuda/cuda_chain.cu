#include "backend/cuda/cuda_chain.h"

namespace
{

enum { VALUES = LP_CHAIN_STEPS * (LP_NODE_INPUTS + LP_NODE_OUTPUTS) };

/* ---- which nodes ---------------------------------------------------------------------------------------------- */

/* What a chain can do of an op. */
typedef struct chain_op {
    lp_op_id id;
    unsigned outputs;  /* those it makes */
    unsigned by_row;   /* inputs of which it reads its own row alone */
    int main;          /* the input that may be in registers; -1: none, as everything goes through memory */
    int other[2];      /* and those it reads besides; -1: none */
    int factors;       /* and the one that has a number for each column */
    bool narrow, wide; /* results it can have */
} chain_op;

const chain_op ops[] = {
    {LP_OP_ADD, 1, 1 | 2, 0, {1, -1}, -1, true, true},
    {LP_OP_RELU, 1, 1, 0, {-1, -1}, -1, true, true},
    {LP_OP_RELU_GRADIENT, 1, 1 | 2, 1, {0, -1}, -1, true, true},
    {LP_OP_MULTIPLY, 1, 1 | 2, 0, {1, -1}, -1, true, true},
    {LP_OP_AFFINE, 1, 1, 0, {-1, -1}, -1, true, true},
    {LP_OP_SCALE_COLUMNS, 1, 1, 0, {-1, -1}, 1, true, true},
    {LP_OP_DROPOUT, 1, 1, 0, {-1, -1}, -1, true, false},
    {LP_OP_LINEAR, 1, 1 | 8, 0, {3, -1}, 2, true, true},
    {LP_OP_LAYER_NORM, 3, 1, 0, {-1, -1}, 1, true, false},
    {LP_OP_LAYER_NORM_GRADIENT, 1, 1 | 4 | 8, 3, {0, 2}, 1, true, false},
    {LP_OP_EMBED, 1, 2, -1, {-1, -1}, -1, true, true},
    {LP_OP_BASIS, 1, 1, -1, {-1, -1}, 1, false, true},
    {LP_OP_REFLECT, 1, 1 | 2, -1, {1, -1}, -1, false, true},
    {LP_OP_REFLECT_GRADIENT, 3, 1 | 2 | 4, -1, {1, 0}, -1, false, true},
};

const chain_op *find_op(lp_op_id id)
{
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (ops[i].id == id)
            return &ops[i];
    return NULL;
}

/* Halves of a value with so many columns; 0: too many of them, or such that a half begins where two cannot be read at once. */
int parts_of(int cols)
{
    if (cols <= LP_CHAIN_COLS)
        return cols % 2 ? 0 : 1;
    return cols <= 2 * LP_CHAIN_COLS && cols % 4 == 0 ? 2 : 0;
}

bool row_input(const lp_node *node, int i)
{
    return i >= 0 && i < node->op->input_count && node->inputs[i] && node->inputs[i]->type == LP_TYPE_REAL &&
           (find_op(node->op->id)->by_row >> i & 1);
}

/* Heads are side by side, and a chain knows halves alone. */
bool one_head(const lp_node *node)
{
    if (node->op->id == LP_OP_LINEAR)
        return node->attributes.heads == 1;
    bool turns = node->op->id == LP_OP_REFLECT || node->op->id == LP_OP_REFLECT_GRADIENT;
    return !turns || (node->inputs[0]->cols == node->inputs[1]->cols && node->outputs[0] != node->outputs[1]);
}

/* ---- the order of the pieces ---------------------------------------------------------------------------------- */

typedef struct producer {
    const lp_stage_piece *pieces;
    int count;
    const lp_cuda_stages *stages;
    float *packed;
    const lp_value *here, *x;       /* what the registers hold, and the x of the newest product; NULL: nothing */
    const lp_value *wide;           /* what the piece before left in its room; NULL: nothing */
    const lp_value *stored[VALUES]; /* those that a later piece reads from memory */
    int stored_count;
} producer;

bool touches_value(const lp_stage_piece *piece, const lp_value *value, bool *writes)
{
    const lp_node *node = piece->node;
    bool found = false;
    *writes = false;
    for (int i = 0; i < node->op->input_count; i++)
        found = found || (row_input(node, i) && node->inputs[i] == value);
    for (int i = 0; i < node->op->output_count; i++)
        *writes = *writes || (lp_piece_makes(piece, i) && node->outputs[i] == value);
    return found || *writes;
}

/* Whether b has to come after a: one of them writes what the other touches. */
bool depends(const lp_stage_piece *a, const lp_stage_piece *b)
{
    const lp_node *node = a->node;
    for (int k = 0; k < node->op->input_count + node->op->output_count; k++) {
        int out = k - node->op->input_count;
        bool wanted = out < 0 ? row_input(node, k) : lp_piece_makes(a, out), mine, others;
        const lp_value *value = out < 0 ? node->inputs[k] : node->outputs[out];
        if (wanted && touches_value(a, value, &mine) && touches_value(b, value, &others) && (mine || others))
            return true;
    }
    return false;
}

/* The main input, as far as it may be in the registers. */
const lp_value *main_input(const producer *make, const lp_stage_piece *piece)
{
    const lp_node *node = piece->node;
    int main = find_op(node->op->id)->main;
    if (node->op->id == LP_OP_ADD && node->inputs[1] && node->inputs[1] == make->here)
        main = 1; /* either will do */
    const lp_value *value = main >= 0 ? node->inputs[main] : NULL;
    return value && parts_of(value->cols) == 1 ? value : NULL;
}

/* The same of a wide one, as far as it may be in the room where it was made. */
const lp_value *wide_input(const lp_stage_piece *piece)
{
    const lp_node *node = piece->node;
    lp_op_id id = node->op->id;
    const lp_value *value = id == LP_OP_LINEAR || id == LP_OP_REFLECT ? node->inputs[0]
                            : id == LP_OP_REFLECT_GRADIENT            ? node->inputs[2]
                                                                      : NULL;
    return value && parts_of(value->cols) == 2 ? value : NULL;
}

/* What the piece adds its product to, if the registers hold it. */
bool adds_here(const producer *make, const lp_stage_piece *piece)
{
    const lp_node *node = piece->node;
    return node->op->id == LP_OP_LINEAR && node->inputs[3] && node->inputs[3] == make->here;
}

/* A piece that can go on with what is in the registers or was just made, or else the first that waits for none. */
int next_piece(const producer *make, const bool *done)
{
    int first = -1, same = -1;
    for (int p = 0; p < make->count; p++) {
        bool ready = !done[p];
        for (int k = 0; ready && k < p; k++)
            ready = done[k] || !depends(&make->pieces[k], &make->pieces[p]);
        if (!ready)
            continue;
        const lp_value *main = main_input(make, &make->pieces[p]);
        if ((main && main == make->here) || (make->wide && wide_input(&make->pieces[p]) == make->wide))
            return p;
        if (same < 0 && main && main == make->x && make->pieces[p].node->op->id == LP_OP_LINEAR)
            same = p;
        first = first < 0 ? p : first;
    }
    return same >= 0 ? same : first;
}

void note_stored(producer *make, const lp_value *value)
{
    for (int i = 0; i < make->stored_count; i++)
        if (make->stored[i] == value)
            return;
    if (value)
        make->stored[make->stored_count++] = value;
}

/* Whether somebody reads the value from memory: outside the chain, or in it. */
bool shown(const producer *make, const lp_value *value)
{
    if (value->storage != LP_STORAGE_WORK || value->retained)
        return true;
    for (int i = 0; i < make->stored_count; i++)
        if (make->stored[i] == value)
            return true;
    int mine = 0;
    for (int p = 0; p < make->count; p++) {
        bool writes;
        mine += touches_value(&make->pieces[p], value, &writes);
    }
    return mine != make->stages->touches[value->id];
}

/* ---- the program ---------------------------------------------------------------------------------------------- */

chain_rows rows_of(const lp_cuda_run *run, const lp_value *value)
{
    chain_rows rows = {NULL, 0};
    if (value) {
        rows.data = (float *)lp_run_data(run->run, value);
        rows.stride = value->cols;
    }
    return rows;
}

/* What the op has of its own. */
void fill_own(const lp_node *node, const lp_cuda_run *run, chain_step *step)
{
    switch (node->op->id) {
    case LP_OP_LINEAR:
        step->head.in_parts = parts_of(node->inputs[0]->cols);
        break;
    case LP_OP_LAYER_NORM:
        step->shift = (float)node->attributes.epsilon;
        step->shifts = rows_of(run, node->inputs[2]).data;
        break;
    case LP_OP_DROPOUT:
        step->threshold = lp_dropout_threshold(node->attributes.rate);
        step->purpose = lp_dropout_purpose(node->attributes.stream);
        step->scale = (float)(65536.0 / (65536.0 - step->threshold));
        break;
    case LP_OP_EMBED:
        step->main = rows_of(run, node->inputs[0]);
        step->ids = (const int32_t *)lp_run_data(run->run, node->inputs[1]);
        break;
    case LP_OP_BASIS:
        step->time = (const double *)lp_run_data(run->run, node->inputs[0]);
        break;
    case LP_OP_REFLECT:
        step->main = rows_of(run, node->inputs[0]);
        break;
    case LP_OP_REFLECT_GRADIENT:
        step->main = rows_of(run, node->inputs[2]);
        break;
    default:
        break;
    }
}

unsigned what_it_has(const chain_step *step, bool follows, bool on_top)
{
    const struct {
        bool there;
        unsigned what;
    } all[] = {
        {follows, LP_STEP_FOLLOWS},
        {on_top, LP_STEP_ON_TOP},
        {step->main.data && !step->ids, LP_STEP_MAIN},
        {step->ids != NULL, LP_STEP_TABLE},
        {step->other[0].data != NULL, LP_STEP_OTHER},
        {step->old[0].data != NULL, LP_STEP_OLD},
        {step->old[1].data != NULL, LP_STEP_OLD_SECOND},
        {step->result[0].data != NULL, LP_STEP_RESULT},
        {step->result[1].data != NULL, LP_STEP_RESULT_SECOND},
        {step->factors != NULL, LP_STEP_FACTORS},
    };
    unsigned has = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        has |= all[i].there ? all[i].what : 0;
    return has;
}

/* Whatever is read from memory is noted, so that the piece that makes it stores it; run NULL: only that. */
void write_step(producer *make, const lp_stage_piece *piece, const lp_cuda_run *run, chain_step *step)
{
    const lp_node *node = piece->node;
    const chain_op *op = find_op(node->op->id);
    const lp_value *main = main_input(make, piece);
    *step = chain_step();
    step->head.op = (int)op->id;
    const lp_value *wide = wide_input(piece);
    if (wide && wide == make->wide)
        main = wide;
    bool follows = main && (main == make->here || main == make->wide),
         again = op->id == LP_OP_LINEAR && main && main == make->x, on_top = adds_here(make, piece);
    for (int i = 0; i < node->op->input_count; i++) {
        bool held = (node->inputs[i] == main && (follows || again)) || (i == 3 && on_top);
        if (row_input(node, i) && (!held || (op->id == LP_OP_ADD && node->inputs[0] == node->inputs[1])))
            note_stored(make, node->inputs[i]);
    }
    for (int i = 0; i < node->op->output_count; i++)
        if (lp_piece_makes(piece, i) && (node->accumulate >> i & 1))
            note_stored(make, node->outputs[i]);
    if (!run)
        return;
    step->head.parts = parts_of((node->outputs[0] ? node->outputs[0] : node->inputs[0])->cols);
    step->scale = (float)node->attributes.scale;
    step->shift = (float)node->attributes.shift;
    int first = op->main, second = op->other[0];
    if (op->id == LP_OP_ADD && main && main == node->inputs[1]) {
        first = 1;
        second = 0;
    }
    if (first >= 0 && !follows && !again)
        step->main = rows_of(run, node->inputs[first]);
    if (second >= 0 && !on_top)
        step->other[0] = rows_of(run, node->inputs[second]);
    if (op->other[1] >= 0)
        step->other[1] = rows_of(run, node->inputs[op->other[1]]);
    if (op->factors >= 0)
        step->factors = rows_of(run, node->inputs[op->factors]).data;
    for (int i = 0; i < 2 && i < node->op->output_count; i++)
        if (lp_piece_makes(piece, i)) {
            if (node->accumulate >> i & 1)
                step->old[i] = rows_of(run, node->outputs[i]);
            if (shown(make, node->outputs[i]))
                step->result[i] = rows_of(run, node->outputs[i]);
        }
    if (op->id == LP_OP_LINEAR)
        step->weight = make->packed + make->stages->packed[piece->number];
    fill_own(node, run, step);
    if (follows)
        step->main = chain_rows();
    step->head.has = what_it_has(step, follows, on_top);
}

/* What the registers hold after a piece. */
void go_on(producer *make, const lp_stage_piece *piece)
{
    const lp_node *node = piece->node;
    const chain_op *op = find_op(node->op->id);
    const lp_value *main = main_input(make, piece);
    if (op->id == LP_OP_LINEAR)
        make->x = main;
    if (op->id == LP_OP_REFLECT_GRADIENT && (node->accumulate & 2))
        make->x = NULL; /* its room holds what is added to */
    for (int i = 0; i < node->op->output_count; i++) {
        make->here = lp_piece_makes(piece, i) && node->outputs[i] == make->here ? NULL : make->here;
        make->x = lp_piece_makes(piece, i) && node->outputs[i] == make->x ? NULL : make->x;
    }
    make->wide = lp_piece_makes(piece, 0) && parts_of(node->outputs[0]->cols) == 2 ? node->outputs[0] : NULL;
    bool through = op->id == LP_OP_BASIS || op->id == LP_OP_REFLECT || op->id == LP_OP_REFLECT_GRADIENT;
    const lp_value *made = node->outputs[0];
    if (op->id == LP_OP_LINEAR && parts_of(made->cols) == 2)
        return; /* half by half, beside the registers */
    if (!through)
        make->here = parts_of(made->cols) == 1 ? made : NULL;
}

/* All pieces in their order. run NULL: to find out what must be stored. */
void write_steps(producer *make, const lp_cuda_run *run, chain_step *steps)
{
    bool done[LP_CHAIN_STEPS] = {};
    make->here = make->x = make->wide = NULL;
    for (int i = 0; i < make->count; i++) {
        int p = next_piece(make, done);
        write_step(make, &make->pieces[p], run, &steps[i]);
        go_on(make, &make->pieces[p]);
        done[p] = true;
    }
}

} // namespace

int lp_cuda_chain_cols(const lp_node *node)
{
    int cols = (node->outputs[0] ? node->outputs[0] : node->inputs[0])->cols, parts = parts_of(cols);
    return parts ? cols / parts : 0;
}

unsigned lp_cuda_chain_takes(const lp_node *node, unsigned *by_row)
{
    const chain_op *op = find_op(node->op->id);
    if (!op || !one_head(node))
        return 0;
    /* Few rows are few warps: their nodes are sooner done side by side than one after the other. */
    if ((node->outputs[0] ? node->outputs[0] : node->inputs[0])->rows_of == LP_ROWS_FIXED)
        return 0;
    int half = lp_cuda_chain_cols(node);
    for (int k = 0; k < node->op->input_count + node->op->output_count; k++) {
        int i = k - node->op->input_count;
        bool moments = (op->id == LP_OP_LAYER_NORM && i == 1) || (op->id == LP_OP_LAYER_NORM_GRADIENT && k == 2);
        if (moments || !(i < 0 ? row_input(node, k) : node->outputs[i] && (op->outputs >> i & 1)))
            continue;
        const lp_value *value = i < 0 ? node->inputs[k] : node->outputs[i];
        int cols = value->cols, parts = parts_of(cols);
        if (value->storage == LP_STORAGE_TABLE_ROWS)
            return 0; /* it may begin anywhere, and rows come and go 16 bytes at a time */
        if (parts == 0 || cols != parts * half || (i >= 0 && !(parts == 1 ? op->narrow : op->wide)))
            return 0;
    }
    if (op->id == LP_OP_LINEAR && node->inputs[1]->rows_of != LP_ROWS_FIXED)
        return 0;
    *by_row = op->by_row;
    return op->outputs;
}

void lp_cuda_chain_make(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run, float *packed,
                        lp_cuda_chain *chain, chain_step *steps)
{
    producer make = {};
    make.pieces = stage->pieces;
    make.count = stage->count;
    make.stages = stages;
    make.packed = packed;
    write_steps(&make, NULL, steps);
    write_steps(&make, run, steps);
    const lp_node *first = stage->pieces[0].node;
    const lp_value *like = first->outputs[0] ? first->outputs[0] : first->inputs[0];
    *chain = lp_cuda_chain();
    chain->count = stage->count;
    for (int i = stage->count - 1; i >= 0; i--)
        if (steps[i].weight) {
            steps[i].next_weight = chain->first_weight;
            chain->first_weight = steps[i].weight;
        }
    chain->cols = lp_cuda_chain_cols(first);
    chain->rows = lp_cuda_rows_of(like);
    chain->blocks = lp_blocks(lp_cuda_largest(run, like), LP_CHAIN_ROWS);
}

size_t lp_cuda_packed_size(const lp_node *node)
{
    return (size_t)(parts_of(node->inputs[0]->cols) * parts_of(node->outputs[0]->cols)) * LP_PACK_BLOCK;
}

void lp_cuda_pack_make(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run, float *packed,
                       lp_cuda_chain *chain, chain_pack *packs)
{
    *chain = lp_cuda_chain();
    for (int p = 0; p < stage->count && lp_piece_is_packed(&stage->pieces[p]); p++) {
        const lp_node *node = stage->pieces[p].node;
        chain->count++;
        const lp_node *producer = lp_cuda_packed_maker(node);
        chain_rows weight = rows_of(run, producer ? producer->inputs[0] : node->inputs[1]);
        int in = node->inputs[0]->cols, out = node->outputs[0]->cols, in_parts = parts_of(in),
            out_parts = parts_of(out);
        chain_pack pack = {weight.data,
                           producer ? (const float *)lp_run_data(run->run, producer->inputs[1]) : NULL,
                           packed + stages->packed[stage->pieces[p].number],
                           in / in_parts,
                           out / out_parts,
                           in_parts,
                           out_parts,
                           weight.stride,
                           node->attributes.transpose};
        packs[p] = pack;
    }
}
