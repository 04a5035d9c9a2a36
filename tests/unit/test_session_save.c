/* test_session_save.c: a restored session goes on as the saved one, with the same bits; buffers that are cut off, damaged or of
 * another model are refused and change nothing. */
#include "serve/session.h"
#include "support/small_data.h"
#include "support/small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { TYPES = 5, CONTEXT = 7 };

static const char *const names[TYPES] = {"a", "b", "c", "d", "e"};

static lapse_session *open_session(const lapse_model *model)
{
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    return session;
}

static double append(lapse_session *session, lp_random *random)
{
    double last = lapse_session_count(session) ? lapse_session_last_time(session) : 1.5e9;
    last += 4 * lp_random_uniform(random);
    assert_int_equal(lapse_session_append(session, last, names[lp_random_below(random, TYPES)], NULL), LAPSE_OK);
    return last;
}

static char *save(const lapse_session *session, bool rows, int64_t *size)
{
    assert_int_equal(lapse_session_save(session, rows, NULL, 0, size, NULL), LAPSE_OK);
    char *buffer = lp_alloc((size_t)*size, 1);
    int64_t written = 0;
    assert_non_null(buffer);
    assert_int_equal(lapse_session_save(session, rows, buffer, *size, &written, NULL), LAPSE_OK);
    assert_int_equal(written, *size);
    return buffer;
}

static void compare(lapse_session *one, lapse_session *two, double time, bool bits)
{
    double a[TYPES], b[TYPES];
    assert_int_equal(lapse_session_predict(one, time, a, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(two, time, b, NULL), LAPSE_OK);
    if (bits)
        assert_memory_equal(a, b, sizeof a);
    for (int k = 0; k < TYPES; k++)
        assert_true(fabs(a[k] - b[k]) < 1e-5);
}

static void restored_sessions_go_on(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++)
        for (int variant = 0; variant < 6; variant++) {
            lp_model_config config = small_config(lp_encodings[e], 8, 1 + variant % 2, 2);
            config.context = CONTEXT;
            config.task = variant % 3 ? LP_TASK_RECOMMEND : LP_TASK_CLASSIFY;
            small_config_number(&config, "projection", variant / 2);
            if (lp_encodings[e]->sample)
                small_config_number(&config, "frequency-samples", 2);
            if (variant % 2)
                small_config_gap(&config);
            lapse_model *model = small_model(&config, 3);
            lp_random random = lp_random_start(4, LP_PURPOSE_TEST, 995);
            for (int events = 0; events < 3 * CONTEXT; events++) {
                lapse_session *session = open_session(model), *with = open_session(model),
                              *without = open_session(model);
                int64_t size, less;
                double time = 1.5e9;
                for (int i = 0; i < events; i++) {
                    time = append(session, &random);
                    if (lp_random_below(&random, 2))
                        compare(session, session, time, true);
                }
                char *rows = save(session, true, &size), *plain = save(session, false, &less);
                assert_true(less <= size);
                append(with, &random); /* is replaced */
                assert_int_equal(lapse_session_restore(with, rows, size, NULL), LAPSE_OK);
                assert_int_equal(lapse_session_restore(without, plain, less, NULL), LAPSE_OK);
                assert_int_equal(lapse_session_count(with), events);
                for (int i = 0; i < 4; i++) {
                    const char *name = names[i];
                    time += 1.5;
                    assert_int_equal(lapse_session_append(session, time, name, NULL), LAPSE_OK);
                    assert_int_equal(lapse_session_append(with, time, name, NULL), LAPSE_OK);
                    assert_int_equal(lapse_session_append(without, time, name, NULL), LAPSE_OK);
                    compare(session, with, time + 2, true);
                    compare(session, without, time + 2, false);
                }
                lp_free(rows);
                lp_free(plain);
                lapse_session_free(session);
                lapse_session_free(with);
                lapse_session_free(without);
            }
            lapse_model_free(model);
        }
}

/* Either refused, or a session that can be queried. */
static void try_restore(lapse_session *session, const void *buffer, int64_t size, const double *before)
{
    double now[TYPES];
    lapse_error error;
    lapse_status status = lapse_session_restore(session, buffer, size, &error);
    if (status != LAPSE_OK)
        assert_int_equal(status, LAPSE_ERROR_FORMAT);
    double last = lapse_session_last_time(session);
    lapse_status asked = isnan(last) ? LAPSE_OK : lapse_session_predict(session, last, now, &error);
    if (status != LAPSE_OK) {
        assert_int_equal(asked, LAPSE_OK);
        assert_memory_equal(now, before, sizeof now);
    }
}

static void damaged_buffers(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 2, 2);
    config.context = CONTEXT;
    small_config_gap(&config);
    lapse_model *model = small_model(&config, 3), *other = small_model(&config, 4);
    lp_random random = lp_random_start(5, LP_PURPOSE_TEST, 995);
    lapse_session *session = open_session(model), *target = open_session(model), *foreign = open_session(other);
    double before[TYPES], time = 0;
    for (int i = 0; i < 5; i++)
        time = append(session, &random);
    compare(session, session, time, true);
    int64_t size;
    char *buffer = save(session, true, &size);
    lapse_error error;
    assert_int_equal(lapse_session_restore(foreign, buffer, size, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, "the saved session is of another model");
    assert_int_equal(lapse_session_restore(target, "not a session", 13, &error), LAPSE_ERROR_FORMAT);
    for (int64_t at = 0; at < size; at += at < 400 ? 1 : 61)
        for (int bit = 0; bit < 8; bit += 7) {
            lapse_session_clear(target);
            time = append(target, &random);
            assert_int_equal(lapse_session_predict(target, time, before, NULL), LAPSE_OK);
            try_restore(target, buffer, at, before);
            buffer[at] ^= (char)(1 << bit);
            try_restore(target, buffer, size, before);
            buffer[at] ^= (char)(1 << bit);
        }
    lp_free(buffer);
    lapse_session_free(session);
    lapse_session_free(target);
    lapse_session_free(foreign);
    lapse_model_free(model);
    lapse_model_free(other);
}

/* The bytes that a session really has, and out of memory. */
static void bytes_of_a_session(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 2, 2);
    lapse_model *model = small_model(&config, 3);
    int64_t none, few, many;
    assert_int_equal(lapse_session_bytes(model, 0, &none, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_bytes(model, 10, &few, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_bytes(model, 1000, &many, NULL), LAPSE_OK);
    assert_true(none == (int64_t)sizeof(lapse_session) && none < few && few < many);
    assert_int_equal(lapse_session_bytes(model, -1, &none, NULL), LAPSE_ERROR_USAGE);
    lp_random random = lp_random_start(6, LP_PURPOSE_TEST, 995);
    lapse_session *session = open_session(model), *target = open_session(model);
    double time = 0;
    for (int i = 0; i < 5; i++)
        time = append(session, &random);
    compare(session, session, time, true);
    int64_t size;
    char *buffer = save(session, true, &size);
    int n = 1;
    for (lapse_status status = LAPSE_ERROR_MEMORY; status != LAPSE_OK; n++) {
        lp_memory_fail_at(n);
        status = lapse_session_restore(target, buffer, size, NULL);
        lp_memory_fail_at(0);
        assert_true(status == LAPSE_OK || status == LAPSE_ERROR_MEMORY);
        assert_int_equal(lapse_session_count(target), status == LAPSE_OK ? 5 : 0);
    }
    assert_true(n > 4);
    lp_free(buffer);
    lapse_session_free(session);
    lapse_session_free(target);
    lapse_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(restored_sessions_go_on), cmocka_unit_test(damaged_buffers),
                                       cmocka_unit_test(bytes_of_a_session)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
