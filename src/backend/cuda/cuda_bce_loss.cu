/* cuda_bce_loss.cu: the choice between a target and its negatives.
 *
 * Forward a few lanes take a row, so that all rows are under way at once, and where the gradient of the row is wanted too they go on to it
 * with what they have: a step of training launches one kernel for both (lp_cuda_choice). Of the gradients by item a warp takes an item.
 */
#include "backend/cuda/cuda_by_id.h"
#include "backend/cuda/cuda_bce_loss.h"
#include "backend/cuda/cuda_reduce.h"

enum { WARPS = 16 };              /* of a block forward */
enum { FEW_LANES = 8, FEW = 64 }; /* lanes for a row of up to so many columns; a warp for others */

/* What the scores are made of. */
typedef struct choice {
    const float *z, *items, *bias;
    const int32_t *target, *negative;
    int cols, count; /* of scores: 1 + negatives */
} choice;

__device__ static inline int item_of(const choice &c, int row, int i)
{
    return i ? c.negative[(size_t)row * (c.count - 1) + i - 1] : c.target[row];
}

/* What is made of the scores: slopes, and where somebody wants it dz = dloss * sum of slope * item. */
typedef struct choice_out {
    float *slopes, *dz;
    const float *dloss;
    int adds;
} choice_out;

/* The lanes of a row, side by side in a warp. */
template <int lanes> __device__ static inline int lane_here(void)
{
    return (int)threadIdx.x & (lanes - 1);
}

/* What lane k of the row's lanes has. */
template <int lanes, typename type> __device__ static inline type lane_has(type value, int k)
{
    return __shfl_sync(0xFFFFFFFFu, value, k, lanes);
}

/* Pieces of n columns that a lane has of a row at once, one after every lanes * n columns. Loops over more of them, and over items, are
 * not unrolled: every row is under way at once, and what counts is that there are few instructions, each of which is new at first. */
enum { PIECES = 4, AHEAD = 2 /* items */ };

template <int n, int lanes>
__device__ static inline void read_pieces(lp_floats<n> (&x)[PIECES], const float *row, int first, int cols)
{
#pragma unroll
    for (int m = 0; m < PIECES; m++) {
        int col = first + m * lanes * n;
        x[m] = {};
        if (col < cols)
            x[m] = lp_read<n>(row + col);
    }
}

/* Products of a row of z with those of `count` items, of which every lane holds one: lane k gets that of item k. */
template <int n, int lanes>
__device__ static inline float score_items(const choice &c, const float *z, int item, int count)
{
    int lane = lane_here<lanes>();
    float score = 0;
#pragma unroll 1
    for (int k = 0; k < count; k += AHEAD) {
        float sum[AHEAD] = {};
#pragma unroll 1
        for (int first = n * lane; first < n * lane + c.cols; first += PIECES * lanes * n) {
            lp_floats<n> mine[PIECES], other[AHEAD][PIECES];
            read_pieces<n, lanes>(mine, z, first, c.cols);
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                read_pieces<n, lanes>(other[i], c.items + (size_t)lane_has<lanes>(item, min(k + i, count - 1)) * c.cols,
                                      first, c.cols);
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
#pragma unroll
                for (int m = 0; m < PIECES; m++)
#pragma unroll
                    for (int j = 0; j < n; j++)
                        sum[i] += mine[m].at[j] * other[i][m].at[j];
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
#pragma unroll
            for (int apart = lanes / 2; apart > 0; apart >>= 1)
                sum[i] += __shfl_xor_sync(0xFFFFFFFFu, sum[i], apart);
            score = lane == k + i ? sum[i] : score;
        }
    }
    return score;
}

/* dz = (adds: dz +) the sum of `count` items, of which every lane holds one, and its weight. dz: NULL where it is not kept. */
template <int n, int lanes>
__device__ static inline void add_items(const choice &c, int item, float weight, int count, float *dz, int adds)
{
    int begin = n * lane_here<lanes>();
#pragma unroll 1
    for (int first = begin; first < begin + c.cols; first += PIECES * lanes * n) {
        lp_floats<n> sum[PIECES] = {};
#pragma unroll 1
        for (int k = 0; k < count; k++) {
            lp_floats<n> other[PIECES];
            float factor = lane_has<lanes>(weight, k);
            read_pieces<n, lanes>(other, c.items + (size_t)lane_has<lanes>(item, k) * c.cols, first, c.cols);
#pragma unroll
            for (int m = 0; m < PIECES; m++)
#pragma unroll
                for (int j = 0; j < n; j++)
                    sum[m].at[j] += factor * other[m].at[j];
        }
#pragma unroll
        for (int m = 0; m < PIECES; m++)
            if (dz && first + m * lanes * n < c.cols)
                lp_write<n>(dz + first + m * lanes * n, sum[m], adds);
    }
}

/* The slope of -log sigmoid(score) for a target, of -log sigmoid(-score) for others; *loss gets it too. */
__device__ static inline float slope_of(float score, bool target, float *loss)
{
    float x = target ? -score : score, small = __expf(-fabsf(x));
    *loss = fmaxf(x, 0) + log1pf(small);
    float slope = __fdividef(x > 0 ? 1 : small, 1 + small);
    return target ? -slope : slope;
}

/* A row; returns what the lane has of its loss. Lanes whose row is not there go along with another, and keep nothing. */
template <int n, int lanes>
__device__ static inline float choose(const choice &c, const choice_out &out, int row, bool there, float dloss)
{
    float loss = 0;
#pragma unroll 1
    for (int first = 0; first < c.count; first += lanes) {
        int i = first + lane_here<lanes>(), count = min(c.count - first, lanes);
        int item = i < c.count ? item_of(c, row, i) : 0;
        float bias = i < c.count ? c.bias[item] : 0, slope = 0;
        float score = score_items<n, lanes>(c, c.z + (size_t)row * c.cols, item, count) + bias;
        if (i < c.count && there) {
            float mine;
            slope = slope_of(score, i == 0, &mine);
            loss += mine;
            out.slopes[(size_t)row * c.count + i] = slope;
        }
        if (out.dz)
            add_items<n, lanes>(c, item, dloss * slope, count, there ? out.dz + (size_t)row * c.cols : NULL,
                                out.adds || first);
    }
    return loss;
}

/* partial: what each block has of the loss. */
template <int n, int lanes>
__global__ void __launch_bounds__(WARPS * 32, 2)
    choice_loss_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, choice c, choice_out out, double *partial)
{
    int count = lp_rows_now(rows, shard), row = (int)(blockIdx.x * (WARPS * 32 / lanes) + threadIdx.x / lanes);
    float dloss = out.dz ? *out.dloss : 0;
    double mine = 0;
    if (row - (int)(threadIdx.x % 32) / lanes < count)
        mine = (double)choose<n, lanes>(c, out, min(row, count - 1), row < count, dloss);
    mine = lp_block_sum<WARPS>(mine);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = mine;
}

__global__ void __launch_bounds__(WARPS * 32) add_losses_kernel(const double *partial, int count, float *loss)
{
    double sum = 0;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < count; i += WARPS * 32)
        sum += partial[i];
    sum = lp_block_sum<WARPS>(sum);
    if (threadIdx.x == 0)
        *loss = (float)sum;
}

/* The loss and the slopes may be made by two pieces of the node, the slopes first: what blocks have of the loss stays the node's own. */
static void launch_choice(const lp_node *node, const lp_cuda_run *run, choice_out out)
{
    const lp_value *z = node->inputs[0];
    bool few = z->cols <= FEW;
    /* One block at the least: an empty shard has a loss too. */
    unsigned blocks = lp_blocks(lp_cuda_largest(run, z) + 1, WARPS * 32 / (few ? FEW_LANES : 32));
    /* Its two pieces share them, each of which lacks what the other makes. */
    const lp_value *beside = (node->outputs[0] ? node->outputs[0] : node->outputs[1])->producer->outputs[0];
    double *partial = (double *)lp_cuda_side_buffer(run, beside, blocks * sizeof *partial);
    if (!partial)
        return;
    choice c = {LP_INPUT(0),
                LP_INPUT(1),
                LP_INPUT(2),
                LP_INPUT_AS(int32_t, 4),
                LP_INPUT_AS(int32_t, 5),
                z->cols,
                1 + node->inputs[5]->cols};
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_rows rows = lp_cuda_rows_of(z);
    float *loss = LP_OUTPUT(0);
    out.slopes = LP_OUTPUT(1);
    if (out.slopes)
        lp_by_width(lp_width((uintptr_t)c.z | (uintptr_t)c.items | (uintptr_t)out.dz, c.cols), [&](auto by) {
            if (few)
                LP_LAUNCH(run, (choice_loss_kernel<decltype(by)::value, FEW_LANES>), blocks, WARPS * 32, 0, shard, rows,
                          c, out, partial);
            else
                LP_LAUNCH(run, (choice_loss_kernel<decltype(by)::value, 32>), blocks, WARPS * 32, 0, shard, rows, c,
                          out, partial);
        });
    if (loss)
        LP_LAUNCH(run, add_losses_kernel, 1, WARPS * 32, 0, partial, (int)blocks, loss);
}

void lp_cuda_bce_loss(const lp_node *node, const lp_cuda_run *run)
{
    launch_choice(node, run, choice_out());
}

void lp_cuda_choice(const lp_node *loss, const lp_node *gradient, const lp_cuda_run *run)
{
    const lp_node *node = gradient;
    choice_out out = {NULL, LP_OUTPUT(0), LP_INPUT(5), LP_ADDS(0)};
    launch_choice(loss, run, out);
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

/* What the gradients by item are summed over: the places whose target an item is, then those which have it for a negative. */
struct choice_lists {
    lp_cuda_lists targets, negatives;
    const float *slopes, *dloss;
    int count; /* slopes of a row */
    __device__ lp_id_elements elements(int id) const
    {
        lp_id_elements all = {{0, 0}, {0, 0}};
        all.count[0] = lp_elements_of(targets, id, &all.begin[0]);
        all.count[1] = lp_elements_of(negatives, id, &all.begin[1]);
        return all;
    }
    __device__ void find(const lp_id_elements &all, int i, int *row, float *weight) const
    {
        int slope = 0;
        if (i < all.count[0]) {
            *row = targets.order[all.begin[0] + i];
        } else {
            int e = negatives.order[all.begin[1] + i - all.count[0]];
            *row = e / (count - 1);
            slope = 1 + e - *row * (count - 1);
        }
        *weight = *dloss * slopes[(size_t)*row * count + slope];
    }
};

/* The items of a row, weighted by their slopes. */
struct row_terms {
    const choice &c;
    const float *slope, *dloss;
    int row_here;
    __device__ void find(int i, int *row, float *weight) const
    {
        *row = item_of(c, row_here, i);
        *weight = *dloss * slope[i];
    }
};

/* A warp: dz of a row = dloss * sum of slope * item */
template <int n>
__device__ static inline void state_gradient(const choice &c, const choice_lists &lists, int row, float *dz, int adds)
{
    row_terms terms = {c, lists.slopes + (size_t)row * c.count, lists.dloss, row};
    for (int first = 0; first < c.cols; first += 32 * n) {
        int col = first + n * (int)(threadIdx.x % 32);
        float weights;
        lp_row_pieces<n, 32> sum = lp_weighted_rows<n, 32>(terms, 0, c.count, c.count, c.items, c.cols, col, &weights);
        if (col < c.cols)
            lp_write<n>(dz + (size_t)row * c.cols + col, sum.piece[0], adds);
    }
}

typedef struct gradient_task {
    choice c;
    choice_lists lists;
    lp_cuda_rows rows, items;
    lp_by_id_shape shape; /* no blocks: nobody wants gradients by item */
    lp_by_id_place to;
    float *dz;
    int adds;
} gradient_task;

/* The first blocks take items, the rest rows: neither waits for the other. */
template <int n, int lanes>
__global__ void __launch_bounds__(LP_BY_ID_MOST_WARPS * 32)
    choice_gradient_kernel(const lp_cuda_shard *shard, gradient_task task)
{
    int block = (int)blockIdx.x, by_item = task.shape.blocks;
    if (block < by_item) {
        lp_sum_ids<n, lanes>(task.lists, block * task.shape.each, task.shape.each, lp_rows_now(task.items, shard),
                             task.c.z, task.to);
        return;
    }
    int row = (block - by_item) * (int)(blockDim.x / 32) + (int)(threadIdx.x / 32);
    if (row < lp_rows_now(task.rows, shard))
        state_gradient<n>(task.c, task.lists, row, task.dz, task.adds);
}

void lp_cuda_bce_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *z = node->inputs[0], *items = node->inputs[1];
    int count = node->inputs[4]->cols;
    gradient_task task = {};
    task.c = {LP_INPUT(0), LP_INPUT(1), NULL, LP_INPUT_AS(int32_t, 2), LP_INPUT_AS(int32_t, 3), z->cols, count};
    task.lists = {lp_cuda_lists_of(run, node->inputs[2]), lp_cuda_lists_of(run, node->inputs[3]), LP_INPUT(4),
                  LP_INPUT(5), count};
    task.rows = lp_cuda_rows_of(z);
    task.items = lp_cuda_rows_of(items);
    task.shape = lp_by_id_shape_of(lp_cuda_largest(run, items), (int64_t)task.lists.targets.largest_elements +
                                                                    task.lists.negatives.largest_elements);
    task.to = {LP_OUTPUT(1), LP_OUTPUT(2), z->cols, LP_ADDS(1), LP_ADDS(2)};
    if (!task.to.out && !task.to.weights)
        task.shape.blocks = 0;
    task.dz = LP_OUTPUT(0);
    task.adds = LP_ADDS(0);
    unsigned rows = task.dz ? lp_blocks(lp_cuda_largest(run, z), task.shape.threads / 32) : 0;
    uintptr_t all = (uintptr_t)task.c.z | (uintptr_t)task.c.items | (uintptr_t)task.to.out | (uintptr_t)task.dz;
    const lp_cuda_shard *shard = run->shard;
    lp_by_width(lp_width(all, z->cols), [&](auto by) {
        lp_by_lanes(task.shape, [&](auto lanes) {
            LP_LAUNCH(run, (choice_gradient_kernel<decltype(by)::value, decltype(lanes)::value>),
                      (unsigned)task.shape.blocks + rows, (unsigned)task.shape.threads, 0, shard, task);
        });
    });
}
