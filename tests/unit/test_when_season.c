/* test_when_season.c: the background of the time of the next event, whose rate changes with the hour of the week: its law, data of a known
 * season, and its place in the model file. */
#include "formula/season.h"
#include "model/model_file.h"
#include "model/next_time.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "evaluate/evaluator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { GAPS = 1000, EVENTS = 21 };

static void check_near(const char *what, double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s: %.12g, should be %.12g within %.3g", what, got, wanted, bound);
}

/* Gaps that end by a Poisson process whose rate changes with the hour of the week, or by a log-normal time, whichever comes first. */
static const double SEASON_MEAN = 13, SEASON_DEVIATION = 0.4, SEASON_RATE = 1.0 / 100000;

static lp_season *known_season(void)
{
    static lp_season season;
    double level[LP_SEASON_HOURS];
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        level[h] = (1 + 0.9 * cos(2 * M_PI * (h - 20) / 24)) * (1 + 0.6 * cos(2 * M_PI * (h - 130) / 168));
    lp_season_set(&season, level);
    return &season;
}

static const double LAST = 1767225600 + 12345;

/* With a background that is far more frequent than the mixture, the law is that of its Poisson process, after any silence; and a law
 * whose arrays were copied is the same. */
static void background_is_exact(void **state)
{
    (void)state;
    const lp_season *season = known_season();
    static const double weight[] = {0}, mean[] = {60}, deviation[] = {1}, rate[] = {2e-5};
    static const double elapsed[] = {0, 3600, 1e5, 1e8, 1e12};
    double memory[4];
    for (int i = 0; i < 5; i++) {
        lp_next_time law =
            lp_next_time_background(lp_next_time_mixture(1, weight, mean, deviation), rate, season, LAST);
        lp_next_time copy = lp_next_time_copy(law, memory);
        law = lp_next_time_after(law, elapsed[i]);
        copy = lp_next_time_after(copy, elapsed[i]);
        for (double t = 100; t < 2e6; t *= 3.7) {
            double seen = lp_season_integral(season, LAST + elapsed[i], t);
            check_near("log survival", lp_next_time_log_survival(&law, t), -2e-5 * seen, 1e-9 + 1e-15 * elapsed[i]);
            check_near("log density", lp_next_time_log_density(&law, t),
                       log(2e-5 * lp_season_level(season, LAST + elapsed[i] + t)) - 2e-5 * seen,
                       1e-9 + 1e-15 * elapsed[i]);
            assert_true(lp_next_time_log_survival(&copy, t) == lp_next_time_log_survival(&law, t));
        }
    }
}

/* A copied law keeps its values when the arrays that it was made of are overwritten. */
static void a_copy_has_its_own_arrays(void **state)
{
    (void)state;
    double weight[] = {log(0.3), log(0.7)}, mean[] = {2, 4}, deviation[] = {0.5, 1}, rate[] = {1e-3, 2e-3}, memory[8];
    lp_next_time law =
        lp_next_time_background(lp_next_time_mixture(2, weight, mean, deviation), rate, known_season(), LAST);
    lp_next_time copy = lp_next_time_copy(law, memory);
    double wanted = lp_next_time_log_density(&law, 30);
    double *const arrays[] = {weight, mean, deviation, rate};
    for (int i = 0; i < 4; i++) {
        const double kept[] = {arrays[i][0], arrays[i][1]};
        arrays[i][0] = arrays[i][1] = i == 0 ? -3 : 3;
        assert_true(lp_next_time_log_density(&law, 30) != wanted);
        assert_true(lp_next_time_log_density(&copy, 30) == wanted);
        memcpy(arrays[i], kept, sizeof kept);
    }
}

static double season_log_density(double last, double t)
{
    const lp_season *season = known_season();
    double z = (log(t) - SEASON_MEAN) / SEASON_DEVIATION;
    double survival = 0.5 * erfc(z / sqrt(2));
    double density = exp(-z * z / 2) / (t * SEASON_DEVIATION * sqrt(2 * M_PI));
    double hazard = SEASON_RATE * lp_season_level(season, last + t);
    return log(density + hazard * survival) - SEASON_RATE * lp_season_integral(season, last, t);
}

static lapse_dataset *season_data(int sequences, uint64_t seed)
{
    static double time[GAPS * EVENTS];
    static int32_t type[GAPS * EVENTS];
    static int lengths[GAPS];
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 2);
    for (int s = 0; s < sequences; s++) {
        lengths[s] = EVENTS;
        for (int k = 0; k < EVENTS; k++) {
            int i = s * EVENTS + k;
            double last = k ? time[i - 1] : 1.7e9 + 604800 * lp_random_uniform(&random);
            double plain = exp(SEASON_MEAN + SEASON_DEVIATION * lp_random_normal(&random));
            double seasonal = lp_season_inverse(known_season(), last, lp_random_exponential(&random) / SEASON_RATE);
            time[i] = k ? last + fmin(plain, seasonal) : last;
            type[i] = (int32_t)lp_random_below(&random, 2);
        }
    }
    return small_dataset(sequences, lengths, time, type, 2, NULL);
}

/* The file keeps the season; one without it, or with another number of hours, is refused. */
static void check_season_file(const lapse_model *model)
{
    const char *path = small_path("season.safetensors");
    lapse_model *read;
    assert_int_equal(lapse_model_save(model, path, NULL), LAPSE_OK);
    assert_int_equal(lapse_model_load(path, &read, NULL), LAPSE_OK);
    for (int h = 0; h < LP_SEASON_HOURS; h++)
        check_near("level", read->config.season.level[h], model->config.season.level[h], 1e-12);
    lapse_model_free(read);
    for (int missing = 0; missing < 2; missing++) {
        lp_container container;
        lapse_error error;
        assert_int_equal(lp_container_open(&container, path, NULL), LAPSE_OK);
        for (int i = 0; i < container.tensor_count; i++)
            if (strcmp(container.tensors[i].name, "when.season") == 0) {
                container.tensors[i].cols--;
                container.tensors[i].name = missing ? "other" : "when.season";
            }
        assert_int_equal(lp_model_from_container(&container, path, NULL, &read, &error), LAPSE_ERROR_FORMAT);
        assert_non_null(strstr(error.message, "when.season"));
        lp_container_close(&container);
    }
    small_paths_remove();
}

/* Trained on such data, a network with a weekly background comes near the NLL of the law, and one without stays above. The file keeps
 * the season. */
static void learns_a_season(void **state)
{
    (void)state;
    small_skip_under_tools();
    lapse_dataset *dataset = season_data(GAPS, 1), *other = season_data(GAPS, 2);
    double above[2], law = 0;
    for (int week = 0; week < 2; week++) {
        lapse_train_options options = small_gap_options(EVENTS, GAPS / 40, 8);
        small_set(&options, "when", "true");
        small_set(&options, "censoring", "off"); /* the sequences end by number, not by time */
        small_set(&options, "when-background", week ? "week" : "none");
        small_set(&options, "when-components", "4");
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        lp_evaluator evaluator;
        small_evaluate(&evaluator, model->times, other);
        double sum = 0;
        law = 0;
        for (int64_t c = 0; c < evaluator.case_count; c++) {
            const lp_time_case *one = &evaluator.time.cases[c];
            sum += one->nll;
            law -= season_log_density(other->time[one->event - 1], one->gap);
        }
        above[week] = (sum - law) / (double)evaluator.case_count;
        if (week)
            check_season_file(model);
        lp_evaluator_clear(&evaluator);
        lapse_model_free(model);
    }
    print_message("above the NLL of the law: %.4f without a background, %.4f with one\n", above[0], above[1]);
    assert_true(above[1] < 0.03 && above[0] > above[1] + 0.05);
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(background_is_exact),
        cmocka_unit_test(a_copy_has_its_own_arrays),
        cmocka_unit_test(learns_a_season),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
