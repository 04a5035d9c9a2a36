/* cuda_fused.cu: selects the nodes that fused kernels support, orders the parts of a stage, and builds the steps of its kernel. */
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_packed.h"

namespace
{

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

/* The value with the rows and columns of the node's kernel. */
const lp_value *like(const lp_node *node)
{
    return node->outputs[0] ? node->outputs[0] : node->inputs[0];
}

bool row_input(const lp_node *node, int i)
{
    return node->inputs[i] && node->inputs[i]->type == LP_TYPE_REAL && (rule_of(node)->by_row >> i & 1);
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

/* What the kernel holds before a step; NULL: nothing. */
typedef struct held_values {
    const lp_value *registers; /* a narrow result */
    const lp_value *x;         /* of the latest product, in its buffer */
    const lp_value *wide;      /* wide result of the previous step, in the buffer `write` */
} held_values;

/* What a step takes from there instead of global memory. */
typedef struct held_inputs {
    int main;        /* index of the main input; -1: none */
    int other;       /* of the other one: those of an op that commutes are exchanged if registers hold the second */
    bool follows;    /* main is the result of an earlier step */
    bool again;      /* main is the x of the latest product */
    bool adds_other; /* of a product: registers hold its addend */
    bool adds_old;   /* of a product: registers hold the value that it is added to */
} held_inputs;

typedef struct fused_builder {
    const lp_cuda_stages *stages;
    const lp_stage_part *parts;
    int count;
    const lp_stage_part *order[LP_FUSED_STEPS]; /* part of each step */
    held_inputs held[LP_FUSED_STEPS];
} fused_builder;

bool writes_value(const lp_stage_part *part, const lp_value *value)
{
    bool writes = false;
    for (int i = 0; i < part->node->op->output_count; i++)
        writes = writes || (lp_part_computes(part, i) && part->node->outputs[i] == value);
    return writes;
}

/* Whether the part reads or writes the value by row. */
bool uses_value(const lp_stage_part *part, const lp_value *value)
{
    bool uses = writes_value(part, value);
    for (int i = 0; i < part->node->op->input_count; i++)
        uses = uses || (row_input(part->node, i) && part->node->inputs[i] == value);
    return uses;
}

/* Whether b uses a value that a writes. */
bool uses_result(const lp_stage_part *a, const lp_stage_part *b)
{
    bool uses = false;
    for (int i = 0; i < a->node->op->output_count; i++)
        if (lp_part_computes(a, i))
            uses = uses || uses_value(b, a->node->outputs[i]);
    return uses;
}

held_inputs held_by(const held_values *all, const lp_stage_part *part)
{
    const lp_node *node = part->node;
    const lp_fused_rule *rule = rule_of(node);
    held_inputs held = {rule->main >= 0 ? rule->main : rule->wide, rule->other[0], false, false, false, false};
    const lp_value *other = held.other >= 0 ? node->inputs[held.other] : NULL;
    if (rule->flags & LP_FUSED_COMMUTES && other && other == all->registers) {
        held.main = rule->other[0];
        held.other = rule->main;
    }
    const lp_value *main = held.main >= 0 ? node->inputs[held.main] : NULL;
    held.follows = main && main == (halves_of(main->cols) == 2 ? all->wide : all->registers);
    if (is_product(node)) {
        held.again = !held.follows && main == all->x;
        held.adds_other = other && other == all->registers;
        held.adds_old = node->accumulate & 1 && node->outputs[0] == all->registers;
    }
    return held;
}

/* The next part whose dependencies are done. Prefers one that continues with what is held. Otherwise a wide result if a later part takes
 * the registers, which steps with wide results do not change, and a narrow one if none does. */
const lp_stage_part *next_part(const fused_builder *builder, const held_values *all, const bool *done)
{
    const lp_stage_part *best = NULL, *parts = builder->parts;
    int most = -1;
    bool needed = false;
    for (int p = 0; p < builder->count; p++) {
        held_inputs held = held_by(all, &parts[p]);
        needed = needed || (!done[p] && (held.follows || held.adds_other || held.adds_old));
    }
    for (int p = 0; p < builder->count; p++) {
        bool ready = !done[p];
        for (int k = 0; ready && k < p; k++)
            ready = done[k] || !(uses_result(&parts[k], &parts[p]) || uses_result(&parts[p], &parts[k]));
        held_inputs held = held_by(all, &parts[p]);
        int gain = held.follows                       ? 4
                   : held.adds_other || held.adds_old ? 3
                   : held.again                       ? 2
                                                      : halves_of(like(parts[p].node)->cols) == (needed ? 2 : 1);
        if (ready && gain > most) {
            best = &parts[p];
            most = gain;
        }
    }
    return best;
}

/* Updates what is held after a part. */
void advance(held_values *all, const lp_stage_part *part)
{
    const lp_node *node = part->node;
    const lp_fused_rule *rule = rule_of(node);
    const lp_value *made = node->outputs[0];
    bool wide = lp_part_computes(part, 0) && halves_of(made->cols) == 2;
    if (is_product(node))
        all->x = node->inputs[rule->main];
    if (rule->flags & LP_FUSED_OVERWRITES_X || writes_value(part, all->x))
        all->x = NULL;
    if (writes_value(part, all->registers))
        all->registers = NULL;
    all->wide = wide ? made : NULL;
    if (!wide && !(rule->flags & LP_FUSED_KEEPS_REGISTERS))
        all->registers = made;
}

/* Whether a step reads the value from global memory. */
bool loads(const fused_builder *builder, int s, const lp_value *value)
{
    const lp_stage_part *part = builder->order[s];
    const lp_node *node = part->node;
    const held_inputs *held = &builder->held[s];
    bool found = false;
    for (int i = 0; i < node->op->input_count; i++) {
        bool there = i == held->main ? held->follows || held->again : i == held->other && held->adds_other;
        found = found || (row_input(node, i) && node->inputs[i] == value && !there);
    }
    for (int i = 0; i < node->op->output_count; i++)
        found = found || (lp_part_computes(part, i) && node->outputs[i] == value && node->accumulate >> i & 1 &&
                          !(i == 0 && held->adds_old));
    return found;
}

/* Whether a step must store its result: a later step reads it from global memory, or another kernel reads it. */
bool must_store(const fused_builder *builder, int s, const lp_value *value)
{
    while (++s < builder->count)
        if (loads(builder, s, value))
            return true;
        else if (writes_value(builder->order[s], value))
            return false;
    int uses = 0;
    for (int p = 0; p < builder->count; p++)
        uses += uses_value(&builder->parts[p], value);
    return value->storage != LP_STORAGE_WORK || value->retained || uses != builder->stages->uses[value->id];
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

/* What a step reads of a value is floats if there are any, otherwise the copy. */
void set_rows(fused_step *step, int which, const lp_cuda_run *run, const lp_value *value)
{
    if (!value)
        return;
    bool floats = lp_cuda_stores_floats(run, value);
    lp_cuda_copy copy = which >= LP_STEP_RESULT ? lp_cuda_copy_to(run, value, 1)
                        : floats                ? lp_cuda_copy()
                                                : run->copies->of[value->id].layouts->copy;
    step->rows[which] = {floats ? (float *)lp_run_data(run->run, value) : NULL, copy.data, value->cols, copy.stride};
    step->head.has |= floats || copy.data ? 1u << which : 0;
}

void fill_step(const fused_builder *builder, int s, const lp_cuda_run *run, const float *packed, fused_step *step)
{
    const lp_stage_part *part = builder->order[s];
    const lp_node *node = part->node;
    const lp_fused_rule *rule = rule_of(node);
    const held_inputs *held = &builder->held[s];
    auto data_of = [&](int i) { return i >= 0 && node->inputs[i] ? lp_run_data(run->run, node->inputs[i]) : NULL; };
    *step = fused_step();
    step->head.op = (int)node->op->id;
    step->head.halves = halves_of(like(node)->cols);
    step->head.in_halves = is_product(node) ? halves_of(node->inputs[0]->cols) : 0;
    step->scale = (float)node->attributes.scale;
    step->shift = (float)(rule->shifts >= 0 ? node->attributes.epsilon : node->attributes.shift);
    step->factors = data_of(rule->factors);
    step->shifts = (const float *)data_of(rule->shifts);
    step->ids = (const int32_t *)data_of(rule->ids);
    step->time = (const double *)data_of(rule->time);
    step->weight = is_product(node) ? packed + builder->stages->packed[part->number] : NULL;
    if (rule->flags & LP_FUSED_DROPS) {
        step->threshold = lp_dropout_threshold(node->attributes.rate);
        step->purpose = lp_dropout_purpose(node->attributes.stream);
        step->scale = (float)(65536.0 / (65536.0 - step->threshold));
    }
    int main = rule->ids >= 0 ? 0 : held->main;
    if (main >= 0 && !held->follows && !held->again)
        set_rows(step, LP_STEP_MAIN, run, node->inputs[main]);
    if (held->other >= 0 && !held->adds_other)
        set_rows(step, LP_STEP_OTHER, run, node->inputs[held->other]);
    if (rule->other[1] >= 0)
        set_rows(step, LP_STEP_MORE, run, node->inputs[rule->other[1]]);
    for (int i = 0; i < 2 && i < node->op->output_count; i++)
        if (lp_part_computes(part, i)) {
            if (node->accumulate >> i & 1 && !(i == 0 && held->adds_old))
                set_rows(step, LP_STEP_OLD + i, run, node->outputs[i]);
            if (must_store(builder, s, node->outputs[i]))
                set_rows(step, LP_STEP_RESULT + i, run, node->outputs[i]);
        }
    /* Rows that do not pass through a buffer: of a table, and what is added to a reflection. */
    step->head.has &=
        ~((step->ids ? 1u << LP_STEP_MAIN : 0) | (rule->flags & LP_FUSED_KEEPS_REGISTERS ? 1u << LP_STEP_OLD : 0));
    step->head.has |= (held->follows ? LP_STEP_FOLLOWS : 0) | (step->factors ? LP_STEP_FACTORS : 0) |
                      (held->adds_other || held->adds_old ? LP_STEP_ADDS_REGISTERS : 0);
}

} // namespace

int lp_cuda_fused_cols(const lp_node *node)
{
    int cols = like(node)->cols, halves = halves_of(cols);
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
    if (like(node)->rows_of == LP_ROWS_FIXED)
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
    fused_builder builder = {stages, stage->parts, stage->count, {}, {}};
    held_values held = {};
    bool done[LP_FUSED_STEPS] = {};
    for (int s = 0; s < stage->count; s++) {
        const lp_stage_part *part = builder.order[s] = next_part(&builder, &held, done);
        builder.held[s] = held_by(&held, part);
        advance(&held, part);
        done[part - stage->parts] = true;
    }
    const lp_value *rows = like(stage->parts[0].node);
    *fused = lp_cuda_fused();
    for (int s = stage->count - 1; s >= 0; s--) {
        fill_step(&builder, s, run, packed, &steps[s]);
        steps[s].next_weight = fused->first_weight;
        fused->first_weight = steps[s].weight ? steps[s].weight : fused->first_weight;
    }
    fused->count = stage->count;
    fused->cols = lp_cuda_fused_cols(stage->parts[0].node);
    fused->rows = lp_cuda_rows_of(rows);
    fused->blocks = lp_blocks(lp_cuda_largest(run, rows), LP_FUSED_ROWS);
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
        const lp_node *node = stage->parts[p].node, *producer = lp_cuda_packed_producer(node);
        const lp_value *weight = producer ? producer->inputs[0] : node->inputs[1];
        int in = node->inputs[0]->cols, out = node->outputs[0]->cols;
        packs[fused->count++] = {(const float *)lp_run_data(run->run, weight),
                                 producer ? (const float *)lp_run_data(run->run, producer->inputs[1]) : NULL,
                                 packed + stages->packed[stage->parts[p].number],
                                 in / halves_of(in),
                                 out / halves_of(out),
                                 halves_of(in),
                                 halves_of(out),
                                 weight->cols,
                                 node->attributes.transpose};
    }
}
