/* cuda_sums.cu: a group of sums is shared out among the blocks of a launch.
 *
 * The group gets as many blocks as the device runs at once, and each of its sums so many of them that all take about as long: what a
 * block reads counts. A sum has no more chunks of rows than it needs for that, because every chunk of an outer product leaves a matrix of
 * its own to be written and read again. Where a sum has one chunk, and its output is not added to, it goes there at once.
 */
#include "backend/cuda/cuda_sums_task.h"
#include "backend/cuda/cuda_rows.h"

/* Blocks of the first launch: two for each of 132 multiprocessors. Fixed, so that results do not depend on the device. */
enum { BLOCKS = 264 };
enum { CHUNKS = 128 };                    /* of an outer product */
enum { FEW_ROWS = 128, CHUNK_ROWS = 64 }; /* one chunk; the fewest of one, where there are several */
enum { HALF = 8192, DEPTH = 128 };        /* floats and rows of a half of shared memory, at most */
enum { START = 16 };                      /* what a row costs, in floats that are read, beyond those */

/* ---- what a piece sums --------------------------------------------------------------------------------------- */

/* Columns of each part, where so many are cut into as few parts as may be. */
static int part_width(int count, int most, int unit)
{
    int parts = (int)lp_blocks(count, most), each = (count + parts - 1) / parts;
    return (each + unit - 1) / unit * unit;
}

/* Floats from row to row where lanes read rows t and columns g, or pairs of columns: 8 modulo 16. */
static int pair_stride(int cols)
{
    return (cols + 7) / 16 * 16 + 8;
}

/* The rows of a half, each of so many floats. Where warps read tiles beyond the last column, they stay within it. */
static void fit_rows(sums_task *task, int row, int unit)
{
    int depth = HALF / row / unit * unit;
    task->depth = (short)(depth < unit ? (int)unit : depth > DEPTH ? (int)DEPTH : depth);
    task->half = task->depth * row + SUMS_WIDE;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Cuts the product into parts of up to 128 by 64 columns or 64 by 128, whichever reads less. */
static void cut_outer(sums_task *task)
{
    int64_t best = 0;
    for (int turn = 0; turn < 2; turn++) {
        int a_wide = part_width(task->a, turn ? SUMS_WIDE : SUMS_COLS, 16);
        int b_wide = part_width(task->b, turn ? SUMS_COLS : SUMS_WIDE, 8);
        int down = (int)lp_blocks(task->a, a_wide), across = (int)lp_blocks(task->b, b_wide);
        int64_t reads = (int64_t)down * across * (least(a_wide, task->a) + least(b_wide, task->b));
        if (turn && reads >= best)
            continue;
        best = reads;
        task->a_wide = a_wide;
        task->b_wide = b_wide;
        task->down = down;
        task->across = across;
    }
}

static void fill_outer(sums_task *task, const lp_node *node)
{
    const lp_value *out = node->outputs[0];
    task->kind = SUMS_OUTER;
    task->heads = node->with.heads;
    task->a = out->rows / task->heads;
    task->b = out->cols;
    task->q_summed = node->with.transpose;
    cut_outer(task);
    task->p_stride = (short)pair_stride(least(task->a, task->a_wide));
    task->q_stride = (short)pair_stride(least(task->b, task->b_wide));
    task->p_width = (short)lp_width((uintptr_t)task->p, task->a);
    task->q_width = (short)lp_width((uintptr_t)task->q, task->b);
    fit_rows(task, task->p_stride + task->q_stride, 16);
}

/* So many matrices lie side by side, with 2 floats more a row where there are `more`. */
static void fill_columns(sums_task *task, sums_kind kind, int cols, int matrices, bool more)
{
    task->kind = kind;
    task->heads = 1;
    task->b = cols;
    task->b_wide = part_width(cols, SUMS_COLS, 4);
    task->down = 1;
    task->across = (int)lp_blocks(cols, task->b_wide);
    task->p_stride = task->q_stride = (short)task->b_wide;
    task->p_width = (short)lp_width((uintptr_t)task->p, cols);
    task->q_width = (short)lp_width((uintptr_t)task->q, cols);
    fit_rows(task, matrices * task->b_wide + (more ? 2 : 0), 8);
}

/* What the rows of a node are those of; the first input of basis_gradient is the time. */
static const lp_value *rows_of(const lp_node *node)
{
    return node->inputs[node->op->id == LP_OP_BASIS_GRADIENT ? 1 : 0];
}

static void fill_task(sums_task *task, const lp_node *node, const lp_cuda_run *run)
{
    switch (node->op->id) {
    case LP_OP_LAYER_NORM_GRADIENT:
        task->p = LP_INPUT(0);
        task->q = LP_INPUT(3);
        task->extra = LP_INPUT(2);
        fill_columns(task, SUMS_NORM, node->inputs[0]->cols, 2, true);
        break;
    case LP_OP_BASIS_GRADIENT:
        task->p = LP_INPUT(1);
        task->q = LP_INPUT(2);
        task->extra = LP_INPUT(0);
        fill_columns(task, SUMS_BASIS, node->outputs[0]->cols, 4, true);
        break;
    case LP_OP_COLUMN_SUM:
        task->p = LP_INPUT(0);
        fill_columns(task, SUMS_COLUMN, node->inputs[0]->cols, 1, false);
        break;
    case LP_OP_COLUMN_DOT:
        task->p = LP_INPUT(0);
        task->q = LP_INPUT(1);
        fill_columns(task, SUMS_DOT, node->inputs[0]->cols, 2, false);
        break;
    default:
        task->p = LP_INPUT(0);
        task->q = LP_INPUT(1);
        fill_outer(task, node);
        break;
    }
    task->rows = lp_cuda_rows_of(rows_of(node));
}

/* ---- which blocks are whose ---------------------------------------------------------------------------------- */

static int parts_of(const sums_task *task)
{
    return task->heads * task->down * task->across;
}

/* What a row of a part costs, in floats that are read. Doubles take longer. */
static double cost_of_row(const sums_task *task)
{
    int read = least(task->b_wide, task->b);
    switch (task->kind) {
    case SUMS_OUTER:
        return START + read + least(task->a_wide, task->a);
    case SUMS_COLUMN:
        return START + read;
    case SUMS_BASIS:
        return START + 6 * read;
    default:
        return START + 2 * read;
    }
}

/* And what a chunk costs beyond its rows: an outer product is written, and read again. */
static double cost_of_chunk(const sums_task *task)
{
    return task->kind == SUMS_OUTER ? 2.0 * task->a_wide * task->b_wide : 0;
}

static int most_chunks(const sums_task *task, int rows)
{
    int most = rows <= FEW_ROWS ? 1 : (int)lp_blocks(rows, CHUNK_ROWS);
    return task->kind == SUMS_OUTER ? least(most, CHUNKS) : most;
}

/* One chunk more for the task that takes longest, as long as there are blocks. Returns how many there are. */
static unsigned share_blocks(sums_group *group, const int *rows, int count)
{
    int blocks = 0;
    for (int i = 0; i < count; i++) {
        group->task[i].chunks = 1;
        blocks += parts_of(&group->task[i]);
    }
    for (;;) {
        sums_task *longest = NULL;
        double most = 0;
        for (int i = 0; i < count; i++) {
            sums_task *task = &group->task[i];
            double cost = cost_of_chunk(task) + cost_of_row(task) * rows[i] / task->chunks;
            if (cost > most && task->chunks < most_chunks(task, rows[i])) {
                longest = task;
                most = cost;
            }
        }
        if (!longest || blocks + parts_of(longest) > BLOCKS)
            break;
        longest->chunks++;
        blocks += parts_of(longest);
    }
    for (int i = 0, first = 0; i < LP_CUDA_SUMS_MOST; i++) {
        group->first[i] = i < count ? first : INT32_MAX;
        first += i < count ? group->task[i].chunks * parts_of(&group->task[i]) : 0;
    }
    return (unsigned)blocks;
}

/* Of the sum that needs most: two halves, or what the warps and threads hand to each other in the end. */
static size_t shared_size(const sums_group *group, int count)
{
    size_t most = SUMS_THREADS * sizeof(double) / sizeof(float);
    for (int i = 0; i < count; i++) {
        const sums_task *task = &group->task[i];
        size_t size = 2 * (size_t)task->half, sets = 0;
        if (task->kind == SUMS_OUTER) {
            sums_warps warps = sums_warps_of(*task);
            sets = (size_t)((warps.sets - 1) * warps.down * warps.across) * 4 * SUMS_TILES * 32;
        }
        size = sets > size ? sets : size;
        most = size > most ? size : most;
    }
    return most * sizeof(float);
}

/* ---- where sums go ------------------------------------------------------------------------------------------- */

/* Which outputs a piece has, and where its slices of them begin. */
typedef struct piece_output {
    int output; /* -1: none */
    int slice;
} piece_output;

typedef struct sums_plan {
    sums_outputs outputs;
    int count;
    piece_output of[LP_CUDA_SUMS_MOST][2];
} sums_plan;

static int first_output(const sums_task *task)
{
    return task->kind == SUMS_NORM ? 1 : 0;
}

static size_t element_size(const sums_output *output)
{
    return output->is_double ? sizeof(double) : sizeof(float);
}

/* The place in the list of the output that lies there; a new one if there is none yet. */
static int find_output(sums_plan *plan, void *out, const lp_value *value, bool adds)
{
    for (int i = 0; i < plan->count; i++)
        if (plan->outputs.output[i].out == out)
            return i;
    int size = value->rows * value->cols;
    sums_output output = {out, NULL, size, (size + 3) / 4 * 4, 0, adds, value->type == LP_TYPE_DOUBLE};
    plan->outputs.output[plan->count] = output;
    return plan->count++;
}

static void find_outputs(sums_plan *plan, const sums_group *group, const lp_stage_piece *pieces, int count,
                         const lp_cuda_run *run)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            const lp_node *node = pieces[i].node;
            int number = first_output(&group->task[i]) + k;
            bool wanted = pieces[i].outputs >> number & 1 && node->outputs[number];
            plan->of[i][k].output =
                wanted ? find_output(plan, LP_OUTPUT_AS(void, number), node->outputs[number], LP_ADDS(number)) : -1;
            if (!wanted)
                continue;
            sums_output *output = &plan->outputs.output[plan->of[i][k].output];
            plan->of[i][k].slice = output->slices;
            output->slices += group->task[i].chunks;
        }
}

/* Bytes of an output's slices; none where the first launch can write it. */
static size_t partial_size(const sums_output *output)
{
    bool at_once = output->slices == 1 && !output->adds;
    return at_once ? 0 : (size_t)output->slices * (size_t)output->step * element_size(output);
}

/* False: there is no room. */
static bool place_slices(sums_plan *plan, const lp_cuda_run *run)
{
    size_t size = 0;
    for (int i = 0; i < plan->count; i++)
        size += partial_size(&plan->outputs.output[i]);
    char *scratch = size ? (char *)lp_cuda_scratch(run, size) : NULL;
    for (int i = 0; scratch && i < plan->count; i++) {
        sums_output *output = &plan->outputs.output[i];
        output->partial = partial_size(output) ? scratch : NULL;
        scratch += partial_size(output);
    }
    return scratch || !size;
}

static void point_tasks(const sums_plan *plan, sums_group *group, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            sums_task *task = &group->task[i];
            if (plan->of[i][k].output < 0)
                continue;
            const sums_output *output = &plan->outputs.output[plan->of[i][k].output];
            size_t begin = (size_t)plan->of[i][k].slice * (size_t)output->step * element_size(output);
            task->step[k] = output->step;
            task->out[k] = output->partial ? (char *)output->partial + begin : output->out;
        }
    for (int i = 0; i < count; i++)
        group->task[i].pairs = lp_width((uintptr_t)group->task[i].out[0], group->task[i].b) > 1;
}

/* Leaves the outputs that are to be added up; returns the blocks for them. */
static unsigned list_to_add(sums_plan *plan)
{
    int kept = 0;
    unsigned blocks = 0;
    for (int i = 0; i < plan->count; i++) {
        sums_output output = plan->outputs.output[i];
        if (!output.partial)
            continue;
        plan->outputs.first[kept] = (int)blocks;
        plan->outputs.output[kept++] = output;
        blocks += lp_blocks(output.size, SUMS_EACH);
    }
    for (int i = kept; i < SUMS_OUTPUTS; i++)
        plan->outputs.first[i] = INT32_MAX;
    return blocks;
}

/* ---- groups -------------------------------------------------------------------------------------------------- */

bool lp_cuda_sums_takes(const lp_node *node, unsigned *outputs)
{
    unsigned sums = 0, wanted = 0;
    switch (node->op->id) {
    case LP_OP_LINEAR_OUTER:
        sums = 3;
        break;
    case LP_OP_COLUMN_SUM:
    case LP_OP_COLUMN_DOT:
    case LP_OP_BASIS_GRADIENT:
        sums = 1;
        break;
    case LP_OP_LAYER_NORM_GRADIENT:
        sums = 6;
        break;
    default:
        break;
    }
    for (int i = 0; i < LP_NODE_OUTPUTS; i++)
        wanted |= (unsigned)(node->outputs[i] != NULL) << i;
    *outputs = sums & wanted;
    return *outputs != 0;
}

void lp_cuda_sums(const lp_stage_piece *pieces, int count, const lp_cuda_run *run)
{
    sums_group group = {};
    sums_plan plan = {};
    int rows[LP_CUDA_SUMS_MOST];
    group.shard = run->shard;
    for (int i = 0; i < count; i++) {
        fill_task(&group.task[i], pieces[i].node, run);
        rows[i] = lp_cuda_largest(run, rows_of(pieces[i].node));
    }
    unsigned blocks = share_blocks(&group, rows, count);
    find_outputs(&plan, &group, pieces, count, run);
    if (!place_slices(&plan, run))
        return;
    point_tasks(&plan, &group, count);
    unsigned adding_blocks = list_to_add(&plan);
    lp_cuda_sums_launch(run, group, blocks, shared_size(&group, count));
    lp_cuda_sums_add_up(run, plan.outputs, adding_blocks);
}

void lp_cuda_sums_alone(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_piece piece = {node, 0, 0};
    if (lp_cuda_sums_takes(node, &piece.outputs))
        lp_cuda_sums(&piece, 1, run);
}

/* ---- the ops that are nothing but sums ------------------------------------------------------------------------ */

void lp_cuda_linear_outer(const lp_node *node, const lp_cuda_run *run)
{
    lp_cuda_sums_alone(node, run);
}

void lp_cuda_column_sum(const lp_node *node, const lp_cuda_run *run)
{
    lp_cuda_sums_alone(node, run);
}

void lp_cuda_column_dot(const lp_node *node, const lp_cuda_run *run)
{
    lp_cuda_sums_alone(node, run);
}

void lp_cuda_basis_gradient(const lp_node *node, const lp_cuda_run *run)
{
    lp_cuda_sums_alone(node, run);
}
