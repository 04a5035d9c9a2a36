/* test_floors.c: the floors, majority and Markov chains: against numbers worked out by hand, against a second way of counting,
 * and through a file. */
#include "model/model.h"
#include "data/split.h"
#include "support/small_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { KINDS = 4 };

static lapse_model *fit(const lapse_dataset *dataset, const char *name, int order)
{
    lapse_train_options options;
    lapse_train_options_default(&options);
    options.model = name;
    options.order = order;
    options.threads = 1;
    lapse_model *model = NULL;
    lapse_error error = {0};
    if (lapse_train(dataset, &options, NULL, NULL, &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return model;
}

static void check_answer(const lapse_model *model, const char *history, const double *wanted)
{
    int32_t kinds[16];
    double answer[26], sum = 0;
    for (size_t i = 0; history[i]; i++)
        kinds[i] = history[i] - 'a';
    model->config.row->answer(model, kinds, (int64_t)strlen(history), answer);
    for (int64_t kind = 0; kind < model->kinds.count; kind++) {
        sum += answer[kind];
        if (fabs(answer[kind] - wanted[kind]) > 1e-12)
            fail_msg("after '%s', kind %d: %.15g, should be %.15g", history, (int)kind, answer[kind], wanted[kind]);
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

/* How often `kind` (or anything, if -1) followed the k events before `until` in training. */
static double followed(const lapse_dataset *dataset, const uint8_t *split, const int32_t *until, int k, int kind)
{
    double count = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + (uint64_t)(k > 1 ? k : 1); event < dataset->start[s + 1]; event++)
            if (split[event] == LP_SPLIT_TRAIN && (kind < 0 || dataset->kind[event] == kind) &&
                memcmp(dataset->kind + event - k, until - k, (size_t)k * sizeof *until) == 0)
                count++;
    return count;
}

/* The blending formula at the top of model_markov.c, as it stands there. */
static double blended(const lapse_dataset *dataset, const uint8_t *split, const int32_t *until, int k, int kind,
                      double strength)
{
    if (k == 0)
        return (followed(dataset, split, until, 0, kind) + 1) / (followed(dataset, split, until, 0, -1) + KINDS);
    double below = blended(dataset, split, until, k - 1, kind, strength);
    return (followed(dataset, split, until, k, kind) + strength * below) /
           (followed(dataset, split, until, k, -1) + strength);
}

static double validation_loss(const lapse_dataset *dataset, const uint8_t *split, int order, double strength)
{
    double loss = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++)
        for (uint64_t event = dataset->start[s] + 1; event < dataset->start[s + 1]; event++) {
            int past = (int)(event - dataset->start[s]);
            if (split[event] == LP_SPLIT_VALID)
                loss -= log(blended(dataset, split, dataset->kind + event, past < order ? past : order,
                                    dataset->kind[event], strength));
        }
    return loss;
}

static void markov_counted_again(void **state)
{
    (void)state;
    static const double strengths[] = {1, 2, 5, 10, 20, 50, 100};
    for (int seed = 0; seed < small_effort(8, 2); seed++) {
        lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 500);
        lapse_dataset *dataset = small_dataset_random(&random, 12, 20, KINDS, 10, seed % 2);
        uint8_t *split = NULL;
        assert_int_equal(lp_split_make(dataset, lp_split_rule_default(dataset, "classify"), 1, &split, NULL), LAPSE_OK);
        for (int order = 1; order <= 3; order++) {
            lapse_model *model = fit(dataset, "markov", order);
            double chosen = *(const double *)lp_model_tensor_find(model, "markov.strength")->data, answer[KINDS];
            double least = validation_loss(dataset, split, order, chosen);
            for (int i = 0; i < 7; i++)
                if (validation_loss(dataset, split, order, strengths[i]) < least - 1e-9)
                    fail_msg("seed %d, order %d: strength %g is better than %g", seed, order, strengths[i], chosen);
            for (uint64_t past = 1; past <= dataset->start[1]; past++) {
                model->config.row->answer(model, dataset->kind, (int64_t)past, answer);
                for (int kind = 0; kind < KINDS; kind++) {
                    int k = past < (uint64_t)order ? (int)past : order;
                    double wanted = blended(dataset, split, dataset->kind + past, k, kind, chosen);
                    if (fabs(answer[kind] - wanted) > 1e-12)
                        fail_msg("seed %d, order %d, place %d: %.15g, should be %.15g", seed, order, (int)past,
                                 answer[kind], wanted);
                }
            }
            lapse_model_free(model);
        }
        lp_free(split);
        lapse_dataset_close(dataset);
    }
}

/* ------------------------------------------------------------------------------------------ through a file --- */

static void files_give_the_same_answers(void **state)
{
    (void)state;
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 501);
    lapse_dataset *dataset = small_dataset_random(&random, 12, 20, KINDS, 10, false);
    for (int order = 0; order <= 3; order++) { /* 0: the majority */
        lapse_model *model = fit(dataset, order ? "markov" : "majority", order), *loaded = NULL;
        lapse_error error = {0};
        assert_int_equal(lapse_model_save(model, small_path("m"), &error), LAPSE_OK);
        if (lapse_model_load(small_path("m"), &loaded, &error) != LAPSE_OK)
            fail_msg("%s", error.message);
        for (int64_t past = 0; past < (int64_t)dataset->start[1]; past++) {
            double one[KINDS], two[KINDS];
            model->config.row->answer(model, dataset->kind, past, one);
            loaded->config.row->answer(loaded, dataset->kind, past, two);
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

/* Scores of floors do not depend on the threads; Markov knows more than the majority. */
static void evaluated(void **state)
{
    (void)state;
    lp_random random = lp_random_start(2, LP_PURPOSE_TEST, 502);
    lapse_dataset *dataset = small_dataset_random(&random, 60, 40, KINDS, 10, false);
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
        cmocka_unit_test(files_give_the_same_answers),
        cmocka_unit_test(evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
