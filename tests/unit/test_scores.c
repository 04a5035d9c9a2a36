/* test_scores.c: classification metrics on cases computed by hand; bootstrap intervals. */
#include "evaluate/scores.h"
#include "base/random.h"
#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

static const uint64_t offset[] = {0, 2, 4, 6};
static const lp_names names = {.count = 3, .offset = offset, .bytes = "a\0b\0c"};

static void assert_near(double got, double wanted)
{
    if (!(fabs(got - wanted) < 1e-12))
        fail_msg("%.15g, should be %.15g", got, wanted);
}

static void by_hand(void **state)
{
    (void)state;
    static const lp_case cases[] = {{3, 0, 0, 0.1}, {3, 1, 0, 2.0}, {8, 1, 1, 0.5}, {8, 0, 2, 1.0}};
    lapse_scores scores;
    assert_int_equal(lp_scores_make(cases, 4, &names, 0, &scores, NULL), LAPSE_OK);
    assert_int_equal(scores.cases, 4);
    assert_int_equal(scores.sequences, 2);
    assert_near(scores.accuracy, 0.5);
    assert_near(scores.log_loss, 0.9);
    assert_near(scores.macro_f1, (0.5 + 2.0 / 3) / 2); /* c has no cases */
    /* Without bootstrap the interval is one point. */
    assert_true(scores.accuracy_low == 0.5 && scores.accuracy_high == 0.5);
    assert_true(scores.log_loss_low == scores.log_loss && scores.log_loss_high == scores.log_loss);
    static const lapse_class_score wanted[] = {
        {"a", 2, 2, 1, 0.5, 0.5, 0.5}, {"b", 2, 1, 1, 1, 0.5, 2.0 / 3}, {"c", 0, 1, 0, 0, 0, 0}};
    assert_int_equal(scores.class_count, 3);
    for (int i = 0; i < 3; i++) {
        const lapse_class_score *class = &scores.classes[i];
        assert_string_equal(class->name, wanted[i].name);
        assert_int_equal(class->cases, wanted[i].cases);
        assert_int_equal(class->predicted, wanted[i].predicted);
        assert_int_equal(class->correct, wanted[i].correct);
        assert_near(class->precision, wanted[i].precision);
        assert_near(class->recall, wanted[i].recall);
        assert_near(class->f1, wanted[i].f1);
    }
    lapse_scores_clear(&scores);
    assert_null(scores.classes);
    lapse_scores_clear(&scores);
    lapse_scores_clear(NULL);
}

static void all_right_and_all_wrong(void **state)
{
    (void)state;
    static const lp_case right[] = {{0, 2, 2, 0}}, wrong[] = {{0, 2, 1, 9}, {1, 0, 1, 7}};
    lapse_scores scores;
    assert_int_equal(lp_scores_make(right, 1, &names, 50, &scores, NULL), LAPSE_OK);
    assert_true(scores.accuracy == 1 && scores.accuracy_low == 1 && scores.accuracy_high == 1);
    assert_true(scores.log_loss == 0 && scores.log_loss_high == 0 && scores.macro_f1 == 1);
    lapse_scores_clear(&scores);
    assert_int_equal(lp_scores_make(wrong, 2, &names, 1, &scores, NULL), LAPSE_OK); /* one resample is a point */
    assert_true(scores.accuracy == 0 && scores.log_loss == 8 && scores.macro_f1 == 0);
    assert_true(scores.log_loss_low == scores.log_loss_high);
    lapse_scores_clear(&scores);
}

/* Sequences of five cases each, with an accuracy that differs between sequences. */
static void simulate(int sequences, int bootstrap, lapse_scores *scores)
{
    static lp_case cases[5 * 800];
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 600);
    for (int s = 0; s < sequences; s++) {
        double probability = lp_random_uniform(&random);
        for (int i = 0; i < 5; i++) {
            bool right = lp_random_uniform(&random) < probability;
            cases[5 * s + i] = (lp_case){s, 0, right ? 0 : 1, right ? 0.2 : 1.7};
        }
    }
    assert_int_equal(lp_scores_make(cases, 5 * sequences, &names, bootstrap, scores, NULL), LAPSE_OK);
}

static void bootstrap(void **state)
{
    (void)state;
    double width[3], loss_width[3];
    static const int sizes[] = {20, 120, 800};
    for (int i = 0; i < 3; i++) {
        lapse_scores one, again;
        simulate(sizes[i], 400, &one);
        simulate(sizes[i], 400, &again);
        assert_true(one.accuracy_low == again.accuracy_low && one.accuracy_high == again.accuracy_high);
        assert_true(one.log_loss_low == again.log_loss_low && one.log_loss_high == again.log_loss_high);
        assert_true(one.accuracy_low < one.accuracy && one.accuracy < one.accuracy_high);
        assert_true(one.log_loss_low < one.log_loss && one.log_loss < one.log_loss_high);
        width[i] = one.accuracy_high - one.accuracy_low;
        loss_width[i] = one.log_loss_high - one.log_loss_low;
        lapse_scores_clear(&one);
        lapse_scores_clear(&again);
    }
    assert_true(width[1] < 0.7 * width[0] && width[2] < 0.7 * width[1]);
    assert_true(loss_width[1] < 0.7 * loss_width[0] && loss_width[2] < 0.7 * loss_width[1]);
    /* The accuracies are uniform on (0, 1): a standard deviation of sqrt((1/12 + 1/30) / 800); the interval has 3.92 of
     * them. */
    assert_true(fabs(width[2] - 3.92 * sqrt((1.0 / 12 + 1.0 / 30) / 800)) < 0.15 * width[2]);
}

/* All events of a sequence are equal here: resampling events would give a narrower interval. */
static void sequences_are_resampled(void **state)
{
    (void)state;
    static lp_case together[400], apart[400];
    lapse_scores few, many;
    for (int i = 0; i < 400; i++) {
        int right = i / 20 % 2;
        together[i] = (lp_case){i / 20, right, 1, 1};
        apart[i] = (lp_case){i, right, 1, 1};
    }
    assert_int_equal(lp_scores_make(together, 400, &names, 300, &few, NULL), LAPSE_OK);
    assert_int_equal(lp_scores_make(apart, 400, &names, 300, &many, NULL), LAPSE_OK);
    assert_int_equal(few.sequences, 20);
    assert_int_equal(many.sequences, 400);
    assert_true(few.accuracy_high - few.accuracy_low > 3 * (many.accuracy_high - many.accuracy_low));
    lapse_scores_clear(&few);
    lapse_scores_clear(&many);
}

static void out_of_memory(void **state)
{
    (void)state;
    static const lp_case cases[] = {{0, 0, 0, 0.1}};
    lapse_scores scores;
    lapse_error error;
    int n = 1;
    for (;; n++) {
        lp_memory_fail_at(n);
        lapse_status status = lp_scores_make(cases, 1, &names, 5, &scores, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK)
            break;
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_null(scores.classes);
    }
    assert_int_equal(n, 5);
    lapse_scores_clear(&scores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),       cmocka_unit_test(all_right_and_all_wrong),
        cmocka_unit_test(bootstrap),     cmocka_unit_test(sequences_are_resampled),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
