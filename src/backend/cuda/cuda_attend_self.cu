/* cuda_attend_self.cu: joins a row's attention to earlier rows with that to its own key (lp_attend_self). One warp for each
 * row and head. */
#include "backend/cuda/cuda_reduce.h"
#include "backend/cuda/cuda_rows.h"

namespace
{

enum { WARPS = 8 };

typedef struct join_task {
    const lp_cuda_shard *shard;
    const int32_t *segment;
    lp_rows rows_of;
    int heads, cols; /* cols: of a head */
    float scale;
    const float *query, *key, *value, *out, *lse, *dy;
    float *joined, *dquery, *dkey, *dvalue, *dout, *dlse;
    int accumulate; /* bit i: gradient i accumulates */
} join_task;

/* A row and head: false where the warp has none. */
typedef struct join_row {
    int64_t at, stats; /* first column of the head; index in [T x H] */
    bool first, last;  /* of the segment */
} join_row;

__device__ bool row_of(const join_task *task, join_row *row)
{
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, token = i / task->heads;
    if (token >= task->shard->rows[task->rows_of])
        return false;
    int s = lp_segment_of(task->segment, task->shard->segments, (int)token);
    row->stats = i;
    row->at = i * task->cols;
    row->first = task->segment[s] == token;
    row->last = task->segment[s + 1] == token + 1;
    return true;
}

__device__ float warp_dot(const float *a, const float *b, int count)
{
    float sum = 0;
    for (int c = (int)threadIdx.x % 32; c < count; c += 32)
        sum += a[c] * b[c];
    return lp_warp_sum(sum);
}

/* The weight of the row's own key. */
__device__ float own_weight(const join_task *task, const join_row *row)
{
    float score = task->scale * warp_dot(task->query + row->at, task->key + row->at, task->cols);
    return row->first ? 1 : 1 / (1 + expf(task->lse[row->stats - task->heads] - score));
}

__global__ void join_kernel(const __grid_constant__ join_task task)
{
    join_row row;
    if (!row_of(&task, &row))
        return;
    float w = own_weight(&task, &row);
    int64_t before = row.at - (int64_t)task.heads * task.cols;
    for (int c = (int)threadIdx.x % 32; c < task.cols; c += 32)
        task.joined[row.at + c] = w * task.value[row.at + c] + (row.first ? 0 : (1 - w) * task.out[before + c]);
}

__global__ void join_gradient_kernel(const __grid_constant__ join_task task)
{
    join_row row;
    if (!row_of(&task, &row))
        return;
    float w = own_weight(&task, &row), ds = 0;
    int64_t at = row.at, before = at - (int64_t)task.heads * task.cols;
    const float *dy = task.dy + at;
    if (!row.first)
        ds = w * (1 - w) * (warp_dot(dy, task.value + at, task.cols) - warp_dot(dy, task.out + before, task.cols));
    for (int c = (int)threadIdx.x % 32; c < task.cols; c += 32) {
        if (task.dquery)
            lp_store(&task.dquery[at + c], task.scale * ds * task.key[at + c], task.accumulate & 1);
        if (task.dkey)
            lp_store(&task.dkey[at + c], task.scale * ds * task.query[at + c], task.accumulate & 2);
        if (task.dvalue)
            lp_store(&task.dvalue[at + c], w * dy[c], task.accumulate & 4);
        if (task.dout && !row.first)
            lp_store(&task.dout[before + c], (1 - w) * dy[c], task.accumulate & 8);
        if (task.dout && row.last)
            lp_store(&task.dout[at + c], 0, task.accumulate & 8);
    }
    if (task.dlse && threadIdx.x % 32 == 0) {
        if (!row.first)
            lp_store(&task.dlse[row.stats - task.heads], -ds, task.accumulate & 16);
        if (row.last)
            lp_store(&task.dlse[row.stats], 0, task.accumulate & 16);
    }
}

join_task task_of(const lp_node *node, const lp_cuda_run *run)
{
    join_task task = {};
    task.shard = run->shard;
    task.segment = run->segment;
    task.rows_of = node->inputs[0]->rows_of;
    task.heads = node->attributes.heads;
    task.cols = node->inputs[0]->cols / task.heads;
    task.scale = (float)node->attributes.scale;
    task.query = LP_INPUT(0);
    task.key = LP_INPUT(1);
    task.value = LP_INPUT(2);
    task.out = LP_INPUT(3);
    task.lse = LP_INPUT(4);
    task.accumulate = (int)node->accumulate;
    return task;
}

unsigned blocks_of(const lp_node *node, const lp_cuda_run *run)
{
    return lp_blocks((int64_t)lp_cuda_largest(run, node->inputs[0]) * node->attributes.heads, WARPS);
}

} // namespace

void lp_cuda_attend_self(const lp_node *node, const lp_cuda_run *run)
{
    join_task task = task_of(node, run);
    task.joined = LP_OUTPUT(0);
    LP_LAUNCH(run, join_kernel, blocks_of(node, run), WARPS * 32, 0, task);
}

void lp_cuda_attend_self_gradient(const lp_node *node, const lp_cuda_run *run)
{
    join_task task = task_of(node, run);
    task.dy = LP_INPUT(5);
    task.dquery = LP_OUTPUT(0);
    task.dkey = LP_OUTPUT(1);
    task.dvalue = LP_OUTPUT(2);
    task.dout = LP_OUTPUT(3);
    task.dlse = LP_OUTPUT(4);
    LP_LAUNCH(run, join_gradient_kernel, blocks_of(node, run), WARPS * 32, 0, task);
}
