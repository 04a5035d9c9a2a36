/* cuda_softmax_floats.cu: the softmax loss over a catalogue and its gradient in fp32 and tf32, by products of floats
 * (cuda_product.h). cuda_softmax_loss.cu has it in bf16, and the equations.
 *
 * Scores are stored for a chunk of items at a time. The gradient replaces them by dscores, which two more products read; it computes
 * them again where there are several chunks.
 */
#include "backend/cuda/cuda_product.h"

typedef float real;
#define LP_ROW_LANES 32
#include "formula/softmax_row.h"

namespace
{

/* Scores of a chunk, at most; warps of a block. */
enum { MOST_SCORES = LP_SIZE(128 << 20, 1 << 14), WARPS = 8 };
/* Below every score. Finite, so that no difference of two is NaN. */
#define LEAST_SCORE (-1e30f)

typedef struct chunk_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows targets, items;
    int rows, first, count; /* of the largest shard: targets; the items of the chunk */
    const int32_t *target;
    float *scores;              /* [rows x count], undefined where there is no item; their gradients */
    float *terms;               /* of all items: bias + logq */
    float *lse, *target_scores; /* [rows] */
    double *losses;             /* [rows] */
} chunk_task;

/* A warp for each row: adds a chunk to lse, and computes the loss so far; or with dloss replaces scores by dscores. */
__global__ void __launch_bounds__(32 * WARPS) chunk_kernel(const __grid_constant__ chunk_task task, const float *dloss)
{
    int row = (int)blockIdx.x * WARPS + (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    if (row >= lp_rows_now(task.targets, task.shard))
        return;
    int count = min(lp_rows_now(task.items, task.shard) - task.first, task.count),
        target = task.target[row] - task.first;
    float *mine = task.scores + (size_t)row * task.count;
    for (int c = lane; dloss && c < task.count; c += 32)
        mine[c] = c < count ? *dloss * (expf(mine[c] - task.lse[row]) - (float)(c == target)) : 0;
    if (dloss)
        return;
    float lse = lp_log_sum_exp_row(mine, count, lane), before = task.first ? task.lse[row] : -INFINITY;
    float most = fmaxf(lse, before);
    lse = most + logf(expf(lse - most) + expf(before - most));
    if (lane == 0) {
        if (target >= 0 && target < count)
            task.target_scores[row] = mine[target];
        task.lse[row] = lse;
        task.losses[row] = (double)(lse - task.target_scores[row]);
    }
}

/* to [targets x cols] = a b + bias, or to += it. b_deep: b is transposed in memory. */
template <bool b_deep>
void multiply(const lp_cuda_run *run, const product_task &task, float *to, int cols, const float *bias, int accumulate,
              int rows)
{
    product_store store = {};
    store.to = to;
    store.bias = bias;
    store.stride = cols;
    store.other = accumulate ? to : NULL;
    product_launch<true, b_deep>(run, task, store, 1, rows, cols);
}

/* For one chunk after the other. dloss: NULL: the loss. */
void run_chunks(const lp_node *node, const lp_cuda_run *run, chunk_task task, int items, int each, const float *dloss)
{
    int cols = node->inputs[0]->cols;
    const float *z = LP_INPUT(0);
    product_operand of_z = {z, cols, 0};
    for (task.first = 0; task.first < items; task.first += each) {
        const float *table = LP_INPUT(1) + (size_t)task.first * cols;
        task.count = items - task.first < each ? items - task.first : each;
        product_operand scores = {task.scores, task.count, 0}, of_items = {table, cols, 0};
        if (!dloss || each < items)
            multiply<true>(
                run, {run->shard, task.targets, product_fixed(task.count), product_fixed(cols), 1, of_z, of_items},
                task.scores, task.count, task.terms + task.first, 0, task.rows);
        LP_LAUNCH(run, chunk_kernel, lp_blocks(task.rows, WARPS), 32 * WARPS, 0, task, dloss);
        if (!dloss)
            continue;
        float *dz = LP_OUTPUT(0), *ditems = LP_OUTPUT(1), *dbias = LP_OUTPUT(2);
        if (dz)
            multiply<false>(run,
                            {run->shard, task.targets, product_fixed(cols), task.items, 1, scores, of_items, task.first,
                             task.count},
                            dz, cols, NULL, LP_ADDS(0) || task.first, task.rows);
        lp_cuda_outer(run, task.targets, task.scores, task.count, z, cols,
                      ditems ? ditems + (size_t)task.first * cols : NULL, LP_ADDS(1), dbias ? dbias + task.first : NULL,
                      LP_ADDS(2));
    }
}

} // namespace

void lp_cuda_softmax_floats(const lp_node *node, const lp_cuda_run *run)
{
    bool loss = node->op->id == LP_OP_SOFTMAX_LOSS;
    const lp_value *lse = loss ? node->outputs[1] : node->inputs[5];
    int rows = lp_cuda_largest(run, node->inputs[0]), items = lp_cuda_largest(run, node->inputs[1]);
    int fit = MOST_SCORES / (rows + 1) / 4 * 4 + 4,
        each = items < fit ? items : fit; /* whole 16 bytes of all outputs */
    size_t losses = (size_t)rows / 2 * 2 + 2, floats = (size_t)rows * each + rows + items;
    double *memory = (double *)lp_cuda_side_buffer(run, lse, losses * sizeof *memory + floats * sizeof(float));
    if (!memory)
        return;
    lp_cuda_rows targets = lp_cuda_rows_of(node->inputs[0]), catalogue = lp_cuda_rows_of(node->inputs[1]);
    const int32_t *target = LP_INPUT_AS(int32_t, 4);
    float *scores = (float *)(memory + losses), *target_scores = scores + (size_t)rows * each;
    float *terms = target_scores + rows, *logs = (float *)lp_run_data(run->run, lse);
    chunk_task task = {run->shard, targets, catalogue, rows, 0, 0, target, scores, terms, logs, target_scores, memory};
    const float *bias = LP_INPUT(2), *logq = LP_INPUT(3);
    lp_cuda_each(run, node->inputs[1], loss ? 1 : 0, [=] __device__(int64_t i, int) {
        float term = bias[i] + (logq ? logq[i] : 0);
        terms[i] = term < LEAST_SCORE ? LEAST_SCORE : term; /* NaN stays */
    });
    run_chunks(node, run, task, items, each, loss ? NULL : LP_INPUT(6));
    if (loss)
        lp_cuda_loss_sum(run, task.targets, task.losses, LP_OUTPUT(0));
}
