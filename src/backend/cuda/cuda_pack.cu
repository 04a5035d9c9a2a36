/* cuda_pack.cu: packs weights into the layout in which fused kernels read them and rounds them: those of parameters at the start of a step,
 * the others behind the stage that computes them. */
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { THREADS = 512, PACK_WEIGHTS = 64 /* of a launch */ };

/* A weight to be packed, [in x out] or transposed [out x in]. Block (to, from) of its halves has, for every tile of 8 terms and pair of
 * tiles of 8 columns, a float4 for each lane 4 g + t: terms 2t and 2t + 1 of column g in the first tile, and in the second. */
typedef struct packed_weight {
    const float *weight;
    float *to;
    int in, out; /* columns of a half */
    int in_halves, out_halves;
    int term_step, column_step; /* floats from term to term and from column to column */
} packed_weight;

typedef struct pack_task {
    packed_weight weights[PACK_WEIGHTS];
} pack_task;

/* blockIdx.y: one block (to, from) of the halves of a weight. The loop is unrolled, so that a thread issues all its loads at once. */
__global__ void __launch_bounds__(THREADS) pack_kernel(const __grid_constant__ pack_task all)
{
    const packed_weight &task = all.weights[blockIdx.x];
    int half = (int)blockIdx.y, to = half / task.in_halves, from = half - to * task.in_halves;
    if (to >= task.out_halves)
        return;
    const float *weight = task.weight + from * task.in * task.term_step + to * task.out * task.column_step;
    float2 *packed = (float2 *)(task.to + half * LP_PACK_BLOCK);
#pragma unroll
    for (int k = (int)threadIdx.x; k < LP_PACK_BLOCK / 2; k += THREADS) {
        /* Element k: pair of tiles k / 64, lane k / 2 % 32, first or second tile. */
        int pair = k >> 6, lane = k >> 1 & 31;
        int term = 8 * (pair / (LP_FUSED_TILES / 2)) + 2 * (lane & 3);
        int column = 16 * (pair % (LP_FUSED_TILES / 2)) + 8 * (k & 1) + (lane >> 2);
        float two[2] = {0, 0};
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (term + h < task.in && column < task.out)
                two[h] = tile_round_tf32(weight[(term + h) * task.term_step + column * task.column_step]);
        packed[k] = make_float2(two[0], two[1]);
    }
}

packed_weight weight_of(const lp_cuda_stages *stages, const lp_stage_part *part, const lp_cuda_run *run)
{
    const lp_node *node = part->node;
    int in = node->inputs[0]->cols, in_halves = lp_fused_halves(in), stride = node->inputs[1]->cols;
    int out = node->outputs[0]->cols, out_halves = lp_fused_halves(out);
    bool transpose = node->attributes.transpose;
    return {LP_INPUT(1),
            stages->weights + stages->packed[part->number],
            in / in_halves,
            out / out_halves,
            in_halves,
            out_halves,
            transpose ? 1 : stride,
            transpose ? stride : 1};
}

} // namespace

void lp_cuda_pack(const lp_cuda_stages *stages, int stage, const lp_cuda_run *run)
{
    pack_task task = {};
    unsigned count = 0;
    auto launch = [&] {
        LP_LAUNCH(run, pack_kernel, dim3(count, 4), THREADS, 0, task);
        count = 0;
    };
    for (int s = stage + 1; stages->packed_size && s < stages->count; s++)
        for (int p = 0; stages->all[s].type == LP_STAGE_FUSED && p < stages->all[s].count; p++) {
            const lp_stage_part *part = &stages->all[s].parts[p];
            if (lp_part_is_product(part) && stages->packed_after[part->number] == stage)
                task.weights[count++] = weight_of(stages, part, run);
            if (count == PACK_WEIGHTS)
                launch();
        }
    launch();
}
