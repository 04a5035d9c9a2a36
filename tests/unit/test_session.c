/* test_session.c: a live history gives the answers that evaluation scores, however long it has grown, and refuses what it
 * cannot use. */
#include "support/small_data.h"
#include "support/small_train.h"
#include "support/small_model.h"
#include "evaluate/evaluator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { TYPES = 5 };

static lapse_session *open_session(const lapse_model *model)
{
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    return session;
}

static void append(lapse_session *session, const lapse_dataset *dataset, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++) {
        const char *name = lapse_dataset_event_type_name(dataset, dataset->type[i]);
        assert_int_equal(lapse_session_append(session, dataset->time[i], name, NULL), LAPSE_OK);
    }
}

static void evaluation_says_the_same(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++)
        for (int e = 0; lp_encodings[e]; e++) {
            lp_model_config config = small_config(lp_encodings[e], 8, 2, 2);
            config.target_time = !(known);
            config.context = 7;
            lapse_model *model = small_model(&config, 5);
            lp_random random = lp_random_start(6, LP_PURPOSE_TEST, 700);
            lapse_dataset *dataset = small_dataset_random(&random, 8, 30, TYPES, 5, false);
            lp_evaluator evaluator;
            small_evaluate(&evaluator, model, dataset);
            lapse_session *session = open_session(model);
            const lp_case *answer = evaluator.predictions[LP_TARGET_EVENT].cases;
            for (int64_t w = 0; w < evaluator.windows.count; w++) {
                const lp_window *window = &evaluator.windows.windows[w];
                for (int place = window->from; place < window->count; place++, answer++) {
                    double probabilities[TYPES], sum = 0;
                    int64_t target = window->first + place + 1;
                    lapse_session_clear(session);
                    append(session, dataset, window->first, target);
                    assert_int_equal(lapse_session_predict(session, dataset->time[target], probabilities, NULL),
                                     LAPSE_OK);
                    for (int type = 0; type < TYPES; type++)
                        sum += probabilities[type];
                    assert_true(fabs(sum - 1) < 1e-12);
                    assert_int_equal(answer->sequence, window->sequence);
                    assert_int_equal(answer->target, dataset->type[target]);
                    if (fabs(-log(probabilities[answer->target]) - answer->loss) > 1e-5)
                        fail_msg("%s: %.9g, evaluation says %.9g", small_encoding(&config)->name,
                                 -log(probabilities[answer->target]), answer->loss);
                    for (int type = 0; type < TYPES; type++)
                        assert_true(probabilities[answer->predicted] >= probabilities[type] - 1e-6);
                }
            }
            assert_int_equal(answer - evaluator.predictions[LP_TARGET_EVENT].cases, evaluator.case_count);
            lapse_session_free(session);
            lp_evaluator_clear(&evaluator);
            lapse_dataset_close(dataset);
            lapse_model_free(model);
        }
}

/* A session sees the last `context` events, however many there were. */
static void long_histories(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++) {
        lp_model_config config = small_config(lp_encodings[e], 4, 1, 1);
        config.context = 6;
        lapse_model *model = small_model(&config, 9);
        lp_random random = lp_random_start(7, LP_PURPOSE_TEST, 701);
        lapse_dataset *dataset = small_dataset_random(&random, 1, 1000, TYPES, 5, false);
        int64_t count = dataset->event_count;
        assert_true(count > 40);
        lapse_session *live = open_session(model), *fresh = open_session(model);
        for (int64_t i = 0; i + 1 < count && i < 60; i++) {
            double one[TYPES], two[TYPES];
            append(live, dataset, i, i + 1);
            lapse_session_clear(fresh);
            append(fresh, dataset, i > 5 ? i - 5 : 0, i + 1);
            assert_int_equal(lapse_session_predict(live, dataset->time[i + 1], one, NULL), LAPSE_OK);
            assert_int_equal(lapse_session_predict(fresh, dataset->time[i + 1], two, NULL), LAPSE_OK);
            for (int type = 0; type < TYPES; type++)
                assert_true(fabs(one[type] - two[type]) < 1e-6);
        }
        lapse_session_free(live);
        lapse_session_free(fresh);
        lapse_dataset_close(dataset);
        lapse_model_free(model);
    }
}

/* Asking changes nothing, and a question can be asked again. */
static void asking_leaves_no_trace(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 2, 4);
    lapse_model *model = small_model(&config, 9);
    lapse_session *session = open_session(model);
    double one[TYPES], other[TYPES], again[TYPES];
    assert_int_equal(lapse_session_append(session, 10, "a", NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append(session, 10, "b", NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 10, one, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 1e9, other, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 10, again, NULL), LAPSE_OK);
    assert_memory_equal(one, again, sizeof one);
    assert_memory_not_equal(one, other, sizeof one);
    lapse_session_free(session);
    lapse_model_free(model);
}

/* A chain looks back further than a context of one. */
static void chains_look_back(void **state)
{
    (void)state;
    lp_random random = lp_random_start(8, LP_PURPOSE_TEST, 702);
    lapse_dataset *dataset = small_dataset_random(&random, 30, 40, TYPES, 5, false);
    for (int order = 1; order <= 3; order++) {
        lapse_train_options options;
        lp_train_options_default(&options);
        small_set(&options, "model", "markov");
        small_set_number(&options, "order", order);
        options.model.context = 1;
        options.run.threads = 1;
        lapse_model *model = NULL;
        assert_int_equal(lapse_train(dataset, &options, NULL, NULL, &model, NULL), LAPSE_OK);
        lapse_session *session = open_session(model);
        for (int64_t i = 0; i < (int64_t)dataset->start[1]; i++) {
            double live[TYPES], whole[TYPES];
            append(session, dataset, i, i + 1);
            assert_int_equal(lapse_session_predict(session, dataset->time[i], live, NULL), LAPSE_OK);
            model->config.row->predict(model, &(lp_query){dataset->type, i + 1, 0}, whole);
            assert_memory_equal(live, whole, sizeof live);
        }
        lapse_session_free(session);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

static void check_error(lapse_status status, lapse_status wanted, const lapse_error *error, const char *message)
{
    assert_int_equal(status, wanted);
    assert_int_equal(error->status, wanted);
    assert_string_equal(error->message, message);
}

static void errors(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("bochner"), 4, 1, 1);
    lapse_model *model = small_model(&config, 1);
    lapse_session *session = open_session(model);
    double before[TYPES], after[TYPES];
    lapse_error error;
    check_error(lapse_session_predict(session, 1, after, &error), LAPSE_ERROR_USAGE, &error,
                "the history is empty: append at least one event before the query");
    assert_int_equal(lapse_session_append(session, 5.5, "c", &error), LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 9, before, &error), LAPSE_OK);
    check_error(lapse_session_append(session, 6, "z", &error), LAPSE_ERROR_UNKNOWN, &error,
                "the model does not know the event 'z'");
    check_error(lapse_session_append(session, NAN, "a", &error), LAPSE_ERROR_INPUT, &error,
                "the time of the event 'a' is not a number");
    check_error(lapse_session_append(session, INFINITY, "a", &error), LAPSE_ERROR_INPUT, &error,
                "the time of the event 'a' is not a number");
    check_error(lapse_session_append(session, 5, "a", &error), LAPSE_ERROR_INPUT, &error,
                "the event 'a' at 5.000 s lies before the one appended last, at 5.500 s");
    check_error(lapse_session_predict(session, 5.25, after, &error), LAPSE_ERROR_INPUT, &error,
                "the query time, 5.250 s, lies before the last event, at 5.500 s");
    check_error(lapse_session_predict(session, NAN, after, &error), LAPSE_ERROR_INPUT, &error,
                "the query time is not a number");
    check_error(lapse_session_predict(session, INFINITY, after, &error), LAPSE_ERROR_INPUT, &error,
                "the query time is not a number");
    /* What was refused was not appended. */
    assert_int_equal(lapse_session_predict(session, 9, after, &error), LAPSE_OK);
    assert_memory_equal(before, after, sizeof before);
    lapse_session_clear(session);
    check_error(lapse_session_predict(session, 9, after, &error), LAPSE_ERROR_USAGE, &error,
                "the history is empty: append at least one event before the query");
    lapse_session_free(session);
    lapse_session_free(NULL);
    lapse_model_free(model);
}

/* Each allocation of a new session, its first event and its first query fails once; the next time all is well. */
static void out_of_memory(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 4, 2, 1);
    lapse_session *session = NULL;
    lapse_error error;
    int n = 1;
    for (;; n++) {
        double probabilities[TYPES], again[TYPES];
        lapse_model *model = small_model(&config, 1);
        session = NULL;
        lp_memory_fail_at(n);
        lapse_status status = lapse_session_new(model, &session, &error);
        for (int i = 0; status == LAPSE_OK && i < 3; i++)
            status = lapse_session_append(session, i, "a", &error);
        if (status == LAPSE_OK)
            status = lapse_session_predict(session, 4, probabilities, &error);
        lp_memory_fail_at(0);
        if (status != LAPSE_OK && status != LAPSE_ERROR_MEMORY)
            fail_msg("allocation %d: %s", n, error.message);
        while (session && lapse_session_count(session) < 3)
            assert_int_equal(lapse_session_append(session, (double)lapse_session_count(session), "a", NULL), LAPSE_OK);
        if (session)
            assert_int_equal(lapse_session_predict(session, 4, again, NULL), LAPSE_OK);
        if (status == LAPSE_OK)
            assert_memory_equal(probabilities, again, sizeof again);
        lapse_session_free(session);
        lapse_model_free(model);
        if (status == LAPSE_OK)
            break;
    }
    assert_true(n > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_says_the_same),
        cmocka_unit_test(long_histories),
        cmocka_unit_test(asking_leaves_no_trace),
        cmocka_unit_test(chains_look_back),
        cmocka_unit_test(errors),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
