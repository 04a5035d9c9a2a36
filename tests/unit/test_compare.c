/* test_compare.c: the baselines of a comparison have the scores that they have as models of their own. */
#include "model/history.h"
#include "train/train_options.h"
#include "lapse_lab.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/small_data.h"
#include "support/small_train.h"

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

static lapse_model *learn(const lapse_dataset *dataset, const char *task, const char *model, const char *order)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "task", task);
    small_set(&options, "model", model);
    if (order)
        small_set(&options, "order", order);
    return small_train(dataset, &options, NULL, NULL);
}

static lapse_comparison compare(const lapse_model *model, const lapse_dataset *dataset, const char *target)
{
    lapse_evaluate_options options;
    lapse_comparison comparison;
    lapse_error error = {0};
    lapse_evaluate_options_default(&options);
    options.target = target;
    options.threads = 2;
    if (lapse_compare(model, dataset, &options, &comparison, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return comparison;
}

static void assert_mean(lapse_mean mean, double value, double low, double high)
{
    assert_true(fabs(mean.mean - value) < 1e-12);
    assert_true(fabs(mean.low - low) < 1e-12 && fabs(mean.high - high) < 1e-12);
}

static void assert_scores(const lapse_comparison *c, int row, const lapse_model *model, const lapse_dataset *dataset)
{
    lapse_evaluate_options options;
    lapse_scores scores;
    lapse_evaluate_options_default(&options);
    assert_int_equal(lapse_evaluate(model, dataset, &options, &scores, NULL), LAPSE_OK);
    assert_int_equal(c->cases, scores.cases);
    assert_int_equal(c->sequences, scores.sequences);
    assert_mean(c->rows[row].metrics[0], scores.log_loss, scores.log_loss_low, scores.log_loss_high);
    assert_mean(c->rows[row].metrics[1], scores.accuracy, scores.accuracy_low, scores.accuracy_high);
    lapse_scores_clear(&scores);
}

static void check_differences(const lapse_comparison *c)
{
    int best = 1;
    for (int m = 0; m < c->metric_count; m++)
        assert_mean(c->rows[0].differences[m], 0, 0, 0);
    for (int r = 1; r < c->row_count; r++) {
        for (int m = 0; m < c->metric_count; m++) {
            lapse_mean d = c->rows[r].differences[m];
            assert_true(fabs(d.mean - (c->rows[0].metrics[m].mean - c->rows[r].metrics[m].mean)) < 1e-12);
            assert_true(d.low <= d.mean && d.mean <= d.high);
        }
        bool lower = strcmp(c->metric_names[0], "log-loss") == 0;
        double value = c->rows[r].metrics[0].mean, than = c->rows[best].metrics[0].mean;
        best = (lower ? value < than : value > than) ? r : best;
    }
    assert_int_equal(c->best, best);
}

static void classifiers(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"attention", "attention", NULL}, {"majority", "majority", NULL}, {"markov 1", "markov", "1"},
        {"markov 2", "markov", "2"},      {"markov 3", "markov", "3"},
    };
    lapse_dataset *dataset = small_train_data(2);
    lapse_model *model = learn(dataset, "classify", "attention", NULL);
    lapse_comparison c = compare(model, dataset, NULL);
    assert_int_equal(c.row_count, 5);
    assert_int_equal(c.metric_count, 2);
    assert_int_equal(c.cases, c.case_total);
    assert_string_equal(c.target, "event");
    assert_string_equal(c.split, "test");
    for (int r = 0; r < 5; r++) {
        lapse_model *other = learn(dataset, "classify", rows[r][1], rows[r][2]);
        assert_string_equal(c.rows[r].name, rows[r][0]);
        assert_scores(&c, r, other, dataset);
        lapse_model_free(other);
    }
    check_differences(&c);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static void recommenders(void **state)
{
    (void)state;
    static const char *const names[] = {"attention", "popularity", "recency", "item-markov"};
    lapse_dataset *dataset = small_train_data(3);
    lapse_model *model = learn(dataset, "recommend", "attention", NULL);
    lapse_comparison c = compare(model, dataset, NULL);
    assert_int_equal(c.row_count, 4);
    assert_int_equal(c.metric_count, 3);
    for (int r = 0; r < 4; r++) {
        lapse_model *other = learn(dataset, "recommend", names[r], NULL);
        lapse_rank_options options;
        lapse_rank_scores scores;
        lapse_rank_options_default(&options);
        assert_int_equal(lapse_rank_evaluate(other, dataset, &options, &scores, NULL), LAPSE_OK);
        const lapse_rank_score *unseen = &scores.whole.scores[0];
        const lapse_mean expected[] = {unseen->ndcg[1], unseen->hit[1], unseen->mrr};
        assert_string_equal(c.rows[r].name, names[r]);
        assert_int_equal(scores.cutoffs[1], 10);
        for (int m = 0; m < 3; m++)
            assert_mean(c.rows[r].metrics[m], expected[m].mean, expected[m].low, expected[m].high);
        lapse_rank_scores_clear(&scores);
        lapse_model_free(other);
    }
    check_differences(&c);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

/* Both at once have the results of each alone: all cases, and a sample, with which the comparison still has all of them. */
static void at_once(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(3);
    lapse_model *model = learn(dataset, "recommend", "attention", NULL);
    lapse_comparison alone = compare(model, dataset, NULL), beside;
    for (int cases = 0; cases < 4; cases += 3) {
        lapse_rank_options options;
        lapse_rank_scores one, two;
        lapse_rank_options_default(&options);
        options.cases = cases;
        options.threads = 2;
        assert_int_equal(lapse_rank_evaluate(model, dataset, &options, &one, NULL), LAPSE_OK);
        assert_int_equal(lapse_rank_compare(model, dataset, &options, &two, &beside, NULL), LAPSE_OK);
        assert_memory_equal(&beside, &alone, sizeof alone);
        assert_int_equal(two.whole.cases, cases ? cases : alone.cases);
        size_t means = (size_t)LAPSE_RANK_PROTOCOLS * 2 * (size_t)options.cutoff_count;
        assert_memory_equal(one.means, two.means, means * sizeof *one.means);
        lapse_rank_scores_clear(&one);
        lapse_rank_scores_clear(&two);
    }
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static lapse_dataset *shop(const char *event, const char *action)
{
    lapse_simulate_options simulate;
    lapse_simulation *simulation = NULL;
    lapse_import_options import;
    lapse_dataset *dataset = NULL;
    lapse_simulate_options_default(&simulate);
    simulate.sequences = 40;
    assert_int_equal(lapse_simulate(&simulate, &simulation, NULL), LAPSE_OK);
    lapse_import_options_default(&import);
    import.input = small_path("shop.csv");
    import.event = event;
    import.action = action;
    import.threads = 1;
    assert_int_equal(lapse_simulation_save(simulation, import.input, NULL), LAPSE_OK);
    assert_int_equal(lapse_dataset_read(&import, &dataset, NULL, NULL), LAPSE_OK);
    lapse_simulation_free(simulation);
    return dataset;
}

/* The baselines of the action are those of a dataset whose events are the actions. */
static void two_targets(void **state)
{
    (void)state;
    lapse_dataset *both = shop("item", "action"), *actions = shop("action", NULL);
    lapse_train_options options = small_train_options();
    small_set(&options, "predict", "both");
    lapse_model *model = small_train(both, &options, NULL, NULL);
    lapse_comparison event = compare(model, both, "event"), action = compare(model, both, "action");
    lapse_model *markov = learn(both, "classify", "markov", "2"), *other = learn(actions, "classify", "markov", "2");
    assert_scores(&event, 3, markov, both);
    assert_scores(&action, 3, other, actions);
    assert_string_equal(action.target, "action");
    check_differences(&event);
    check_differences(&action);
    /* Each target has its own metrics in the history, and the selection metric is the sum of log-losses. */
    lapse_epoch epoch;
    assert_true(lapse_model_history(model, 0, &epoch));
    assert_int_equal(epoch.metric_count, 4);
    assert_string_equal(epoch.metrics[0].target, "event");
    assert_string_equal(epoch.metrics[2].target, "action");
    assert_string_equal(epoch.metrics[3].name, "accuracy");
    assert_true(epoch.score == epoch.metrics[0].value + epoch.metrics[2].value);
    lapse_model_free(model);
    lapse_model_free(markov);
    lapse_model_free(other);
    lapse_dataset_close(both);
    lapse_dataset_close(actions);
}

static void scores_are_recorded(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(2);
    lapse_model *model = learn(dataset, "classify", "attention", NULL), *read = NULL;
    lapse_comparison c = compare(model, dataset, NULL);
    assert_int_equal(lapse_model_record(model, &c, NULL), LAPSE_OK);
    assert_int_equal(lapse_model_save(model, small_path("m.safetensors"), NULL), LAPSE_OK);
    assert_int_equal(lapse_model_load(small_path("m.safetensors"), &read, NULL), LAPSE_OK);
    static const char *const keys[] = {"score.test.log_loss", "score.test.accuracy_low",
                                       "baseline.markov-2.test.log_loss"};
    const double values[] = {c.rows[0].metrics[0].mean, c.rows[0].metrics[1].low, c.rows[3].metrics[0].mean};
    for (int i = 0; i < 3; i++)
        assert_true(strtod(lp_model_property_find(read, keys[i]), NULL) == values[i]);
    lapse_model_free(model);
    lapse_model_free(read);
    lapse_dataset_close(dataset);
}

static void what_cannot_be_compared(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(2), *other = small_train_data(4);
    lapse_model *model = learn(dataset, "classify", "attention", NULL),
                *markov = learn(dataset, "classify", "markov", "1");
    lapse_evaluate_options options;
    lapse_comparison c;
    lapse_error error = {0};
    lapse_evaluate_options_default(&options);
    assert_int_equal(lapse_compare(markov, dataset, &options, &c, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "the model 'markov' is a baseline; networks are compared with baselines");
    assert_int_equal(lapse_compare(model, other, &options, &c, &error), LAPSE_ERROR_INPUT);
    assert_string_equal(error.message, "this is not the dataset the model was trained on, and baselines are fitted to "
                                       "its training split");
    options.target = "action";
    assert_int_equal(lapse_compare(model, dataset, &options, &c, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "the model does not predict 'action', but the event");
    lapse_rank_options rank;
    lapse_rank_scores scores;
    lapse_rank_options_default(&rank);
    assert_int_equal(lapse_rank_compare(markov, dataset, &rank, &scores, &c, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "the model 'markov' is a baseline; networks are compared with baselines");
    lapse_model_free(model);
    lapse_model_free(markov);
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classifiers),
        cmocka_unit_test(recommenders),
        cmocka_unit_test(at_once),
        cmocka_unit_test_teardown(two_targets, remove_files),
        cmocka_unit_test_teardown(scores_are_recorded, remove_files),
        cmocka_unit_test(what_cannot_be_compared),
    };
    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
