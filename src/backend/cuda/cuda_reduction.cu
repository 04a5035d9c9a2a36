/* cuda_reduction.cu: divides a group of reductions among the blocks of a launch.
 *
 * The group gets as many blocks as the device runs at once. Each reduction gets a number of them in proportion to what it reads, so that all
 * blocks take about the same time. A reduction has no more chunks than that requires, because every chunk of an outer product
 * writes a partial matrix. A reduction with one chunk that does not accumulate writes its output directly.
 *
 * Outer products are part of the group where tensor cores multiply floats and bulk copies bring whole rows of few columns. All others are
 * products of their own (cuda_outer.cu), which leave their chunks with the others; of floats, their column sums are part of the group.
 */
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_reduction_copy.h"
#include "backend/cuda/cuda_reduction_task.h"
#include "backend/cuda/cuda_rows.h"

namespace
{

/* Blocks of the first launch: two for each of 132 multiprocessors. Constant, so that results do not depend on the device. */
enum { BLOCKS = 264 };
enum { CHUNKS = 128 };                        /* of a reduction, at most */
enum { FEW_ROWS = 128, CHUNK_ROWS = 64 };     /* up to which there is one chunk; smallest of several chunks */
enum { SLOT = 9600, DEPTH = 128 };            /* floats of a slot, approximately; rows of a slot, at most */
enum { SHARED_FLOATS = 25600, PADDING = 64 }; /* of all slots; beyond them: products read whole tiles of warps */
enum { ROW_OVERHEAD = 16 };                   /* fixed cost of a row, in units of a float read */

/* Tasks with their parts. number: of the node's output that is out[0]; out[1] is the next. */
typedef struct reduction_plan {
    reduction_task task[2 * LP_CUDA_REDUCTION_MAX];
    const lp_stage_part *part[2 * LP_CUDA_REDUCTION_MAX];
    int number[2 * LP_CUDA_REDUCTION_MAX];
    int count;
    reduction_outputs outputs;
    int output_count;
} reduction_plan;

int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* ---- tasks --------------------------------------------------------------------------------------------------- */

bool bulk_aligned(const reduction_task &task)
{
    return ((uintptr_t)task.p | (uintptr_t)task.q | (uintptr_t)task.extra) % 16 == 0;
}

reduction_launch outer_launch(const reduction_task &task, const lp_node *node, const lp_cuda_run *run)
{
    if (lp_cuda_copy_from(run, node, 0).data)
        return REDUCTION_WIDE_PRODUCT;
    bool even = task.a % 2 == 0 && task.b % 2 == 0 && (uintptr_t)LP_OUTPUT(0) % 8 == 0;
    bool grouped =
        tile_tensor(run) && task.heads == 1 && even && reduction_warps(task) <= REDUCTION_WARPS && bulk_aligned(task);
    return grouped ? REDUCTION_GROUP : REDUCTION_PRODUCT;
}

void fill_columns(reduction_task *task, int cols, int halves)
{
    task->heads = 1;
    task->a = halves * cols;
    task->b = task->q ? task->a : 0;
    task->tile = (short)min_int(cols, REDUCTION_COLS);
    task->bulk = cols <= REDUCTION_COLS && bulk_aligned(*task);
}

void add_task(reduction_plan *plan, const reduction_task &task, const lp_stage_part *part, int number)
{
    plan->task[plan->count] = task;
    plan->part[plan->count] = part;
    plan->number[plan->count++] = number;
}

void add_outer(reduction_plan *plan, reduction_task task, const lp_stage_part *part, const lp_cuda_run *run)
{
    const lp_node *node = part->node;
    task.heads = node->attributes.heads;
    task.a = node->outputs[0]->rows / task.heads;
    task.b = node->outputs[0]->cols;
    task.q_summed = node->attributes.transpose && node->outputs[1];
    task.p_stride = task.heads * task.a;
    task.q_stride = task.heads * task.b;
    task.tile = (short)task.a;
    task.bulk = true;
    task.launch = (short)outer_launch(task, node, run);
    if (task.launch == REDUCTION_WIDE_PRODUCT) {
        lp_cuda_copy p = lp_cuda_copy_from(run, node, 0), q = lp_cuda_copy_from(run, node, 1);
        task.p = p.data;
        task.q = q.data;
        task.p_stride = p.stride;
        task.q_stride = q.stride;
    }
    add_task(plan, task, part, 0);
    if (task.launch != REDUCTION_PRODUCT || !lp_part_computes(part, 1))
        return;
    task.launch = REDUCTION_GROUP;
    task.type = LP_REDUCTION_COLUMN;
    task.p = task.q_summed ? task.q : task.p;
    task.q = NULL;
    fill_columns(&task, task.q_summed ? task.q_stride : task.p_stride, 1);
    add_task(plan, task, part, 1);
}

void add_tasks(reduction_plan *plan, const lp_stage_part *part, const lp_cuda_run *run)
{
    const lp_node *node = part->node;
    const lp_reduction_rule *rule = &lp_cuda_rule_of(node)->reduction;
    const lp_value *summed = node->inputs[rule->p];
    reduction_task task = {};
    task.type = (short)rule->type;
    task.rows = lp_cuda_rows_of(summed);
    task.largest = lp_cuda_largest(run, summed);
    task.p = LP_INPUT(rule->p);
    task.q = rule->q >= 0 ? LP_INPUT(rule->q) : NULL;
    task.extra = rule->extra >= 0 ? LP_INPUT(rule->extra) : NULL;
    if (rule->type == LP_REDUCTION_OUTER) {
        add_outer(plan, task, part, run);
    } else {
        fill_columns(&task, summed->cols / rule->halves, rule->halves);
        add_task(plan, task, part, rule->type == LP_REDUCTION_NORM);
    }
}

/* ---- blocks of each task ------------------------------------------------------------------------------------- */

int tiles_of(const reduction_task &task)
{
    return (int)lp_blocks(reduction_cols(task), task.tile);
}

/* Cost of a block, in units of a float read. Products and doubles cost more; the partial matrix of an outer product is written and read
 * again. */
double cost_of(const reduction_task &task)
{
    bool outer = task.type == LP_REDUCTION_OUTER;
    double each = outer ? 1.125 : task.type == LP_REDUCTION_BASIS ? 1.25 : 1;
    double row = ROW_OVERHEAD + each * (task.a + task.b) / tiles_of(task);
    return row * task.largest / task.chunks + (outer ? 2.0 * tile_pad(task.a) * tile_pad(task.b) : 0);
}

int most_chunks(int rows)
{
    return rows <= FEW_ROWS ? 1 : min_int((int)lp_blocks(rows, CHUNK_ROWS), CHUNKS);
}

/* Adds chunks to the task of the group with the most expensive blocks while blocks remain. */
void assign_blocks(reduction_plan *plan)
{
    int blocks = 0;
    double costs[2 * LP_CUDA_REDUCTION_MAX];
    for (int i = 0; i < plan->count; i++)
        if (plan->task[i].launch == REDUCTION_GROUP) {
            plan->task[i].chunks = 1;
            costs[i] = cost_of(plan->task[i]);
            blocks += tiles_of(plan->task[i]);
        }
    for (;;) {
        int longest = -1;
        for (int i = 0; i < plan->count; i++) {
            const reduction_task &task = plan->task[i];
            if (task.launch == REDUCTION_GROUP && (longest < 0 || costs[i] > costs[longest]) &&
                task.chunks < most_chunks(task.largest))
                longest = i;
        }
        if (longest < 0 || (blocks += tiles_of(plan->task[longest])) > BLOCKS)
            return;
        plan->task[longest].chunks++;
        costs[longest] = cost_of(plan->task[longest]);
    }
}

/* Rows of a slot, and slots: as many as shared memory holds, but no more than a chunk fills. Returns the floats of shared memory: of the
 * slots, or of the exchange between sets and threads at the end. */
size_t size_slots(reduction_task *task)
{
    bool outer = task->type == LP_REDUCTION_OUTER;
    int unit = outer ? 16 * reduction_sets(*task) : 8;
    task->depth = 1;
    int depth = min_int(SLOT / reduction_slot(*task), DEPTH) / unit * unit;
    task->depth = (short)(depth < unit ? unit : depth);
    int filled = (int)lp_blocks(lp_blocks(lp_blocks(task->largest, task->chunks), 16) * 16, task->depth);
    int slots = SHARED_FLOATS / reduction_slot(*task);
    slots = min_int(slots < 2 ? 2 : min_int(slots, REDUCTION_SLOTS), filled);
    task->slots = (short)(slots < 1 ? 1 : slots);
    size_t size = task->bulk ? (size_t)(task->slots * reduction_slot(*task) + PADDING) : 0;
    size_t exchanged = REDUCTION_THREADS * sizeof(double) / sizeof(float);
    if (outer)
        exchanged = (size_t)((reduction_sets(*task) - 1) * reduction_warps(*task)) * REDUCTION_LANE * 32;
    return size > exchanged ? size : exchanged;
}

/* ---- outputs ------------------------------------------------------------------------------------------------- */

size_t element_size(const reduction_output &output)
{
    return output.is_double ? sizeof(double) : sizeof(float);
}

/* The index of the output at this address; added if it is new. */
int find_output(reduction_plan *plan, void *out, const lp_value *value, bool adds)
{
    for (int i = 0; i < plan->output_count; i++)
        if (plan->outputs.output[i].out == out) {
            plan->outputs.output[i].adds &= adds; /* the first part need not be the first here */
            return i;
        }
    int size = value->rows * value->cols;
    bool is_double = value->type == LP_TYPE_DOUBLE, fours = size >= REDUCTION_FOURS && !is_double;
    plan->outputs.output[plan->output_count] = {out, NULL, size, (size + 3) / 4 * 4, 0, adds, is_double, fours};
    return plan->output_count++;
}

/* Calls act(task, k, output) for out[k] of every task. */
template <typename action> void for_each_output(reduction_plan *plan, const lp_cuda_run *run, const action &act)
{
    for (int i = 0; i < plan->count; i++)
        for (int k = 0; k < (plan->task[i].launch == REDUCTION_PRODUCT ? 1 : 2); k++) {
            const lp_node *node = plan->part[i]->node;
            int number = plan->number[i] + k;
            if (lp_part_computes(plan->part[i], number))
                act(&plan->task[i], k,
                    find_output(plan, LP_OUTPUT_AS(void, number), node->outputs[number], LP_ADDS(number)));
        }
}

/* Bytes of the slices of an output; 0 where the first launch writes it directly. */
size_t partial_size(const reduction_output &output)
{
    bool direct = output.slices == 1 && !output.adds;
    return direct ? 0 : (size_t)output.slices * (size_t)output.step * element_size(output);
}

/* Allocates the slices. False when out of memory. */
bool place_outputs(reduction_plan *plan, const lp_cuda_run *run)
{
    size_t size = 0;
    for_each_output(plan, run, [&](const reduction_task *task, int, int index) {
        plan->outputs.output[index].slices += task->chunks;
    });
    for (int i = 0; i < plan->output_count; i++)
        size += partial_size(plan->outputs.output[i]);
    char *scratch = size ? (char *)lp_cuda_scratch(run, size) : NULL;
    if (size && !scratch)
        return false;
    char *next[REDUCTION_OUTPUTS];
    for (int i = 0; i < plan->output_count; i++) {
        reduction_output *output = &plan->outputs.output[i];
        size_t bytes = partial_size(*output);
        output->partial = bytes ? scratch : NULL;
        next[i] = bytes ? scratch : (char *)output->out;
        scratch += bytes;
    }
    for_each_output(plan, run, [&](reduction_task *task, int k, int index) {
        const reduction_output &output = plan->outputs.output[index];
        task->step[k] = output.step;
        task->out[k] = next[index];
        next[index] += (size_t)task->chunks * (size_t)output.step * element_size(output);
    });
    return true;
}

/* Of the outputs with slices to add. */
void launch_final(reduction_plan *plan, const lp_cuda_run *run)
{
    int count = 0;
    unsigned blocks = 0;
    for (int i = 0; i < plan->output_count; i++) {
        reduction_output output = plan->outputs.output[i];
        if (!output.partial)
            continue;
        plan->outputs.first[count] = (int)blocks;
        plan->outputs.output[count++] = output;
        blocks += lp_blocks(output.size, output.fours ? 128 : 32);
    }
    for (int i = count; i < REDUCTION_OUTPUTS; i++)
        plan->outputs.first[i] = INT32_MAX;
    lp_cuda_reduction_launch_final(run, plan->outputs, blocks);
}

void launch_group(reduction_plan *plan, const lp_cuda_run *run)
{
    reduction_group group = {};
    int count = 0;
    unsigned blocks = 0;
    size_t shared = 0;
    bool bulk = true;
    group.shard = run->shard;
    for (int i = 0; i < plan->count; i++) {
        reduction_task *task = &plan->task[i];
        if (task->launch != REDUCTION_GROUP)
            continue;
        size_t size = size_slots(task);
        shared = size > shared ? size : shared;
        bulk = bulk && task->bulk;
        group.first[count] = (int)blocks;
        group.task[count++] = *task;
        blocks += (unsigned)(task->chunks * tiles_of(*task));
    }
    for (int i = count; i < LP_CUDA_REDUCTION_MAX; i++)
        group.first[i] = INT32_MAX;
    lp_cuda_reduction_launch_partial(run, group, bulk, blocks, shared * sizeof(float));
}

} // namespace

/* ---- groups -------------------------------------------------------------------------------------------------- */

bool lp_cuda_reduction_supports(const lp_node *node, unsigned *outputs)
{
    unsigned wanted = 0;
    for (int i = 0; i < LP_NODE_OUTPUTS; i++)
        wanted |= (unsigned)(node->outputs[i] != NULL) << i;
    *outputs = lp_cuda_rule_of(node)->reduction.outputs & wanted;
    return *outputs != 0;
}

void lp_cuda_reduce(const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    reduction_plan plan = {};
    for (int i = 0; i < count; i++)
        add_tasks(&plan, &parts[i], run);
    assign_blocks(&plan);
    lp_cuda_outer_divide(plan.task, plan.count);
    if (!place_outputs(&plan, run))
        return;
    lp_cuda_outer_launch(run, plan.task, plan.count);
    launch_group(&plan, run);
    launch_final(&plan, run);
}

void lp_cuda_reduce_node(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, 0};
    if (lp_cuda_reduction_supports(node, &part.outputs))
        lp_cuda_reduce(&part, 1, run);
}
