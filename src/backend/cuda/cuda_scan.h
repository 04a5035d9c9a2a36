/* cuda_scan.h: what the recurrent scans of cuda_recurrent.cu (LSTM) and cuda_gru.cu share.
 *
 * A block takes one to four segments through all of their time steps. A step is a product of the hidden states with W_hh, of which
 * every thread computes one gate, a barrier, the cells, and another barrier. The block reads all of W_hh in every step, so as many
 * rows of it as fit stay in shared memory (for four gates all of them up to H = 116), and the rest comes from the L2 cache. Sums are
 * in float and in a fixed order, whatever the number of segments in a block.
 *
 * The gradient of W_hh is the product of the gates' gradients with the previous hidden states, over all tokens: linear_outer.
 */
#ifndef LP_CUDA_SCAN_H
#define LP_CUDA_SCAN_H

#include "backend/cuda/cuda_rows.h"

enum { MOST_THREADS = LP_RECURRENT_HIDDEN };
/* Bytes of shared memory that a block may use, on devices that have 227 KiB for it. */
enum { MOST_SHARED = 220 * 1024 };
/* Blocks that run at once: a block takes more than one segment only where there are more segments than this. */
enum { BLOCKS = 132 };

/* A scan over segments, with `gates` gates of `hidden` columns. The terms of a product are the rows of a matrix
 * [terms x cols]: `resident` of every `hidden` terms lie in shared memory, all of them or a multiple of four. */
typedef struct scan_form {
    const lp_cuda_shard *shard;
    const int32_t *segment;
    int hidden, padded; /* padded: to four, for reads of 16 bytes */
    int resident;
    int each; /* segments of a block */
    int threads;
    int weight_floats; /* of the resident rows in shared memory, padded to four: states follow at multiples of 16 bytes */
    size_t shared;     /* bytes */
} scan_form;

/* state: floats that a segment has in shared memory. */
static scan_form make_form(const lp_cuda_run *run, int hidden, int gates, int state)
{
    scan_form form = {};
    form.shard = run->shard;
    form.segment = run->segment;
    form.hidden = hidden;
    form.padded = (hidden + 3) / 4 * 4;
    form.threads = gates * hidden < MOST_THREADS ? (gates * hidden + 31) / 32 * 32 : MOST_THREADS;
    form.each = 1;
    /* A thread has the cell of at most one segment. */
    while (form.each < 4 && run->largest_segments > form.each * BLOCKS && 2 * form.each * hidden <= form.threads)
        form.each *= 2;
    size_t row = (size_t)gates * (size_t)hidden * sizeof(float), held = (size_t)form.each * state * sizeof(float);
    size_t fit = (MOST_SHARED - held) / row;
    form.resident = fit >= (size_t)hidden ? hidden : (int)(fit / 4 * 4);
    form.weight_floats = (form.resident * gates * hidden + 3) / 4 * 4;
    form.shared = held + (size_t)form.weight_floats * sizeof(float);
    return form;
}

/* The segments of a block, and the one whose cell this thread has. */
template <int each> struct scan_segments {
    int first[each], length[each], longest;
    int e, j;            /* the segment of this thread's cell, and its column */
    int my_first, steps; /* of that segment; steps is 0 for threads without a cell */
};

template <int each> __device__ static inline scan_segments<each> scan_begin(const scan_form &form)
{
    scan_segments<each> mine;
    mine.longest = 0;
    mine.e = (int)threadIdx.x / form.hidden;
    mine.j = (int)threadIdx.x % form.hidden;
    mine.my_first = mine.steps = 0;
#pragma unroll
    for (int e = 0; e < each; e++) {
        int s = (int)blockIdx.x * each + e;
        bool there = s < form.shard->segments;
        mine.first[e] = there ? form.segment[s] : 0;
        mine.length[e] = there ? form.segment[s + 1] - form.segment[s] : 0;
        mine.longest = max(mine.longest, mine.length[e]);
        if (e == mine.e) {
            mine.my_first = mine.first[e];
            mine.steps = mine.length[e];
        }
    }
    return mine;
}

/* sum[e] += the products of `count` terms: weight[k * stride] with state e's element k. States lie `padded` floats apart and
 * begin at multiples of 16 bytes. */
template <int each>
__device__ static inline void add_terms(float (&sum)[each], const float *weight, int stride, const float *state,
                                        int apart, int count)
{
    int k = 0;
#pragma unroll 2
    for (; k + 4 <= count; k += 4) {
        float w[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = weight[(k + i) * stride];
#pragma unroll
        for (int e = 0; e < each; e++) {
            float4 x = *(const float4 *)(state + e * apart + k);
            sum[e] += w[0] * x.x;
            sum[e] += w[1] * x.y;
            sum[e] += w[2] * x.z;
            sum[e] += w[3] * x.w;
        }
    }
    for (; k < count; k++)
#pragma unroll
        for (int e = 0; e < each; e++)
            sum[e] += weight[k * stride] * state[e * apart + k];
}

/* Copies `count` floats to shared memory; the caller waits for it. */
__device__ static inline void copy_in(float *to, const float *from, int count)
{
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        to[i] = from[i];
}

__device__ static inline void clear_in(float *to, int count)
{
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        to[i] = 0;
}

/* sum[e] = the product of gate r of W_hh with the hidden state of segment e. weight: its resident rows, transposed; rest: all rows. */
template <int each>
__device__ static inline void scan_gate(float (&sum)[each], const scan_form &form, int wide, int r, const float *weight,
                                        const float *rest, const float *h)
{
#pragma unroll
    for (int e = 0; e < each; e++)
        sum[e] = 0;
    add_terms<each>(sum, weight + r, wide, h, form.padded, form.resident);
    add_terms<each>(sum, rest + (size_t)form.resident * wide + r, wide, h + form.resident, form.padded,
                    form.hidden - form.resident);
}

/* Loads the resident rows of each gate of W_hh and clears the gradients of the gates, [each x gates x padded]. */
template <int each, int gates>
__device__ static inline void scan_gradient_begin(const scan_form &form, float *weight, const float *from,
                                                  float *dgates)
{
    int hidden = form.hidden, resident = form.resident;
    for (int p = 0; p < gates; p++)
        copy_in(weight + p * resident * hidden, from + (size_t)p * hidden * hidden, resident * hidden);
    clear_in(dgates, each * gates * form.padded);
}

/* The parts of the gradient of the hidden states, [each x gates x H]: gate p's rows of W_hh make part p. */
template <int each, int gates>
__device__ static inline void scan_gradient_parts(const scan_form &form, const float *weight, const float *rest,
                                                  const float *dgates, float *parts)
{
    int hidden = form.hidden, wide = gates * hidden, resident = form.resident, padded = form.padded;
#pragma unroll 1
    for (int r = (int)threadIdx.x; r < wide; r += (int)blockDim.x) {
        int p = r / hidden, j = r % hidden;
        float sum[each];
#pragma unroll
        for (int e = 0; e < each; e++)
            sum[e] = 0;
        add_terms<each>(sum, weight + p * resident * hidden + j, hidden, dgates + p * padded, gates * padded, resident);
        add_terms<each>(sum, rest + ((size_t)p * hidden + resident) * hidden + j, hidden,
                        dgates + p * padded + resident, gates * padded, hidden - resident);
#pragma unroll
        for (int e = 0; e < each; e++)
            parts[e * wide + r] = sum[e];
    }
}

__device__ static inline float scan_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* cuda_recurrent.cu */

/* out [cols x rows] = in [rows x cols] */
void lp_cuda_transpose_weight(const lp_cuda_run *run, int rows, int cols, const float *in, float *out);

/* Output 1 of the node, dweight_hh = dgates^T (h shifted by one token), and output 2, dbias_hh = the column sums of dgates, where
 * the node has them. previous_h [T x H] is a buffer, unused without output 1. */
void lp_cuda_recurrent_weight_gradient(const lp_node *node, const lp_cuda_run *run, const float *h, float *dgates,
                                       float *previous_h);

/* Calls launch with the number of segments of a block as a compile-time constant. */
template <typename launcher> static inline void scan_launch(const scan_form &form, const launcher &launch)
{
    if (form.each == 1)
        launch(lp_constant<1>());
    else if (form.each == 2)
        launch(lp_constant<2>());
    else
        launch(lp_constant<4>());
}

#endif
