/* cuda_convolution.cu: shifts of rows, and convolutions over the tokens of packed sequences (token_window.h). A thread owns an element of
 * the result; windows are short, so that it loops over their rows and reads neighbours from the cache. */
#include "backend/cuda/cuda_attention_order.h"

typedef float real;
#include "backend/token_window.h"

template <float (*element)(const lp_token_window *, int)>
static void run_window(const lp_node *node, const lp_cuda_run *run, const lp_value *like)
{
    lp_cuda_bounds bounds = lp_cuda_bounds_of(run);
    lp_token_window window = lp_window_of(node, like);
    float *out = LP_OUTPUT(0);
    int width = node->outputs[0]->cols, adds = LP_ADDS(0);
    for (int i = 0; i < 3; i++)
        window.in[i] = LP_INPUT(i);
    lp_cuda_each(run, node->outputs[0], width, [=] __device__(int64_t i, int) {
        lp_token_window w = window;
        w.t = (int)(i / width);
        w.begin = bounds.start[w.t];
        w.end = bounds.end[w.t];
        lp_store(&out[i], element(&w, (int)(i % width)), adds);
    });
}

#define WINDOW_OP(name, like)                                \
    LP_CUDA_OP(name)                                         \
    {                                                        \
        run_window<lp_window_##name>(node, run, node->like); \
    }
LP_WINDOW_OPS(WINDOW_OP)
