/* cuda_sums.cu: a group of sums is shared out among the blocks of a launch.
 *
 * The group gets as many blocks as the device runs at once, and each of its sums so many of them that all take about as long: what a
 * block reads counts. A sum has no more chunks of rows than it needs for that, because every chunk of an outer product leaves a matrix of
 * its own to be written and read again. Where a sum has one chunk, and its output is not added to, it goes there at once.
 */
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_sums_copy.h"
#include "backend/cuda/cuda_sums_task.h"
#include "backend/cuda/cuda_rows.h"

/* Blocks of the first launch: two for each of 132 multiprocessors. Fixed, so that results do not depend on the device. */
enum { BLOCKS = 264 };
enum { CHUNKS = 128 };                    /* of a sum, at most */
enum { FEW_ROWS = 128, CHUNK_ROWS = 64 }; /* one chunk; the fewest of one, where there are several */
enum { SLOT = 9600, DEPTH = 128 };        /* floats and rows of a slot, about and at most */
enum { ROOM = 25600, BEHIND = 64 };       /* floats of all slots, and behind them: tiles end beyond the last column */
enum { START = 16 };                      /* what a row costs, in floats that are read, beyond those */

/* ---- what a piece sums --------------------------------------------------------------------------------------- */

/* Columns of each part, where so many are cut into as few parts as may be. */
static int part_width(int count, int most, int unit)
{
    int parts = (int)lp_blocks(count, most), each = (count + parts - 1) / parts;
    return (each + unit - 1) / unit * unit;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* So many rows in a slot that sums of `unit` rows at a time have no rest, and as many slots as there is room for. */
static void fit_rows(sums_task *task, int unit)
{
    task->depth = 1;
    int depth = SLOT / sums_slot(*task) / unit * unit;
    task->depth = (short)(depth < unit ? unit : depth > DEPTH ? (int)DEPTH / unit * unit : depth);
    int slots = ROOM / sums_slot(*task);
    task->slots = (short)(slots < 2 ? 2 : least(slots, SUMS_SLOTS));
}

static bool bulk_aligned(const sums_task *task)
{
    return lp_device_level() >= SUMS_BULK_LEVEL &&
           ((uintptr_t)task->p | (uintptr_t)task->q | (uintptr_t)task->extra) % 16 == 0;
}

/* Cuts the product into parts of up to 128 by 64 columns or 64 by 128, whichever reads less. */
static void cut_outer(sums_task *task)
{
    int64_t best = 0;
    for (int turn = 0; turn < 2; turn++) {
        int a_wide = part_width(task->a, turn ? SUMS_SHORT : SUMS_LONG, 8);
        int b_wide = part_width(task->b, turn ? SUMS_LONG : SUMS_SHORT, 8);
        int down = (int)lp_blocks(task->a, a_wide), across = (int)lp_blocks(task->b, b_wide);
        int64_t reads = (int64_t)down * across * (least(a_wide, task->a) + least(b_wide, task->b));
        if (turn && reads >= best)
            continue;
        best = reads;
        task->a_wide = (short)a_wide;
        task->b_wide = (short)b_wide;
        task->down = down;
        task->across = across;
    }
    task->warps_down = (signed char)lp_blocks(task->a_wide, SUMS_WIDE);
    task->warps = (signed char)(task->warps_down * (int)lp_blocks(task->b_wide, SUMS_WIDE));
    task->sets = (signed char)(SUMS_WARPS / task->warps);
}

/* Floats from row to row where lanes read rows t and pairs of columns: 8 modulo 16. */
static int pair_stride(int cols)
{
    return (cols + 7) / 16 * 16 + 8;
}

/* How many lanes t read the same bank, `spread` rows of so many floats apart, 8 floats each. */
static int meetings(int stride, int spread)
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

/* Whole rows lie in shared memory as they do outside, if lanes then seldom meet in a bank. */
static void place_outer(sums_task *task)
{
    int fewest = 4;
    task->bulk = false;
    task->spread = 1;
    if (task->heads * task->down * task->across == 1 && bulk_aligned(task) && task->a % 2 == 0 && task->b % 2 == 0)
        for (int spread = 1; spread <= 4; spread *= 2) {
            int meet = meetings(task->a, spread) + meetings(task->b, spread);
            if (meet >= fewest)
                continue;
            fewest = meet;
            task->bulk = true;
            task->spread = (signed char)spread;
        }
    task->p_stride = (short)(task->bulk ? task->a : pair_stride(least(task->a, task->a_wide)));
    task->q_stride = (short)(task->bulk ? task->b : pair_stride(least(task->b, task->b_wide)));
}

static void fill_outer(sums_task *task, const lp_node *node)
{
    const lp_value *out = node->outputs[0];
    task->type = SUMS_OUTER;
    task->heads = node->attributes.heads;
    task->a = out->rows / task->heads;
    task->b = out->cols;
    task->q_summed = node->attributes.transpose;
    task->p_width = (signed char)lp_vector_width((uintptr_t)task->p, task->a);
    task->q_width = (signed char)lp_vector_width((uintptr_t)task->q, task->b);
    cut_outer(task);
    place_outer(task);
    fit_rows(task, 16 * task->sets);
}

/* Rows have so many columns once or, of a basis, twice. */
static void fill_columns(sums_task *task, sums_type type, int cols, int times)
{
    task->type = (short)type;
    task->heads = 1;
    task->b = cols;
    task->down = 1;
    task->across = (int)lp_blocks(cols, SUMS_COLS);
    task->bulk = task->across == 1 && bulk_aligned(task);
    task->b_wide = (short)(task->bulk ? cols : part_width(cols, SUMS_COLS, 4));
    task->p_stride = task->q_stride = (short)(times * task->b_wide);
    task->p_width = (signed char)lp_vector_width((uintptr_t)task->p, cols);
    task->q_width = (signed char)lp_vector_width((uintptr_t)task->q, cols);
    task->sets = (signed char)(SUMS_THREADS / (task->b_wide < 32 ? 32 : task->b_wide));
    fit_rows(task, 8);
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
        fill_columns(task, SUMS_NORM, node->inputs[0]->cols, 1);
        break;
    case LP_OP_BASIS_GRADIENT:
        task->p = LP_INPUT(1);
        task->q = LP_INPUT(2);
        task->extra = LP_INPUT(0);
        fill_columns(task, SUMS_BASIS, node->outputs[0]->cols, 2);
        break;
    case LP_OP_COLUMN_SUM:
        task->p = LP_INPUT(0);
        fill_columns(task, SUMS_COLUMN, node->inputs[0]->cols, 1);
        break;
    case LP_OP_COLUMN_DOT:
        task->p = LP_INPUT(0);
        task->q = LP_INPUT(1);
        fill_columns(task, SUMS_DOT, node->inputs[0]->cols, 1);
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

/* What a row of a part costs, in floats that are read. Products and doubles take longer. */
static double cost_of_row(const sums_task *task)
{
    int read = least(task->b_wide, task->b);
    switch (task->type) {
    case SUMS_OUTER:
        return START + 1.125 * (read + least(task->a_wide, task->a));
    case SUMS_COLUMN:
        return START + read;
    case SUMS_BASIS:
        return START + 5 * read;
    default:
        return START + 2 * read;
    }
}

/* And what a chunk costs beyond its rows: an outer product is written, and read again. */
static double cost_of_chunk(const sums_task *task)
{
    return task->type == SUMS_OUTER ? 2.0 * task->a_wide * task->b_wide : 0;
}

static int most_chunks(int rows)
{
    return rows <= FEW_ROWS ? 1 : least((int)lp_blocks(rows, CHUNK_ROWS), CHUNKS);
}

/* What the rows of a task cost together, and each of its blocks as things stand. */
typedef struct sums_cost {
    double rows, chunk, now;
    int most;
} sums_cost;

/* One chunk more for the task that takes longest, as long as there are blocks. Returns how many there are. */
static unsigned share_blocks(sums_group *group, const int *rows, int count)
{
    sums_cost costs[LP_CUDA_SUMS_MOST];
    int blocks = 0;
    for (int i = 0; i < count; i++) {
        sums_task *task = &group->task[i];
        sums_cost cost = {cost_of_row(task) * rows[i], cost_of_chunk(task), 0, most_chunks(rows[i])};
        cost.now = cost.rows + cost.chunk;
        costs[i] = cost;
        task->chunks = 1;
        blocks += parts_of(task);
    }
    for (;;) {
        int longest = -1;
        for (int i = 0; i < count; i++)
            if (group->task[i].chunks < costs[i].most && (longest < 0 || costs[i].now > costs[longest].now))
                longest = i;
        if (longest < 0 || blocks + parts_of(&group->task[longest]) > BLOCKS)
            break;
        sums_task *task = &group->task[longest];
        task->chunks++;
        blocks += parts_of(task);
        costs[longest].now = costs[longest].chunk + costs[longest].rows / task->chunks;
    }
    for (int i = 0, first = 0; i < LP_CUDA_SUMS_MOST; i++) {
        group->first[i] = i < count ? first : INT32_MAX;
        first += i < count ? group->task[i].chunks * parts_of(&group->task[i]) : 0;
    }
    return (unsigned)blocks;
}

/* No more slots than a chunk fills. */
static void leave_slots(sums_group *group, const int *rows, int count)
{
    for (int i = 0; i < count; i++) {
        sums_task *task = &group->task[i];
        int each = (int)lp_blocks(lp_blocks(rows[i], task->chunks), 16) * 16,
            filled = (int)lp_blocks(each, task->depth);
        task->slots = (short)(filled < 1 ? 1 : least(task->slots, filled));
    }
}

/* Of the sum that needs most: its slots, or what the warps and threads hand to each other in the end. */
static size_t shared_size(const sums_group *group, int count)
{
    size_t most = SUMS_THREADS * sizeof(double) / sizeof(float);
    for (int i = 0; i < count; i++) {
        const sums_task *task = &group->task[i];
        size_t size = (size_t)task->slots * (size_t)sums_slot(*task) + BEHIND, handed = 0;
        if (task->type == SUMS_OUTER)
            handed = (size_t)((task->sets - 1) * task->warps) * SUMS_LANE * 32;
        size = handed > size ? handed : size;
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
    return task->type == SUMS_NORM ? 1 : 0;
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
        group->task[i].pairs = lp_vector_width((uintptr_t)group->task[i].out[0], group->task[i].b) > 1;
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
    leave_slots(&group, rows, count);
    find_outputs(&plan, &group, pieces, count, run);
    if (!place_slices(&plan, run))
        return;
    point_tasks(&plan, &group, count);
    unsigned adding_blocks = list_to_add(&plan);
    bool bulk = true;
    for (int i = 0; i < count; i++)
        bulk = bulk && group.task[i].bulk;
    lp_cuda_sums_launch(run, group, bulk, blocks, shared_size(&group, count));
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
