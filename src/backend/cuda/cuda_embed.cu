/* cuda_embed.cu: reductions by id (cuda_by_id.h), and the gradient of an embedding lookup: the sum of dy over the tokens of each id.
 *
 * The host sorts the ids of the shard (lp_cuda_lists). 16 lanes are a group. The groups of an id divide its elements, one for each on
 * average, and their sums are added in order: one launch, no atomics.
 */
#include "backend/cuda/cuda_by_id.h"
#include "backend/cuda/cuda_rows.h"

typedef float real;
#include "formula/score.h"

enum { BLOCK_GROUPS = 16 };                       /* of a block, at least */
enum { LANES = 16, MOST_GROUPS = 32 };            /* of a group; of an id, and of a block */
enum { COLUMNS = 32, VECTORS = COLUMNS / LANES }; /* vectors of n columns: of a block, and of a lane */

/* Elements of an id: their number, and that of the first list, and where they begin in each list, less the elements before. */
typedef struct id_elements {
    int count, first_count, begin[2];
} id_elements;

/* Loads unconditionally, so that all loads are issued at once. */
__device__ static inline int elements_in(const lp_cuda_lists &lists, int id, int *begin)
{
    int index = min(id, lists.largest_ids), ids = *lists.ids, end = lists.starts[index + 1];
    *begin = lists.starts[index];
    return id < ids ? end - *begin : 0;
}

__device__ static inline id_elements elements_of(const lp_by_id &task, int id)
{
    id_elements all = {};
    all.count = all.first_count = elements_in(task.lists[0], id, &all.begin[0]);
    if (task.lists[1].ids)
        all.count += elements_in(task.lists[1], id, &all.begin[1]);
    all.begin[1] -= all.first_count;
    return all;
}

/* The row and the weight of element i of an id. */
__device__ static inline int find_element(const lp_by_id &task, const id_elements &all, int i, float *weight)
{
    bool first = i < all.first_count;
    int row = first ? task.lists[0].order[all.begin[0] + i] : task.lists[1].order[all.begin[1] + i], column = 0;
    if (!first) {
        int element = row;
        row = element / (task.count - 1);
        column = 1 + element - row * (task.count - 1);
    }
    *weight = task.dscores ? *task.dloss * task.dscores[(size_t)row * task.count + column] : 1;
    return row;
}

/* sum += weight * row over elements begin .. end - 1 of an id: a lane has the columns c and on, a vector of n in every LANES * n
 * columns. Each lane looks up row and weight of its own element and passes them on by shuffles. most: elements of any group of this
 * warp. Returns the lane's part of the sum of weights. */
template <int n>
__device__ static inline float sum_elements(lp_vector<n> (&sum)[VECTORS], const lp_by_id &task, const id_elements &all,
                                            int begin, int end, int most, int c, int id)
{
    enum { AHEAD = 2 }; /* rows in flight */
    int lane = (int)threadIdx.x, cols = task.out ? task.cols : 0;
    float weights = 0;
    lp_vector<n> point[VECTORS] = {};
#pragma unroll
    for (int m = 0; m < VECTORS; m++)
        if (task.points && c + m * LANES * n < cols)
            point[m] = lp_vector_load<n>(task.points + (size_t)id * task.cols + c + m * LANES * n);
#pragma unroll 1
    for (; most > 0; most -= LANES, begin += LANES) {
        int count = end - begin, row = 0;
        float weight = 0;
        if (lane < count)
            row = find_element(task, all, begin + lane, &weight);
        weights += weight;
#pragma unroll 1
        for (int k = 0; k < min(most, (int)LANES); k += AHEAD) {
            lp_vector<n> x[AHEAD][VECTORS] = {};
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                const float *from = task.source + (size_t)__shfl_sync(0xFFFFFFFFu, row, k + i, LANES) * task.cols + c;
#pragma unroll
                for (int m = 0; m < VECTORS; m++)
                    if (k + i < count && c + m * LANES * n < cols)
                        x[i][m] = lp_vector_load<n>(from + m * LANES * n);
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                float factor = __shfl_sync(0xFFFFFFFFu, weight, k + i, LANES);
#pragma unroll
                for (int j = 0; j < VECTORS * n; j++)
                    sum[j / n].at[j % n] +=
                        factor * lp_score_by_item(task.score, x[i][j / n].at[j % n], point[j / n].at[j % n]);
            }
        }
    }
    return weights;
}

/* threadIdx: a lane, a group of an id, an id of the block. Block b has the ids b, b + blocks, ...: neighbours are often frequent
 * together, and a block that had several frequent ids would be late. blockIdx.y: a part of the columns. */
template <int n>
__global__ void __launch_bounds__(MOST_GROUPS *LANES, n == 4 ? 2 : 3)
    by_id_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, lp_by_id task)
{
    __shared__ lp_vector<n> sums[MOST_GROUPS][COLUMNS];
    __shared__ float sums_of_weights[MOST_GROUPS];
    int lane = (int)threadIdx.x, groups = (int)blockDim.y, first = (int)threadIdx.z * groups;
    int id = (int)(blockIdx.x + threadIdx.z * gridDim.x), group = (int)threadIdx.y,
        column = (int)blockIdx.y * COLUMNS * n;
    if ((int)blockIdx.x >= lp_rows_now(rows, shard))
        return;
    id_elements all = elements_of(task, id);
    int each = (all.count + groups - 1) / groups, begin = group * each;
    int end = min(begin + each, all.count), most = end - begin;
    most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, LANES));
    lp_vector<n> sum[VECTORS] = {};
    float weights = sum_elements<n>(sum, task, all, begin, end, most, column + n * lane,
                                     min(id, lp_rows_now(rows, shard) - 1));
#pragma unroll
    for (int m = 0; m < VECTORS; m++)
        sums[first + group][lane + m * LANES] = sum[m];
#pragma unroll
    for (int mask = LANES / 2; mask > 0; mask >>= 1)
        weights += __shfl_xor_sync(0xFFFFFFFFu, weights, mask);
    sums_of_weights[first + group] = weights;
    __syncthreads();
    for (int v = group * LANES + lane; id < lp_rows_now(rows, shard) && v < COLUMNS; v += groups * LANES) {
        int c = column + v * n;
        lp_vector<n> total = {};
        float total_weight = 0;
        for (int i = first; i < first + groups; i++) {
#pragma unroll
            for (int j = 0; j < n; j++)
                total.at[j] += sums[i][v].at[j];
            total_weight += sums_of_weights[i];
        }
        if (task.out && c < task.cols)
            lp_vector_store<n>(task.out + (size_t)id * task.cols + c, total, task.adds);
        if (task.weights && c == 0)
            lp_store(&task.weights[id], total_weight, task.weights_add);
    }
}

void lp_cuda_by_id(const lp_cuda_run *run, const lp_value *table, const lp_by_id &task)
{
    int64_t ids = lp_cuda_largest(run, table);
    int elements = max(task.lists[0].largest_elements, task.lists[1].largest_elements), groups = 1;
    while (groups < MOST_GROUPS && groups * ids < elements)
        groups *= 2;
    int each = max(BLOCK_GROUPS / groups, 1);
    lp_with_vector_width(lp_vector_width((uintptr_t)task.source | (uintptr_t)task.out, task.cols), [&](auto by) {
        constexpr int n = decltype(by)::value;
        dim3 blocks(lp_blocks(ids, each), task.out ? lp_blocks(task.cols, COLUMNS * n) : 1);
        LP_LAUNCH(run, by_id_kernel<n>, blocks, dim3(LANES, groups, each), 0, run->shard, lp_cuda_rows_of(table), task);
    });
}

void lp_cuda_embed_gradient(const lp_node *node, const lp_cuda_run *run)
{
    lp_by_id task = {};
    task.lists[0] = lp_cuda_lists_of(run, node->inputs[1]);
    task.source = LP_INPUT(0);
    task.out = LP_OUTPUT(0);
    task.cols = node->outputs[0]->cols;
    task.adds = LP_ADDS(0);
    lp_cuda_by_id(run, node->outputs[0], task);
}
