/* cuda_recurrent.cu: the scans of the LSTM and the GRU.
 *
 * A block takes one segment through all of its time steps, the gradient against time. A step is a product of W_hh with the state, a
 * column of it for each thread, a barrier, the cells (recurrent_cell.h), and another barrier. The block reads all of W_hh in every step,
 * so as many rows of it as fit stay in shared memory (for four gates all of them up to H = 116), and the rest comes from the L2 cache.
 * Sums are in float and in a fixed order.
 *
 * The gradient of W_hh is the product of the gates' gradients with the previous hidden states, over all tokens (lp_cuda_outer).
 */
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_rows.h"

typedef float real;
#include "formula/recurrent_cell.h"

enum { MOST_THREADS = LP_RECURRENT_HIDDEN, STORED = LP_CELL_STORED };
/* Bytes of shared memory of a block that are left free. */
enum { FREE_SHARED = 7 * 1024 };

/* Shared memory: the first `resident` rows of the weight, the state [states x padded], and its products [gates H]. */
typedef struct scan_form {
    const lp_cuda_shard *shard;
    const int32_t *segment;
    const float *weight;          /* [padded x gates H], with zeros after row H */
    int hidden, padded, resident; /* padded: H to four, for reads of 16 bytes; resident: a multiple of four */
} scan_form;

/* The sum of weight[k * stride] state[k] over `count` terms, a multiple of four. */
__device__ static inline float add_terms(float sum, const float *weight, int stride, const float *state, int count)
{
#pragma unroll 2
    for (int k = 0; k < count; k += 4) {
        lp_vector<4> x = lp_vector_load<4>(state + k);
        float w[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = weight[(k + i) * stride];
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum += w[i] * x.at[i];
    }
    return sum;
}

/* A cell of one segment: the hidden state is the state of the product. load() reads what step() needs of a token, before the product. */
template <int count, lp_cell_step cell> struct scan_step {
    enum { gates = count, states = 1, against = 0 }; /* against: time */
    const float *x, *bias; /* [T x gates H]; [gates H], may be NULL */
    float *h, *stored, *c; /* [T x H], [T x 4H], [T x H]; c: of the LSTM, otherwise NULL */
    float input[gates] = {}, state = 0;

    __device__ void load(size_t token, bool first, int hidden, int j)
    {
        (void)first;
#pragma unroll
        for (int p = 0; p < gates; p++)
            input[p] = x[(token * gates + p) * hidden + j];
    }

    /* product: `hidden` floats from gate to gate. */
    __device__ void step(size_t token, int hidden, int j, const float *product, float *next, int)
    {
        float a[gates], out[STORED];
#pragma unroll
        for (int p = 0; p < gates; p++)
            a[p] = product[p * hidden] + (bias ? bias[p * hidden + j] : 0);
        *next = h[token * hidden + j] = cell(input, a, &state, out);
#pragma unroll
        for (int i = 0; i < STORED; i++)
            stored[(token * STORED + i) * hidden + j] = out[i];
        if (c)
            c[token * hidden + j] = state;
    }
};

/* The state of the product is the gradients of the recurrent parts of the gates, at the later token. */
template <int count, lp_cell_gradient cell> struct scan_step_gradient {
    enum { gates = count, states = count, against = 1 };
    const float *stored, *state, *h, *dh; /* state [T x H]: the LSTM's c, the GRU's h */
    float *dx;                            /* [T x gates H] of the gates' input parts; may be NULL */
    float *dgates, *previous_h;           /* of their recurrent parts, and [T x H]: h of the token before */
    int adds;
    float carried = 0, in[STORED] = {}, mine = 0, previous = 0, before = 0, given = 0;

    __device__ void load(size_t token, bool first, int hidden, int j)
    {
        size_t place = token * hidden + j;
#pragma unroll
        for (int i = 0; i < STORED; i++)
            in[i] = stored[(token * STORED + i) * hidden + j];
        mine = state[place];
        previous = first ? 0 : state[place - hidden];
        before = first ? 0 : h[place - hidden];
        given = dh[place];
    }

    __device__ void step(size_t token, int hidden, int j, const float *product, float *next, int padded)
    {
        float da[gates], sum = given;
#pragma unroll
        for (int p = 0; p < gates; p++)
            sum += product[p * hidden];
        float last = cell(in, mine, previous, sum, &carried, da);
#pragma unroll
        for (int p = 0; p < gates; p++) {
            size_t at = (token * gates + p) * hidden + j;
            next[p * padded] = da[p];
            if (dx)
                lp_store(&dx[at], p < gates - 1 ? da[p] : last, adds);
            dgates[at] = da[p];
        }
        previous_h[token * hidden + j] = before;
    }
};

template <typename cells> __global__ void __launch_bounds__(MOST_THREADS, 1) scan_kernel(scan_form form, cells mine)
{
    LP_SHARED(float, resident);
    int hidden = form.hidden, wide = cells::gates * hidden, j = (int)threadIdx.x, rest = form.padded - form.resident;
    float *state = resident + form.resident * wide, *products = state + cells::states * form.padded;
    if ((int)blockIdx.x >= form.shard->segments)
        return;
    int first = form.segment[blockIdx.x], steps = form.segment[blockIdx.x + 1] - first;
    for (int i = j; i < form.resident * wide; i += (int)blockDim.x)
        resident[i] = form.weight[i];
    for (int i = j; i < cells::states * form.padded; i += (int)blockDim.x)
        state[i] = 0;
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        int t = cells::against ? steps - 1 - i : i; /* the gradient: against time */
        if (j < hidden)
            mine.load((size_t)(first + t), t == 0, hidden, j);
#pragma unroll 1
        for (int r = j; r < wide; r += (int)blockDim.x) {
            const float *by = cells::against ? state + r / hidden * form.padded : state;
            float sum = add_terms(0, resident + r, wide, by, form.resident);
            products[r] =
                add_terms(sum, form.weight + (size_t)form.resident * wide + r, wide, by + form.resident, rest);
        }
        __syncthreads();
        if (j < hidden)
            mine.step((size_t)(first + t), hidden, j, products + j, state + j, form.padded);
        __syncthreads();
    }
}

static int padded_to_four(int count)
{
    return (count + 3) / 4 * 4;
}

/* Floats of a weight as scan_form has it. */
static size_t packed_size(int hidden, int gates)
{
    return (size_t)padded_to_four(hidden) * hidden * gates;
}

/* Column p H + c of the packed weight: row p H + c of W_hh; for the gradient, column c of gate p's rows. */
template <typename cells>
static void launch(const lp_cuda_run *run, const lp_value *w_hh, float *packed, const cells &mine)
{
    const float *weight = (const float *)lp_run_data(run->run, w_hh);
    int hidden = w_hh->cols, wide = w_hh->rows, padded = padded_to_four(hidden),
        threads = min((wide + 31) / 32 * 32, (int)MOST_THREADS);
    int state = cells::states * padded + wide, 
        fit = ((run->device->shared - FREE_SHARED) / (int)sizeof(float) - state) / wide / 4 * 4;
    bool against = cells::against;
    lp_cuda_each(run, w_hh, padded, [=] __device__(int i, int) {
        int k = i / wide, r = i % wide;
        size_t from = against ? (size_t)(r / hidden * hidden + k) * hidden + r % hidden : (size_t)r * hidden + k;
        packed[i] = k < hidden ? weight[from] : 0;
    });
    scan_form form = {run->shard, run->segment, packed, hidden, padded, min(fit, padded)};
    LP_LAUNCH(run, scan_kernel<cells>, (unsigned)run->largest_segments, (unsigned)threads,
              (size_t)(state + form.resident * wide) * sizeof(float), form, mine);
}

/* Inputs: x, W_hh and, of the GRU, a bias. Outputs: h, what is stored and, of the LSTM, c. */
template <int gates, lp_cell_step cell> static void scan(const lp_node *node, const lp_cuda_run *run)
{
    int hidden = node->inputs[1]->cols;
    float *packed = (float *)lp_cuda_scratch(run, packed_size(hidden, gates) * sizeof *packed);
    scan_step<gates, cell> mine = {LP_INPUT(0), LP_INPUT(2), LP_OUTPUT(0), LP_OUTPUT(1), LP_OUTPUT(2)};
    if (packed)
        launch(run, node->inputs[1], packed, mine);
}

/* Inputs: what is stored, of the LSTM c, h, W_hh, dh. */
template <int gates, lp_cell_gradient cell> static void scan_gradient(const lp_node *node, const lp_cuda_run *run)
{
    int weight = node->op->input_count - 2, hidden = node->inputs[weight]->cols, wide = gates * hidden;
    size_t tokens = (size_t)run->run->plan->largest.rows[LP_ROWS_TOKENS] / 64 * 64 + 64; /* aligns what follows */
    size_t size = tokens * (size_t)(wide + hidden) + packed_size(hidden, gates);
    /* lp_cuda_outer uses the scratch itself, so these have memory of their own, beside a value that is this layer's alone. */
    float *dgates = (float *)lp_cuda_side_buffer(run, node->inputs[0], size * sizeof *dgates);
    if (!dgates)
        return;
    float *previous_h = dgates + tokens * wide, *packed = previous_h + tokens * hidden;
    scan_step_gradient<gates, cell> mine = {LP_INPUT(0),  LP_INPUT(1), LP_INPUT(weight - 1), LP_INPUT(weight + 1),
                                            LP_OUTPUT(0), dgates,      previous_h,           LP_ADDS(0)};
    launch(run, node->inputs[weight], packed, mine);
    if (node->outputs[1] || node->outputs[2])
        lp_cuda_outer(run, {LP_ROWS_TOKENS, 0}, dgates, wide, previous_h, hidden, LP_OUTPUT(1), LP_ADDS(1),
                      LP_OUTPUT(2), LP_ADDS(2));
}

LP_CUDA_OP_BY(rnn, (scan<1, lp_rnn_step>))
LP_CUDA_OP_BY(rnn_gradient, (scan_gradient<1, lp_rnn_step_gradient>))
LP_CUDA_OP_BY(lstm, (scan<4, lp_lstm_step>))
LP_CUDA_OP_BY(lstm_gradient, (scan_gradient<4, lp_lstm_step_gradient>))
LP_CUDA_OP_BY(gru, (scan<3, lp_gru_step>))
LP_CUDA_OP_BY(gru_gradient, (scan_gradient<3, lp_gru_step_gradient>))
