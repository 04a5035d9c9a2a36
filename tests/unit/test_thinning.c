/* test_thinning.c: fewer frequencies say the same over a span, to a millionth; and a session whose history is long enough for
 * them answers as the whole window with all frequencies does. */
#include "nn/thinning.h"
#include "serve/session.h"
#include "support/small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

enum { FREQUENCIES = 80 };

/* As a model has them: harmonics of periods that grow by factors, in no order. */
static void make_frequencies(lp_random *random, int count, double *frequency)
{
    double shortest = exp(8 * lp_random_uniform(random)), factor = 1.05 + 3 * lp_random_uniform(random);
    for (int f = 0; f < count; f++)
        frequency[f] = 6.283185307179586 * (1 + f % 5) / (shortest * pow(factor, (double)(f * 7 % count / 5)));
}

/* Every element of u at `lag`, from those of the frequencies that stay. */
static void check_lag(const lp_thinning *thinning, const double *frequency, double lag, const char *what)
{
    int kept = thinning->kept;
    for (int c = 0; c < 2 * thinning->count; c++) {
        double phase = frequency[c % thinning->count] * lag, sum = 0;
        for (int k = 0; k < 2 * kept; k++) {
            double own = thinning->frequency[k % kept] * lag;
            sum += (double)thinning->change[c * 2 * kept + k] * (k < kept ? cos(own) : sin(own));
        }
        double wanted = c < thinning->count ? cos(phase) : sin(phase);
        if (!(fabs(sum - wanted) < 2 * LP_THINNING_ERROR))
            fail_msg("%s: element %d at a lag of %g s is %.9g, should be %.9g", what, c, lag, sum, wanted);
    }
}

static void the_same_over_the_span(void **state)
{
    (void)state;
    int thinned = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 760);
        double frequency[FREQUENCIES], span = exp(25 * lp_random_uniform(&random));
        int count = 1 + (int)lp_random_below(&random, FREQUENCIES);
        lp_thinning thinning;
        char what[80];
        make_frequencies(&random, count, frequency);
        assert_int_equal(lp_thinning_make(&thinning, count, frequency, span, NULL), LAPSE_OK);
        snprintf(what, sizeof what, "seed %d, %d frequencies, %d of them over %g s", (int)seed, count, thinning.kept,
                 span);
        assert_true(thinning.count == count && thinning.kept >= 1 && thinning.kept <= count);
        assert_true(thinning.error <= LP_THINNING_ERROR);
        check_lag(&thinning, frequency, 0, what);
        check_lag(&thinning, frequency, span, what);
        for (int i = 0; i < 50; i++)
            check_lag(&thinning, frequency, span * lp_random_uniform(&random), what);
        for (int k = 0, f = 0; k < thinning.kept; k++, f++) { /* some of them, in their order */
            while (f < count && frequency[f] != thinning.frequency[k])
                f++;
            assert_true(f < count);
        }
        thinned += thinning.kept < count;
        lp_thinning_clear(&thinning);
    }
    assert_in_range(thinned, 30, 58);
}

/* The numbers of docs/performance.md, and the ends: all is one moment, nothing is slow, twice the same. */
static void how_many_stay(void **state)
{
    (void)state;
    static const struct {
        double span;
        int most;
    } cases[] = {{3600, 18}, {86400, 37}, {4.2e6, 59}, {8.4e6, 63}, {1e-6, 1}};
    double frequency[FREQUENCIES];
    lp_thinning thinning;
    for (int f = 0; f < FREQUENCIES; f++)
        frequency[f] = 6.283185307179586 * (1 + f % 5) / (600 * pow(5e5, f / 5 / 15.0));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(lp_thinning_make(&thinning, FREQUENCIES, frequency, cases[i].span, NULL), LAPSE_OK);
        if (thinning.kept > cases[i].most || thinning.kept < 1)
            fail_msg("%d frequencies stay over %g s, should be %d at most", thinning.kept, cases[i].span,
                     cases[i].most);
        lp_thinning_clear(&thinning);
    }
    assert_int_equal(lp_thinning_make(&thinning, FREQUENCIES, frequency, 1e13, NULL), LAPSE_OK);
    assert_int_equal(thinning.kept, FREQUENCIES);
    for (int c = 0; c < 2 * FREQUENCIES; c++)
        for (int k = 0; k < 2 * FREQUENCIES; k++)
            assert_true(thinning.change[c * 2 * FREQUENCIES + k] == (c == k ? 1 : 0));
    lp_thinning_clear(&thinning);
    double twice[] = {0.5, 3, 0.5, NAN};
    assert_int_equal(lp_thinning_make(&thinning, 3, twice, 7, NULL), LAPSE_OK);
    assert_int_equal(thinning.kept, 2);
    lp_thinning_clear(&thinning);
    assert_int_equal(lp_thinning_make(&thinning, 4, twice, 7, NULL), LAPSE_OK); /* a model that is broken ends, too */
    lp_thinning_clear(&thinning);
}

static void out_of_memory(void **state)
{
    (void)state;
    double frequency[] = {1e-3, 2e-3, 3e-3, 4e-3};
    lapse_error error = {0};
    lp_thinning thinning;
    for (int64_t n = 1;; n++) {
        lp_memory_fail_at(n);
        lapse_status status = lp_thinning_make(&thinning, 4, frequency, 5, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK)
            break;
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_null(thinning.change);
    }
    lp_thinning_clear(&thinning);
}

/* ---------------------------------------------------------------------------------------------- sessions ----- */

enum { KINDS = 5, CONTEXT = 70, EVENTS = 260 };

static const char *const names[KINDS] = {"a", "b", "c", "d", "e"};
static double times[EVENTS];
static int32_t kinds[EVENTS];

static void check_answer(lapse_session *session, const lapse_model *model, int count, double time, const char *what)
{
    double at[CONTEXT], until[CONTEXT], answers[CONTEXT * KINDS], live[KINDS], again[KINDS];
    bool known = model->config.target_known;
    int tokens = count < CONTEXT ? count : CONTEXT, first = count - tokens;
    double last = known ? time : times[count - 1];
    for (int t = 0; t < tokens; t++) {
        double next = t + 1 < tokens ? times[first + t + 1] : time;
        at[t] = times[first + t] - last;
        until[t] = (known ? next : times[first + t]) - last;
    }
    small_answers(model, "reference-double", tokens, kinds + first, at, until, answers);
    assert_int_equal(lapse_session_predict(session, time, live, NULL), LAPSE_OK);
    for (int kind = 0; kind < KINDS; kind++)
        if (!(fabs(live[kind] - exp(answers[(tokens - 1) * KINDS + kind])) < 2e-5))
            fail_msg("%s, %d events: kind %d has %.9g, the whole window says %.9g", what, count, kind, live[kind],
                     exp(answers[(tokens - 1) * KINDS + kind]));
    assert_int_equal(lapse_session_predict(session, time, again, NULL), LAPSE_OK);
    assert_memory_equal(live, again, sizeof live);
}

static int thinned_count(const lapse_session *session)
{
    int count = 0;
    for (int i = 0; i < LP_KEEPERS_SPANS; i++)
        count += session->keepers.thinned[i] != NULL;
    return count;
}

/* Events at first fast, then slow, so that windows of all spans are asked about, near and far ahead, some again later. */
static void live_through(const lapse_model *model, uint64_t seed, const char *what, bool thins)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 761);
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    for (int i = 0; i < EVENTS; i++) {
        double gap = lp_random_uniform(&random) * (i < 120 ? 0.05 : i < 200 ? 3 : 0.3);
        times[i] = (i ? times[i - 1] : 1.5e9) + gap;
        kinds[i] = (int32_t)lp_random_below(&random, KINDS);
        assert_int_equal(lapse_session_append(session, times[i], names[kinds[i]], NULL), LAPSE_OK);
        if (i > 55 && lp_random_below(&random, 6) == 0)
            check_answer(session, model, i + 1, times[i] + gap, what);
        if (i > 55 && lp_random_below(&random, 20) == 0)
            check_answer(session, model, i + 1, times[i] + 1e3 * lp_random_uniform(&random), what);
    }
    assert_int_equal(thinned_count(session) > 2, thins);
    lapse_session_free(session);
}

static void sessions_answer_the_same(void **state)
{
    (void)state;
    static const char *const encodings[] = {"mercer", "bochner", "position"};
    for (int variant = 0; variant < 12; variant++) {
        lp_model_config config =
            small_config(lp_encoding_find(encodings[variant % 3]), 8, 1 + variant % 2, 1 + variant / 6);
        config.periods = 12;
        config.context = CONTEXT;
        config.period_max = 4000;
        config.target_known = variant % 4 != 0;
        config.combine = variant % 5 ? LP_COMBINE_CONCATENATE : LP_COMBINE_ADD;
        config.projection = variant == 6       ? LP_PROJECTION_MLP
                            : variant % 4 == 1 ? LP_PROJECTION_MLP_QUERY
                                               : LP_PROJECTION_LINEAR;
        char what[100];
        snprintf(what, sizeof what, "%s, variant %d", config.encoding->name, variant);
        lapse_model *model = small_model(&config, (uint64_t)variant);
        live_through(model, (uint64_t)variant, what, variant % 3 != 2 && variant != 6);
        lapse_model_free(model);
    }
}

/* The first question about a span may allocate, and where there is no memory the answer comes with all frequencies. Afterwards
 * nothing is allocated. */
static void memory_of_sessions(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 2, 1);
    config.periods = 12;
    config.context = CONTEXT;
    config.period_max = 4000;
    lapse_model *model = small_model(&config, 3);
    lapse_session *session = NULL, *poor = NULL;
    double one[KINDS], two[KINDS];
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(model, &poor, NULL), LAPSE_OK);
    for (int i = 0; i < CONTEXT; i++) {
        times[i] = i * 0.25;
        kinds[i] = i * i % KINDS;
        assert_int_equal(lapse_session_append(session, times[i], names[kinds[i]], NULL), LAPSE_OK);
        assert_int_equal(lapse_session_append(poor, times[i], names[kinds[i]], NULL), LAPSE_OK);
    }
    check_answer(session, model, CONTEXT, CONTEXT * 0.25, "mercer");
    assert_int_equal(thinned_count(session), 1);
    int64_t before = lp_memory_count();
    assert_int_equal(lapse_session_predict(session, CONTEXT * 0.25 + 1, one, NULL), LAPSE_OK);
    assert_int_equal(lp_memory_count(), before);
    lp_memory_fail_at(9);
    assert_int_equal(lapse_session_predict(poor, CONTEXT * 0.25 + 1, two, NULL), LAPSE_OK);
    lp_memory_fail_at(0);
    assert_int_equal(thinned_count(poor), 0);
    for (int kind = 0; kind < KINDS; kind++)
        assert_true(fabs(one[kind] - two[kind]) < 1e-5);
    lapse_session_free(session);
    lapse_session_free(poor);
    lapse_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_over_the_span), cmocka_unit_test(how_many_stay),
        cmocka_unit_test(out_of_memory),          cmocka_unit_test(sessions_answer_the_same),
        cmocka_unit_test(memory_of_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
