/* cuda_packed.cu: which values have copies in bf16, and the kernel that writes those that no other launch does. */
#include "backend/cuda/cuda_packed.h"

#include "backend/cuda/cuda_attention_wide.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_linear.h"
#include "backend/cuda/cuda_steps.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

/* A matrix to be copied: rows of `cols` floats to rows of `stride` numbers. */
typedef struct copy_task {
    const float *from;
    uint16_t *to;
    lp_cuda_rows rows;
    int heads; /* rows of each row */
    int cols, stride;
} copy_task;

enum { COPY_TASKS = 64 };

typedef struct copy_list {
    copy_task task[COPY_TASKS];
    const lp_cuda_shard *shard;
    int count;
    int64_t most; /* vectors of 8 numbers of the largest */
} copy_list;

/* A thread copies 8 numbers. blockIdx.y: the matrix. */
__global__ void __launch_bounds__(256) copy_kernel(const __grid_constant__ copy_list list)
{
    const copy_task *task = &list.task[blockIdx.y];
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int each = task->stride / 8, c = (int)(i % each) * 8, cols = task->cols;
    int64_t row = i / each;
    if (row >= (int64_t)lp_rows_now(task->rows, list.shard) * task->heads)
        return;
    const float *from = task->from + row * cols + c;
    int width = cols % 4 == 0 && (uintptr_t)task->from % 16 == 0 ? 4 : 1;
    float4 x = lp_load_four(from, cols - c, width), y = lp_load_four(from + 4, cols - c - 4, width);
    *(float4 *)(task->to + row * task->stride + c) = make_float4(tile_pack_bf16(x.x, x.y), tile_pack_bf16(x.z, x.w),
                                                                 tile_pack_bf16(y.x, y.y), tile_pack_bf16(y.z, y.w));
}

/* The kernel that runs a node of a stage, as far as it knows copies; otherwise NULL. */
lp_cuda_kernel kernel_of(const lp_cuda_stage *stage, const lp_node *node)
{
    if (lp_cuda_attention_wide_of(node, true, TILE_MAX_SHARED)) /* bf16 runs on 9.0 alone */
        return NULL;
    bool by_op = stage->type == LP_STAGE_NODE || stage->type == LP_STAGE_REDUCTION || stage->type == LP_STAGE_PRODUCT;
    return stage->type == LP_STAGE_ROWS ? lp_cuda_row_node : by_op ? lp_cuda_kernel_of(node) : NULL;
}

/* Whether the launch of a stage stores the outputs of the part: of products, those of the last one. */
bool stores(const lp_cuda_stage *stage, const lp_stage_part *part)
{
    return stage->type != LP_STAGE_PRODUCT || part + 1 == stage->parts + stage->count;
}

/* Whether a fused kernel or a chain of rows runs the node. */
bool by_row(const lp_cuda_stage *stage, const lp_node *node)
{
    return stage->type == LP_STAGE_FUSED || kernel_of(stage, node) == lp_cuda_row_node;
}

/* Heads of an output, as the launch of its stage divides the columns. */
int heads_of(const lp_cuda_stage *stage, const lp_node *node, const lp_value *value)
{
    int frequencies = lp_step_frequencies(node);
    return !by_row(stage, node) ? node->attributes.heads : frequencies ? value->cols / (2 * frequencies) : 1;
}

/* Whether the launch of a stage can write a copy of an output. */
bool writes_copy(const lp_cuda_stage *stage, const lp_node *node, int output)
{
    lp_cuda_kernel kernel = kernel_of(stage, node);
    if (kernel == lp_cuda_attention_gradient)
        return output < 4;
    if (kernel == lp_cuda_attention)
        return output == 2;
    return kernel == lp_cuda_linear || (kernel == lp_cuda_row_node && output == 0) || stage->type == LP_STAGE_FUSED;
}

/* ---- the plan ------------------------------------------------------------------------------------------------ */

/* NULL: there is a copy for another number of heads. */
lp_copy_layout *layout_of(lp_value_copy *of, const lp_value *value, int heads)
{
    lp_copy_layout *layout = &of->layouts[heads > 1];
    if (!layout->heads) {
        layout->heads = heads;
        layout->copy.stride = (value->cols / heads + 7) / 8 * 8 * heads;
        layout->copy.gap = heads > 1 ? (layout->copy.stride - value->cols) / heads : 0;
    }
    return layout->heads == heads ? layout : NULL;
}

void plan_reads(lp_value_copy *of, const lp_cuda_stage *stage, const lp_node *node, int at)
{
    lp_cuda_kernel kernel = kernel_of(stage, node);
    for (int i = 0; i < node->op->input_count; i++) {
        const lp_value *value = node->inputs[i];
        lp_value_copy *mine = value ? &of[value->id] : NULL;
        if (!mine || lp_product_keeps(stage, value))
            continue;
        lp_copy_use use = lp_cuda_copy_use(node, i);
        /* A product of a fused kernel reads floats. A chain reads most of its own results from registers. */
        bool copies = use == LP_READS_COPY && kernel;
        bool either =
            use == LP_READS_EITHER && (stage->type == LP_STAGE_FUSED || kernel == lp_cuda_attention_gradient ||
                                       (kernel == lp_cuda_row_node && mine->written != at));
        lp_copy_layout *layout = copies ? layout_of(mine, value, lp_cuda_copy_input_heads(node, i)) : NULL;
        mine->read = mine->read || either;
        mine->floats = mine->floats || !(layout || either);
        mine->whole = mine->whole ||
                      (either && by_row(stage, node) && (stage->type == LP_STAGE_FUSED || !lp_step_frequencies(node)));
    }
}

void plan_writes(lp_value_copy *of, const lp_cuda_stage *stage, const lp_stage_part *part, int at)
{
    for (int i = 0; i < part->node->op->output_count; i++) {
        const lp_value *value = part->node->outputs[i];
        if (!lp_part_computes(part, i) || !stores(stage, part))
            continue;
        bool accumulates = part->node->accumulate >> i & 1, reads = false;
        lp_value_copy *mine = &of[value->id];
        if (kernel_of(stage, part->node) == lp_cuda_linear) {
            lp_product product = lp_product_of(stage->parts, stage->count);
            accumulates = product.accumulates;
            /* A product accumulates into the copy, once: a longer sum would be rounded too often. */
            reads = accumulates && !product.add && !mine->accumulated;
        }
        mine->read = mine->read || reads;
        int heads = lp_cuda_copy_heads(value, heads_of(stage, part->node, value));
        mine->heads = mine->written < 0 || mine->heads == heads ? heads : 1;
        mine->accumulated = mine->accumulated || accumulates;
        mine->floats = mine->floats || (accumulates && !reads) || !writes_copy(stage, part->node, i);
        mine->written = at;
    }
}

/* When all readers and writers are known: whether there are floats, and the copy that is read if there are none. */
void finish(lp_value_copy *mine, const lp_value *value)
{
    lp_copy_layout *whole = &mine->layouts[0], *gaps = &mine->layouts[1];
    if (mine->read && !mine->floats && !whole->heads && !gaps->heads)
        layout_of(mine, value, mine->heads);
    mine->floats = mine->floats || (gaps->heads && (whole->heads || mine->whole || gaps->heads != mine->heads));
}

/* Assigns memory to all copies, if there is any. Returns their bytes. */
size_t place(lp_value_copy *of, const lp_cuda_run *run, char *memory)
{
    const lp_graph *graph = run->run->plan->graph;
    size_t used = 0;
    for (int v = 0; v < graph->value_count; v++)
        for (lp_copy_layout &layout : of[v].layouts)
            if (layout.heads) {
                size_t size = (size_t)lp_cuda_largest(run, graph->values[v]) * (size_t)layout.copy.stride * 2;
                layout.copy.data = memory ? (uint16_t *)(memory + used) : NULL;
                used += (size + 255) / 256 * 256;
            }
    return used;
}

/* ---- copies by a kernel of their own ------------------------------------------------------------------------- */

void launch(const lp_cuda_run *run, copy_list *list)
{
    if (list->count)
        LP_LAUNCH(run, copy_kernel, dim3(lp_blocks(list->most, 256), (unsigned)list->count), 256, 0, *list);
    list->count = 0;
    list->most = 0;
}

/* Adds the copy of a value, and launches the list when it is full. */
void add(const lp_cuda_run *run, copy_list *list, const lp_value *value, const lp_copy_layout *layout)
{
    int heads = layout->heads;
    int64_t vectors = (int64_t)lp_cuda_largest(run, value) * (layout->copy.stride / 8);
    list->shard = run->shard;
    list->most = vectors > list->most ? vectors : list->most;
    list->task[list->count++] = {(const float *)lp_run_data(run->run, value),
                                 layout->copy.data,
                                 lp_cuda_rows_of(value),
                                 heads,
                                 value->cols / heads,
                                 layout->copy.stride / heads};
    if (list->count == COPY_TASKS)
        launch(run, list);
}

} // namespace

bool lp_cuda_copies_plan(lp_cuda_copies *copies, const lp_cuda_stages *stages, const lp_cuda_run *run, lp_arena *arena)
{
    const lp_graph *graph = run->run->plan->graph;
    if (!tile_bf16(run))
        return true;
    lp_value_copy *of = (lp_value_copy *)lp_arena_alloc(arena, ((size_t)graph->value_count + 1) * sizeof *of);
    for (int v = 0; of && v < graph->value_count; v++) {
        of[v].written = -1;
        of[v].floats = graph->values[v]->storage != LP_STORAGE_WORK || graph->values[v]->retained;
    }
    for (int s = 0; of && s < stages->count; s++)
        for (int p = 0; p < stages->all[s].count; p++) {
            const lp_stage_part *part = &stages->all[s].parts[p];
            plan_reads(of, &stages->all[s], part->node, s);
            plan_writes(of, &stages->all[s], part, s);
        }
    for (int v = 0; of && v < graph->value_count; v++)
        finish(&of[v], graph->values[v]);
    /* The memory is zeroed, and nothing writes what is between rows and heads. */
    if (!of || !(copies->memory = lp_device_alloc(run->device, place(of, run, NULL) + 1)))
        return false;
    place(of, run, (char *)copies->memory);
    copies->of = of;
    return true;
}

void lp_cuda_copies_begin(const lp_cuda_run *run)
{
    const lp_graph *graph = run->run->plan->graph;
    copy_list list = {};
    for (int v = 0; run->copies && v < graph->value_count; v++)
        for (const lp_copy_layout &layout : run->copies->of[v].layouts)
            if (layout.heads && run->copies->of[v].written < 0)
                add(run, &list, graph->values[v], &layout);
    launch(run, &list);
}

void lp_cuda_copies_after(const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    copy_list list = {};
    for (int p = 0; run->copies && p < stage->count; p++)
        for (int i = 0; i < stage->parts[p].node->op->output_count; i++) {
            const lp_node *node = stage->parts[p].node;
            const lp_value *value = node->outputs[i];
            if (!lp_part_computes(&stage->parts[p], i) || !stores(stage, &stage->parts[p]))
                continue;
            lp_cuda_copy written = lp_cuda_copy();
            if (writes_copy(stage, node, i))
                written = lp_cuda_copy_to(run, value, heads_of(stage, node, value));
            for (const lp_copy_layout &layout : run->copies->of[value->id].layouts)
                if (layout.heads && layout.copy.data != written.data)
                    add(run, &list, value, &layout);
        }
    launch(run, &list);
}
