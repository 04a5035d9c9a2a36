/* test_predict.c: recommendations of one history and of many: the order that probabilities have, what was seen left out,
 * the same answers on any number of threads, and every refusal. */
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

enum { TYPES = 5 };

static const char *const names[TYPES] = {"a", "b", "c", "d", "e"};

/* A recommender, or for odd numbers a classifier; some with several draws. */
static lapse_model *make_model(int variant)
{
    const lp_encoding *encoding = lp_encoding_find(variant % 4 < 2 ? "mercer" : "bochner-normal");
    lp_model_config config = small_config(encoding, 8, 1 + variant % 2, 2);
    config.task = variant % 2 ? LP_TASK_CLASSIFY : LP_TASK_RECOMMEND;
    config.output = variant % 3 ? LP_OUTPUT_SHARED : LP_OUTPUT_SEPARATE;
    small_config_number(&config, "frequency-samples", variant % 4 < 2 ? 1 : 3);
    config.context = 6;
    return small_model(&config, 3 + (uint64_t)variant);
}

static lapse_session *open_session(const lapse_model *model)
{
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    return session;
}

static void append(lapse_session *session, double time, const char *name)
{
    assert_int_equal(lapse_session_append(session, time, name, NULL), LAPSE_OK);
}

static void order_of_probabilities(void **state)
{
    (void)state;
    for (int variant = 0; variant < 12; variant++) {
        lapse_model *model = make_model(variant);
        lapse_session *session = open_session(model);
        for (int i = 0; i < 15; i++) {
            double probabilities[TYPES], scale = NAN;
            lapse_recommendation best[TYPES + 3];
            int64_t count = -1;
            append(session, i, names[i * i % 3]);
            assert_int_equal(lapse_session_predict(session, i + 2, probabilities, NULL), LAPSE_OK);
            assert_int_equal(lapse_session_recommend(session, i + 2, TYPES + 3, false, best, &count, NULL), LAPSE_OK);
            assert_int_equal(count, TYPES);
            for (int k = 0; k < TYPES; k++) {
                assert_true(fabs(best[k].probability - probabilities[best[k].item]) < 1e-6);
                assert_true(k == 0 || best[k].score <= best[k - 1].score);
                /* Scores are logs of probabilities, up to one constant. */
                scale = k == 0 ? best[0].score - log(best[0].probability) : scale;
                assert_true(fabs(best[k].score - log(best[k].probability) - scale) < 1e-4);
            }
            lapse_recommendation two[2];
            assert_int_equal(lapse_session_recommend(session, i + 2, 2, false, two, &count, NULL), LAPSE_OK);
            assert_int_equal(count, 2);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(two[k].item, best[k].item);
                assert_true(two[k].score == best[k].score && two[k].probability == best[k].probability);
            }
        }
        lapse_session_free(session);
        lapse_model_free(model);
    }
}

/* What was seen stays seen when the window has moved on, until the history is forgotten. */
static void unseen_items(void **state)
{
    (void)state;
    lapse_model *model = make_model(0);
    lapse_session *session = open_session(model);
    lapse_recommendation best[TYPES];
    int64_t count;
    append(session, 0, "d");
    for (int i = 0; i < 40; i++) {
        append(session, i, names[i % 2]);
        assert_int_equal(lapse_session_recommend(session, i, TYPES, true, best, &count, NULL), LAPSE_OK);
        assert_int_equal(count, i == 0 ? 3 : 2);
        for (int k = 0; k < count; k++)
            assert_true(best[k].item == 2 || best[k].item == 4 || (i == 0 && best[k].item == 1));
    }
    for (int round = 0; round < 2; round++) { /* first after a long history, then after a short one */
        lapse_session_clear(session);
        append(session, 0, "c");
        assert_int_equal(lapse_session_recommend(session, 1, TYPES, true, best, &count, NULL), LAPSE_OK);
        assert_int_equal(count, 4);
        for (int k = 0; k < count; k++)
            assert_int_not_equal(best[k].item, 2);
    }
    for (int i = 0; i < TYPES; i++)
        append(session, 2, names[i]);
    assert_int_equal(lapse_session_recommend(session, 3, TYPES, true, best, &count, NULL), LAPSE_OK);
    assert_int_equal(count, 0);
    lapse_session_free(session);
    lapse_model_free(model);
}

static void check_error(lapse_status status, lapse_status wanted, const lapse_error *error, const char *message)
{
    assert_int_equal(status, wanted);
    assert_int_equal(error->status, wanted);
    assert_string_equal(error->message, message);
}

static void refusals(void **state)
{
    (void)state;
    lapse_model *model = make_model(0);
    lapse_session *session = open_session(model);
    lapse_recommendation best[TYPES];
    lapse_error error;
    int64_t count = 77;
    check_error(lapse_session_recommend(session, 1, 3, false, best, &count, &error), LAPSE_ERROR_USAGE, &error,
                "the history is empty: append at least one event before the query");
    check_error(lapse_session_append(session, 1, "zebra", &error), LAPSE_ERROR_UNKNOWN, &error,
                "the model does not know the item 'zebra'");
    append(session, 5, "a");
    check_error(lapse_session_recommend(session, 6, 0, false, best, &count, &error), LAPSE_ERROR_USAGE, &error,
                "top is 0; it must be at least 1");
    check_error(lapse_session_recommend(session, 6, -3, false, best, &count, &error), LAPSE_ERROR_USAGE, &error,
                "top is -3; it must be at least 1");
    check_error(lapse_session_recommend(session, 4, 3, false, best, &count, &error), LAPSE_ERROR_INPUT, &error,
                "the query time, 4.000 s, lies before the last event, at 5.000 s");
    check_error(lapse_session_recommend(session, NAN, 3, false, best, &count, &error), LAPSE_ERROR_INPUT, &error,
                "the query time is not a number");
    assert_int_equal(count, 77);
    lapse_session_free(session);
    lapse_model_free(model);
}

/* ------------------------------------------------------------------------------------------ many histories ---- */

enum { SEQUENCES = 37, TOP = 3, QUESTIONS = 2 * SEQUENCES };

static void ask_all(lapse_dataset *dataset, lapse_query *questions)
{
    for (int i = 0; i < SEQUENCES; i++)
        for (int k = 0; k < 2; k++) {
            double last = dataset->time[dataset->start[i + 1] - 1];
            questions[2 * i + k] = (lapse_query){i, last + 3 * k};
        }
}

/* Of each history half of the events, then all; of every other one all, then half. */
static void take_parts(const lapse_dataset *dataset, int64_t *events)
{
    for (int i = 0; i < SEQUENCES; i++) {
        int64_t count = (int64_t)(dataset->start[i + 1] - dataset->start[i]);
        events[2 * i + i % 2] = count / 2;
        events[2 * i + 1 - i % 2] = count;
    }
}

static void as_one_by_one(void **state)
{
    (void)state;
    lp_random random = lp_random_start(5, LP_PURPOSE_TEST, 740);
    lapse_dataset *dataset = small_dataset_random(&random, SEQUENCES, 20, TYPES, 5, false);
    lapse_query questions[QUESTIONS];
    int64_t events[QUESTIONS];
    ask_all(dataset, questions);
    take_parts(dataset, events);
    for (int variant = 0; variant < 8; variant++) {
        lapse_model *model = make_model(variant);
        lapse_session *session = open_session(model);
        lapse_predict_options options;
        lapse_predict_options_default(&options);
        options.top = TOP;
        options.unseen = variant / 2 % 2;
        const int64_t *parts = variant >= 4 ? events : NULL;
        lapse_recommendation alone[QUESTIONS * TOP];
        for (int threads = 1; threads <= 3; threads++) {
            lapse_recommendation best[QUESTIONS * TOP], one[TOP];
            int64_t counts[QUESTIONS], count;
            options.threads = threads;
            assert_int_equal(
                lapse_predict_prefixes(model, dataset, questions, parts, QUESTIONS, &options, best, counts, NULL),
                LAPSE_OK);
            if (threads == 1)
                memcpy(alone, best, sizeof best);
            for (int q = 0; q < QUESTIONS; q++)
                assert_memory_equal(best + q * TOP, alone + q * TOP,
                                    (size_t)(counts[q] < 0 ? 0 : counts[q]) * sizeof *best);
            for (int q = 0; q < QUESTIONS; q++) {
                const uint64_t *start = dataset->start + questions[q].sequence;
                uint64_t end = parts ? start[0] + (uint64_t)events[q] : start[1];
                lapse_session_clear(session);
                for (uint64_t i = start[0]; i < end; i++)
                    append(session, dataset->time[i], lapse_dataset_event_type_name(dataset, dataset->type[i]));
                if (end == start[0]) {
                    assert_int_equal(counts[q], -1);
                    continue;
                }
                assert_int_equal(
                    lapse_session_recommend(session, questions[q].time, TOP, options.unseen, one, &count, NULL),
                    LAPSE_OK);
                assert_int_equal(counts[q], count);
                for (int k = 0; k < count; k++) {
                    assert_int_equal(best[q * TOP + k].item, one[k].item);
                    assert_true(fabs(best[q * TOP + k].score - one[k].score) < 1e-5);
                    assert_true(fabs(best[q * TOP + k].probability - one[k].probability) < 1e-6);
                }
            }
        }
        lapse_session_free(session);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* A catalogue of several tiles, the last one odd. */
static void large_catalogue(void **state)
{
    (void)state;
    enum { ITEMS = 1301 };
    static uint64_t offset[ITEMS + 1];
    static char bytes[ITEMS * 8];
    for (int i = 0; i < ITEMS; i++) {
        char *name = bytes + offset[i];
        offset[i + 1] = offset[i] + (uint64_t)(i < TYPES ? sprintf(name, "%s", names[i]) : sprintf(name, "i%d", i)) + 1;
    }
    lp_model_config config = small_config(lp_encoding_find("bochner"), 20, 2, 2);
    config.task = LP_TASK_RECOMMEND;
    config.event_types = ITEMS;
    lapse_model *model = NULL;
    const lp_names catalogue = {.count = ITEMS, .offset = offset, .bytes = bytes};
    assert_int_equal(lp_model_new(&config, &catalogue, &model, NULL), LAPSE_OK);
    lp_random random = lp_random_start(8, LP_PURPOSE_TEST, 741);
    for (size_t i = 0; i < model->network.graph.parameter_size; i++)
        model->parameters[i] = (float)(0.3 * lp_random_normal(&random));
    lapse_dataset *dataset = small_dataset_random(&random, SEQUENCES, 20, TYPES, 5, false);
    lapse_session *session = open_session(model);
    lapse_query questions[QUESTIONS];
    static lapse_recommendation best[QUESTIONS * 40], one[40];
    int64_t counts[QUESTIONS], count;
    lapse_predict_options options = {.top = 40, .unseen = true, .threads = 2};
    ask_all(dataset, questions);
    assert_int_equal(lapse_predict_all(model, dataset, questions, QUESTIONS, &options, best, counts, NULL), LAPSE_OK);
    for (int q = 0; q < QUESTIONS; q++) {
        int64_t sequence = questions[q].sequence;
        lapse_session_clear(session);
        for (uint64_t i = dataset->start[sequence]; i < dataset->start[sequence + 1]; i++)
            append(session, dataset->time[i], lapse_dataset_event_type_name(dataset, dataset->type[i]));
        assert_int_equal(lapse_session_recommend(session, questions[q].time, 40, true, one, &count, NULL), LAPSE_OK);
        assert_int_equal(count, 40);
        assert_int_equal(counts[q], 40);
        for (int k = 0; k < 40; k++) {
            assert_true(fabs(best[q * 40 + k].score - one[k].score) < 1e-4);
            assert_true(fabs(best[q * 40 + k].probability - one[k].probability) < 1e-5);
        }
    }
    lapse_session_free(session);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static void unknown_names(void **state)
{
    (void)state;
    /* Event types of the dataset are numbered as they come: f is its third. */
    lapse_dataset *dataset = small_dataset_spelled("abfa f", NULL), *known = small_dataset_spelled("aba", NULL);
    lapse_model *model = make_model(0);
    lapse_predict_options options;
    lapse_predict_options_default(&options);
    options.top = 2;
    lapse_query questions[] = {{0, 9}, {1, 9}}, same[] = {{0, 9}};
    lapse_recommendation best[4], wanted[2];
    int64_t counts[2] = {-1, -1}, count;
    lapse_error error;
    check_error(lapse_predict_all(model, dataset, questions, 2, &options, best, counts, &error), LAPSE_ERROR_UNKNOWN,
                &error, "the dataset has events 'f', which the model does not know; leave them out of the import");
    options.skip_unknown = true;
    assert_int_equal(lapse_predict_all(model, dataset, questions, 2, &options, best, counts, &error), LAPSE_OK);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], -1);
    assert_int_equal(lapse_predict_all(model, known, same, 1, &options, wanted, &count, &error), LAPSE_OK);
    /* The third event comes a second later where 'f' was before it. */
    assert_true(best[0].score != wanted[0].score);
    lapse_session *session = open_session(model);
    append(session, dataset->time[0], "a");
    append(session, dataset->time[1], "b");
    append(session, dataset->time[3], "a");
    assert_int_equal(lapse_session_recommend(session, 9, 2, false, wanted, &count, NULL), LAPSE_OK);
    assert_true(fabs(best[0].score - wanted[0].score) < 1e-5);
    assert_int_equal(best[0].item, wanted[0].item);
    assert_int_equal(best[1].item, wanted[1].item);
    lapse_session_free(session);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lapse_dataset_close(known);
}

static void many_refusals(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("ab cd", NULL);
    lapse_model *model = make_model(0);
    lapse_predict_options options;
    lapse_predict_options_default(&options);
    assert_int_equal(options.top, 10);
    lapse_recommendation best[20];
    int64_t counts[2];
    lapse_error error;
    lapse_query good[] = {{0, 5}, {1, 5}}, wrong[] = {{0, 5}, {2, 5}}, early[] = {{0, 5}, {1, 0.5}};
    check_error(lapse_predict_all(model, dataset, wrong, 2, &options, best, counts, &error), LAPSE_ERROR_USAGE, &error,
                "query 1 is about sequence 2; sequences are numbered 0 to 1");
    wrong[1].sequence = -1;
    check_error(lapse_predict_all(model, dataset, wrong, 2, &options, best, counts, &error), LAPSE_ERROR_USAGE, &error,
                "query 1 is about sequence -1; sequences are numbered 0 to 1");
    for (int threads = 1; threads <= 2; threads++) {
        options.threads = threads;
        check_error(lapse_predict_all(model, dataset, early, 2, &options, best, counts, &error), LAPSE_ERROR_INPUT,
                    &error, "the query time, 0.500 s, lies before the last event, at 1.000 s");
    }
    check_error(
        lapse_predict_prefixes(model, dataset, good, (const int64_t[]){2, 3}, 2, &options, best, counts, &error),
        LAPSE_ERROR_USAGE, &error, "query 1 is about 3 events of a sequence that has 2");
    options.target = "action";
    check_error(lapse_predict_all(model, dataset, good, 2, &options, best, counts, &error), LAPSE_ERROR_USAGE, &error,
                "the model does not predict 'action', but the event");
    options.target = NULL;
    options.top = 0;
    check_error(lapse_predict_all(model, dataset, good, 2, &options, best, counts, &error), LAPSE_ERROR_USAGE, &error,
                "top is 0; it must be at least 1");
    options.top = 10;
    options.threads = 1 << 30;
    check_error(lapse_predict_all(model, dataset, good, 2, &options, best, counts, &error), LAPSE_ERROR_USAGE, &error,
                "threads is 1073741824; it must be 1 to 4096, or 0 for all cores");
    options.threads = 2;
    assert_int_equal(lapse_predict_all(model, dataset, good, 0, &options, best, counts, &error), LAPSE_OK);
    for (int n = 1;; n++) {
        lp_memory_fail_at(n);
        lapse_status status = lapse_predict_all(model, dataset, good, 2, &options, best, counts, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK)
            break;
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_true(n < 1000);
    }
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_probabilities), cmocka_unit_test(unseen_items),    cmocka_unit_test(refusals),
        cmocka_unit_test(as_one_by_one),          cmocka_unit_test(large_catalogue), cmocka_unit_test(unknown_names),
        cmocka_unit_test(many_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
