/* reference_convolution.c: shifts of rows, and convolutions over the tokens of packed sequences (token_window.h). */
#include "backend/cpu/reference/reference.h"
#include "backend/token_window.h"

typedef real (*element)(const lp_token_window *w, int i);

static void run_window(const lp_node *node, const lp_run *run, const lp_value *like, element of)
{
    lp_token_window w = lp_window_of(node, like);
    int width = node->outputs[0]->cols, segments = run->segments;
    real *y = OUTPUT(0); /* [T x width] */
    for (int i = 0; i < 3; i++)
        w.in[i] = INPUT(i);
    for (int s = 0; s < segments; s++) {
        w.begin = run->segment[s];
        w.end = run->segment[s + 1];
        for (w.t = w.begin; w.t < w.end; w.t++)
            for (int i = 0; i < width; i++)
                STORE(0, y[(size_t)w.t * width + i], of(&w, i));
    }
}

#define WINDOW_OP(name, like)                                       \
    void LP_REFERENCE(name)(const lp_node *node, const lp_run *run) \
    {                                                               \
        run_window(node, run, node->like, lp_window_##name);        \
    }
LP_WINDOW_OPS(WINDOW_OP)
