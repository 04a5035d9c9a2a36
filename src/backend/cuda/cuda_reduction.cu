/* cuda_reduction.cu: divides a group of reductions among the blocks of a launch.
 *
 * The group gets as many blocks as the device runs at once. Each reduction gets a number of them in proportion to what it reads, so that all
 * blocks take about the same time. A reduction has no more chunks than that requires, because every chunk of an outer product
 * writes a partial matrix. A reduction with one chunk that does not accumulate writes its output directly. Wide outer products are
 * launches of their own (cuda_outer.cu) that leave their chunks with the others.
 */
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_reduction_copy.h"
#include "backend/cuda/cuda_reduction_task.h"
#include "backend/cuda/cuda_rows.h"

/* Blocks of the first launch: two for each of 132 multiprocessors. Constant, so that results do not depend on the device. */
enum { BLOCKS = 264 };
enum { CHUNKS = 128 };                    /* of a reduction, at most */
enum { FEW_ROWS = 128, CHUNK_ROWS = 64 }; /* up to which there is one chunk; smallest of several chunks */
enum { SLOT = 9600, DEPTH = 128 };        /* floats of a slot, approximately; rows of a slot, at most */
enum {
    SHARED_FLOATS = 25600,
    PADDING = 64
};                          /* floats of all slots; and beyond them, since tiles may extend past the last column */
enum { ROW_OVERHEAD = 16 }; /* fixed cost of a row, in units of a float read */

/* ---- tasks --------------------------------------------------------------------------------------------------- */

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Rows of a slot: a multiple of `unit`. Slots: as many as shared memory holds. */
static void size_slots(reduction_task *task, int unit)
{
    task->depth = 1;
    int depth = SLOT / reduction_slot(*task) / unit * unit;
    task->depth = (short)(depth < unit ? unit : depth > DEPTH ? (int)DEPTH / unit * unit : depth);
    int slots = SHARED_FLOATS / reduction_slot(*task);
    task->slots = (short)(slots < 2 ? 2 : min_int(slots, REDUCTION_SLOTS));
}

static bool bulk_aligned(const lp_cuda_device *device, const reduction_task *task)
{
    return lp_device_capability(device) >= REDUCTION_BULK_CAPABILITY &&
           ((uintptr_t)task->p | (uintptr_t)task->q | (uintptr_t)task->extra) % 16 == 0;
}

/* Divides the product into tiles of up to 128 x 64 or 64 x 128, whichever reads less. */
static void tile_outer(reduction_task *task)
{
    int64_t best = 0;
    for (int phase = 0; phase < 2; phase++) {
        int a_wide = tile_width(task->a, phase ? REDUCTION_SHORT : REDUCTION_LONG, 8);
        int b_wide = tile_width(task->b, phase ? REDUCTION_LONG : REDUCTION_SHORT, 8);
        int down = (int)lp_blocks(task->a, a_wide), across = (int)lp_blocks(task->b, b_wide);
        int64_t reads = (int64_t)down * across * (min_int(a_wide, task->a) + min_int(b_wide, task->b));
        if (phase && reads >= best)
            continue;
        best = reads;
        task->a_wide = (short)a_wide;
        task->b_wide = (short)b_wide;
        task->down = down;
        task->across = across;
    }
    task->warps_down = (signed char)lp_blocks(task->a_wide, REDUCTION_WIDE);
    task->warps = (signed char)(task->warps_down * (int)lp_blocks(task->b_wide, REDUCTION_WIDE));
    task->sets = (signed char)(REDUCTION_WARPS / task->warps);
}

/* The most lanes t that read the same bank, when they are `spread` rows apart and read 8 floats each. */
static int bank_conflicts(int stride, int spread)
{
    int most = 0;
    for (int bank = 0; bank < 32; bank++) {
        int count = 0;
        for (int t = 0; t < 4; t++)
            count += (unsigned)(bank - t * spread * stride) % 32 < 8;
        most = count > most ? count : most;
    }
    return most;
}

/* Bulk copies preserve the row stride of global memory; they are used where that causes few bank conflicts. */
static void lay_out_outer(const lp_cuda_device *device, reduction_task *task)
{
    int fewest = 4;
    task->bulk = false;
    task->spread = 1;
    if (task->heads * task->down * task->across == 1 && bulk_aligned(device, task) && task->a % 2 == 0 &&
        task->b % 2 == 0)
        for (int spread = 1; spread <= 4; spread *= 2) {
            int conflicts = bank_conflicts(task->a, spread) + bank_conflicts(task->b, spread);
            if (conflicts >= fewest)
                continue;
            fewest = conflicts;
            task->bulk = true;
            task->spread = (signed char)spread;
        }
    task->p_stride = (short)(task->bulk ? task->a : tile_pair_stride(min_int(task->a, task->a_wide)));
    task->q_stride = (short)(task->bulk ? task->b : tile_pair_stride(min_int(task->b, task->b_wide)));
}

static void fill_outer(const lp_cuda_device *device, reduction_task *task, const lp_node *node)
{
    const lp_value *out = node->outputs[0];
    task->heads = node->attributes.heads;
    task->a = out->rows / task->heads;
    task->b = out->cols;
    task->q_summed = node->attributes.transpose && node->outputs[1];
    task->p_width = (signed char)lp_vector_width((uintptr_t)task->p, task->a);
    task->q_width = (signed char)lp_vector_width((uintptr_t)task->q, task->b);
    tile_outer(task);
    lay_out_outer(device, task);
    size_slots(task, 16 * task->sets);
}

/* cols: of half a row. Sums over a parameter that does not fit a slot have narrow tiles: one block would read it slowly. */
static void fill_columns(const lp_cuda_device *device, reduction_task *task, int cols, int halves)
{
    bool narrow = task->rows.type == LP_ROWS_FIXED && (task->q ? 2 : 1) * halves * cols * task->rows.fixed > SLOT;
    int most = narrow ? REDUCTION_FEW_COLS : REDUCTION_COLS;
    task->heads = 1;
    task->b = cols;
    task->down = 1;
    task->across = (int)lp_blocks(cols, most);
    task->bulk = task->across == 1 && bulk_aligned(device, task);
    task->b_wide = (short)(task->bulk ? cols : tile_width(cols, most, 4));
    task->p_stride = task->q_stride = (short)(halves * task->b_wide);
    task->p_width = (signed char)lp_vector_width((uintptr_t)task->p, cols);
    task->q_width = (signed char)lp_vector_width((uintptr_t)task->q, cols);
    task->sets = (signed char)(REDUCTION_THREADS / (task->b_wide < 32 ? 32 : task->b_wide));
    size_slots(task, 8);
}

/* The value whose rows the node sums over. */
static const lp_value *rows_of(const lp_node *node)
{
    return node->inputs[lp_cuda_rule_of(node)->reduction.p];
}

static void fill_task(reduction_task *task, const lp_node *node, const lp_cuda_run *run)
{
    const lp_reduction_rule *rule = &lp_cuda_rule_of(node)->reduction;
    task->type = (short)rule->type;
    task->rows = lp_cuda_rows_of(rows_of(node));
    task->p = LP_INPUT(rule->p);
    task->q = rule->q >= 0 ? LP_INPUT(rule->q) : NULL;
    task->extra = rule->extra >= 0 ? LP_INPUT(rule->extra) : NULL;
    if (rule->type == LP_REDUCTION_OUTER)
        fill_outer(run->device, task, node);
    else
        fill_columns(run->device, task, rows_of(node)->cols / rule->halves, rule->halves);
}

/* ---- blocks of each task ------------------------------------------------------------------------------------- */

static int tiles_of(const reduction_task *task)
{
    return task->heads * task->down * task->across;
}

/* Cost of a row of a tile, in units of a float read. Products and doubles cost more. */
static double cost_of_row(const reduction_task *task)
{
    int read = min_int(task->b_wide, task->b);
    switch (task->type) {
    case LP_REDUCTION_OUTER:
        return ROW_OVERHEAD + 1.125 * (read + min_int(task->a_wide, task->a));
    case LP_REDUCTION_COLUMN:
        return ROW_OVERHEAD + read;
    case LP_REDUCTION_BASIS:
        return ROW_OVERHEAD + 5 * read;
    default:
        return ROW_OVERHEAD + 2 * read;
    }
}

/* Fixed cost of a chunk: the partial matrix of an outer product is written and read again. */
static double cost_of_chunk(const reduction_task *task)
{
    return task->type == LP_REDUCTION_OUTER ? 2.0 * task->a_wide * task->b_wide : 0;
}

static int most_chunks(int rows)
{
    return rows <= FEW_ROWS ? 1 : min_int((int)lp_blocks(rows, CHUNK_ROWS), CHUNKS);
}

/* Cost of all rows of a task, of a chunk, and of each block with the current number of chunks. */
typedef struct reduction_cost {
    double rows, chunk, now;
    int most;
} reduction_cost;

/* Adds chunks to the task with the most expensive blocks while blocks remain. Returns the number of blocks. */
static unsigned assign_blocks(reduction_group *group, const int *rows, int count)
{
    reduction_cost costs[LP_CUDA_REDUCTION_MAX];
    int blocks = 0;
    for (int i = 0; i < count; i++) {
        reduction_task *task = &group->task[i];
        reduction_cost cost = {cost_of_row(task) * rows[i], cost_of_chunk(task), 0, most_chunks(rows[i])};
        cost.now = cost.rows + cost.chunk;
        costs[i] = cost;
        task->chunks = 1;
        blocks += tiles_of(task);
    }
    for (;;) {
        int longest = -1;
        for (int i = 0; i < count; i++)
            if (group->task[i].chunks < costs[i].most && (longest < 0 || costs[i].now > costs[longest].now))
                longest = i;
        if (longest < 0 || blocks + tiles_of(&group->task[longest]) > BLOCKS)
            break;
        reduction_task *task = &group->task[longest];
        task->chunks++;
        blocks += tiles_of(task);
        costs[longest].now = costs[longest].chunk + costs[longest].rows / task->chunks;
    }
    for (int i = 0, first = 0; i < LP_CUDA_REDUCTION_MAX; i++) {
        group->first[i] = i < count ? first : INT32_MAX;
        first += i < count ? group->task[i].chunks * tiles_of(&group->task[i]) : 0;
    }
    return (unsigned)blocks;
}

/* Reduces the slots to those that a chunk fills. */
static void trim_slots(reduction_group *group, const int *rows, int count)
{
    for (int i = 0; i < count; i++) {
        reduction_task *task = &group->task[i];
        int each = (int)lp_blocks(lp_blocks(rows[i], task->chunks), 16) * 16,
            filled = (int)lp_blocks(each, task->depth);
        task->slots = (short)(filled < 1 ? 1 : min_int(task->slots, filled));
    }
}

/* The largest need of any task: its slots, or the exchange between sets and threads at the end. */
static size_t shared_size(const reduction_group *group, int count)
{
    size_t most = REDUCTION_THREADS * sizeof(double) / sizeof(float);
    for (int i = 0; i < count; i++) {
        const reduction_task *task = &group->task[i];
        size_t size = (size_t)task->slots * (size_t)reduction_slot(*task) + PADDING, exchanged = 0;
        if (task->type == LP_REDUCTION_OUTER)
            exchanged = (size_t)((task->sets - 1) * task->warps) * REDUCTION_LANE * 32;
        size = exchanged > size ? exchanged : size;
        most = size > most ? size : most;
    }
    return most * sizeof(float);
}

/* ---- outputs ------------------------------------------------------------------------------------------------- */

/* An output of a part, and its first slice of it. */
typedef struct part_output {
    int output; /* index in reduction_outputs; -1: none */
    int slice;
} part_output;

typedef struct reduction_plan {
    reduction_outputs outputs;
    int count;
    part_output of[LP_CUDA_REDUCTION_MAX][2];
} reduction_plan;

static int first_output(const reduction_task *task)
{
    return task->type == LP_REDUCTION_NORM ? 1 : 0;
}

static size_t element_size(const reduction_output *output)
{
    return output->is_double ? sizeof(double) : sizeof(float);
}

/* The index of the output at this address; added if it is new. */
static int find_output(reduction_plan *plan, void *out, const lp_value *value, bool adds)
{
    for (int i = 0; i < plan->count; i++)
        if (plan->outputs.output[i].out == out) {
            plan->outputs.output[i].adds =
                plan->outputs.output[i].adds && adds; /* the first part need not be the first here */
            return i;
        }
    int size = value->rows * value->cols;
    bool is_double = value->type == LP_TYPE_DOUBLE, fours = size >= REDUCTION_FOURS && !is_double;
    reduction_output output = {out, NULL, size, (size + 3) / 4 * 4, 0, adds, is_double, fours};
    plan->outputs.output[plan->count] = output;
    return plan->count++;
}

static void find_outputs(reduction_plan *plan, const reduction_group *group, const lp_stage_part *parts, int count,
                         const lp_cuda_run *run)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            const lp_node *node = parts[i].node;
            int number = first_output(&group->task[i]) + k;
            bool wanted = parts[i].outputs >> number & 1 && node->outputs[number];
            plan->of[i][k].output =
                wanted ? find_output(plan, LP_OUTPUT_AS(void, number), node->outputs[number], LP_ADDS(number)) : -1;
            if (!wanted)
                continue;
            reduction_output *output = &plan->outputs.output[plan->of[i][k].output];
            plan->of[i][k].slice = output->slices;
            output->slices += group->task[i].chunks;
        }
}

/* Bytes of the slices of an output; 0 where the first launch writes it directly. */
static size_t partial_size(const reduction_output *output)
{
    bool direct = output->slices == 1 && !output->adds;
    return direct ? 0 : (size_t)output->slices * (size_t)output->step * element_size(output);
}

/* False when out of memory. */
static bool allocate_slices(reduction_plan *plan, const lp_cuda_run *run)
{
    size_t size = 0;
    for (int i = 0; i < plan->count; i++)
        size += partial_size(&plan->outputs.output[i]);
    char *scratch = size ? (char *)lp_cuda_scratch(run, size) : NULL;
    for (int i = 0; scratch && i < plan->count; i++) {
        reduction_output *output = &plan->outputs.output[i];
        output->partial = partial_size(output) ? scratch : NULL;
        scratch += partial_size(output);
    }
    return scratch || !size;
}

static void point_tasks(const reduction_plan *plan, reduction_group *group, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            reduction_task *task = &group->task[i];
            if (plan->of[i][k].output < 0)
                continue;
            const reduction_output *output = &plan->outputs.output[plan->of[i][k].output];
            size_t begin = (size_t)plan->of[i][k].slice * (size_t)output->step * element_size(output);
            task->step[k] = output->step;
            task->out[k] = output->partial ? (char *)output->partial + begin : output->out;
        }
    for (int i = 0; i < count; i++)
        group->task[i].pairs = lp_vector_width((uintptr_t)group->task[i].out[0], group->task[i].b) > 1;
}

/* Retains only the outputs with slices to add; returns the blocks of the second launch. */
static unsigned list_partial_outputs(reduction_plan *plan)
{
    int count = 0;
    unsigned blocks = 0;
    for (int i = 0; i < plan->count; i++) {
        reduction_output output = plan->outputs.output[i];
        if (!output.partial)
            continue;
        plan->outputs.first[count] = (int)blocks;
        plan->outputs.output[count++] = output;
        blocks += lp_blocks(output.size, output.fours ? 128 : 32);
    }
    for (int i = count; i < REDUCTION_OUTPUTS; i++)
        plan->outputs.first[i] = INT32_MAX;
    return blocks;
}

/* ---- groups -------------------------------------------------------------------------------------------------- */

bool lp_cuda_reduction_supports(const lp_node *node, unsigned *outputs)
{
    unsigned wanted = 0;
    for (int i = 0; i < LP_NODE_OUTPUTS; i++)
        wanted |= (unsigned)(node->outputs[i] != NULL) << i;
    *outputs = lp_cuda_rule_of(node)->reduction.outputs & wanted;
    return *outputs != 0;
}

/* The parts with their tasks; wide outer products come last. Returns the number of the others. */
static int sort_parts(const lp_stage_part *parts, int count, const lp_cuda_run *run, lp_stage_part *sorted,
                      reduction_group *group, int *rows)
{
    int grouped = 0, wide = count;
    for (int i = 0; i < count; i++) {
        reduction_task task = {};
        fill_task(&task, parts[i].node, run);
        int at = lp_cuda_outer_wide(parts[i].node, lp_cuda_copy_from(run, parts[i].node, 0).data) ? --wide : grouped++;
        group->task[at] = task;
        sorted[at] = parts[i];
        rows[at] = lp_cuda_largest(run, rows_of(parts[i].node));
    }
    lp_cuda_outer_chunks(sorted + wide, group->task + wide, rows + wide, count - wide, run);
    return grouped;
}

void lp_cuda_reduce(const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    reduction_group group = {};
    reduction_plan plan = {};
    lp_stage_part sorted[LP_CUDA_REDUCTION_MAX] = {};
    int rows[LP_CUDA_REDUCTION_MAX] = {};
    group.shard = run->shard;
    int grouped = sort_parts(parts, count, run, sorted, &group, rows);
    unsigned blocks = assign_blocks(&group, rows, grouped);
    trim_slots(&group, rows, grouped);
    find_outputs(&plan, &group, sorted, count, run);
    if (!allocate_slices(&plan, run))
        return;
    point_tasks(&plan, &group, count);
    unsigned final_blocks = list_partial_outputs(&plan);
    bool bulk = true;
    for (int i = 0; i < grouped; i++)
        bulk = bulk && group.task[i].bulk;
    lp_cuda_outer_launch(sorted + grouped, group.task + grouped, count - grouped, run);
    lp_cuda_reduction_launch_partial(run, group, bulk, blocks, shared_size(&group, grouped));
    lp_cuda_reduction_launch_final(run, plan.outputs, final_blocks);
}

void lp_cuda_reduce_node(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, 0};
    if (lp_cuda_reduction_supports(node, &part.outputs))
        lp_cuda_reduce(&part, 1, run);
}
