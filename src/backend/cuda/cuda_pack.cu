/* cuda_pack.cu: packs weights into the layout in which fused kernels read them and rounds them: those of parameters at the start of a step,
 * the others behind the stage that computes them. */
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

enum { THREADS = 512, PACK_WEIGHTS = 64 /* of a launch */ };

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
    lp_pdl_wait();
    lp_pdl_trigger();
    float2 *packed = (float2 *)(task.to + half * LP_PACK_BLOCK);
#pragma unroll
    for (int k = (int)threadIdx.x; k < LP_PACK_BLOCK / 2; k += THREADS) {
        /* Element k: pair of tiles k / 64, lane k / 2 % 32, first or second tile. */
        int pair = k >> 6, lane = k >> 1 & 31;
        int term = 8 * (pair / (LP_FUSED_TILES / 2)) + (lane & 3);
        int column = 16 * (pair % (LP_FUSED_TILES / 2)) + 8 * (k & 1) + (lane >> 2);
        float two[2] = {0, 0};
#pragma unroll
        for (int h = 0; h < 2; h++, term += 4) {
            int in = from * task.in + term, out = to * task.out + column;
            int row = task.transpose ? out : in, c = task.transpose ? in : out; /* of the weight */
            if (term < task.in && column < task.out)
                two[h] = tile_round_tf32(task.weight[row * task.stride + c] * (task.scale ? task.scale[c] : 1));
        }
        packed[k] = make_float2(two[0], two[1]);
    }
}

packed_weight weight_of(const lp_cuda_stages *stages, const lp_stage_part *part, const lp_cuda_run *run)
{
    const lp_node *product = part->node, *node = product->inputs[1]->producer;
    int in = product->inputs[0]->cols, in_halves = lp_fused_halves(in);
    int out = product->outputs[0]->cols, out_halves = lp_fused_halves(out);
    /* A weight that no stage writes is a parameter, or the pack scales one. */
    bool scales = part->packed_after < 0 && node;
    const float *weight = scales ? LP_INPUT(0) : (const float *)lp_run_data(run->run, product->inputs[1]);
    return {weight,
            scales ? LP_INPUT(1) : NULL,
            stages->weights + part->packed,
            in / in_halves,
            out / out_halves,
            in_halves,
            out_halves,
            product->inputs[1]->cols,
            product->attributes.transpose};
}

} // namespace

void lp_cuda_pack(const lp_cuda_stages *stages, int stage, const lp_cuda_run *run)
{
    pack_task task = {};
    unsigned count = 0;
    auto launch = [&] {
        LP_LAUNCH_PDL(run, pack_kernel, dim3(count, 4), THREADS, 0, task);
        count = 0;
    };
    for (int s = stage + 1; stages->packed_size && s < stages->count; s++)
        for (int p = 0; stages->all[s].type == LP_STAGE_FUSED && p < stages->all[s].count; p++) {
            const lp_stage_part *part = &stages->all[s].parts[p];
            if (lp_part_is_product(part) && part->packed_after == stage)
                task.weights[count++] = weight_of(stages, part, run);
            if (count == PACK_WEIGHTS)
                launch();
        }
    launch();
}
