/* cuda_linear.cu: products with weights.
 *
 * Rows are many (tokens), columns few (tens to hundreds) and the number of rows changes from shard to shard, so the products
 * are our own: tiles of 64 x 64 outputs, 32 terms at a time through shared memory, 4 x 4 outputs a thread. Gradients of
 * weights sum over all rows: those are cut into chunks, whose sums are added in their order.
 */
#include "backend/cuda/cuda_reduce.h"

enum { TILE = 64, TERMS = 32, PITCH = TILE + 4, THREADS = 256 };

/* One factor of a product: element (i, k), where i counts outputs and k terms. */
typedef struct factor {
    const float *data;
    int i_stride, k_stride; /* one of them is 1 */
    int count;              /* of outputs */
} factor;

/* A tile in registers on its way to shared memory: threads that lie side by side read side by side. */
typedef struct lane_tile {
    float x[TILE * TERMS / THREADS];
} lane_tile;

template <bool k_first> __device__ static inline void place_of(int n, int *i, int *k)
{
    int at = n * THREADS + (int)threadIdx.x;
    *i = k_first ? at / TERMS : at % TILE;
    *k = k_first ? at % TERMS : at / TILE;
}

template <bool k_first>
__device__ static inline lane_tile read_tile(const factor &from, int first, int term, int terms_end)
{
    lane_tile tile;
#pragma unroll
    for (int n = 0; n < TILE * TERMS / THREADS; n++) {
        int i, k;
        place_of<k_first>(n, &i, &k);
        bool inside = first + i < from.count && term + k < terms_end;
        tile.x[n] = inside ? from.data[(size_t)(first + i) * from.i_stride + (size_t)(term + k) * from.k_stride] : 0.0f;
    }
    return tile;
}

template <bool k_first> __device__ static inline void keep_tile(float (*shared)[PITCH], const lane_tile &tile)
{
#pragma unroll
    for (int n = 0; n < TILE * TERMS / THREADS; n++) {
        int i, k;
        place_of<k_first>(n, &i, &k);
        shared[k][i] = tile.x[n];
    }
}

/* sum[4][4] += the product of the tile at (row, col) over the terms [begin, end). */
template <bool a_k_first, bool b_k_first>
__device__ static inline void tile_product(const factor &a, const factor &b, int row, int col, int begin, int end,
                                           float sum[4][4])
{
    __shared__ __align__(16) float a_tile[TERMS][PITCH];
    __shared__ __align__(16) float b_tile[TERMS][PITCH];
    int x = 4 * (int)(threadIdx.x % 16), y = 4 * (int)(threadIdx.x / 16);
    lane_tile a_next = read_tile<a_k_first>(a, row, begin, end), b_next = read_tile<b_k_first>(b, col, begin, end);
    for (int term = begin; term < end; term += TERMS) {
        __syncthreads();
        keep_tile<a_k_first>(a_tile, a_next);
        keep_tile<b_k_first>(b_tile, b_next);
        __syncthreads();
        if (term + TERMS < end) {
            a_next = read_tile<a_k_first>(a, row, term + TERMS, end);
            b_next = read_tile<b_k_first>(b, col, term + TERMS, end);
        }
#pragma unroll 8
        for (int k = 0; k < TERMS; k++) {
            float4 p = *(const float4 *)&a_tile[k][y], q = *(const float4 *)&b_tile[k][x];
            float left[4] = {p.x, p.y, p.z, p.w}, right[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i][j] += left[i] * right[j];
        }
    }
}

/* ---- linear -------------------------------------------------------------------------------------------------- */

typedef struct linear_task {
    const float *x, *weight, *bias, *add;
    float *y;
    int heads, in, out, adds; /* columns of a head */
} linear_task;

/* Grid: (column tiles, row tiles, heads). */
template <bool transpose> __global__ void linear_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, linear_task task)
{
    int count = lp_rows_now(rows, shard), row = (int)blockIdx.y * TILE, col = (int)blockIdx.x * TILE;
    int h = (int)blockIdx.z, in = task.in, out = task.out, stride = task.heads * out;
    if (row >= count)
        return;
    factor a = {task.x + (size_t)h * in, task.heads * in, 1, count};
    factor b = {task.weight + (size_t)h * in * out, transpose ? in : 1, transpose ? 1 : out, out};
    float sum[4][4] = {};
    tile_product<true, transpose>(a, b, row, col, 0, in, sum);
    int x = col + 4 * (int)(threadIdx.x % 16), y = row + 4 * (int)(threadIdx.x / 16);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (y + i < count && x + j < out) {
                size_t place = (size_t)(y + i) * stride + (size_t)h * out + x + j;
                float all =
                    sum[i][j] + ((task.bias ? task.bias[h * out + x + j] : 0) + (task.add ? task.add[place] : 0));
                lp_store(&task.y[place], all, task.adds);
            }
}

void lp_cuda_linear(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *weight = node->inputs[1], *y = node->outputs[0];
    int heads = node->with.heads, a = weight->rows / heads, b = weight->cols;
    bool transpose = node->with.transpose;
    linear_task task = {LP_INPUT(0), LP_INPUT(1),       LP_INPUT(2),       LP_INPUT(3), LP_OUTPUT(0),
                        heads,       transpose ? b : a, transpose ? a : b, LP_ADDS(0)};
    dim3 grid(lp_blocks(task.out, TILE), lp_blocks(lp_cuda_largest(run, y), TILE), (unsigned)heads);
    lp_cuda_rows rows = lp_cuda_rows_of(y);
    if (transpose)
        LP_LAUNCH(run, linear_kernel<true>, grid, THREADS, 0, run->shard, rows, task);
    else
        LP_LAUNCH(run, linear_kernel<false>, grid, THREADS, 0, run->shard, rows, task);
}

/* ---- outer products ------------------------------------------------------------------------------------------ */

/* partial[chunk][h][i][j] = sum over the chunk's rows of p[t][h][i] q[t][h][j]. Grid: (tiles, chunks, heads). */
__global__ void linear_outer_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, int heads, int a, int b,
                                    const float *p, const float *q, float *partial)
{
    int count = lp_rows_now(rows, shard), each = lp_chunk_rows(count, (int)gridDim.y, TERMS);
    int begin = (int)blockIdx.y * each, end = min(begin + each, count), h = (int)blockIdx.z;
    int across = (b + TILE - 1) / TILE;
    int row = (int)blockIdx.x / across * TILE, col = (int)blockIdx.x % across * TILE;
    factor left = {p + (size_t)h * a, 1, heads * a, a}, right = {q + (size_t)h * b, 1, heads * b, b};
    float sum[4][4] = {};
    if (begin < end)
        tile_product<false, false>(left, right, row, col, begin, end, sum);
    int x = col + 4 * (int)(threadIdx.x % 16), y = row + 4 * (int)(threadIdx.x / 16);
    float *out = partial + ((size_t)blockIdx.y * heads + h) * a * b;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (y + i < a && x + j < b)
                out[(size_t)(y + i) * b + x + j] = sum[i][j];
}

void lp_cuda_linear_outer(const lp_node *node, const lp_cuda_run *run)
{
    const lp_value *p = node->inputs[0], *out = node->outputs[0];
    int heads = node->with.heads, a = out->rows / heads, b = out->cols;
    unsigned tiles = lp_blocks(a, TILE) * lp_blocks(b, TILE);
    int chunks = lp_cuda_chunks(lp_cuda_largest(run, p), (int64_t)tiles * heads);
    size_t size = (size_t)out->rows * (size_t)b;
    float *partial = (float *)lp_cuda_scratch(run, (size_t)chunks * size * sizeof *partial);
    if (!partial)
        return;
    LP_LAUNCH(run, linear_outer_kernel, dim3(tiles, (unsigned)chunks, (unsigned)heads), THREADS, 0, run->shard,
              lp_cuda_rows_of(p), heads, a, b, LP_INPUT(0), LP_INPUT(1), partial);
    lp_cuda_add_chunks(run, partial, chunks, (int)size, LP_OUTPUT(0), LP_ADDS(0));
}
