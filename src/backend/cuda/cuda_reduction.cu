/* cuda_reduction.cu: divides a group of reductions among the blocks of a launch.
 *
 * Each reduction gets a number of blocks in proportion to what it reads, so that all blocks of a launch take about the same time. It has no
 * more chunks than that requires, because every chunk of an outer product writes a partial matrix. A reduction with one chunk that does
 * not accumulate writes its output directly.
 */
#include "backend/cuda/cuda_packed.h"
#include "backend/cuda/cuda_product.h"
#include "backend/cuda/cuda_reduction_task.h"

/* Columns of a head from which on an outer product of copies in bf16, or of floats, is a launch of its own. */
enum { LEAST_COPY = 32, LEAST = 96 };
enum { CHUNKS = 128, FEW_ROWS = 128 }; /* of a reduction, at most; rows up to which there is one chunk */
/* From which size on a lane of the second launch has four elements of an output. */
enum { FOURS = 8192 };

/* Blocks of a launch, constant, so that results do not depend on the device; and the smallest of several chunks. Outer products by
 * warpgroups have partial sums to write and to be read again, and keep multiprocessors from the launches of the critical path. The
 * emulation has few blocks and small chunks of large tiles. */
typedef struct reduction_launch {
    int blocks, chunk_rows;
} reduction_launch;

#ifdef LP_CUDA_EMULATED
static const reduction_launch SMALL = {264, 64}, LARGE = {4, 256}, WIDE = {4, 64};
#else
static const reduction_launch SMALL = {264, 64}, LARGE = {132, 256}, WIDE = {66, 256};
#endif

/* ---- tasks --------------------------------------------------------------------------------------------------- */

bool lp_cuda_outer_wide(const lp_node *node, bool copies)
{
    /* Of one head, fused kernels take up to 64 columns, and leave floats. */
    int heads = node->attributes.heads, least = !copies ? LEAST : heads > 1 ? LEAST_COPY : 65;
    return lp_cuda_rule_of(node)->reduction.type == LP_REDUCTION_OUTER && node->inputs[0]->cols / heads >= least &&
           node->inputs[1]->cols / heads >= least;
}

/* The value whose rows the node sums over. */
static const lp_value *rows_of(const lp_node *node)
{
    return node->inputs[lp_cuda_rule_of(node)->reduction.p];
}

/* The rows of the largest shard that the task sums. */
static int largest_rows(const reduction_task &task, const lp_node *node, const lp_cuda_run *run)
{
    return (int)lp_blocks(lp_cuda_largest(run, rows_of(node)), task.rows_each);
}

static void set_tile(reduction_task *task, int tiling, int rows, int cols)
{
    task->tiling = (short)tiling;
    task->tile_rows = (short)rows;
    task->tile_cols = (short)cols;
}

static void fill_outer(reduction_task *task, const lp_node *node, const lp_cuda_run *run)
{
    lp_cuda_copy p = lp_cuda_copy_from(run, node, 0), q = lp_cuda_copy_from(run, node, 1);
    int heads = node->attributes.heads, a = node->outputs[0]->rows / heads, b = node->outputs[0]->cols;
    task->heads = heads;
    task->a = task->p_head = a;
    task->b = task->q_head = b;
    task->p_stride = heads * a;
    task->q_stride = heads * b;
    task->q_summed = node->attributes.transpose && node->outputs[1];
    task->p_width = (signed char)lp_vector_width((uintptr_t)task->p, a);
    task->q_width = (signed char)lp_vector_width((uintptr_t)task->q, b);
    if (!p.data) {
        if (lp_cuda_outer_wide(node, false))
            set_tile(task, REDUCTION_LARGE, product_large::rows, product_large::cols);
        else
            set_tile(task, REDUCTION_SMALL, a > 64 && b <= 64 ? 128 : 64, b > 64 ? 128 : 64);
        return;
    }
    task->p = p.data;
    task->q = q.data;
    task->p_stride = p.stride;
    task->q_stride = q.stride;
    task->p_head += p.gap;
    task->q_head += q.gap;
    bool by_head = heads > 1 && a <= 64;
    task->heads_each = by_head ? 2 : 1;
    set_tile(task,
             REDUCTION_WIDE + (by_head ? REDUCTION_WIDE_BY_HEAD : 0) + (task->q_summed ? REDUCTION_WIDE_Q_SUMMED : 0),
             by_head ? 64 : 128, lp_cuda_outer_cols(*task));
}

static void fill_task(reduction_task *task, const lp_stage_part *part, const lp_cuda_run *run)
{
    const lp_node *node = part->node;
    const lp_reduction_rule *rule = &lp_cuda_rule_of(node)->reduction;
    int cols = rows_of(node)->cols;
    *task = {};
    task->type = (short)rule->type;
    task->rows = lp_cuda_rows_of(rows_of(node));
    task->p = LP_INPUT(rule->p);
    task->q = rule->q >= 0 ? LP_INPUT(rule->q) : NULL;
    task->extra = rule->extra >= 0 ? LP_INPUT(rule->extra) : NULL;
    task->rows_each = task->heads_each = 1;
    int *note = NULL;
    const float *sums = part->follows ? (float *)lp_cuda_side_buffer(run, node->inputs[rule->extra], 0, &note) : NULL;
    if (sums) {
        task->type = LP_REDUCTION_BOTH;
        task->rows_each = (short)*note;
        task->p = sums;
        task->q = sums + (int64_t)(largest_rows(*task, node, run) + 3) / 4 * 4 * cols;
    }
    if (rule->type == LP_REDUCTION_OUTER) {
        fill_outer(task, node, run);
        return;
    }
    task->heads = task->a = 1;
    task->b = cols / rule->halves;
    task->p_stride = cols;
    task->p_width = (signed char)lp_vector_width((uintptr_t)task->p | (uintptr_t)task->q, task->b);
    set_tile(task, REDUCTION_SMALL, 1, REDUCTION_COLS);
}

/* ---- chunks -------------------------------------------------------------------------------------------------- */

/* Matrices that column sums read: wide values are two, side by side. */
static int matrices_of(const reduction_task &task)
{
    return task.type == LP_REDUCTION_COLUMN ? 1 : task.type == LP_REDUCTION_BASIS ? 4 : 2;
}

/* What a block reads of a row, in floats. */
static double cost_of_row(const reduction_task &task)
{
    int cols = task.b < task.tile_cols ? task.b : task.tile_cols;
    return task.type == LP_REDUCTION_OUTER ? task.heads_each * (task.tile_rows + cols)
                                           : matrices_of(task) * REDUCTION_COLS;
}

/* Shared memory of a block with small tiles: column sums need no more than their rows, or the sums of all threads. */
static int shared_of(const reduction_task &task, int rows)
{
    int each = 16 * (int)lp_blocks(lp_blocks(rows, 16), task.chunks);
    int64_t needed =
        4 * (matrices_of(task) * REDUCTION_COLS_STRIDE + 2) * (lp_blocks(each, REDUCTION_DEPTH) * REDUCTION_DEPTH);
    bool most = task.type == LP_REDUCTION_OUTER || needed > REDUCTION_SHARED;
    return most ? (int)REDUCTION_SHARED : needed < 4096 ? 4096 : (int)needed;
}

/* Outer products by warpgroups of the same tiling have the same tile. All tasks get blocks in proportion to what they read. */
static void divide_tasks(reduction_task *tasks, const int *rows, int count)
{
    double cost[REDUCTION_TILINGS] = {};
    short widest[REDUCTION_TILINGS] = {};
    for (int i = 0; i < count; i++)
        if (widest[tasks[i].tiling] < tasks[i].tile_cols)
            widest[tasks[i].tiling] = tasks[i].tile_cols;
    for (int i = 0; i < count; i++) {
        reduction_task *task = &tasks[i];
        if (task->tiling >= REDUCTION_WIDE)
            task->tile_cols = widest[task->tiling];
        task->down = (int)lp_blocks(task->a, task->tile_rows);
        task->across = (int)lp_blocks(task->b, task->tile_cols);
        task->tiles = (int)lp_blocks(task->heads, task->heads_each) * task->down * task->across;
        cost[task->tiling] += cost_of_row(*task) * rows[i] * task->tiles;
    }
    for (int i = 0; i < count; i++) {
        int tiling = tasks[i].tiling;
        reduction_launch launch = tiling == REDUCTION_SMALL ? SMALL : tiling < REDUCTION_WIDE ? LARGE : WIDE;
        int most = rows[i] <= FEW_ROWS ? 1 : (int)lp_blocks(rows[i], launch.chunk_rows);
        int chunks = cost[tiling] > 0 ? (int)(launch.blocks * cost_of_row(tasks[i]) * rows[i] / cost[tiling]) : 1;
        most = most < CHUNKS ? most : (int)CHUNKS;
        tasks[i].chunks = chunks > most ? most : chunks < 1 ? 1 : chunks;
        tasks[i].shared = tiling == REDUCTION_SMALL ? shared_of(tasks[i], rows[i]) : 0;
    }
}

/* ---- outputs ------------------------------------------------------------------------------------------------- */

static size_t slice_size(const reduction_output &output)
{
    return (size_t)output.step * (output.is_double ? sizeof(double) : sizeof(float));
}

/* The output at this address, which is added if it is new. Returns its index. */
static int find_output(reduction_output *outputs, int *count, void *out, const lp_value *value)
{
    for (int i = 0; i < *count; i++)
        if (outputs[i].out == out)
            return i;
    int size = value->rows * value->cols;
    bool is_double = value->type == LP_TYPE_DOUBLE;
    outputs[*count] = {out, NULL, size, (size + 3) / 4 * 4, 0, true, is_double, size >= FOURS && !is_double};
    return (*count)++;
}

/* Where the tasks write: to the output itself if it is the only slice, otherwise to slices in scratch memory. Lists the outputs with slices
 * to add and sets the blocks of the second launch. False when out of memory. */
static bool place_outputs(reduction_task *tasks, const lp_stage_part *parts, int count, const lp_cuda_run *run,
                          reduction_outputs *outputs, unsigned *blocks)
{
    reduction_output all[REDUCTION_OUTPUTS];
    int found = 0, listed = 0, of[REDUCTION_OUTPUTS];
    size_t size = 0, next[REDUCTION_OUTPUTS] = {};
    for (int i = 0; i < 2 * count; i++) {
        const lp_node *node = parts[i / 2].node;
        int type = tasks[i / 2].type, number = i % 2 + (type == LP_REDUCTION_NORM || type == LP_REDUCTION_BOTH);
        of[i] = -1;
        if (!lp_part_computes(&parts[i / 2], number))
            continue;
        of[i] = find_output(all, &found, LP_OUTPUT_AS(void, number), node->outputs[number]);
        all[of[i]].adds = all[of[i]].adds && LP_ADDS(number); /* the first part need not be the first here */
        all[of[i]].slices += tasks[i / 2].chunks;
    }
    for (int i = 0; i < found; i++)
        size += all[i].slices > 1 || all[i].adds ? all[i].slices * slice_size(all[i]) : 0;
    char *scratch = size ? (char *)lp_cuda_scratch(run, size) : NULL;
    if (size && !scratch)
        return false;
    *blocks = 0;
    for (int i = 0; i < found; i++)
        if (all[i].slices > 1 || all[i].adds) {
            all[i].partial = scratch;
            scratch += all[i].slices * slice_size(all[i]);
            outputs->first[listed] = (int)*blocks;
            outputs->output[listed++] = all[i];
            *blocks += lp_blocks(all[i].size, all[i].fours ? 128 : 32);
        }
    for (; listed < REDUCTION_OUTPUTS; listed++)
        outputs->first[listed] = INT32_MAX;
    for (int i = 0; i < 2 * count; i++) {
        reduction_task *task = &tasks[i / 2];
        if (of[i] < 0)
            continue;
        const reduction_output &output = all[of[i]];
        task->step[i % 2] = output.step;
        task->out[i % 2] = output.partial ? (char *)output.partial + next[of[i]] : output.out;
        next[of[i]] += task->chunks * slice_size(output);
        task->pairs = lp_vector_width((uintptr_t)task->out[0], task->b) > 1;
    }
    return true;
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

void lp_cuda_reduce(const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    reduction_task tasks[LP_CUDA_REDUCTION_MAX];
    reduction_outputs outputs;
    int rows[LP_CUDA_REDUCTION_MAX];
    unsigned blocks;
    for (int i = 0; i < count; i++) {
        fill_task(&tasks[i], &parts[i], run);
        rows[i] = largest_rows(tasks[i], parts[i].node, run);
    }
    divide_tasks(tasks, rows, count);
    if (!place_outputs(tasks, parts, count, run, &outputs, &blocks))
        return;
    lp_cuda_outer_launch(tasks, count, run);
    lp_cuda_reduction_launch(tasks, count, run);
    lp_cuda_reduction_launch_final(run, outputs, blocks);
}

void lp_cuda_reduce_node(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, 0, false};
    if (lp_cuda_reduction_supports(node, &part.outputs))
        lp_cuda_reduce(&part, 1, run);
}
