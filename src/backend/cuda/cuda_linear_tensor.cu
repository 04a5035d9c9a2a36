/* cuda_linear_tensor.cu: products with weights on tensor cores, for runs that allow their rounding (cuda_linear.cu has the others).
 *
 * A block of four warps makes 64 x 64 outputs, a warp 16 rows of them, with up to 64 terms at a time in shared memory.
 */
#include "backend/cuda/cuda_linear.h"
#include "backend/cuda/cuda_tile.h"

enum { TILE = LP_LINEAR_TILE, WARPS = 4, TILES = TILE / 8, TERMS = 64 };

/* Floats from row to row in shared memory, so that the lanes of a warp meet each bank once: where they read rows by their group
 * (0 to 7) and columns by their member (0 to 3), and where it is the other way round. */
enum { PITCH = TILE + 4, TURNED_PITCH = TILE + 8 };

/* ---- linear -------------------------------------------------------------------------------------------------- */

/* One panel: x [64 x terms] and weights, transposed [64 outputs x terms], otherwise [terms x 64 outputs]. */
template <bool transpose, tile_moment moment>
__device__ static inline void move_panels(const lp_linear_task &task, float *x, float *w, int count, int row, int col,
                                          int h, int term)
{
    int terms = min((int)TERMS, task.in - term), outs = min((int)TILE, task.out - col), width = tile_pad(terms);
    const float *from = task.x + (size_t)row * task.heads * task.in + (size_t)h * task.in + term;
    const float *weight = task.weight + (size_t)h * task.in * task.out;
    tile_move<true, moment>(x, PITCH, TILE, width, from, (int64_t)task.heads * task.in, count - row, terms);
    if (transpose)
        tile_move<true, moment>(w, PITCH, TILE, width, weight + (size_t)col * task.in + term, task.in, outs, terms);
    else
        tile_move<true, moment>(w, TURNED_PITCH, width, TILE, weight + (size_t)term * task.out + col, task.out, terms,
                                outs);
}

/* sum[j] += x [16 x depth] w_j */
template <bool transpose>
__device__ static inline void multiply_panels(float (&sum)[TILES][4], const float *x, const float *w, int depth)
{
    tile_lane me = tile_lane_now();
    const float *upper = x + (16 * me.warp + me.group) * PITCH, *lower = upper + 8 * PITCH;
    for (int k = me.member; k < depth; k += 8) {
        float left[4] = {upper[k], lower[k], upper[k + 4], lower[k + 4]};
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            const float *right =
                transpose ? w + (8 * j + me.group) * PITCH + k : w + k * TURNED_PITCH + 8 * j + me.group;
            tile_multiply(sum[j], left, right[0], right[transpose ? 4 : 4 * TURNED_PITCH]);
        }
    }
}

/* Grid: (column tiles, row tiles, heads). */
template <bool transpose>
__global__ void __launch_bounds__(WARPS * 32)
    linear_tensor_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, lp_linear_task task)
{
    __shared__ __align__(16) float x[TILE * PITCH];
    __shared__ __align__(16) float w[TILE * TURNED_PITCH];
    int count = lp_rows_now(rows, shard), row = (int)blockIdx.y * TILE, col = (int)blockIdx.x * TILE;
    int h = (int)blockIdx.z;
    if (row >= count)
        return;
    float sum[TILES][4] = {};
    for (int term = 0; term < task.in; term += TERMS) {
        if (term)
            __syncthreads();
        move_panels<transpose, TILE_ASK>(task, x, w, count, row, col, h, term);
        tile_wait();
        move_panels<transpose, TILE_SETTLE>(task, x, w, count, row, col, h, term);
        __syncthreads();
        multiply_panels<transpose>(sum, x, w, tile_pad(min((int)TERMS, task.in - term)));
    }
    tile_lane me = tile_lane_now();
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            lp_linear_store(task, count, row + 16 * me.warp + me.group + i / 2 * 8, h,
                            col + 8 * j + 2 * me.member + i % 2, sum[j][i]);
}

void lp_cuda_linear_tensor(const lp_cuda_run *run, lp_cuda_rows rows, int largest, lp_linear_task task, bool transpose)
{
    dim3 grid(lp_blocks(task.out, TILE), lp_blocks(largest, TILE), (unsigned)task.heads);
    if (transpose)
        LP_LAUNCH(run, linear_tensor_kernel<true>, grid, WARPS * 32, 0, run->shard, rows, task);
    else
        LP_LAUNCH(run, linear_tensor_kernel<false>, grid, WARPS * 32, 0, run->shard, rows, task);
}

/* ---- outer products ------------------------------------------------------------------------------------------ */

enum { DEPTH = 32 }; /* rows at a time */

/* DEPTH rows of both factors from `begin` on. */
template <tile_moment moment>
__device__ static inline void move_rows(const lp_outer_task &task, float *p, float *q, int begin, int end, int row,
                                        int col, int h)
{
    int present = min((int)DEPTH, end - begin);
    tile_move<true, moment>(p, TURNED_PITCH, DEPTH, TILE, task.p + ((size_t)begin * task.heads + h) * task.a + row,
                            (int64_t)task.heads * task.a, present, min((int)TILE, task.a - row));
    tile_move<true, moment>(q, TURNED_PITCH, DEPTH, TILE, task.q + ((size_t)begin * task.heads + h) * task.b + col,
                            (int64_t)task.heads * task.b, present, min((int)TILE, task.b - col));
}

/* sum[j] += p^T q_j over DEPTH rows. */
__device__ static inline void multiply_rows(float (&sum)[TILES][4], const float *p, const float *q)
{
    tile_lane me = tile_lane_now();
    for (int k = me.member; k < DEPTH; k += 8) {
        const float *left_row = p + k * TURNED_PITCH + 16 * me.warp + me.group,
                    *right_row = q + k * TURNED_PITCH + me.group;
        float left[4] = {left_row[0], left_row[8], left_row[4 * TURNED_PITCH], left_row[4 * TURNED_PITCH + 8]};
#pragma unroll
        for (int j = 0; j < TILES; j++)
            tile_multiply(sum[j], left, right_row[8 * j], right_row[8 * j + 4 * TURNED_PITCH]);
    }
}

/* Grid: (tiles, chunks, heads). The next rows are on their way while these are multiplied. */
__global__ void __launch_bounds__(WARPS * 32)
    outer_tensor_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, lp_outer_task task)
{
    __shared__ __align__(16) float p[2][DEPTH * TURNED_PITCH];
    __shared__ __align__(16) float q[2][DEPTH * TURNED_PITCH];
    int count = lp_rows_now(rows, shard), each = lp_chunk_rows(count, (int)gridDim.y, DEPTH);
    int begin = (int)blockIdx.y * each, end = min(begin + each, count), h = (int)blockIdx.z;
    int across = (task.b + TILE - 1) / TILE;
    int row = (int)blockIdx.x / across * TILE, col = (int)blockIdx.x % across * TILE;
    float sum[TILES][4] = {};
    if (begin < end)
        move_rows<TILE_ASK>(task, p[0], q[0], begin, end, row, col, h);
    for (int turn = 0; begin < end; begin += DEPTH, turn ^= 1) {
        tile_wait();
        move_rows<TILE_SETTLE>(task, p[turn], q[turn], begin, end, row, col, h);
        __syncthreads();
        if (begin + DEPTH < end)
            move_rows<TILE_ASK>(task, p[turn ^ 1], q[turn ^ 1], begin + DEPTH, end, row, col, h);
        multiply_rows(sum, p[turn], q[turn]);
        __syncthreads();
    }
    tile_lane me = tile_lane_now();
    float *out = task.partial + ((size_t)blockIdx.y * task.heads + h) * task.a * task.b;
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int y = row + 16 * me.warp + me.group + i / 2 * 8, x = col + 8 * j + 2 * me.member + i % 2;
            if (y < task.a && x < task.b)
                out[(size_t)y * task.b + x] = sum[j][i];
        }
}

void lp_cuda_outer_tensor(const lp_cuda_run *run, lp_cuda_rows rows, int chunks, lp_outer_task task)
{
    unsigned tiles = lp_blocks(task.a, TILE) * lp_blocks(task.b, TILE);
    LP_LAUNCH(run, outer_tensor_kernel, dim3(tiles, (unsigned)chunks, (unsigned)task.heads), WARPS * 32, 0, run->shard,
              rows, task);
}
