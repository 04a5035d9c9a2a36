/* cuda_fused.cu: selects the nodes that fused kernels support, orders the parts of a stage, and builds the steps of its kernel. */
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_rules.h"

namespace
{

enum { VALUES = LP_FUSED_STEPS * (LP_NODE_INPUTS + LP_NODE_OUTPUTS) };

/* ---- supported nodes ------------------------------------------------------------------------------------------ */

/* Number of halves of a value; 0: it is too wide, or its halves are not aligned to two floats. */
int halves_of(int cols)
{
    if (cols <= LP_FUSED_COLS)
        return cols % 2 ? 0 : 1;
    return cols <= 2 * LP_FUSED_COLS && cols % 4 == 0 ? 2 : 0;
}

const lp_fused_rule *rule_of(const lp_node *node)
{
    return &lp_cuda_rule_of(node)->fused;
}

bool is_product(const lp_node *node)
{
    return rule_of(node)->weight >= 0;
}

bool row_input(const lp_node *node, int i)
{
    return i >= 0 && i < node->op->input_count && node->inputs[i] && node->inputs[i]->type == LP_TYPE_REAL &&
           (rule_of(node)->by_row >> i & 1);
}

/* Whether the node has a single head: fused kernels do not support several. A product has the heads of its attributes; elsewhere the
 * widths tell, and gradients that go to one matrix would be added in an order that steps do not have. */
bool one_head(const lp_node *node)
{
    const lp_fused_rule *rule = rule_of(node);
    if (is_product(node))
        return node->attributes.heads == 1;
    return rule->wide < 0 || (node->inputs[0]->cols == node->inputs[1]->cols && node->outputs[0] != node->outputs[1]);
}

/* ---- order of the parts -------------------------------------------------------------------------------------- */

typedef struct build_state {
    const lp_stage_part *parts;
    int count;
    const lp_cuda_stages *stages;
    float *packed;
    const lp_value *registers, *x;  /* held in registers; and the x of the latest product, in its buffer. NULL: none */
    const lp_value *wide;           /* wide result of the previous part, in the `write` buffer; NULL: none */
    const lp_value *stored[VALUES]; /* values that some part reads from global memory */
    int stored_count;
} build_state;

bool uses_value(const lp_stage_part *part, const lp_value *value, bool *writes)
{
    const lp_node *node = part->node;
    bool found = false;
    *writes = false;
    for (int i = 0; i < node->op->input_count; i++)
        found = found || (row_input(node, i) && node->inputs[i] == value);
    for (int i = 0; i < node->op->output_count; i++)
        *writes = *writes || (lp_part_computes(part, i) && node->outputs[i] == value);
    return found || *writes;
}

/* Whether one of the parts writes a value that the other uses. */
bool depends(const lp_stage_part *a, const lp_stage_part *b)
{
    const lp_node *node = a->node;
    for (int k = 0; k < node->op->input_count + node->op->output_count; k++) {
        int out = k - node->op->input_count;
        bool wanted = out < 0 ? row_input(node, k) : lp_part_computes(a, out), mine, others;
        const lp_value *value = out < 0 ? node->inputs[k] : node->outputs[out];
        if (wanted && uses_value(a, value, &mine) && uses_value(b, value, &others) && (mine || others))
            return true;
    }
    return false;
}

/* The main input, if it is narrow and so may be in registers. */
const lp_value *main_input(const build_state *state, const lp_stage_part *part)
{
    const lp_node *node = part->node;
    const lp_fused_rule *rule = rule_of(node);
    int main = rule->main, other = rule->other[0];
    if (rule->flags & LP_FUSED_COMMUTES && node->inputs[other] && node->inputs[other] == state->registers)
        main = other;
    const lp_value *value = main >= 0 ? node->inputs[main] : NULL;
    return value && halves_of(value->cols) == 1 ? value : NULL;
}

/* The main input, if it is wide and so may be in the buffer of the previous result. */
const lp_value *wide_input(const lp_stage_part *part)
{
    const lp_node *node = part->node;
    int wide = rule_of(node)->wide;
    const lp_value *value = wide >= 0 ? node->inputs[wide] : NULL;
    return value && halves_of(value->cols) == 2 ? value : NULL;
}

/* Whether the registers hold the addend of a product. */
bool adds_to_registers(const build_state *state, const lp_stage_part *part)
{
    const lp_node *node = part->node;
    int addend = rule_of(node)->other[0];
    return is_product(node) && node->inputs[addend] && node->inputs[addend] == state->registers;
}

/* The next part whose dependencies are done. Prefers one that continues with the registers or the wide result, then a product with the same x. */
int next_part(const build_state *state, const bool *done)
{
    int first = -1, same = -1;
    for (int p = 0; p < state->count; p++) {
        bool ready = !done[p];
        for (int k = 0; ready && k < p; k++)
            ready = done[k] || !depends(&state->parts[k], &state->parts[p]);
        if (!ready)
            continue;
        const lp_value *main = main_input(state, &state->parts[p]);
        if ((main && main == state->registers) || (state->wide && wide_input(&state->parts[p]) == state->wide))
            return p;
        if (same < 0 && main && main == state->x && is_product(state->parts[p].node))
            same = p;
        first = first < 0 ? p : first;
    }
    return same >= 0 ? same : first;
}

void mark_stored(build_state *state, const lp_value *value)
{
    for (int i = 0; i < state->stored_count; i++)
        if (state->stored[i] == value)
            return;
    if (value)
        state->stored[state->stored_count++] = value;
}

/* Whether the value must be in global memory: another kernel reads it, or a part that does not follow directly. */
bool must_store(const build_state *state, const lp_value *value)
{
    if (value->storage != LP_STORAGE_WORK || value->retained)
        return true;
    for (int i = 0; i < state->stored_count; i++)
        if (state->stored[i] == value)
            return true;
    int mine = 0;
    for (int p = 0; p < state->count; p++) {
        bool writes;
        mine += uses_value(&state->parts[p], value, &writes);
    }
    return mine != state->stages->uses[value->id];
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

fused_rows rows_of(const lp_cuda_run *run, const lp_value *value)
{
    fused_rows rows = {NULL, 0};
    if (value) {
        rows.data = (float *)lp_run_data(run->run, value);
        rows.stride = value->cols;
    }
    return rows;
}

/* The fields that single ops use. */
void fill_op(const lp_node *node, const lp_fused_rule *rule, const lp_cuda_run *run, fused_step *step)
{
    step->head.in_halves = is_product(node) ? halves_of(node->inputs[0]->cols) : 0;
    if (rule->shifts >= 0) {
        step->shift = (float)node->attributes.epsilon;
        step->shifts = rows_of(run, node->inputs[rule->shifts]).data;
    }
    if (rule->flags & LP_FUSED_DROPS) {
        step->threshold = lp_dropout_threshold(node->attributes.rate);
        step->purpose = lp_dropout_purpose(node->attributes.stream);
        step->scale = (float)(65536.0 / (65536.0 - step->threshold));
    }
    if (rule->ids >= 0) {
        step->main = rows_of(run, node->inputs[0]);
        step->ids = (const int32_t *)lp_run_data(run->run, node->inputs[rule->ids]);
    }
    if (rule->time >= 0)
        step->time = (const double *)lp_run_data(run->run, node->inputs[rule->time]);
    if (rule->main < 0 && rule->wide >= 0)
        step->main = rows_of(run, node->inputs[rule->wide]);
}

unsigned flags_of(const fused_step *step, bool follows, bool adds_registers)
{
    const struct {
        bool set;
        unsigned flag;
    } all[] = {
        {follows, LP_STEP_FOLLOWS},
        {adds_registers, LP_STEP_ADDS_REGISTERS},
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
        has |= all[i].set ? all[i].flag : 0;
    return has;
}

/* Marks the values that the part reads from global memory; with a run, also fills the step. */
void write_step(build_state *state, const lp_stage_part *part, const lp_cuda_run *run, fused_step *step)
{
    const lp_node *node = part->node;
    const lp_fused_rule *rule = rule_of(node);
    const lp_value *main = main_input(state, part);
    *step = fused_step();
    step->head.op = (int)node->op->id;
    const lp_value *wide = wide_input(part);
    if (wide && wide == state->wide)
        main = wide;
    bool follows = main && (main == state->registers || main == state->wide),
         again = is_product(node) && main && main == state->x, adds_registers = adds_to_registers(state, part);
    for (int i = 0; i < node->op->input_count; i++) {
        bool held = (node->inputs[i] == main && (follows || again)) || (i == rule->other[0] && adds_registers);
        bool twice = rule->flags & LP_FUSED_COMMUTES && node->inputs[0] == node->inputs[1];
        if (row_input(node, i) && (!held || twice))
            mark_stored(state, node->inputs[i]);
    }
    for (int i = 0; i < node->op->output_count; i++)
        if (lp_part_computes(part, i) && (node->accumulate >> i & 1))
            mark_stored(state, node->outputs[i]);
    if (!run)
        return;
    step->head.halves = halves_of((node->outputs[0] ? node->outputs[0] : node->inputs[0])->cols);
    step->scale = (float)node->attributes.scale;
    step->shift = (float)node->attributes.shift;
    int first = rule->main, second = rule->other[0];
    if (rule->flags & LP_FUSED_COMMUTES && main && main == node->inputs[second]) {
        second = first;
        first = rule->other[0];
    }
    if (first >= 0 && !follows && !again)
        step->main = rows_of(run, node->inputs[first]);
    if (second >= 0 && !adds_registers)
        step->other[0] = rows_of(run, node->inputs[second]);
    if (rule->other[1] >= 0)
        step->other[1] = rows_of(run, node->inputs[rule->other[1]]);
    if (rule->factors >= 0)
        step->factors = rows_of(run, node->inputs[rule->factors]).data;
    for (int i = 0; i < 2 && i < node->op->output_count; i++)
        if (lp_part_computes(part, i)) {
            if (node->accumulate >> i & 1)
                step->old[i] = rows_of(run, node->outputs[i]);
            if (must_store(state, node->outputs[i]))
                step->result[i] = rows_of(run, node->outputs[i]);
        }
    if (is_product(node))
        step->weight = state->packed + state->stages->packed[part->number];
    fill_op(node, rule, run, step);
    if (follows)
        step->main = fused_rows();
    step->head.has = flags_of(step, follows, adds_registers);
}

/* Updates the contents of registers and buffers after a part. */
void advance(build_state *state, const lp_stage_part *part)
{
    const lp_node *node = part->node;
    const lp_fused_rule *rule = rule_of(node);
    const lp_value *main = main_input(state, part);
    if (is_product(node))
        state->x = main;
    if (rule->flags & LP_FUSED_OVERWRITES_X && node->accumulate & 2)
        state->x = NULL;
    for (int i = 0; i < node->op->output_count; i++) {
        state->registers = lp_part_computes(part, i) && node->outputs[i] == state->registers ? NULL : state->registers;
        state->x = lp_part_computes(part, i) && node->outputs[i] == state->x ? NULL : state->x;
    }
    state->wide = lp_part_computes(part, 0) && halves_of(node->outputs[0]->cols) == 2 ? node->outputs[0] : NULL;
    const lp_value *made = node->outputs[0];
    if (is_product(node) && halves_of(made->cols) == 2)
        return; /* a wide product does not change the registers */
    if (!(rule->flags & LP_FUSED_KEEPS_REGISTERS))
        state->registers = halves_of(made->cols) == 1 ? made : NULL;
}

/* Orders the parts. The first pass (run NULL) finds the values that must be stored, the second fills the steps. */
void write_steps(build_state *state, const lp_cuda_run *run, fused_step *steps)
{
    bool done[LP_FUSED_STEPS] = {};
    state->registers = state->x = state->wide = NULL;
    for (int i = 0; i < state->count; i++) {
        int p = next_part(state, done);
        write_step(state, &state->parts[p], run, &steps[i]);
        advance(state, &state->parts[p]);
        done[p] = true;
    }
}

} // namespace

int lp_cuda_fused_cols(const lp_node *node)
{
    int cols = (node->outputs[0] ? node->outputs[0] : node->inputs[0])->cols, halves = halves_of(cols);
    return halves ? cols / halves : 0;
}

bool lp_cuda_fused_suits(const lp_graph *graph)
{
    bool suits = true;
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        if (is_product(node) && node->outputs[0]->rows_of != LP_ROWS_FIXED)
            suits = suits && (node->inputs[0]->cols <= LP_FUSED_COLS || node->outputs[0]->cols <= LP_FUSED_COLS);
    }
    return suits;
}

unsigned lp_cuda_fused_supports(const lp_node *node)
{
    const lp_fused_rule *rule = rule_of(node);
    if (!rule->outputs || !one_head(node))
        return 0;
    /* Few rows occupy few warps: concurrent kernels of single nodes are then faster. */
    if ((node->outputs[0] ? node->outputs[0] : node->inputs[0])->rows_of == LP_ROWS_FIXED)
        return 0;
    int half = lp_cuda_fused_cols(node);
    for (int k = 0; k < node->op->input_count + node->op->output_count; k++) {
        int i = k - node->op->input_count;
        if (rule->moments == (i < 0 ? k : (int)LP_NODE_INPUTS + i) ||
            !(i < 0 ? row_input(node, k) : node->outputs[i] && (rule->outputs >> i & 1)))
            continue;
        const lp_value *value = i < 0 ? node->inputs[k] : node->outputs[i];
        int cols = value->cols, halves = halves_of(cols);
        if (value->storage == LP_STORAGE_TABLE_ROWS)
            return 0; /* not aligned to the 16 bytes of a vector copy */
        if (halves == 0 || cols != halves * half ||
            (i >= 0 && !(rule->flags & (halves == 1 ? LP_FUSED_NARROW : LP_FUSED_WIDE))))
            return 0;
    }
    if (is_product(node) && node->inputs[rule->weight]->rows_of != LP_ROWS_FIXED)
        return 0;
    return rule->outputs;
}

void lp_cuda_fused_build(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run,
                         float *packed, lp_cuda_fused *fused, fused_step *steps)
{
    build_state state = {};
    state.parts = stage->parts;
    state.count = stage->count;
    state.stages = stages;
    state.packed = packed;
    write_steps(&state, NULL, steps);
    write_steps(&state, run, steps);
    const lp_node *first = stage->parts[0].node;
    const lp_value *like = first->outputs[0] ? first->outputs[0] : first->inputs[0];
    *fused = lp_cuda_fused();
    fused->count = stage->count;
    for (int i = stage->count - 1; i >= 0; i--)
        if (steps[i].weight) {
            steps[i].next_weight = fused->first_weight;
            fused->first_weight = steps[i].weight;
        }
    fused->cols = lp_cuda_fused_cols(first);
    fused->rows = lp_cuda_rows_of(like);
    fused->blocks = lp_blocks(lp_cuda_largest(run, like), LP_FUSED_ROWS);
}

size_t lp_cuda_packed_size(const lp_node *node)
{
    return (size_t)(halves_of(node->inputs[0]->cols) * halves_of(node->outputs[0]->cols)) * LP_PACK_BLOCK;
}

void lp_cuda_pack_build(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run, float *packed,
                        lp_cuda_fused *fused, packed_weight *packs)
{
    *fused = lp_cuda_fused();
    for (int p = 0; p < stage->count && lp_part_is_packed(&stage->parts[p]); p++) {
        const lp_node *node = stage->parts[p].node;
        fused->count++;
        const lp_node *producer = lp_cuda_packed_producer(node);
        fused_rows weight = rows_of(run, producer ? producer->inputs[0] : node->inputs[1]);
        int in = node->inputs[0]->cols, out = node->outputs[0]->cols, in_halves = halves_of(in),
            out_halves = halves_of(out);
        packed_weight pack = {weight.data,
                              producer ? (const float *)lp_run_data(run->run, producer->inputs[1]) : NULL,
                              packed + stages->packed[stage->parts[p].number],
                              in / in_halves,
                              out / out_halves,
                              in_halves,
                              out_halves,
                              weight.stride,
                              node->attributes.transpose};
        packs[p] = pack;
    }
}
