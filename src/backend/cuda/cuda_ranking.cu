/* cuda_ranking.cu: counts the items that score at least as high as the target of a case (rank_counts.h).
 *
 * Two kernels. In the first a warp takes a case, and a lane an item of the sequence or a negative. In the second a block scores a tile of
 * CASES x ITEMS from shared memory, and a thread EACH_CASES x EACH_ITEMS of it. Both add the terms of a score in the order of the columns,
 * so an item has the same bits in both, and the target ties with itself. */
#include "backend/cuda/cuda_device.h"

typedef float real;
#include "formula/score.h"

namespace
{

enum { LIST_CASES = 8, CASES = 128, ITEMS = 64, DEPTH = 16, EACH_CASES = 8, EACH_ITEMS = 4, THREADS = 256 };
enum { BLOCKS = 1024 }; /* of the second kernel, about: enough for any device */

/* One rounding after each term, which the compiler may not choose differently in another kernel. */
template <lp_score_rule rule> __device__ inline float add_term(float sum, float z, float item)
{
    return rule == LP_SCORE_PRODUCT ? fmaf(z, item, sum) : __fadd_rn(sum, lp_score_term(rule, z, item));
}

template <lp_score_rule rule> __device__ inline float score_of(const lp_rank_job &job, const float *state, int64_t item)
{
    const float *row = job.table + item * job.dims;
    float sum = 0;
    for (int k = 0; k < job.dims; k++)
        sum = add_term<rule>(sum, state[k], row[k]);
    return job.bias ? __fadd_rn(sum, job.bias[item]) : sum;
}

template <lp_score_rule rule> __global__ void count_lists(lp_rank_job job)
{
    int c = (int)(blockIdx.x * LIST_CASES + threadIdx.x / 32), lane = (int)threadIdx.x % 32;
    if (c >= job.count) /* the whole warp */
        return;
    const float *state = job.state + (int64_t)c * job.dims;
    lp_rank_case rank_case = job.cases[c];
    int32_t target = job.target[c];
    float least = score_of<rule>(job, state, target);
    lp_rank_counts counts = {};
    for (int64_t i = job.list_start[rank_case.list] + lane; i < job.list_start[rank_case.list + 1]; i += 32) {
        lp_sequence_item item = job.list_items[i];
        if (item.first >= rank_case.event || item.item == target)
            continue;
        counts.seen++;
        counts.seen_at_least += !(score_of<rule>(job, state, item.item) < least);
    }
    for (int p = 0; p < LP_RANK_POOLS; p++)
        for (int i = lane; i < job.negatives; i += 32) {
            int32_t item = job.negative[((int64_t)c * LP_RANK_POOLS + p) * job.negatives + i];
            counts.negatives_at_least[p] += item >= 0 && !(score_of<rule>(job, state, item) < least);
        }
    counts.seen = lp_warp_sum(counts.seen);
    counts.seen_at_least = lp_warp_sum(counts.seen_at_least);
    for (int p = 0; p < LP_RANK_POOLS; p++)
        counts.negatives_at_least[p] = lp_warp_sum(counts.negatives_at_least[p]);
    if (lane)
        return;
    job.counts[c] = counts;
    job.target_score[c] = least;
}

/* Columns first .. first + DEPTH - 1 of `rows` rows of a matrix, transposed; 0 outside of it, which adds nothing to a score. */
template <int rows, int stride>
__device__ inline void load(float (*to)[stride], const float *from, int64_t row, int64_t row_count, int dims, int first)
{
    for (int i = (int)threadIdx.x; i < rows * DEPTH; i += THREADS) {
        int k = i % DEPTH, r = i / DEPTH;
        to[k][r] = row + r < row_count && first + k < dims ? from[(row + r) * dims + first + k] : 0;
    }
}

template <lp_score_rule rule> __global__ void count_catalogue(lp_rank_job job)
{
    __shared__ float states[DEPTH][CASES + 1], items[DEPTH][ITEMS + 1];
    int first_case = (int)blockIdx.x * CASES, x = (int)threadIdx.x % 16, y = (int)threadIdx.x / 16;
    int found[EACH_CASES] = {};
    float least[EACH_CASES];
    for (int i = 0; i < EACH_CASES; i++) {
        int c = first_case + 16 * i + y;
        least[i] = c < job.count ? job.target_score[c] : 0;
    }
    for (int64_t first = (int64_t)blockIdx.y * ITEMS; first < job.items; first += (int64_t)gridDim.y * ITEMS) {
        float sum[EACH_CASES][EACH_ITEMS] = {};
        for (int column = 0; column < job.dims; column += DEPTH) {
            __syncthreads();
            load<CASES>(states, job.state, first_case, job.count, job.dims, column);
            load<ITEMS>(items, job.table, first, job.items, job.dims, column);
            __syncthreads();
            for (int k = 0; k < DEPTH; k++) {
                float item[EACH_ITEMS];
                for (int j = 0; j < EACH_ITEMS; j++)
                    item[j] = items[k][16 * j + x];
                for (int i = 0; i < EACH_CASES; i++)
                    for (int j = 0; j < EACH_ITEMS; j++)
                        sum[i][j] = add_term<rule>(sum[i][j], states[k][16 * i + y], item[j]);
            }
        }
        for (int j = 0; j < EACH_ITEMS; j++) {
            int64_t item = first + 16 * j + x;
            if (item >= job.items)
                continue;
            float bias = job.bias ? job.bias[item] : 0;
            for (int i = 0; i < EACH_CASES; i++)
                found[i] += !((job.bias ? __fadd_rn(sum[i][j], bias) : sum[i][j]) < least[i]);
        }
    }
    for (int i = 0; i < EACH_CASES; i++) {
        for (int lanes = 8; lanes > 0; lanes >>= 1) /* over the 16 threads of a case */
            found[i] += __shfl_xor_sync(0xFFFFFFFFu, found[i], lanes);
        if (x == 0 && first_case + 16 * i + y < job.count)
            atomicAdd(&job.counts[first_case + 16 * i + y].at_least, found[i]);
    }
}

template <lp_score_rule rule> void count(lp_cuda_device *device, const lp_rank_job *job)
{
    lp_cuda_run run = {};
    run.device = device;
    LP_LAUNCH(&run, count_lists<rule>, (job->count + LIST_CASES - 1) / LIST_CASES, 32 * LIST_CASES, 0, *job);
    int64_t blocks = (job->count + CASES - 1) / CASES, tiles = (job->items + ITEMS - 1) / ITEMS;
    int64_t parts = blocks < BLOCKS ? BLOCKS / blocks : 1;
    dim3 grid((unsigned)blocks, (unsigned)(parts < tiles ? parts : tiles));
    LP_LAUNCH(&run, count_catalogue<rule>, grid, THREADS, 0, *job);
}

} // namespace

void lp_cuda_count_ranks(lp_cuda_device *device, const lp_rank_job *job)
{
    static void (*const rules[])(lp_cuda_device *, const lp_rank_job *) = {count<LP_SCORE_PRODUCT>, count<LP_SCORE_L2>,
                                                                           count<LP_SCORE_L1>};
    if (job->count > 0)
        rules[job->rule](device, job);
}
