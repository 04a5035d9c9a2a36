/* test_session_many.c: queries about many sessions in one run give each the bits that it has alone, for every network, whatever the
 * lengths of the other histories and their number. */
#include "serve/session.h"
#include "support/small_data.h"
#include "support/small_model.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TYPES = 5, CONTEXT = 12, SESSIONS = 37, TOP = 3 };

static const char *const names[TYPES] = {"a", "b", "c", "d", "e"};

typedef struct crowd {
    const lapse_model *model;
    lapse_session *alone[SESSIONS], *together[SESSIONS];
    double last[SESSIONS];
} crowd;

static void open_crowd(crowd *c, const lapse_model *model)
{
    c->model = model;
    for (int i = 0; i < SESSIONS; i++) {
        assert_int_equal(lapse_session_new(model, &c->alone[i], NULL), LAPSE_OK);
        assert_int_equal(lapse_session_new(model, &c->together[i], NULL), LAPSE_OK);
        c->last[i] = 1.5e9 + i;
    }
}

static void close_crowd(crowd *c)
{
    for (int i = 0; i < SESSIONS; i++) {
        lapse_session_free(c->alone[i]);
        lapse_session_free(c->together[i]);
    }
}

/* One to four more events of each. */
static void grow(crowd *c, lp_random *random)
{
    for (int i = 0; i < SESSIONS; i++)
        for (int n = 1 + (int)lp_random_below(random, 4); n > 0; n--) {
            const char *name = names[lp_random_below(random, TYPES)];
            c->last[i] += lp_random_below(random, 3) ? 5 * lp_random_uniform(random) : 0;
            assert_int_equal(lapse_session_append(c->alone[i], c->last[i], name, NULL), LAPSE_OK);
            assert_int_equal(lapse_session_append(c->together[i], c->last[i], name, NULL), LAPSE_OK);
        }
}

static void compare_predictions(const crowd *c, const lapse_session_query *queries, const lapse_session_query *same,
                                int count, const char *what)
{
    double one[TYPES], many[2 * SESSIONS * TYPES];
    assert_int_equal(lapse_session_predict_many(queries, count, NULL, many, NULL), LAPSE_OK);
    for (int q = 0; q < count; q++) {
        assert_int_equal(lapse_session_predict(same[q].session, same[q].time, one, NULL), LAPSE_OK);
        if (memcmp(one, many + (size_t)q * TYPES, sizeof one) != 0)
            fail_msg("%s, row %d of %d: %.17g, alone %.17g", what, q, count, many[q * TYPES], one[0]);
    }
    if (!lapse_model_state_dims(c->model))
        return;
    float state[64], states[2 * SESSIONS * 64];
    size_t dims = (size_t)lapse_model_state_dims(c->model);
    assert_int_equal(lapse_session_state_many(queries, count, states, NULL), LAPSE_OK);
    for (int q = 0; q < count; q++) {
        assert_int_equal(lapse_session_state(same[q].session, same[q].time, state, NULL), LAPSE_OK);
        assert_memory_equal(state, states + (size_t)q * dims, dims * sizeof *state);
    }
}

static void compare_recommendations(const lapse_session_query *queries, const lapse_session_query *same, int count)
{
    const float offset[TYPES] = {0, 0.5F, 0, -0.25F, 0};
    const int64_t never[] = {2};
    const lapse_item_filter filters[] = {{.unseen = true}, {.offset = offset}, {.exclude = never, .exclude_count = 1}};
    lapse_recommendation one[TOP], many[2 * SESSIONS][TOP];
    lapse_recommend_query asked[2 * SESSIONS];
    memset(one, 0, sizeof one);
    memset(many, 0, sizeof many);
    for (int q = 0; q < count; q++)
        asked[q] = (lapse_recommend_query){.session = queries[q].session,
                                           .time = queries[q].time,
                                           .filter = q % 4 ? &filters[q % 4 - 1] : NULL,
                                           .top = TOP,
                                           .best = many[q]};
    assert_int_equal(lapse_session_recommend_many(asked, count, NULL, NULL), LAPSE_OK);
    for (int q = 0; q < count; q++) {
        lapse_recommend_query alone = asked[q];
        alone.session = same[q].session;
        alone.best = one;
        assert_int_equal(lapse_session_recommend_many(&alone, 1, NULL, NULL), LAPSE_OK);
        assert_int_equal(asked[q].count, alone.count);
        assert_memory_equal(one, many[q], (size_t)alone.count * sizeof *one);
    }
}

/* Rounds of events and queries, about some of the sessions; some are asked about twice. */
static void live_together(const lapse_model *model, uint64_t seed, const char *what)
{
    crowd c;
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 990);
    open_crowd(&c, model);
    for (int round = 0; round < 8; round++) {
        lapse_session_query queries[2 * SESSIONS], same[2 * SESSIONS];
        int count = 0;
        grow(&c, &random);
        for (int i = 0; i < SESSIONS; i++)
            for (int again = 0; again < 2; again++)
                if (again == 0 ? lp_random_below(&random, 4) > 0 : lp_random_below(&random, 9) == 0) {
                    double time = c.last[i] + 3 * lp_random_uniform(&random);
                    queries[count] = (lapse_session_query){c.together[i], time};
                    same[count++] = (lapse_session_query){c.alone[i], time};
                }
        compare_predictions(&c, queries, same, count, what);
        compare_recommendations(queries, same, count);
    }
    close_crowd(&c);
}

static void every_network(void **state)
{
    (void)state;
    static const int dims[] = {8, 18, 32, 50};
    for (int e = 0; lp_encodings[e]; e++)
        for (int variant = 0; variant < small_effort(24, 8); variant++) {
            lp_model_config config =
                small_config(lp_encodings[e], dims[variant % 4], 1 + variant % 3, 1 + variant / 2 % 2);
            config.context = CONTEXT;
            config.task = variant % 2 ? LP_TASK_RECOMMEND : LP_TASK_CLASSIFY;
            config.target_time = variant % 5 == 4;
            small_config_number(&config, "projection", variant / 2 % LP_PROJECTION_COUNT);
            if (lp_encodings[e]->sample)
                small_config_number(&config, "frequency-samples", 1 + variant % 3);
            if (variant % 4 < 2)
                small_config_gap(&config);
            char what[80];
            snprintf(what, sizeof what, "%s, variant %d", lp_encodings[e]->name, variant);
            lapse_model *model = small_model(&config, (uint64_t)variant);
            live_together(model, (uint64_t)variant, what);
            lapse_model_free(model);
        }
}

/* Queries are checked before the first is answered. */
static void refusals(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 1, 1);
    lapse_model *model = small_model(&config, 1), *other = small_model(&config, 2);
    lapse_session *one = NULL, *two = NULL, *empty = NULL;
    double probabilities[2 * TYPES] = {0};
    lapse_error error;
    assert_int_equal(lapse_session_new(model, &one, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(other, &two, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(model, &empty, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append(one, 5, "a", NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append(two, 5, "a", NULL), LAPSE_OK);
    lapse_session_query queries[] = {{one, 6}, {two, 6}};
    assert_int_equal(lapse_session_predict_many(queries, 2, NULL, probabilities, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "the session of query 1 is of another model than that of query 0");
    queries[1] = (lapse_session_query){empty, 6};
    assert_int_equal(lapse_session_predict_many(queries, 2, NULL, probabilities, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "query 1: the history is empty: append at least one event before the query");
    queries[1] = (lapse_session_query){one, 4};
    assert_int_equal(lapse_session_predict_many(queries, 2, NULL, probabilities, &error), LAPSE_ERROR_INPUT);
    assert_true(strncmp(error.message, "query 1: the query time", 23) == 0);
    for (int i = 0; i < 2 * TYPES; i++)
        assert_true(probabilities[i] == 0);
    lapse_session_free(one);
    lapse_session_free(two);
    lapse_session_free(empty);
    lapse_model_free(model);
    lapse_model_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_network), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
