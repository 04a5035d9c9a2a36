/* lag_model.h: networks with known or random time tensors, and a test of matrices: what the tests of spectra share.
 * Include after cmocka.h. */
#ifndef TESTS_LAG_MODEL_H
#define TESTS_LAG_MODEL_H

#include "base/random.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* A model of two kinds that sees time by this encoding, with starting values for all parameters. */
static inline lapse_model *lag_model(const char *encoding, int periods, int harmonics, uint64_t seed)
{
    static const uint64_t offset[] = {0, 2, 4};
    const lp_names kinds = {2, offset, "a\0b"};
    lp_model_config config = {.row = lp_model_row_find("attention"),
                              .encoding = lp_encoding_find(encoding),
                              .target_known = true,
                              .kinds = 2,
                              .dims = 4,
                              .blocks = 1,
                              .heads = 1,
                              .context = 8,
                              .periods = periods,
                              .harmonics = harmonics,
                              .period_min = 60,
                              .period_max = 86400.0 * 30,
                              .order = 1};
    lapse_model *model = NULL;
    lapse_error error = {0};
    if (lp_model_new(&config, &kinds, &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lp_network_start(&model->network.graph, seed, model->parameters);
    return model;
}

/* Moves every tensor of the time encoding by normal noise. */
static inline void lag_model_disturb(lapse_model *model, lp_random *random, double spread)
{
    for (int i = 0; i < model->tensor_count; i++) {
        lp_tensor *tensor = &model->tensors[i];
        float *data = tensor->data;
        for (int64_t k = 0; strncmp(tensor->name, "time.", 5) == 0 && k < tensor->rows * tensor->cols; k++)
            data[k] += (float)(spread * lp_random_normal(random));
    }
}

/* Whether a symmetric matrix [n x n] is positive semidefinite to rounding: a Cholesky factor of it exists once its
 * diagonal has been lifted by a hair. Destroys the matrix. */
static inline bool is_positive(double *matrix, int n)
{
    double trace = 0;
    for (int i = 0; i < n; i++)
        trace += matrix[i * n + i];
    for (int i = 0; i < n; i++)
        matrix[i * n + i] += 1e-11 * trace;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = matrix[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= matrix[i * n + k] * matrix[j * n + k];
            if (i == j && !(sum > 0))
                return false;
            matrix[i * n + j] = i == j ? sqrt(sum) : sum / matrix[j * n + j];
        }
    }
    return true;
}

#endif
