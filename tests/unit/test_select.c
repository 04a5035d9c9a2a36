/* test_select.c: the validation metric that selects the best epoch (option "select"). */
#include "simulate/simulate.h"
#include "model/history.h"
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/simulated.h"
#include "support/small_data.h"
#include "support/small_train.h"

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

/* In the preset "cycle" the time changes the probabilities but never the most probable event: the accuracy of the first
 * epoch is the best, while log-loss improves for many epochs. With default options a model must reach the law. */
static void defaults_reach_the_law_of_a_cycle(void **state)
{
    (void)state;
    small_skip_under_tools();
    for (int seed = 1; seed <= small_effort(3, 1); seed++) {
        lapse_simulate_options simulate;
        lapse_simulation *simulation = NULL;
        lapse_train_options *options = NULL;
        lapse_simulate_options_default(&simulate);
        simulate.preset = "cycle";
        simulate.sequences = 1000;
        simulate.seed = (uint64_t)seed;
        assert_int_equal(lapse_simulate(&simulate, &simulation, NULL), LAPSE_OK);
        lapse_dataset *dataset = simulated_dataset(simulation, NULL, 0);
        assert_int_equal(lapse_train_options_new(&options, NULL), LAPSE_OK);
        small_set_number(options, "seed", seed);
        lapse_model *model = small_train(dataset, options, NULL, NULL);
        lapse_evaluate_options evaluate;
        lapse_scores scores, law;
        lapse_evaluate_options_default(&evaluate);
        evaluate.bootstrap = 0;
        assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
        assert_int_equal(lapse_simulation_evaluate(simulation, model, dataset, &evaluate, &law, NULL), LAPSE_OK);
        assert_int_equal(scores.cases, law.cases);
        print_message("seed %d: log-loss %.4f, of the law %.4f, epoch %s of %d\n", seed, scores.log_loss, law.log_loss,
                      lp_model_property_find(model, "score.epoch"), model->epochs);
        if (!(scores.log_loss < 1.015 * law.log_loss))
            fail_msg("seed %d: log-loss %.4f, of the law %.4f", seed, scores.log_loss, law.log_loss);
        lapse_scores_clear(&scores);
        lapse_scores_clear(&law);
        lapse_model_free(model);
        lapse_train_options_free(options);
        lapse_dataset_close(dataset);
        lapse_simulation_free(simulation);
    }
}

/* ------------------------------------------------------------------------------------------- the criterion --- */

static void compares_in_the_direction_of_the_metric(void **state)
{
    (void)state;
    for (int m = 0; m < LP_METRIC_COUNT; m++) {
        bool lower = m == LP_METRIC_LOG_LOSS || m == LP_METRIC_TIME_LOSS;
        assert_int_equal(lp_metric_better((lp_metric)m, 0.2, 0.3), lower);
        assert_int_equal(lp_metric_better((lp_metric)m, 0.3, 0.2), !lower);
        assert_false(lp_metric_better((lp_metric)m, 0.2, 0.2));
        assert_false(lp_metric_better((lp_metric)m, NAN, 0.2));
        assert_true(lp_metric_better((lp_metric)m, 0.2, NAN));
        assert_false(lp_metric_better((lp_metric)m, NAN, NAN));
    }
}

static lapse_train_options noisy_options(const char *task, const char *select)
{
    lapse_train_options options = small_train_options();
    options.run.learning_rate = 0.1;
    options.run.epochs = 12;
    options.run.patience = 4;
    small_set(&options, "task", task);
    if (select)
        small_set(&options, "select", select);
    return options;
}

/* The epoch kept is the best by the chosen metric, and training stops `patience` epochs after it. */
static void every_metric_selects_its_best_epoch(void **state)
{
    (void)state;
    static const struct {
        const char *task, *select, *key;
    } cases[] = {
        {"classify", NULL, "score.valid.log_loss"},       {"classify", "log-loss", "score.valid.log_loss"},
        {"classify", "accuracy", "score.valid.accuracy"}, {"recommend", NULL, "score.valid.ndcg@10"},
        {"recommend", "ndcg@10", "score.valid.ndcg@10"},  {"recommend", "hit@10", "score.valid.hit@10"},
        {"recommend", "mrr", "score.valid.mrr"},
    };
    lapse_dataset *dataset = small_train_data(5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_train_options options = noisy_options(cases[i].task, cases[i].select);
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        const char *name = strrchr(cases[i].key, '.') + 1;
        bool lower = strcmp(name, "log_loss") == 0;
        double best_value = NAN;
        int best = 0, count = 0;
        lapse_epoch epoch;
        for (; lapse_model_history(model, count, &epoch); count++) {
            assert_int_equal(epoch.epoch, count + 1);
            assert_true(epoch.loss > 0);
            assert_int_equal(epoch.metric_count, strcmp(cases[i].task, "classify") == 0 ? 2 : 3);
            if (best == 0 || (lower ? epoch.score < best_value : epoch.score > best_value)) {
                best = epoch.epoch;
                best_value = epoch.score;
            }
        }
        assert_int_equal(count, best + 4 < 12 ? best + 4 : 12);
        assert_int_equal(strtol(lp_model_property_find(model, "score.epoch"), NULL, 10), best);
        assert_true(strtod(lp_model_property_find(model, cases[i].key), NULL) == best_value);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

static void a_metric_of_another_task_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *task, *select, *message;
    } cases[] = {
        {"classify", "ndcg@10",
         "the task classify has no validation metric 'ndcg@10'; --select takes log-loss or accuracy"},
        {"classify", "mrr", "the task classify has no validation metric 'mrr'; --select takes log-loss or accuracy"},
        {"recommend", "accuracy",
         "the task recommend has no validation metric 'accuracy'; --select takes ndcg@10, hit@10 or mrr"},
        {"recommend", "log-loss",
         "the task recommend has no validation metric 'log-loss'; --select takes ndcg@10, hit@10 or mrr"},
    };
    lapse_dataset *dataset = small_train_data(5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_train_options options = noisy_options(cases[i].task, cases[i].select);
        lapse_error error = {0};
        assert_int_equal(small_resolve(&options, dataset, &error), LAPSE_ERROR_USAGE);
        assert_string_equal(error.message, cases[i].message);
    }
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------------ the law ---- */

/* The law of the cycle: its mean log-loss on its own events is its entropy, and its frequencies are its probabilities. */
static void law_of_the_cycle(void **state)
{
    (void)state;
    lapse_simulate_options simulate;
    lapse_simulation *simulation = NULL;
    lapse_simulate_options_default(&simulate);
    simulate.preset = "cycle";
    assert_int_equal(lapse_simulate(&simulate, &simulation, NULL), LAPSE_OK);
    assert_int_equal(simulation->sequence_count, 1000);
    assert_in_range(simulation->event_count, 39000, 41000); /* 240 days, a mean gap of 6 days */
    double after[2][2] = {{0}}, loss = 0, entropy = 0, cases = 0;
    for (int64_t user = 0; user < simulation->sequence_count; user++)
        for (int64_t i = simulation->start[user] + 1; i < simulation->start[user + 1]; i++, cases++) {
            double probabilities[10], sum = 0;
            bool soon = simulation->time[i] - simulation->time[i - 1] < 60 * 3600;
            int next = (simulation->type[i - 1] + 1) % 10;
            lp_simulation_probabilities(simulation, user, i, probabilities);
            for (int k = 0; k < 10; k++) {
                double expected = soon ? (k == next ? 0.82 : 0.02) : 0.1;
                assert_true(fabs(probabilities[k] - expected) < 1e-12);
                sum += probabilities[k];
                entropy -= probabilities[k] * log(probabilities[k]);
            }
            assert_true(fabs(sum - 1) < 1e-12);
            loss -= log(probabilities[simulation->type[i]]);
            after[soon][simulation->type[i] == next]++;
        }
    assert_true(fabs(after[1][1] / (after[1][0] + after[1][1]) - 0.82) < 0.01);
    assert_true(fabs(after[0][1] / (after[0][0] + after[0][1]) - 0.1) < 0.01);
    assert_true(fabs(loss / cases - entropy / cases) < 0.02);
    lapse_simulation_free(simulation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_in_the_direction_of_the_metric),
        cmocka_unit_test(every_metric_selects_its_best_epoch),
        cmocka_unit_test(a_metric_of_another_task_is_refused),
        cmocka_unit_test(law_of_the_cycle),
        cmocka_unit_test_teardown(defaults_reach_the_law_of_a_cycle, remove_files),
    };
    return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
