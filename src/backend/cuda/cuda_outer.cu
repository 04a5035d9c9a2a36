/* cuda_outer.cu: outer products over rows that are wide enough for whole tiles: gradients of weights as products
 * (cuda_product.h, in bf16 cuda_product_packed.h or cuda_product_wide.h) whose depth, the rows, is divided into chunks. The
 * group of reductions adds them (cuda_reduction.cu). */
#include "backend/cuda/cuda_linear_wide.h"
#include "backend/cuda/cuda_reduction_task.h"

enum { LEAST = 64, LEAST_AREA = 96 * 128, LEAST_COPY = 32 };

bool lp_cuda_outer_wide(const lp_node *node, bool copies)
{
    if (lp_cuda_rule_of(node)->reduction.type != LP_REDUCTION_OUTER)
        return false;
    int a = node->inputs[0]->cols / node->attributes.heads, b = node->inputs[1]->cols / node->attributes.heads;
    return copies ? a >= LEAST_COPY && b >= LEAST_COPY : a >= LEAST && b >= LEAST && a * b >= LEAST_AREA;
}

typedef linear_shape<64, 6, 1> outer_64; /* two blocks a multiprocessor would spill registers */
typedef linear_shape<128, 6, 1> outer_128;

/* Narrow tiles read more, but a product of few tiles has fewer chunks with them. */
static bool is_narrow(const lp_cuda_run *run, const reduction_task &task)
{
    return wide_supported(run) &&
           task.heads * lp_blocks(task.a, outer_128::rows) * lp_blocks(task.b, outer_128::cols) < 4;
}

int lp_cuda_outer_chunks(const lp_cuda_run *run, const reduction_task &task, int rows)
{
    return product_chunks(task.heads, task.a, is_narrow(run, task) ? 2 * task.b : task.b, rows);
}

void lp_cuda_outer_launch(const lp_node *node, const lp_cuda_run *run, const reduction_task &given)
{
    lp_cuda_copy p = lp_cuda_copy_from(run, node, 0), q = lp_cuda_copy_from(run, node, 1);
    product_task task = {};
    task.shard = run->shard;
    task.rows = product_fixed(given.a);
    task.cols = product_fixed(given.b);
    task.depth = {given.rows, 0, INT32_MAX};
    task.chunks = given.chunks;
    product_outer_copy outer = {};
    outer.store.to = (float *)given.out[0];
    outer.store.stride = given.b;
    outer.store.head = (int64_t)given.a * given.b;
    outer.store.chunk_step = given.step[0];
    outer.store.pairs = lp_vector_width((uintptr_t)given.out[0], given.b) > 1;
    outer.sums = (float *)given.out[1];
    outer.sums_step = given.step[1];
    outer.sums_b = given.q_summed;
    if (p.data) {
        task.a = packed_operand(p, given.a + p.gap);
        task.b = packed_operand(q, given.b + q.gap);
        auto wide = [&](auto shape) {
            typedef decltype(shape) tile;
            linear_launch<false, false, tile>(run, task, outer, given.heads, given.a,
                                              (int)lp_blocks(given.b, tile::cols));
        };
        if (!wide_supported(run))
            packed_launch_copies<false, false, packed_outer, packed_narrow>(run, task, outer, given.heads, given.a,
                                                                            given.b);
        else if (given.b <= outer_64::cols || is_narrow(run, given))
            wide(outer_64());
        else
            wide(outer_128());
    } else {
        task.a = {given.p, given.heads * given.a, given.a, lp_vector_width((uintptr_t)given.p, given.a)};
        task.b = {given.q, given.heads * given.b, given.b, lp_vector_width((uintptr_t)given.q, given.b)};
        product_launch<false, false>(run, task, (const product_outer &)outer, given.heads, given.a, given.b);
    }
}
