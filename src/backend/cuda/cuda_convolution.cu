/* cuda_convolution.cu: convolutions over the tokens of packed sequences. A warp owns a token, a lane its columns; windows are short, so
 * that each lane loops over the rows of its own and reads neighbours from the cache. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/cuda_rows.h"

enum { WARPS = 8 };

/* The tokens of the shard and the sizes of a window. */
typedef struct window {
    const lp_cuda_shard *shard;
    const int32_t *segment;
    int height, cols, filters;
} window;

/* The token of this warp and its segment; false: there is none. */
__device__ static inline bool find_token(const window &w, int *token, int *begin, int *end)
{
    *token = (int)(blockIdx.x * WARPS + threadIdx.y);
    if (*token >= w.shard->rows[LP_ROWS_TOKENS])
        return false;
    int s = lp_segment_of(w.segment, w.shard->segments, *token);
    *begin = w.segment[s];
    *end = w.segment[s + 1];
    return true;
}

__global__ void fold_kernel(window w, const float *x, const float *bias, float *y, int adds)
{
    int t, begin, end;
    if (!find_token(w, &t, &begin, &end))
        return;
    for (int c = (int)threadIdx.x; c < w.cols; c += 32) {
        float sum = bias ? bias[c] : 0;
        for (int m = 0; m < w.height && t - m >= begin; m++)
            sum += x[((size_t)(t - m) * w.height + m) * w.cols + c];
        lp_store(&y[(size_t)t * w.cols + c], sum, adds);
    }
}

__global__ void unfold_kernel(window w, const float *dy, float *dx, int adds)
{
    int t, begin, end;
    if (!find_token(w, &t, &begin, &end))
        return;
    for (int i = (int)threadIdx.x; i < w.height * w.cols; i += 32) {
        int m = i / w.cols, c = i - m * w.cols;
        lp_store(&dx[(size_t)t * w.height * w.cols + i], t + m < end ? dy[(size_t)(t + m) * w.cols + c] : 0, adds);
    }
}

__global__ void max_rows_kernel(window w, const float *x, float *y, int adds)
{
    int t, begin, end;
    if (!find_token(w, &t, &begin, &end))
        return;
    for (int c = (int)threadIdx.x; c < w.cols; c += 32) {
        float most = x[(size_t)t * w.cols + c];
        for (int m = 1; m < w.height && t - m >= begin; m++)
            most = fmaxf(most, x[(size_t)(t - m) * w.cols + c]);
        lp_store(&y[(size_t)t * w.cols + c], most, adds);
    }
}

__global__ void max_rows_gradient_kernel(window w, const float *x, const float *y, const float *dy, float *dx, int adds)
{
    int t, begin, end;
    if (!find_token(w, &t, &begin, &end))
        return;
    for (int c = (int)threadIdx.x; c < w.cols; c += 32) {
        float mine = x[(size_t)t * w.cols + c], sum = 0;
        for (int m = 0; m < w.height && t + m < end; m++) {
            size_t at = (size_t)(t + m) * w.cols + c;
            if (m > 0 && x[at] >= mine)
                break;
            sum += y[at] == mine ? dy[at] : 0;
        }
        lp_store(&dx[(size_t)t * w.cols + c], sum, adds);
    }
}

__global__ void vertical_conv_kernel(window w, const float *x, const float *weight, float *y, int adds)
{
    int t, begin, end;
    if (!find_token(w, &t, &begin, &end))
        return;
    for (int i = (int)threadIdx.x; i < w.filters * w.cols; i += 32) {
        int j = i / w.cols, c = i - j * w.cols;
        float sum = 0;
        for (int m = 0; m < w.height && t - m >= begin; m++)
            sum += weight[j * w.height + m] * x[(size_t)(t - m) * w.cols + c];
        lp_store(&y[(size_t)t * w.filters * w.cols + i], sum, adds);
    }
}

__global__ void vertical_conv_gradient_kernel(window w, const float *weight, const float *dy, float *dx, int adds)
{
    int t, begin, end;
    if (!find_token(w, &t, &begin, &end))
        return;
    for (int c = (int)threadIdx.x; c < w.cols; c += 32) {
        float sum = 0;
        for (int m = 0; m < w.height && t + m < end; m++)
            for (int j = 0; j < w.filters; j++)
                sum += weight[j * w.height + m] * dy[((size_t)(t + m) * w.filters + j) * w.cols + c];
        lp_store(&dx[(size_t)t * w.cols + c], sum, adds);
    }
}

/* A lane computes the sum over columns of its filter and tap. */
__global__ void vertical_conv_products_kernel(window w, const float *x, const float *dy, float *products)
{
    int t, begin, end;
    if (!find_token(w, &t, &begin, &end))
        return;
    for (int i = (int)threadIdx.x; i < w.filters * w.height; i += 32) {
        int j = i / w.height, m = i - j * w.height;
        float sum = 0;
        for (int c = 0; t - m >= begin && c < w.cols; c++)
            sum += x[(size_t)(t - m) * w.cols + c] * dy[((size_t)t * w.filters + j) * w.cols + c];
        products[(size_t)t * w.filters * w.height + i] = sum;
    }
}

static window window_of(const lp_node *node, const lp_cuda_run *run, int cols, int weights)
{
    int height = node->attributes.height;
    window w = {run->shard, run->segment, height, cols, weights / height};
    return w;
}

static unsigned blocks_of(const lp_cuda_run *run)
{
    return lp_blocks(run->run->plan->largest.rows[LP_ROWS_TOKENS], WARPS);
}

void lp_cuda_fold(const lp_node *node, const lp_cuda_run *run)
{
    LP_LAUNCH(run, fold_kernel, blocks_of(run), dim3(32, WARPS), 0, window_of(node, run, node->outputs[0]->cols, 0),
              LP_INPUT(0), LP_INPUT(1), LP_OUTPUT(0), LP_ADDS(0));
}

void lp_cuda_unfold(const lp_node *node, const lp_cuda_run *run)
{
    LP_LAUNCH(run, unfold_kernel, blocks_of(run), dim3(32, WARPS), 0, window_of(node, run, node->inputs[0]->cols, 0),
              LP_INPUT(0), LP_OUTPUT(0), LP_ADDS(0));
}

void lp_cuda_max_rows(const lp_node *node, const lp_cuda_run *run)
{
    LP_LAUNCH(run, max_rows_kernel, blocks_of(run), dim3(32, WARPS), 0, window_of(node, run, node->outputs[0]->cols, 0),
              LP_INPUT(0), LP_OUTPUT(0), LP_ADDS(0));
}

void lp_cuda_max_rows_gradient(const lp_node *node, const lp_cuda_run *run)
{
    LP_LAUNCH(run, max_rows_gradient_kernel, blocks_of(run), dim3(32, WARPS), 0,
              window_of(node, run, node->outputs[0]->cols, 0), LP_INPUT(0), LP_INPUT(1), LP_INPUT(2), LP_OUTPUT(0),
              LP_ADDS(0));
}

void lp_cuda_vertical_conv(const lp_node *node, const lp_cuda_run *run)
{
    LP_LAUNCH(run, vertical_conv_kernel, blocks_of(run), dim3(32, WARPS), 0,
              window_of(node, run, node->inputs[0]->cols, node->inputs[1]->cols), LP_INPUT(0), LP_INPUT(1),
              LP_OUTPUT(0), LP_ADDS(0));
}

void lp_cuda_vertical_conv_gradient(const lp_node *node, const lp_cuda_run *run)
{
    LP_LAUNCH(run, vertical_conv_gradient_kernel, blocks_of(run), dim3(32, WARPS), 0,
              window_of(node, run, node->outputs[0]->cols, node->inputs[0]->cols), LP_INPUT(0), LP_INPUT(1),
              LP_OUTPUT(0), LP_ADDS(0));
}

void lp_cuda_vertical_conv_products(const lp_node *node, const lp_cuda_run *run)
{
    LP_LAUNCH(run, vertical_conv_products_kernel, blocks_of(run), dim3(32, WARPS), 0,
              window_of(node, run, node->inputs[0]->cols, node->outputs[0]->cols), LP_INPUT(0), LP_INPUT(1),
              LP_OUTPUT(0));
}
