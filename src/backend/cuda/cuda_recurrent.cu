/* cuda_recurrent.cu: shifts of rows, and the LSTM by the scan of cuda_scan.h. */
#include "backend/cuda/cuda_reduction.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_scan.h"

enum { GATES = 4 };

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

/* ---- what the scans share ------------------------------------------------------------------------------------ */

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

void lp_cuda_transpose_weight(const lp_cuda_run *run, int rows, int cols, const float *in, float *out)
{
    LP_LAUNCH(run, transpose_kernel, dim3(lp_blocks(cols, 32), lp_blocks(rows, 32)), dim3(32, 8), 0, rows, cols, in,
              out);
}

/* linear_outer, whose two inputs are given to it as inputs of a run; column_sum where only the bias is trained. */
void lp_cuda_recurrent_weight_gradient(const lp_node *node, const lp_cuda_run *run, const float *h, float *dgates,
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

/* ---- lstm ---------------------------------------------------------------------------------------------------- */

typedef struct lstm_task {
    scan_form form;
    const float *x, *transposed; /* [T x 4H]; [H x 4H]: W_hh^T */
    float *h, *gates, *c;
} lstm_task;

/* Shared memory: resident rows of W_hh^T, then for each segment its hidden state [padded] and its activated gates [4H]. */
template <int each> __global__ void __launch_bounds__(MOST_THREADS, 1) lstm_kernel(lstm_task task)
{
    LP_SHARED(float, weight);
    const scan_form &form = task.form;
    int hidden = form.hidden, wide = GATES * hidden, resident = form.resident;
    float *h = weight + form.weight_floats, *gates = h + each * form.padded;
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
            for (int e = 0; e < each; e++)
                x[e] = t < mine.length[e] ? task.x[(size_t)(mine.first[e] + t) * wide + r] : 0;
            scan_gate<each>(sum, form, wide, r, weight, task.transposed, h);
            bool is_cell = r / hidden == 2;
#pragma unroll
            for (int e = 0; e < each; e++) {
                float gate = is_cell ? tanhf(x[e] + sum[e]) : scan_sigmoid(x[e] + sum[e]);
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
    lp_cuda_transpose_weight(run, wide, hidden, LP_INPUT(1), transposed);
    scan_launch(task.form, [&](auto each) {
        LP_LAUNCH(run, lstm_kernel<decltype(each)::value>, lp_blocks(run->largest_segments, task.form.each),
                  (unsigned)task.form.threads, task.form.shared, task);
    });
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
    int hidden = form.hidden, wide = GATES * hidden, padded = form.padded;
    float *dgates = weight + form.weight_floats, *parts = dgates + each * GATES * padded;
    scan_segments<each> mine = scan_begin<each>(form);
    if (mine.longest == 0)
        return;
    scan_gradient_begin<each, GATES>(form, weight, task.weight, dgates);
    float dc = 0;
    __syncthreads();
#pragma unroll 1
    for (int t = mine.longest - 1; t >= 0; t--) {
        lstm_token now = {};
        if (t < mine.steps)
            now = read_token(task, mine.my_first + t, mine.j, t == 0);
        scan_gradient_parts<each, GATES>(form, weight, task.weight, dgates, parts);
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
    scan_launch(task.form, [&](auto each) {
        LP_LAUNCH(run, lstm_gradient_kernel<decltype(each)::value>, lp_blocks(run->largest_segments, task.form.each),
                  (unsigned)task.form.threads, task.form.shared, task);
    });
    lp_cuda_recurrent_weight_gradient(node, run, LP_INPUT(2), task.dgates ? task.dgates : task.dx, previous_h);
}
