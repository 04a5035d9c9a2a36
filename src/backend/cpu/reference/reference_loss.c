/* reference_loss.c: losses over the scores of items. */
#include "backend/cpu/reference/reference.h"
#include "formula/sampled.h"
#include "formula/score.h"

#include <string.h>

static const int32_t *ids(const lp_node *node, const lp_run *run, int input)
{
    return lp_run_data(run, node->inputs[input]);
}

/* The score of item c at row t, plus shift_c */
static real score(const lp_node *node, const lp_run *run, int t, int c)
{
    const real *z = INPUT(0), *items = INPUT(1), *bias = INPUT(2), *logq = INPUT(3);
    int cols = node->inputs[0]->cols;
    real sum = 0;
    for (int k = 0; k < cols; k++)
        sum += lp_score_term(node->attributes.score, z[(size_t)t * cols + k], items[(size_t)c * cols + k]);
    return sum + bias[c] + (logq ? logq[c] : 0);
}

void LP_REFERENCE(softmax_loss)(const lp_node *node, const lp_run *run)
{
    const int32_t *target = ids(node, run, 4);   /* [A] */
    real *logs = OUTPUT(1), *scores = OUTPUT(2); /* [A], [A x C] or NULL */
    int rows = lp_run_rows(run, node->inputs[0]), count = lp_run_rows(run, node->inputs[1]);
    double loss = 0;
    for (int t = 0; t < rows; t++) {
        real largest = score(node, run, t, 0);
        for (int c = 1; c < count; c++) {
            real s = score(node, run, t, c);
            largest = s > largest ? s : largest;
        }
        double sum = 0;
        for (int c = 0; c < count; c++) {
            real s = score(node, run, t, c);
            sum += exp((double)(s - largest));
            if (scores)
                scores[(size_t)t * (size_t)count + (size_t)c] = s;
        }
        logs[t] = largest + (real)log(sum);
        loss += (double)(logs[t] - score(node, run, t, target[t]));
    }
    *OUTPUT(0) = (real)loss;
}

static void clear(const lp_node *node, const lp_run *run, int output)
{
    real *data = OUTPUT(output);
    if (data && !(node->accumulate >> output & 1))
        memset(data, 0, lp_run_size(run, node->outputs[output]) * sizeof *data);
}

/* Adds the contributions of dscore, the gradient of the score of item c at row t. */
static void backpropagate(const lp_node *node, const lp_run *run, int t, int c, real dscore)
{
    const real *z = INPUT(0), *items = INPUT(1);
    real *dz = OUTPUT(0), *ditems = OUTPUT(1), *dbias = OUTPUT(2);
    int cols = node->inputs[0]->cols;
    for (int k = 0; k < cols; k++) {
        real state = z[(size_t)t * cols + k], item = items[(size_t)c * cols + k];
        if (dz)
            dz[(size_t)t * cols + k] += dscore * lp_score_by_state(node->attributes.score, state, item);
        if (ditems)
            ditems[(size_t)c * cols + k] += dscore * lp_score_by_item(node->attributes.score, state, item);
    }
    if (dbias)
        dbias[c] += dscore;
}

void LP_REFERENCE(softmax_loss_gradient)(const lp_node *node, const lp_run *run)
{
    const int32_t *target = ids(node, run, 4);
    const real *logs = INPUT(5), *dloss = INPUT(6);
    int rows = lp_run_rows(run, node->inputs[0]), count = lp_run_rows(run, node->inputs[1]);
    for (int i = 0; i < 3; i++)
        clear(node, run, i);
    for (int t = 0; t < rows; t++)
        for (int c = 0; c < count; c++) {
            real probability = (real)exp((double)(score(node, run, t, c) - logs[t]));
            backpropagate(node, run, t, c, *dloss * (probability - (c == target[t] ? 1 : 0)));
        }
}

typedef double (*row_loss)(real *row, int count, double regularization, int lane);

#define ROW_LOSS(id, kernel, ...) [LP_LOSS_##id] = lp_##kernel##_row,
static const row_loss row_losses[LP_LOSS_COUNT] = {LP_SAMPLED_LOSSES(ROW_LOSS)};

void LP_REFERENCE(sampled_loss)(const lp_node *node, const lp_run *run)
{
    const int32_t *target = ids(node, run, 4), *negative = ids(node, run, 5); /* [A], [A x N] */
    real *dscore = OUTPUT(1);                                                 /* [A x (1 + N)] */
    int rows = lp_run_rows(run, node->inputs[0]), count = node->outputs[1]->cols;
    double loss = 0;
    for (int t = 0; t < rows; t++) {
        const int32_t *others = negative + (size_t)t * (count - 1);
        real *row = dscore + (size_t)t * count;
        for (int i = 0; i < count; i++)
            row[i] = score(node, run, t, i ? others[i - 1] : target[t]);
        loss += row_losses[node->attributes.loss](row, count, node->attributes.regularization, 0);
    }
    *OUTPUT(0) = (real)loss;
}

void LP_REFERENCE(sampled_loss_gradient)(const lp_node *node, const lp_run *run)
{
    const int32_t *target = ids(node, run, 2), *negative = ids(node, run, 3);
    const real *dscore = INPUT(4), *dloss = INPUT(5);
    int rows = lp_run_rows(run, node->inputs[0]), count = node->inputs[4]->cols;
    for (int i = 0; i < 3; i++)
        clear(node, run, i);
    for (int t = 0; t < rows; t++)
        for (int i = 0; i < count; i++)
            backpropagate(node, run, t, i ? negative[(size_t)t * (count - 1) + i - 1] : target[t],
                          *dloss * dscore[(size_t)t * count + i]);
}
