/* cuda_recurrent.cu: shifts of rows, and recurrent scans.
 *
 * A block takes one to four segments through all of their time steps. A step is a product of the hidden states with W_hh, of which
 * every thread computes one gate, a barrier, the cells, and another barrier. The block reads all of W_hh in every step, so as many
 * rows of it as fit stay in shared memory (all of them up to H = 116), and the rest comes from the L2 cache. Sums are in float
 * and in a fixed order, whatever the number of segments in a block.
 *
 * The gradient of W_hh is the product of the gates' gradients with the previous hidden states, over all tokens: linear_outer.
 */
#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda.h"

enum { GATES = 4, MOST_THREADS = LP_RECURRENT_HIDDEN };
/* Bytes of shared memory that a block may use, on devices that have 227 KiB for it. */
enum { MOST_SHARED = 220 * 1024 };
/* Blocks that run at once: a block takes more than one segment only where there are more segments than this. */
enum { BLOCKS = 132 };

/* ---- shift_rows ---------------------------------------------------------------------------------------------- */

/* The segment of a token. */
__device__ static inline int segment_of(const int32_t *segment, int segments, int token)
{
    int low = 0, high = segments - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (segment[middle + 1] > token)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

__global__ void shift_rows_kernel(const lp_cuda_shard *shard, const int32_t *segment, int cols, int k, const float *x,
                                  float *y, int adds)
{
    int row = (int)(blockIdx.x * blockDim.y + threadIdx.y);
    if (row >= shard->rows[LP_ROWS_TOKENS])
        return;
    int s = segment_of(segment, shard->segments, row);
    bool inside = row - k >= segment[s] && row - k < segment[s + 1];
    for (int c = (int)threadIdx.x; c < cols; c += (int)blockDim.x)
        lp_store(&y[(size_t)row * cols + c], inside ? x[((size_t)row - k) * cols + c] : 0, adds);
}

static void shift_rows(const lp_cuda_run *run, int cols, int k, const float *x, float *y, int adds)
{
    int tokens = (int)run->run->plan->largest.rows[LP_ROWS_TOKENS];
    LP_LAUNCH(run, shift_rows_kernel, lp_blocks(tokens, 8), dim3(32, 8), 0, run->shard, run->segment, cols, k, x, y,
              adds);
}

void lp_cuda_shift_rows(const lp_node *node, const lp_cuda_run *run)
{
    shift_rows(run, node->outputs[0]->cols, (int)node->attributes.shift, LP_INPUT(0), LP_OUTPUT(0), LP_ADDS(0));
}

/* ---- scans --------------------------------------------------------------------------------------------------- */

/* A scan over segments, with `gates` gates of `hidden` columns. The terms of a product are the rows of a matrix
 * [terms x cols]: `resident` of every `hidden` terms lie in shared memory, all of them or a multiple of four. */
typedef struct scan_form {
    const lp_cuda_shard *shard;
    const int32_t *segment;
    int hidden, padded; /* padded: to four, for reads of 16 bytes */
    int resident;
    int each; /* segments of a block */
    int threads;
    size_t shared; /* bytes */
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
    form.shared = held + (size_t)form.resident * row;
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

/* out [cols x rows] = in [rows x cols] */
__global__ void transpose_kernel(int rows, int cols, const float *in, float *out)
{
    __shared__ float tile[32][33];
    int row = (int)blockIdx.y * 32, col = (int)blockIdx.x * 32, x = (int)threadIdx.x;
    for (int i = (int)threadIdx.y; i < 32; i += (int)blockDim.y)
        if (row + i < rows && col + x < cols)
            tile[i][x] = in[(size_t)(row + i) * cols + col + x];
    __syncthreads();
    for (int i = (int)threadIdx.y; i < 32; i += (int)blockDim.y)
        if (col + i < cols && row + x < rows)
            out[(size_t)(col + i) * rows + row + x] = tile[x][i];
}

/* ---- lstm ---------------------------------------------------------------------------------------------------- */

typedef struct lstm_task {
    scan_form form;
    const float *x, *transposed; /* [T x 4H]; [H x 4H]: W_hh^T */
    float *h, *gates, *c;
} lstm_task;

__device__ static inline float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* Shared memory: resident rows of W_hh^T, then for each segment its hidden state [padded] and its activated gates [4H]. */
template <int each> __global__ void __launch_bounds__(MOST_THREADS, 1) lstm_kernel(lstm_task task)
{
    LP_SHARED(float, weight);
    const scan_form &form = task.form;
    int hidden = form.hidden, wide = GATES * hidden, resident = form.resident;
    float *h = weight + resident * wide, *gates = h + each * form.padded;
    scan_segments<each> mine = scan_begin<each>(form);
    if (mine.longest == 0)
        return;
    copy_in(weight, task.transposed, resident * wide);
    clear_in(h, each * form.padded);
    float c = 0;
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < mine.longest; t++) {
#pragma unroll 1
        for (int r = (int)threadIdx.x; r < wide; r += (int)blockDim.x) {
            float x[each], sum[each];
#pragma unroll
            for (int e = 0; e < each; e++) {
                sum[e] = 0;
                x[e] = t < mine.length[e] ? task.x[(size_t)(mine.first[e] + t) * wide + r] : 0;
            }
            add_terms<each>(sum, weight + r, wide, h, form.padded, resident);
            add_terms<each>(sum, task.transposed + (size_t)resident * wide + r, wide, h + resident, form.padded,
                            hidden - resident);
            bool is_cell = r / hidden == 2;
#pragma unroll
            for (int e = 0; e < each; e++) {
                float gate = is_cell ? tanhf(x[e] + sum[e]) : sigmoid(x[e] + sum[e]);
                gates[e * wide + r] = gate;
                if (t < mine.length[e])
                    task.gates[(size_t)(mine.first[e] + t) * wide + r] = gate;
            }
        }
        __syncthreads();
        if (t < mine.steps) {
            const float *gate = gates + mine.e * wide + mine.j;
            size_t place = (size_t)(mine.my_first + t) * hidden + mine.j;
            c = gate[hidden] * c + gate[0] * gate[2 * hidden];
            float state = gate[3 * hidden] * tanhf(c);
            task.c[place] = c;
            task.h[place] = h[mine.e * form.padded + mine.j] = state;
        }
        __syncthreads();
    }
}

template <int each> static void launch_lstm(const lp_cuda_run *run, const lstm_task &task)
{
    LP_LAUNCH(run, lstm_kernel<each>, lp_blocks(run->largest_segments, each), (unsigned)task.form.threads,
              task.form.shared, task);
}

void lp_cuda_lstm(const lp_node *node, const lp_cuda_run *run)
{
    int hidden = node->inputs[1]->cols, wide = GATES * hidden;
    float *transposed = (float *)lp_cuda_scratch(run, (size_t)wide * (size_t)hidden * sizeof *transposed);
    if (!transposed)
        return;
    lstm_task task = {};
    task.form = make_form(run, hidden, GATES, (hidden + 3) / 4 * 4 + wide);
    task.x = LP_INPUT(0);
    task.transposed = transposed;
    task.h = LP_OUTPUT(0);
    task.gates = LP_OUTPUT(1);
    task.c = LP_OUTPUT(2);
    LP_LAUNCH(run, transpose_kernel, dim3(lp_blocks(hidden, 32), lp_blocks(wide, 32)), dim3(32, 8), 0, wide, hidden,
              LP_INPUT(1), transposed);
    if (task.form.each == 1)
        launch_lstm<1>(run, task);
    else if (task.form.each == 2)
        launch_lstm<2>(run, task);
    else
        launch_lstm<4>(run, task);
}

/* ---- lstm_gradient ------------------------------------------------------------------------------------------- */

typedef struct lstm_gradient_task {
    scan_form form;
    const float *gates, *c, *weight, *dh;
    float *dx;     /* may be NULL */
    float *dgates; /* the same, written even where dx is added to; NULL: dx serves, or they are not needed */
    int adds;
} lstm_gradient_task;

/* Inputs of the cell of this thread for one token: loaded before the product, used after it. */
typedef struct lstm_token {
    float i, f, g, o, c, previous, dh;
} lstm_token;

__device__ static inline lstm_token read_token(const lstm_gradient_task &task, int token, int j, bool first)
{
    int hidden = task.form.hidden;
    size_t place = (size_t)token * hidden + j;
    const float *gate = task.gates + (size_t)token * GATES * hidden + j;
    lstm_token mine = {gate[0],          gate[hidden],  gate[2 * hidden],
                       gate[3 * hidden], task.c[place], first ? 0 : task.c[place - hidden],
                       task.dh[place]};
    return mine;
}

/* Shared memory: of each gate the resident rows of W_hh, then for each segment the gradients of its gates [4 x padded] and the four
 * parts of the gradient of its hidden state [4 x H]: gate p's rows of W_hh make part p. */
template <int each> __global__ void __launch_bounds__(MOST_THREADS, 1) lstm_gradient_kernel(lstm_gradient_task task)
{
    LP_SHARED(float, weight);
    const scan_form &form = task.form;
    int hidden = form.hidden, wide = GATES * hidden, resident = form.resident, padded = form.padded;
    float *dgates = weight + resident * wide, *parts = dgates + each * GATES * padded;
    scan_segments<each> mine = scan_begin<each>(form);
    if (mine.longest == 0)
        return;
    for (int p = 0; p < GATES; p++)
        copy_in(weight + p * resident * hidden, task.weight + (size_t)p * hidden * hidden, resident * hidden);
    clear_in(dgates, each * GATES * padded);
    float dc = 0;
    __syncthreads();
#pragma unroll 1
    for (int t = mine.longest - 1; t >= 0; t--) {
        lstm_token now = {};
        if (t < mine.steps)
            now = read_token(task, mine.my_first + t, mine.j, t == 0);
#pragma unroll 1
        for (int r = (int)threadIdx.x; r < wide; r += (int)blockDim.x) {
            int p = r / hidden, j = r % hidden;
            float sum[each];
#pragma unroll
            for (int e = 0; e < each; e++)
                sum[e] = 0;
            add_terms<each>(sum, weight + p * resident * hidden + j, hidden, dgates + p * padded, GATES * padded,
                            resident);
            add_terms<each>(sum, task.weight + ((size_t)p * hidden + resident) * hidden + j, hidden,
                            dgates + p * padded + resident, GATES * padded, hidden - resident);
#pragma unroll
            for (int e = 0; e < each; e++)
                parts[e * wide + r] = sum[e];
        }
        __syncthreads();
        if (t < mine.steps) {
            const float *part = parts + mine.e * wide + mine.j;
            float dh = now.dh + ((part[0] + part[hidden]) + (part[2 * hidden] + part[3 * hidden]));
            float state = tanhf(now.c), dcell = dc + dh * now.o * (1 - state * state);
            float d[GATES] = {dcell * now.g * now.i * (1 - now.i), dcell * now.previous * now.f * (1 - now.f),
                              dcell * now.i * (1 - now.g * now.g), dh * state * now.o * (1 - now.o)};
            dc = dcell * now.f;
            size_t place = (size_t)(mine.my_first + t) * wide + mine.j;
#pragma unroll
            for (int p = 0; p < GATES; p++) {
                dgates[(mine.e * GATES + p) * padded + mine.j] = d[p];
                if (task.dx)
                    lp_store(&task.dx[place + (size_t)p * hidden], d[p], task.adds);
                if (task.dgates)
                    task.dgates[place + (size_t)p * hidden] = d[p];
            }
        }
        __syncthreads();
    }
}

template <int each> static void launch_lstm_gradient(const lp_cuda_run *run, const lstm_gradient_task &task)
{
    LP_LAUNCH(run, lstm_gradient_kernel<each>, lp_blocks(run->largest_segments, each), (unsigned)task.form.threads,
              task.form.shared, task);
}

/* Output 1 of the node: dgates^T previous_h, by linear_outer, whose two inputs are given to it as inputs of a run. */
static void weight_gradient(const lp_node *node, const lp_cuda_run *run, float *dgates, float *previous_h)
{
    lp_value inputs[2] = {};
    void *data[2] = {dgates, previous_h};
    for (int i = 0; i < 2; i++) {
        inputs[i].storage = LP_STORAGE_INPUT;
        inputs[i].rows_of = LP_ROWS_TOKENS;
        inputs[i].slot = i;
    }
    inputs[0].cols = node->outputs[1]->rows;
    inputs[1].cols = node->outputs[1]->cols;
    lp_op op = {}; /* the plugin has no op table */
    op.id = LP_OP_LINEAR_OUTER;
    op.input_count = op.output_count = 2;
    lp_node outer = {};
    outer.op = &op;
    outer.inputs[0] = &inputs[0];
    outer.inputs[1] = &inputs[1];
    outer.outputs[0] = node->outputs[1];
    outer.accumulate = node->accumulate >> 1 & 1;
    outer.attributes.heads = 1;
    lp_run given = *run->run;
    given.inputs = data;
    lp_cuda_run with = *run;
    with.run = &given;
    lp_cuda_reduce_node(&outer, &with);
}

void lp_cuda_lstm_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int hidden = node->inputs[3]->cols, wide = GATES * hidden;
    size_t tokens = (size_t)run->run->plan->largest.rows[LP_ROWS_TOKENS];
    lstm_gradient_task task = {};
    task.form = make_form(run, hidden, GATES, GATES * ((hidden + 3) / 4 * 4) + wide);
    task.gates = LP_INPUT(0);
    task.c = LP_INPUT(1);
    task.weight = LP_INPUT(3);
    task.dh = LP_INPUT(4);
    task.dx = LP_OUTPUT(0);
    task.adds = LP_ADDS(0);
    /* linear_outer uses the scratch itself, so these have memory of their own, beside values that are this layer's alone. */
    float *previous_h = NULL;
    if (node->outputs[1]) {
        previous_h = (float *)lp_cuda_side_buffer(run, node->inputs[1], tokens * (size_t)hidden * sizeof *previous_h);
        if (!task.dx || task.adds)
            task.dgates =
                (float *)lp_cuda_side_buffer(run, node->inputs[0], tokens * (size_t)wide * sizeof *task.dgates);
        if (tokens && (!previous_h || (!task.dgates && (!task.dx || task.adds))))
            return;
    }
    if (task.form.each == 1)
        launch_lstm_gradient<1>(run, task);
    else if (task.form.each == 2)
        launch_lstm_gradient<2>(run, task);
    else
        launch_lstm_gradient<4>(run, task);
    if (!node->outputs[1])
        return;
    shift_rows(run, hidden, 1, LP_INPUT(2), previous_h, 0);
    weight_gradient(node, run, task.dgates ? task.dgates : task.dx, previous_h);
}
