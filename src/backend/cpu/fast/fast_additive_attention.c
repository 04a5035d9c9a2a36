/* fast_additive_attention.c: additive attention, a row of sigmoids for each pair. */
#include "backend/cpu/fast/fast.h"
#include "backend/cpu/fast/fast_math.h"

#include <string.h>

/* Beyond this a sigmoid is 0 or 1 to within 3e-9. */
static const float SATURATED = 20.0f;

static inline float sigmoid(float x)
{
    float bounded = x < -SATURATED ? -SATURATED : x > SATURATED ? SATURATED : x;
    return 1.0f / (1.0f + fast_exp_within(-bounded));
}

static inline void add_scaled(int count, float scale, const float *restrict x, float *restrict y)
{
#pragma omp simd
    for (int i = 0; i < count; i++)
        y[i] += scale * x[i];
}

void LP_FAST(additive_attention)(const lp_node *node, const lp_run *run)
{
    const float *query = INPUT(0), *key = INPUT(1), *value = INPUT(2), *weight = INPUT(3);
    float *out = OUTPUT(0);
    int a = node->inputs[0]->cols, b = node->inputs[2]->cols;
    for (int s = 0; s < run->segments; s++)
        for (int t = run->segment[s]; t < run->segment[s + 1]; t++) {
            const float *query_t = query + (size_t)t * a;
            float *out_t = out + (size_t)t * b;
            memset(out_t, 0, (size_t)b * sizeof *out_t);
            for (int j = run->segment[s]; j <= t; j++) {
                const float *key_j = key + (size_t)j * a;
                float score = 0;
#pragma omp simd reduction(+ : score)
                for (int c = 0; c < a; c++)
                    score += weight[c] * sigmoid(query_t[c] + key_j[c]);
                add_scaled(b, score, value + (size_t)j * b, out_t);
            }
        }
}

/* The row of a gradient that a pair adds to, and the distance between rows. A gradient that is not wanted has one row, in the
 * scratch. */
typedef struct gradient_rows {
    float *data;
    size_t stride;
} gradient_rows;

static gradient_rows rows_of(const lp_node *node, const lp_run *run, int i, float *unwanted, int cols)
{
    float *data = OUTPUT(i);
    if (data && !ADDED(i))
        memset(data, 0, (size_t)lp_run_rows(run, node->outputs[i]) * (size_t)cols * sizeof *data);
    if (!data)
        memset(unwanted, 0, (size_t)cols * sizeof *unwanted);
    return data ? (gradient_rows){data, (size_t)cols} : (gradient_rows){unwanted, 0};
}

/* One pair. Returns the score; y [a] gets the sigmoids; adds to the gradients of query, key and weight. */
static float pair_gradient(int a, float dscore, const float *restrict query, const float *restrict key,
                           const float *restrict weight, float *restrict y, float *restrict dquery,
                           float *restrict dkey, float *restrict dweight)
{
    float score = 0;
#pragma omp simd reduction(+ : score)
    for (int c = 0; c < a; c++) {
        y[c] = sigmoid(query[c] + key[c]);
        score += weight[c] * y[c];
    }
#pragma omp simd
    for (int c = 0; c < a; c++) {
        float weighted = dscore * y[c], dsum = weighted * weight[c] * (1.0f - y[c]);
        dquery[c] += dsum;
        dkey[c] += dsum;
        dweight[c] += weighted;
    }
    return score;
}

void LP_FAST(additive_attention_gradient)(const lp_node *node, const lp_run *run)
{
    const float *query = INPUT(0), *key = INPUT(1), *value = INPUT(2), *weight = INPUT(3), *dout = INPUT(4);
    int a = node->inputs[0]->cols, b = node->inputs[2]->cols;
    /* The query's row is added to its gradient at the end, because query and key may be one value. */
    float *y = (float *)(void *)run->scratch, *dquery_t = y + a, *unwanted = dquery_t + a;
    float *dquery = OUTPUT(0);
    if (dquery && !ADDED(0))
        memset(dquery, 0, (size_t)run->rows[LP_ROWS_TOKENS] * (size_t)a * sizeof *dquery);
    gradient_rows dkey = rows_of(node, run, 1, unwanted, a), dweight = rows_of(node, run, 3, unwanted + a, a);
    gradient_rows dvalue = rows_of(node, run, 2, unwanted + 2 * (size_t)a, b);
    for (int s = 0; s < run->segments; s++)
        for (size_t t = (size_t)run->segment[s]; t < (size_t)run->segment[s + 1]; t++) {
            const float *dout_t = dout + t * (size_t)b;
            memset(dquery_t, 0, (size_t)a * sizeof *dquery_t);
            for (size_t j = (size_t)run->segment[s]; j <= t; j++) {
                float dscore = fast_dot(dout_t, value + j * (size_t)b, b);
                float score = pair_gradient(a, dscore, query + t * (size_t)a, key + j * (size_t)a, weight, y, dquery_t,
                                            dkey.data + j * dkey.stride, dweight.data);
                add_scaled(b, score, dout_t, dvalue.data + j * dvalue.stride);
            }
            if (dquery)
                add_scaled(a, 1.0f, dquery_t, dquery + t * (size_t)a);
        }
}
