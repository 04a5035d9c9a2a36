/* cuda_by_id.h: sums of rows that share an id, without atomics and always in one order.
 *
 * The host has sorted the ids of the shard (cuda_lists.h): a warp sums one piece of up to LP_CUDA_PIECE elements of one id, and
 * ids with several pieces are added up by a second kernel.
 */
#ifndef LP_CUDA_BY_ID_H
#define LP_CUDA_BY_ID_H

#include "backend/cuda/cuda_lists.h"

enum { LP_BY_ID_WARPS = 8 };
static_assert((int)LP_CUDA_PIECE <= 32, "a lane for each element of a piece");

/* Where the sums go: out [ids x cols], weights [ids] or NULL. */
typedef struct lp_by_id_place {
    float *out, *weights;
    int cols;
} lp_by_id_place;

/* A piece by a warp: sum over its elements e of term.weight(e) * row term.row(e) of term.source. */
template <typename term_type>
__global__ void by_id_pieces_kernel(lp_cuda_lists lists, term_type term, lp_by_id_place to, float *partial)
{
    int n = (int)(blockIdx.x * LP_BY_ID_WARPS + threadIdx.x / 32);
    if (n >= lists.counts->pieces)
        return;
    lp_cuda_piece piece = lists.pieces[n];
    int cols = to.cols, lane = (int)(threadIdx.x % 32);
    float *place = piece.place >= 0 ? partial + (size_t)piece.place * (cols + 1) : NULL;
    /* Two columns a lane, so that what is read for both is under way at once. */
    for (int c = lane; to.out && c < cols; c += 64) {
        float sum[2] = {0, 0};
        bool second = c + 32 < cols;
#pragma unroll 4
        for (int k = piece.begin; k < piece.end; k++) {
            int e = lists.order[k];
            float weight = term.weight(e);
            const float *row = term.source + (size_t)term.row(e) * cols + c;
            sum[0] += weight * row[0];
            sum[1] += second ? weight * row[32] : 0;
        }
        for (int i = 0; i < 1 + second; i++)
            if (place)
                place[c + 32 * i] = sum[i];
            else
                to.out[(size_t)piece.id * cols + c + 32 * i] += sum[i];
    }
    if (to.weights) { /* after the columns: the sum of the weights */
        float sum = piece.begin + lane < piece.end ? term.weight(lists.order[piece.begin + lane]) : 0;
        sum = lp_warp_sum(sum);
        if (lane == 0 && place)
            place[cols] = sum;
        else if (lane == 0)
            to.weights[piece.id] += sum;
    }
}

/* The ids with several pieces, each by a warp. A template so that several files may have it. */
template <typename none>
__global__ void by_id_groups_kernel(lp_cuda_lists lists, lp_by_id_place to, const float *partial)
{
    int n = (int)(blockIdx.x * LP_BY_ID_WARPS + threadIdx.x / 32);
    if (n >= lists.counts->groups)
        return;
    lp_cuda_group group = lists.groups[n];
    int cols = to.cols;
    for (int c = (int)(threadIdx.x % 32); c <= cols; c += 32) {
        float sum = 0;
#pragma unroll 4
        for (int k = 0; k < group.count; k++)
            sum += partial[((size_t)group.place + k) * (cols + 1) + c];
        if (c < cols && to.out)
            to.out[(size_t)group.id * cols + c] += sum;
        else if (c == cols && to.weights)
            to.weights[group.id] += sum;
    }
}

/* Bytes of scratch that lp_cuda_sum_by_id wants. */
static inline size_t lp_by_id_scratch(const lp_cuda_lists *lists, int cols)
{
    return (size_t)lists->largest_partial * (size_t)(cols + 1) * sizeof(float);
}

/* Adds the sums to what is there. */
template <typename term_type>
static inline void lp_cuda_sum_by_id(const lp_cuda_run *run, lp_cuda_lists lists, term_type term, lp_by_id_place to,
                                     float *scratch)
{
    LP_LAUNCH(run, by_id_pieces_kernel<term_type>, lp_blocks(lists.largest_pieces, LP_BY_ID_WARPS), LP_BY_ID_WARPS * 32,
              0, lists, term, to, scratch);
    LP_LAUNCH(run, by_id_groups_kernel<void>, lp_blocks(lists.largest_groups, LP_BY_ID_WARPS), LP_BY_ID_WARPS * 32, 0,
              lists, to, scratch);
}

#endif
