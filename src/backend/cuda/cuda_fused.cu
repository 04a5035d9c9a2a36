/* cuda_fused.cu: executes the steps of a fused kernel (cuda_fused.h), 64 rows to a block of four warps.
 *
 * A lane of a warp has two rows, g and g + 8, and two adjacent columns of each tile of 8: four lanes are the team of a row
 * (cuda_row_steps.h). Registers hold the latest narrow result, and beside it the left operand of the latest product or the latest wide
 * result. The block synchronizes only where products exchange the buffers of their weights: one is loaded while the current product
 * reads the other.
 */
#include "backend/cuda/cuda_fused.h"
#include "backend/cuda/cuda_row_steps.h"

namespace
{

enum { ROWS = 64, WARPS = ROWS / 16, THREADS = 32 * WARPS };
enum { WORD_STRIDE = 36 }; /* random words of a row in shared memory: 4 for each tile, without bank conflicts */

typedef row_shape<2, LP_FUSED_TILES, 2, false> strip_shape;
typedef row_part<strip_shape> strip;

typedef struct fused_block {
    float *weights, *next; /* shared memory: of the current product, and of the next */
    uint32_t *words;       /* of the warp */
    strip result;          /* latest narrow one */
    strip x[2];            /* halves of a left operand, or of a wide result */
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

/* ---- products: y = x W + bias + addend + old value ------------------------------------------------------------ */

__device__ inline void load_weights(float *buffer, const float *block, int cols)
{
    if (!block)
        return;
#pragma unroll 4
    for (int i = 4 * (int)threadIdx.x; i < weight_floats(cols); i += 4 * THREADS)
        tile_cp_async<4>(buffer + i, row_global(block) + i);
}

/* sum += x W for half an x and a block of weights. The tensor core truncates x to tf32: rounding it would cost more instructions than the
 * rest. */
__device__ inline void multiply(float (&sum)[LP_FUSED_TILES][4], const strip &x, const float *weights, int cols)
{
    const float4 *right = (const float4 *)weights + tile_lane_now().lane;
    bool all = term_tiles(cols) == LP_FUSED_TILES;
#pragma unroll
    for (int j = 0; j < LP_FUSED_TILES; j++) {
        if (j == LP_FUSED_TILES - 1 && !all)
            continue;
        const float left[4] = {x.at[0][j].at[0], x.at[1][j].at[0], x.at[0][j].at[1], x.at[1][j].at[1]};
#pragma unroll
        for (int i = 0; i < LP_FUSED_TILES / 2; i++) {
            float4 two = right[(j * (LP_FUSED_TILES / 2) + i) * 32];
            tile_mma_tf32(sum[2 * i], left, two.x, two.y);
            tile_mma_tf32(sum[2 * i + 1], left, two.z, two.w);
        }
    }
}

/* Multiplies by the next block of the packed weight, and starts to load the one after it. */
__device__ inline void multiply_next(fused_block &me, float (&sum)[LP_FUSED_TILES][4], const strip &x,
                                     const float *after, int cols)
{
    tile_cp_async_wait();
    __syncthreads(); /* the weights are loaded, and no warp reads the previous ones any more */
    float *weights = me.next;
    me.next = me.weights;
    me.weights = weights;
    load_weights(me.next, after, cols);
    multiply(sum, x, weights, cols);
}

__device__ inline void linear(fused_block &me, const row_team &team, const lp_step &step)
{
    int halves = step.head.halves, in_halves = step.head.in_halves, cols = team.cols;
    unsigned has = step.head.has;
    int loaded = has & 1u << LP_STEP_OTHER ? (int)LP_STEP_OTHER : (int)LP_STEP_OLD; /* before the product */
    if (has & LP_STEP_FOLLOWS)
        me.x[0] = me.result;
    if (has & 1u << LP_STEP_MAIN)
        row_load<strip_shape>(team, me.x[0], row_source_of(step, LP_STEP_MAIN));
    if (has & 1u << LP_STEP_MAIN && in_halves == 2)
        row_load<strip_shape>(team, me.x[1], row_source_of(step, LP_STEP_MAIN, cols));
#pragma unroll 1
    for (int to = 0; to < halves; to++) {
        const float *block = step.weight + to * in_halves * LP_PACK_BLOCK, *next = block + LP_PACK_BLOCK;
        const float *after = to + 1 < halves ? next + (in_halves - 1) * LP_PACK_BLOCK : step.next_weight;
        strip y = {};
        if (has & 1u << loaded)
            row_load<strip_shape>(team, y, row_source_of(step, loaded, to * cols));
        lp_vector<2> bias[LP_FUSED_TILES] = {};
        if (has & LP_STEP_FACTORS)
            row_load_factors<strip_shape>(team, bias, (const float *)step.factors + to * cols);
        float sum[LP_FUSED_TILES][4];
#pragma unroll
        for (int k = 0; k < 4 * LP_FUSED_TILES; k++)
            sum[k / 4][k % 4] = bias[k / 4].at[k % 2];
        if (has & LP_STEP_ADDS_REGISTERS)
#pragma unroll
            for (int k = 0; k < 4 * LP_FUSED_TILES; k++)
                sum[k / 4][k % 4] += me.result.at[k / 2 % 2][k / 4].at[k % 2];
        multiply_next(me, sum, me.x[0], in_halves == 2 ? next : after, cols);
        if (in_halves == 2)
            multiply_next(me, sum, me.x[1], after, cols);
        row_each<strip_shape>(team, y, [&](int r, int m, int i) { return sum[m][2 * r + i] + y.at[r][m].at[i]; });
        row_store<strip_shape>(team, step, y, 0, to * cols, loaded == LP_STEP_OTHER);
        if (halves == 1) {
            me.result = y;
        } else {
            if (to == 1)
                me.x[0] = me.x[1];
            me.x[1] = y;
        }
    }
}

/* ---- other steps ----------------------------------------------------------------------------------------------- */

/* The four lanes of a row draw its random words in turn, a tile each. */
__device__ inline void dropout(fused_block &me, const row_team &team, const lp_step &step)
{
    tile_lane lane = tile_lane_now();
    uint32_t *words = me.words + lane.group * WORD_STRIDE;
    row_load_main<strip_shape>(team, step, me.result);
#pragma unroll
    for (int k = 0; k < LP_FUSED_TILES / 2; k++) {
        int r = k % 2, tile = 4 * (k / 2) + lane.member;
        lp_random_block block = row_random(team, step, r, 8 * tile);
        *(uint4 *)(words + 8 * r * WORD_STRIDE + 4 * tile) =
            make_uint4(block.word[0], block.word[1], block.word[2], block.word[3]);
    }
    __syncwarp();
    row_each<strip_shape>(team, me.result, [&](int r, int m, int i) {
        uint32_t word = words[8 * r * WORD_STRIDE + 4 * m + lane.member];
        return row_dropped(step, me.result.at[r][m].at[i], word >> (16 * i));
    });
    __syncwarp();
    row_store<strip_shape>(team, step, me.result);
}

/* reflect: x, u -> y. reflect_gradient: dy, u, x -> dx, du. */
__device__ inline void reflect(fused_block &me, const row_team &team, const lp_step &step)
{
    int cols = team.cols;
    strip c, s;
    auto load_halves = [&](strip &one, strip &other, int which) {
        row_load<strip_shape>(team, one, row_source_of(step, which));
        row_load<strip_shape>(team, other, row_source_of(step, which, cols));
    };
    auto each_vector = [&](const auto &act) {
#pragma unroll
        for (int k = 0; k < 2 * LP_FUSED_TILES; k++)
            act(k / LP_FUSED_TILES, k % LP_FUSED_TILES);
    };
    if (step.head.has & 1u << LP_STEP_MAIN)
        load_halves(me.x[0], me.x[1], LP_STEP_MAIN);
    if (step.head.has & 1u << LP_STEP_MORE) {
        load_halves(c, s, LP_STEP_MORE);
        each_vector([&](int r, int m) {
            lp_vector<2> dcosine = {}, dsine = {};
            row_reflect_angle<2>(dcosine, dsine, c.at[r][m], s.at[r][m], me.x[0].at[r][m], me.x[1].at[r][m]);
            c.at[r][m] = dcosine;
            s.at[r][m] = dsine;
        });
        row_store<strip_shape>(team, step, c, 1);
        row_store<strip_shape>(team, step, s, 1, cols);
    }
    load_halves(c, s, LP_STEP_OTHER);
    each_vector([&](int r, int m) { row_reflect<2>(me.x[0].at[r][m], me.x[1].at[r][m], c.at[r][m], s.at[r][m]); });
    row_store<strip_shape>(team, step, me.x[0]);
    row_store<strip_shape>(team, step, me.x[1], 0, cols);
}

__device__ inline void basis(const row_team &team, const lp_step &step)
{
#pragma unroll 1
    for (int k = 0; k < 2 * LP_FUSED_TILES; k++) {
        int c = row_column<strip_shape>(team, k / 2);
        if (team.exists(k % 2) && c < team.cols)
            row_basis<2>(team.row + 8 * (k % 2), c, step);
    }
}

/* ---- the kernel ---------------------------------------------------------------------------------------------- */

/* The steps are copied to shared memory first: kernel parameters have a high latency at their first use. */
__global__ void __launch_bounds__(THREADS, 2)
    fused_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int cols, const lp_step *all_steps, int count)
{
    LP_SHARED(float, shared);
    tile_lane lane = tile_lane_now();
    uint32_t *words = (uint32_t *)(shared + 2 * weight_floats(cols));
    lp_step *steps = (lp_step *)(words + ROWS * WORD_STRIDE);
    int present = lp_rows_now(rows, shard), first = (int)blockIdx.x * ROWS;
    lp_pdl_trigger();
    if (first >= present) {
        lp_pdl_wait();
        return;
    }
    for (int i = (int)threadIdx.x; i < count * (int)(sizeof(lp_step) / 8); i += THREADS)
        ((uint2 *)steps)[i] = ((const uint2 *)all_steps)[i];
    row_team team = {first + 16 * lane.warp + lane.group, present, lane.member, 4, cols, 0, shard};
    fused_block me = {shared, shared + weight_floats(cols), words + 16 * lane.warp * WORD_STRIDE, {}, {}};
    __syncthreads();
    lp_pdl_wait();
    load_weights(me.next, steps[0].weight ? steps[0].weight : steps[0].next_weight, cols);
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const lp_step &step = steps[i];
        strip y = {};
        if (step.head.has & LP_STEP_EARLY && step.head.op != LP_OP_LINEAR)
            row_load<strip_shape>(team, y, row_source_of(step, LP_STEP_OTHER));
        switch (step.head.op) {
        case LP_OP_LINEAR:
            linear(me, team, step);
            break;
        case LP_OP_DROPOUT:
            dropout(me, team, step);
            break;
        case LP_OP_BASIS:
            basis(team, step);
            break;
        case LP_OP_REFLECT:
        case LP_OP_REFLECT_GRADIENT:
            reflect(me, team, step);
            break;
        default:
            row_step<strip_shape>(team, step, me.result, y);
        }
    }
}

/* Whether a value has halves of this many columns. */
bool fits(const lp_value *value, int cols)
{
    int halves = lp_fused_halves(value->cols);
    return halves && value->cols == halves * cols && value->storage != LP_STORAGE_TABLE_ROWS;
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
    /* Few rows occupy few warps: concurrent kernels of single nodes are then faster. */
    bool good = rule->outputs && one_head(node) && lp_step_shape(node)->rows_of != LP_ROWS_FIXED &&
                (!weight || weight->rows_of == LP_ROWS_FIXED);
    /* Mean and inverse deviation of a layer norm, which are no halves, are its MORE and its second output. */
    lp_step_role last = rule->pairs ? LP_ROLE_MORE : LP_ROLE_OTHER;
    for (int i = 0; i < LP_STEP_INPUTS; i++)
        if (node->inputs[i] && rule->role[i] >= LP_ROLE_MAIN && rule->role[i] <= last)
            good = good && fits(node->inputs[i], cols);
    for (int i = 0; i <= rule->pairs; i++)
        if (node->outputs[i] && rule->outputs >> i & 1)
            good = good && fits(node->outputs[i], cols) &&
                   (weight || lp_fused_halves(node->outputs[i]->cols) == (rule->pairs ? 2 : 1));
    return good ? rule->outputs : 0;
}

void lp_cuda_fused_launch(const lp_cuda_stage *stage, const lp_step *steps, const lp_cuda_run *run)
{
    const lp_value *shape = lp_step_shape(stage->parts[0].node);
    int cols = lp_fused_cols(stage->parts[0].node);
    size_t shared =
        sizeof(float) * (size_t)(2 * weight_floats(cols) + ROWS * WORD_STRIDE) + sizeof *steps * (size_t)stage->count;
    LP_LAUNCH_PDL(run, fused_kernel, lp_blocks(lp_cuda_largest(run, shape), ROWS), THREADS, shared, run->shard,
                  lp_cuda_rows_of(shape), cols, steps, stage->count);
}
