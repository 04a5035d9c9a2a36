/* cuda_sampled_loss.cu: losses of a target and its negative samples.
 *
 *     s(t, c) = z_t . item_c + bias_c
 *     loss: op.h        dscore: its gradient by score
 *     dz_t = dloss sum_c dscore item_c     ditem_c = dloss sum_t dscore z_t
 *
 * The binary cross-entropy is a sum over scores. The other losses need all scores of a row: its lanes store them in the place of the
 * dscores and read them again, each lane its own, for the sums over the row and then for the dscores.
 *
 * Forward: 8 lanes (a warp, if rows are wide) own a row of z; 512 threads a block. If dz is needed too, the same
 * launch computes it (lp_cuda_sampled_loss_fused). Gradients of items and bias are reductions by id (cuda_by_id.h).
 */
#include "backend/cuda/cuda_by_id.h"
#include "backend/cuda/cuda_sampled_loss.h"
#include "backend/cuda/cuda_reduce.h"

enum { WARPS = 16 };                         /* of a forward block */
enum { NARROW_LANES = 8, NARROW_COLS = 64 }; /* lanes of a row of up to NARROW_COLS columns; otherwise a warp */

/* Inputs of the scores. */
typedef struct loss_inputs {
    const float *z, *items, *bias;
    const int32_t *target, *negative;
    int cols, count; /* scores of a row: 1 + negatives */
    lp_sampled_type type;
    float regularization;
} loss_inputs;

__device__ static inline int item_of(const loss_inputs &in, int row, int i)
{
    return i ? in.negative[(size_t)row * (in.count - 1) + i - 1] : in.target[row];
}

/* dscores, and dz = dloss * sum of dscore * item if it is not NULL. */
typedef struct loss_outputs {
    float *dscores, *dz;
    const float *dloss;
    int accumulate;
} loss_outputs;

/* Index of a lane among the lanes of its row. */
template <int lanes> __device__ static inline int lane_index(void)
{
    return (int)threadIdx.x & (lanes - 1);
}

/* The value of lane k of the row's lanes. */
template <int lanes, typename type> __device__ static inline type lane_value(type value, int k)
{
    return __shfl_sync(0xFFFFFFFFu, value, k, lanes);
}

/* Vectors of n columns that a lane loads of a row, one in every lanes * n columns. Loops over columns and items are
 * not unrolled: all rows run at once, and each instruction is fetched for the first time. */
enum { VECTORS = 4, ITEMS_AHEAD = 2 };

template <int n, int lanes>
__device__ static inline void load_vectors(lp_vector<n> (&x)[VECTORS], const float *row, int first, int cols)
{
#pragma unroll
    for (int m = 0; m < VECTORS; m++) {
        int col = first + m * lanes * n;
        x[m] = {};
        if (col < cols)
            x[m] = lp_vector_load<n>(row + col);
    }
}

/* Scores of a row of z with `count` items, one item ID a lane: lane k receives the score of item k. */
template <int n, int lanes>
__device__ static inline float score_items(const loss_inputs &in, const float *z, int item, int count)
{
    int lane = lane_index<lanes>();
    float score = 0;
#pragma unroll 1
    for (int k = 0; k < count; k += ITEMS_AHEAD) {
        float sum[ITEMS_AHEAD] = {};
#pragma unroll 1
        for (int first = n * lane; first < n * lane + in.cols; first += VECTORS * lanes * n) {
            lp_vector<n> mine[VECTORS], other[ITEMS_AHEAD][VECTORS];
            load_vectors<n, lanes>(mine, z, first, in.cols);
#pragma unroll
            for (int i = 0; i < ITEMS_AHEAD; i++)
                load_vectors<n, lanes>(other[i],
                                       in.items + (size_t)lane_value<lanes>(item, min(k + i, count - 1)) * in.cols,
                                       first, in.cols);
#pragma unroll
            for (int i = 0; i < ITEMS_AHEAD; i++)
#pragma unroll
                for (int m = 0; m < VECTORS; m++)
#pragma unroll
                    for (int j = 0; j < n; j++)
                        sum[i] += mine[m].at[j] * other[i][m].at[j];
        }
#pragma unroll
        for (int i = 0; i < ITEMS_AHEAD; i++) {
#pragma unroll
            for (int mask = lanes / 2; mask > 0; mask >>= 1)
                sum[i] += __shfl_xor_sync(0xFFFFFFFFu, sum[i], mask);
            score = lane == k + i ? sum[i] : score;
        }
    }
    return score;
}

/* dz = (accumulate: dz +) the weighted sum of `count` items, one item ID and weight a lane. dz is NULL for a row that
 * does not exist. */
template <int n, int lanes>
__device__ static inline void add_items(const loss_inputs &in, int item, float weight, int count, float *dz,
                                        int accumulate)
{
    int begin = n * lane_index<lanes>();
#pragma unroll 1
    for (int first = begin; first < begin + in.cols; first += VECTORS * lanes * n) {
        lp_vector<n> sum[VECTORS] = {};
#pragma unroll 1
        for (int k = 0; k < count; k++) {
            lp_vector<n> other[VECTORS];
            float factor = lane_value<lanes>(weight, k);
            load_vectors<n, lanes>(other, in.items + (size_t)lane_value<lanes>(item, k) * in.cols, first, in.cols);
#pragma unroll
            for (int m = 0; m < VECTORS; m++)
#pragma unroll
                for (int j = 0; j < n; j++)
                    sum[m].at[j] += factor * other[m].at[j];
        }
#pragma unroll
        for (int m = 0; m < VECTORS; m++)
            if (dz && first + m * lanes * n < in.cols)
                lp_vector_store<n>(dz + first + m * lanes * n, sum[m], accumulate);
    }
}

/* dscore and loss: -log sigmoid(score) for a target, -log sigmoid(-score) for a negative. */
__device__ static inline float bce_dscore(float score, bool target, float *loss)
{
    float x = target ? -score : score, small = __expf(-fabsf(x));
    *loss = fmaxf(x, 0) + log1pf(small);
    float dscore = __fdividef(x > 0 ? 1 : small, 1 + small);
    return target ? -dscore : dscore;
}

/* Processes a row; returns the lane's part of its loss. Lanes without a row of their own repeat another and store
 * nothing. */
template <int n, int lanes>
__device__ static inline float bce_row(const loss_inputs &in, const loss_outputs &out, int row, bool valid, float dloss)
{
    float loss = 0;
#pragma unroll 1
    for (int first = 0; first < in.count; first += lanes) {
        int i = first + lane_index<lanes>(), count = min(in.count - first, lanes);
        int item = i < in.count ? item_of(in, row, i) : 0;
        float bias = i < in.count ? in.bias[item] : 0, dscore = 0;
        float score = score_items<n, lanes>(in, in.z + (size_t)row * in.cols, item, count) + bias;
        if (i < in.count && valid) {
            float mine;
            dscore = bce_dscore(score, i == 0, &mine);
            loss += mine;
            out.dscores[(size_t)row * in.count + i] = dscore;
        }
        if (out.dz)
            add_items<n, lanes>(in, item, dloss * dscore, count, valid ? out.dz + (size_t)row * in.cols : NULL,
                                out.accumulate || first);
    }
    return loss;
}

template <int lanes> __device__ static inline float lanes_sum(float x)
{
#pragma unroll
    for (int mask = lanes / 2; mask > 0; mask >>= 1)
        x += __shfl_xor_sync(0xFFFFFFFFu, x, mask);
    return x;
}

template <int lanes> __device__ static inline float lanes_largest(float x)
{
#pragma unroll
    for (int mask = lanes / 2; mask > 0; mask >>= 1)
        x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, mask));
    return x;
}

/* log(1 + exp(x)) and its derivative. */
__device__ static inline float softplus_of(float x)
{
    return fmaxf(x, 0) + log1pf(__expf(-fabsf(x)));
}

__device__ static inline float sigmoid_of(float x)
{
    float small = __expf(-fabsf(x));
    return __fdividef(x > 0 ? 1 : small, 1 + small);
}

/* Sums over the negatives of a row: reference_loss.c has the formulas. */
typedef struct row_sums {
    float target, largest, shift; /* shift: min(largest, target) */
    float weights, products;      /* bpr-max: products is the sum of product_of */
    float mean;                   /* bpr-max: of s_j^2; top1-max: the loss */
} row_sums;

/* w_j g(r - s_j) up to a factor that all negatives of a row have in common. */
__device__ static inline float product_of(float s, const row_sums &sums)
{
    return __expf(fminf(s, sums.target) - sums.shift) / (1 + __expf(-fabsf(s - sums.target)));
}

/* The lane's part of the sums, from the scores it stored: row is NULL for lanes that stored none. */
template <int lanes> __device__ static inline row_sums sum_row(const loss_inputs &in, const float *row, float target)
{
    row_sums sums = {target, -INFINITY, 0, 0, 0, 0};
    int lane = lane_index<lanes>(), first = lane ? lane : lanes; /* score 0 is the target's */
    for (int i = first; row && i < in.count; i += lanes)
        sums.largest = fmaxf(sums.largest, row[i]);
    sums.largest = lanes_largest<lanes>(sums.largest);
    sums.shift = fminf(sums.largest, target);
    for (int i = first; row && i < in.count; i += lanes) {
        float s = row[i], weight = __expf(s - sums.largest);
        sums.weights += weight;
        if (in.type == LP_SAMPLED_BPR)
            sums.mean += softplus_of(s - target);
        else if (in.type == LP_SAMPLED_TOP1_MAX)
            sums.mean += weight * (sigmoid_of(s - target) + sigmoid_of(s * s));
        else {
            sums.products += product_of(s, sums);
            sums.mean += weight * s * s;
        }
    }
    sums.weights = lanes_sum<lanes>(sums.weights);
    sums.products = lanes_sum<lanes>(sums.products);
    sums.mean = lanes_sum<lanes>(sums.mean) / (in.type == LP_SAMPLED_BPR ? (float)(in.count - 1) : sums.weights);
    return sums;
}

/* The gradient of a negative's score; its part of the target's gradient is subtracted from *dtarget. */
__device__ static inline float negative_dscore(const loss_inputs &in, const row_sums &sums, float s, float *dtarget)
{
    float above = sigmoid_of(s - sums.target);
    if (in.type == LP_SAMPLED_BPR) {
        float dscore = above / (float)(in.count - 1);
        *dtarget -= dscore;
        return dscore;
    }
    float weight = __expf(s - sums.largest) / sums.weights;
    if (in.type == LP_SAMPLED_TOP1_MAX) {
        float far = sigmoid_of(s * s);
        *dtarget -= weight * above * (1 - above);
        return weight * (above + far - sums.mean + above * (1 - above) + 2 * s * far * (1 - far));
    }
    float product = product_of(s, sums) / sums.products;
    *dtarget -= product * above;
    return weight - product * (1 - above) + in.regularization * weight * (s * s - sums.mean + 2 * s);
}

__device__ static inline float loss_of(const loss_inputs &in, const row_sums &sums)
{
    if (in.type != LP_SAMPLED_BPR_MAX)
        return sums.mean;
    return logf(sums.weights) + sums.largest - logf(sums.products) - sums.shift + in.regularization * sums.mean;
}

/* bce_row for the losses that need all scores of a row. */
template <int n, int lanes>
__device__ static inline float row_loss(const loss_inputs &in, const loss_outputs &out, int row, bool valid,
                                        float dloss)
{
    int lane = lane_index<lanes>();
    float target = 0, dtarget = 0, *mine = valid ? out.dscores + (size_t)row * in.count : NULL;
#pragma unroll 1
    for (int first = 0; first < in.count; first += lanes) {
        int i = first + lane, item = i < in.count ? item_of(in, row, i) : 0;
        float bias = i < in.count ? in.bias[item] : 0;
        float score =
            score_items<n, lanes>(in, in.z + (size_t)row * in.cols, item, min(in.count - first, lanes)) + bias;
        if (first == 0)
            target = lane_value<lanes>(score, 0);
        if (mine && i < in.count)
            mine[i] = score;
    }
    row_sums sums = sum_row<lanes>(in, mine, target);
    for (int i = lane ? lane : lanes; mine && i < in.count; i += lanes)
        mine[i] = negative_dscore(in, sums, mine[i], &dtarget);
    dtarget = lanes_sum<lanes>(dtarget);
    if (mine && lane == 0)
        mine[0] = dtarget;
#pragma unroll 1
    for (int first = 0; out.dz && first < in.count; first += lanes) {
        int i = first + lane, item = i < in.count ? item_of(in, row, i) : 0;
        float weight = mine && i < in.count ? dloss * mine[i] : 0;
        add_items<n, lanes>(in, item, weight, min(in.count - first, lanes),
                            valid ? out.dz + (size_t)row * in.cols : NULL, out.accumulate || first);
    }
    return valid && lane == 0 ? loss_of(in, sums) : 0;
}

/* partial: sum of the losses of each block. */
template <int n, int lanes, bool bce>
__global__ void __launch_bounds__(WARPS * 32, 2)
    loss_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, loss_inputs in, loss_outputs out, double *partial)
{
    int count = lp_rows_now(rows, shard), row = (int)(blockIdx.x * (WARPS * 32 / lanes) + threadIdx.x / lanes);
    float dloss = out.dz ? *out.dloss : 0;
    double mine = 0;
    if (row - (int)(threadIdx.x % 32) / lanes < count)
        mine = (double)(bce ? bce_row<n, lanes>(in, out, min(row, count - 1), row < count, dloss)
                            : row_loss<n, lanes>(in, out, min(row, count - 1), row < count, dloss));
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

/* The loss and the dscores may be computed by two pieces of the node, the dscores first: partial losses belong to the
 * node. */
static void launch_loss(const lp_node *node, const lp_cuda_run *run, loss_outputs out)
{
    const lp_value *z = node->inputs[0];
    bool narrow = z->cols <= NARROW_COLS;
    /* At least one block: the loss of an empty shard is 0. */
    unsigned blocks = lp_blocks(lp_cuda_largest(run, z) + 1, WARPS * 32 / (narrow ? NARROW_LANES : 32));
    /* Each piece lacks the other's output; the producer has both. */
    const lp_value *owner = (node->outputs[0] ? node->outputs[0] : node->outputs[1])->producer->outputs[0];
    double *partial = (double *)lp_cuda_side_buffer(run, owner, blocks * sizeof *partial);
    if (!partial)
        return;
    loss_inputs in = {LP_INPUT(0),
                      LP_INPUT(1),
                      LP_INPUT(2),
                      LP_INPUT_AS(int32_t, 4),
                      LP_INPUT_AS(int32_t, 5),
                      z->cols,
                      1 + node->inputs[5]->cols,
                      node->attributes.sampled,
                      (float)node->attributes.regularization};
    const lp_cuda_shard *shard = run->shard;
    lp_cuda_rows rows = lp_cuda_rows_of(z);
    float *loss = LP_OUTPUT(0);
    out.dscores = LP_OUTPUT(1);
    if (out.dscores)
        lp_with_vector_width(
            lp_vector_width((uintptr_t)in.z | (uintptr_t)in.items | (uintptr_t)out.dz, in.cols), [&](auto by) {
                enum { n = decltype(by)::value };
                bool bce = in.type == LP_SAMPLED_BCE;
                auto kernel = narrow ? (bce ? loss_kernel<n, NARROW_LANES, true> : loss_kernel<n, NARROW_LANES, false>)
                                     : (bce ? loss_kernel<n, 32, true> : loss_kernel<n, 32, false>);
                LP_LAUNCH(run, kernel, blocks, WARPS * 32, 0, shard, rows, in, out, partial);
            });
    if (loss)
        LP_LAUNCH(run, add_losses_kernel, 1, WARPS * 32, 0, partial, (int)blocks, loss);
}

void lp_cuda_sampled_loss(const lp_node *node, const lp_cuda_run *run)
{
    launch_loss(node, run, loss_outputs());
}

void lp_cuda_sampled_loss_fused(const lp_node *loss, const lp_node *gradient, const lp_cuda_run *run)
{
    const lp_node *node = gradient;
    loss_outputs out = {NULL, LP_OUTPUT(0), LP_INPUT(5), LP_ADDS(0)};
    launch_loss(loss, run, out);
}

/* ---- gradient ------------------------------------------------------------------------------------------------ */

enum { PIECE = 32 }; /* elements of an item that a warp sums */

/* Elements of an item: the rows that have it as target, then the rows that have it as negative. */
struct loss_lists {
    lp_cuda_lists targets, negatives;
    const float *dscores, *dloss;
    int count; /* dscores of a row */
    __device__ lp_id_elements elements(int id) const
    {
        lp_id_elements all = {{0, 0}, {0, 0}};
        all.count[0] = lp_elements_of(targets, id, &all.begin[0]);
        all.count[1] = lp_elements_of(negatives, id, &all.begin[1]);
        return all;
    }
    __device__ void find(const lp_id_elements &all, int i, int *row, float *weight) const
    {
        int column = 0;
        if (i < all.count[0]) {
            *row = targets.order[all.begin[0] + i];
        } else {
            int e = negatives.order[all.begin[1] + i - all.count[0]];
            *row = e / (count - 1);
            column = 1 + e - *row * (count - 1);
        }
        *weight = *dloss * dscores[(size_t)*row * count + column];
    }
};

/* The items of a row, weighted by their dscores. */
struct row_terms {
    const loss_inputs &in;
    const float *dscore, *dloss;
    int row_index;
    __device__ void find(int i, int *row, float *weight) const
    {
        *row = item_of(in, row_index, i);
        *weight = *dloss * dscore[i];
    }
};

/* One warp: dz of a row. */
template <int n>
__device__ static inline void state_gradient(const loss_inputs &in, const loss_lists &lists, int row, float *dz,
                                             int accumulate)
{
    row_terms terms = {in, lists.dscores + (size_t)row * in.count, lists.dloss, row};
    for (int first = 0; first < in.cols; first += 32 * n) {
        int col = first + n * (int)(threadIdx.x % 32);
        float weights;
        lp_row_vectors<n, 32> sum =
            lp_weighted_rows<n, 32>(terms, 0, in.count, in.count, in.items, in.cols, in.cols, col, &weights);
        if (col < in.cols)
            lp_vector_store<n>(dz + (size_t)row * in.cols + col, sum.vector[0], accumulate);
    }
}

typedef struct gradient_task {
    loss_inputs in;
    loss_lists lists;
    lp_cuda_rows rows, items;
    lp_by_id_shape shape; /* no blocks: gradients by item are not computed */
    lp_by_id_output to;
    float *dz;
    int accumulate;
} gradient_task;

/* The first blocks own items, the others rows. */
template <int n, int lanes>
__global__ void __launch_bounds__(LP_BY_ID_THREADS) gradient_kernel(const lp_cuda_shard *shard, gradient_task task)
{
    int block = (int)blockIdx.x, by_item = task.shape.blocks;
    if (block < by_item) {
        lp_sum_ids<n, lanes>(task.lists, task.shape, block, lp_rows_now(task.items, shard), task.in.z, task.to);
        return;
    }
    int row = (block - by_item) * (int)(blockDim.x / 32) + (int)(threadIdx.x / 32);
    if (row < lp_rows_now(task.rows, shard))
        state_gradient<n>(task.in, task.lists, row, task.dz, task.accumulate);
}

void lp_cuda_sampled_loss_gradient(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *z = node->inputs[0], *items = node->inputs[1];
    int count = node->inputs[4]->cols;
    gradient_task task = {};
    task.in = {LP_INPUT(0), LP_INPUT(1),    NULL, LP_INPUT_AS(int32_t, 2), LP_INPUT_AS(int32_t, 3), z->cols,
               count,       LP_SAMPLED_BCE, 0};
    task.lists = {lp_cuda_lists_of(run, node->inputs[2]), lp_cuda_lists_of(run, node->inputs[3]), LP_INPUT(4),
                  LP_INPUT(5), count};
    task.rows = lp_cuda_rows_of(z);
    task.items = lp_cuda_rows_of(items);
    int64_t elements = (int64_t)task.lists.targets.largest_elements + task.lists.negatives.largest_elements;
    task.shape = lp_by_id_shape_of(lp_cuda_largest(run, items), elements, PIECE);
    task.to = {LP_OUTPUT(1), LP_OUTPUT(2), z->cols, z->cols, LP_ADDS(1), LP_ADDS(2)};
    if (!task.to.out && !task.to.weights)
        task.shape.blocks = 0;
    task.dz = LP_OUTPUT(0);
    task.accumulate = LP_ADDS(0);
    unsigned rows = task.dz ? lp_blocks(lp_cuda_largest(run, z), LP_BY_ID_THREADS / 32) : 0;
    uintptr_t all = (uintptr_t)task.in.z | (uintptr_t)task.in.items | (uintptr_t)task.to.out | (uintptr_t)task.dz;
    const lp_cuda_shard *shard = run->shard;
    lp_with_vector_width(lp_vector_width(all, z->cols), [&](auto by) {
        lp_with_lanes(task.shape, [&](auto lanes) {
            LP_LAUNCH(run, (gradient_kernel<decltype(by)::value, decltype(lanes)::value>),
                      (unsigned)task.shape.blocks + rows, LP_BY_ID_THREADS, 0, shard, task);
        });
    });
}
