/* cuda_row_chain.cu: the steps of a chain of nodes by row, and the launch of the kernel that executes them. */
#include "backend/cuda/cuda_row_chain_kernel.h"

#include "backend/cuda/cuda_reduction.h"

namespace
{

/* ---- steps of a stage ---------------------------------------------------------------------------------------- */

const lp_fused_rule *rule_of(const lp_node *node)
{
    return &lp_cuda_rule_of(node)->fused;
}

/* Steps of cosines and sines read and write pairs of columns, which are not in the registers. */
bool is_pair_step(const lp_fused_rule *rule)
{
    return rule->time >= 0 || (rule->main < 0 && rule->wide >= 0);
}

int frequencies_of(const lp_node *node, const lp_fused_rule *rule)
{
    return !is_pair_step(rule) ? 0
           : rule->time >= 0   ? node->inputs[rule->factors]->cols
                               : node->inputs[rule->other[0]]->cols / 2;
}

const lp_value *shape_of(const lp_node *node)
{
    return node->outputs[0] ? node->outputs[0] : node->inputs[0];
}

typedef struct chain_state {
    const lp_stage_part *parts;
    int count;
    const int *uses;                                    /* by value; NULL: everything is stored */
    const lp_value *held;                               /* in the registers; NULL: none */
    bool in_memory[LP_ROW_CHAIN_STEPS][LP_NODE_INPUTS]; /* by part: reads the input from memory */
    bool done[LP_ROW_CHAIN_STEPS];
} chain_state;

bool writes(const lp_stage_part *part, const lp_value *value)
{
    bool found = false;
    for (int i = 0; i < part->node->op->output_count; i++)
        found = found || (part->node->outputs[i] == value && lp_part_computes(part, i));
    return found;
}

bool reads(const lp_stage_part *part, const lp_value *value)
{
    bool found = false;
    for (int i = 0; i < part->node->op->input_count; i++)
        found = found || part->node->inputs[i] == value;
    return found;
}

bool depends(const lp_stage_part *later, const lp_stage_part *earlier)
{
    bool found = false;
    for (int i = 0; i < earlier->node->op->output_count; i++)
        if (lp_part_computes(earlier, i))
            found = found || reads(later, earlier->node->outputs[i]) || writes(later, earlier->node->outputs[i]);
    for (int i = 0; i < later->node->op->output_count; i++)
        if (lp_part_computes(later, i))
            found = found || reads(earlier, later->node->outputs[i]);
    return found;
}

/* The main input: the one in the registers, if the inputs may be exchanged. */
int main_of(const chain_state *state, const lp_node *node)
{
    const lp_fused_rule *rule = rule_of(node);
    if (rule->flags & LP_FUSED_COMMUTES && state->held && node->inputs[rule->other[0]] == state->held)
        return rule->other[0];
    return rule->main;
}

/* The next part whose dependencies are done: one that continues with the registers, if there is any. */
int next_part(const chain_state *state)
{
    int first = -1;
    for (int p = 0; p < state->count; p++) {
        bool ready = !state->done[p];
        for (int k = 0; ready && k < p; k++)
            ready = state->done[k] || !depends(&state->parts[p], &state->parts[k]);
        if (!ready)
            continue;
        const lp_node *node = state->parts[p].node;
        int main = main_of(state, node);
        if (state->held && main >= 0 && node->inputs[main] == state->held)
            return p;
        first = first < 0 ? p : first;
    }
    return first;
}

/* Orders the parts, and finds which inputs they read from memory. */
void order_parts(chain_state *state, int *order)
{
    for (int i = 0; i < state->count; i++) {
        int p = order[i] = next_part(state), main = main_of(state, state->parts[p].node);
        const lp_node *node = state->parts[p].node;
        for (int k = 0; k < node->op->input_count; k++)
            state->in_memory[p][k] = k != main || node->inputs[k] != state->held;
        state->done[p] = true;
        state->held = is_pair_step(rule_of(node)) ? NULL : node->outputs[0];
    }
}

/* Whether a result is read by another kernel, or from memory. */
bool must_store(const chain_state *state, const lp_stage_part *part, const lp_value *value, const lp_cuda_run *run)
{
    if (!lp_cuda_stores_floats(run, value))
        return false;
    if (!state->uses || value->storage != LP_STORAGE_WORK || value->retained || is_pair_step(rule_of(part->node)))
        return true;
    int inside = 0;
    for (int p = 0; p < state->count; p++) {
        const lp_node *node = state->parts[p].node;
        inside += reads(&state->parts[p], value) || writes(&state->parts[p], value);
        for (int k = 0; k < node->op->input_count; k++)
            if (node->inputs[k] == value && state->in_memory[p][k])
                return true;
        if (node->accumulate && writes(&state->parts[p], value))
            return true;
    }
    return inside != state->uses[value->id];
}

bool written_before(const chain_state *state, const int *order, int at, const lp_value *value)
{
    bool found = false;
    for (int i = 0; i < at; i++)
        found = found || writes(&state->parts[order[i]], value);
    return found;
}

const void *data_of(const lp_cuda_run *run, const lp_node *node, int i)
{
    return i >= 0 && node->inputs[i] ? lp_run_data(run->run, node->inputs[i]) : NULL;
}

row_step step_of(const chain_state *state, const int *order, int at, const lp_cuda_run *run)
{
    const lp_stage_part *part = &state->parts[order[at]];
    const lp_node *node = part->node;
    const lp_fused_rule *rule = rule_of(node);
    int main = rule->ids >= 0 ? 0 : rule->main < 0 ? rule->wide : rule->main, other = rule->other[0];
    if (rule->flags & LP_FUSED_COMMUTES && !state->in_memory[order[at]][other]) {
        main = other;
        other = rule->main;
    }
    row_step step = {};
    step.frequencies = frequencies_of(node, rule);
    int heads = step.frequencies ? shape_of(node)->cols / (2 * step.frequencies) : 1;
    step.op = (int)node->op->id;
    if (main >= 0 && state->in_memory[order[at]][main])
        step.flags |= LP_ROW_MAIN;
    if (node->accumulate & 1)
        step.flags |= LP_ROW_ADDS;
    if (node->accumulate & 2)
        step.flags |= LP_ROW_ADDS_SECOND;
    step.main = (const float *)data_of(run, node, main);
    step.other[0] = (const float *)data_of(run, node, other);
    step.other[1] = (const float *)data_of(run, node, rule->other[1]);
    int inputs[] = {main, other, rule->other[1]};
    for (int i = 0; i < 3; i++)
        if (inputs[i] >= 0 && node->inputs[inputs[i]])
            step.from[i] = lp_cuda_copy_from(run, node, inputs[i]);
    if (step.other[0] && !is_pair_step(rule) && !written_before(state, order, at, node->inputs[other]))
        step.flags |= LP_ROW_EARLY;
    for (int i = 0; i < 2; i++)
        if (node->outputs[i] && lp_part_computes(part, i) && must_store(state, part, node->outputs[i], run))
            step.result[i] = (float *)lp_run_data(run->run, node->outputs[i]);
    if (node->outputs[0] && lp_part_computes(part, 0))
        step.copy = lp_cuda_copy_to(run, node->outputs[0], heads);
    step.factors = data_of(run, node, rule->factors);
    step.shifts = (const float *)data_of(run, node, rule->shifts);
    step.time = (const double *)data_of(run, node, rule->time);
    step.ids = (const int32_t *)data_of(run, node, rule->ids);
    step.scale = (float)node->attributes.scale;
    step.shift = (float)(rule->shifts >= 0 ? node->attributes.epsilon : node->attributes.shift);
    if (rule->flags & LP_FUSED_DROPS) {
        step.threshold = lp_dropout_threshold(node->attributes.rate);
        step.purpose = lp_dropout_purpose(node->attributes.stream);
        step.scale = (float)(65536.0 / (65536.0 - step.threshold));
    }
    return step;
}

/* Floats of a vector: all rows and halves of rows must begin at whole ones. */
int width_of(const row_task &task)
{
    uintptr_t all = 4 * (uintptr_t)task.cols;
    for (int i = 0; i < task.count; i++) {
        const row_step &step = task.steps[i];
        bool norm = step.op == LP_OP_LAYER_NORM_GRADIENT || step.op == LP_OP_LAYER_NORM;
        all |= (uintptr_t)step.main | (uintptr_t)step.other[0] | (uintptr_t)step.result[0] | (uintptr_t)step.shifts;
        all |= (norm ? 0 : (uintptr_t)step.other[1] | (uintptr_t)step.result[1]) | (uintptr_t)step.factors;
        all |= step.time ? 8 : 0; /* four pairs of a basis would need too many registers */
        all |= 4 * (uintptr_t)step.frequencies;
    }
    return lp_vector_width(all, 0);
}

template <int n, int each, row_kind kind>
void launch_kind(const lp_cuda_run *run, const row_task &task, int lanes, int largest)
{
    dim3 block((unsigned)lanes, kind == WIDE ? 1 : (unsigned)(THREADS / lanes));
    LP_LAUNCH_PDL(run, (row_chain_kernel<n, each, kind>), lp_blocks(largest, block.y), block, 0, task);
}

/* Lanes of a warp for a row of this many vectors. */
int lanes_of(int vectors)
{
    int lanes = 8;
    while (lanes < 32 && lanes < vectors)
        lanes *= 2;
    return lanes;
}

template <int n> void launch(const lp_cuda_run *run, row_task task, int largest)
{
    int vectors = (int)lp_blocks(task.cols, n), lanes = lanes_of(vectors);
    if (int frequencies = task.steps[0].frequencies) {
        LP_LAUNCH_PDL(run, pair_chain_kernel<n>, lp_blocks((int64_t)largest * frequencies / n, THREADS), THREADS, 0,
                      task);
        return;
    }
    if (vectors <= lanes)
        return launch_kind<n, 1, NARROW>(run, task, lanes, largest);
    if (vectors <= 2 * lanes)
        return launch_kind<n, 2, NARROW>(run, task, lanes, largest);
    if (vectors <= MOST_EACH * lanes)
        return launch_kind<n, MOST_EACH, NARROW>(run, task, lanes, largest);
    while (lanes < WIDE_THREADS && lanes * MOST_EACH < vectors)
        lanes *= 2;
    task.passes = (int)lp_blocks(vectors, lanes * MOST_EACH);
    launch_kind<n, MOST_EACH, WIDE>(run, task, lanes, largest);
}

void launch_parts(const lp_stage_part *parts, int count, const int *uses, const lp_cuda_run *run)
{
    int order[LP_ROW_CHAIN_STEPS];
    chain_state state = {};
    state.parts = parts;
    state.count = count;
    state.uses = uses;
    order_parts(&state, order);
    const lp_value *like = shape_of(parts[0].node);
    row_task task = {};
    task.shard = run->shard;
    task.rows = lp_cuda_rows_of(like);
    task.cols = like->cols;
    task.count = count;
    for (int i = 0; i < count; i++)
        task.steps[i] = step_of(&state, order, i, run);
    int largest = lp_cuda_largest(run, like);
    lp_with_vector_width(width_of(task), [&](auto by) { launch<decltype(by)::value>(run, task, largest); });
}

} // namespace

int lp_cuda_row_chain_frequencies(const lp_node *node)
{
    return frequencies_of(node, rule_of(node));
}

unsigned lp_cuda_row_chain_supports(const lp_node *node)
{
    const lp_fused_rule *rule = rule_of(node);
    bool fits = rule->weight < 0 && rule->outputs && shape_of(node)->rows_of != LP_ROWS_FIXED &&
                shape_of(node)->cols <= WIDE_THREADS * MOST_EACH;
    return fits ? rule->outputs : 0;
}

void lp_cuda_row_chain_launch(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    launch_parts(stage->parts, stage->count, stages->uses, run);
}

void lp_cuda_row_node(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, ~lp_cuda_rule_of(node)->reduction.outputs};
    bool any = false;
    for (int i = 0; i < node->op->output_count; i++)
        any = any || lp_part_computes(&part, i);
    if (any)
        launch_parts(&part, 1, NULL, run);
    lp_cuda_reduce_node(node, run);
}
