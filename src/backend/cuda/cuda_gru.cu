/* cuda_gru.cu: the GRU, by the scan of cuda_scan.h. */
#include "backend/cuda/cuda_scan.h"

enum { GATES = 3, STORED = 4 };

/* ---- gru ----------------------------------------------------------------------------------------------------- */

typedef struct gru_task {
    scan_form form;
    const float *x, *transposed, *bias; /* [T x 3H]; [H x 3H]: W_hh^T; [3H] */
    float *h, *gates;                   /* [T x H], [T x 4H] */
} gru_task;

/* Shared memory: resident rows of W_hh^T, then for each segment its hidden state [padded], and r, z and the recurrent part of n
 * [3H]. */
template <int each> __global__ void __launch_bounds__(MOST_THREADS, 1) gru_kernel(gru_task task)
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
    float state = 0;
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < mine.longest; t++) {
        float input = t < mine.steps ? task.x[(size_t)(mine.my_first + t) * wide + 2 * hidden + mine.j] : 0;
#pragma unroll 1
        for (int r = (int)threadIdx.x; r < wide; r += (int)blockDim.x) {
            int gate = r / hidden;
            float x[each], sum[each], bias = task.bias[r];
#pragma unroll
            for (int e = 0; e < each; e++)
                x[e] = gate < 2 && t < mine.length[e] ? task.x[(size_t)(mine.first[e] + t) * wide + r] : 0;
            scan_gate<each>(sum, form, wide, r, weight, task.transposed, h);
#pragma unroll
            for (int e = 0; e < each; e++) {
                float a = sum[e] + bias, value = gate < 2 ? scan_sigmoid(x[e] + a) : a;
                gates[e * wide + r] = value;
                if (t < mine.length[e])
                    task.gates[(size_t)(mine.first[e] + t) * STORED * hidden + r + (gate == 2 ? hidden : 0)] = value;
            }
        }
        __syncthreads();
        if (t < mine.steps) {
            const float *gate = gates + mine.e * wide + mine.j;
            size_t token = (size_t)(mine.my_first + t);
            float n = tanhf(input + gate[0] * gate[2 * hidden]);
            state = n + gate[hidden] * (state - n);
            task.gates[(token * STORED + 2) * hidden + mine.j] = n;
            task.h[token * hidden + mine.j] = h[mine.e * form.padded + mine.j] = state;
        }
        __syncthreads();
    }
}

void lp_cuda_gru(const lp_node *node, const lp_cuda_run *run)
{
    int hidden = node->inputs[1]->cols, wide = GATES * hidden;
    float *transposed = (float *)lp_cuda_scratch(run, (size_t)wide * (size_t)hidden * sizeof *transposed);
    if (!transposed)
        return;
    gru_task task = {};
    task.form = make_form(run, hidden, GATES, (hidden + 3) / 4 * 4 + wide);
    task.x = LP_INPUT(0);
    task.transposed = transposed;
    task.bias = LP_INPUT(2);
    task.h = LP_OUTPUT(0);
    task.gates = LP_OUTPUT(1);
    lp_cuda_transpose_weight(run, wide, hidden, LP_INPUT(1), transposed);
    scan_launch(task.form, [&](auto each) {
        LP_LAUNCH(run, gru_kernel<decltype(each)::value>, lp_blocks(run->largest_segments, task.form.each),
                  (unsigned)task.form.threads, task.form.shared, task);
    });
}

/* ---- gru_gradient -------------------------------------------------------------------------------------------- */

typedef struct gru_gradient_task {
    scan_form form;
    const float *gates, *h, *weight, *dh; /* [T x 4H], [T x H], [3H x H], [T x H] */
    float *dx;                            /* [T x 3H] of the gates' input parts; may be NULL */
    float *da;                            /* [T x 3H] of their recurrent parts; may be NULL */
    int adds;
} gru_gradient_task;

/* Inputs of the cell of this thread for one token: loaded before the product, used after it. */
typedef struct gru_token {
    float r, z, n, q, previous, dh;
} gru_token;

__device__ static inline gru_token read_token(const gru_gradient_task &task, int token, int j, bool first)
{
    int hidden = task.form.hidden;
    size_t place = (size_t)token * hidden + j;
    const float *gate = task.gates + (size_t)token * STORED * hidden + j;
    gru_token mine = {
        gate[0], gate[hidden], gate[2 * hidden], gate[3 * hidden], first ? 0 : task.h[place - hidden], task.dh[place]};
    return mine;
}

/* Shared memory: of each gate the resident rows of W_hh, then for each segment the gradients of its recurrent parts [3 x padded] and
 * the three parts of the gradient of its hidden state [3 x H]: gate p's rows of W_hh make part p. */
template <int each> __global__ void __launch_bounds__(MOST_THREADS, 1) gru_gradient_kernel(gru_gradient_task task)
{
    LP_SHARED(float, weight);
    const scan_form &form = task.form;
    int hidden = form.hidden, wide = GATES * hidden, padded = form.padded;
    float *da = weight + form.weight_floats, *parts = da + each * GATES * padded;
    scan_segments<each> mine = scan_begin<each>(form);
    if (mine.longest == 0)
        return;
    scan_gradient_begin<each, GATES>(form, weight, task.weight, da);
    float direct = 0; /* the gradient of the hidden state by way of the later token's z */
    __syncthreads();
#pragma unroll 1
    for (int t = mine.longest - 1; t >= 0; t--) {
        gru_token now = {};
        if (t < mine.steps)
            now = read_token(task, mine.my_first + t, mine.j, t == 0);
        scan_gradient_parts<each, GATES>(form, weight, task.weight, da, parts);
        __syncthreads();
        if (t < mine.steps) {
            const float *part = parts + mine.e * wide + mine.j;
            float dh = now.dh + ((part[0] + part[hidden]) + (part[2 * hidden] + direct));
            float dn = dh * (1 - now.z) * (1 - now.n * now.n);
            float d[GATES] = {dn * now.q * now.r * (1 - now.r), dh * (now.previous - now.n) * now.z * (1 - now.z),
                              dn * now.r};
            direct = dh * now.z;
            size_t place = (size_t)(mine.my_first + t) * wide + mine.j;
#pragma unroll
            for (int p = 0; p < GATES; p++) {
                da[(mine.e * GATES + p) * padded + mine.j] = d[p];
                if (task.da)
                    task.da[place + (size_t)p * hidden] = d[p];
                if (task.dx)
                    lp_store(&task.dx[place + (size_t)p * hidden], p == 2 ? dn : d[p], task.adds);
            }
        }
        __syncthreads();
    }
}

void lp_cuda_gru_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int hidden = node->inputs[2]->cols, wide = GATES * hidden;
    size_t tokens = (size_t)run->run->plan->largest.rows[LP_ROWS_TOKENS];
    gru_gradient_task task = {};
    task.form = make_form(run, hidden, GATES, GATES * ((hidden + 3) / 4 * 4) + wide);
    task.gates = LP_INPUT(0);
    task.h = LP_INPUT(1);
    task.weight = LP_INPUT(2);
    task.dh = LP_INPUT(3);
    task.dx = LP_OUTPUT(0);
    task.adds = LP_ADDS(0);
    /* The sums use the scratch themselves, so these have memory of their own, beside values that are this layer's alone. */
    float *previous_h = NULL;
    if (node->outputs[1] || node->outputs[2]) {
        previous_h = (float *)lp_cuda_side_buffer(run, node->inputs[1], tokens * (size_t)hidden * sizeof *previous_h);
        task.da = (float *)lp_cuda_side_buffer(run, node->inputs[0], tokens * (size_t)wide * sizeof *task.da);
        if (tokens && (!previous_h || !task.da))
            return;
    }
    scan_launch(task.form, [&](auto each) {
        LP_LAUNCH(run, gru_gradient_kernel<decltype(each)::value>, lp_blocks(run->largest_segments, task.form.each),
                  (unsigned)task.form.threads, task.form.shared, task);
    });
    lp_cuda_recurrent_weight_gradient(node, run, task.h, task.da, previous_h);
}
