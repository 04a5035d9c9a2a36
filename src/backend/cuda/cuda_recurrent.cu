/* cuda_recurrent.cu: shifts of rows, and the scans of the LSTM and the GRU.
 *
 * A block takes one to four segments through all of their time steps. A step is a product of the hidden states with W_hh, of which
 * every thread computes one gate, a barrier, the cells, and another barrier. The block reads all of W_hh in every step, so as many
 * rows of it as fit stay in shared memory (for four gates all of them up to H = 116), and the rest comes from the L2 cache. Sums are
 * in float and in a fixed order, whatever the number of segments in a block.
 *
 * The gradient of W_hh is the product of the gates' gradients with the previous hidden states, over all tokens: linear_outer.
 */
#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_rows.h"

/* ---- shift_rows ---------------------------------------------------------------------------------------------- */

__global__ void shift_rows_kernel(const lp_cuda_shard *shard, const int32_t *segment, lp_rows rows_of, int cols, int k,
                                  const float *x, float *y, int adds)
{
    int row = (int)(blockIdx.x * blockDim.y + threadIdx.y);
    if (row >= shard->rows[rows_of])
        return;
    int s = lp_segment_of(segment, shard->segments, row);
    bool inside = row - k >= segment[s] && row - k < segment[s + 1];
    for (int c = (int)threadIdx.x; c < cols; c += (int)blockDim.x)
        lp_store(&y[(size_t)row * cols + c], inside ? x[((size_t)row - k) * cols + c] : 0, adds);
}

static void shift_rows(const lp_cuda_run *run, lp_rows rows_of, int cols, int k, const float *x, float *y, int adds)
{
    int tokens = (int)run->run->plan->largest.rows[rows_of];
    LP_LAUNCH(run, shift_rows_kernel, lp_blocks(tokens, 8), dim3(32, 8), 0, run->shard, run->segment, rows_of, cols, k,
              x, y, adds);
}

void lp_cuda_shift_rows(const lp_node *node, const lp_cuda_run *run)
{
    shift_rows(run, node->outputs[0]->rows_of, node->outputs[0]->cols, (int)node->attributes.shift, LP_INPUT(0),
               LP_OUTPUT(0), LP_ADDS(0));
}

/* ---- segments of a block -------------------------------------------------------------------------------------- */

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

/* ---- products of a step ---------------------------------------------------------------------------------------- */

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
    const float *gates, *state, *weight, *dh; /* state [T x H]: the LSTM's c, the GRU's h */
    float *dx;                                /* [T x gates H] of the gates' input parts; may be NULL */
    float *dgates;                            /* of their recurrent parts; may be NULL */
    int adds;
} scan_gradient_task;

/* Inputs of the cell of this thread for one token: loaded before the product, used after it. */
typedef struct scan_token {
    float gate[STORED], state, previous, dh;
} scan_token;

/* A cell: the column of a hidden state of one segment. */
struct lstm_cell {
    static constexpr int gates = 4;
    float c = 0, dc = 0;

    /* The value of a gate, and where it is stored. */
    __device__ static float activated(int gate, float x, float recurrent)
    {
        return gate == 2 ? tanhf(x + recurrent) : scan_sigmoid(x + recurrent);
    }
    __device__ static int stored(int gate)
    {
        return gate;
    }

    /* The next hidden state. gate: those of the column, `hidden` floats apart. */
    __device__ float step(const scan_task &task, size_t token, int j, const float *gate, float)
    {
        int hidden = task.form.hidden;
        c = gate[hidden] * c + gate[0] * gate[2 * hidden];
        task.c[token * hidden + j] = c;
        return gate[3 * hidden] * tanhf(c);
    }

    /* part: of the gradient of the hidden state by way of the later token. d, dx: of the recurrent and of the input parts of the gates. */
    __device__ void gradient(const scan_token &now, const float *part, int hidden, float (&d)[gates],
                             float (&dx)[gates])
    {
        float i = now.gate[0], f = now.gate[1], g = now.gate[2], o = now.gate[3], state = tanhf(now.state);
        float dh = now.dh + ((part[0] + part[hidden]) + (part[2 * hidden] + part[3 * hidden]));
        float dcell = dc + dh * o * (1 - state * state);
        d[0] = dx[0] = dcell * g * i * (1 - i);
        d[1] = dx[1] = dcell * now.previous * f * (1 - f);
        d[2] = dx[2] = dcell * i * (1 - g * g);
        d[3] = dx[3] = dh * state * o * (1 - o);
        dc = dcell * f;
    }
};

struct gru_cell {
    static constexpr int gates = 3;
    float h = 0, direct = 0; /* direct: the gradient of the hidden state by way of the later token's z */

    __device__ static float activated(int gate, float x, float recurrent)
    {
        return gate < 2 ? scan_sigmoid(x + recurrent) : recurrent;
    }
    __device__ static int stored(int gate)
    {
        return gate < 2 ? gate : 3;
    }

    /* input: the input part of the last gate. */
    __device__ float step(const scan_task &task, size_t token, int j, const float *gate, float input)
    {
        int hidden = task.form.hidden;
        float n = tanhf(input + gate[0] * gate[2 * hidden]);
        task.gates[(token * STORED + 2) * hidden + j] = n;
        return h = n + gate[hidden] * (h - n);
    }

    __device__ void gradient(const scan_token &now, const float *part, int hidden, float (&d)[gates],
                             float (&dx)[gates])
    {
        float r = now.gate[0], z = now.gate[1], n = now.gate[2], q = now.gate[3];
        float dh = now.dh + ((part[0] + part[hidden]) + (part[2 * hidden] + direct)), dn = dh * (1 - z) * (1 - n * n);
        d[0] = dx[0] = dn * q * r * (1 - r);
        d[1] = dx[1] = dh * (now.previous - n) * z * (1 - z);
        d[2] = dn * r;
        dx[2] = dn;
        direct = dh * z;
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
    scan_segments<each> mine = scan_begin<each>(form);
    if (mine.longest == 0)
        return;
    copy_in(weight, task.transposed, form.resident * wide);
    clear_in(h, each * form.padded);
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
            scan_gate<each>(sum, form, wide, r, weight, task.transposed, h);
#pragma unroll
            for (int e = 0; e < each; e++) {
                float value = cell::activated(gate, x[e], sum[e] + bias);
                gates[e * wide + r] = value;
                if (t < mine.length[e])
                    task.gates[((size_t)(mine.first[e] + t) * STORED + cell::stored(gate) - gate) * hidden + r] = value;
            }
        }
        __syncthreads();
        if (t < mine.steps)
            task.h[token * hidden + mine.j] = h[mine.e * form.padded + mine.j] =
                mine_cell.step(task, token, mine.j, gates + mine.e * wide + mine.j, input);
        __syncthreads();
    }
}

__device__ static inline scan_token read_token(const scan_gradient_task &task, size_t token, int j, bool first)
{
    int hidden = task.form.hidden;
    size_t place = token * hidden + j;
    const float *gate = task.gates + token * STORED * hidden + j;
    return {{gate[0], gate[hidden], gate[2 * hidden], gate[3 * hidden]},
            task.state[place],
            first ? 0 : task.state[place - hidden],
            task.dh[place]};
}

/* Shared memory: of each gate the resident rows of W_hh, then for each segment the gradients of its gates [gates x padded] and the
 * parts of the gradient of its hidden state [gates x H]: gate p's rows of W_hh make part p. */
template <typename cell, int each>
__global__ void __launch_bounds__(MOST_THREADS, 1) scan_gradient_kernel(scan_gradient_task task)
{
    LP_SHARED(float, weight);
    const scan_form &form = task.form;
    int hidden = form.hidden, wide = cell::gates * hidden, padded = form.padded;
    float *dgates = weight + form.weight_floats, *parts = dgates + each * cell::gates * padded;
    scan_segments<each> mine = scan_begin<each>(form);
    if (mine.longest == 0)
        return;
    scan_gradient_begin<each, cell::gates>(form, weight, task.weight, dgates);
    cell mine_cell;
    __syncthreads();
#pragma unroll 1
    for (int t = mine.longest - 1; t >= 0; t--) {
        size_t token = (size_t)(mine.my_first + t);
        scan_token now = {};
        if (t < mine.steps)
            now = read_token(task, token, mine.j, t == 0);
        scan_gradient_parts<each, cell::gates>(form, weight, task.weight, dgates, parts);
        __syncthreads();
        if (t < mine.steps) {
            float d[cell::gates], dx[cell::gates];
            mine_cell.gradient(now, parts + mine.e * wide + mine.j, hidden, d, dx);
#pragma unroll
            for (int p = 0; p < cell::gates; p++) {
                size_t place = token * wide + (size_t)p * hidden + mine.j;
                dgates[(mine.e * cell::gates + p) * padded + mine.j] = d[p];
                if (task.dx)
                    lp_store(&task.dx[place], dx[p], task.adds);
                if (task.dgates)
                    task.dgates[place] = d[p];
            }
        }
        __syncthreads();
    }
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

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

static void transpose_weight(const lp_cuda_run *run, int rows, int cols, const float *in, float *out)
{
    LP_LAUNCH(run, transpose_kernel, dim3(lp_blocks(cols, 32), lp_blocks(rows, 32)), dim3(32, 8), 0, rows, cols, in,
              out);
}

/* Output 1 of the node, dweight_hh = dgates^T (h shifted by one token), and output 2, dbias_hh = the column sums of dgates, where
 * the node has them. previous_h [T x H] is a buffer, unused without output 1. By linear_outer, whose two inputs are given to it as inputs of a run; column_sum where only the bias is trained. */
static void weight_gradient(const lp_node *node, const lp_cuda_run *run, const float *h, float *dgates,
                            float *previous_h)
{
    lp_value inputs[2] = {}, *dweight = node->outputs[1], *dbias = node->op->output_count > 2 ? node->outputs[2] : NULL;
    void *data[2] = {dgates, previous_h};
    if (!dweight && !dbias)
        return;
    for (int i = 0; i < 2; i++) {
        inputs[i].storage = LP_STORAGE_INPUT;
        inputs[i].rows_of = LP_ROWS_TOKENS;
        inputs[i].slot = i;
    }
    inputs[0].cols = dweight ? dweight->rows : dbias->cols;
    inputs[1].cols = dweight ? dweight->cols : 0;
    lp_op op = {}; /* the plugin has no op table */
    op.id = dweight ? LP_OP_LINEAR_OUTER : LP_OP_COLUMN_SUM;
    op.input_count = op.output_count = dweight ? 2 : 1;
    lp_node sums = {};
    sums.op = &op;
    sums.inputs[0] = &inputs[0];
    sums.inputs[1] = dweight ? &inputs[1] : NULL;
    sums.outputs[0] = dweight ? dweight : dbias;
    sums.outputs[1] = dweight ? dbias : NULL;
    sums.accumulate = node->accumulate >> (dweight ? 1 : 2) & 3;
    sums.attributes.heads = 1;
    lp_run given = *run->run;
    given.inputs = data;
    lp_cuda_run with = *run;
    with.run = &given;
    if (dweight)
        shift_rows(run, LP_ROWS_TOKENS, dweight->cols, 1, h, previous_h, 0);
    lp_cuda_reduce_node(&sums, &with);
}

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

/* Inputs: x, W_hh and, of the GRU, a bias. Outputs: h, gates and, of the LSTM, c. */
template <typename cell> static void scan(const lp_node *node, const lp_cuda_run *run)
{
    int hidden = node->inputs[1]->cols, wide = cell::gates * hidden;
    float *transposed = (float *)lp_cuda_scratch(run, (size_t)wide * (size_t)hidden * sizeof *transposed);
    if (!transposed)
        return;
    scan_task task = {};
    task.form = make_form(run, hidden, cell::gates, (hidden + 3) / 4 * 4 + wide);
    task.x = LP_INPUT(0);
    task.transposed = transposed;
    task.bias = node->op->input_count > 2 ? LP_INPUT(2) : NULL;
    task.h = LP_OUTPUT(0);
    task.gates = LP_OUTPUT(1);
    task.c = node->op->output_count > 2 ? LP_OUTPUT(2) : NULL;
    transpose_weight(run, wide, hidden, LP_INPUT(1), transposed);
    scan_launch(task.form, [&](auto each) {
        LP_LAUNCH(run, (scan_kernel<cell, decltype(each)::value>), lp_blocks(run->largest_segments, task.form.each),
                  (unsigned)task.form.threads, task.form.shared, task);
    });
}

/* Inputs: gates, of the LSTM c, h, W_hh, dh. */
template <typename cell> static void scan_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int weight = node->op->input_count - 2, hidden = node->inputs[weight]->cols, wide = cell::gates * hidden;
    size_t tokens = (size_t)run->run->plan->largest.rows[LP_ROWS_TOKENS];
    scan_gradient_task task = {};
    task.form = make_form(run, hidden, cell::gates, cell::gates * ((hidden + 3) / 4 * 4) + wide);
    task.gates = LP_INPUT(0);
    task.state = LP_INPUT(1);
    task.weight = LP_INPUT(weight);
    task.dh = LP_INPUT(weight + 1);
    task.dx = LP_OUTPUT(0);
    task.adds = LP_ADDS(0);
    /* linear_outer uses the scratch itself, so these have memory of their own, beside values that are this layer's alone. */
    float *previous_h = NULL;
    if (node->outputs[1] || (node->op->output_count > 2 && node->outputs[2])) {
        previous_h = (float *)lp_cuda_side_buffer(run, node->inputs[1], tokens * (size_t)hidden * sizeof *previous_h);
        task.dgates = (float *)lp_cuda_side_buffer(run, node->inputs[0], tokens * (size_t)wide * sizeof *task.dgates);
        if (tokens && (!previous_h || !task.dgates))
            return;
    }
    scan_launch(task.form, [&](auto each) {
        LP_LAUNCH(run, (scan_gradient_kernel<cell, decltype(each)::value>),
                  lp_blocks(run->largest_segments, task.form.each), (unsigned)task.form.threads, task.form.shared,
                  task);
    });
    weight_gradient(node, run, LP_INPUT(weight - 1), task.dgates, previous_h);
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
