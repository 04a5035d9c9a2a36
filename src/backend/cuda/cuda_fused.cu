/* cuda_fused.cu: executes the steps of a fused kernel (cuda_fused.h), 64 rows to a block of 16 warps.
 *
 * A warp is the team of a row (cuda_row_steps.h) and has four rows. Registers hold the latest narrow result and the latest wide one.
 * Products pass through shared memory: their left operand, which later products may use again, and their result. Four warps have the
 * same 16 rows, both as teams and as tiles of a product. There are two buffers for weights: one is loaded while the current product reads
 * the other.
 */
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_row_steps.h"
#include "backend/cuda/cuda_upload.h"

namespace
{

enum { ROWS = 64, WARPS = 16, THREADS = 32 * WARPS };
enum {
    SIDES = WARPS / (ROWS / 16),
    TILES = LP_FUSED_TILES / SIDES
}; /* warps that share 16 rows; tiles of each in a product */
/* Floats of shared memory: from row to row, 4 modulo 8, so that ldmatrix has no bank conflicts; of half a value. */
enum { STRIDE = LP_FUSED_COLS + 4, HALF = ROWS * STRIDE };

typedef row_shape<2, 1, ROWS / WARPS, false> part_shape;
typedef row_part<part_shape> part;

typedef struct fused_block {
    row_team team;
    int buffer;   /* of the next product's weights: 0 or 1 */
    part result;  /* the latest narrow one */
    part wide[2]; /* halves of the latest wide one */
} fused_block;

/* Tiles of 8 terms in a block of weights: only whether there is a last one is not a compile-time constant. */
__host__ __device__ inline int term_tiles(int cols)
{
    return cols > 8 * (LP_FUSED_TILES - 1) ? LP_FUSED_TILES : LP_FUSED_TILES - 1;
}

__host__ __device__ inline int weight_floats(int cols)
{
    return term_tiles(cols) * LP_FUSED_TILES * 64;
}

/* Shared memory: both halves of a product's left operand, half its result, two buffers for weights, and the steps. */
__device__ inline float *shared_half(int half)
{
    LP_SHARED(float, shared);
    return shared + half * HALF;
}

__device__ inline float *shared_weights(const fused_block &me, int buffer)
{
    return shared_half(3) + buffer * weight_floats(me.team.cols);
}

/* ---- products: y = x W + bias + addend + old value ------------------------------------------------------------ */

__device__ inline void load_weights(const fused_block &me, int buffer, const float *block)
{
    int count = block ? weight_floats(me.team.cols) : 0;
    float *to = shared_weights(me, buffer);
#pragma unroll 2
    for (int i = 4 * (int)threadIdx.x; i < count; i += 4 * THREADS)
        tile_cp_async<4>(to + i, row_global(block) + i);
}

/* The lane's columns of row r of half a value in shared memory. */
__device__ inline lp_vector<2> *shared_vector(int half, int r)
{
    tile_lane me = tile_lane_now();
    return (lp_vector<2> *)(shared_half(half) + (me.warp * part_shape::rows + r) * STRIDE + 2 * me.lane);
}

/* Adds half an x times a block of weights to the sums of the warp: 16 rows by TILES tiles. The tensor core truncates x to tf32: rounding it
 * would cost more instructions than the rest. */
__device__ inline void multiply(const fused_block &me, float (&sum)[TILES][4], const float *x, const float *weights)
{
    int warp = tile_lane_now().warp;
    const float4 *right = (const float4 *)weights + warp % SIDES * (TILES / 2) * 32 + tile_lane_now().lane;
    tile_address from = tile_a_address(x + warp / SIDES * 16 * STRIDE, STRIDE);
    bool all = term_tiles(me.team.cols) == LP_FUSED_TILES;
#pragma unroll
    for (int j = 0; j < LP_FUSED_TILES; j++) {
        if (j == LP_FUSED_TILES - 1 && !all)
            continue;
        float left[4];
        tile_ldmatrix(left, from, 8 * j);
#pragma unroll
        for (int i = 0; i < TILES / 2; i++) {
            float4 two = right[(j * (LP_FUSED_TILES / 2) + i) * 32];
            tile_mma_tf32(sum[2 * i], left, two.x, two.y);
            tile_mma_tf32(sum[2 * i + 1], left, two.z, two.w);
        }
    }
}

/* The left operand to shared memory, unless it is there. */
__device__ inline void share_x(const fused_block &me, const lp_step &step)
{
#pragma unroll 1
    for (int half = 0; half < step.in_halves; half++) {
        part x;
        if (step.has & 1u << LP_STEP_MAIN)
            row_load<part_shape>(me.team, x, step.rows[LP_STEP_MAIN], half * me.team.cols);
        else if (step.has & LP_STEP_FOLLOWS)
            x = step.in_halves == 1 ? me.result : half ? me.wide[1] : me.wide[0];
        else
            return;
#pragma unroll
        for (int r = 0; r < part_shape::rows; r++)
            *shared_vector(half, r) = x.at[r];
    }
}

/* The packed weight is loaded block by block into the two buffers for weights. */
__device__ inline void linear(fused_block &me, const lp_step &step)
{
    int halves = step.halves, in_halves = step.in_halves, last = halves * in_halves - 1, cols = me.team.cols;
    unsigned has = step.has;
    tile_lane lane = tile_lane_now();
    float *tile = shared_half(2) + (lane.warp / SIDES * 16 + lane.group) * STRIDE + lane.warp % SIDES * TILES * 8 +
                  2 * lane.member;
    int added = has & 1u << LP_STEP_OTHER ? (int)LP_STEP_OTHER : (int)LP_STEP_OLD; /* loaded before the product */
    share_x(me, step);
#pragma unroll 1
    for (int to = 0; to < halves; to++) {
        float sum[TILES][4] = {};
        part y = {};
        lp_vector<2> bias[1] = {};
        if (has & 1u << added)
            row_load<part_shape>(me.team, y, step.rows[added], to * cols);
#pragma unroll 1
        for (int from = 0; from < in_halves; from++, me.buffer ^= 1) {
            int block = to * in_halves + from;
            tile_cp_async_wait();
            __syncthreads(); /* x and weights are there, and no warp reads the previous weights any more */
            load_weights(me, me.buffer ^ 1,
                         block < last ? step.weight + (block + 1) * LP_PACK_BLOCK : step.next_weight);
            multiply(me, sum, shared_half(from), shared_weights(me, me.buffer));
        }
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++)
            *(float2 *)(tile + i / 2 * 8 + i % 2 * 8 * STRIDE) =
                make_float2(sum[i / 2][i % 2 * 2], sum[i / 2][i % 2 * 2 + 1]);
        if (has & LP_STEP_FACTORS)
            row_load_factors<part_shape>(me.team, bias, (const float *)step.factors + to * cols);
        __syncthreads();
        row_each<part_shape>(me.team, y, [&](int r, int i) {
            float held = has & LP_STEP_ADDS_REGISTERS ? me.result.at[r].at[i] : 0;
            return y.at[r].at[i] + shared_vector(2, r)->at[i] + bias[0].at[i] + held;
        });
        if (added != LP_STEP_OLD)
            row_add_old<part_shape>(me.team, step, y, 0, to * cols);
        row_store<part_shape>(me.team, step, y, 0, to * cols);
        (halves == 1 ? me.result : to ? me.wide[1] : me.wide[0]) = y;
    }
}

/* ---- time ------------------------------------------------------------------------------------------------------ */

/* reflect: x, u -> y. reflect_gradient: dy, u, x -> dx, du. */
__device__ inline void reflect(fused_block &me, const lp_step &step)
{
    int cols = me.team.cols;
    part c, s;
    auto load_halves = [&](part &one, part &other, int which) {
        row_load<part_shape>(me.team, one, step.rows[which]);
        row_load<part_shape>(me.team, other, step.rows[which], cols);
    };
    auto store_halves = [&](part &one, part &other, int result) {
        row_add_old<part_shape>(me.team, step, one, result);
        row_add_old<part_shape>(me.team, step, other, result, cols);
        row_store<part_shape>(me.team, step, one, result);
        row_store<part_shape>(me.team, step, other, result, cols);
    };
    if (step.has & 1u << LP_STEP_MAIN)
        load_halves(me.wide[0], me.wide[1], LP_STEP_MAIN);
    if (step.has & 1u << LP_STEP_MORE) {
        load_halves(c, s, LP_STEP_MORE);
#pragma unroll
        for (int m = 0; m < part_shape::rows; m++) {
            lp_vector<2> x[2] = {c.at[m], s.at[m]};
            c.at[m] = s.at[m] = {};
            row_reflect_angle<2>(c.at[m], s.at[m], x[0], x[1], me.wide[0].at[m], me.wide[1].at[m]);
        }
        store_halves(c, s, 1);
    }
    load_halves(c, s, LP_STEP_OTHER);
#pragma unroll
    for (int m = 0; m < part_shape::rows; m++)
        row_reflect<2>(me.wide[0].at[m], me.wide[1].at[m], c.at[m], s.at[m]);
    store_halves(me.wide[0], me.wide[1], 0);
}

__device__ inline void basis(const row_team &team, const lp_step &step)
{
#pragma unroll 1
    for (int r = 0; r < part_shape::rows; r++)
        if (row_exists<part_shape>(team, r))
            row_basis<2>(team.row + r, row_column<part_shape>(team, 0), step);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* The steps are copied to shared memory first: kernel parameters have a high latency at their first use. The second input of a step is
 * loaded during the step before it, where that is possible. */
__global__ void __launch_bounds__(THREADS, 2)
    fused_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const lp_step *all_steps, int count)
{
    lp_step *steps = (lp_step *)(shared_half(3) + 2 * weight_floats(cols));
    int present = lp_rows_now(rows, shard), row = (int)blockIdx.x * ROWS + (int)threadIdx.x / 32 * part_shape::rows;
    lp_pdl_trigger();
    if ((int)blockIdx.x * ROWS >= present) {
        lp_pdl_wait();
        return;
    }
    for (int i = (int)threadIdx.x; i < count * (int)(sizeof(lp_step) / 8); i += THREADS)
        ((uint2 *)steps)[i] = ((const uint2 *)all_steps)[i];
    fused_block me = {};
    me.team = {row, present - row, (int)threadIdx.x % 32, 32, cols, 0, shard};
    __syncthreads();
    lp_pdl_wait();
    load_weights(me, 0, steps[0].weight ? steps[0].weight : steps[0].next_weight);
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const lp_step &step = steps[i];
        part y = {};
        __syncwarp();
        if (step.op == LP_OP_LINEAR) {
            linear(me, step);
        } else if (step.op == LP_OP_BASIS) {
            basis(me.team, step);
        } else if (step.frequencies) {
            reflect(me, step);
        } else {
            if (step.has & LP_STEP_EARLY)
                row_load<part_shape>(me.team, y, step.rows[LP_STEP_OTHER]);
            row_step<part_shape>(me.team, step, me.result, y);
        }
    }
}

/* Whether the node has a single head: fused kernels do not support several. A product has the heads of its attributes; elsewhere the
 * widths tell, and gradients that go to one matrix would be added in an order that steps do not have. */
bool one_head(const lp_node *node)
{
    const lp_value *main = lp_step_input(node, LP_ROLE_MAIN);
    if (lp_step_input(node, LP_ROLE_WEIGHT))
        return node->attributes.heads == 1;
    return !main || !lp_cuda_rule_of(node)->step.pairs ||
           (main->cols == lp_step_input(node, LP_ROLE_OTHER)->cols && node->outputs[0] != node->outputs[1]);
}

} // namespace

bool lp_cuda_fused_suits(const lp_graph *graph)
{
    bool suits = true;
    for (int i = 0; i < graph->node_count; i++) {
        const lp_node *node = graph->nodes[i];
        if (lp_step_input(node, LP_ROLE_WEIGHT) && node->outputs[0]->rows_of != LP_ROWS_FIXED)
            suits = suits && (node->inputs[0]->cols <= LP_FUSED_COLS || node->outputs[0]->cols <= LP_FUSED_COLS);
    }
    return suits;
}

unsigned lp_cuda_fused_supports(const lp_node *node)
{
    const lp_step_rule *rule = &lp_cuda_rule_of(node)->step;
    const lp_value *weight = lp_step_input(node, LP_ROLE_WEIGHT);
    int cols = lp_fused_cols(node);
    auto fits = [&](const lp_value *value) { /* it has halves of this many columns */
                                             int halves = lp_fused_halves(value->cols);
                                             return halves && value->cols == halves * cols &&
                                                    value->storage != LP_STORAGE_TABLE_ROWS;
    };
    /* Few rows occupy few warps: concurrent kernels of single nodes are then faster. */
    bool good = rule->outputs && one_head(node) && lp_step_shape(node)->rows_of != LP_ROWS_FIXED &&
                (!weight || weight->rows_of == LP_ROWS_FIXED);
    /* Mean and inverse deviation of a layer norm, which are not halves, are its MORE and its second output. */
    lp_step_role last = rule->pairs ? LP_ROLE_MORE : LP_ROLE_OTHER;
    for (int i = 0; i < LP_STEP_INPUTS; i++)
        if (node->inputs[i] && rule->role[i] >= LP_ROLE_MAIN && rule->role[i] <= last)
            good = good && fits(node->inputs[i]);
    for (int i = 0; i <= rule->pairs; i++)
        if (node->outputs[i] && rule->outputs >> i & 1)
            good = good && fits(node->outputs[i]) &&
                   (weight || lp_fused_halves(node->outputs[i]->cols) == (rule->pairs ? 2 : 1));
    return good ? rule->outputs : 0;
}

void lp_cuda_fused_launch(const lp_cuda_stage *stage, const lp_cuda_run *run)
{
    const lp_step *steps = (const lp_step *)((const char *)run->shard + run->upload->steps_offset) + stage->first_step;
    const lp_value *shape = lp_step_shape(stage->parts[0].node);
    int cols = lp_fused_cols(stage->parts[0].node);
    size_t shared = sizeof(float) * (size_t)(3 * HALF + 2 * weight_floats(cols)) + sizeof *steps * (size_t)stage->count;
    LP_LAUNCH_PDL(run, fused_kernel, lp_blocks(lp_cuda_largest(run, shape), ROWS), THREADS, shared, run->shard,
                  lp_cuda_rows_of(shape), cols, steps, stage->count);
}
