/* cuda_convolution.cu: shifts of rows, and convolutions over the tokens of packed sequences (token_window.h). A warp owns a token, a lane
 * its elements of the result; windows are short, so that each lane loops over the rows of its own and reads neighbours from the cache. */
#include "backend/cuda/cuda.h"

typedef float real;
#include "backend/token_window.h"

enum { WARPS = 8 };

/* width: of the result. */
template <float (*element)(const lp_token_window *, int)>
__global__ void window_kernel(const lp_cuda_shard *shard, lp_cuda_rows rows, const int32_t *segment, lp_token_window w,
                              float *out, int width, int adds)
{
    w.t = (int)(blockIdx.x * WARPS + threadIdx.y);
    if (w.t >= lp_rows_now(rows, shard))
        return;
    int s = lp_segment_of(segment, shard->segments, w.t);
    w.begin = segment[s];
    w.end = segment[s + 1];
    for (int i = (int)threadIdx.x; i < width; i += 32)
        lp_store(&out[(size_t)w.t * width + i], element(&w, i), adds);
}

template <float (*element)(const lp_token_window *, int)>
static void run_window(const lp_node *node, const lp_cuda_run *run, const lp_value *like)
{
    const lp_value *out = node->outputs[0];
    lp_token_window w = lp_window_of(node, like);
    for (int i = 0; i < 3; i++)
        w.in[i] = LP_INPUT(i);
    LP_LAUNCH(run, window_kernel<element>, lp_blocks(lp_cuda_largest(run, out), WARPS), dim3(32, WARPS), 0, run->shard,
              lp_cuda_rows_of(out), run->segment, w, LP_OUTPUT(0), out->cols, LP_ADDS(0));
}

#define WINDOW_OP(name, like)                                \
    LP_CUDA_OP(name)                                         \
    {                                                        \
        run_window<lp_window_##name>(node, run, node->like); \
    }
LP_WINDOW_OPS(WINDOW_OP)
