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
            const lp_value *value = graph->nodes[i]->inputs[k];
            if (!value || value->storage != LP_STORAGE_INPUT)
                continue;
            lp_cuda_input *mine = &upload->inputs[value->slot];
            mine->value = value;
            const lp_value *sorted_by = lp_cuda_sorted_by(graph->nodes[i], k);
            int64_t ids = sorted_by ? lp_cuda_largest(sizes, sorted_by) : 0;
            mine->ids = ids > mine->ids ? ids : mine->ids;
        }
}

/* The next part of the upload; returns its offset. */
static size_t add_part(lp_cuda_upload *upload, size_t size)
{
    size_t offset = upload->size;
    upload->size += lp_cuda_align(size);
    return offset;
}

bool lp_cuda_upload_plan(lp_cuda_upload *upload, const lp_cuda_run *sizes, lp_arena *arena)
{
    const lp_run *run = sizes->run;
    const int64_t *largest = run->plan->largest.rows;
    *upload = lp_cuda_upload();
    upload->input_count = run->plan->graph->input_count;
    upload->inputs = (lp_cuda_input *)lp_arena_alloc(arena, ((size_t)upload->input_count + 1) * sizeof *upload->inputs);
    if (!upload->inputs)
        return false;
    find_inputs(upload, sizes);
    size_t segments = (size_t)sizes->largest_segments + 1,
           order = lp_cuda_attention_order_count(largest[LP_ROWS_TOKENS]);
    add_part(upload, sizeof(lp_cuda_shard));
    upload->segment_offset = add_part(upload, (segments + order) * sizeof(int32_t));
    upload->order_offset = upload->segment_offset + segments * sizeof(int32_t);
    upload->adam_offset = add_part(upload, run->gradients ? lp_cuda_adam_size(largest[LP_ROWS_ITEMS]) : 0);
    for (int slot = 0; slot < upload->input_count; slot++) {
        lp_cuda_input *mine = &upload->inputs[slot];
        int64_t rows = mine->value ? lp_cuda_largest(sizes, mine->value) : 0;
        mine->offset = add_part(upload, rows ? (size_t)rows * row_size(mine->value) : 0);
        mine->list_offset = add_part(upload, mine->ids ? lp_cuda_lists_size(mine->ids, rows * mine->value->cols) : 0);
    }
    return true;
}

/* ---- filling an upload ----------------------------------------------------------------------------------------- */

typedef struct staging_job {
    const lp_cuda_upload *upload;
    const lp_run *run;
    char *staging;
} staging_job;

/* A task for each input: copies it and sorts its ids. */
static void stage_input(void *context, int slot, int)
{
    const staging_job *job = (const staging_job *)context;
    const lp_cuda_input *mine = &job->upload->inputs[slot];
    size_t rows = mine->value ? (size_t)lp_run_rows(job->run, mine->value) : 0;
    if (rows)
        memcpy(job->staging + mine->offset, job->run->inputs[slot], rows * row_size(mine->value));
    if (mine->ids) {
        lp_cuda_lists lists = lp_cuda_lists_at(job->staging + mine->list_offset, mine->ids, 0);
        lp_cuda_lists_fill(&lists, (const int32_t *)job->run->inputs[slot], (int64_t)rows * mine->value->cols);
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
    int available = lp_threads_available();
    lp_threads_run(available < THREADS ? available : (int)THREADS, upload->input_count, stage_input, &job);
}
