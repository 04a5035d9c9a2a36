/* test_rmtpp.c: the law of the time of the next event, and the model rmtpp on data simulated from its own law. */
#include "backend/backend.h"
#include "formula/hazard.h"
#include "support/small_data.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_near(const char *what, double got, double wanted, double relative)
{
    if (!(fabs(got - wanted) <= relative * fabs(wanted)))
        fail_msg("%s: %.12g, should be %.12g", what, got, wanted);
}

/* ------------------------------------------------------------------------------------------------ the law ----- */

/* Around the slope 0, where the plain formula loses all digits, and far from it, where it is infinite. */
static void hazard_is_stable(void **state)
{
    (void)state;
    static const double slopes[] = {-3, -0.1, -1e-3, -1e-7, -1e-12, 0, 1e-12, 1e-7, 1e-3, 0.1, 3};
    for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) {
        /* (exp(x) - 1) / x by its series, in long double */
        long double x = (long double)slopes[i] * 2, term = 1, sum = 0;
        for (int k = 1; k < 60; k++) {
            sum += term; /* x^(k-1) / k! */
            term *= x / (k + 1);
        }
        double wanted = (double)(expl(0.5L) * 2 * sum);
        check_near("hazard", lp_hazard_cumulative(0.5, slopes[i], 2), wanted, 1e-12);
        double step = 1e-4, low = lp_hazard_log_phi((double)x - step), high = lp_hazard_log_phi((double)x + step);
        assert_true(fabs(lp_hazard_log_phi_slope((double)x) - (high - low) / (2 * step)) < 1e-7);
    }
    static const double far[] = {-1e300, -1e6, 1e6, 1e300};
    for (size_t i = 0; i < 4; i++) {
        double hazard = lp_hazard_cumulative(5, far[i], 1e3), slope = lp_hazard_log_slope(far[i], 1e3);
        assert_true(isfinite(hazard) && hazard >= 0 && isfinite(slope) && slope >= 0 && slope <= 1e3);
    }
    assert_true(lp_hazard_cumulative(1, 2, 0) == 0);
}

/* Density, survival and mean against sums over a fine grid. */
static void law_is_consistent(void **state)
{
    (void)state;
    static const double settings[][3] = {{0, 0, 1},      {-1, 0.5, 60},  {2, 1e-10, 3600}, {0.3, -0.2, 10},
                                         {-2, -0.5, 10}, {-6, 2, 86400}, {3, 20, 1},       {1, -1e-9, 5}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        lp_next_time made = lp_next_time_gompertz(settings[i][0], settings[i][1], settings[i][2]), *law = &made;
        double never = lp_next_time_never(law), mass = 0, end = 0;
        while (lp_next_time_survival(law, end) - never > 1e-13)
            end += law->unit / 16;
        const int steps = 400000;
        for (int k = 0; k < steps; k++) {
            double t = end * (k + 0.5) / steps;
            mass += exp(lp_next_time_log_density(law, t)) * end / steps;
        }
        check_near("mass", mass, 1 - never, 1e-7);
        assert_true(law->slope < 0 ? never > 0 || law->slope > -1e-6 : never == 0);
    }
    lp_next_time exponential = lp_next_time_gompertz(0, 0, 1);
    check_near("exponential", lp_next_time_quantile(&exponential, 1 - exp(-1)), 1, 1e-9);
}

/* --------------------------------------------------------------------------------------- learning the law ----- */

enum { TYPES = 3, SEQUENCES = 600, EVENTS = 30 };

static const double UNIT = 500, SCORES[TYPES] = {-1, 0.2, 1.5}, RISE = 0.5;

/* The law of the gap after an event of this type. */
static lp_next_time law_after(int32_t type)
{
    return lp_next_time_gompertz(SCORES[type], RISE, UNIT);
}

/* Sequences whose next type depends on the last, and the gap by law_after. */
static lapse_dataset *simulate_law(uint64_t seed)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 470);
    static double time[SEQUENCES * EVENTS];
    static int32_t type[SEQUENCES * EVENTS];
    static int lengths[SEQUENCES];
    for (int s = 0; s < SEQUENCES; s++) {
        lengths[s] = EVENTS;
        for (int k = 0; k < EVENTS; k++) {
            int i = s * EVENTS + k;
            bool turns = k > 0 && lp_random_below(&random, 10) < 8;
            type[i] = turns ? (type[i - 1] + 1) % TYPES : (int32_t)lp_random_below(&random, TYPES);
            double hazard = lp_random_exponential(&random);
            double gap = k > 0 ? UNIT * log1p(RISE * hazard * exp(-SCORES[type[i - 1]])) / RISE : 1e9;
            time[i] = (k > 0 ? time[i - 1] : 0) + gap;
        }
    }
    return small_dataset(SEQUENCES, lengths, time, type, TYPES, NULL);
}

/* network->intensity after every event of one sequence. */
static void intensities(const lapse_model *model, const lapse_dataset *dataset, int64_t sequence, float out[EVENTS])
{
    const lp_backend *backend = lp_backend_find("cpu");
    lp_plan plan;
    int32_t position[EVENTS], segment[] = {0, EVENTS};
    float gaps[EVENTS * LP_GAP_COLUMNS];
    const double *time = dataset->time + dataset->start[sequence];
    for (int t = 0; t < EVENTS; t++) {
        position[t] = t;
        double gap = t > 0 ? time[t] - time[t - 1] : NAN;
        lp_gap_row(lp_model_standardize_gap(&model->config.gap, gap), gaps + (ptrdiff_t)t * LP_GAP_COLUMNS);
    }
    lp_extent extent = {.pairs = EVENTS * (EVENTS + 1) / 2, .longest = EVENTS};
    extent.rows[LP_ROWS_TOKENS] = extent.rows[LP_ROWS_TARGETS] = EVENTS;
    assert_int_equal(
        lp_plan_make(&plan, (lp_graph *)(uintptr_t)&model->network.graph, &extent, backend->real_size, NULL), LAPSE_OK);
    void *inputs[LP_FEED_LIMIT] = {[LP_FEED_EVENT] = (void *)(uintptr_t)(dataset->type + dataset->start[sequence]),
                                   [LP_FEED_TARGET_POSITION] = position,
                                   [LP_FEED_GAP] = gaps};
    lp_run run = {.plan = &plan,
                  .work = backend->buffer_new(backend->context, plan.work_size),
                  .inputs = inputs,
                  .scratch = backend->buffer_new(backend->context, plan.scratch_size),
                  .parameters = model->parameters,
                  .rows = {[LP_ROWS_TOKENS] = EVENTS, [LP_ROWS_TARGETS] = EVENTS},
                  .segments = 1,
                  .segment = segment};
    assert_true(run.work && run.scratch);
    backend->run(backend->context, &run);
    memcpy(out, lp_run_data(&run, model->network.intensity), EVENTS * sizeof *out);
    backend->buffer_free(backend->context, run.work);
    backend->buffer_free(backend->context, run.scratch);
}

/* Mean log-likelihood of gaps in units, and mean absolute error of their expected value, on events that it was not trained on. */
static void learns_its_own_law(void **state)
{
    (void)state;
    lapse_dataset *dataset = simulate_law(1), *other = simulate_law(2);
    lapse_train_options options = small_train_options();
    small_set(&options, "model", "rmtpp");
    small_set(&options, "censoring", "off"); /* sequences of a fixed number of events end where nothing is censored */
    options.model.context = EVENTS;
    options.model.dims = 8;
    options.model.dropout = 0;
    options.run.epochs = 20;
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    double likelihood = 0, best = 0, error = 0, least = 0;
    for (int64_t s = 0; s < SEQUENCES; s++) {
        float intensity[EVENTS];
        intensities(model, other, s, intensity);
        for (int t = 0; t + 1 < EVENTS; t++) {
            uint64_t i = other->start[s] + (uint64_t)t;
            double gap = other->time[i + 1] - other->time[i];
            lp_next_time learned = model->config.row->next_time(model, (double)intensity[t]),
                         law = law_after(other->type[i]);
            likelihood += lp_next_time_log_density(&learned, gap) + log(UNIT);
            best += lp_next_time_log_density(&law, gap) + log(UNIT);
            error += fabs(gap - lp_next_time_quantile(&learned, 0.5));
            least += fabs(gap - lp_next_time_quantile(&law, 0.5));
        }
    }
    const double count = SEQUENCES * (EVENTS - 1);
    print_message("log-likelihood %.4f, of the law %.4f; mean error %.2f s, of the law %.2f s\n", likelihood / count,
                  best / count, error / count, least / count);
    if (!(fabs(likelihood - best) < 0.01 * fabs(best)))
        fail_msg("log-likelihood %.4f, that of the law is %.4f", likelihood / count, best / count);
    if (!(error < 1.05 * least))
        fail_msg("mean error %.2f s, that of the law is %.2f s", error / count, least / count);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hazard_is_stable),
        cmocka_unit_test(law_is_consistent),
        cmocka_unit_test(learns_its_own_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
