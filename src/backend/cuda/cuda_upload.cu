/* cuda_upload.cu: plans the offsets of an upload, and fills it from a run on several threads. Ids are grouped by a counting sort. */
#include "backend/cuda/cuda_upload.h"

#include "backend/cuda/cuda_adam.h"
#include "backend/cuda/cuda_attention_order.h"
#include "backend/cuda/cuda_rules.h"

extern "C" {
#include "base/threads.h"
}

enum { THREADS = 3 };

static size_t row_size(const lp_value *value)
{
    return (size_t)value->cols * lp_type_size(value->type, sizeof(float));
}

/* ---- offsets ------------------------------------------------------------------------------------------------- */

/* Finds the inputs that the node reads, and those whose ids must be sorted, with the number of rows that the ids index. */
static void find_inputs(lp_cuda_upload *upload, const lp_node *node, const lp_cuda_run *sizes)
{
    const lp_cuda_rule *rule = lp_cuda_rule_of(node);
    for (int k = 0; k < node->op->input_count; k++) {
        const lp_value *value = node->inputs[k], *table = NULL;
        if (!value || value->storage != LP_STORAGE_INPUT)
            continue;
        if (rule->by_id >> k & 1)
            table =
                rule->table < LP_NODE_INPUTS ? node->inputs[rule->table] : node->outputs[rule->table - LP_NODE_INPUTS];
        int64_t ids = table ? lp_cuda_largest(sizes, table) : 0;
        lp_cuda_input *mine = &upload->inputs[value->slot];
        mine->value = value;
        mine->ids = ids > mine->ids ? ids : mine->ids;
    }
}

/* The next part of the upload, aligned to 256 bytes; returns its offset. */
static size_t add_part(lp_cuda_upload *upload, size_t size)
{
    size_t offset = upload->size;
    upload->size += (size + 255) / 256 * 256;
    return offset;
}

bool lp_cuda_upload_plan(lp_cuda_upload *upload, const lp_cuda_run *sizes, size_t steps, lp_arena *arena)
{
    const lp_run *run = sizes->run;
    const int64_t *largest = run->plan->largest.rows;
    *upload = lp_cuda_upload();
    upload->input_count = run->plan->graph->input_count;
    upload->inputs = (lp_cuda_input *)lp_arena_alloc(arena, ((size_t)upload->input_count + 1) * sizeof *upload->inputs);
    if (!upload->inputs)
        return false;
    for (int i = 0; i < run->plan->graph->node_count; i++)
        find_inputs(upload, run->plan->graph->nodes[i], sizes);
    size_t segments = (size_t)sizes->largest_segments + 1,
           order = lp_cuda_attention_order_count(largest[LP_ROWS_TOKENS]);
    add_part(upload, sizeof(lp_cuda_shard));
    upload->segment_offset = add_part(upload, (segments + order) * sizeof(int32_t));
    upload->order_offset = upload->segment_offset + segments * sizeof(int32_t);
    upload->adam_offset = add_part(upload, run->gradients ? lp_cuda_adam_size(largest[LP_ROWS_ITEMS]) : 0);
    upload->steps_offset = add_part(upload, steps);
    for (int slot = 0; slot < upload->input_count; slot++) {
        lp_cuda_input *mine = &upload->inputs[slot];
        int64_t rows = mine->value ? lp_cuda_largest(sizes, mine->value) : 0;
        mine->offset = add_part(upload, rows ? (size_t)rows * row_size(mine->value) : 0);
        if (mine->ids) { /* the number of ids and their starts: two more than there are ids, for the counting sort */
            mine->elements = rows * mine->value->cols;
            mine->list_offset = add_part(upload, (size_t)(mine->ids + 3 + mine->elements) * sizeof(int32_t));
        }
    }
    return true;
}

static lp_cuda_lists lists_at(const lp_cuda_input *mine, const char *upload)
{
    const int32_t *ids = (const int32_t *)(upload + mine->list_offset);
    return {ids, ids + 1, ids + 3 + mine->ids, (int)mine->ids, (int)mine->elements};
}

lp_cuda_lists lp_cuda_lists_of(const lp_cuda_run *run, const lp_value *ids)
{
    return lists_at(&run->upload->inputs[ids->slot], (const char *)run->shard);
}

/* ---- filling an upload ----------------------------------------------------------------------------------------- */

/* Stable counting sort. The count of id v is at starts[v + 2]; after the prefix sum, starts[v + 1] is the start of id v, and when all
 * elements are placed it has advanced to the start of id v + 1. */
static void sort_ids(const int32_t *__restrict ids, int32_t elements, int32_t id_count, int32_t *__restrict starts,
                     int32_t *__restrict order)
{
    memset(starts, 0, ((size_t)id_count + 2) * sizeof *starts);
    int32_t *counts = starts + 2, *next = starts + 1;
    for (int32_t i = 0; i < elements; i++)
        counts[ids[i]]++;
    for (int32_t v = 0; v < id_count; v++)
        next[v + 1] += next[v];
    for (int32_t i = 0; i < elements; i++)
        order[next[ids[i]]++] = i;
}

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
        lp_cuda_lists lists = lists_at(mine, job->staging);
        const int32_t *ids = (const int32_t *)job->run->inputs[slot];
        int32_t elements = (int32_t)rows * mine->value->cols, largest = -1;
        for (int32_t i = 0; i < elements; i++)
            largest = ids[i] > largest ? ids[i] : largest;
        *(int32_t *)lists.ids = largest + 1;
        sort_ids(ids, elements, largest + 1, (int32_t *)lists.starts, (int32_t *)lists.order);
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
    if (train_step) {
        lp_cuda_adam_args *args = (lp_cuda_adam_args *)(staging + upload->adam_offset);
        *args = lp_cuda_adam_args_of(train_step, (const float *)lp_run_data(run, train_step->loss));
        if (args->rows)
            memcpy(args + 1, train_step->rows->row, (size_t)args->rows * sizeof(int32_t));
    }
    staging_job job = {upload, run, staging};
    int available = lp_threads_available();
    lp_threads_run(available < THREADS ? available : (int)THREADS, upload->input_count, stage_input, &job);
}
