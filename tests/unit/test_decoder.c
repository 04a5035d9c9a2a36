/* test_decoder.c: a session that keeps keys and values answers as the whole window does, whatever came before: events and
 * questions in any order, long past the context, for every event type of network. Nothing is allocated on the way. */
#include "support/small_data.h"
#include "support/small_model.h"
#include "evaluate/evaluator.h"
#include "serve/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TYPES = 5, CONTEXT = 6, EVENTS = 40 };

static const char *const names[TYPES] = {"a", "b", "c", "d", "e"};

typedef struct history {
    int count;
    double times[EVENTS];
    int32_t types[EVENTS];
} history;

/* The answer of the plain network in double to the last CONTEXT events. */
static void whole_window(const lapse_model *model, const history *h, double time, double *probabilities)
{
    double at[CONTEXT], query_time[CONTEXT], gap[CONTEXT], out[CONTEXT * TYPES];
    bool known = lp_model_target_known(&model->config);
    int tokens = h->count < CONTEXT ? h->count : CONTEXT, first = h->count - tokens;
    double last = known ? time : h->times[h->count - 1];
    for (int t = 0; t < tokens; t++) {
        double next = t + 1 < tokens ? h->times[first + t + 1] : time;
        at[t] = h->times[first + t] - last;
        query_time[t] = (known ? next : h->times[first + t]) - last;
        gap[t] = first + t > 0 ? h->times[first + t] - h->times[first + t - 1] : NAN;
    }
    small_answers(model, "reference-double", tokens, h->types + first, at, query_time, gap, out);
    for (int type = 0; type < TYPES; type++)
        probabilities[type] = exp(out[(tokens - 1) * TYPES + type]);
}

static void check_answer(lapse_session *session, const lapse_model *model, const history *h, double time,
                         const char *what)
{
    double live[TYPES], again[TYPES], wanted[TYPES];
    whole_window(model, h, time, wanted);
    assert_int_equal(lapse_session_predict(session, time, live, NULL), LAPSE_OK);
    for (int type = 0; type < TYPES; type++)
        if (!(fabs(live[type] - wanted[type]) < 2e-5))
            fail_msg("%s, %d events: event type %d has %.9g, the whole window says %.9g", what, h->count, type,
                     live[type], wanted[type]);
    assert_int_equal(lapse_session_predict(session, time, again, NULL), LAPSE_OK);
    assert_memory_equal(live, again, sizeof live);
}

/* Events and questions at random; a third of the events come at the time of the one before. */
static void live_through(const lapse_model *model, uint64_t seed, const char *what)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 710);
    lapse_session *session = NULL;
    history h = {0};
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    for (int round = 0; round < 2; round++) {
        h.count = 0;
        lapse_session_clear(session);
        while (h.count < EVENTS) {
            int more = 1 + (int)lp_random_below(&random, 3), questions = (int)lp_random_below(&random, 3);
            for (int i = 0; i < more && h.count < EVENTS; i++) {
                double before = h.count ? h.times[h.count - 1] : 1.5e9;
                h.times[h.count] = before + (lp_random_below(&random, 3) ? 5 * lp_random_uniform(&random) : 0);
                h.types[h.count] = (int32_t)lp_random_below(&random, TYPES);
                assert_int_equal(lapse_session_append(session, h.times[h.count], names[h.types[h.count]], NULL),
                                 LAPSE_OK);
                h.count++;
            }
            for (int i = 0; i < questions; i++)
                check_answer(session, model, &h, h.times[h.count - 1] + 10 * i * lp_random_uniform(&random), what);
        }
    }
    lapse_session_free(session);
}

static void every_network(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++)
        for (int variant = 0; variant < small_effort(36, 8); variant++) {
            lp_model_config config = small_config(lp_encodings[e], 8, 1 + variant % 3, 1 << (variant / 3 % 3));
            small_config_number(&config, "projection", (variant / 2 % LP_PROJECTION_COUNT));
            small_config_number(&config, "combine", (variant / 5 % LP_COMBINE_COUNT));
            config.target_time = !(variant / 4 % 3 > 0);
            config.context = CONTEXT;
            if (variant % 4 < 2)
                small_config_gap(&config);
            char what[120];
            snprintf(what, sizeof what, "%s, variant %d: %d blocks, %d heads, %s, %s, %s, gaps %s",
                     small_encoding(&config)->name, variant, (int)small_config_get(&config, "blocks"),
                     (int)small_config_get(&config, "heads"),
                     lp_projection_names[(int)small_config_get(&config, "projection")],
                     lp_combine_names[(int)small_config_get(&config, "combine")],
                     lp_model_target_known(&config) ? "known" : "unknown", config.gap_input ? "on" : "off");
            lapse_model *model = small_model(&config, (uint64_t)variant);
            live_through(model, (uint64_t)variant, what);
            lapse_model_free(model);
        }
}

/* A history without gaps in its memory, and one that begins anew for each question. With several draws each has rows of
 * its own. */
static void several_draws(void **state)
{
    (void)state;
    for (int blocks = 1; blocks <= 2; blocks++) {
        lp_model_config config = small_config(lp_encoding_find("bochner-normal"), 8, blocks, 2);
        small_config_number(&config, "frequency-samples", 3);
        config.context = CONTEXT;
        lapse_model *model = small_model(&config, 4);
        lp_random random = lp_random_start(3, LP_PURPOSE_TEST, 711);
        lapse_session *live = NULL, *fresh = NULL;
        history h = {0};
        assert_int_equal(lapse_session_new(model, &live, NULL), LAPSE_OK);
        assert_int_equal(lapse_session_new(model, &fresh, NULL), LAPSE_OK);
        for (; h.count < EVENTS;) {
            double one[TYPES], two[TYPES];
            h.times[h.count] = h.count + lp_random_uniform(&random);
            h.types[h.count] = (int32_t)lp_random_below(&random, TYPES);
            assert_int_equal(lapse_session_append(live, h.times[h.count], names[h.types[h.count]], NULL), LAPSE_OK);
            h.count++;
            lapse_session_clear(fresh);
            for (int i = h.count > CONTEXT ? h.count - CONTEXT : 0; i < h.count; i++)
                assert_int_equal(lapse_session_append(fresh, h.times[i], names[h.types[i]], NULL), LAPSE_OK);
            assert_int_equal(lapse_session_predict(live, h.count + 3.5, one, NULL), LAPSE_OK);
            assert_int_equal(lapse_session_predict(fresh, h.count + 3.5, two, NULL), LAPSE_OK);
            assert_memory_equal(one, two, sizeof one);
        }
        lapse_session_free(live);
        lapse_session_free(fresh);
        lapse_model_free(model);
    }
}

/* A session that is queried after each event has the bits of one with all events at once, also after its window has moved, with columns
 * that vectors do not divide. */
static void grown_as_opened(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++)
        for (int variant = 0; variant < 6; variant++) {
            lp_model_config config =
                small_config(lp_encodings[e], variant % 2 ? 20 : 36, 1 + variant % 3, 1 + variant / 3);
            config.context = 2 * CONTEXT + 9;
            small_config_gap(&config);
            lapse_model *model = small_model(&config, 5);
            lapse_session *grown = NULL;
            assert_int_equal(lapse_session_new(model, &grown, NULL), LAPSE_OK);
            for (int i = 0; i < EVENTS; i++) {
                double time = 10 * i + i % 7, one[TYPES], two[TYPES];
                lapse_session *opened = NULL;
                assert_int_equal(lapse_session_new(model, &opened, NULL), LAPSE_OK);
                assert_int_equal(lapse_session_append(grown, time, names[i * 3 % TYPES], NULL), LAPSE_OK);
                for (int k = 0; k <= i; k++)
                    assert_int_equal(lapse_session_append(opened, 10 * k + k % 7, names[k * 3 % TYPES], NULL),
                                     LAPSE_OK);
                assert_int_equal(lapse_session_predict(grown, time + 1.5, one, NULL), LAPSE_OK);
                assert_int_equal(lapse_session_predict(opened, time + 1.5, two, NULL), LAPSE_OK);
                if (memcmp(one, two, sizeof one) != 0)
                    fail_msg("%s, variant %d: after %d events they differ", lp_encodings[e]->name, variant, i + 1);
                lapse_session_free(opened);
            }
            lapse_session_free(grown);
            lapse_model_free(model);
        }
}

/* Appends and queries by a thread that is not the one of the last query. */
static void another_thread(const lapse_model *model, lapse_session *session, int first, int count,
                           double *probabilities)
{
    lapse_session *other = NULL;
    assert_int_equal(lapse_session_new(model, &other, NULL), LAPSE_OK);
    assert_int_equal(lp_session_hold(other, NULL), LAPSE_OK); /* takes the memory of the thread of the last query */
    for (int i = first; i < first + count; i++)
        assert_int_equal(lapse_session_append(session, 10 * i, names[i * 3 % TYPES], NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 10 * (first + count), probabilities, NULL), LAPSE_OK);
    lp_session_release(other);
    lapse_session_free(other);
}

/* What a thread has computed of a session's times is not used for others, which another thread has queried the session about since. */
static void threads_take_turns(void **state)
{
    (void)state;
    enum { CLEARED, RETURNED, KEPT, SLID, CHANGES };
    for (int change = 0; change < CHANGES; change++) {
        lp_model_config config = small_config(lp_encoding_find("mercer"), 16, 2, 2);
        config.context = 12;
        lapse_model *model = small_model(&config, 9);
        lapse_session *session = NULL;
        double one[TYPES], two[TYPES];
        int count = change == KEPT ? 30 : change == SLID ? 12 : 5;
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        for (int i = 0; i < count; i++)
            assert_int_equal(lapse_session_append(session, 7 * i + i * i % 5, names[i % TYPES], NULL), LAPSE_OK);
        assert_int_equal(lp_session_hold(session, NULL), LAPSE_OK);
        lp_session_mark mark = lp_session_mark_of(session);
        if (change == RETURNED)
            for (int i = 0; i < 4; i++)
                assert_int_equal(lapse_session_append(session, 41 + i, names[i % TYPES], NULL), LAPSE_OK);
        assert_int_equal(lapse_session_predict(session, 300, one, NULL), LAPSE_OK);
        if (change == CLEARED)
            lapse_session_clear(session);
        else if (change == RETURNED)
            lp_session_return(session, mark);
        else if (change == KEPT)
            lp_session_keep(session, 13);
        lp_session_release(session);
        another_thread(model, session, 30, 3, one);
        assert_int_equal(lapse_session_predict(session, 330, two, NULL), LAPSE_OK);
        if (memcmp(one, two, sizeof one) != 0)
            fail_msg("change %d: threads differ", change);
        lapse_session_free(session);
        lapse_model_free(model);
    }
}

/* Years between events and years into the future: the phases keep their fractions. */
static void long_times(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 1, 1);
    config.context = CONTEXT;
    small_config_number(&config, "period-max", 1e6);
    lapse_model *model = small_model(&config, 8);
    lapse_session *session = NULL;
    history h = {0};
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    for (; h.count < 20; h.count++) {
        h.times[h.count] = 1e9 + 3e7 * h.count + 0.25;
        h.types[h.count] = h.count * 3 % TYPES;
        assert_int_equal(lapse_session_append(session, h.times[h.count], names[h.types[h.count]], NULL), LAPSE_OK);
        h.count++;
        check_answer(session, model, &h, h.times[h.count - 1] + 1e8 / 3, "mercer, years");
        h.count--;
    }
    lapse_session_free(session);
    lapse_model_free(model);
}

/* The library's own allocations, once a session has had so many events; what it calls is counted in test_allocations.c. */
static void nothing_is_allocated(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++) {
        lp_model_config config = small_config(lp_encodings[e], 8, 2, 2);
        config.context = CONTEXT;
        lapse_model *model = small_model(&config, 2);
        lapse_session *session = NULL;
        double probabilities[TYPES];
        lapse_recommendation best[3];
        int64_t count;
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        int64_t before = 0;
        for (int round = 0, i = 0; round < 2; i = (i + 1) % EVENTS, round += i == 0) {
            if (i == 0) {
                lapse_session_clear(session);
                before = lp_memory_count();
            }
            assert_int_equal(lapse_session_append(session, i, names[i % TYPES], NULL), LAPSE_OK);
            assert_int_equal(lapse_session_predict(session, i + 0.5, probabilities, NULL), LAPSE_OK);
            assert_int_equal(lapse_session_recommend(session, i + 0.5, 3, false, best, &count, NULL), LAPSE_OK);
        }
        lapse_session_clear(session);
        assert_int_equal(lp_memory_count(), before);
        lapse_session_free(session);
        lapse_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network),      cmocka_unit_test(several_draws), cmocka_unit_test(grown_as_opened),
        cmocka_unit_test(threads_take_turns), cmocka_unit_test(long_times),    cmocka_unit_test(nothing_is_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
