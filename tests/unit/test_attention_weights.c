/* test_attention_weights.c: attention weights add up to 1, do not depend on how the history came to be, do not disturb
 * predictions, and allocate nothing. tests/numpy compares them with an independent forward pass. */
#include "support/small_data.h"
#include "support/small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TYPES = 5, CONTEXT = 6, EVENTS = 17 };

static const char *const names[TYPES] = {"a", "b", "c", "d", "e"};

static void append(lapse_session *session, int event)
{
    /* Every third event at the time of the one before. */
    double time = 1.5e9 + 7.25 * (event - (event % 3 == 2));
    assert_int_equal(lapse_session_append(session, time, names[event * event % TYPES], NULL), LAPSE_OK);
}

static void check_weights(lapse_session *session, const lapse_model *model, double time, double weights[CONTEXT])
{
    int heads = lapse_model_attention_heads(model);
    int64_t events = lapse_session_window(session);
    for (int block = 0; block < lapse_model_attention_blocks(model); block++) {
        double mean[CONTEXT] = {0}, sum = 0;
        for (int head = 0; head < heads; head++) {
            assert_int_equal(lapse_session_attention(session, time, block, head, weights, NULL), LAPSE_OK);
            for (int i = 0; i < events; i++) {
                assert_true(weights[i] >= 0);
                mean[i] += weights[i] / heads;
            }
        }
        assert_int_equal(lapse_session_attention(session, time, block, -1, weights, NULL), LAPSE_OK);
        for (int i = 0; i < events; i++) {
            sum += weights[i];
            assert_true(fabs(weights[i] - mean[i]) < 1e-12);
        }
        assert_true(fabs(sum - 1) < 1e-12);
    }
}

/* A session with questions after every event, and one that begins anew with the window alone. */
static void check_model(const lapse_model *model)
{
    lapse_session *live = NULL, *fresh = NULL;
    assert_int_equal(lapse_session_new(model, &live, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(model, &fresh, NULL), LAPSE_OK);
    for (int event = 0; event < EVENTS; event++) {
        double time = 1.5e9 + 7.25 * event + 3 * (event % 4), one[CONTEXT], two[CONTEXT], before[TYPES], after[TYPES];
        append(live, event);
        assert_int_equal(lapse_session_window(live), event < CONTEXT ? event + 1 : CONTEXT);
        assert_int_equal(lapse_session_predict(live, time, before, NULL), LAPSE_OK);
        check_weights(live, model, time, one);
        assert_int_equal(lapse_session_predict(live, time, after, NULL), LAPSE_OK);
        assert_memory_equal(before, after, sizeof before);
        lapse_session_clear(fresh);
        for (int i = event < CONTEXT ? 0 : event + 1 - CONTEXT; i <= event; i++)
            append(fresh, i);
        check_weights(fresh, model, time, two);
        for (int i = 0; i < lapse_session_window(live); i++)
            assert_true(fabs(one[i] - two[i]) < 1e-5);
    }
    lapse_session_free(live);
    lapse_session_free(fresh);
}

static void every_attention(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++)
        for (int variant = 0; variant < small_effort(12, 4); variant++) {
            lp_model_config config = small_config(lp_encodings[e], 8, 1 + variant % 3, 1 << (variant / 3 % 3));
            small_config_number(&config, "projection", variant / 2 % LP_PROJECTION_COUNT);
            small_config_number(&config, "combine", variant / 3 % LP_COMBINE_COUNT);
            if (lp_encodings[e]->sample)
                small_config_number(&config, "frequency-samples", 1 + variant % 3);
            config.target_time = variant % 5 == 4;
            config.when = variant % 2 == 1 && variant / 2 % LP_PROJECTION_COUNT != LP_PROJECTION_MLP;
            config.when_deviation = config.when_floor = 1;
            config.when_components = 2;
            config.context = CONTEXT;
            lapse_model *model = small_model(&config, (uint64_t)variant);
            assert_int_equal(lapse_model_attention_blocks(model), 1 + variant % 3);
            assert_int_equal(lapse_model_attention_heads(model), 1 << (variant / 3 % 3));
            check_model(model);
            lapse_model_free(model);
        }
    lp_model_config config = small_config_of(lp_model_row_find("sasrec"), 8);
    small_config_number(&config, "heads", 2);
    config.context = CONTEXT;
    lapse_model *model = small_model(&config, 3);
    assert_int_equal(lapse_model_attention_blocks(model), 2);
    check_model(model);
    lapse_model_free(model);
}

static void refuse(lapse_session *session, double time, int block, int head, const char *words)
{
    lapse_error error = {0};
    double weights[CONTEXT * 2] = {-1};
    assert_int_not_equal(lapse_session_attention(session, time, block, head, weights, &error), LAPSE_OK);
    if (!strstr(error.message, words))
        fail_msg("'%s' does not say '%s'", error.message, words);
    assert_true(weights[0] == -1);
}

static void refusals(void **state)
{
    (void)state;
    static const char *const without[] = {"lstm", "gru4rec", "rmtpp", NULL};
    for (int i = 0; without[i]; i++) {
        lp_model_config config = small_config_of(lp_model_row_find(without[i]), 8);
        lapse_model *model = small_model(&config, 1);
        lapse_session *session = NULL;
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        assert_int_equal(lapse_model_attention_blocks(model), 0);
        assert_int_equal(lapse_model_attention_heads(model), 0);
        append(session, 0);
        refuse(session, 2e9, 0, 0, "has no attention");
        lapse_session_free(session);
        lapse_model_free(model);
    }
    lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 2, 2);
    lapse_model *model = small_model(&config, 1);
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    refuse(session, 2e9, 0, 0, "the history is empty");
    append(session, 0);
    refuse(session, 1e9, 0, 0, "before the last event");
    refuse(session, NAN, 0, 0, "is not a number");
    refuse(session, 2e9, 2, 0, "block is 2; the model has 2");
    refuse(session, 2e9, -1, 0, "block is -1");
    refuse(session, 2e9, 0, 2, "head is 2; the model has 2");
    refuse(session, 2e9, 0, -2, "head is -2");
    lapse_session_free(session);
    lapse_model_free(model);
}

static void nothing_is_allocated(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 2, 2);
    lapse_model *model = small_model(&config, 1);
    lapse_session *session = NULL;
    double weights[16];
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    append(session, 0);
    assert_int_equal(lapse_session_attention(session, 2e9, 1, 1, weights, NULL), LAPSE_OK);
    lp_memory_fail_at(1);
    lapse_status status = lapse_session_attention(session, 2e9, 1, 1, weights, NULL);
    lp_memory_fail_at(0);
    assert_int_equal(status, LAPSE_OK);
    lapse_session_free(session);
    lapse_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_attention), cmocka_unit_test(refusals),
                                       cmocka_unit_test(nothing_is_allocated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
