/* test_train_limits.c: what training and evaluation make of odd options and datasets: every option that cannot be, defaults out
 * of the data, data with hardly anything in it, and memory that runs out. */
#include "support/small_data.h"
#include "support/small_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

/* ---------------------------------------------------------------------------------------------- options ------ */

static void check_option_error(const lapse_dataset *dataset, const lapse_train_options *options, const char *message)
{
    lapse_train_options resolved = *options;
    lapse_error error = {0};
    lapse_model *model = NULL;
    if (lapse_train_options_resolve(dataset, &resolved, &error) != LAPSE_ERROR_USAGE ||
        strcmp(error.message, message) != 0)
        fail_msg("'%s', should be '%s'", error.message, message);
    assert_memory_equal(&resolved, options, sizeof resolved); /* as they were */
    assert_int_equal(lapse_train(dataset, options, NULL, NULL, &model, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, message);
    assert_null(model);
}

#define CHECK_OPTION(member, value, message)                 \
    do {                                                     \
        lapse_train_options options = small_train_options(); \
        options.member = value;                              \
        check_option_error(dataset, &options, message);      \
    } while (0)

static void options_that_cannot_be(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    CHECK_OPTION(task, "divine", "task cannot be 'divine'; it can be one of: classify, recommend");
    CHECK_OPTION(task, NULL, "task cannot be ''; it can be one of: classify, recommend");
    CHECK_OPTION(model, "oracle",
                 "model cannot be 'oracle'; it can be one of: attention, markov, item-markov, recency, popularity, "
                 "majority");
    CHECK_OPTION(encoding, "sundial",
                 "encoding cannot be 'sundial'; it can be one of: mercer, bochner, bochner-normal, "
                 "bochner-invcdf, random, position, sinusoid, none");
    CHECK_OPTION(period_init, "wild",
                 "period-init cannot be 'wild'; it can be one of: geometric, paper, random, linear");
    CHECK_OPTION(inverse_cdf, "glow",
                 "inverse-cdf cannot be 'glow'; it can be one of: mlp, mlp-residual, maf, iaf, nvp");
    CHECK_OPTION(hidden, 5000, "hidden cannot be 5000; it can be from 1 to 4096");
    CHECK_OPTION(draws, -1, "draws cannot be -1; it can be from 1 to 1000");
    CHECK_OPTION(split_by, "coin",
                 "split-by cannot be 'coin'; it can be one of: column, sequence, leave-one-out, time");
    CHECK_OPTION(split_by, "column",
                 "the dataset has no split column: import it with --split-column COLUMN, or choose another --split-by rule");
    CHECK_OPTION(target_time, "guessed", "target-time cannot be 'guessed'; it can be one of: known, unknown");
    CHECK_OPTION(dims, -1, "dims cannot be -1; it can be from 1 to 4096");
    CHECK_OPTION(dims, 4097, "dims cannot be 4097; it can be from 1 to 4096");
    CHECK_OPTION(blocks, 4, "blocks cannot be 4; it can be from 1 to 3");
    CHECK_OPTION(heads, 5, "heads cannot be 5; it can be from 1 to 4");
    CHECK_OPTION(heads, 3, "heads (3) must divide dims (4)");
    CHECK_OPTION(context, -3, "context cannot be -3; it can be from 1 to 4096");
    CHECK_OPTION(periods, -1, "periods cannot be -1; it can be from 0 to 4096");
    CHECK_OPTION(harmonics, 257, "harmonics cannot be 257; it can be from 0 to 256");
    CHECK_OPTION(dropout, 0.95, "dropout cannot be 0.95; it can be from 0 to 0.9");
    CHECK_OPTION(dropout, NAN, "dropout cannot be nan; it can be from 0 to 0.9");
    CHECK_OPTION(order, 4, "order cannot be 4; it can be from 1 to 3");
    CHECK_OPTION(learning_rate, 0, "learning-rate cannot be 0; it can be from 1e-12 to 10");
    CHECK_OPTION(beta1, 1, "beta1 cannot be 1; it can be from 0 to 0.999999");
    CHECK_OPTION(beta2, -0.5, "beta2 cannot be -0.5; it can be from 0 to 0.999999");
    CHECK_OPTION(l2, -1, "l2 cannot be -1; it can be from 0 to 1e+06");
    CHECK_OPTION(clip, -1, "clip cannot be -1; it can be from 0 to 1e+12");
    CHECK_OPTION(batch, -1, "batch cannot be -1; it can be from 1 to 1.04858e+06");
    CHECK_OPTION(epochs, 0, "epochs cannot be 0; it can be from 1 to 1e+06");
    CHECK_OPTION(patience, 0, "patience cannot be 0; it can be from 1 to 1e+06");
    CHECK_OPTION(shards, 0, "shards cannot be 0; it can be from 1 to 4096");
    CHECK_OPTION(threads, -2, "threads cannot be -2; it can be from 1 to 4096");
    CHECK_OPTION(checkpoint_seconds, -1, "checkpoint-every cannot be -1; it can be from 0 to 1e+09");
    CHECK_OPTION(period_min, INFINITY, "period-min (inf s) and period-max (inf s) must be finite");
    lapse_train_options options = small_train_options();
    options.period_min = 100;
    options.period_max = 10;
    check_option_error(dataset, &options, "period-max (10 s) is shorter than period-min (100 s)");
    options.period_max = INFINITY;
    check_option_error(dataset, &options, "period-min (100 s) and period-max (inf s) must be finite");
    lapse_dataset_close(dataset);
}

static void defaults_come_from_the_data(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options;
    lapse_train_options_default(&options);
    assert_int_equal(lapse_train_options_resolve(dataset, &options, NULL), LAPSE_OK);
    /* Events come some 100 s apart, in sequences of up to 14. */
    assert_true(options.period_min > 0.5 && options.period_min < 50);
    assert_true(options.period_max > 500 && options.period_max < 10000);
    assert_true(options.context >= 8 && options.context <= 13);
    assert_int_equal(options.dims, 32);
    assert_int_equal(options.periods, 16);
    assert_int_equal(options.harmonics, 5);
    assert_int_equal(options.batch, 16);
    assert_true(options.threads >= 1 && options.dropout == 0.2 && options.blocks == 1 && options.heads == 1);
    lapse_train_options again = options;
    assert_int_equal(lapse_train_options_resolve(dataset, &again, NULL), LAPSE_OK);
    assert_memory_equal(&again, &options, sizeof options); /* what is resolved stays */
    lapse_train_options_default(&options);
    options.encoding = "bochner";
    assert_int_equal(lapse_train_options_resolve(dataset, &options, NULL), LAPSE_OK);
    assert_int_equal(options.periods, 50);
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------- odd datasets ---- */

static void train_whatever(const lapse_dataset *dataset)
{
    for (int e = 0; lapse_encoding_names()[e]; e++) {
        lapse_train_options options;
        lapse_train_options_default(&options);
        options.encoding = lapse_encoding_names()[e];
        options.epochs = 1;
        options.dims = 4;
        options.threads = 1;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        for (size_t i = 0; i < model->network.graph.parameter_size; i++)
            assert_true(isfinite(model->parameters[i]));
        lapse_model_free(model);
    }
}

static void odd_datasets(void **state)
{
    (void)state;
    static const int lengths[] = {3, 4, 2, 5};
    static const int32_t type[14] = {0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1};
    double time[14];
    for (int i = 0; i < 14; i++)
        time[i] = 1.7e9;
    lapse_dataset *dataset = small_dataset(4, lengths, time, type, 2, NULL); /* all at the same time */
    lapse_train_options options;
    lapse_train_options_default(&options);
    assert_int_equal(lapse_train_options_resolve(dataset, &options, NULL), LAPSE_OK);
    assert_true(options.period_min == 1 && options.period_max == 1000);
    train_whatever(dataset);
    lapse_dataset_close(dataset);
    dataset = small_dataset_spelled("ab ba ab ab", NULL); /* one target in each */
    train_whatever(dataset);
    lapse_dataset_close(dataset);
    dataset = small_dataset_spelled("aaa aa aaaa", NULL); /* one event type */
    train_whatever(dataset);
    lapse_dataset_close(dataset);
}

static void check_train_fails(const char *events, const char *split, lapse_status wanted, const char *message)
{
    lapse_dataset *dataset = small_dataset_spelled(events, split);
    lapse_train_options options = small_train_options();
    lapse_model *model = NULL;
    lapse_error error = {0};
    if (lapse_train(dataset, &options, NULL, NULL, &model, &error) != wanted || strcmp(error.message, message) != 0)
        fail_msg("'%s', should be '%s'", error.message, message);
    lapse_dataset_close(dataset);
}

static void datasets_too_small(void **state)
{
    (void)state;
    check_train_fails(
        "abcabc", NULL, LAPSE_ERROR_USAGE,
        "1 sequence cannot be split into train, valid and test: at least 3 are required, or a split column in the source");
    check_train_fails(
        "abc abc", "ttt ttt", LAPSE_ERROR_USAGE,
        "the split column has no 'valid' events: add some, or choose another --split-by rule such as 'sequence'");
    check_train_fails("a b c", NULL, LAPSE_ERROR_INPUT,
                      "there is nothing to predict: no sequence has a second event in the split 'valid'");
    check_train_fails("abc abc", "ttt vtt", LAPSE_ERROR_INPUT,
                      "there is nothing to predict: no sequence has a second event in the split 'valid'");
    check_train_fails("a bc", "t vv", LAPSE_ERROR_INPUT,
                      "there is nothing to learn from: no training sequence has two events");
}

/* -------------------------------------------------------------------------------------------- evaluation ----- */

static void check_evaluate_fails(const lapse_model *model, const lapse_dataset *dataset, const char *split,
                                 lapse_status wanted, const char *message)
{
    lapse_evaluate_options options;
    lapse_evaluate_options_default(&options);
    options.split = split;
    lapse_scores scores;
    lapse_error error = {0};
    if (lapse_evaluate(model, dataset, &options, &scores, &error) != wanted || strcmp(error.message, message) != 0)
        fail_msg("'%s', should be '%s'", error.message, message);
}

/* What a rule leaves for the test is what is scored, by the model and by its file. */
static void the_rule_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int64_t train, valid, test;
    } cases[] = {{"column", 4, 2, 8}, {"sequence", 9, 2, 3}, {"leave-one-out", 4, 5, 5}, {"time", 10, 2, 2}};
    lapse_dataset *dataset = small_dataset_spelled("abc abcab ab abcb cba abc", "tte tttte vv eeee eee vve");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        lapse_train_options options = small_train_options();
        options.model = "markov";
        options.split_by = cases[c].rule;
        lapse_model *model = small_train(dataset, &options, NULL, NULL), *loaded = NULL;
        assert_int_equal(lapse_model_save(model, small_path("rule.safetensors"), NULL), LAPSE_OK);
        assert_int_equal(lapse_model_load(small_path("rule.safetensors"), &loaded, NULL), LAPSE_OK);
        assert_string_equal(lp_model_property_find(loaded, "split"), cases[c].rule);
        const char *const parts[] = {"train", "valid", "test"};
        const int64_t wanted[] = {cases[c].train, cases[c].valid, cases[c].test};
        for (int part = 0; part < 3; part++) {
            lapse_evaluate_options evaluate;
            lapse_evaluate_options_default(&evaluate);
            evaluate.split = parts[part];
            lapse_scores scores;
            assert_int_equal(lapse_evaluate(part % 2 ? model : loaded, dataset, &evaluate, &scores, NULL), LAPSE_OK);
            assert_int_equal(scores.cases, wanted[part]);
            lapse_scores_clear(&scores);
        }
        lapse_model_free(model);
        lapse_model_free(loaded);
    }
    lapse_dataset_close(dataset);
}

static void what_cannot_be_evaluated(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_dataset_spelled("abc abc abc abc", NULL);
    lapse_dataset *other = small_dataset_spelled("abc abc abd", NULL),
                  *column = small_dataset_spelled("abc abc", "ttt vve");
    lapse_dataset *moved = small_dataset_spelled("abc abc abc acb", NULL);
    lapse_train_options options = small_train_options();
    options.model = "markov";
    lapse_model *model = small_train(dataset, &options, NULL, NULL),
                *by_column = small_train(column, &options, NULL, NULL);
    check_evaluate_fails(model, dataset, "exam", LAPSE_ERROR_USAGE,
                         "there is no split 'exam'; there are train, valid, test and all");
    check_evaluate_fails(
        model, moved, "test", LAPSE_ERROR_INPUT,
        "this is not the dataset the model was trained on, so its split 'test' is not known here; to score "
        "every event use the split 'all'");
    check_evaluate_fails(
        by_column, dataset, "test", LAPSE_ERROR_INPUT,
        "the model was trained with a split column, and this dataset has none; to score every event use the "
        "split 'all'");
    check_evaluate_fails(model, other, "all", LAPSE_ERROR_UNKNOWN,
                         "the dataset has events 'd', which the model does not know; leave them out of the import");
    lapse_evaluate_options evaluate;
    lapse_evaluate_options_default(&evaluate);
    evaluate.split = "all";
    lapse_scores scores;
    assert_int_equal(lapse_evaluate(model, moved, &evaluate, &scores, NULL), LAPSE_OK);
    assert_int_equal(scores.cases, 8);
    lapse_scores_clear(&scores);
    lapse_model_free(model);
    lapse_model_free(by_column);
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
    lapse_dataset_close(column);
    lapse_dataset_close(moved);
}

/* A dataset that numbers its event types otherwise gets the same scores: names count. */
static void kinds_go_by_name(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(4), *renamed = small_train_data(4);
    lapse_train_options options = small_train_options();
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    int32_t *type = renamed->buffers[2];
    for (int64_t i = 0; i < renamed->event_count; i++)
        type[i] = 4 - type[i];
    char *names = renamed->buffers[5];
    for (int i = 0; i < 5; i++)
        names[2 * i] = (char)('e' - i);
    lapse_evaluate_options evaluate;
    lapse_evaluate_options_default(&evaluate);
    evaluate.split = "all";
    lapse_scores one, other;
    assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &one, NULL), LAPSE_OK);
    assert_int_equal(lapse_evaluate(model, renamed, &evaluate, &other, NULL), LAPSE_OK);
    assert_true(one.log_loss == other.log_loss && one.accuracy == other.accuracy && one.macro_f1 == other.macro_f1);
    assert_int_equal(one.types[0].cases, other.types[0].cases);
    lapse_scores_clear(&one);
    lapse_scores_clear(&other);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lapse_dataset_close(renamed);
}

/* -------------------------------------------------------------------------------------- out of memory -------- */

static void train_out_of_memory(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    static const char *const models[] = {"attention", "markov", "majority", "attention"};
    for (int m = 0; m < 4; m++) {
        lapse_train_options options = small_train_options();
        options.model = models[m];
        options.encoding = m < 3 ? "mercer" : "bochner-invcdf";
        options.hidden = 3;
        options.draws = 2;
        options.epochs = 1;
        options.checkpoint = small_path("checkpoint");
        int n = 1;
        for (;; n++) {
            lapse_model *model = NULL;
            lapse_error error;
            lp_memory_fail_at(n);
            lapse_status status = lapse_train(dataset, &options, NULL, NULL, &model, &error);
            lp_memory_fail_at(0);
            if (status == LAPSE_OK) {
                lapse_model_free(model);
                break;
            }
            if (status != LAPSE_ERROR_MEMORY)
                fail_msg("allocation %d: %s", n, error.message);
            assert_null(model);
        }
        assert_true(n > 4);
    }
    lapse_dataset_close(dataset);
}

static void evaluate_out_of_memory(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    for (int m = 0; m < 3; m++) {
        lapse_train_options options = small_train_options();
        options.model = m == 1 ? "markov" : "attention";
        options.encoding = m < 2 ? "mercer" : "bochner-normal";
        options.draws = 2;
        options.epochs = 1;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        lapse_evaluate_options evaluate;
        lapse_evaluate_options_default(&evaluate);
        evaluate.threads = 1;
        evaluate.bootstrap = 5;
        int n = 1;
        for (;; n++) {
            lapse_scores scores;
            lapse_error error;
            lp_memory_fail_at(n);
            lapse_status status = lapse_evaluate(model, dataset, &evaluate, &scores, &error);
            lp_memory_fail_at(0);
            if (status == LAPSE_OK) {
                lapse_scores_clear(&scores);
                break;
            }
            if (status != LAPSE_ERROR_MEMORY)
                fail_msg("allocation %d: %s", n, error.message);
        }
        assert_true(n > 10);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_cannot_be), cmocka_unit_test(defaults_come_from_the_data),
        cmocka_unit_test(odd_datasets),           cmocka_unit_test(datasets_too_small),
        cmocka_unit_test(the_rule_is_kept),       cmocka_unit_test(what_cannot_be_evaluated),
        cmocka_unit_test(kinds_go_by_name),       cmocka_unit_test(train_out_of_memory),
        cmocka_unit_test(evaluate_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
