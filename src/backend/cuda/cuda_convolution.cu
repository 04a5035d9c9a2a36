/* cuda_convolution.cu: shifts of rows, and convolutions over the tokens of packed sequences. A warp owns a token, a lane its
 * elements of the result; windows are short, so that each lane loops over the rows of its own and reads neighbours from the cache. */
#include "backend/cuda/cuda.h"

namespace
{

enum { WARPS = 8 };

/* What an op has for element i of the result's row of a token. */
typedef struct window {
    const lp_cuda_shard *shard;
    const int32_t *segment;
    const float *in[3];               /* inputs of the node */
    int height, cols, filters, shift; /* sizes of the window, or the distance of a shift */
    int t = 0, begin = 0, end = 0;    /* the token, and the tokens of its segment */
} window;

__device__ float shift_rows(const window &w, int c)
{
    int from = w.t - w.shift;
    return from >= w.begin && from < w.end ? w.in[0][(size_t)from * w.cols + c] : 0;
}

__device__ float fold(const window &w, int c)
{
    float sum = w.in[1] ? w.in[1][c] : 0;
    for (int m = 0; m < w.height && w.t - m >= w.begin; m++)
        sum += w.in[0][((size_t)(w.t - m) * w.height + m) * w.cols + c];
    return sum;
}

__device__ float unfold(const window &w, int i)
{
    int m = i / w.cols, c = i - m * w.cols;
    return w.t + m < w.end ? w.in[0][(size_t)(w.t + m) * w.cols + c] : 0;
}

__device__ float max_rows(const window &w, int c)
{
    float most = w.in[0][(size_t)w.t * w.cols + c];
    for (int m = 1; m < w.height && w.t - m >= w.begin; m++)
        most = fmaxf(most, w.in[0][(size_t)(w.t - m) * w.cols + c]);
    return most;
}

__device__ float max_rows_gradient(const window &w, int c)
{
    const float *x = w.in[0], *y = w.in[1], *dy = w.in[2];
    float mine = x[(size_t)w.t * w.cols + c], sum = 0;
    for (int m = 0; m < w.height && w.t + m < w.end; m++) {
        size_t place = (size_t)(w.t + m) * w.cols + c;
        if (m > 0 && x[place] >= mine)
            break;
        sum += y[place] == mine ? dy[place] : 0;
    }
    return sum;
}

__device__ float vertical_conv(const window &w, int i)
{
    const float *x = w.in[0], *weight = w.in[1];
    int j = i / w.cols, c = i - j * w.cols;
    float sum = 0;
    for (int m = 0; m < w.height && w.t - m >= w.begin; m++)
        sum += weight[j * w.height + m] * x[(size_t)(w.t - m) * w.cols + c];
    return sum;
}

__device__ float vertical_conv_gradient(const window &w, int c)
{
    const float *weight = w.in[0], *dy = w.in[1];
    float sum = 0;
    for (int m = 0; m < w.height && w.t + m < w.end; m++)
        for (int j = 0; j < w.filters; j++)
            sum += weight[j * w.height + m] * dy[((size_t)(w.t + m) * w.filters + j) * w.cols + c];
    return sum;
}

/* The sum over columns of a filter and tap. */
__device__ float vertical_conv_products(const window &w, int i)
{
    const float *x = w.in[0], *dy = w.in[1];
    int j = i / w.height, m = i - j * w.height;
    float sum = 0;
    for (int c = 0; w.t - m >= w.begin && c < w.cols; c++)
        sum += x[(size_t)(w.t - m) * w.cols + c] * dy[((size_t)w.t * w.filters + j) * w.cols + c];
    return sum;
}

/* width: of the result. */
template <float (*element)(const window &, int)>
__global__ void window_kernel(window w, float *out, int width, lp_cuda_rows rows, int adds)
{
    w.t = (int)(blockIdx.x * WARPS + threadIdx.y);
    if (w.t >= lp_rows_now(rows, w.shard))
        return;
    int s = lp_segment_of(w.segment, w.shard->segments, w.t);
    w.begin = w.segment[s];
    w.end = w.segment[s + 1];
    for (int i = (int)threadIdx.x; i < width; i += 32)
        lp_store(&out[(size_t)w.t * width + i], element(w, i), adds);
}

/* cols: of a row of the window; weights: of all filters. */
template <float (*element)(const window &, int)>
void launch(const lp_node *node, const lp_cuda_run *run, int cols, int weights = 0)
{
    const lp_value *out = node->outputs[0];
    int height = node->attributes.height, filters = weights ? weights / height : 0, shift = (int)node->attributes.shift;
    window w = {run->shard, run->segment, LP_INPUT(0), LP_INPUT(1), LP_INPUT(2), height, cols, filters, shift};
    LP_LAUNCH(run, window_kernel<element>, lp_blocks(lp_cuda_largest(run, out), WARPS), dim3(32, WARPS), 0, w,
              LP_OUTPUT(0), out->cols, lp_cuda_rows_of(out), LP_ADDS(0));
}

} // namespace

/* An op, the columns of a row of its window, and the number of weights of its filters, if it has any. */
#define WINDOW_OP(name, ...)                  \
    LP_CUDA_OP(name)                          \
    {                                         \
        launch<name>(node, run, __VA_ARGS__); \
    }
WINDOW_OP(shift_rows, node->outputs[0]->cols)
WINDOW_OP(fold, node->outputs[0]->cols)
WINDOW_OP(unfold, node->inputs[0]->cols)
WINDOW_OP(max_rows, node->outputs[0]->cols)
WINDOW_OP(max_rows_gradient, node->outputs[0]->cols)
WINDOW_OP(vertical_conv, node->inputs[0]->cols, node->inputs[1]->cols)
WINDOW_OP(vertical_conv_gradient, node->outputs[0]->cols, node->inputs[0]->cols)
WINDOW_OP(vertical_conv_products, node->inputs[0]->cols, node->outputs[0]->cols)
