/* cuda_outer.cu: outer products over rows that are wide enough for whole tiles: gradients of weights as products
 * (cuda_product.h, in bf16 cuda_product_packed.h) whose depth, the rows, is divided into chunks. The group of reductions adds
 * them (cuda_reduction.cu). */
#include "backend/cuda/cuda_product_packed.h"
#include "backend/cuda/cuda_reduction_task.h"

enum { LEAST = 64, LEAST_AREA = 96 * 128, LEAST_COPY = 32 };

bool lp_cuda_outer_wide(const lp_node *node, bool copies)
{
    if (lp_cuda_rule_of(node)->reduction.type != LP_REDUCTION_OUTER)
        return false;
    int a = node->inputs[0]->cols / node->attributes.heads, b = node->inputs[1]->cols / node->attributes.heads;
    return copies ? a >= LEAST_COPY && b >= LEAST_COPY : a >= LEAST && b >= LEAST && a * b >= LEAST_AREA;
}

int lp_cuda_outer_chunks(const reduction_task &task, int rows)
{
    return product_chunks(task.heads, task.a, task.b, rows);
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
        packed_launch_copies<false, false, packed_outer, packed_narrow>(run, task, outer, given.heads, given.a,
                                                                        given.b);
    } else {
        task.a = {given.p, given.heads * given.a, given.a, lp_vector_width((uintptr_t)given.p, given.a)};
        task.b = {given.q, given.heads * given.b, given.b, lp_vector_width((uintptr_t)given.q, given.b)};
        product_launch<false, false>(run, task, (const product_outer &)outer, given.heads, given.a, given.b);
    }
}
