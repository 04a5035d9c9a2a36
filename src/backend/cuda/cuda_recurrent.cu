/* cuda_recurrent.cu: the scans of the LSTM and the GRU.
 *
 * A block takes one to four segments through all of their time steps. A step is a product of the hidden states with W_hh, of which
 * every thread computes one gate, a barrier, the cells, and another barrier. The block reads all of W_hh in every step, so as many
 * rows of it as fit stay in shared memory (for four gates all of them up to H = 116), and the rest comes from the L2 cache. Sums are
 * in float and in a fixed order, whatever the number of segments in a block.
 *
 * The gradient of W_hh is the product of the gates' gradients with the previous hidden states, over all tokens (lp_cuda_outer).
 */
#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_rows.h"

enum { MOST_THREADS = LP_RECURRENT_HIDDEN };
/* Bytes of shared memory that a block may use, on devices that have 227 KiB for it. */
enum { MOST_SHARED = 220 * 1024 };
/* Blocks that run at once: a block takes more than one segment only where there are more segments than this. */
enum { BLOCKS = 132 };

/* ---- segments of a block ------------------------------------------------------------------------------------- */

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

static int padded_to_four(int count)
{
    return (count + 3) / 4 * 4;
}

/* state: floats that a segment has in shared memory. */
static scan_form make_form(const lp_cuda_run *run, int hidden, int gates, int state)
{
    int wide = gates * hidden, threads = min((wide + 31) / 32 * 32, (int)MOST_THREADS), each = 1;
    /* A thread has the cell of at most one segment. */
    while (each < 4 && run->largest_segments > each * BLOCKS && 2 * each * hidden <= threads)
        each *= 2;
    int held = each * state, fit = (MOST_SHARED / (int)sizeof(float) - held) / wide;
    int resident = fit >= hidden ? hidden : fit / 4 * 4, weight_floats = padded_to_four(resident * wide);
    size_t shared = (size_t)(held + weight_floats) * sizeof(float);
    int padded = padded_to_four(hidden);
    return {run->shard, run->segment, hidden, padded, resident, each, threads, weight_floats, shared};
}

/* The segments of a block, and the one whose cell this thread has. */
template <int each> struct scan_segments {
    int first[each], length[each], longest = 0;
    int e, j;                    /* the segment of this thread's cell, and its column */
    int my_first = 0, steps = 0; /* of that segment; steps is 0 for threads without a cell */

    __device__ scan_segments(const scan_form &form)
        : e((int)threadIdx.x / form.hidden), j((int)threadIdx.x % form.hidden)
    {
#pragma unroll
        for (int i = 0; i < each; i++) {
            int s = (int)blockIdx.x * each + i;
            bool there = s < form.shard->segments;
            first[i] = there ? form.segment[s] : 0;
            length[i] = there ? form.segment[s + 1] - first[i] : 0;
            longest = max(longest, length[i]);
            my_first = i == e ? first[i] : my_first;
            steps = i == e ? length[i] : steps;
        }
    }
};

/* Copies `count` floats, or zeros where `from` is NULL, to shared memory; the caller waits for it. */
__device__ static inline void copy_in(float *to, const float *from, int count)
{
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        to[i] = from ? from[i] : 0;
}

/* ---- products of a step -------------------------------------------------------------------------------------- */

/* sum[e] += the products of `count` terms: weight[k * stride] with state e's element k. States lie `apart` floats apart and
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
            lp_vector<4> x = lp_vector_load<4>(state + e * apart + k);
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[e] += w[i] * x.at[i];
        }
    }
    for (; k < count; k++)
#pragma unroll
        for (int e = 0; e < each; e++)
            sum[e] += weight[k * stride] * state[e * apart + k];
}

/* sum[e] = the product of a column of W_hh, or of a row, with state e. resident: the terms in shared memory; all: all terms. */
template <int each>
__device__ static inline void scan_product(float (&sum)[each], const scan_form &form, const float *resident,
                                           const float *all, int stride, const float *state, int apart)
{
#pragma unroll
    for (int e = 0; e < each; e++)
        sum[e] = 0;
    int count = form.resident;
    add_terms<each>(sum, resident, stride, state, apart, count);
    add_terms<each>(sum, all + (size_t)count * stride, stride, state + count, apart, form.hidden - count);
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

/* Shared memory: resident rows of W_hh^T, then for each segment its hidden state [padded] and its gates [gates H]. */
template <typename cell, int each> __global__ void __launch_bounds__(MOST_THREADS, 1) scan_kernel(scan_task task)
{
    LP_SHARED(float, weight);
    const scan_form &form = task.form;
    int hidden = form.hidden, wide = cell::gates * hidden;
    float *h = weight + form.weight_floats, *gates = h + each * form.padded;
    scan_segments<each> mine(form);
    if (mine.longest == 0)
        return;
    copy_in(weight, task.transposed, form.resident * wide);
    copy_in(h, NULL, each * form.padded);
    cell mine_cell;
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < mine.longest; t++) {
        size_t token = (size_t)(mine.my_first + t);
        float input = t < mine.steps ? task.x[token * wide + (wide - hidden) + mine.j] : 0;
#pragma unroll 1
        for (int r = (int)threadIdx.x; r < wide; r += (int)blockDim.x) {
            int gate = r / hidden;
            float x[each], sum[each], bias = task.bias ? task.bias[r] : 0;
#pragma unroll
            for (int e = 0; e < each; e++)
                x[e] = t < mine.length[e] ? task.x[(size_t)(mine.first[e] + t) * wide + r] : 0;
            scan_product<each>(sum, form, weight + r, task.transposed + r, wide, h, form.padded);
#pragma unroll
            for (int e = 0; e < each; e++)
                gates[e * wide + r] = cell::activated(gate, x[e], sum[e] + bias);
        }
        __syncthreads();
        if (t < mine.steps) {
            const float *from = gates + mine.e * wide + mine.j;
            float gate[STORED] = {from[0], from[hidden], from[2 * hidden],
                                  cell::gates == STORED ? from[3 * hidden] : input};
            h[mine.e * form.padded + mine.j] = task.h[token * hidden + mine.j] = mine_cell.step(gate);
#pragma unroll
            for (int i = 0; i < STORED; i++)
                task.gates[(token * STORED + i) * hidden + mine.j] = gate[i];
            if (task.c)
                task.c[token * hidden + mine.j] = mine_cell.state;
        }
        __syncthreads();
    }
}

/* Shared memory: of each gate the resident rows of W_hh, then for each segment the gradients of its gates [gates x padded] and the
 * parts of the gradient of its hidden state [gates x H]: gate p's rows of W_hh make part p. */
template <typename cell, int each>
__global__ void __launch_bounds__(MOST_THREADS, 1) scan_gradient_kernel(scan_gradient_task task)
{
    LP_SHARED(float, weight);
    const scan_form &form = task.form;
    constexpr int gates = cell::gates;
    int hidden = form.hidden, wide = gates * hidden, padded = form.padded, resident = form.resident * hidden;
    float *dgates = weight + form.weight_floats, *parts = dgates + each * gates * padded;
    scan_segments<each> mine(form);
    if (mine.longest == 0)
        return;
    for (int p = 0; p < gates; p++)
        copy_in(weight + p * resident, task.weight + (size_t)p * hidden * hidden, resident);
    copy_in(dgates, NULL, each * gates * padded);
    cell mine_cell;
    __syncthreads();
#pragma unroll 1
    for (int t = mine.longest - 1; t >= 0; t--) {
        size_t token = (size_t)(mine.my_first + t), place = token * hidden + mine.j;
        scan_token now = {};
        if (t < mine.steps) {
#pragma unroll
            for (int i = 0; i < STORED; i++)
                now.gate[i] = task.gates[(token * STORED + i) * hidden + mine.j];
            now.state = task.state[place];
            now.previous = t ? task.state[place - hidden] : 0;
            now.previous_h = t && task.previous_h ? task.h[place - hidden] : 0;
            now.dh = task.dh[place];
        }
#pragma unroll 1
        for (int r = (int)threadIdx.x; r < wide; r += (int)blockDim.x) {
            int p = r / hidden, j = r % hidden;
            float sum[each];
            scan_product<each>(sum, form, weight + p * resident + j, task.weight + (size_t)p * hidden * hidden + j,
                               hidden, dgates + p * padded, gates * padded);
#pragma unroll
            for (int e = 0; e < each; e++)
                parts[e * wide + r] = sum[e];
        }
        __syncthreads();
        if (t < mine.steps) {
            float d[gates], last = mine_cell.gradient(now, parts + mine.e * wide + mine.j, hidden, d);
#pragma unroll
            for (int p = 0; p < gates; p++) {
                size_t at = token * wide + p * hidden + mine.j;
                dgates[(mine.e * gates + p) * padded + mine.j] = d[p];
                if (task.dx)
                    lp_store(&task.dx[at], p < gates - 1 ? d[p] : last, task.adds);
                if (task.dgates)
                    task.dgates[at] = d[p];
            }
            if (task.previous_h)
                task.previous_h[token * hidden + mine.j] = now.previous_h;
        }
        __syncthreads();
    }
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

/* out [cols x rows] = in [rows x cols] */
__global__ void transpose_kernel(int rows, int cols, const float *in, float *out)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < rows * cols)
        out[i] = in[(size_t)(i % rows) * cols + i / rows];
}

/* kernels: with one, two and four segments of a block. */
template <typename task_type>
static void launch(const lp_cuda_run *run, const task_type &task, void (*const (&kernels)[3])(task_type))
{
    auto kernel = kernels[task.form.each / 2];
    LP_LAUNCH(run, kernel, lp_blocks(run->largest_segments, task.form.each), (unsigned)task.form.threads,
              task.form.shared, task);
}

/* Inputs: x, W_hh and, of the GRU, a bias. Outputs: h, gates and, of the LSTM, c. */
template <typename cell> static void scan(const lp_node *node, const lp_cuda_run *run)
{
    int hidden = node->inputs[1]->cols, wide = cell::gates * hidden, size = wide * hidden;
    float *transposed = (float *)lp_cuda_scratch(run, (size_t)size * sizeof *transposed);
    if (!transposed)
        return;
    LP_LAUNCH(run, transpose_kernel, lp_blocks(size, 256), 256, 0, wide, hidden, LP_INPUT(1), transposed);
    scan_form form = make_form(run, hidden, cell::gates, padded_to_four(hidden) + wide);
    scan_task task = {form, LP_INPUT(0), transposed, LP_INPUT(2), LP_OUTPUT(0), LP_OUTPUT(1), LP_OUTPUT(2)};
    launch(run, task, {scan_kernel<cell, 1>, scan_kernel<cell, 2>, scan_kernel<cell, 4>});
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
    launch(run, task, {scan_gradient_kernel<cell, 1>, scan_gradient_kernel<cell, 2>, scan_gradient_kernel<cell, 4>});
    if (trained)
        lp_cuda_outer(run, {LP_ROWS_TOKENS, 0}, task.dgates, wide, task.previous_h, hidden, LP_OUTPUT(1), LP_ADDS(1),
                      LP_OUTPUT(2), LP_ADDS(2));
}

void lp_cuda_lstm(const lp_node *node, const lp_cuda_run *run)
{
    scan<lstm_cell>(node, run);
}

void lp_cuda_lstm_gradient(const lp_node *node, const lp_cuda_run *run)
{
    scan_gradient<lstm_cell>(node, run);
}

void lp_cuda_gru(const lp_node *node, const lp_cuda_run *run)
{
    scan<gru_cell>(node, run);
}

void lp_cuda_gru_gradient(const lp_node *node, const lp_cuda_run *run)
{
    scan_gradient<gru_cell>(node, run);
}
