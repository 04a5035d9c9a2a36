/* cuda_pack.cu: packs weights into the layout in which fused kernels read them and rounds them. The same launch also runs small nodes at
 * the start of a step: gathered rows of tables, and frequencies. One launch, because a kernel that waits for several launches starts
 * microseconds later.
 */
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { THREADS = 512 };

enum { PACK_WEIGHTS = 48 }; /* of a launch */

/* A weight to be packed, [in x out] or transposed [out x in]. Block (to, from) of its halves has, for every tile of 8 terms and pair of
 * tiles of 8 columns, a float4 for each lane 4 g + t: terms t and t + 4 of column g in the first tile, and in the second. */
typedef struct packed_weight {
    const float *weight, *scale; /* scale: factor of each column of the weight; NULL: 1 */
    float *to;
    int in, out; /* columns of a half */
    int in_halves, out_halves;
    int stride; /* floats from row to row */
    bool transpose;
} packed_weight;

/* A node that the pack runs: a gather by a warp for each row, or harmonics. */
typedef struct extra_task {
    int blocks;
    lp_cuda_rows rows;
    int cols;
    int harmonics; /* 0: gather */
    const float *from;
    const int32_t *ids;
    void *to;
} extra_task;

typedef struct pack_task {
    const lp_cuda_shard *shard;
    int count; /* of weights */
    packed_weight weights[PACK_WEIGHTS];
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

__device__ inline void run_extra(const extra_task &task, const lp_cuda_shard *shard, int block)
{
    int i = block * THREADS + (int)threadIdx.x, row = i / 32;
    if (task.harmonics) {
        if (i < task.cols)
            ((double *)task.to)[i] = lp_harmonic(task.from, i, task.harmonics);
    } else if (row < lp_rows_now(task.rows, shard)) {
        const float *from = task.from + (size_t)task.ids[row] * task.cols;
#pragma unroll 2
        for (int c = i % 32; c < task.cols; c += 32)
            ((float *)task.to)[(size_t)row * task.cols + c] = from[c];
    }
}

/* Four thread blocks for each weight, one for each pair of halves that it may have, then those of the extra nodes. */
__global__ void __launch_bounds__(THREADS) pack_kernel(const __grid_constant__ pack_task task)
{
    int block = (int)blockIdx.x - 4 * task.count;
    if (block < 0)
        pack_weight(task.weights[blockIdx.x / 4], (int)blockIdx.x % 4);
#pragma unroll
    for (int i = 0; i < LP_PACK_EXTRAS; i++) {
        if (block >= 0 && block < task.extras[i].blocks)
            run_extra(task.extras[i], task.shard, block);
        block -= task.extras[i].blocks;
    }
}

packed_weight weight_of(const lp_cuda_stages *stages, const lp_stage_part *part, const lp_cuda_run *run)
{
    const lp_node *node = part->node, *producer = lp_cuda_packed_producer(node);
    const lp_value *weight = producer ? producer->inputs[0] : node->inputs[1];
    int in = node->inputs[0]->cols, in_halves = lp_fused_halves(in);
    int out = node->outputs[0]->cols, out_halves = lp_fused_halves(out);
    return {(const float *)lp_run_data(run->run, weight),
            producer ? (const float *)lp_run_data(run->run, producer->inputs[1]) : NULL,
            stages->weights + stages->packed[part->number],
            in / in_halves,
            out / out_halves,
            in_halves,
            out_halves,
            weight->cols,
            node->attributes.transpose};
}

extra_task extra_of(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *out = node->outputs[0];
    int harmonics = node->attributes.harmonics, threads = harmonics ? out->cols : 32 * lp_cuda_largest(run, out);
    return {(int)lp_blocks(threads, THREADS), lp_cuda_rows_of(out), out->cols, harmonics, LP_INPUT(0),
            LP_INPUT_AS(int32_t, 1),          LP_OUTPUT_AS(void, 0)};
}

} // namespace

void lp_cuda_pack_launch(const lp_cuda_stages *stages, const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    pack_task task = {};
    unsigned blocks = 0;
    int extras = 0;
    task.shard = run->shard;
    for (int p = 0; p < stage->count; p++) {
        const lp_stage_part *part = &stage->parts[p];
        if (lp_part_is_packed(part)) {
            task.weights[task.count++] = weight_of(stages, part, run);
            blocks += 4;
        } else if (lp_cuda_rule_of(part->node)->pack == LP_PACK_RUN) { /* the others scale a weight */
            task.extras[extras] = extra_of(part->node, run);
            blocks += (unsigned)task.extras[extras++].blocks;
        }
        if (task.count == PACK_WEIGHTS || p + 1 == stage->count) {
            LP_LAUNCH(run, pack_kernel, blocks, THREADS, 0, task);
            task.count = 0;
            blocks = 0;
        }
    }
}
