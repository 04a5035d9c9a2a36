/* cuda_reduction.cu: divides a group of reductions among the blocks of a launch.
 *
 * The group gets as many blocks as the device runs at once. Each reduction gets a number of them in proportion to what it reads, so that all
 * blocks take about the same time. A reduction with one chunk that does not accumulate writes its output directly.
 *
 * Outer products are part of the group where tensor cores multiply floats and bulk copies bring whole rows of few columns. All others are
 * products of their own (cuda_outer.cu), which leave their chunks with the others; of floats, their column sums are part of the group.
 */
#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_reduction_task.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

/* Blocks of the first launch: two for each of 132 multiprocessors. Constant, so that results do not depend on the device. */
enum { BLOCKS = 264 };
enum { CHUNKS = 128 };                    /* of a reduction, at most */
enum { FEW_ROWS = 128, CHUNK_ROWS = 64 }; /* up to which there is one chunk; smallest of several chunks */
enum { SLOT = 9600, DEPTH = 128 };        /* floats and rows of a slot, at most */
enum { ROW_OVERHEAD = 16 };               /* fixed cost of a row, in units of a float read */

typedef struct reduction_plan {
    reduction_group group;
    reduction_outputs outputs;
    reduction_output *of[LP_CUDA_REDUCTION_MAX][2]; /* of each task; NULL: absent */
    int count, output_count;
} reduction_plan;

/* ---- tasks --------------------------------------------------------------------------------------------------- */

reduction_task *add_task(reduction_plan *plan, lp_reduction_type type, lp_cuda_rows rows, const lp_cuda_run *run)
{
    reduction_task *task = &plan->group.task[plan->count++];
    task->type = type;
    task->rows = rows;
    task->largest = rows.type == LP_ROWS_FIXED ? rows.fixed : (int)run->run->plan->largest.rows[rows.type];
    return task;
}

/* Output k of the last task. Several tasks may have the same one. */
void add_output(reduction_plan *plan, int k, void *out, int size, bool adds, bool is_double)
{
    reduction_output *output = plan->outputs.output, *end = output + plan->output_count;
    while (output < end && output->out != out)
        output++;
    if (output == end) {
        *output = {out, NULL, size, (size + 3) / 4 * 4, 0, adds, is_double};
        plan->output_count++;
    }
    output->adds = output->adds && adds; /* the first part need not be the first here */
    plan->of[plan->count - 1][k] = output;
}

bool bulk_aligned(const reduction_task &task)
{
    return ((uintptr_t)task.p | (uintptr_t)task.q | (uintptr_t)task.extra) % 16 == 0;
}

/* Slots hold whole units of rows, and there are as many as shared memory holds. */
void set_slots(reduction_task *task, int unit)
{
    task->depth = 1;
    task->depth = min(SLOT / reduction_slot(*task), (int)DEPTH) / unit * unit;
    task->slots = min(REDUCTION_SHARED / reduction_slot(*task), (int)REDUCTION_SLOTS);
}

void set_columns(reduction_task *task, int cols)
{
    task->a = cols;
    task->b = task->q ? cols : 0;
    task->tile = min(reduction_cols(*task), (int)REDUCTION_COLS);
    if (reduction_cols(*task) <= REDUCTION_COLS && bulk_aligned(*task))
        set_slots(task, 8);
}

void set_outer(reduction_task *task, int heads, int a, int b, const float *out, const lp_cuda_run *run)
{
    task->heads = heads;
    task->a = task->tile = a;
    task->b = b;
    task->p_stride = heads * a;
    task->q_stride = heads * b;
    bool even = a % 2 == 0 && b % 2 == 0 && (uintptr_t)out % 8 == 0;
    bool grouped = tile_tensor(run) && heads == 1 && even && reduction_warps(*task) <= REDUCTION_WARPS;
    task->launch = grouped && bulk_aligned(*task) ? REDUCTION_GROUP : REDUCTION_PRODUCT;
    if (task->launch == REDUCTION_GROUP)
        set_slots(task, 16 * reduction_sets(*task));
}

void add_part(reduction_plan *plan, const lp_stage_part *part, const lp_cuda_run *run)
{
    const lp_node *node = part->node;
    const lp_reduction_rule *rule = &lp_cuda_rule_of(node)->reduction;
    const lp_value *summed = node->inputs[rule->p];
    int heads = node->attributes.heads, first = rule->type == LP_REDUCTION_NORM; /* output that is a sum */
    reduction_task *task = add_task(plan, rule->type, lp_cuda_rows_of(summed), run);
    task->p = LP_INPUT(rule->p);
    task->q = rule->q >= 0 ? LP_INPUT(rule->q) : NULL;
    task->extra = rule->extra >= 0 ? LP_INPUT(rule->extra) : NULL;
    if (rule->type == LP_REDUCTION_OUTER) {
        lp_cuda_copy p = lp_cuda_copy_from(run, node, 0), q = lp_cuda_copy_from(run, node, 1);
        set_outer(task, heads, node->outputs[0]->rows / heads, node->outputs[0]->cols, LP_OUTPUT(0), run);
        task->q_summed = node->attributes.transpose && node->outputs[1];
        if (p.data) {
            task->launch = REDUCTION_WIDE_PRODUCT;
            task->p = p.data;
            task->q = q.data;
            task->p_stride = p.stride;
            task->q_stride = q.stride;
        }
    } else {
        set_columns(task, summed->cols);
    }
    for (int k = 0; k < 2; k++)
        if (lp_part_computes(part, first + k)) {
            const lp_value *value = node->outputs[first + k];
            add_output(plan, k, lp_run_data(run->run, value), value->rows * value->cols, LP_ADDS(first + k),
                       value->type == LP_TYPE_DOUBLE);
        }
}

/* ---- blocks of each task ------------------------------------------------------------------------------------- */

/* In units of a float read; 0 for what is not part of the group. Products and doubles cost more. */
double cost_of(const reduction_task &task)
{
    double each = task.type == LP_REDUCTION_OUTER || task.type == LP_REDUCTION_BASIS ? 1.25 : 1;
    double row = ROW_OVERHEAD * reduction_tiles(task) + each * (task.a + task.b);
    return task.launch == REDUCTION_GROUP ? row * task.largest : 0;
}

/* In proportion to the cost. */
void assign_chunks(reduction_task *tasks, int count)
{
    double total = 1;
    for (int i = 0; i < count; i++)
        total += cost_of(tasks[i]);
    for (int i = 0; i < count; i++) {
        int chunks = (int)(BLOCKS * cost_of(tasks[i]) / total) / reduction_tiles(tasks[i]);
        chunks = min(chunks, min((int)lp_blocks(tasks[i].largest, CHUNK_ROWS), (int)CHUNKS));
        tasks[i].chunks = tasks[i].largest <= FEW_ROWS || chunks < 1 ? 1 : chunks;
    }
}

/* The group sums the columns of a product of floats, in the product's chunks. */
void set_product_columns(reduction_task *task)
{
    task->launch = REDUCTION_GROUP;
    task->type = LP_REDUCTION_COLUMN;
    task->p = task->q_summed ? task->q : task->p;
    task->q = NULL;
    task->out[0] = task->out[1];
    task->out[1] = NULL;
    task->step[0] = task->step[1];
    set_columns(task, task->q_summed ? task->q_stride : task->p_stride);
}

/* ---- memory of partial sums ---------------------------------------------------------------------------------- */

size_t slice_bytes(const reduction_output &output)
{
    return (size_t)output.step * (output.is_double ? sizeof(double) : sizeof(float));
}

/* Assigns memory to the slices of all outputs. One slice that is not added to is the output itself. False when out of memory. */
bool place_outputs(reduction_plan *plan, const lp_cuda_run *run)
{
    size_t size = 0;
    for (int i = 0; i < 2 * plan->count; i++)
        if (reduction_output *output = plan->of[i / 2][i % 2]) {
            int slices = plan->group.task[i / 2].chunks;
            output->slices += slices;
            size += (size_t)slices * slice_bytes(*output);
        }
    char *scratch = (char *)lp_cuda_scratch(run, size);
    for (int i = 0; scratch && i < plan->output_count; i++) {
        reduction_output *output = &plan->outputs.output[i];
        output->partial = output->slices > 1 || output->adds ? scratch : (char *)output->out;
        scratch += (size_t)output->slices * slice_bytes(*output);
        output->slices = 0; /* counted again */
    }
    for (int i = 0; i < 2 * plan->count; i++)
        if (reduction_output *output = plan->of[i / 2][i % 2]) {
            reduction_task *task = &plan->group.task[i / 2];
            task->step[i % 2] = output->step;
            task->out[i % 2] = (char *)output->partial + (size_t)output->slices * slice_bytes(*output);
            output->slices += task->chunks;
        }
    return scratch != NULL;
}

void reduce(reduction_plan *plan, const lp_cuda_run *run)
{
    reduction_task *tasks = plan->group.task;
    assign_chunks(tasks, plan->count);
    lp_cuda_outer_divide(tasks, plan->count);
    if (!place_outputs(plan, run))
        return;
    lp_cuda_outer_launch(run, tasks, plan->count);
    for (int i = 0; i < plan->count; i++)
        if (tasks[i].launch == REDUCTION_PRODUCT)
            set_product_columns(&tasks[i]);
    lp_cuda_reduction_launch(run, &plan->group, &plan->outputs);
}

} // namespace

/* ---- groups -------------------------------------------------------------------------------------------------- */

void lp_cuda_reduce(const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    reduction_plan plan = {};
    for (int i = 0; i < count; i++)
        add_part(&plan, &parts[i], run);
    reduce(&plan, run);
}

void lp_cuda_reduce_node(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, lp_cuda_rule_of(node)->reduction.outputs};
    if (part.outputs)
        lp_cuda_reduce(&part, 1, run);
}

void lp_cuda_outer(const lp_cuda_run *run, lp_cuda_rows rows, const float *p, int p_cols, const float *q, int q_cols,
                   float *out, int out_adds, float *sums, int sums_adds)
{
    reduction_plan plan = {};
    reduction_task *task = add_task(&plan, out ? LP_REDUCTION_OUTER : LP_REDUCTION_COLUMN, rows, run);
    task->p = p;
    task->q = out ? q : NULL;
    if (out) {
        set_outer(task, 1, p_cols, q_cols, out, run);
        add_output(&plan, 0, out, p_cols * q_cols, out_adds, false);
    } else {
        set_columns(task, p_cols);
    }
    if (sums)
        add_output(&plan, out ? 1 : 0, sums, p_cols, sums_adds, false);
    reduce(&plan, run);
}
