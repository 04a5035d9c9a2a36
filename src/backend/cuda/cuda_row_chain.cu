/* cuda_row_chain.cu: the steps of a chain of nodes by row, and the launch of the kernel that executes them. */
#include "backend/cuda/cuda_row_chain_kernel.h"

#include <initializer_list>

namespace
{

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

template <int n, int each, row_kind kind>
void launch_kind(const lp_cuda_run *run, const row_task &task, int lanes, int largest)
{
    dim3 block((unsigned)lanes, kind == WIDE ? 1 : (unsigned)(THREADS / lanes));
    LP_LAUNCH_PDL(run, (row_chain_kernel<n, each, kind>), lp_blocks(largest, block.y), block, 0, task);
}

/* Lanes of a warp for a row of this many vectors. */
int lanes_of(int vectors)
{
    int lanes = 8;
    while (lanes < 32 && lanes < vectors)
        lanes *= 2;
    return lanes;
}

template <int n> void launch(const lp_cuda_run *run, row_task task, int largest)
{
    int vectors = (int)lp_blocks(task.cols, n), lanes = lanes_of(vectors);
    if (int frequencies = task.steps[0].frequencies) {
        LP_LAUNCH_PDL(run, pair_chain_kernel<n>, lp_blocks((int64_t)largest * frequencies / n, THREADS), THREADS, 0,
                      task);
        return;
    }
    if (vectors <= lanes)
        return launch_kind<n, 1, NARROW>(run, task, lanes, largest);
    if (vectors <= 2 * lanes)
        return launch_kind<n, 2, NARROW>(run, task, lanes, largest);
    if (vectors <= MOST_EACH * lanes)
        return launch_kind<n, MOST_EACH, NARROW>(run, task, lanes, largest);
    while (lanes < WIDE_THREADS && lanes * MOST_EACH < vectors)
        lanes *= 2;
    task.passes = (int)lp_blocks(vectors, lanes * MOST_EACH);
    launch_kind<n, MOST_EACH, WIDE>(run, task, lanes, largest);
}

void launch_parts(const lp_cuda_stages *stages, const lp_stage_part *parts, int count, const lp_cuda_run *run)
{
    const lp_value *shape = lp_step_shape(parts[0].node);
    int largest = lp_cuda_largest(run, shape);
    row_task task = {run->shard, lp_cuda_rows_of(shape), shape->cols, count, 1, {}};
    lp_cuda_steps_build(stages, parts, count, false, run, task.steps);
    lp_with_vector_width(width_of(task), [&](auto by) { launch<decltype(by)::value>(run, task, largest); });
}

} // namespace

unsigned lp_cuda_row_chain_supports(const lp_node *node)
{
    const lp_value *shape = lp_step_shape(node);
    bool fits = !lp_step_input(node, LP_ROLE_WEIGHT) && shape->rows_of != LP_ROWS_FIXED &&
                shape->cols <= WIDE_THREADS * MOST_EACH;
    return fits ? lp_cuda_rule_of(node)->step.outputs : 0;
}

void lp_cuda_row_chain_launch(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    launch_parts(stages, stage->parts, stage->count, run);
}

void lp_cuda_row_node(const lp_node *node, const lp_cuda_run *run)
{
    lp_stage_part part = {node, 0, ~lp_cuda_rule_of(node)->reduction.outputs};
    bool any = false;
    for (int i = 0; i < node->op->output_count; i++)
        any = any || lp_part_computes(&part, i);
    if (any)
        launch_parts(NULL, &part, 1, run);
    lp_cuda_reduce_node(node, run);
}
