#include "backend/cuda/cuda_block.h"

#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_attention_order.h"

extern "C" {
#include "base/threads.h"
}

enum { ALIGN = 256, THREADS = 3 };

static size_t round_up(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t row_size(const lp_value *value)
{
    return (size_t)value->cols * lp_type_size(value->type, sizeof(float));
}

/* ---- offsets ------------------------------------------------------------------------------------------------- */

/* The inputs that nodes read, and the ids they want sorted. */
static void find_inputs(lp_cuda_block *block, const lp_cuda_run *sizes)
{
    const lp_graph *graph = sizes->run->plan->graph;
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i]->op->input_count; k++) {
            const lp_node *node = graph->nodes[i];
            const lp_value *value = node->inputs[k];
            if (!value || value->storage != LP_STORAGE_INPUT)
                continue;
            lp_cuda_input *mine = &block->inputs[value->slot];
            mine->value = value;
            const lp_value *sorted_by = lp_cuda_sorted_by(node, k);
            int64_t ids = sorted_by ? lp_cuda_largest(sizes, sorted_by) : 0;
            mine->ids = ids > mine->ids ? ids : mine->ids;
        }
}

static size_t lay_out_input(lp_cuda_input *mine, const lp_cuda_run *sizes, size_t place)
{
    int64_t rows = lp_cuda_largest(sizes, mine->value);
    mine->place = place;
    place += round_up((size_t)rows * row_size(mine->value));
    if (mine->ids) {
        mine->layout = lp_cuda_list_plan(rows * mine->value->cols, mine->ids);
        mine->list_place = place;
        place += mine->layout.size;
    }
    return place;
}

static void lay_out(lp_cuda_block *block, const lp_cuda_run *sizes)
{
    const lp_run *run = sizes->run;
    block->segment_place = round_up(sizeof(lp_cuda_shard));
    block->order_place = block->segment_place + ((size_t)sizes->largest_segments + 1) * sizeof(int32_t);
    size_t order = lp_cuda_attention_order_count(run->plan->largest.rows[LP_ROWS_TOKENS]);
    size_t size = round_up(block->order_place + order * sizeof(int32_t));
    block->adam_place = size;
    size += round_up(run->gradients ? lp_cuda_adam_size(run->plan->largest.rows[LP_ROWS_ITEMS]) : 0);
    for (int slot = 0; slot < block->input_count; slot++)
        if (block->inputs[slot].value)
            size = lay_out_input(&block->inputs[slot], sizes, size);
    block->size = size;
}

bool lp_cuda_block_plan(lp_cuda_block *block, const lp_cuda_run *sizes, lp_arena *arena)
{
    *block = lp_cuda_block();
    block->input_count = sizes->run->plan->graph->input_count;
    size_t slots = (size_t)block->input_count + 1;
    block->inputs = (lp_cuda_input *)lp_arena_alloc(arena, slots * sizeof *block->inputs);
    block->lists = (const lp_cuda_input **)lp_arena_alloc(arena, slots * sizeof *block->lists);
    if (!block->inputs || !block->lists)
        return false;
    find_inputs(block, sizes);
    lay_out(block, sizes);
    for (int slot = 0; slot < block->input_count; slot++) {
        const lp_cuda_input *mine = &block->inputs[slot];
        size_t wanted = mine->ids ? lp_cuda_list_room(&mine->layout) : 0;
        block->room_size = wanted > block->room_size ? wanted : block->room_size;
        if (mine->ids)
            block->lists[block->list_count++] = mine;
    }
    int available = lp_threads_available();
    block->threads = available < THREADS ? available : (int)THREADS;
    block->rooms =
        (int32_t *)lp_arena_alloc(arena, (size_t)block->threads * block->room_size * sizeof *block->rooms + 1);
    return block->rooms != NULL;
}

/* ---- what a run brings --------------------------------------------------------------------------------------- */

/* Inputs on their way to a block. */
typedef struct staging_job {
    const lp_cuda_block *block;
    const lp_run *run;
    char *staging;
} staging_job;

static void stage_list(const staging_job *job, const lp_cuda_input *mine, int32_t *room)
{
    const int32_t *ids = (const int32_t *)job->run->inputs[mine->value->slot];
    int64_t elements = (int64_t)lp_run_rows(job->run, mine->value) * mine->value->cols;
    lp_cuda_list_fill(&mine->layout, job->staging + mine->list_place, ids, elements, room);
}

/* A list for each task; the last one copies. */
static void stage_part(void *context, int task, int worker)
{
    const staging_job *job = (const staging_job *)context;
    const lp_cuda_block *block = job->block;
    if (task < block->list_count) {
        stage_list(job, block->lists[task], block->rooms + (size_t)worker * block->room_size);
        return;
    }
    for (int slot = 0; slot < block->input_count; slot++) {
        const lp_cuda_input *mine = &block->inputs[slot];
        size_t size = mine->value ? (size_t)lp_run_rows(job->run, mine->value) * row_size(mine->value) : 0;
        if (size)
            memcpy(job->staging + mine->place, job->run->inputs[slot], size);
    }
}

void lp_cuda_block_fill(const lp_cuda_block *block, const lp_run *run, const lp_train_step *learning, char *staging)
{
    lp_cuda_shard *shard = (lp_cuda_shard *)staging;
    *shard = lp_cuda_shard();
    for (int type = 0; type < LP_ROWS_COUNT; type++)
        shard->rows[type] = run->rows[type];
    shard->segments = run->segments;
    shard->step = run->step;
    shard->seed = run->seed;
    shard->first_token = run->first_token;
    memcpy(staging + block->segment_place, run->segment, ((size_t)run->segments + 1) * sizeof(int32_t));
    lp_cuda_attention_order(run->segment, run->segments, run->plan->largest.rows[LP_ROWS_TOKENS],
                            (int32_t *)(staging + block->order_place));
    if (learning)
        lp_cuda_adam_fill(learning, (const float *)lp_run_data(run, learning->loss),
                          (lp_cuda_adam_args *)(staging + block->adam_place));
    staging_job job = {block, run, staging};
    lp_threads_run(block->threads, block->list_count + 1, stage_part, &job);
}
