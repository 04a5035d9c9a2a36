/* returns.c: cases of returns, scores of chances, and logistic regression by Newton's method. */
#include "evaluate/returns.h"

#include "evaluate/bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

lapse_status lp_return_cases(const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, double origin,
                             lp_return_case **cases, int64_t *count, lapse_error *error)
{
    lp_return_case *made = lp_alloc((size_t)dataset->sequence_count, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "the histories", (size_t)dataset->sequence_count * sizeof *made);
    *count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        int64_t first = (int64_t)dataset->start[s], end = (int64_t)dataset->start[s + 1], i = first;
        if (dataset->time[first] > origin || (wanted != LP_SPLIT_COUNT && split[end - 1] != (uint8_t)wanted))
            continue;
        while (i < end && dataset->time[i] <= origin)
            i++;
        made[(*count)++] = (lp_return_case){.sequence = s,
                                            .seen = i - first,
                                            .frequency = (double)(i - first - 1),
                                            .recency = dataset->time[i - 1] - dataset->time[first],
                                            .age = origin - dataset->time[first],
                                            .next = i < end ? dataset->time[i] - origin : INFINITY};
    }
    *cases = made;
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------------------- scores ----- */

lapse_status lp_return_score_make(const lp_return_case *cases, const double *chance, int64_t count, double horizon,
                                  int bootstrap, lapse_return_score *score, lapse_error *error)
{
    const double least = 1e-9;
    double brier = 0, log_loss = 0, sum = 0, *parts = lp_alloc((size_t)count, 2 * sizeof *parts);
    if (!parts)
        return lp_fail_memory(error, "the scores", (size_t)count * 2 * sizeof *parts);
    for (int64_t i = 0; i < count; i++) {
        bool came = cases[i].next <= horizon;
        double off = chance[i] - came;
        parts[2 * i] = 1;
        parts[2 * i + 1] = off * off;
        brier += off * off;
        log_loss -= log(fmax(came ? chance[i] : 1 - chance[i], least));
        sum += chance[i];
    }
    score->brier = score->brier_low = score->brier_high = brier / (double)count;
    score->log_loss = log_loss / (double)count;
    score->mean = sum / (double)count;
    lapse_status status =
        bootstrap > 0 ? lp_bootstrap(parts, count, 1, bootstrap, 1, &score->brier_low, &score->brier_high, error)
                      : LAPSE_OK;
    lp_free(parts);
    return status;
}

typedef struct ranked {
    double chance;
    bool came;
} ranked;

static int by_chance(const void *a, const void *b)
{
    double x = ((const ranked *)a)->chance, y = ((const ranked *)b)->chance;
    return (x > y) - (x < y);
}

lapse_status lp_return_groups(const lp_return_case *cases, const double *chance, int64_t count,
                              lapse_return_horizon *horizon, lapse_error *error)
{
    ranked *order = lp_alloc((size_t)count, sizeof *order);
    if (!order)
        return lp_fail_memory(error, "the scores", (size_t)count * sizeof *order);
    for (int64_t i = 0; i < count; i++)
        order[i] = (ranked){chance[i], cases[i].next <= horizon->seconds};
    qsort(order, (size_t)count, sizeof *order, by_chance);
    for (int g = 0; g < LAPSE_RETURN_GROUPS; g++) {
        int64_t first = count * g / LAPSE_RETURN_GROUPS, end = count * (g + 1) / LAPSE_RETURN_GROUPS;
        lapse_return_group *group = &horizon->groups[g];
        *group = (lapse_return_group){.cases = end - first};
        for (int64_t i = first; i < end; i++) {
            group->predicted += order[i].chance / (double)(end - first);
            group->observed += (double)order[i].came / (double)(end - first);
        }
    }
    lp_free(order);
    return LAPSE_OK;
}

/* ------------------------------------------------------------------------------------- logistic regression ----- */

enum { FEATURES = 3, WEIGHTS = FEATURES + 1 };

static void features_of(const lp_return_logistic *model, const lp_return_case *one, double x[WEIGHTS])
{
    x[0] = log1p(one->age - one->recency);
    x[1] = log1p(one->frequency);
    x[2] = log1p(one->age);
    for (int f = 0; f < FEATURES; f++)
        x[f] = (x[f] - model->mean[f]) * model->scale[f];
    x[FEATURES] = 1;
}

static double chance_of(const lp_return_logistic *model, const double x[WEIGHTS])
{
    double sum = 0;
    for (int f = 0; f < WEIGHTS; f++)
        sum += model->weight[f] * x[f];
    return 1 / (1 + exp(-sum));
}

double lp_return_logistic_chance(const lp_return_logistic *model, const lp_return_case *one)
{
    double x[WEIGHTS];
    features_of(model, one, x);
    return chance_of(model, x);
}

/* Solves the symmetric positive definite system h d = g by elimination. */
static void solve(double h[WEIGHTS][WEIGHTS], double g[WEIGHTS])
{
    for (int i = 0; i < WEIGHTS; i++)
        for (int k = i + 1; k < WEIGHTS; k++) {
            double factor = h[k][i] / h[i][i];
            for (int c = i; c < WEIGHTS; c++)
                h[k][c] -= factor * h[i][c];
            g[k] -= factor * g[i];
        }
    for (int i = WEIGHTS - 1; i >= 0; i--) {
        for (int c = i + 1; c < WEIGHTS; c++)
            g[i] -= h[i][c] * g[c];
        g[i] /= h[i][i];
    }
}

lp_return_logistic lp_return_logistic_fit(const lp_return_case *cases, int64_t count, double horizon)
{
    enum { STEPS = 50 };
    const double ridge = 1; /* as the default of scikit-learn */
    lp_return_logistic model = {.scale = {1, 1, 1}};
    double square[FEATURES] = {0}, x[WEIGHTS];
    for (int64_t i = 0; i < count; i++) {
        features_of(&(lp_return_logistic){.scale = {1, 1, 1}}, &cases[i], x);
        for (int f = 0; f < FEATURES; f++) {
            model.mean[f] += x[f] / (double)count;
            square[f] += x[f] * x[f] / (double)count;
        }
    }
    for (int f = 0; f < FEATURES; f++)
        model.scale[f] = 1 / sqrt(fmax(square[f] - model.mean[f] * model.mean[f], 1e-12));
    for (int step = 0; step < STEPS; step++) {
        double gradient[WEIGHTS] = {0}, curvature[WEIGHTS][WEIGHTS] = {{0}}, most = 0;
        for (int64_t i = 0; i < count; i++) {
            features_of(&model, &cases[i], x);
            double p = chance_of(&model, x), off = (cases[i].next <= horizon) - p;
            for (int f = 0; f < WEIGHTS; f++) {
                gradient[f] += off * x[f];
                for (int k = 0; k < WEIGHTS; k++)
                    curvature[f][k] += p * (1 - p) * x[f] * x[k];
            }
        }
        for (int f = 0; f < WEIGHTS; f++) {
            double pull = f < FEATURES ? ridge : 1e-6; /* the intercept is free, but finite */
            gradient[f] -= pull * model.weight[f];
            curvature[f][f] += pull;
        }
        solve(curvature, gradient);
        for (int f = 0; f < WEIGHTS; f++) {
            model.weight[f] += fmin(fmax(gradient[f], -2), 2);
            most = fmax(most, fabs(gradient[f]));
        }
        if (most < 1e-9)
            break;
    }
    return model;
}
