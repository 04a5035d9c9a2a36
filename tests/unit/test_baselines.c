/* test_baselines.c: the baselines, from the majority to what is popular lately: against numbers worked out by hand, against a second way of counting,
 * and through a file. */
#include "model/model.h"
#include "data/dataset/split.h"
#include "support/small_data.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { TYPES = 4 };

static lapse_model *fit(const lapse_dataset *dataset, const char *name, int order)
{
    lapse_train_options options;
    lp_train_options_default(&options);
    small_set(&options, "model", name);
    small_set_number(&options, "order", order ? order : 1);
    options.run.threads = 1;
    lapse_model *model = NULL;
    lapse_error error = {0};
    if (lapse_train(dataset, &options, NULL, NULL, &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return model;
}

static void check_answer(const lapse_model *model, const char *history, const double *wanted)
{
    int32_t types[16];
    double answer[26], sum = 0;
    for (size_t i = 0; history[i]; i++)
        types[i] = history[i] - 'a';
    model->config.row->predict(model, &(lp_query){types, (int64_t)strlen(history), 0}, answer);
    for (int64_t type = 0; type < model->types.count; type++) {
        sum += answer[type];
        if (fabs(answer[type] - wanted[type]) > 1e-12)
            fail_msg("after '%s', event type %d: %.15g, should be %.15g", history, (int)type, answer[type],
                     wanted[type]);
    }
    assert_true(fabs(sum - 1) < 1e-12);
}

/* Five events are learned: b a c, b b; a sequence's first is not, nor what another split holds. */
static const char events[] = "abac abb cab cc", parts[] = "tttt ttt tvv ee";

static void majority_by_hand(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled(events, parts);
    lapse_model *model = fit(dataset, "majority", 0);
    static const double share[] = {2.0 / 8, 4.0 / 8, 2.0 / 8};
    check_answer(model, "a", share);
    check_answer(model, "cba", share);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static void markov_by_hand(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled(events, parts);
    lapse_model *model = fit(dataset, "markov", 1);
    /* a is followed by b twice and c once, b by a and b once each, c by nothing. The validation split has c a b: only
     * b after a depends on the strength, and is most likely with the smallest. */
    assert_true(*(const double *)lp_model_tensor_find(model, "markov.strength")->data == 1);
    check_answer(model, "a", (double[]){0.25 / 4, 2.5 / 4, 1.25 / 4});
    check_answer(model, "ca", (double[]){0.25 / 4, 2.5 / 4, 1.25 / 4});
    check_answer(model, "b", (double[]){1.25 / 3, 1.5 / 3, 0.25 / 3});
    check_answer(model, "c", (double[]){0.25, 0.5, 0.25});
    check_answer(model, "", (double[]){0.25, 0.5, 0.25});
    lapse_model_free(model);
    model = fit(dataset, "markov", 2);
    /* a b is followed by a once and by b once; c a by nothing. */
    check_answer(model, "ab", (double[]){(1 + 1.25 / 3) / 3, (1 + 1.5 / 3) / 3, 0.25 / 3 / 3});
    check_answer(model, "ca", (double[]){0.25 / 4, 2.5 / 4, 1.25 / 4});
    check_answer(model, "b", (double[]){1.25 / 3, 1.5 / 3, 0.25 / 3});
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------- counted a second time ------------- */

/* How often `event type` (or anything, if -1) followed the k events before `until` in training. */
static double followed(const lapse_dataset *dataset, const uint8_t *split, const int32_t *query_time, int k, int type)
{
    double count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + (uint64_t)(k > 1 ? k : 1); event < dataset->start[s + 1]; event++)
            if (split[event] == LP_SPLIT_TRAIN && (type < 0 || dataset->type[event] == type) &&
                memcmp(dataset->type + event - k, query_time - k, (size_t)k * sizeof *query_time) == 0)
                count++;
    return count;
}

/* The blending formula at the top of model_markov.c, as it stands there. */
static double blended(const lapse_dataset *dataset, const uint8_t *split, const int32_t *query_time, int k, int type,
                      double strength)
{
    if (k == 0)
        return (followed(dataset, split, query_time, 0, type) + 1) /
               (followed(dataset, split, query_time, 0, -1) + TYPES);
    double below = blended(dataset, split, query_time, k - 1, type, strength);
    return (followed(dataset, split, query_time, k, type) + strength * below) /
           (followed(dataset, split, query_time, k, -1) + strength);
}

static double validation_loss(const lapse_dataset *dataset, const uint8_t *split, int order, double strength)
{
    double loss = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + 1; event < dataset->start[s + 1]; event++) {
            int past = (int)(event - dataset->start[s]);
            if (split[event] == LP_SPLIT_VALID)
                loss -= log(blended(dataset, split, dataset->type + event, past < order ? past : order,
                                    dataset->type[event], strength));
        }
    return loss;
}

static void markov_counted_again(void **state)
{
    (void)state;
    static const double strengths[] = {1, 2, 5, 10, 20, 50, 100};
    for (int seed = 0; seed < small_effort(8, 2); seed++) {
        lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 500);
        lapse_dataset *dataset = small_dataset_random(&random, 12, 20, TYPES, 10, seed % 2);
        uint8_t *split = NULL;
        assert_int_equal(lp_split_make(dataset, lp_split_rule_default(dataset, "classify"), 1, &split, NULL), LAPSE_OK);
        for (int order = 1; order <= 3; order++) {
            lapse_model *model = fit(dataset, "markov", order);
            double chosen = *(const double *)lp_model_tensor_find(model, "markov.strength")->data, answer[TYPES];
            double least = validation_loss(dataset, split, order, chosen);
            for (int i = 0; i < 7; i++)
                if (validation_loss(dataset, split, order, strengths[i]) < least - 1e-9)
                    fail_msg("seed %d, order %d: strength %g is better than %g", seed, order, strengths[i], chosen);
            for (uint64_t past = 1; past <= dataset->start[1]; past++) {
                model->config.row->predict(model, &(lp_query){dataset->type, (int64_t)past, 0}, answer);
                for (int type = 0; type < TYPES; type++) {
                    int k = past < (uint64_t)order ? (int)past : order;
                    double wanted = blended(dataset, split, dataset->type + past, k, type, chosen);
                    if (fabs(answer[type] - wanted) > 1e-12)
                        fail_msg("seed %d, order %d, place %d: %.15g, should be %.15g", seed, order, (int)past,
                                 answer[type], wanted);
                }
            }
            lapse_model_free(model);
        }
        lp_free(split);
        lapse_dataset_close(dataset);
    }
}

/* -------------------------------------------------------------------------------------- popular and recent ---- */

/* Of the eight events that train, a is 3, b 3, c 2: first ones count too. */
static void popularity_by_hand(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled(events, parts);
    lapse_model *model = fit(dataset, "popularity", 0);
    static const double share[] = {4.0 / 11, 4.0 / 11, 3.0 / 11};
    check_answer(model, "a", share);
    check_answer(model, "cba", share);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static void item_markov_is_of_order_one(void **state)
{
    (void)state;
    lp_random random = lp_random_start(3, LP_PURPOSE_TEST, 503);
    lapse_dataset *dataset = small_dataset_random(&random, 12, 20, TYPES, 10, false);
    lapse_model *chain = fit(dataset, "markov", 1), *item = fit(dataset, "item-markov", 3);
    assert_string_equal(lp_model_property_find(item, "model"), "item-markov");
    for (int64_t past = 0; past < (int64_t)dataset->start[1]; past++) {
        double one[TYPES], two[TYPES];
        lp_query question = {dataset->type, past, 0};
        chain->config.row->predict(chain, &question, one);
        item->config.row->predict(item, &question, two);
        assert_memory_equal(one, two, sizeof one);
    }
    lapse_model_free(chain);
    lapse_model_free(item);
    lapse_dataset_close(dataset);
}

/* The formula at the top of model_recency.c, as it stands there. */
static double lately(const lapse_dataset *dataset, const uint8_t *split, double half_life, double t, int type)
{
    double mine = 0, all = 0, count = 0, total = 0;
    for (int64_t e = 0; e < dataset->event_count; e++) {
        if (split[e] != LP_SPLIT_TRAIN)
            continue;
        double weight = dataset->time[e] < t ? exp2((dataset->time[e] - t) / half_life) : 0;
        all += weight;
        total++;
        mine += dataset->type[e] == type ? weight : 0;
        count += dataset->type[e] == type;
    }
    return (mine + (count + 1) / (total + TYPES)) / (all + 1);
}

static double recency_loss(const lapse_dataset *dataset, const uint8_t *split, double half_life)
{
    double loss = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + 1; event < dataset->start[s + 1]; event++)
            if (split[event] == LP_SPLIT_VALID)
                loss -= log(lately(dataset, split, half_life, dataset->time[event], dataset->type[event]));
    return loss;
}

static void recency_summed_again(void **state)
{
    (void)state;
    for (int seed = 0; seed < small_effort(6, 2); seed++) {
        lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 504);
        lapse_dataset *dataset = small_dataset_random(&random, 12, 20, TYPES, 10, seed % 2);
        uint8_t *split = NULL;
        assert_int_equal(lp_split_make(dataset, lp_split_rule_find(seed % 2 ? "column" : "sequence"), 1, &split, NULL),
                         LAPSE_OK);
        lapse_model *model = fit(dataset, "recency", 0);
        double chosen = *(const double *)lp_model_tensor_find(model, "recency.half_life")->data;
        double first = INFINITY, last = -INFINITY;
        for (int64_t e = 0; e < dataset->event_count; e++)
            if (split[e] == LP_SPLIT_TRAIN) {
                first = fmin(first, dataset->time[e]);
                last = fmax(last, dataset->time[e]);
            }
        double least = recency_loss(dataset, split, chosen);
        assert_true(chosen <= 2 * (last - first));
        for (int i = 0; i < 24; i++)
            if (recency_loss(dataset, split, ldexp(2 * (last - first), -i)) < least - 1e-9)
                fail_msg("seed %d: half-life %g is better than %g", seed, ldexp(2 * (last - first), -i), chosen);
        for (int i = 0; i < 30; i++) { /* before, among and after the events; at one of them that does not count yet */
            double answer[TYPES], sum = 0, t = first + (last - first) * (i - 5) / 20;
            if (i == 29)
                t = dataset->time[dataset->event_count / 2];
            model->config.row->predict(model, &(lp_query){NULL, 0, t}, answer);
            for (int type = 0; type < TYPES; type++) {
                double wanted = lately(dataset, split, chosen, t, type);
                sum += answer[type];
                if (fabs(answer[type] - wanted) > 1e-12)
                    fail_msg("seed %d, time %g: %.15g, should be %.15g", seed, t, answer[type], wanted);
            }
            assert_true(fabs(sum - 1) < 1e-12);
        }
        lapse_model_free(model);
        lp_free(split);
        lapse_dataset_close(dataset);
    }
}

/* A session asks about its time; where that is not known, about its last event's. */
static void recency_in_sessions(void **state)
{
    (void)state;
    lp_random random = lp_random_start(4, LP_PURPOSE_TEST, 505);
    lapse_dataset *dataset = small_dataset_random(&random, 12, 20, TYPES, 10, false);
    for (int known = 0; known < 2; known++) {
        lapse_train_options options;
        lp_train_options_default(&options);
        small_set(&options, "model", "recency");
        small_set(&options, "target-time", known ? "known" : "unknown");
        lapse_model *model = NULL;
        assert_int_equal(lapse_train(dataset, &options, NULL, NULL, &model, NULL), LAPSE_OK);
        lapse_session *session = NULL;
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        double got[TYPES], wanted[TYPES], other[TYPES], first = dataset->time[0], last = dataset->time[0];
        for (int64_t e = 0; e < dataset->event_count; e++) {
            first = fmin(first, dataset->time[e]);
            last = fmax(last, dataset->time[e]);
        }
        double then = first + (last - first) / 2, at = last;
        assert_int_equal(lapse_session_append(session, then, "a", NULL), LAPSE_OK);
        assert_int_equal(lapse_session_predict(session, at, got, NULL), LAPSE_OK);
        model->config.row->predict(model, &(lp_query){NULL, 0, known ? at : then}, wanted);
        model->config.row->predict(model, &(lp_query){NULL, 0, known ? then : at}, other);
        assert_memory_equal(got, wanted, sizeof got);
        assert_memory_not_equal(got, other, sizeof got);
        lapse_session_free(session);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* --------------------------------------------------------------------------------------- edited tensors ------- */

static void refuse(const lapse_dataset *dataset, const char *baseline, int tensor, int64_t element, double value,
                   const char *message)
{
    lapse_model *model = fit(dataset, baseline, 1);
    lapse_error error = {0};
    lp_tensor *edited = &model->tensors[tensor];
    if (element < 0)
        edited->cols--;
    else if (edited->type == LP_TENSOR_U64)
        ((uint64_t *)edited->data)[element] = (uint64_t)value;
    else
        ((double *)edited->data)[element] = value;
    assert_int_equal(model->config.row->check(model, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message, message);
    lapse_model_free(model);
}

static void made_up_tensors(void **state)
{
    (void)state;
    lapse_dataset *data = small_dataset_spelled(events, parts);
    refuse(data, "popularity", 0, -1, 0, "tensor 'popularity.count' is missing or has the wrong shape");
    refuse(data, "popularity", 0, 1, 1e18, "tensor 'popularity.count' counts more than there can be");
    refuse(data, "recency", 0, -1, 0, "tensor 'recency.start' is missing or has the wrong shape");
    refuse(data, "recency", 1, -1, 0, "tensor 'recency.sum' is missing or has the wrong shape");
    refuse(data, "recency", 0, 0, 1, "tensor 'recency.start' does not divide the times");
    refuse(data, "recency", 0, 1, 1e18, "tensor 'recency.start' does not divide the times");
    refuse(data, "recency", 0, 3, 7, "tensor 'recency.start' does not divide the times");
    refuse(data, "recency", 1, 0, 1e9, "tensor 'recency.time' is not in order");
    refuse(data, "recency", 1, 0, NAN, "tensor 'recency.time' is not in order");
    refuse(data, "recency", 2, 1, 0.5, "tensor 'recency.sum' holds a value that is not the sum of its times");
    refuse(data, "recency", 2, 1, 2.5, "tensor 'recency.sum' holds a value that is not the sum of its times");
    refuse(data, "recency", 3, 0, 0, "tensor 'recency.half_life' is not a positive number");
    refuse(data, "recency", 3, 0, INFINITY, "tensor 'recency.half_life' is not a positive number");
    lapse_dataset_close(data);
}

/* ------------------------------------------------------------------------------------------ through a file --- */

static void files_give_the_same_answers(void **state)
{
    (void)state;
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 501);
    lapse_dataset *dataset = small_dataset_random(&random, 12, 20, TYPES, 10, false);
    static const char *const baselines[] = {"majority",    "markov",     "markov", "markov",
                                            "item-markov", "popularity", "recency"};
    for (int i = 0; i < 7; i++) {
        lapse_model *model = fit(dataset, baselines[i], i < 4 ? i : 3), *loaded = NULL;
        lapse_error error = {0};
        assert_int_equal(lapse_model_save(model, small_path("m"), &error), LAPSE_OK);
        if (lapse_model_load(small_path("m"), &loaded, &error) != LAPSE_OK)
            fail_msg("%s", error.message);
        for (int64_t past = 0; past < (int64_t)dataset->start[1]; past++) {
            double one[TYPES], two[TYPES];
            model->config.row->predict(model, &(lp_query){dataset->type, past, dataset->time[past]}, one);
            loaded->config.row->predict(loaded, &(lp_query){dataset->type, past, dataset->time[past]}, two);
            assert_memory_equal(one, two, sizeof one);
        }
        assert_int_equal(lapse_model_save(loaded, small_path("again"), &error), LAPSE_OK);
        small_files_same(small_path("m"), small_path("again"));
        lapse_model_free(model);
        lapse_model_free(loaded);
    }
    small_paths_remove();
    lapse_dataset_close(dataset);
}

/* Scores of baselines do not depend on the threads; Markov knows more than the majority. */
static void evaluated(void **state)
{
    (void)state;
    lp_random random = lp_random_start(2, LP_PURPOSE_TEST, 502);
    lapse_dataset *dataset = small_dataset_random(&random, 60, 40, TYPES, 10, false);
    lapse_evaluate_options options;
    lapse_evaluate_options_default(&options);
    options.split = "all";
    options.bootstrap = 10;
    double accuracy[2];
    for (int i = 0; i < 2; i++) {
        lapse_model *model = fit(dataset, i ? "markov" : "majority", 2);
        lapse_scores one, three;
        options.threads = 1;
        assert_int_equal(lapse_evaluate(model, dataset, &options, &one, NULL), LAPSE_OK);
        options.threads = 3;
        assert_int_equal(lapse_evaluate(model, dataset, &options, &three, NULL), LAPSE_OK);
        assert_true(one.log_loss == three.log_loss && one.accuracy == three.accuracy);
        assert_int_equal(one.cases, dataset->event_count - dataset->sequence_count);
        assert_string_equal(one.split, "all");
        accuracy[i] = one.accuracy;
        lapse_scores_clear(&one);
        lapse_scores_clear(&three);
        lapse_model_free(model);
    }
    assert_true(accuracy[1] > accuracy[0] + 0.1);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(majority_by_hand),
        cmocka_unit_test(markov_by_hand),
        cmocka_unit_test(markov_counted_again),
        cmocka_unit_test(popularity_by_hand),
        cmocka_unit_test(item_markov_is_of_order_one),
        cmocka_unit_test(recency_summed_again),
        cmocka_unit_test(recency_in_sessions),
        cmocka_unit_test(made_up_tensors),
        cmocka_unit_test(files_give_the_same_answers),
        cmocka_unit_test(evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
