/* cuda_recurrent.cu: the scans of the LSTM and the GRU.
 *
 * A block takes one segment through all of its time steps. A step is a product of the hidden state with W_hh, of which every thread
 * computes one gate, a barrier, the cells, and another barrier. The block reads all of W_hh in every step, so as many rows of it as fit
 * stay in shared memory (for four gates all of them up to H = 116), and the rest comes from the L2 cache. Sums are in float and in a
 * fixed order.
 *
 * The gradient of W_hh is the product of the gates' gradients with the previous hidden states, over all tokens (lp_cuda_outer).
 */
#include "backend/cuda/cuda_rows.h"

enum { MOST_THREADS = LP_RECURRENT_HIDDEN };
/* Bytes of shared memory that a block may use, on devices that have 227 KiB for it. */
enum { MOST_SHARED = 220 * 1024 };

/* A scan over segments, with `gates` gates of `hidden` columns. The terms of a product are the rows of a matrix
 * [terms x cols]: `resident` of every `hidden` terms lie in shared memory, all of them or a multiple of four. */
typedef struct scan_form {
    const lp_cuda_shard *shard;
    const int32_t *segment;
    int hidden, padded; /* padded: to four, for reads of 16 bytes */
    int resident;
    int threads;
    int weight_floats; /* of the resident rows in shared memory, padded to four: states follow at multiples of 16 bytes */
    size_t shared;     /* bytes */
} scan_form;

static int padded_to_four(int count)
{
    return (count + 3) / 4 * 4;
}

/* state: floats that a segment has in shared memory. */
static scan_form make_form(const lp_cuda_run *run, int hidden, int gates, int state)
{
    int wide = gates * hidden, threads = min((wide + 31) / 32 * 32, (int)MOST_THREADS);
    int fit = (MOST_SHARED / (int)sizeof(float) - state) / wide;
    int resident = fit >= hidden ? hidden : fit / 4 * 4, weight_floats = padded_to_four(resident * wide);
    size_t shared = (size_t)(state + weight_floats) * sizeof(float);
    return {run->shard, run->segment, hidden, padded_to_four(hidden), resident, threads, weight_floats, shared};
}

/* Copies `count` floats, or zeros where `from` is NULL, to shared memory; the caller waits for it. */
__device__ static inline void copy_in(float *to, const float *from, int count)
{
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        to[i] = from ? from[i] : 0;
}

/* sum + the products of `count` terms: weight[k * stride] with element k of the state, which begins at a multiple of 16 bytes. */
__device__ static inline float add_terms(float sum, const float *weight, int stride, const float *state, int count)
{
    int k = 0;
#pragma unroll 2
    for (; k + 4 <= count; k += 4) {
        lp_vector<4> x = lp_vector_load<4>(state + k);
        float w[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = weight[(k + i) * stride];
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum += w[i] * x.at[i];
    }
    for (; k < count; k++)
        sum += weight[k * stride] * state[k];
    return sum;
}

/* The product of a column of W_hh, or of a row, with a state. resident: the terms in shared memory; all: all terms. */
__device__ static inline float scan_product(const scan_form &form, const float *resident, const float *all, int stride,
                                            const float *state)
{
    int count = form.resident;
    float sum = add_terms(0, resident, stride, state, count);
    return add_terms(sum, all + (size_t)count * stride, stride, state + count, form.hidden - count);
}

__device__ static inline float scan_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* ---- cells --------------------------------------------------------------------------------------------------- */

/* Four numbers for each token and column are stored, in this order: the LSTM's gates i, f, g, o; the GRU's r, z, n, and the recurrent part
 * q of n. */
enum { STORED = 4 };

typedef struct scan_task {
    scan_form form;
    const float *x, *transposed, *bias; /* [T x gates H]; [H x gates H]: W_hh^T; [gates H], may be NULL */
    float *h, *gates, *c;               /* [T x H], [T x 4H], [T x H] */
} scan_task;

typedef struct scan_gradient_task {
    scan_form form;
    const float *gates, *state, *h, *weight, *dh; /* state [T x H]: the LSTM's c, the GRU's h */
    float *dx;                                    /* [T x gates H] of the gates' input parts; may be NULL */
    float *dgates, *previous_h;                   /* of their recurrent parts, and [T x H]; both may be NULL */
    int adds;
} scan_gradient_task;

/* Inputs of the cell of this thread for one token: loaded before the product, used after it. */
typedef struct scan_token {
    float gate[STORED], state, previous, previous_h, dh;
} scan_token;

/* A cell: the column of a hidden state of one segment. */
struct lstm_cell {
    static constexpr int gates = 4;
    float state = 0, carried = 0; /* c, and its gradient by way of the later token */

    /* The value of a gate. */
    __device__ static float activated(int gate, float x, float recurrent)
    {
        return gate == 2 ? tanhf(x + recurrent) : scan_sigmoid(x + recurrent);
    }

    /* Returns the next hidden state. gate: the values of the column's gates; those that are stored. */
    __device__ float step(float (&gate)[STORED])
    {
        state = gate[1] * state + gate[0] * gate[2];
        return gate[3] * tanhf(state);
    }

    /* part: of the gradient of the hidden state by way of the later token, `hidden` floats apart. d: gradients of the recurrent parts of the
     * gates. Returns that of the input part of the last gate; those of the others are d. */
    __device__ float gradient(const scan_token &now, const float *part, int hidden, float (&d)[gates])
    {
        float i = now.gate[0], f = now.gate[1], g = now.gate[2], o = now.gate[3], c = tanhf(now.state);
        float dh = now.dh + ((part[0] + part[hidden]) + (part[2 * hidden] + part[3 * hidden]));
        float dc = carried + dh * o * (1 - c * c);
        d[0] = dc * g * i * (1 - i);
        d[1] = dc * now.previous * f * (1 - f);
        d[2] = dc * i * (1 - g * g);
        d[3] = dh * c * o * (1 - o);
        carried = dc * f;
        return d[3];
    }
};

struct gru_cell {
    static constexpr int gates = 3;
    float state = 0, carried = 0; /* h, and its gradient by way of the later token's z */

    __device__ static float activated(int gate, float x, float recurrent)
    {
        return gate < 2 ? scan_sigmoid(x + recurrent) : recurrent;
    }

    /* gate: r, z, q and the input part of n; r, z, n, q. */
    __device__ float step(float (&gate)[STORED])
    {
        float q = gate[2], n = tanhf(gate[3] + gate[0] * q);
        gate[2] = n;
        gate[3] = q;
        return state = n + gate[1] * (state - n);
    }

    __device__ float gradient(const scan_token &now, const float *part, int hidden, float (&d)[gates])
    {
        float r = now.gate[0], z = now.gate[1], n = now.gate[2], q = now.gate[3];
        float dh = now.dh + ((part[0] + part[hidden]) + (part[2 * hidden] + carried)), dn = dh * (1 - z) * (1 - n * n);
        d[0] = dn * q * r * (1 - r);
        d[1] = dh * (now.previous - n) * z * (1 - z);
        d[2] = dn * r;
        carried = dh * z;
        return dn;
    }
};

/* ---- the scan ------------------------------------------------------------------------------------------------ */

/* Shared memory: resident rows of W_hh^T, then the hidden state [padded] and the gates [gates H]. */
template <typename cell> __global__ void __launch_bounds__(MOST_THREADS, 1) scan_kernel(scan_task task)
{
    LP_SHARED(float, weight);
    const scan_form &form = task.form;
    int hidden = form.hidden, wide = cell::gates * hidden, j = (int)threadIdx.x;
    float *h = weight + form.weight_floats, *gates = h + form.padded;
    if ((int)blockIdx.x >= form.shard->segments)
        return;
    int first = form.segment[blockIdx.x], steps = form.segment[blockIdx.x + 1] - first;
    copy_in(weight, task.transposed, form.resident * wide);
    copy_in(h, NULL, form.padded);
    cell state;
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < steps; t++) {
        size_t token = (size_t)(first + t);
        float input = j < hidden ? task.x[token * wide + (wide - hidden) + j] : 0;
#pragma unroll 1
        for (int r = j; r < wide; r += (int)blockDim.x) {
            float x = task.x[token * wide + r], bias = task.bias ? task.bias[r] : 0;
            float sum = scan_product(form, weight + r, task.transposed + r, wide, h);
            gates[r] = cell::activated(r / hidden, x, sum + bias);
        }
        __syncthreads();
        if (j < hidden) {
            float gate[STORED] = {gates[j], gates[hidden + j], gates[2 * hidden + j],
                                  cell::gates == STORED ? gates[3 * hidden + j] : input};
            h[j] = task.h[token * hidden + j] = state.step(gate);
#pragma unroll
            for (int i = 0; i < STORED; i++)
                task.gates[(token * STORED + i) * hidden + j] = gate[i];
            if (task.c)
                task.c[token * hidden + j] = state.state;
        }
        __syncthreads();
    }
}

/* Shared memory: of each gate the resident rows of W_hh, then the gradients of the gates [gates x padded] and the parts of the gradient
 * of the hidden state [gates x H]: gate p's rows of W_hh make part p. */
template <typename cell>
__global__ void __launch_bounds__(MOST_THREADS, 1) scan_gradient_kernel(scan_gradient_task task)
{
    LP_SHARED(float, weight);
    const scan_form &form = task.form;
    constexpr int gates = cell::gates;
    int hidden = form.hidden, wide = gates * hidden, resident = form.resident * hidden, j = (int)threadIdx.x;
    float *dgates = weight + form.weight_floats, *parts = dgates + gates * form.padded;
    if ((int)blockIdx.x >= form.shard->segments)
        return;
    int first = form.segment[blockIdx.x], steps = form.segment[blockIdx.x + 1] - first;
    for (int p = 0; p < gates; p++)
        copy_in(weight + p * resident, task.weight + (size_t)p * hidden * hidden, resident);
    copy_in(dgates, NULL, gates * form.padded);
    cell state;
    __syncthreads();
#pragma unroll 1
    for (int t = steps - 1; t >= 0; t--) {
        size_t token = (size_t)(first + t), place = token * hidden + j;
        scan_token now = {};
        if (j < hidden) {
#pragma unroll
            for (int i = 0; i < STORED; i++)
                now.gate[i] = task.gates[(token * STORED + i) * hidden + j];
            now.state = task.state[place];
            now.previous = t ? task.state[place - hidden] : 0;
            now.previous_h = t && task.previous_h ? task.h[place - hidden] : 0;
            now.dh = task.dh[place];
        }
#pragma unroll 1
        for (int r = j; r < wide; r += (int)blockDim.x) {
            int p = r / hidden, c = r % hidden;
            parts[r] = scan_product(form, weight + p * resident + c, task.weight + (size_t)p * hidden * hidden + c,
                                    hidden, dgates + p * form.padded);
        }
        __syncthreads();
        if (j < hidden) {
            float d[gates], last = state.gradient(now, parts + j, hidden, d);
#pragma unroll
            for (int p = 0; p < gates; p++) {
                size_t at = token * wide + p * hidden + j;
                dgates[p * form.padded + j] = d[p];
                if (task.dx)
                    lp_store(&task.dx[at], p < gates - 1 ? d[p] : last, task.adds);
                if (task.dgates)
                    task.dgates[at] = d[p];
            }
            if (task.previous_h)
                task.previous_h[place] = now.previous_h;
        }
        __syncthreads();
    }
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* Inputs: x, W_hh and, of the GRU, a bias. Outputs: h, gates and, of the LSTM, c. */
template <typename cell> static void scan(const lp_node *node, const lp_cuda_run *run)
{
    int hidden = node->inputs[1]->cols, wide = cell::gates * hidden, size = wide * hidden;
    float *transposed = (float *)lp_cuda_scratch(run, (size_t)size * sizeof *transposed);
    if (!transposed)
        return;
    const float *weight = LP_INPUT(1);
    lp_cuda_each(run, size, [=] __device__(int i) { transposed[i] = weight[(size_t)(i % wide) * hidden + i / wide]; });
    scan_form form = make_form(run, hidden, cell::gates, padded_to_four(hidden) + wide);
    scan_task task = {form, LP_INPUT(0), transposed, LP_INPUT(2), LP_OUTPUT(0), LP_OUTPUT(1), LP_OUTPUT(2)};
    LP_LAUNCH(run, scan_kernel<cell>, (unsigned)run->largest_segments, (unsigned)form.threads, form.shared, task);
}

/* Inputs: gates, of the LSTM c, h, W_hh, dh. */
template <typename cell> static void scan_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int weight = node->op->input_count - 2, hidden = node->inputs[weight]->cols, wide = cell::gates * hidden;
    size_t tokens = (size_t)run->run->plan->largest.rows[LP_ROWS_TOKENS];
    bool trained = node->outputs[1] || node->outputs[2];
    scan_form form = make_form(run, hidden, cell::gates, cell::gates * padded_to_four(hidden) + wide);
    const float *h = LP_INPUT(weight - 1), *dh = LP_INPUT(weight + 1);
    scan_gradient_task task = {form, LP_INPUT(0),  LP_INPUT(1), h,    LP_INPUT(weight),
                               dh,   LP_OUTPUT(0), NULL,        NULL, LP_ADDS(0)};
    /* lp_cuda_outer uses the scratch itself, so these have memory of their own, beside values that are this layer's alone. */
    if (trained) {
        task.previous_h = (float *)lp_cuda_side_buffer(run, node->inputs[1], tokens * hidden * sizeof(float));
        task.dgates = (float *)lp_cuda_side_buffer(run, node->inputs[0], tokens * wide * sizeof(float));
        if (tokens && (!task.previous_h || !task.dgates))
            return;
    }
    LP_LAUNCH(run, scan_gradient_kernel<cell>, (unsigned)run->largest_segments, (unsigned)form.threads, form.shared,
              task);
    if (trained)
        lp_cuda_outer(run, {LP_ROWS_TOKENS, 0}, task.dgates, wide, task.previous_h, hidden, LP_OUTPUT(1), LP_ADDS(1),
                      LP_OUTPUT(2), LP_ADDS(2));
}

LP_CUDA_OP_BY(lstm, scan<lstm_cell>)
LP_CUDA_OP_BY(lstm_gradient, scan_gradient<lstm_cell>)
LP_CUDA_OP_BY(gru, scan<gru_cell>)
LP_CUDA_OP_BY(gru_gradient, scan_gradient<gru_cell>)
