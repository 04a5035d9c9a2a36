/* cuda_steps.cu: orders the parts of a stage that work row by row, and builds the steps of its kernel. */
#include "backend/cuda/cuda_fused.h"

#include <initializer_list>

namespace
{

/* What the kernel holds before a step; NULL: nothing. */
typedef struct held_values {
    const lp_value *result; /* the latest; in a fused kernel a narrow one */
    const lp_value *wide;   /* of a fused kernel: the latest wide one */
    const lp_value *x;      /* the left operand of the latest product, in shared memory */
} held_values;

/* The inputs of a step by row, and which of them it takes from there instead of global memory. */
typedef struct step_inputs {
    const lp_value *main, *other,
        *more;       /* main and other are exchanged if the op commutes and the second is the latest result */
    bool follows;    /* main is in registers */
    bool again;      /* main is the left operand of the latest product */
    bool adds_other; /* of a product: the latest result is its addend */
    bool adds_old;   /* of a product: the latest result is the value that it is added to */
} step_inputs;

typedef struct step_builder {
    const lp_cuda_stages *stages;
    const lp_stage_part *parts;
    int count;
    bool fused;
    const lp_stage_part *order[LP_STAGE_PARTS]; /* part of each step */
    step_inputs inputs[LP_STAGE_PARTS];
} step_builder;

const lp_step_rule *rule_of(const lp_stage_part *part)
{
    return &lp_cuda_rule_of(part->node)->step;
}

/* Halves of a value in a fused kernel; a chain of rows does not divide them. */
int halves_of(const step_builder *builder, const lp_value *value)
{
    return builder->fused ? lp_fused_halves(value->cols) : 1;
}

/* ---- order of the parts -------------------------------------------------------------------------------------- */

bool uses(const lp_stage_part *part, const lp_value *value)
{
    return lp_part_reads(part, value) || lp_part_writes(part, value);
}

/* Whether b uses a value that a writes. */
bool uses_result(const lp_stage_part *a, const lp_stage_part *b)
{
    bool found = false;
    for (int i = 0; i < a->node->op->output_count; i++)
        found = found || (lp_part_computes(a, i) && uses(b, a->node->outputs[i]));
    return found;
}

step_inputs inputs_of(const held_values *held, const lp_stage_part *part)
{
    const lp_node *node = part->node;
    step_inputs in = {};
    in.main = lp_step_input(node, LP_ROLE_MAIN);
    in.other = lp_step_input(node, LP_ROLE_OTHER);
    in.more = lp_step_input(node, LP_ROLE_MORE);
    if (rule_of(part)->commutes && in.other && in.other == held->result) {
        in.other = in.main;
        in.main = held->result;
    }
    in.follows = in.main && (in.main == held->result || in.main == held->wide);
    bool product = lp_part_is_product(part);
    in.again = product && !in.follows && in.main == held->x;
    in.adds_other = product && in.other && in.other == held->result;
    in.adds_old = product && node->accumulate & 1 && node->outputs[0] == held->result;
    return in;
}

/* The next part whose dependencies are done. Prefers one that continues with what is held. Otherwise a wide result if a later part takes
 * the latest one, which steps with wide results do not change, and a narrow one if none does. */
const lp_stage_part *next_part(const step_builder *builder, const held_values *held, const bool *done)
{
    const lp_stage_part *best = NULL, *parts = builder->parts;
    int most = -1;
    bool needed = false;
    for (int p = 0; p < builder->count; p++) {
        step_inputs in = inputs_of(held, &parts[p]);
        needed = needed || (!done[p] && (in.follows || in.adds_other || in.adds_old));
    }
    for (int p = 0; p < builder->count; p++) {
        bool ready = !done[p];
        for (int k = 0; ready && k < p; k++)
            ready = done[k] || !(uses_result(&parts[k], &parts[p]) || uses_result(&parts[p], &parts[k]));
        step_inputs in = inputs_of(held, &parts[p]);
        int gain = in.follows                     ? 4
                   : in.adds_other || in.adds_old ? 3
                   : in.again                     ? 2
                              : halves_of(builder, lp_step_shape(parts[p].node)) == (needed ? 2 : 1);
        if (ready && gain > most) {
            best = &parts[p];
            most = gain;
        }
    }
    return best;
}

/* Updates what is held after a part. */
void advance(const step_builder *builder, held_values *held, const lp_stage_part *part)
{
    const lp_value *made = part->node->outputs[0], *main = lp_step_input(part->node, LP_ROLE_MAIN);
    bool pairs = rule_of(part)->pairs, wide = lp_part_computes(part, 0) && halves_of(builder, made) == 2;
    for (const lp_value **old : {&held->result, &held->wide, &held->x})
        if (lp_part_writes(part, *old))
            *old = NULL;
    if (lp_part_is_product(part))
        held->x = main;
    if (builder->fused && pairs && main) /* a basis is stored only */
        held->wide = lp_part_computes(part, 0) ? made : NULL;
    else if (!pairs)
        (wide ? held->wide : held->result) = made;
}

/* Whether a step reads the value from global memory. */
bool loads(const step_builder *builder, int s, const lp_value *value)
{
    const lp_stage_part *part = builder->order[s];
    const step_inputs *in = &builder->inputs[s];
    bool found = (in->main == value && !in->follows && !in->again) || (in->other == value && !in->adds_other) ||
                 in->more == value;
    for (int i = 0; i < part->node->op->output_count; i++)
        found = found || (lp_part_computes(part, i) && part->node->outputs[i] == value &&
                          part->node->accumulate >> i & 1 && !(i == 0 && in->adds_old));
    return found;
}

/* Whether a step must store its result: a later step reads it from global memory, or another kernel reads it. */
bool must_store(const step_builder *builder, int s, const lp_value *value)
{
    while (++s < builder->count)
        if (loads(builder, s, value))
            return true;
        else if (lp_part_writes(builder->order[s], value))
            return false;
    if (!builder->stages || value->storage != LP_STORAGE_WORK || value->retained)
        return true;
    const lp_stage_part *part = builder->stages->all->parts, *own = builder->parts;
    while (part < builder->stages->parts_end && (!uses(part, value) || (part >= own && part < own + builder->count)))
        part++;
    return part < builder->stages->parts_end;
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

/* What a step reads of a value is floats if there are any, otherwise the copy. heads: of a result. */
void set_rows(lp_step *step, int which, const lp_cuda_run *run, const lp_value *value, int heads = 1)
{
    if (!value)
        return;
    bool floats = lp_cuda_stores_floats(run, value);
    lp_cuda_copy copy = which >= LP_STEP_RESULT ? lp_cuda_copy_to(run, value, heads)
                        : floats                ? lp_cuda_copy()
                                                : lp_cuda_copy_only(run, value);
    step->rows[which] = {floats ? (float *)lp_run_data(run->run, value) : NULL, copy.data, value->cols, copy.stride};
    step->gap[which] = (signed char)copy.gap;
    step->has |= floats || copy.data ? 1u << which : 0;
}

void fill_step(const step_builder *builder, int s, const lp_cuda_run *run, lp_step *step)
{
    const lp_stage_part *part = builder->order[s];
    const lp_node *node = part->node;
    const step_inputs *in = &builder->inputs[s];
    const lp_value *table = lp_step_input(node, LP_ROLE_TABLE), *shape = lp_step_shape(node);
    auto data_of = [&](lp_step_role role) {
        const lp_value *value = lp_step_input(node, role);
        return value ? lp_run_data(run->run, value) : NULL;
    };
    *step = lp_step();
    step->op = (int)node->op->id;
    step->halves = halves_of(builder, shape);
    step->in_halves = lp_part_is_product(part) ? halves_of(builder, in->main) : 0;
    step->factors = data_of(LP_ROLE_FACTORS);
    step->shifts = (const float *)data_of(LP_ROLE_SHIFTS);
    step->ids = (const int32_t *)data_of(LP_ROLE_IDS);
    step->time = (const double *)data_of(LP_ROLE_TIME);
    step->scale = (float)node->attributes.scale;
    step->shift = (float)(step->shifts ? node->attributes.epsilon : node->attributes.shift);
    step->frequencies = lp_step_frequencies(node);
    if (lp_part_is_product(part))
        step->weight = builder->stages->weights + part->packed;
    if (node->op->id == LP_OP_DROPOUT) {
        step->threshold = lp_dropout_threshold(node->attributes.rate);
        step->purpose = lp_dropout_purpose(node->attributes.stream);
        step->scale = (float)(65536.0 / (65536.0 - step->threshold));
    }
    bool pairs = rule_of(part)->pairs;
    bool early = in->other && !pairs;
    for (int k = 0; k < s; k++)
        early = early && !lp_part_writes(builder->order[k], in->other);
    if (!in->follows && !in->again)
        set_rows(step, LP_STEP_MAIN, run, table ? table : in->main);
    if (!in->adds_other)
        set_rows(step, LP_STEP_OTHER, run, in->other);
    set_rows(step, LP_STEP_MORE, run, in->more);
    for (int i = 0; i < 2 && i < node->op->output_count; i++)
        if (lp_part_computes(part, i)) {
            bool adds = node->accumulate >> i & 1 && !(i == 0 && in->adds_old);
            if (adds)
                set_rows(step, LP_STEP_OLD + i, run, node->outputs[i]);
            if (must_store(builder, s, node->outputs[i]))
                set_rows(step, LP_STEP_RESULT + i, run, node->outputs[i],
                         pairs ? shape->cols / (2 * step->frequencies) : 1);
        }
    step->has &= ~(table ? 1u << LP_STEP_MAIN : 0);
    step->has |= (in->follows ? LP_STEP_FOLLOWS : 0) | (step->factors ? LP_STEP_FACTORS : 0) |
                 (in->adds_other || in->adds_old ? LP_STEP_ADDS_REGISTERS : 0) | (early ? LP_STEP_EARLY : 0);
}

} // namespace

void lp_cuda_steps_build(const lp_cuda_stages *stages, const lp_stage_part *parts, int count, bool fused,
                         const lp_cuda_run *run, lp_step *steps)
{
    step_builder builder = {stages, parts, count, fused, {}, {}};
    held_values held = {};
    bool done[LP_STAGE_PARTS] = {};
    for (int s = 0; s < count; s++) {
        const lp_stage_part *part = builder.order[s] = next_part(&builder, &held, done);
        builder.inputs[s] = inputs_of(&held, part);
        advance(&builder, &held, part);
        done[part - parts] = true;
    }
    const float *next = NULL;
    for (int s = count - 1; s >= 0; s--) {
        fill_step(&builder, s, run, &steps[s]);
        steps[s].next_weight = next;
        next = steps[s].weight ? steps[s].weight : next;
    }
}
