/* cuda_row_chain.cu: nodes that work row by row, of any width and in every precision, as one launch.
 *
 * The kernel interprets a short list of steps (cuda_steps.h). A team of lanes takes a row through all of them: part of a warp, a
 * warp, or for wide rows a block (cuda_row_steps.h). Nodes of cosines and sines take a thread for some pairs of a row, which is the same in
 * all steps: a chain has only nodes with the same number of them (lp_step_frequencies).
 */
#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_row_steps.h"

#include <initializer_list>

namespace
{

enum { THREADS = 256, BLOCK_THREADS = 32 * ROW_BLOCK_WARPS };
enum { MOST_EACH = 4 }; /* vectors of a lane */

typedef struct row_task {
    const lp_cuda_shard *shard;
    lp_cuda_rows rows;
    int cols, count;
    int passes; /* over the columns: one, but for single steps of very wide rows */
    lp_step steps[LP_ROW_CHAIN_STEPS];
} row_task;

/* ---- the kernels --------------------------------------------------------------------------------------------- */

/* Blocks of a multiprocessor: as many as have registers. A launch waits for memory. */
template <typename shape> constexpr int row_blocks = shape::block ? 1 : shape::each <= 2 ? 5 : shape::n < 4 ? 4 : 3;

/* The second input of a step is loaded during the step before it, where that is possible. */
template <typename shape>
__global__ void __launch_bounds__(shape::block ? BLOCK_THREADS : THREADS, row_blocks<shape>)
    row_chain_kernel(const __grid_constant__ row_task task)
{
    int rows = lp_rows_now(task.rows, task.shard), first = (int)(blockIdx.x * blockDim.y) * shape::rows;
    int row = first + (int)threadIdx.y * shape::rows;
    row_team me = {row, rows - row, (int)threadIdx.x, (int)blockDim.x, task.cols, 0, task.shard};
    lp_pdl_wait();
    lp_pdl_trigger();
    if (first >= rows)
        return;
    row_part<shape> x = {}, y = {}, ahead = {};
#pragma unroll 1
    for (int i = -1; i < task.count; i++) {
        if (i + 1 < task.count && task.steps[i + 1].has & LP_STEP_EARLY)
            row_load<shape>(me, ahead, task.steps[i + 1].rows[LP_STEP_OTHER]);
        if (i > 0 && shape::block)
            __syncthreads();
        else if (i > 0)
            __syncwarp(); /* the first lane stores the moments of a layer norm */
        if (i >= 0)
            row_step<shape>(me, task.steps[i], x, y);
        y = ahead;
    }
    for (int pass = 1; shape::block && pass < task.passes; pass++) {
        me.first += shape::n * shape::each * me.lanes;
        if (task.steps[0].has & LP_STEP_EARLY)
            row_load<shape>(me, y, task.steps[0].rows[LP_STEP_OTHER]);
        row_step<shape>(me, task.steps[0], x, y);
    }
}

/* Multiplies the pairs (c, s) of dy by [cosine, sine; sine, -cosine]: reflect has its input as dy and its output as dx. The gradient also
 * has that of cosines and sines; what it is added to is loaded early, unless it is in the same matrix as dx.
 * copied: dy and x are copies, whose loads need no branches. */
template <int n, bool copied> __device__ inline void reflect(int row, int f, int cols, const lp_step &step)
{
    int count = step.frequencies, heads = cols / (2 * count);
    const size_t angle = (size_t)row * 2 * count + f;
    const float *angles = step.rows[LP_STEP_OTHER].data + angle;
    float *dangles = step.rows[LP_STEP_RESULT_SECOND].data, *old = step.rows[LP_STEP_OLD].data;
    old += old ? (size_t)row * cols : 0;
    bool adds = dangles && step.rows[LP_STEP_OLD_SECOND].data,
         early = adds && dangles != step.rows[LP_STEP_RESULT].data;
    lp_vector<n> cosine = lp_vector_load<n>(angles), sine = lp_vector_load<n>(angles + count), dcosine = {}, dsine = {};
    if (early) {
        dcosine = lp_vector_load<n>(dangles + angle);
        dsine = lp_vector_load<n>(dangles + angle + count);
    }
    auto load_pairs = [&](int which, int h, int c) {
        const lp_step_rows &from = step.rows[which];
        c += f + h * 2 * count;
        if (copied || from.copy)
            return lp_vector_load_bf16<n>(from.copy + (size_t)row * from.copy_stride + c + h * step.gap[which]);
        return lp_vector_load<n>(from.data + (size_t)row * cols + c);
    };
#pragma unroll 1
    for (int h = 0; h < heads; h++) {
        int c = h * 2 * count + f, gaps = h * step.gap[LP_STEP_RESULT];
        lp_vector<n> dc = load_pairs(LP_STEP_MAIN, h, 0), ds = load_pairs(LP_STEP_MAIN, h, count);
        if (dangles)
            row_reflect_angle<n>(dcosine, dsine, load_pairs(LP_STEP_MORE, h, 0), load_pairs(LP_STEP_MORE, h, count), dc,
                                 ds);
        row_reflect<n>(dc, ds, cosine, sine);
        if (old) {
            lp_vector<n> before[2] = {lp_vector_load<n>(old + c), lp_vector_load<n>(old + c + count)};
#pragma unroll
            for (int i = 0; i < n; i++) {
                dc.at[i] += before[0].at[i];
                ds.at[i] += before[1].at[i];
            }
        }
        row_store_vector<n>(step.rows[LP_STEP_RESULT], row, c, dc, gaps);
        row_store_vector<n>(step.rows[LP_STEP_RESULT], row, c + count, ds, gaps);
    }
    if (dangles) {
        lp_vector_store<n>(dangles + angle, dcosine, adds && !early);
        lp_vector_store<n>(dangles + angle + count, dsine, adds && !early);
    }
}

/* Steps of cosines and sines: a thread has n neighbouring pairs of each head of a row. */
template <int n>
__global__ void __launch_bounds__(THREADS, n == 1 ? 5 : 4) pair_chain_kernel(const __grid_constant__ row_task task)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x, vectors = (uint32_t)task.steps[0].frequencies / n;
    int row = (int)(i / vectors), f = n * (int)(i % vectors);
    lp_pdl_wait();
    lp_pdl_trigger();
    if (row >= lp_rows_now(task.rows, task.shard))
        return;
#pragma unroll 1
    for (int k = 0; k < task.count; k++) {
        const lp_step &step = task.steps[k];
        if (n < 4 && step.time)
            row_basis<n>(row, f, step);
        else if (step.rows[LP_STEP_MAIN].copy &&
                 (step.rows[LP_STEP_MORE].copy || !step.rows[LP_STEP_RESULT_SECOND].data))
            reflect<n, true>(row, f, task.cols, step);
        else
            reflect<n, false>(row, f, task.cols, step);
    }
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Floats of a vector: all rows and halves of rows must begin at whole ones. */
int width_of(const row_task &task)
{
    uintptr_t all = 4 * (uintptr_t)task.cols;
    for (int i = 0; i < task.count; i++) {
        const lp_step &step = task.steps[i];
        for (int which : {LP_STEP_MAIN, LP_STEP_OTHER, LP_STEP_OLD, LP_STEP_RESULT})
            all |= (uintptr_t)step.rows[which].data;
        if (step.frequencies) /* those of a layer norm are two numbers a row */
            all |= (uintptr_t)step.rows[LP_STEP_MORE].data | (uintptr_t)step.rows[LP_STEP_RESULT_SECOND].data;
        all |= (uintptr_t)step.factors | (uintptr_t)step.shifts | 4 * (uintptr_t)step.frequencies;
        all |= step.time ? 8 : 0; /* four pairs of a basis would need too many registers */
    }
    return lp_vector_width(all, 0);
}

template <int n, int each, bool block>
void launch_shape(const lp_cuda_run *run, const row_task &task, int lanes, int largest)
{
    dim3 threads((unsigned)lanes, block ? 1 : (unsigned)(THREADS / lanes));
    typedef row_shape<n, each, each == 1 ? 2 : 1, block> shape; /* two rows share the decoding of the steps */
    LP_LAUNCH_PDL(run, row_chain_kernel<shape>, lp_blocks(largest, threads.y * shape::rows), threads, 0, task);
}

template <int n> void launch(const lp_cuda_run *run, row_task task, int largest)
{
    int vectors = (int)lp_blocks(task.cols, n), lanes = 8;
    while (lanes < 32 && lanes < vectors)
        lanes *= 2;
    if (int frequencies = task.steps[0].frequencies) {
        LP_LAUNCH_PDL(run, pair_chain_kernel<n>, lp_blocks((int64_t)largest * frequencies / n, THREADS), THREADS, 0,
                      task);
        return;
    }
    if (vectors <= lanes)
        return launch_shape<n, 1, false>(run, task, lanes, largest);
    if (vectors <= 2 * lanes)
        return launch_shape<n, 2, false>(run, task, lanes, largest);
    if (vectors <= MOST_EACH * lanes)
        return launch_shape<n, MOST_EACH, false>(run, task, lanes, largest);
    while (lanes < BLOCK_THREADS && lanes * MOST_EACH < vectors)
        lanes *= 2;
    task.passes = (int)lp_blocks(vectors, lanes * MOST_EACH);
    launch_shape<n, MOST_EACH, true>(run, task, lanes, largest);
}

} // namespace

unsigned lp_cuda_row_chain_supports(const lp_node *node)
{
    const lp_value *shape = lp_step_shape(node);
    bool fits = !lp_step_input(node, LP_ROLE_WEIGHT) && shape->cols <= BLOCK_THREADS * MOST_EACH;
    return fits ? lp_cuda_rule_of(node)->step.outputs : 0;
}

void lp_cuda_row_chain(const lp_cuda_stages *stages, const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    const lp_value *shape = lp_step_shape(parts[0].node);
    int largest = lp_cuda_largest(run, shape);
    row_task task = {run->shard, lp_cuda_rows_of(shape), shape->cols, count, 1, {}};
    lp_cuda_steps_build(stages, parts, count, false, run, task.steps);
    lp_with_vector_width(width_of(task), [&](auto by) { launch<decltype(by)::value>(run, task, largest); });
}

void lp_cuda_row_node(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, ~lp_cuda_rule_of(node)->reduction.outputs};
    if (lp_outputs_of(node) & part.outputs)
        lp_cuda_row_chain(NULL, &part, 1, run);
    lp_cuda_reduce_node(node, run);
}
