/* cuda_packed.cu: which values have copies in bf16, and the kernel that writes those that no other launch does. */
#include "backend/cuda/cuda_packed.h"

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

/* A thread copies 8 numbers. blockIdx.y: the matrix. */
__global__ void __launch_bounds__(256) copy_kernel(const __grid_constant__ lp_copy_list list)
{
    const lp_copy_task *task = &list.task[blockIdx.y];
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int each = task->stride / 8, c = (int)(i % each) * 8, cols = task->cols;
    int64_t row = i / each;
    if (row >= (int64_t)lp_rows_now(task->rows, list.shard) * task->heads)
        return;
    const float *from = task->from + row * cols + c;
    float x[8];
    if (cols % 4 == 0 && (uintptr_t)task->from % 16 == 0) {
#pragma unroll
        for (int k = 0; k < 8; k += 4) {
            float4 all = c + k < cols ? *(const float4 *)(from + k) : make_float4(0, 0, 0, 0);
            x[k] = all.x;
            x[k + 1] = all.y;
            x[k + 2] = all.z;
            x[k + 3] = all.w;
        }
    } else {
#pragma unroll
        for (int k = 0; k < 8; k++)
            x[k] = c + k < cols ? from[k] : 0;
    }
    *(float4 *)(task->to + row * task->stride + c) = make_float4(
        tile_pack_bf16(x[0], x[1]), tile_pack_bf16(x[2], x[3]), tile_pack_bf16(x[4], x[5]), tile_pack_bf16(x[6], x[7]));
}

/* Whether the stage runs the node of the part; otherwise it only packs its weight. */
bool runs_node(const lp_cuda_stage *stage, const lp_stage_part *part)
{
    return stage->type != LP_STAGE_PACK || !lp_part_is_packed(part);
}

/* The kernel that runs a node of a stage, as far as it knows copies; otherwise NULL. */
lp_cuda_kernel kernel_of(const lp_cuda_stage *stage, const lp_node *node)
{
    return stage->type == LP_STAGE_ROWS                                       ? lp_cuda_row_node
           : stage->type == LP_STAGE_NODE || stage->type == LP_STAGE_REDUCTION ? lp_cuda_kernel_of(node->op->id)
                                                                              : NULL;
}

/* Whether the launch of a stage can write the copy of an output. */
bool writes_copy(const lp_cuda_stage *stage, const lp_node *node, int output)
{
    lp_cuda_kernel kernel = kernel_of(stage, node);
    if (kernel == lp_cuda_attention_gradient)
        return output < 4;
    if (kernel == lp_cuda_attention)
        return output == 2;
    if (kernel == lp_cuda_linear)
        return lp_cuda_copy_use(node, 0) == LP_READS_COPY;
    return kernel == lp_cuda_row_node && output == 0;
}

void plan_reads(lp_value_copy *of, const lp_cuda_stage *stage, const lp_node *node, int at)
{
    lp_cuda_kernel kernel = kernel_of(stage, node);
    for (int i = 0; i < node->op->input_count; i++) {
        lp_value_copy *mine = node->inputs[i] ? &of[node->inputs[i]->id] : NULL;
        if (!mine)
            continue;
        lp_copy_use use = kernel ? lp_cuda_copy_use(node, i) : LP_READS_FLOATS;
        /* A chain reads most of its own results from registers. */
        bool able = (kernel == lp_cuda_row_node && mine->written != at) || kernel == lp_cuda_attention_gradient;
        if (use == LP_READS_FLOATS || (use == LP_READS_EITHER && !able)) {
            mine->floats = true;
            continue;
        }
        mine->wanted = mine->wanted || use == LP_READS_COPY;
        mine->first = mine->last ? mine->first : mine->written;
        mine->last = at + 1;
    }
}

void plan_writes(lp_value_copy *of, const lp_cuda_stage *stage, const lp_stage_part *part, int at)
{
    for (int i = 0; i < part->node->op->output_count; i++) {
        const lp_value *value = part->node->outputs[i];
        if (!value || !lp_part_computes(part, i))
            continue;
        lp_value_copy *mine = &of[value->id];
        mine->written = at;
        mine->floats = mine->floats || part->node->accumulate >> i & 1 || !writes_copy(stage, part->node, i);
    }
}

lp_copy_task task_of(const lp_cuda_run *run, const lp_value *value, lp_cuda_copy copy)
{
    return {(const float *)lp_run_data(run->run, value), copy.data, lp_cuda_rows_of(value), 1, value->cols,
            copy.stride};
}

} // namespace

bool lp_cuda_copies_plan(lp_cuda_copies *copies, const lp_cuda_stages *stages, bool fused, const lp_cuda_run *run,
                         lp_arena *arena)
{
    const lp_graph *graph = run->run->plan->graph;
    if (!tile_bf16(run))
        return true;
    lp_value_copy *of =
        (lp_value_copy *)lp_arena_alloc(arena, ((size_t)graph->value_count + 1) * sizeof *copies->of);
    if (!of)
        return false;
    for (int v = 0; v < graph->value_count; v++) {
        of[v].written = -1;
        of[v].floats = graph->values[v]->storage != LP_STORAGE_WORK || graph->values[v]->retained;
    }
    for (int s = 0; s < stages->count; s++) {
        const lp_cuda_stage *stage = &stages->all[s];
        for (int p = 0; !lp_stage_skipped(stage, fused) && p < stage->count; p++)
            if (runs_node(stage, &stage->parts[p])) {
                plan_reads(of, stage, stage->parts[p].node, s);
                plan_writes(of, stage, &stage->parts[p], s);
            }
    }
    size_t size = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t used = 0;
        for (int v = 0; v < graph->value_count; v++) {
            const lp_value *value = graph->values[v];
            if (of[v].floats && !of[v].wanted)
                of[v].last = 0;
            if (!of[v].last)
                continue;
            of[v].copy.stride = (value->cols + 7) / 8 * 8;
            of[v].copy.data = pass ? (uint16_t *)((char *)copies->memory + used) : NULL;
            used += ((size_t)lp_cuda_largest(run, value) * (size_t)of[v].copy.stride * 2 + 255) / 256 * 256;
        }
        size = used;
        if (!pass && !(copies->memory = lp_device_alloc(run->device, size + 1)))
            return false;
    }
    copies->of = of;
    return true;
}

void lp_cuda_copy_add(const lp_cuda_run *run, lp_copy_list *list, const lp_copy_task &task, int64_t largest)
{
    int64_t vectors = largest * task.heads * (task.stride / 8);
    list->shard = run->shard;
    list->most = vectors > list->most ? vectors : list->most;
    list->task[list->count++] = task;
    if (list->count == LP_COPY_TASKS)
        lp_cuda_copy_launch(run, list);
}

void lp_cuda_copy_launch(const lp_cuda_run *run, lp_copy_list *list)
{
    if (list->count)
        LP_LAUNCH(run, copy_kernel, dim3(lp_blocks(list->most, 256), (unsigned)list->count), 256, 0, *list);
    list->count = 0;
    list->most = 0;
}

void lp_cuda_copies_begin(const lp_cuda_run *run)
{
    const lp_graph *graph = run->run->plan->graph;
    lp_copy_list list = {};
    for (int v = 0; run->copies && v < graph->value_count; v++) {
        const lp_value *value = graph->values[v];
        const lp_value_copy *mine = &run->copies->of[v];
        if (mine->copy.data && mine->first < 0)
            lp_cuda_copy_add(run, &list, task_of(run, value, mine->copy), lp_cuda_largest(run, value));
    }
    lp_cuda_copy_launch(run, &list);
}

void lp_cuda_copies_after(const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    lp_copy_list list = {};
    for (int p = 0; run->copies && p < stage->count; p++)
        for (int i = 0; i < stage->parts[p].node->op->output_count; i++) {
            const lp_value *value = stage->parts[p].node->outputs[i];
            if (!value || !lp_part_computes(&stage->parts[p], i) || !runs_node(stage, &stage->parts[p]) ||
                writes_copy(stage, stage->parts[p].node, i))
                continue;
            lp_cuda_copy copy = lp_cuda_copy_to(run, value);
            if (copy.data)
                lp_cuda_copy_add(run, &list, task_of(run, value, copy), lp_cuda_largest(run, value));
        }
    lp_cuda_copy_launch(run, &list);
}
