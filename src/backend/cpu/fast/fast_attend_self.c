/* fast_attend_self.c: joins a row's attention to earlier rows with that to its own key. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"

/* A head of one row. */
typedef struct row_head {
    size_t at, stats; /* first column of the head; index in [T x H] */
    bool first, last; /* row of its segment */
    int all, cols;    /* columns of all heads, of this one */
    int heads;
} row_head;

typedef void (*on_head)(const lp_node *node, const lp_run *run, const row_head *h);

static void each_head(const lp_node *node, const lp_run *run, on_head act)
{
    int heads = node->attributes.heads, all = node->inputs[0]->cols, cols = all / heads;
    for (int s = 0, segments = lp_run_segments(run, node->inputs[0]); s < segments; s++)
        for (int q = run->segment[s]; q < run->segment[s + 1]; q++)
            for (int n = 0; n < heads; n++) {
                row_head h = {.at = (size_t)q * (size_t)all + (size_t)n * (size_t)cols,
                              .stats = (size_t)q * (size_t)heads + (size_t)n,
                              .first = q == run->segment[s],
                              .last = q + 1 == run->segment[s + 1],
                              .all = all,
                              .cols = cols,
                              .heads = heads};
                act(node, run, &h);
            }
}

/* The weight of the row's own key. */
static float own_weight(const lp_node *node, const lp_run *run, const row_head *h)
{
    if (h->first)
        return 1;
    float score = (float)node->attributes.scale * fast_dot(INPUT(0) + h->at, INPUT(1) + h->at, h->cols);
    return 1 / (1 + fast_exp(INPUT(4)[h->stats - (size_t)h->heads] - score));
}

static void join(const lp_node *node, const lp_run *run, const row_head *h)
{
    const float *restrict value = INPUT(2) + h->at, *restrict out =
                                                        INPUT(3) + (h->first ? h->at : h->at - (size_t)h->all);
    float *restrict joined = OUTPUT(0) + h->at, w = own_weight(node, run, h), rest = h->first ? 0 : 1 - w;
#pragma omp simd
    for (int c = 0; c < h->cols; c++)
        joined[c] = w * value[c] + (rest > 0 ? rest * out[c] : 0);
}

void LP_FAST(attend_self)(const lp_node *node, const lp_run *run)
{
    each_head(node, run, join);
}

/* to = scale * from, or added to it */
static void put(float *restrict to, float scale, const float *restrict from, int count, bool added)
{
#pragma omp simd
    for (int c = 0; c < count; c++)
        to[c] = (added ? to[c] : 0) + scale * from[c];
}

static void put_zeros(float *to, int count, bool added)
{
    for (int c = 0; c < count && !added; c++)
        to[c] = 0;
}

static void join_gradient(const lp_node *node, const lp_run *run, const row_head *h)
{
    const float *dy = INPUT(5) + h->at;
    float w = own_weight(node, run, h), scale = (float)node->attributes.scale, ds = 0;
    if (!h->first)
        ds = w * (1 - w) *
             (fast_dot(dy, INPUT(2) + h->at, h->cols) - fast_dot(dy, INPUT(3) + h->at - (size_t)h->all, h->cols));
    if (node->outputs[0])
        put(OUTPUT(0) + h->at, scale * ds, INPUT(1) + h->at, h->cols, ADDED(0));
    if (node->outputs[1])
        put(OUTPUT(1) + h->at, scale * ds, INPUT(0) + h->at, h->cols, ADDED(1));
    if (node->outputs[2])
        put(OUTPUT(2) + h->at, w, dy, h->cols, ADDED(2));
    if (node->outputs[3] && !h->first)
        put(OUTPUT(3) + h->at - (size_t)h->all, 1 - w, dy, h->cols, ADDED(3));
    if (node->outputs[3] && h->last)
        put_zeros(OUTPUT(3) + h->at, h->cols, ADDED(3));
    if (node->outputs[4] && !h->first)
        put(OUTPUT(4) + h->stats - (size_t)h->heads, -1, &ds, 1, ADDED(4));
    if (node->outputs[4] && h->last)
        put_zeros(OUTPUT(4) + h->stats, 1, ADDED(4));
}

void LP_FAST(attend_self_gradient)(const lp_node *node, const lp_run *run)
{
    each_head(node, run, join_gradient);
}
