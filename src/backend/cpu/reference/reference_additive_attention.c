/* reference_additive_attention.c: plain additive attention, pair by pair. */
#include "backend/cpu/reference/reference.h"

#include <string.h>

static real sigmoid(real x)
{
    return (real)(1 / (1 + exp(-(double)x)));
}

void LP_REFERENCE(additive_attention)(const lp_node *node, const lp_run *run)
{
    const real *query = INPUT(0), *key = INPUT(1), *value = INPUT(2), *weight = INPUT(3);
    real *out = OUTPUT(0);
    size_t a = (size_t)node->inputs[0]->cols, b = (size_t)node->inputs[2]->cols;
    for (int s = 0; s < run->segments; s++)
        for (size_t t = (size_t)run->segment[s]; t < (size_t)run->segment[s + 1]; t++) {
            memset(out + t * b, 0, b * sizeof *out);
            for (size_t j = (size_t)run->segment[s]; j <= t; j++) {
                real score = 0;
                for (size_t c = 0; c < a; c++)
                    score += weight[c] * sigmoid(query[t * a + c] + key[j * a + c]);
                for (size_t c = 0; c < b; c++)
                    out[t * b + c] += score * value[j * b + c];
            }
        }
}

typedef struct gradients {
    real *query, *key, *value, *weight; /* NULL: not wanted */
} gradients;

static void pair_gradient(const lp_node *node, const lp_run *run, size_t t, size_t j, const gradients *d)
{
    size_t a = (size_t)node->inputs[0]->cols, b = (size_t)node->inputs[2]->cols;
    const real *query = INPUT(0) + t * a, *key = INPUT(1) + j * a, *value = INPUT(2) + j * b, *weight = INPUT(3);
    const real *dout = INPUT(4) + t * b;
    real score = 0, dscore = 0;
    for (size_t c = 0; c < b; c++)
        dscore += dout[c] * value[c];
    for (size_t c = 0; c < a; c++) {
        real y = sigmoid(query[c] + key[c]), dsum = dscore * weight[c] * y * (1 - y);
        score += weight[c] * y;
        if (d->query)
            d->query[t * a + c] += dsum;
        if (d->key)
            d->key[j * a + c] += dsum;
        if (d->weight)
            d->weight[c] += dscore * y;
    }
    for (size_t c = 0; c < b && d->value; c++)
        d->value[j * b + c] += score * dout[c];
}

void LP_REFERENCE(additive_attention_gradient)(const lp_node *node, const lp_run *run)
{
    gradients d = {OUTPUT(0), OUTPUT(1), OUTPUT(2), OUTPUT(3)};
    real *const all[] = {d.query, d.key, d.value, d.weight};
    for (int i = 0; i < 4; i++)
        if (all[i] && !(node->accumulate >> i & 1))
            memset(all[i], 0,
                   (size_t)lp_run_rows(run, node->outputs[i]) * (size_t)node->outputs[i]->cols * sizeof(real));
    for (int s = 0; s < run->segments; s++)
        for (int t = run->segment[s]; t < run->segment[s + 1]; t++)
            for (int j = run->segment[s]; j <= t; j++)
                pair_gradient(node, run, (size_t)t, (size_t)j, &d);
}
