/* cuda_pack.cu: packs weights into the layout in which fused kernels read them (packed_weight in cuda_fused.h) and rounds them. The same
 * launch also runs small nodes at the start of a step: gathered rows of tables, and frequencies. One launch, because a kernel that waits for
 * several launches starts microseconds later.
 */
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { THREADS = 512 };

/* A node that the pack runs. */
typedef struct extra_task {
    int blocks;
    lp_cuda_rows rows;
    int cols, width, lanes; /* gather: lanes per row, and columns that a lane copies at a time */
    int harmonics;          /* 0: gather */
    const float *from;
    const int32_t *ids;
    void *to;
} extra_task;

typedef struct pack_task {
    const packed_weight *weights;
    int weight_count;
    const lp_cuda_shard *shard;
    extra_task extras[LP_PACK_EXTRAS];
} pack_task;

/* One block (to, from) of the halves of a weight. The loop is unrolled, so that a thread issues all its loads at once. */
__device__ inline void pack_weight(const packed_weight &task, int half)
{
    int to = half / task.in_halves, from = half - to * task.in_halves;
    if (to >= task.out_halves)
        return;
    /* The columns of a transposed weight are the terms of the product. */
    int first = task.transpose ? from * task.in : to * task.out, row = task.transpose ? to * task.out : from * task.in;
    const float *weight = task.weight + row * task.stride + first;
    const float *scale = task.scale ? task.scale + first : NULL;
    float2 *packed = (float2 *)(task.to + half * LP_PACK_BLOCK);
#pragma unroll
    for (int k = (int)threadIdx.x; k < LP_PACK_BLOCK / 2; k += THREADS) {
        /* Element k: pair of tiles k / 64, lane k / 2 % 32, first or second tile. */
        int pair = k >> 6, lane = k >> 1 & 31, j = pair / (LP_FUSED_TILES / 2),
            i = 2 * (pair % (LP_FUSED_TILES / 2)) + (k & 1);
        int term = 8 * j + (lane & 3), column = 8 * i + (lane >> 2);
        int row_step = task.transpose ? 1 : task.stride, column_step = task.transpose ? task.stride : 1;
        float two[2] = {0, 0};
#pragma unroll
        for (int h = 0; h < 2; h++, term += 4)
            if (term < task.in && column < task.out)
                two[h] = weight[term * row_step + column * column_step] *
                         (scale ? scale[task.transpose ? term : column] : 1);
        packed[k] = make_float2(tile_round_tf32(two[0]), tile_round_tf32(two[1]));
    }
}

template <int n> __device__ inline void gather_rows(const extra_task &task, const lp_cuda_shard *shard, int block)
{
    int row = block * (THREADS / task.lanes) + (int)threadIdx.x / task.lanes;
    if (row >= lp_rows_now(task.rows, shard))
        return;
    const float *from = task.from + (size_t)task.ids[row] * task.cols;
    float *to = (float *)task.to + (size_t)row * task.cols;
#pragma unroll 1
    for (int c = n * ((int)threadIdx.x % task.lanes); c < task.cols; c += n * task.lanes)
        lp_vector_store<n>(to + c, lp_vector_load<n>(from + c), 0);
}

__device__ inline void run_extra(const extra_task &task, const lp_cuda_shard *shard, int block)
{
    int i = block * THREADS + (int)threadIdx.x;
    if (task.harmonics && i < task.cols)
        ((double *)task.to)[i] = lp_harmonic(task.from, i, task.harmonics);
    if (task.harmonics)
        return;
    if (task.width == 4)
        gather_rows<4>(task, shard, block);
    else if (task.width == 2)
        gather_rows<2>(task, shard, block);
    else
        gather_rows<1>(task, shard, block);
}

/* Four thread blocks for each weight, one for each pair of halves that it may have, then those of the extra nodes. */
__global__ void __launch_bounds__(THREADS) pack_kernel(const __grid_constant__ pack_task task)
{
    int block = (int)blockIdx.x - 4 * task.weight_count;
    if (block < 0)
        pack_weight(task.weights[blockIdx.x / 4], (int)blockIdx.x % 4);
#pragma unroll
    for (int i = 0; i < LP_PACK_EXTRAS; i++) {
        if (block >= 0 && block < task.extras[i].blocks)
            run_extra(task.extras[i], task.shard, block);
        block -= task.extras[i].blocks;
    }
}

extra_task extra_task_of(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    extra_task task = {};
    task.rows = lp_cuda_rows_of(out);
    task.cols = out->cols;
    task.from = LP_INPUT(0);
    task.to = LP_OUTPUT_AS(void, 0);
    task.harmonics = node->attributes.harmonics;
    if (task.harmonics) {
        task.blocks = (int)lp_blocks(task.cols, THREADS);
        return task;
    }
    task.ids = LP_INPUT_AS(int32_t, 1);
    task.width = lp_vector_width((uintptr_t)task.from | (uintptr_t)task.to, task.cols);
    task.lanes = lp_row_lanes(task.cols, task.width);
    task.blocks = (int)lp_blocks(lp_cuda_largest(run, out), THREADS / task.lanes);
    return task;
}

} // namespace

void lp_cuda_pack_launch(const lp_cuda_stage *stage, const lp_cuda_fused *pack, const lp_cuda_run *run)
{
    pack_task task = {};
    unsigned blocks = 4 * (unsigned)pack->count;
    task.weights = (const packed_weight *)pack->steps;
    task.weight_count = pack->count;
    task.shard = run->shard;
    for (int p = pack->count, i = 0; p < stage->count; p++)
        if (lp_cuda_rule_of(stage->parts[p].node)->pack == LP_PACK_RUN) { /* the others scale a weight */
            task.extras[i] = extra_task_of(stage->parts[p].node, run);
            blocks += (unsigned)task.extras[i++].blocks;
        }
    LP_LAUNCH(run, pack_kernel, blocks, THREADS, 0, task);
}
