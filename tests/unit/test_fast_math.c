/* test_fast_math.c: error bounds of exp, log, the normal tail, cosine and sine, and the random bits against random.h. */
#include "backend/backend.h"
#include "backend/cpu/fast/fast_math.h"
#include "formula/mixture.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>

static void test_exp(void **state)
{
    (void)state;
    for (float x = -87; x < 88; x += 0.00037f) {
        double wanted = exp((double)x), error = fabs((double)fast_exp(x) / wanted - 1);
        if (!(error <= 2e-7))
            fail_msg("exp(%.9g): %.9g, should be %.9g", (double)x, (double)fast_exp(x), wanted);
    }
    assert_true(fast_exp(0) == 1);
    assert_true(fast_exp(-87.01f) == 0);
    assert_true(fast_exp(-INFINITY) == 0);
    assert_true(fast_exp(INFINITY) == fast_exp(88));
    assert_true(isfinite(fast_exp(88)));
    assert_true(isnan(fast_exp(NAN)));
}

static void test_exp_double(void **state)
{
    (void)state;
    for (double x = -708; x <= 0; x += 0.00137) {
        double wanted = exp(x);
        if (!(fabs(fast_exp_double(x) - wanted) <= 5e-13 * wanted))
            fail_msg("exp(%.17g): %.17g, should be %.17g", x, fast_exp_double(x), wanted);
    }
    assert_true(fast_exp_double(0) == 1);
    assert_true(fast_exp_double(-708.1) == 0);
    assert_true(fast_exp_double(-INFINITY) == 0);
    assert_true(isnan(fast_exp_double(NAN)));
}

static void test_log(void **state)
{
    (void)state;
    for (float x = 1.2e-38f; x < 3e38f; x *= 1.00007f) {
        double wanted = log((double)x);
        if (!(fabs((double)fast_log(x) - wanted) <= 2e-7 + 1e-7 * fabs(wanted)))
            fail_msg("log(%.9g): %.9g, should be %.9g", (double)x, (double)fast_log(x), wanted);
    }
    assert_true(fast_log(1) == 0);
}

static void test_normal_tail_ratio(void **state)
{
    (void)state;
    for (float z = 0; z < 1e5f; z += 0.0003f * (1 + z)) {
        double wanted = exp(lp_normal_log_tail((double)z) + (double)z * (double)z / 2);
        if (!(fabs((double)fast_normal_tail_ratio(z) / wanted - 1) <= (z < 1000 ? 6e-7 : 1e-3)))
            fail_msg("tail at %.9g: %.9g, should be %.9g", (double)z, (double)fast_normal_tail_ratio(z), wanted);
    }
}

static void check_turn(double turns)
{
    const double two_pi = 6.283185307179586;
    float cosine, sine;
    fast_turn(turns, &cosine, &sine);
    double angle = two_pi * (turns - nearbyint(turns));
    if (!(fabs((double)cosine - cos(angle)) <= 1.5e-7 && fabs((double)sine - sin(angle)) <= 1.5e-7))
        fail_msg("%.17g turns: %.9g %.9g, should be %.9g %.9g", turns, (double)cosine, (double)sine, cos(angle),
                 sin(angle));
}

static void test_turn(void **state)
{
    (void)state;
    lp_random random = lp_random_start(6, LP_PURPOSE_TEST, 0);
    for (int i = 0; i <= 64; i++) {
        check_turn(i / 8.0);
        check_turn(-i / 8.0);
        check_turn(i / 8.0 + 0.0625);
    }
    for (int i = 0; i < 300000; i++)
        check_turn((lp_random_uniform(&random) - 0.5) * pow(10, i % 12));
    /* Past the precision of a double the phase counts as 0; NaN stays NaN. */
    float cosine, sine;
    static const double large[] = {1e16, -1e16, 1e300, INFINITY, -INFINITY};
    for (int i = 0; i < 5; i++) {
        fast_turn(large[i], &cosine, &sine);
        assert_true(cosine == 1 && sine == 0);
    }
    fast_turn(NAN, &cosine, &sine);
    assert_true(isnan(cosine) && isnan(sine));
}

static void test_bits(void **state)
{
    (void)state;
    uint64_t element[19];
    uint16_t bits[19 * 8];
    for (int i = 0; i < 19; i++)
        element[i] = (uint64_t)i * 0x123456789ABCDull;
    for (int count = 0; count <= 19; count++) {
        fast_random_bits(0xFEDCBA9876543210ull, 0x305, 9, element, count, bits);
        for (int i = 0; i < count * 8; i++) {
            lp_random_block block = lp_philox(0xFEDCBA9876543210ull, 0x305, 9, element[i / 8]);
            assert_true(lp_dropout_keep(&block, i % 8, bits[i]));
            assert_false(lp_dropout_keep(&block, i % 8, bits[i] + 1u));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exp),  cmocka_unit_test(test_exp_double),
                                       cmocka_unit_test(test_log),  cmocka_unit_test(test_normal_tail_ratio),
                                       cmocka_unit_test(test_turn), cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
