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

/* What is done with a product before it is stored, in this order. */
typedef struct product_after {
    const float *mask;      /* like C: 0 where it is not positive; NULL: there is none, or a copy */
    lp_cuda_copy mask_copy; /* data NULL: there is none, or floats */
    uint32_t threshold;     /* of dropout; 0: there is none */
    uint32_t purpose;
    float scale;
    int relu;
} product_after;

/* product_store with a copy in bf16, for the only tile of a block. Parts of a warp's tile, of 16 rows and up to 64 columns, pass
 * through shared memory, so that neighbouring lanes have neighbouring columns. What is added to the first part is loaded before the
 * tile is multiplied, and to the others while the part before is stored; it comes to the L2 cache while the tile is multiplied. */
template <typename shape, bool has_after = false> struct product_store_rows : product_store {
    lp_cuda_copy copy; /* of C in bf16, of all heads; data NULL: none. Without floats it accumulates into the copy */
    int quads; /* columns begin at multiples of 4 in floats and copy, zeros may be stored beyond the last; at most one is added */
    product_after after; /* of one head; used if has_after */
    const lp_cuda_shard *shard;

    static constexpr int cols = shape::own_cols < 64 || shape::own_cols > 192 ||
                                        (shape::own_cols > 64 && shape::blocks > 1)
                                    ? 32
                                    : 64; /* of a part */
    static constexpr int across = shape::own_cols / cols, parts = shape::down * across;
    static constexpr int staging = shape::warps * 16 * cols;
    /* Vectors of a lane, of four columns; lanes that have a row; rows between the vectors of a lane. */
    static constexpr int vectors = cols / 8, lanes = cols / 4, step = 32 / lanes;
    typedef lp_vector<4> quad;
    quad held[vectors], held_bias; /* what is added to the lane's vectors of a part; held: or their mask */

    /* Row and column of the lane's first vector of part i, from those of the tile on. */
    __device__ static int row_of(int i)
    {
        tile_lane me = tile_lane_now();
        return me.warp / shape::warps_across * shape::own_rows + i / across * 16 + me.lane / lanes;
    }
    __device__ static int col_of(int i)
    {
        tile_lane me = tile_lane_now();
        return me.warp % shape::warps_across * shape::own_cols + i % across * cols + me.lane % lanes * 4;
    }

    /* Where an element of a part is staged, without bank conflicts. */
    __device__ static int staged_at(int row, int col)
    {
        return row * cols + (col ^ row % vectors * 8);
    }

    /* What is added to the first row and column of the tile, or their mask: in floats, or in bf16. NULL: nothing. */
    __device__ const float *added(const product_place &place) const
    {
        const float *from = has_after && after.mask ? after.mask : add ? add : accumulate ? to : NULL;
        return quads && from ? from + place.head * head + place.row * stride + place.col : NULL;
    }
    __device__ const uint16_t *added_copy(const product_place &place) const
    {
        lp_cuda_copy from = accumulate && !to ? copy : lp_cuda_copy();
        if (has_after && after.mask_copy.data)
            from = after.mask_copy;
        return quads && from.data
                   ? from.data + place.head * (head + from.gap) + (int64_t)place.row * from.stride + place.col
                   : NULL;
    }

    __device__ int packed_stride() const
    {
        return has_after && after.mask_copy.data ? after.mask_copy.stride : copy.stride;
    }

    /* Beyond the last row and column it loads these again: loads under a condition would wait for each other. */
    __device__ void load(const product_place &place, int i, const float *from, const uint16_t *packed)
    {
        int row = row_of(i), last = place.rows - 1 - place.row;
        int col = min(col_of(i), (place.cols - place.col - 1) / 4 * 4);
        held_bias = {};
#pragma unroll
        for (int n = 0; n < vectors; n++)
            held[n] = {};
        if (from)
#pragma unroll
            for (int n = 0; n < vectors; n++)
                held[n] = lp_vector_load<4>(from + min(row + step * n, last) * (int)stride + col);
        if (packed)
#pragma unroll
            for (int n = 0; n < vectors; n++)
                held[n] = lp_vector_load_bf16<4>(packed + min(row + step * n, last) * packed_stride() + col);
        if (quads && bias)
            held_bias = lp_vector_load<4>(bias + place.head * place.cols + place.col + col);
    }

    template <int precision, bool a_deep, typename any>
    __device__ void start(const product_place &place, product_sums<any> &)
    {
        const float *from = added(place);
        const uint16_t *packed = added_copy(place);
        load(place, 0, from, packed);
        constexpr int each = shape::threads / shape::rows; /* threads of a row */
        int row = (int)threadIdx.x / each, line = from ? 32 : 64;
        int last = place.row + row < place.rows && (from || packed) ? min(shape::cols, place.cols - place.col) : 0;
#pragma unroll 1
        for (int col = (int)threadIdx.x % each * line; col < last; col += each * line)
            tile_prefetch(from ? from + row * (int)stride + col
                               : (const float *)(packed + row * packed_stride() + col));
    }

    /* Random words of the lane's vectors, the first of which is at this row and column. The rounds are not unrolled. */
    __device__ void draw(uint32_t (&drawn)[vectors][2], int row, int col) const
    {
        uint32_t word[vectors][4] = {};
        uint64_t seed = after.threshold ? shard->seed : 0;
#pragma unroll
        for (int n = 0; n < vectors && after.threshold; n++) {
            uint64_t element = element_of(row + step * n, col);
            word[n][0] = (uint32_t)element;
            word[n][1] = (uint32_t)(element >> 32);
            word[n][2] = shard->step;
            word[n][3] = after.purpose;
        }
#pragma unroll 1
        for (int round = 0; after.threshold && round < LP_PHILOX_ROUNDS; round++)
#pragma unroll
            for (int n = 0; n < vectors; n++)
                lp_philox_round(word[n], seed, round);
#pragma unroll
        for (int n = 0; n < vectors; n++) {
            drawn[n][0] = col & 4 ? word[n][2] : word[n][0];
            drawn[n][1] = col & 4 ? word[n][3] : word[n][1];
        }
    }

    /* Eight columns share a block of random numbers. */
    __device__ uint64_t element_of(int row, int col) const
    {
        return (shard->first_token + (uint64_t)row) * 65536 + (uint64_t)(col / 8);
    }

    /* bits: the lower 16 are random. */
    __device__ float finished(float y, float mask, uint32_t bits) const
    {
        if (after.mask || after.mask_copy.data)
            y = mask > 0 ? y : 0;
        if (after.threshold)
            y = (bits & 0xFFFFu) >= after.threshold ? y * after.scale : 0;
        return after.relu && !(y > 0) ? 0 : y;
    }

    /* floats, copied: of the first row and column of the tile. */
    __device__ void store_quads(const product_place &place, int i, const float *staged, float *floats,
                                uint16_t *copied) const
    {
        int row = row_of(i), col = col_of(i), present = col < place.cols - place.col ? place.rows - place.row - row : 0;
        int lane = tile_lane_now().lane;
        floats += row * (int)stride + col;
        copied += row * copy.stride + col;
        uint32_t drawn[vectors][2];
        if constexpr (has_after)
            draw(drawn, place.row + row, place.col + col);
#pragma unroll
        for (int n = 0; n < vectors; n++) {
            quad y = lp_vector_load<4>(staged + staged_at(lane / lanes + step * n, lane % lanes * 4));
#pragma unroll
            for (int k = 0; k < 4; k++)
                if constexpr (has_after)
                    y.at[k] = finished(y.at[k] + held_bias.at[k], held[n].at[k], drawn[n][k / 2] >> 16 * (k % 2));
                else
                    y.at[k] += held[n].at[k] + held_bias.at[k];
            if (to && step * n < present)
                *(quad *)(floats + step * n * (int)stride) = y;
            if (copy.data && step * n < present)
                *(float2 *)(copied + step * n * copy.stride) =
                    make_float2(tile_pack_bf16(y.at[0], y.at[1]), tile_pack_bf16(y.at[2], y.at[3]));
        }
    }

    __device__ void store_each(const product_place &place, int i, const float *staged) const
    {
        int lane = tile_lane_now().lane, first = row_of(i) - lane / lanes, left = col_of(i) - lane % lanes * 4;
#pragma unroll 1
        for (int n = lane; n < 16 * cols; n += 32) {
            int row = place.row + first + n / cols, col = place.col + left + n % cols;
            int64_t at = place.head * head + row * stride + col;
            if (row >= place.rows || col >= place.cols)
                continue;
            float y = staged[staged_at(n / cols, n % cols)];
            y += bias ? bias[place.head * place.cols + col] : 0;
            y += add ? add[at] : 0;
            uint16_t *packed = copy.data + place.head * (head + copy.gap) + (int64_t)row * copy.stride + col;
            y += !accumulate ? 0 : to ? to[at] : lp_vector_load_bf16<1>(packed).at[0];
            if constexpr (has_after) {
                lp_random_block block = {};
                if (after.threshold)
                    block = lp_philox(shard->seed, after.purpose, shard->step, element_of(row, col));
                uint32_t low = col & 4 ? block.word[2] : block.word[0], high = col & 4 ? block.word[3] : block.word[1];
                float mask = after.mask ? after.mask[at] : 0;
                if (after.mask_copy.data)
                    mask = lp_vector_load_bf16<1>(after.mask_copy.data + (int64_t)row * after.mask_copy.stride + col)
                               .at[0];
                y = finished(y, mask, (col & 2 ? high : low) >> 16 * (col & 1));
            }
            if (to)
                to[at] = y;
            if (copy.data)
                tile_store_two<false>(packed, y, 0, false);
        }
    }

    /* memory: `staging` floats. The loop is not unrolled: where kernels alternate, instructions that run once are loaded from memory as
     * often as they run. */
    __device__ void store_tile(const product_place &place, product_sums<shape> &sums, float *memory)
    {
        tile_lane me = tile_lane_now();
        float *staged = memory + me.warp * 16 * cols, *floats = to + place.head * head + place.row * stride + place.col;
        uint16_t *copied = copy.data + place.head * (head + copy.gap) + (int64_t)place.row * copy.stride + place.col;
        const float *from = added(place);
        const uint16_t *packed = added_copy(place);
#pragma unroll 1
        for (int i = 0; i < parts; i++) {
#pragma unroll
            for (int part = 0; part < parts; part++)
#pragma unroll
                for (int k = 0; i == part && k < cols / 4; k++) {
                    const float *sum = sums.pair(part / across * 2 + k % 2, part % across * (cols / 8) + k / 2);
                    *(float2 *)(staged + staged_at(k % 2 * 8 + me.group, k / 2 * 8 + 2 * me.member)) =
                        make_float2(sum[0], sum[1]);
                }
            __syncwarp();
            if (quads)
                store_quads(place, i, staged, floats, copied);
            else
                store_each(place, i, staged);
            if (i + 1 < parts)
                load(place, i + 1, from, packed);
            __syncwarp();
        }
    }

    template <int precision, bool a_deep, typename any>
    __device__ void run(const product_task &, const product_place &place, product_sums<shape> &sums, float *memory)
    {
        __syncthreads();
        store_tile(place, sums, memory);
    }
};

/* An operand in bf16; head: numbers from head to head. */
static inline product_operand packed_operand(lp_cuda_copy copy, int64_t head)
{
    return {copy.data, copy.stride, head, 4};
}

#endif
