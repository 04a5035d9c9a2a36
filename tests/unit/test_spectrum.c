/* test_spectrum.c: spectra agree with the formulas for every encoding of time; kernels are positive semidefinite and
 * translation invariant; invalid lags, corrupt models and failed allocations give an error. */
#include "inspect/spectrum.h"

#include "base/memory.h"
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"
#include "support/small_model.h"

static const double PI = 3.14159265358979323846;

enum { TIMES = 24 };

/* A model with random parameters and this encoding. */
static lapse_model *model_of(const char *encoding, int periods, int harmonics, uint64_t seed)
{
    lp_model_config config = small_config(lp_encoding_find(encoding), 4, 1, 1);
    if (periods)
        small_config_number(&config, "periods", periods);
    if (harmonics)
        small_config_number(&config, "harmonics", harmonics);
    small_config_number(&config, "period-min", 60);
    small_config_number(&config, "period-max", 30 * 86400.0);
    return small_model(&config, seed);
}

static lapse_spectrum spectrum_of(const lapse_model *model)
{
    lapse_spectrum spectrum;
    lapse_error error = {0};
    if (lapse_model_spectrum(model, &spectrum, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return spectrum;
}

/* A spectrum of given frequencies and amplitudes. */
static lapse_spectrum spectrum_from(int count, const double *frequency, const double *cosine, const double *sine)
{
    lapse_spectrum spectrum;
    assert_int_equal(lp_spectrum_init(&spectrum, count, NULL), LAPSE_OK);
    memcpy(spectrum.frequency, frequency, (size_t)count * sizeof *frequency);
    memcpy(spectrum.cosine, cosine, (size_t)count * sizeof *cosine);
    memcpy(spectrum.sine, sine, (size_t)count * sizeof *sine);
    assert_int_equal(lp_spectrum_complete(&spectrum, NULL), LAPSE_OK);
    return spectrum;
}

static uint64_t test_seed(void)
{
    const char *given = getenv("LAPSE_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 20261115;
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* ------------------------------------------------------------------------------------------ the formulas ------ */

static void test_mercer(void **state)
{
    (void)state;
    lapse_model *model = model_of("mercer", 3, 4, test_seed());
    lapse_spectrum s = spectrum_of(model);
    const float *log_period = lp_model_tensor_find(model, "time.log_period")->data;
    const float *amplitude = lp_model_tensor_find(model, "time.amplitude")->data;
    assert_int_equal(s.count, 12);
    double height = 0;
    for (int i = 0; i < s.count; i++) {
        int j = i % 4 + 1;
        double a = amplitude[i], b = amplitude[12 + i];
        assert_near(s.frequency[i] * exp((double)log_period[i / 4]), 2 * PI * j, 1e-12 * j);
        assert_near(s.period[i] * j / exp((double)log_period[i / 4]), 1, 1e-12);
        assert_int_equal(s.harmonic[i], j);
        assert_true(s.cosine[i] == a && s.sine[i] == b);
        assert_near(s.weight[i], (a * a + b * b) / 2, 1e-15);
        height += s.weight[i];
    }
    assert_near(lapse_spectrum_kernel(&s, 0), height, 1e-12);
    double lag = 12345.678, direct = 0, features[24];
    lapse_spectrum_features(&s, lag, features);
    for (int i = 0; i < 12; i++) {
        double angle = 2 * PI * (i % 4 + 1) * lag / exp((double)log_period[i / 4]);
        direct += s.weight[i] * cos(angle);
        assert_near(features[i], amplitude[i] * cos(angle), 1e-9);
        assert_near(features[12 + i], amplitude[12 + i] * sin(angle), 1e-9);
    }
    assert_near(lapse_spectrum_kernel(&s, lag), direct, 1e-9);
    assert_true(lapse_spectrum_kernel(&s, -lag) == lapse_spectrum_kernel(&s, lag));
    lapse_spectrum_clear(&s);
    assert_null(s.frequency);
    lapse_spectrum_clear(&s);
    lapse_model_free(model);
}

static void test_bochner_has_ones(void **state)
{
    (void)state;
    lapse_model *model = model_of("bochner", 7, 0, 5);
    lapse_spectrum s = spectrum_of(model);
    const float *log_period = lp_model_tensor_find(model, "time.log_period")->data;
    assert_int_equal(s.count, 7);
    for (int i = 0; i < s.count; i++) {
        assert_true(s.cosine[i] == 1 && s.sine[i] == 1 && s.weight[i] == 1 && s.harmonic[i] == 1);
        assert_near(s.period[i] / exp((double)log_period[i]), 1, 1e-12);
    }
    assert_true(lapse_spectrum_kernel(&s, 0) == 7);
    lapse_spectrum_clear(&s);
    lapse_model_free(model);
}

/* With unequal amplitudes one t is not the mean; two, a quarter of a period apart, are. */
static void test_kernel_is_the_mean_over_time(void **state)
{
    (void)state;
    double w = 0.37, a = 1.5, b = -0.25;
    lapse_spectrum s = spectrum_from(1, &w, &a, &b);
    for (int i = 0; i < 20; i++) {
        double t = 1.7 * i, lag = 0.9 * i - 4, mean = 0, x[2], y[2];
        for (int half = 0; half < 2; half++) {
            lapse_spectrum_features(&s, t + half * PI / 2 / w, x);
            lapse_spectrum_features(&s, t + half * PI / 2 / w - lag, y);
            mean += (x[0] * y[0] + x[1] * y[1]) / 2;
        }
        assert_near(mean, lapse_spectrum_kernel(&s, lag), 1e-12);
    }
    lapse_spectrum_clear(&s);
    w = 0;
    s = spectrum_from(1, &w, &a, &b);
    double x[2];
    lapse_spectrum_features(&s, 7, x);
    assert_near(x[0] * x[0] + x[1] * x[1], lapse_spectrum_kernel(&s, 3), 1e-15);
    assert_true(isinf(s.period[0]));
    lapse_spectrum_clear(&s);
}

static void test_order(void **state)
{
    (void)state;
    static const double frequency[] = {1, 2, 3, 0, 5, 6}, amplitude[] = {1, 3, 2, 1, 3, 1};
    static const int order[] = {1, 4, 2, 3, 0, 5};
    lapse_spectrum s = spectrum_from(6, frequency, amplitude, amplitude);
    assert_memory_equal(s.order, order, sizeof order);
    lapse_spectrum_clear(&s);
}

static void test_series_are_found(void **state)
{
    (void)state;
    static const double frequency[] = {1, 2, 3, 0.5, 1, 7, -2, -4, 0, 0, 5},
                        ones[11] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int harmonic[] = {1, 2, 3, 1, 2, 1, 1, 2, 1, 1, 1};
    lapse_spectrum s = spectrum_from(11, frequency, ones, ones);
    for (int i = 0; i < 11; i++)
        assert_int_equal(s.harmonic[i], harmonic[i]);
    assert_near(s.period[6], PI, 1e-12);
    lapse_spectrum_clear(&s);
}

static void test_mean_over_a_cell(void **state)
{
    (void)state;
    static const double frequency[] = {0, 1e-12, 0.3, 5, -2};
    for (int i = 0; i < 5; i++) {
        double w = frequency[i], from = 1.25, to = 9.5, cosine = 0, sine = 0;
        enum { PARTS = 20000 };
        for (int k = 0; k < PARTS; k++) {
            double at = from + (to - from) * (k + 0.5) / PARTS;
            cosine += cos(w * at) / PARTS;
            sine += sin(w * at) / PARTS;
        }
        assert_near(lp_cosine_mean(w, from, to), cosine, 1e-6);
        assert_near(lp_sine_mean(w, from, to), sine, 1e-6);
    }
}

/* ------------------------------------------------------------------------------------ what a kernel must be --- */

/* Whether a symmetric matrix [n x n] is positive semidefinite up to rounding: it has a Cholesky factor after a small
 * value is added to its diagonal. Destroys the matrix. */
static bool is_positive(double *matrix, int n)
{
    double trace = 0;
    for (int i = 0; i < n; i++)
        trace += matrix[i * n + i];
    for (int i = 0; i < n; i++)
        matrix[i * n + i] += 1e-10 * trace;
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

static void fill_kernel(const lapse_spectrum *s, const double *time, double shift, double *matrix)
{
    for (int i = 0; i < TIMES; i++)
        for (int j = 0; j < TIMES; j++)
            matrix[i * TIMES + j] = lapse_spectrum_kernel(s, (time[i] + shift) - (time[j] + shift));
}

static void fill_products(const lapse_spectrum *s, const double *time, double shift, double *matrix)
{
    double *phi = calloc((size_t)TIMES * 2 * (size_t)s->count, sizeof *phi);
    assert_non_null(phi);
    for (int i = 0; i < TIMES; i++)
        lapse_spectrum_features(s, time[i] + shift, phi + i * 2 * s->count);
    for (int i = 0; i < TIMES; i++)
        for (int j = 0; j < TIMES; j++) {
            matrix[i * TIMES + j] = 0;
            for (int k = 0; k < 2 * s->count; k++)
                matrix[i * TIMES + j] += phi[i * 2 * s->count + k] * phi[j * 2 * s->count + k];
        }
    free(phi);
}

/* The largest difference relative to K(0). */
static double difference(const double *a, const double *b)
{
    double most = 0;
    for (int i = 0; i < TIMES * TIMES; i++)
        most = fmax(most, fabs(a[i] - b[i]));
    return most / a[0];
}

static void check_kernel(const lapse_spectrum *s, lp_random *random)
{
    static double first[TIMES * TIMES], second[TIMES * TIMES];
    double time[TIMES];
    for (int i = 0; i < TIMES; i++)
        time[i] = 86400 * 10 * lp_random_uniform(random);
    time[1] = time[0];
    const double shift = 86400 * 365.25;
    fill_kernel(s, time, 0, first);
    fill_kernel(s, time, shift, second);
    assert_true(difference(first, second) < 1e-6);
    /* With equal amplitudes of cosine and sine the product of features equals the kernel at every t. */
    bool even = true;
    for (int i = 0; i < s->count; i++)
        even = even && s->cosine[i] * s->cosine[i] == s->sine[i] * s->sine[i];
    fill_products(s, time, shift, second);
    assert_true(!even || difference(first, second) < 1e-6);
    assert_true(is_positive(first, TIMES));
    assert_true(is_positive(second, TIMES));
}

static void test_kernels_of_every_encoding(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    int checked = 0;
    for (int i = 0; lp_encodings[i]; i++) {
        for (uint32_t repeat = 0; repeat < 6 && lp_encodings[i]->sees_time; repeat++) {
            lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 100 + repeat);
            lapse_model *model = model_of(lp_encodings[i]->name, 5 + (int)repeat, 1 + (int)repeat % 3, seed + repeat);
            lapse_spectrum s = spectrum_of(model);
            check_kernel(&s, &random);
            /* With equalized amplitudes the kernel of every encoding equals the product of features. */
            memcpy(s.sine, s.cosine, (size_t)s.count * sizeof *s.sine);
            assert_int_equal(lp_spectrum_complete(&s, NULL), LAPSE_OK);
            check_kernel(&s, &random);
            lapse_spectrum_clear(&s);
            lapse_model_free(model);
            checked++;
        }
    }
    assert_true(checked >= 12);
}

static void test_the_check_itself_can_fail(void **state)
{
    (void)state;
    static double matrix[TIMES * TIMES];
    double time[TIMES], w = 1, one = 1;
    lapse_spectrum s = spectrum_from(1, &w, &one, &one);
    s.weight[0] = -0.001;
    for (int i = 0; i < TIMES; i++)
        time[i] = i;
    fill_kernel(&s, time, 0, matrix);
    for (int i = 0; i < TIMES; i++)
        matrix[i * TIMES + i] += 0.002;
    assert_false(is_positive(matrix, TIMES));
    lapse_spectrum_clear(&s);
}

/* ----------------------------------------------------------------------------------------------- refusals ----- */

static void test_models_without_a_kernel(void **state)
{
    (void)state;
    lapse_spectrum s;
    lapse_error error = {0};
    lapse_model *model = model_of("position", 0, 0, 1);
    assert_int_equal(lapse_model_spectrum(model, &s, &error), LAPSE_ERROR_USAGE);
    assert_non_null(
        strstr(error.message, "the encoding 'position' does not use lags, so it has no kernel; these have one: "));
    assert_non_null(strstr(error.message, "mercer"));
    assert_null(s.frequency);
    assert_int_equal(lapse_model_spectrum(model, &s, NULL), LAPSE_ERROR_USAGE);
    const lp_model_row *row = model->config.row;
    model->config.row = lp_model_row_find("majority");
    model->network.encoding = NULL;
    assert_int_equal(lapse_model_spectrum(model, &s, &error), LAPSE_ERROR_USAGE);
    assert_non_null(strstr(error.message, "the model 'majority' does not use lags"));
    model->config.row = row;
    lapse_model_free(model);
}

static void test_hostile_parameters(void **state)
{
    (void)state;
    static const float bad[] = {NAN, -INFINITY, -60};
    lapse_spectrum s;
    lapse_error error = {0};
    lapse_model *model = model_of("mercer", 2, 2, 1);
    float *log_period = lp_model_tensor_find(model, "time.log_period")->data;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        log_period[1] = bad[i];
        assert_int_equal(lapse_model_spectrum(model, &s, &error), LAPSE_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "frequency 3 of the model is "));
        assert_null(s.frequency);
    }
    log_period[1] = INFINITY;
    s = spectrum_of(model);
    assert_true(isinf(s.period[2]) && s.frequency[2] == 0);
    lapse_lags lags;
    lapse_lags_default(&lags);
    assert_int_equal(lapse_lags_resolve(&s, &lags, &error), LAPSE_OK);
    assert_near(lags.to / s.period[0], 1, 1e-12);
    lapse_spectrum_clear(&s);
    lapse_model_free(model);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    lapse_model *model = model_of("mercer", 2, 3, 1);
    lapse_spectrum s;
    lapse_error error;
    lapse_status status = LAPSE_ERROR_MEMORY;
    int n = 0;
    while (status != LAPSE_OK && n < 1000) {
        lp_memory_fail_at(++n);
        error.message[0] = 0;
        status = lapse_model_spectrum(model, &s, &error);
        lp_memory_fail_at(0);
        assert_true(status == LAPSE_OK || (status == LAPSE_ERROR_MEMORY && error.message[0] && !s.frequency));
    }
    assert_in_range(n, 4, 999);
    lapse_spectrum_clear(&s);
    lapse_model_free(model);
}

/* --------------------------------------------------------------------------------------------------- lags ----- */

static void assert_lags_refused(lapse_lags lags, const char *message)
{
    double w = 1, one = 1;
    lapse_error error = {0};
    lapse_spectrum s = spectrum_from(1, &w, &one, &one);
    assert_int_equal(lapse_lags_resolve(&s, &lags, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, message);
    lapse_spectrum_clear(&s);
}

static void test_lags_refused(void **state)
{
    (void)state;
    assert_lags_refused((lapse_lags){"cubic", 1, 2, 3}, "axis is 'cubic'; it must be log or linear");
    assert_lags_refused((lapse_lags){NULL, 1, 2, 3}, "axis is ''; it must be log or linear");
    assert_lags_refused((lapse_lags){"log", 1, 2, 1}, "points is 1; it must be 2 to 100000");
    assert_lags_refused((lapse_lags){"log", 1, 2, 100001}, "points is 100001; it must be 2 to 100000");
    assert_lags_refused((lapse_lags){"log", -1, 2, 9}, "lags begin at -1 and end at 2 seconds; both must be 0 or more");
    assert_lags_refused((lapse_lags){"linear", 0, NAN, 9},
                        "lags begin at 0 and end at nan seconds; both must be 0 or more");
    assert_lags_refused((lapse_lags){"log", 120, 60, 9},
                        "lags begin at 2 minutes and end at 1 minute; the end must be larger");
}

static void test_lags(void **state)
{
    (void)state;
    static const double frequency[] = {2, 0.02}, ones[] = {1, 1};
    lapse_spectrum s = spectrum_from(2, frequency, ones, ones);
    lapse_lags lags;
    lapse_lags_default(&lags);
    assert_int_equal(lapse_lags_resolve(&s, &lags, NULL), LAPSE_OK);
    assert_near(lags.from, PI / 10, 1e-12);
    assert_near(lags.to, 100 * PI, 1e-9);
    assert_true(lapse_lags_at(&lags, 0) == lags.from && lapse_lags_at(&lags, lags.points - 1) == lags.to);
    for (int i = 1; i < lags.points; i++)
        assert_near(lapse_lags_at(&lags, i) / lapse_lags_at(&lags, i - 1), pow(1000, 1.0 / 59), 1e-12);
    lags = (lapse_lags){"linear", 0, 0, 5};
    assert_int_equal(lapse_lags_resolve(&s, &lags, NULL), LAPSE_OK);
    assert_true(lags.from == 0);
    assert_near(lapse_lags_at(&lags, 1), 25 * PI, 1e-9);
    /* An end below the shortest period, and a start above the longest. */
    lags = (lapse_lags){"log", 0, 0.01, 5};
    assert_int_equal(lapse_lags_resolve(&s, &lags, NULL), LAPSE_OK);
    assert_near(lags.from, 0.001, 1e-15);
    lags = (lapse_lags){"log", 1e6, 0, 5};
    assert_int_equal(lapse_lags_resolve(&s, &lags, NULL), LAPSE_OK);
    assert_near(lags.to, 1e7, 1e-6);
    lapse_spectrum_clear(&s);
}

/* A model with several frequency samples has the spectrum of all of them: K is their mean. */
static void test_draws(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("bochner-normal"), 4, 1, 1);
    small_config_number(&config, "frequency-samples", 3);
    lapse_model *model = small_model(&config, test_seed());
    lapse_spectrum s = spectrum_of(model);
    const lp_tensor *draws = lp_model_tensor_find(model, "time.log_period");
    assert_true(draws->rows == 3 && s.count == 3 * draws->cols);
    double lag = 1.7, mean = 0;
    for (int i = 0; i < s.count; i++) {
        double frequency = 2 * PI * exp(-(double)((const float *)draws->data)[i]);
        assert_true(fabs(s.frequency[i] - frequency) <= 1e-12 * frequency);
        mean += cos(frequency * lag) / 3;
    }
    assert_true(fabs(lapse_spectrum_kernel(&s, lag) - mean) < 1e-9);
    lapse_spectrum_clear(&s);
    lapse_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_mercer),
        cmocka_unit_test(test_bochner_has_ones),
        cmocka_unit_test(test_kernel_is_the_mean_over_time),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_series_are_found),
        cmocka_unit_test(test_mean_over_a_cell),
        cmocka_unit_test(test_kernels_of_every_encoding),
        cmocka_unit_test(test_the_check_itself_can_fail),
        cmocka_unit_test(test_models_without_a_kernel),
        cmocka_unit_test(test_hostile_parameters),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_lags_refused),
        cmocka_unit_test(test_lags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
