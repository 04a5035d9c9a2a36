/* cuda_upload.cu: plans the offsets of an upload, and fills it from a run on several threads. */
#include "backend/cuda/cuda_upload.h"

#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_attention_order.h"

extern "C" {
#include "base/threads.h"
}

enum { THREADS = 3 };

static size_t row_size(const lp_value *value)
{
    return (size_t)value->cols * lp_type_size(value->type, sizeof(float));
}

/* ---- offsets ------------------------------------------------------------------------------------------------- */

/* Finds the inputs that nodes read, and those whose ids must be sorted. */
static void find_inputs(lp_cuda_upload *upload, const lp_cuda_run *sizes)
{
    const lp_graph *graph = sizes->run->plan->graph;
    for (int i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i]->op->input_count; k++) {
            const lp_node *node = graph->nodes[i];
            const lp_value *value = node->inputs[k];
            if (!value || value->storage != LP_STORAGE_INPUT)
                continue;
            lp_cuda_input *mine = &upload->inputs[value->slot];
            mine->value = value;
            const lp_value *sorted_by = lp_cuda_sorted_by(node, k);
            int64_t ids = sorted_by ? lp_cuda_largest(sizes, sorted_by) : 0;
            mine->ids = ids > mine->ids ? ids : mine->ids;
        }
}

static size_t lay_out_input(lp_cuda_input *mine, const lp_cuda_run *sizes, size_t offset)
{
    int64_t rows = lp_cuda_largest(sizes, mine->value);
    mine->offset = offset;
    offset += lp_cuda_align((size_t)rows * row_size(mine->value));
    if (mine->ids) {
        mine->layout = lp_cuda_list_plan(rows * mine->value->cols, mine->ids);
        mine->list_offset = offset;
        offset += mine->layout.size;
    }
    return offset;
}

static void lay_out(lp_cuda_upload *upload, const lp_cuda_run *sizes)
{
    const lp_run *run = sizes->run;
    upload->segment_offset = lp_cuda_align(sizeof(lp_cuda_shard));
    upload->order_offset = upload->segment_offset + ((size_t)sizes->largest_segments + 1) * sizeof(int32_t);
    size_t order = lp_cuda_attention_order_count(run->plan->largest.rows[LP_ROWS_TOKENS]);
    size_t size = lp_cuda_align(upload->order_offset + order * sizeof(int32_t));
    upload->adam_offset = size;
    size += lp_cuda_align(run->gradients ? lp_cuda_adam_size(run->plan->largest.rows[LP_ROWS_ITEMS]) : 0);
    for (int slot = 0; slot < upload->input_count; slot++)
        if (upload->inputs[slot].value)
            size = lay_out_input(&upload->inputs[slot], sizes, size);
    upload->size = size;
}

bool lp_cuda_upload_plan(lp_cuda_upload *upload, const lp_cuda_run *sizes, lp_arena *arena)
{
    *upload = lp_cuda_upload();
    upload->input_count = sizes->run->plan->graph->input_count;
    size_t slots = (size_t)upload->input_count + 1;
    upload->inputs = (lp_cuda_input *)lp_arena_alloc(arena, slots * sizeof *upload->inputs);
    upload->lists = (const lp_cuda_input **)lp_arena_alloc(arena, slots * sizeof *upload->lists);
    if (!upload->inputs || !upload->lists)
        return false;
    find_inputs(upload, sizes);
    lay_out(upload, sizes);
    for (int slot = 0; slot < upload->input_count; slot++) {
        const lp_cuda_input *mine = &upload->inputs[slot];
        size_t wanted = mine->ids ? lp_cuda_list_sort_size(&mine->layout) : 0;
        upload->sort_buffer_size = wanted > upload->sort_buffer_size ? wanted : upload->sort_buffer_size;
        if (mine->ids)
            upload->lists[upload->list_count++] = mine;
    }
    int available = lp_threads_available();
    upload->threads = available < THREADS ? available : (int)THREADS;
    upload->sort_buffers = (int32_t *)lp_arena_alloc(
        arena, (size_t)upload->threads * upload->sort_buffer_size * sizeof *upload->sort_buffers + 1);
    return upload->sort_buffers != NULL;
}

/* ---- filling an upload ----------------------------------------------------------------------------------------- */

typedef struct staging_job {
    const lp_cuda_upload *upload;
    const lp_run *run;
    char *staging;
} staging_job;

static void stage_list(const staging_job *job, const lp_cuda_input *mine, int32_t *sort_buffer)
{
    const int32_t *ids = (const int32_t *)job->run->inputs[mine->value->slot];
    int64_t elements = (int64_t)lp_run_rows(job->run, mine->value) * mine->value->cols;
    lp_cuda_list_fill(&mine->layout, job->staging + mine->list_offset, ids, elements, sort_buffer);
}

/* One task for each sorted list; the last task copies the inputs. */
static void stage_part(void *context, int task, int worker)
{
    const staging_job *job = (const staging_job *)context;
    const lp_cuda_upload *upload = job->upload;
    if (task < upload->list_count) {
        stage_list(job, upload->lists[task], upload->sort_buffers + (size_t)worker * upload->sort_buffer_size);
        return;
    }
    for (int slot = 0; slot < upload->input_count; slot++) {
        const lp_cuda_input *mine = &upload->inputs[slot];
        size_t size = mine->value ? (size_t)lp_run_rows(job->run, mine->value) * row_size(mine->value) : 0;
        if (size)
            memcpy(job->staging + mine->offset, job->run->inputs[slot], size);
    }
}

void lp_cuda_upload_fill(const lp_cuda_upload *upload, const lp_run *run, const lp_train_step *train_step,
                         char *staging)
{
    lp_cuda_shard *shard = (lp_cuda_shard *)staging;
    *shard = lp_cuda_shard();
    for (int type = 0; type < LP_ROWS_COUNT; type++)
        shard->rows[type] = run->rows[type];
    shard->segments = run->segments;
    shard->step = run->step;
    shard->seed = run->seed;
    shard->first_token = run->first_token;
    memcpy(staging + upload->segment_offset, run->segment, ((size_t)run->segments + 1) * sizeof(int32_t));
    lp_cuda_attention_order(run->segment, run->segments, run->plan->largest.rows[LP_ROWS_TOKENS],
                            (int32_t *)(staging + upload->order_offset));
    if (train_step)
        lp_cuda_adam_fill(train_step, (const float *)lp_run_data(run, train_step->loss),
                          (lp_cuda_adam_args *)(staging + upload->adam_offset));
    staging_job job = {upload, run, staging};
    lp_threads_run(upload->threads, upload->list_count + 1, stage_part, &job);
}
