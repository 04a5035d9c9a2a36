/* test_encodings.c: the encodings one by one: what they list, where they start, and that the kernels they make are what
 * Bochner's and Mercer's theorems ask for: positive semidefinite and a function of the lag alone. */
#include "backend/backend.h"
#include "support/small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { TIMES = 24, FEATURES = 64 };
#define TEN_YEARS 315576000.0

static const lp_tensor *tensor(const lapse_model *model, const char *name)
{
    const lp_tensor *found = lp_model_tensor_find(model, name);
    if (!found)
        fail_msg("%s has no '%s'", small_encoding(&model->config)->name, name);
    return found;
}

/* A model as it starts. */
static lapse_model *start(const lp_model_config *config, uint64_t seed)
{
    lapse_model *model = small_model(config, 1);
    lp_network_init_parameters(&model->network.graph, seed, model->parameters);
    return model;
}

/* -------------------------------------------------------------------------------------------------- table ---- */

static void the_table(void **state)
{
    (void)state;
    static const char *const names[] = {"mercer", "bochner",  "bochner-normal", "bochner-invcdf",
                                        "random", "position", "sinusoid",       "none"};
    for (int i = 0; i < 8; i++) {
        const lp_encoding *encoding = lp_encodings[i];
        assert_string_equal(encoding->name, names[i]);
        assert_ptr_equal(lp_encoding_find(names[i]), encoding);
        assert_int_equal(encoding->sees_time, i < 5);
        assert_int_equal(encoding->default_periods > 0, i < 5);
        assert_int_equal(encoding->sample != NULL, i == 2 || i == 3);
        assert_int_equal(encoding->maps_noise, i == 3);
        assert_int_equal(encoding->learns_periods, i < 2);
        assert_true(strlen(encoding->summary) > 10);
    }
    assert_null(lp_encodings[8]);
    assert_null(lp_encoding_find("sundial"));
}

/* ------------------------------------------------------------------------------------------------ kernels ---- */

/* Phi at some times, in double: [count x features]; their number. */
static int features_at(const lapse_model *model, const double *times, int count, double out[TIMES][FEATURES])
{
    const lp_backend *backend = lp_backend_find("reference-double");
    lp_graph graph = {0};
    lp_plan plan;
    lp_value *feeds[LP_FEED_LIMIT];
    lp_features features = {0};
    lp_feeds_declare(&graph, NULL, 0, 0, false, feeds);
    model->network.encoding->build(&graph, &model->network.encoding_config, feeds, &features);
    assert_non_null(features.basis);
    features.basis->retained = true;
    lp_extent extent = {.rows = {[LP_ROWS_TOKENS] = count}, .pairs = count, .longest = count};
    assert_int_equal(lp_plan_make(&plan, &graph, &extent, sizeof(double), NULL), LAPSE_OK);
    double parameters[2000] = {0}, amplitude[FEATURES];
    for (int i = 0; i < graph.parameter_count; i++) {
        const lp_value *value = graph.parameters[i].value;
        const lp_tensor *from = tensor(model, value->name);
        for (int k = 0; k < value->rows * value->cols; k++)
            parameters[value->offset + (size_t)k] = ((const float *)from->data)[k];
    }
    int32_t draw = 0, segment[] = {0, count};
    void *inputs[LP_FEED_COUNT] = {[LP_FEED_TIME] = (void *)(uintptr_t)times,
                                   [LP_FEED_QUERY_TIME] = (void *)(uintptr_t)times,
                                   [LP_FEED_FREQUENCY_SAMPLE] = &draw};
    lp_run run = {.plan = &plan,
                  .work = lp_alloc(plan.work_size, 1),
                  .scratch = lp_alloc(plan.scratch_size, 1),
                  .inputs = inputs,
                  .parameters = parameters,
                  .rows = {[LP_ROWS_TOKENS] = count},
                  .segments = 1,
                  .segment = segment};
    backend->run(backend->context, &run);
    int cols = features.basis->cols;
    assert_true(cols <= FEATURES);
    for (int f = 0; f < cols; f++)
        amplitude[f] = features.amplitude ? parameters[features.amplitude->offset + (size_t)f] : 1;
    for (int t = 0; t < count; t++)
        for (int f = 0; f < cols; f++)
            out[t][f] = ((const double *)lp_run_data(&run, features.basis))[t * cols + f] * amplitude[f];
    lp_free(run.work);
    lp_free(run.scratch);
    lp_graph_clear(&graph);
    return cols;
}

static double kernel(double phi[TIMES][FEATURES], int i, int j, int cols)
{
    double sum = 0;
    for (int f = 0; f < cols; f++)
        sum += phi[i][f] * phi[j][f];
    return sum;
}

/* The least pivot of Cholesky's elimination of K + tiny I: positive where K has no negative eigenvalue. */
static double least_pivot(double matrix[TIMES][TIMES])
{
    double least = INFINITY;
    for (int c = 0; c < TIMES; c++) {
        least = fmin(least, matrix[c][c]);
        for (int r = c + 1; r < TIMES; r++)
            for (int k = TIMES - 1; k >= c; k--)
                matrix[r][k] -= matrix[r][c] / matrix[c][c] * matrix[c][k];
    }
    return least;
}

static void check_kernel(const lapse_model *model, int seed)
{
    static double phi[TIMES][FEATURES], later[TIMES][FEATURES], gram[TIMES][TIMES];
    double times[TIMES], then[TIMES];
    const char *name = small_encoding(&model->config)->name;
    lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 920);
    for (int i = 0; i < TIMES; i++) {
        times[i] = -100 * lp_random_uniform(&random);
        then[i] = times[i] - TEN_YEARS;
    }
    int cols = features_at(model, times, TIMES, phi);
    features_at(model, then, TIMES, later);
    for (int i = 0; i < TIMES; i++)
        for (int j = 0; j < TIMES; j++) {
            gram[i][j] = kernel(phi, i, j, cols);
            if (fabs(kernel(later, i, j, cols) - gram[i][j]) > 1e-5)
                fail_msg("%s, seed %d: the kernel of a lag of %g s is %.9g, and %.9g ten years before", name, seed,
                         times[i] - times[j], gram[i][j], kernel(later, i, j, cols));
            /* Its largest value is that of no lag. */
            assert_true(fabs(gram[i][j]) <= gram[0][0] + 1e-9);
        }
    for (int i = 0; i < TIMES; i++)
        gram[i][i] += 1e-9;
    double pivot = least_pivot(gram);
    if (!(pivot > 0))
        fail_msg("%s, seed %d: the kernel is not positive semidefinite: %g", name, seed, pivot);
}

static void kernels(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++)
        for (int seed = 0; seed < 10 && lp_encodings[e]->sees_time; seed++) {
            lp_model_config config = small_config(lp_encodings[e], 4, 1, 1);
            small_config_number(&config, "frequency-samples", 1 + seed % 2);
            lapse_model *model = small_model(&config, (uint64_t)seed);
            /* Cosine and sine of a frequency must weigh the same for the kernel to depend on the lag alone. */
            const lp_tensor *amplitude = lp_model_tensor_find(model, "time.amplitude");
            for (int64_t i = 0; amplitude && i < amplitude->cols / 2; i++)
                ((float *)amplitude->data)[amplitude->cols / 2 + i] = ((float *)amplitude->data)[i];
            check_kernel(model, seed);
            lapse_model_free(model);
        }
}

/* ------------------------------------------------------------------------------------------------- starts ---- */

static const float *starting_periods(const char *encoding, const char *init, int count, uint64_t seed,
                                     lapse_model **model)
{
    lp_model_config config = small_config(lp_encoding_find(encoding), 4, 1, 1);
    small_config_set(&config, "period-init", init);
    small_config_number(&config, "periods", count);
    small_config_number(&config, "period-min", 2);
    small_config_number(&config, "period-max", 200);
    *model = start(&config, seed);
    const lp_tensor *periods = tensor(*model, "time.log_period");
    assert_int_equal(periods->cols, count);
    return periods->data;
}

static void check_periods(const char *init, int count, const double *wanted)
{
    lapse_model *model;
    const float *periods = starting_periods("bochner", init, count, 1, &model);
    for (int i = 0; i < count; i++)
        if (fabs(exp(periods[i]) / wanted[i] - 1) > 1e-5)
            fail_msg("%s: period %d of %d is %.9g, should be %.9g", init, i, count, exp(periods[i]), wanted[i]);
    lapse_model_free(model);
}

static void period_starts(void **state)
{
    (void)state;
    check_periods("geometric", 3, (const double[]){2, 20, 200});
    check_periods("geometric", 1, (const double[]){20});
    check_periods("linear", 4, (const double[]){2, 68, 134, 200});
    check_periods("linear", 1, (const double[]){101});
    check_periods("paper", 3, (const double[]){2 + pow(198, 1.0 / 3), 2 + pow(198, 2.0 / 3), 200});
    check_periods("paper", 1, (const double[]){200});
    check_periods("paper-frequency", 2, (const double[]){200 / (100 - sqrt(99)), 200});
    check_periods("paper-frequency", 1, (const double[]){200});
}

/* Periods, or frequencies, that are uniform between the least and the greatest, by the seed. */
static void check_uniform(const char *encoding, double power)
{
    lapse_model *model, *again, *other;
    enum { COUNT = 400 };
    const float *periods = starting_periods(encoding, "random", COUNT, 7, &model);
    double low = pow(2, power), high = pow(200, power), mean = 0;
    for (int i = 0; i < COUNT; i++) {
        double share = (pow(exp(periods[i]), power) - low) / (high - low);
        assert_true(share > -1e-5 && share < 1 + 1e-5);
        mean += share / COUNT;
    }
    assert_true(fabs(mean - 0.5) < 0.06);
    assert_memory_equal(starting_periods(encoding, "random", COUNT, 7, &again), periods, COUNT * sizeof *periods);
    assert_memory_not_equal(starting_periods(encoding, "random", COUNT, 8, &other), periods, COUNT * sizeof *periods);
    lapse_model_free(model);
    lapse_model_free(again);
    lapse_model_free(other);
}

static void uniform_starts(void **state)
{
    (void)state;
    check_uniform("mercer", 1);
    check_uniform("random", -1);
}

static void sinusoids(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("sinusoid"), 5, 1, 1);
    lapse_model *model = start(&config, 1);
    const lp_tensor *table = tensor(model, "time.position");
    const float *data = table->data;
    assert_true(table->rows == 12 && table->cols == 5);
    for (int c = 0; c < 5; c++)
        assert_true(data[c] == c % 2); /* sin 0, cos 0 */
    assert_true(fabs(data[5 * 3] - sin(3)) < 1e-6 && fabs(data[5 * 3 + 1] - cos(3)) < 1e-6);
    assert_true(fabs(data[5 * 11 + 3] - cos(11 / pow(10000, 2 / 5.0))) < 1e-6);
    assert_true(fabs(data[5 * 11 + 4] - sin(11 / pow(10000, 4 / 5.0))) < 1e-6);
    lapse_model_free(model);
}

/* Nothing of time or order in the model. */
static void none(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("none"), 4, 2, 2);
    lapse_model *model = start(&config, 1);
    for (int i = 0; i < model->tensor_count; i++)
        assert_null(strstr(model->tensors[i].name, "time"));
    lapse_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table),      cmocka_unit_test(kernels),   cmocka_unit_test(period_starts),
        cmocka_unit_test(uniform_starts), cmocka_unit_test(sinusoids), cmocka_unit_test(none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
