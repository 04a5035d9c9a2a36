/* test_rank_scores.c: ranking metrics: by hand, with intervals and slices; lapse_rank_evaluate on baselines and
 * networks. */
#include "support/small_data.h"
#include "support/small_train.h"
#include "evaluate/evaluator.h"
#include "evaluate/rank_scores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void assert_near(double got, double wanted)
{
    if (!(fabs(got - wanted) < 1e-12))
        fail_msg("%.15g, should be %.15g", got, wanted);
}

static const int cutoffs[] = {1, 10};

static lapse_rank_options options_of(int bootstrap, bool slices)
{
    lapse_rank_options options;
    lapse_rank_options_default(&options);
    options.cutoffs = cutoffs;
    options.bootstrap = bootstrap;
    options.slices = slices;
    options.threads = 2;
    return options;
}

/* ------------------------------------------------------------------------------------------------ by hand ----- */

static void by_hand(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abca ab", NULL);
    lp_rank_case cases[] = {{0, 1, 0}, {0, 2, 0}, {0, 3, 0}, {1, 5, 1}};
    lp_rank_result results[] = {{{1, 2, 1, 0}, {3, 3, 101, 0}},
                                {{3, 3, 12, 0}, {3, 3, 101, 0}},
                                {{1, 1, 2, 0}, {2, 3, 100, 0}},
                                {{2, 2, 1, 0}, {3, 3, 101, 0}}};
    lp_ranking ranking = {
        .setup = {.dataset = dataset, .type = dataset->type, .items = 3, .negatives = 100, .seed = 9, .threads = 1},
        .cases = cases,
        .case_count = 4,
        .case_total = 5,
        .results = results};
    int64_t counts[] = {2, 0, 1};
    lapse_rank_options options = options_of(0, false);
    lapse_rank_scores scores;
    assert_int_equal(lp_rank_scores_make(&ranking, counts, &options, &scores, NULL), LAPSE_OK);
    assert_int_equal(scores.whole.cases, 4);
    assert_int_equal(scores.whole.sequences, 2);
    assert_int_equal(scores.case_total, 5);
    assert_int_equal(scores.items, 3);
    assert_int_equal(scores.negative_seed, 9);
    assert_int_equal(scores.slice_count, 0);
    assert_int_equal(scores.cutoffs[1], 10);
    const lapse_rank_score *unseen = &scores.whole.scores[0], *uniform = &scores.whole.scores[2];
    assert_string_equal(unseen->protocol, "full-unseen");
    assert_near(unseen->hit[0].mean, 0.5);
    assert_near(unseen->hit[1].mean, 1);
    assert_near(unseen->ndcg[0].mean, 0.5);
    assert_near(unseen->ndcg[1].mean, (1 + 0.5 + 1 + 1 / log2(3)) / 4);
    assert_near(unseen->mrr.mean, (1 + 1.0 / 3 + 1 + 0.5) / 4);
    assert_true(unseen->mrr.low == unseen->mrr.mean && unseen->mrr.high == unseen->mrr.mean);
    assert_near(unseen->candidates, 11.0 / 4);
    assert_string_equal(scores.whole.scores[1].protocol, "full");
    assert_near(scores.whole.scores[1].hit[0].mean, 0.25);
    assert_string_equal(uniform->protocol, "uniform");
    assert_near(uniform->hit[1].mean, 0.75);
    assert_near(uniform->candidates, 100.75);
    assert_int_equal(uniform->short_cases, 1);
    assert_string_equal(scores.whole.scores[3].protocol, "popularity");
    assert_true(scores.whole.scores[3].candidates == 0 && scores.whole.scores[3].mrr.mean == 0); /* not used */
    lapse_rank_scores_clear(&scores);
    assert_null(scores.means);
    lapse_rank_scores_clear(&scores);
    lapse_rank_scores_clear(NULL);
    lapse_dataset_close(dataset);
}

/* -------------------------------------------------------------------------------------------------- slices ---- */

static const lapse_rank_slice *slice_find(const lapse_rank_scores *scores, const char *by, const char *name)
{
    for (int i = 0; i < scores->slice_count; i++)
        if (strcmp(scores->slices[i].by, by) == 0 && strcmp(scores->slices[i].name, name) == 0)
            return &scores->slices[i];
    for (int i = 0; i < scores->slice_count; i++)
        print_message("%s: %s: %d\n", scores->slices[i].by, scores->slices[i].name, (int)scores->slices[i].cases);
    fail_msg("there is no slice '%s' by %s", name, by);
    return NULL;
}

static void slices(void **state)
{
    (void)state;
    enum { LENGTH = 12 };
    static const int length[] = {LENGTH};
    static const double time[LENGTH] = {0,     0,     59,     119,     119 + 3600, 4000,
                                        90400, 90401, 700000, 1400000, 9000000,    90000000};
    static const int32_t type[LENGTH] = {0, 1, 2, 3, 4, 5, 0, 0, 1, 2, 3, 4};
    lapse_dataset *dataset = small_dataset(1, length, time, type, 6, NULL);
    lp_rank_case cases[LENGTH - 1];
    lp_rank_result results[LENGTH - 1];
    for (int i = 0; i < LENGTH - 1; i++) {
        cases[i] = (lp_rank_case){0, i + 1, 0};
        results[i] = (lp_rank_result){{i + 1, i + 1, i + 1, i + 1}, {50, 50, 101, 101}};
    }
    lp_ranking ranking = {
        .setup = {.dataset = dataset, .type = dataset->type, .items = 6, .negatives = 100, .threads = 1},
        .cases = cases,
        .case_count = LENGTH - 1,
        .results = results};
    /* A quarter of the 40 training events is 10: items 1 and 2 reach it, 3 and 4 reach three quarters. */
    int64_t counts[] = {0, 5, 5, 10, 10, 10};
    lapse_rank_options options = options_of(20, true);
    lapse_rank_scores scores;
    assert_int_equal(lp_rank_scores_make(&ranking, counts, &options, &scores, NULL), LAPSE_OK);
    assert_int_equal(slice_find(&scores, "history", "1 to 4 events")->cases, 4);
    assert_int_equal(slice_find(&scores, "history", "5 to 9 events")->cases, 5);
    assert_int_equal(slice_find(&scores, "history", "10 to 19 events")->cases, 2);
    assert_near(slice_find(&scores, "history", "1 to 4 events")->scores[1].mrr.mean, (1 + 0.5 + 1.0 / 3 + 0.25) / 4);
    assert_near(slice_find(&scores, "history", "10 to 19 events")->scores[0].hit[1].mean, 0.5);
    assert_int_equal(slice_find(&scores, "popularity", "new: not in training")->cases, 2);
    assert_int_equal(slice_find(&scores, "popularity", "5 in training")->cases, 4);
    assert_int_equal(slice_find(&scores, "popularity", "10 in training")->cases, 5);
    assert_int_equal(slice_find(&scores, "lag", "under 1 minute")->cases, 3);
    assert_int_equal(slice_find(&scores, "lag", "1 minute to 1 hour")->cases, 2);
    assert_int_equal(slice_find(&scores, "lag", "1 hour to 1 day")->cases, 1);
    assert_int_equal(slice_find(&scores, "lag", "1 day to 1 week")->cases, 1);
    assert_int_equal(slice_find(&scores, "lag", "1 week to 30 days")->cases, 2);
    assert_int_equal(slice_find(&scores, "lag", "30 days to 1 year")->cases, 1);
    assert_int_equal(slice_find(&scores, "lag", "1 year or more")->cases, 1);
    assert_int_equal(scores.slice_count, 13); /* no slice without cases */
    lapse_rank_scores_clear(&scores);
    lapse_dataset_close(dataset);
}

/* ---------------------------------------------------------------------------------------- the public call ----- */

static lapse_model *fit(const lapse_dataset *dataset, const char *name)
{
    lapse_train_options options;
    lp_train_options_default(&options);
    small_set(&options, "model", name);
    lapse_model *model = NULL;
    lapse_error error = {0};
    if (lapse_train(dataset, &options, NULL, NULL, &model, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return model;
}

/* Intervals contain their mean, and no result depends on the number of threads. */
static void baselines(void **state)
{
    (void)state;
    static const char *const names[] = {"popularity", "recency", "item-markov", "majority", "markov"};
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, 950);
    lapse_dataset *dataset = small_dataset_random(&random, 80, 30, 12, 100, false);
    double ndcg[5];
    for (int i = 0; i < 5; i++) {
        lapse_model *model = fit(dataset, names[i]);
        lapse_rank_options options = options_of(200, true);
        options.split = "all";
        lapse_rank_scores one, two;
        assert_int_equal(lapse_rank_evaluate(model, dataset, &options, &one, NULL), LAPSE_OK);
        options.threads = 3;
        assert_int_equal(lapse_rank_evaluate(model, dataset, &options, &two, NULL), LAPSE_OK);
        assert_int_equal(one.whole.cases, dataset->event_count - dataset->sequence_count);
        assert_string_equal(one.split, "all");
        assert_string_equal(one.popularity, "training");
        assert_int_equal(one.slice_count, two.slice_count);
        for (int p = 0; p < LAPSE_RANK_PROTOCOLS; p++) {
            const lapse_rank_score *score = &one.whole.scores[p];
            assert_memory_equal(score->hit, two.whole.scores[p].hit, 2 * sizeof(lapse_mean));
            assert_memory_equal(score->ndcg, two.whole.scores[p].ndcg, 2 * sizeof(lapse_mean));
            assert_memory_equal(&score->mrr, &two.whole.scores[p].mrr, sizeof(lapse_mean));
            assert_true(score->mrr.low < score->mrr.mean && score->mrr.mean < score->mrr.high);
            if (p >= 2) /* 12 items leave fewer than 100 */
                assert_true(score->short_cases == one.whole.cases && score->candidates < 12);
        }
        int64_t sliced = 0;
        for (int s = 0; s < one.slice_count; s++)
            sliced += one.slices[s].cases;
        assert_int_equal(sliced, 3 * one.whole.cases);
        ndcg[i] = one.whole.scores[1].ndcg[1].mean;
        lapse_rank_scores_clear(&one);
        lapse_rank_scores_clear(&two);
        lapse_model_free(model);
    }
    assert_true(ndcg[2] > ndcg[0]); /* the order of events is informative in this data */
    lapse_dataset_close(dataset);
}

static void sampled_cases_and_other_data(void **state)
{
    (void)state;
    lp_random random = lp_random_start(2, LP_PURPOSE_TEST, 951);
    lapse_dataset *dataset = small_dataset_random(&random, 40, 20, 5, 10, false);
    lapse_dataset *other = small_dataset_random(&random, 8, 20, 5, 10, false);
    lapse_model *model = fit(dataset, "popularity");
    lapse_rank_options options = options_of(0, false);
    lapse_rank_scores scores;
    lapse_error error;
    options.split = "all";
    options.cases = 30;
    options.negatives = 0;
    assert_int_equal(lapse_rank_evaluate(model, dataset, &options, &scores, NULL), LAPSE_OK);
    assert_int_equal(scores.whole.cases, 30);
    assert_int_equal(scores.case_total, dataset->event_count - dataset->sequence_count);
    assert_true(scores.whole.scores[2].candidates == 0);
    lapse_rank_scores_clear(&scores);
    assert_int_equal(lapse_rank_evaluate(model, other, &options, &scores, NULL), LAPSE_OK);
    assert_string_equal(scores.popularity, "dataset");
    lapse_rank_scores_clear(&scores);
    options.split = "test";
    assert_int_equal(lapse_rank_evaluate(model, other, &options, &scores, &error), LAPSE_ERROR_INPUT);
    assert_non_null(strstr(error.message, "this is not the dataset the model was trained on"));
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
}

static void refused(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abac abb cab cc", NULL);
    lapse_dataset *single = small_dataset_spelled("a b c", NULL);
    lapse_model *model = fit(dataset, "popularity");
    static const int none[] = {0};
    static const struct refusal {
        int negatives, cutoff_count, cases;
        const int *cutoffs;
        const char *split, *message;
    } refusals[] = {
        {100, 0, 0, cutoffs, "all", "cutoffs are 1 to 32 numbers, not 0"},
        {100, 33, 0, cutoffs, "all", "cutoffs are 1 to 32 numbers, not 33"},
        {100, 1, 0, none, "all", "a cutoff is a rank from 1, not 0"},
        {-1, 1, 0, cutoffs, "all", "negatives is -1, but must be 0 to 10000"},
        {100, 1, -2, cutoffs, "all", "cases is -2, but must be 0 (all of them) or more"},
        {100, 1, 0, cutoffs, "half", "there is no split 'half'; there are train, valid, test and all"},
    };
    lapse_error error;
    lapse_rank_scores scores;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        lapse_rank_options options = options_of(0, false);
        options.negatives = refusals[i].negatives;
        options.cutoffs = refusals[i].cutoffs;
        options.cutoff_count = refusals[i].cutoff_count;
        options.cases = refusals[i].cases;
        options.split = refusals[i].split;
        assert_int_equal(lapse_rank_evaluate(model, dataset, &options, &scores, &error), LAPSE_ERROR_USAGE);
        assert_string_equal(error.message, refusals[i].message);
    }
    lapse_rank_options options = options_of(0, false);
    options.split = "all";
    options.threads = 1 << 30;
    assert_int_equal(lapse_rank_evaluate(model, dataset, &options, &scores, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "threads is 1073741824; it must be 1 to 4096, or 0 for all cores");
    options.threads = 1;
    assert_int_equal(lapse_rank_evaluate(model, single, &options, &scores, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, "there is nothing to rank: no sequence has a second event");
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lapse_dataset_close(single);
}

/* ----------------------------------------------------------------------------------------------- networks ----- */

static lapse_model *learn(const lapse_dataset *dataset, const char *encoding)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "task", "recommend");
    small_set(&options, "encoding", encoding);
    options.model.context = 20;
    small_set_number(&options, "frequency-samples", 3);
    return small_train(dataset, &options, NULL, NULL);
}

/* The ranks of an event do not depend on which other events are ranked. */
static void networks(void **state)
{
    (void)state;
    static const char *const encodings[] = {"mercer", "bochner-normal"}; /* the second stores three frequency samples */
    lp_random random = lp_random_start(4, LP_PURPOSE_TEST, 952);
    lapse_dataset *dataset = small_dataset_random(&random, 150, 14, 5, 100, false); /* several batches of windows */
    for (int i = 0; i < 2; i++) {
        lapse_model *model = learn(dataset, encodings[i]);
        const lp_backend *cpu = lp_backend_find("cpu");
        lp_ranking_setup setup = {.seed = 5};
        lp_evaluator all, some;
        assert_int_equal(lp_evaluator_init_ranked(&all, cpu, model, dataset, NULL, LP_SPLIT_COUNT, 2, &setup, NULL),
                         LAPSE_OK);
        setup.max_cases = 20;
        assert_int_equal(lp_evaluator_init_ranked(&some, cpu, model, dataset, NULL, LP_SPLIT_COUNT, 1, &setup, NULL),
                         LAPSE_OK);
        lp_evaluator *both[] = {&all, &some};
        for (int k = 0; k < 2; k++) {
            lp_evaluator_run(both[k], model->parameters);
            lp_evaluator_rank(both[k], model->parameters);
            assert_int_equal(both[k]->case_count, both[k]->ranking.case_count);
        }
        assert_int_equal(all.case_count, dataset->event_count - dataset->sequence_count);
        assert_int_equal(some.case_count, 20);
        for (int64_t c = 0, a = 0; c < some.case_count; c++) {
            while (all.ranking.cases[a].event != some.ranking.cases[c].event)
                a++;
            assert_memory_equal(&all.ranking.results[a], &some.ranking.results[c], sizeof(lp_rank_result));
        }
        /* The validation metric of training equals that of lapse_rank_evaluate. */
        lapse_rank_options options = options_of(0, false);
        lapse_rank_scores scores;
        options.split = "valid";
        assert_int_equal(lapse_rank_evaluate(model, dataset, &options, &scores, NULL), LAPSE_OK);
        assert_true(scores.whole.scores[0].ndcg[1].mean ==
                    strtod(lp_model_property_find(model, "score.valid.ndcg@10"), NULL));
        assert_true(isfinite(scores.whole.scores[2].mrr.mean));
        lapse_rank_scores_clear(&scores);
        lapse_error error;
        lapse_scores other;
        lapse_evaluate_options evaluate;
        lapse_evaluate_options_default(&evaluate);
        assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &other, &error), LAPSE_ERROR_USAGE);
        assert_string_equal(error.message, "a recommender has ranking metrics, not accuracy: use lapse_rank_evaluate");
        lp_evaluator_clear(&all);
        lp_evaluator_clear(&some);
        lapse_model_free(model);
    }
    lapse_train_options classify = small_train_options();
    lapse_model *model = small_train(dataset, &classify, NULL, NULL);
    lapse_rank_options options = options_of(0, false);
    lapse_rank_scores scores;
    lapse_error error;
    assert_int_equal(lapse_rank_evaluate(model, dataset, &options, &scores, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(
        error.message,
        "the model is a classifier: ranking metrics need a model of the task 'recommend', or a baseline");
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static void out_of_memory(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abac abb cab cc", NULL);
    lapse_model *model = fit(dataset, "popularity");
    lapse_rank_options options = options_of(3, true);
    options.split = "all";
    lapse_rank_scores scores = {0};
    lapse_error error;
    int n = 1;
    for (;; n++) {
        lp_memory_fail_at(n);
        lapse_status status = lapse_rank_evaluate(model, dataset, &options, &scores, &error);
        lp_memory_fail_at(0);
        if (status == LAPSE_OK)
            break;
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
        assert_null(scores.means);
    }
    assert_true(n > 20);
    lapse_rank_scores_clear(&scores);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),       cmocka_unit_test(slices),
        cmocka_unit_test(baselines),     cmocka_unit_test(sampled_cases_and_other_data),
        cmocka_unit_test(refused),       cmocka_unit_test(networks),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
