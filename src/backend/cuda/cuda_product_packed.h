/* cuda_product_packed.h: what stores the product of cuda_product.h: in floats, or with a copy in bf16. */
#ifndef LP_CUDA_PRODUCT_PACKED_H
#define LP_CUDA_PRODUCT_PACKED_H

#include "backend/cuda/cuda_product.h"

/* Calls each(row, col, sums) for every row of the lane and every pair of neighbouring columns. */
template <typename shape, typename function>
__device__ static inline void product_all_pairs(product_sums<shape> &sums, const product_place &place,
                                                const function &each)
{
#pragma unroll
    for (int i = 0; i < 2 * shape::down; i++)
#pragma unroll
        for (int j = 0; j < shape::across; j++)
            each(place.row + product_row<shape>(i), place.col + product_col<shape>(j), sums.pair(i, j));
}

/* The same for pairs that begin inside the product; the second column may be outside. */
template <typename shape, typename function>
__device__ static inline void product_pairs(product_sums<shape> &sums, const product_place &place, const function &each)
{
    product_all_pairs(sums, place, [&](int row, int col, float *sum) {
        if (row < place.rows && col < place.cols)
            each(row, col, sum);
    });
}

/* C = A B + bias + add, or C += it. Chunk n is stored n * chunk_step floats further on. */
typedef struct product_store : product_finish {
    float *to;               /* NULL: nothing is stored */
    const float *bias, *add; /* bias: one for each column of all heads; add: like C; may be NULL */
    int64_t stride, head;    /* floats from row to row, from head to head */
    int64_t chunk_step;
    int accumulate;
    int pairs; /* columns are even, and pointers aligned to two floats */

    /* two: both columns of every pair exist. Sums outside the product, which nothing stores, get what is added to the
     * last row and column: loads under a condition would wait for each other. */
    template <bool two, typename shape>
    __device__ void plus(product_sums<shape> &sums, const product_place &place, const float *from, int64_t step) const
    {
        product_all_pairs(sums, place, [&](int row, int col, float *sum) {
            const float *here = from + min(row, place.rows - 1) * step;
            if constexpr (two) {
                float2 both = *(const float2 *)(here + min(col, place.cols - 2));
                sum[0] += both.x;
                sum[1] += both.y;
            } else {
                sum[0] += here[min(col, place.cols - 1)];
                sum[1] += here[min(col + 1, place.cols - 1)];
            }
        });
    }

    /* All loads come before the first store, so that none waits for another. */
    template <bool two, typename shape>
    __device__ void finish(const product_place &place, product_sums<shape> &sums) const
    {
        float *first = to + place.head * head + place.chunk * chunk_step;
        if (bias)
            plus<two>(sums, place, bias + place.head * place.cols, 0);
        if (add)
            plus<two>(sums, place, add + place.head * head, stride);
        if (accumulate)
            plus<two>(sums, place, first, stride);
        product_pairs(sums, place, [&](int row, int col, const float *sum) {
            tile_store_two<two>(first + row * stride + col, sum[0], sum[1], col + 1 < place.cols);
        });
    }

    template <int precision, bool a_deep, typename shape>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &sums, float *) const
    {
        if (to && pairs)
            finish<true>(place, sums);
        else if (to)
            finish<false>(place, sums);
    }
} product_store;

/* product_store with a copy in bf16, for the only tile of a block. Parts of a warp's tile, of 16 rows and up to 64 columns, pass
 * through shared memory, so that neighbouring lanes have neighbouring columns. What is added to a
 * part is loaded while the part before is stored; it comes to the L2 cache while the tile is multiplied. */
template <typename shape> struct product_store_rows : product_store {
    lp_cuda_copy copy; /* of C in bf16, of all heads; data NULL: none */
    int quads; /* columns begin at multiples of 4 in floats and copy, zeros may be stored beyond the last; at most one is added */

    static constexpr int cols = shape::own_cols < 64 || shape::own_cols > 192 ||
                                        (shape::own_cols > 64 && shape::blocks > 1)
                                    ? 32
                                    : 64; /* of a part */
    static constexpr int across = shape::own_cols / cols, parts = shape::down * across;
    static constexpr int staging = shape::warps * 16 * cols,
                         vectors = cols / 8; /* vectors of a lane, of four columns */
    typedef lp_vector<4> quad;
    quad held[vectors],
        held_bias; /* what is added to the lane's vectors of a part, which are all in the same columns */

    /* First row and column of part i, from those of the tile on. */
    __device__ static int row_of(int i)
    {
        return tile_lane_now().warp / shape::warps_across * shape::own_rows + i / across * 16;
    }
    __device__ static int col_of(int i)
    {
        return tile_lane_now().warp % shape::warps_across * shape::own_cols + i % across * cols;
    }

    /* Row and column of a lane's vector n in its part; where an element of a part is staged, without bank conflicts. */
    __device__ static int row_at(int n)
    {
        return (tile_lane_now().lane + 32 * n) / (cols / 4);
    }
    __device__ static int col_at(int n)
    {
        return (tile_lane_now().lane + 32 * n) % (cols / 4) * 4;
    }
    __device__ static int staged_at(int row, int col)
    {
        return row * cols + (col ^ row % (cols / 8) * 8);
    }

    __device__ const float *added(const product_place &place) const
    {
        return !quads ? NULL : add ? add + place.head * head : accumulate ? to + place.head * head : NULL;
    }

    /* Beyond the last row and column it loads these again: loads under a condition would wait for each other. */
    __device__ void load(const product_place &place, int i)
    {
        const float *from = added(place);
        int last = place.rows - 1 - place.row, right = min(place.col + col_of(i) + col_at(0), place.cols - 4);
        held_bias = {};
#pragma unroll
        for (int n = 0; n < vectors; n++)
            held[n] = {};
        if (from) {
            from += place.row * stride + right;
#pragma unroll
            for (int n = 0; n < vectors; n++)
                held[n] = lp_vector_load<4>(from + min(row_of(i) + row_at(n), last) * (int)stride);
        }
        if (quads && bias)
            held_bias = lp_vector_load<4>(bias + place.head * place.cols + right);
    }

    template <int precision, bool a_deep, typename any>
    __device__ void start(const product_place &place, product_sums<any> &) const
    {
        const float *from = added(place);
        for (int n = (int)threadIdx.x; from && n < shape::rows * shape::cols / 32; n += shape::threads) {
            int row = place.row + n / (shape::cols / 32), col = place.col + n % (shape::cols / 32) * 32;
            if (row < place.rows && col < place.cols)
                tile_prefetch(from + row * stride + col);
        }
    }

    __device__ void store_quads(const product_place &place, int i, const float *staged) const
    {
        int first = place.row + row_of(i), col = col_at(0), left = place.col + col_of(i) + col;
        float *floats = to + place.head * head + (int64_t)first * stride + left;
        uint16_t *copied = copy.data + place.head * (head + copy.gap) + (int64_t)first * copy.stride + left;
        int present = left < place.cols ? place.rows - first : 0;
#pragma unroll
        for (int n = 0; n < vectors; n++) {
            int row = row_at(n);
            quad y = lp_vector_load<4>(staged + staged_at(row, col));
#pragma unroll
            for (int k = 0; k < 4; k++)
                y.at[k] += held[n].at[k] + held_bias.at[k];
            if (to && row < present)
                *(quad *)(floats + row * (int)stride) = y;
            if (copy.data && row < present)
                *(float2 *)(copied + row * copy.stride) =
                    make_float2(tile_pack_bf16(y.at[0], y.at[1]), tile_pack_bf16(y.at[2], y.at[3]));
        }
    }

    __device__ void store_each(const product_place &place, int i, const float *staged) const
    {
#pragma unroll 1
        for (int n = tile_lane_now().lane; n < 16 * cols; n += 32) {
            int row = place.row + row_of(i) + n / cols, col = place.col + col_of(i) + n % cols;
            int64_t at = place.head * head + row * stride + col;
            if (row >= place.rows || col >= place.cols)
                continue;
            float y = staged[staged_at(n / cols, n % cols)];
            y += bias ? bias[place.head * place.cols + col] : 0;
            y += add ? add[at] : 0;
            y += accumulate ? to[at] : 0;
            if (to)
                to[at] = y;
            if (copy.data)
                tile_store_two<false>(copy.data + place.head * (head + copy.gap) + (int64_t)row * copy.stride + col, y,
                                      0, false);
        }
    }

    /* Stores parts begin to end - 1, of which the first is loaded; memory: `staging` floats. The loop is not unrolled: where
     * kernels alternate, instructions that run once are loaded from memory as often as they run. */
    template <int begin, int end>
    __device__ void store_parts(const product_place &place, product_sums<shape> &sums, float *memory)
    {
        tile_lane me = tile_lane_now();
        float *staged = memory + me.warp * 16 * cols;
#pragma unroll 1
        for (int i = begin; i < end; i++) {
#pragma unroll
            for (int part = begin; part < end; part++)
#pragma unroll
                for (int k = 0; i == part && k < cols / 4; k++) {
                    const float *sum = sums.pair(part / across * 2 + k % 2, part % across * (cols / 8) + k / 2);
                    *(float2 *)(staged + staged_at(k % 2 * 8 + me.group, k / 2 * 8 + 2 * me.member)) =
                        make_float2(sum[0], sum[1]);
                }
            __syncwarp();
            if (quads)
                store_quads(place, i, staged);
            else
                store_each(place, i, staged);
            if (i + 1 < parts)
                load(place, i + 1);
            __syncwarp();
        }
    }

    template <int precision, bool a_deep, typename any>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &sums, float *memory)
    {
        __syncthreads();
        load(place, 0);
        store_parts<0, parts>(place, sums, memory);
    }
};

/* An operand in bf16; head: numbers from head to head. */
static inline product_operand packed_operand(lp_cuda_copy copy, int64_t head)
{
    return {copy.data, copy.stride, head, 4};
}

#endif
