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
#include <stdio.h>
#include <string.h>

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

/* ---------------------------------------------------------------------------------------------- options ------ */

static void check_set(const char *name, const char *value, const char *message)
{
    lapse_train_options options = small_train_options(), before = options;
    lapse_error error = {0};
    if (lapse_train_options_set(&options, name, value, &error) != LAPSE_ERROR_USAGE ||
        strcmp(error.message, message) != 0)
        fail_msg("'%s', should be '%s'", error.message, message);
    assert_memory_equal(&options, &before, sizeof options);
}

static void values_out_of_range(void **state)
{
    (void)state;
    check_set("task", "divine", "--task takes one of classify, recommend, not 'divine'");
    check_set("task", "", "--task takes one of classify, recommend, not ''");
    check_set("encoding", "sundial",
              "--encoding takes one of mercer, bochner, bochner-normal, bochner-invcdf, random, position, sinusoid, "
              "none, not 'sundial'");
    check_set("dims", "4097", "--dims takes a whole number from 1 to 4096, not '4097'");
    check_set("dims", "2.5", "--dims takes a whole number from 1 to 4096, not '2.5'");
    check_set("dropout", "nan", "--dropout takes a number from 0 to 0.9, not 'nan'");
    check_set("period-min", "soon", "--period-min takes a duration such as 90s, 15m, 3h, 2d, 1w or 2y, not 'soon'");
    check_set("resume", "perhaps", "--resume takes true or false, not 'perhaps'");
    check_set("seed", "-1", "--seed takes a whole number from 0 to 18446744073709551615, not '-1'");
    check_set("oracle", "1", "there is no training option 'oracle'");
}

/* Sets an option to a value just outside its range, and to nonsense. */
static void check_row(const lapse_option *option)
{
    lapse_train_options options = small_train_options(), before = options;
    char below[LP_NUMBER_SIZE], above[LP_NUMBER_SIZE];
    bool ranged = option->type == LAPSE_OPTION_INTEGER || option->type == LAPSE_OPTION_NUMBER ||
                  option->type == LAPSE_OPTION_DURATION;
    double step = option->type == LAPSE_OPTION_INTEGER ? 1 : option->maximum / 2;
    lp_number_text(option->minimum - step, below);
    lp_number_text(option->maximum + step, above);
    const char *const wrong[] = {
        ranged ? below : NULL, ranged ? above : NULL,
        option->type == LAPSE_OPTION_FILE || option->type == LAPSE_OPTION_TEXT ? NULL : "no such value"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (wrong[i] && lapse_train_options_set(&options, option->name, wrong[i], NULL) != LAPSE_ERROR_USAGE)
            fail_msg("--%s takes '%s'", option->name, wrong[i]);
    assert_memory_equal(&options, &before, sizeof options);
}

/* Every option: its texts, its default, values outside its range, and that get gives what set took. */
static void every_row_of_the_table(void **state)
{
    (void)state;
    lapse_option option;
    int count = 0;
    for (; lapse_train_option(count, &option); count++) {
        lapse_train_options options = small_train_options();
        char text[LP_OPTION_TEXT_SIZE], again[LP_OPTION_TEXT_SIZE];
        assert_true(option.help && strlen(option.help) > 10 && option.group);
        assert_true((option.initial == NULL) == (option.rule != NULL));
        assert_true((option.type == LAPSE_OPTION_CHOICE) == (option.choices != NULL));
        assert_true((option.type == LAPSE_OPTION_FLAG) == (option.placeholder == NULL));
        char most[LP_NUMBER_SIZE];
        bool small = option.type == LAPSE_OPTION_NUMBER && option.maximum < 3;
        const char *value = option.initial   ? option.initial
                            : option.choices ? option.choices[0]
                            : small          ? lp_number_text(option.maximum, most)
                                             : "3";
        if (lapse_train_options_set(&options, option.name, value, NULL) != LAPSE_OK)
            fail_msg("--%s does not take '%s'", option.name, value);
        assert_non_null(lapse_train_options_get(&options, option.name, text, sizeof text));
        assert_int_equal(lapse_train_options_set(&options, option.name, text, NULL), LAPSE_OK);
        assert_string_equal(lapse_train_options_get(&options, option.name, again, sizeof again), text);
        check_row(&option);
    }
    assert_true(count > 30);
    assert_null(lapse_train_options_get(&(lapse_train_options){0}, "oracle", (char[8]){0}, 8));
}

/* A value that does not fit is cut; nothing is written behind the buffer. */
static void short_buffers_are_not_exceeded(void **state)
{
    (void)state;
    lapse_train_options options = small_train_options();
    char text[12];
    small_set(&options, "encoding", "bochner");
    for (size_t size = 0; size < sizeof text; size++) {
        memset(text, '#', sizeof text);
        const char *got = lapse_train_options_get(&options, "encoding", text, size);
        if (size == 0)
            assert_null(got);
        else {
            assert_ptr_equal(got, text);
            assert_int_equal(strlen(text), size - 1 < 7 ? size - 1 : 7);
            assert_memory_equal(text, "bochner", strlen(text));
        }
        for (size_t i = size; i < sizeof text; i++)
            assert_int_equal(text[i], '#');
    }
}

/* A model for one task alone decides the task; a task that is given stays. */
static void models_of_one_task_choose_it(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = small_train_options();
    small_set(&options, "model", "transrec");
    assert_int_equal(options.model.task, LP_TASK_CLASSIFY);
    assert_int_equal(small_resolve(&options, dataset, NULL), LAPSE_OK);
    assert_int_equal(options.model.task, LP_TASK_RECOMMEND);
    options = small_train_options();
    assert_int_equal(lapse_train_options_set(&options, "model", "transrec", NULL), LAPSE_OK);
    assert_int_equal(lapse_train_options_set(&options, "task", "classify", NULL), LAPSE_OK);
    lapse_error error = {0};
    assert_int_equal(small_resolve(&options, dataset, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, "the model 'transrec' cannot be trained for the task classify");
    lapse_dataset_close(dataset);
}

static void check_option_error(const lapse_dataset *dataset, const lapse_train_options *options, const char *message)
{
    lapse_error error = {0};
    lapse_model *model = NULL;
    if (lapse_train(dataset, options, NULL, NULL, &model, &error) != LAPSE_ERROR_USAGE ||
        strcmp(error.message, message) != 0)
        fail_msg("'%s', should be '%s'", error.message, message);
    assert_null(model);
}

static void options_that_contradict(void **state)
{
    (void)state;
    static const struct {
        const char *name[3], *value[3], *message;
    } cases[] = {
        {{"heads"}, {"3"}, "heads (3) must divide dims (4)"},
        {{"period-min", "period-max"}, {"100", "10"}, "period-max (10 s) is shorter than period-min (100 s)"},
        {{"split-by"},
         {"column"},
         "the dataset has no split column: import it with --split-column COLUMN, or choose another --split-by rule"},
        {{"loss"}, {"bce"}, "the loss 'bce' belongs to the task recommend; classify uses softmax"},
        {{"model", "loss"},
         {"transrec", "softmax"},
         "the scores of transrec are distances, which the loss 'softmax' cannot compute: use bpr, bce, top1, bpr-max "
         "or "
         "top1-max"},
        {{"model", "item-output"},
         {"transrec", "separate"},
         "the items of transrec are points, the same before and after a translation: leave out --item-output separate"},
        {{"model", "item-output"},
         {"caser", "shared"},
         "the output vectors of caser are twice as wide as those of its input: leave out --item-output shared"},
        {{"task", "loss", "negatives-unseen"},
         {"recommend", "sampled-softmax", "true"},
         "all targets of a step share the negatives of sampled-softmax, so --negatives-unseen needs a loss that "
         "samples "
         "negatives for each target, such as bce"},
    };
    lapse_dataset *dataset = small_train_data(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_train_options options = small_train_options();
        for (int k = 0; k < 3 && cases[i].name[k]; k++)
            small_set(&options, cases[i].name[k], cases[i].value[k]);
        check_option_error(dataset, &options, cases[i].message);
    }
    lapse_train_options options = small_train_options();
    assert_int_equal(lapse_train_options_set(&options, "model", "markov", NULL), LAPSE_OK);
    assert_int_equal(lapse_train_options_set(&options, "heads", "1", NULL), LAPSE_OK);
    check_option_error(dataset, &options, "the model 'markov' has no option --heads");
    lapse_dataset_close(dataset);
}

static void defaults_come_from_the_data(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options;
    lp_train_options_default(&options);
    assert_int_equal(small_resolve(&options, dataset, NULL), LAPSE_OK);
    /* Events come some 100 s apart, in sequences of up to 14. */
    assert_true(small_get_number(&options, "period-min") > 0.5 && small_get_number(&options, "period-min") < 50);
    assert_true(small_get_number(&options, "period-max") > 500 && small_get_number(&options, "period-max") < 10000);
    assert_true(options.model.context >= 8 && options.model.context <= 13);
    assert_int_equal(options.model.dims, 64);
    assert_int_equal(small_get_number(&options, "periods"), 16);
    assert_int_equal(small_get_number(&options, "harmonics"), 5);
    assert_int_equal(options.run.batch, 8);
    assert_true(options.run.learning_rate == 0.002 && options.run.ema_decay == 0 && options.run.patience == 10);
    assert_true(options.run.threads >= 1 && options.model.dropout == 0.3 && small_get_number(&options, "blocks") == 2 &&
                small_get_number(&options, "heads") == 2);
    lapse_train_options again = options;
    assert_int_equal(small_resolve(&again, dataset, NULL), LAPSE_OK);
    assert_memory_equal(&again, &options, sizeof options); /* what is resolved stays */
    lp_train_options_default(&options);
    small_set(&options, "encoding", "bochner");
    assert_int_equal(small_resolve(&options, dataset, NULL), LAPSE_OK);
    assert_int_equal(small_get_number(&options, "periods"), 50);
    lapse_dataset_close(dataset);
}

static void check_size(const lapse_dataset *dataset, const char *const set[6], const char *size, int dims, int blocks,
                       int heads)
{
    lapse_train_options options;
    lapse_error error = {0};
    lp_train_options_default(&options);
    for (int i = 0; i < 6 && set[i]; i += 2)
        assert_int_equal(lapse_train_options_set(&options, set[i], set[i + 1], NULL), LAPSE_OK);
    if (small_resolve(&options, dataset, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    char got[64], wanted[64], chosen[16];
    snprintf(got, sizeof got, "%s, %d dims, %g blocks, %g heads",
             lapse_train_options_get(&options, "size", chosen, sizeof chosen), options.model.dims,
             small_get_number(&options, "blocks"), small_get_number(&options, "heads"));
    snprintf(wanted, sizeof wanted, "%s, %d dims, %d blocks, %d heads", size, dims, blocks, heads);
    assert_string_equal(got, wanted);
    bool next = strstr(lapse_train_options_reason(&options, "size"), "times the operations") != NULL;
    assert_int_equal(next, strcmp(size, "large") != 0 && !(set[0] && strcmp(set[0], "dims") == 0 && set[4]));
}

/* The size sets dims, blocks and heads, and what the caller has set stays. */
static void sizes(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1),
                  *items = small_dataset_spelled("abcd bcda cdab dabc efgh fghe ghef hefg", NULL);
    check_size(dataset, (const char *const[6]){NULL}, "base", 64, 2, 2);
    check_size(dataset, (const char *const[6]){"size", "small"}, "small", 32, 1, 2);
    check_size(dataset, (const char *const[6]){"size", "large"}, "large", 128, 3, 8);
    check_size(dataset, (const char *const[6]){"size", "large", "dims", "20"}, "large", 20, 3, 4);
    check_size(dataset, (const char *const[6]){"size", "large", "blocks", "2"}, "large", 128, 2, 8);
    check_size(dataset, (const char *const[6]){"dims", "7", "blocks", "1", "heads", "1"}, "base", 7, 1, 1);
    check_size(dataset, (const char *const[6]){"model", "sasrec", "size", "large"}, "large", 128, 2, 1);
    check_size(items, (const char *const[6]){"task", "recommend"}, "small", 64, 2, 2);
    check_size(items, (const char *const[6]){"task", "recommend", "size", "base"}, "base", 128, 3, 2);
    lapse_dataset_close(dataset);
    lapse_dataset_close(items);
}

/* The size of this run wins over the sizes of an earlier one, whose own options are kept. */
static void size_of_an_earlier_run(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = small_train_options();
    small_set(&options, "blocks", "3");
    options.run.epochs = 1;
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    for (int large = 0; large < 2; large++) {
        lp_train_options_default(&options);
        if (large)
            assert_int_equal(lapse_train_options_set(&options, "size", "large", NULL), LAPSE_OK);
        assert_int_equal(lapse_train_options_like(&options, model, dataset, NULL), LAPSE_OK);
        assert_int_equal(small_resolve(&options, dataset, NULL), LAPSE_OK);
        assert_int_equal(options.model.dims, large ? 128 : 4);
        assert_int_equal(small_get_number(&options, "blocks"), 3);
        assert_int_equal(small_get_number(&options, "heads"), large ? 8 : 2);
    }
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------- odd datasets ---- */

static void train_whatever(const lapse_dataset *dataset)
{
    for (int e = 0; lp_encodings[e]; e++) {
        lapse_train_options options;
        lp_train_options_default(&options);
        small_set(&options, "encoding", lp_encodings[e]->name);
        options.run.epochs = 1;
        options.model.dims = 4;
        options.run.threads = 1;
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
    lp_train_options_default(&options);
    assert_int_equal(small_resolve(&options, dataset, NULL), LAPSE_OK);
    assert_true(small_get_number(&options, "period-min") == 1 && small_get_number(&options, "period-max") == 1000);
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
    check_train_fails("abcabc", NULL, LAPSE_ERROR_USAGE,
                      "1 sequence cannot be split into train, valid and test: at least 3 are required, or a split "
                      "column in the source");
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
        small_set(&options, "model", "markov");
        small_set(&options, "split-by", cases[c].rule);
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
    small_set(&options, "model", "markov");
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
    assert_int_equal(one.classes[0].cases, other.classes[0].cases);
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
        small_set(&options, "model", models[m]);
        small_set(&options, "encoding", m < 3 ? "mercer" : "bochner-invcdf");
        small_set_number(&options, "hidden", 3);
        small_set_number(&options, "frequency-samples", 2);
        options.run.epochs = 1;
        small_set(&options, "checkpoint", small_path("checkpoint"));
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
        small_set(&options, "model", m == 1 ? "markov" : "attention");
        small_set(&options, "encoding", m < 2 ? "mercer" : "bochner-normal");
        small_set_number(&options, "frequency-samples", 2);
        options.run.epochs = 1;
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
        cmocka_unit_test(values_out_of_range),
        cmocka_unit_test(every_row_of_the_table),
        cmocka_unit_test(short_buffers_are_not_exceeded),
        cmocka_unit_test(models_of_one_task_choose_it),
        cmocka_unit_test(options_that_contradict),
        cmocka_unit_test(defaults_come_from_the_data),
        cmocka_unit_test(sizes),
        cmocka_unit_test(size_of_an_earlier_run),
        cmocka_unit_test(odd_datasets),
        cmocka_unit_test(datasets_too_small),
        cmocka_unit_test(the_rule_is_kept),
        cmocka_unit_test(what_cannot_be_evaluated),
        cmocka_unit_test(kinds_go_by_name),
        cmocka_unit_test(train_out_of_memory),
        cmocka_unit_test(evaluate_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
