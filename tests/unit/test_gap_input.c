/* test_gap_input.c: the gap of an event as an input of networks: its scale, the rule of its option, windows and sessions that begin
 * in the middle of a sequence, a shift of all times, and files. test_models.c and test_decoder.c train and query with it too. */
#include "model/id_map.h"
#include "model/model_file.h"
#include "support/small_data.h"
#include "support/small_model.h"
#include "support/small_train.h"
#include "evaluate/evaluator.h"
#include "model/field_statistics.h"

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

/* ------------------------------------------------------------------------------------------------- the scale ----- */

static void scale_comes_from_the_training_split(void **state)
{
    (void)state;
    const double time[] = {100, 104, 104, 120, /* */ 7, 8000, /* */ 50, 54};
    const int32_t type[] = {0, 1, 0, 1, 0, 1, 1, 0};
    const uint8_t split[] = {LP_SPLIT_TRAIN, LP_SPLIT_TRAIN, LP_SPLIT_TRAIN, LP_SPLIT_TRAIN,
                             LP_SPLIT_TEST,  LP_SPLIT_TEST,  LP_SPLIT_TRAIN, LP_SPLIT_VALID};
    lapse_dataset *dataset = small_dataset(3, (int[]){4, 2, 2}, time, type, 2, split);
    lp_gap_scale scale = {0};
    assert_int_equal(lp_gap_statistics(dataset, split, &scale, NULL), LAPSE_OK);
    /* Gaps of training events: 4, 0, 16. The smallest positive one is the offset. */
    const double logs[] = {log(8), log(4), log(20)};
    double mean = (logs[0] + logs[1] + logs[2]) / 3, squares = 0;
    for (int i = 0; i < 3; i++)
        squares += (logs[i] - mean) * (logs[i] - mean);
    assert_true(scale.offset == 4);
    assert_true(fabs(scale.mean - mean) < 1e-12 && fabs(scale.deviation - sqrt(squares / 3)) < 1e-12);
    assert_true(lp_model_standardize_gap(&scale, 16) == (float)((log(20) - scale.mean) / scale.deviation));
    assert_true(lp_model_standardize_gap(&scale, 0) == (float)((log(4) - scale.mean) / scale.deviation));
    assert_true(lp_model_standardize_gap(&scale, INFINITY) == 10 && isnan(lp_model_standardize_gap(&scale, NAN)));
    lapse_dataset_close(dataset);
}

/* Where no training event has a positive gap, the scale is still usable. */
static void scale_without_gaps(void **state)
{
    (void)state;
    const double time[] = {5, 5, 5, 9};
    const int32_t type[] = {0, 1, 0, 1};
    const uint8_t split[] = {LP_SPLIT_TRAIN, LP_SPLIT_TRAIN, LP_SPLIT_TRAIN, LP_SPLIT_TEST};
    for (int sequences = 1; sequences <= 4; sequences += 3) {
        lp_gap_scale scale = {0};
        lapse_dataset *dataset =
            small_dataset(sequences, sequences == 1 ? (int[]){4} : (int[]){1, 1, 1, 1}, time, type, 2, split);
        assert_int_equal(lp_gap_statistics(dataset, split, &scale, NULL), LAPSE_OK);
        assert_true(scale.offset == 1 && scale.mean == 0 && scale.deviation == 1);
        assert_true(lp_model_standardize_gap(&scale, 0) == 0);
        lapse_dataset_close(dataset);
    }
}

/* ------------------------------------------------------------------------------------------------ the option ----- */

static void default_follows_model_and_encoding(void **state)
{
    (void)state;
    static const struct {
        const char *model, *encoding, *given, *expected, *preset;
    } cases[] = {
        {"attention", "mercer", NULL, "on", NULL},
        {"attention", "bochner-normal", NULL, "on", NULL},
        {"attention", "position", NULL, "off", NULL},
        {"attention", "none", NULL, "off", NULL},
        {"lstm", NULL, NULL, "on", NULL},
        {"rnn-attention", NULL, NULL, "on", NULL},
        {"rmtpp", NULL, NULL, "on", NULL},
        {"timejoint", NULL, NULL, "off", NULL},
        {"sasrec", NULL, NULL, "off", NULL},
        {"gru4rec", NULL, NULL, "on", NULL},
        {"gru4rec", NULL, NULL, "off", "2016"},
        {"gru4rec", NULL, "on", "on", "2018"},
        {"lstm", NULL, "off", "off", NULL},
        {"attention", "mercer", "off", "off", NULL},
        {"attention", "position", "on", "on", NULL},
        {"lstm", NULL, "on", "on", NULL},
    };
    lapse_dataset *dataset = small_train_data(3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[LP_OPTION_TEXT_SIZE];
        lapse_train_options options = small_train_options();
        small_set(&options, "model", cases[i].model);
        if (cases[i].encoding)
            small_set(&options, "encoding", cases[i].encoding);
        if (cases[i].preset)
            small_set(&options, "preset", cases[i].preset);
        if (cases[i].given)
            small_set(&options, "gap-input", cases[i].given);
        assert_int_equal(small_resolve(&options, dataset, NULL), LAPSE_OK);
        assert_string_equal(lapse_train_options_get(&options, "gap-input", text, sizeof text), cases[i].expected);
        assert_true(lapse_train_options_apply(&options, "gap-input"));
    }
    lapse_dataset_close(dataset);
}

static void baselines_have_none(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(3);
    lapse_train_options options = small_train_options();
    small_set(&options, "model", "markov");
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    assert_false(lapse_train_options_apply(&options, "gap-input"));
    assert_null(lp_model_property_find(model, "gap_input"));
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

/* --------------------------------------------------------------------------------------- windows and sessions ---- */

/* A batch has the gap of each event in its sequence, also of the first event of a window. */
static void batches_have_the_gaps_of_sequences(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 4, 1, 1);
    small_config_gap(&config);
    lapse_model *model = small_model(&config, 1);
    lp_random random = lp_random_start(2, LP_PURPOSE_TEST, 720);
    lapse_dataset *dataset = small_dataset_random(&random, 9, 30, TYPES, 5, false);
    lp_id_map id_map;
    lp_batch batch;
    lp_windows windows = {0};
    lp_targets targets = {.dataset = dataset, .wanted = LP_SPLIT_COUNT, .context = 4};
    assert_int_equal(lp_id_map_init(&id_map, model, dataset, NULL), LAPSE_OK);
    assert_int_equal(lp_windows_training(&windows, &targets, 5, 1, NULL), LAPSE_OK);
    assert_int_equal(lp_batch_init(&batch, (int)windows.count, 4, 3, 0, NULL), LAPSE_OK);
    lp_batch_inputs inputs = lp_network_inputs(&model->network, &model->config);
    inputs.target_gap_input = true;
    assert_int_equal(lp_batch_init_inputs(&batch, inputs, NULL), LAPSE_OK);
    lp_batch_fill(&batch, &windows, 0, (int)windows.count, &targets, true, &id_map.columns);
    int inner = 0;
    const float *row = batch.gap;
    for (int64_t w = 0; w < windows.count; w++) {
        const lp_window *window = &windows.windows[w];
        for (int64_t i = window->first; i < window->first + window->count; i++, row += LP_GAP_COLUMNS) {
            bool first = i == (int64_t)dataset->start[window->sequence];
            assert_true(row[1] == (first ? 1 : 0));
            assert_true(row[0] ==
                        (first ? 0 : lp_model_standardize_gap(&config.gap, dataset->time[i] - dataset->time[i - 1])));
            inner += i == window->first && !first;
        }
    }
    for (int shard = 0; shard < batch.shard_count; shard++)
        for (int i = batch.shard_targets[shard]; i < batch.shard_targets[shard + 1]; i++) {
            int token = batch.shard_token[shard] + batch.target_position[i];
            const float *target = batch.target_gap_input + (ptrdiff_t)i * LP_GAP_COLUMNS;
            float wanted = lp_model_standardize_gap(&config.gap, batch.query_time[token] - batch.time[token]);
            assert_true(target[1] == 0 && fabsf(target[0] - wanted) < 1e-4F);
        }
    assert_true(inner > 0 && row == batch.gap + (ptrdiff_t)batch.tokens * LP_GAP_COLUMNS);
    lp_id_map_clear(&id_map);
    lp_windows_clear(&windows);
    lp_batch_clear(&batch);
    lapse_dataset_close(dataset);
    lapse_model_free(model);
}

static void append(lapse_session *session, const lapse_dataset *dataset, int64_t first, int64_t end, double shift)
{
    for (int64_t i = first; i < end; i++)
        assert_int_equal(lapse_session_append(session, dataset->time[i] + shift, names[dataset->type[i]], NULL),
                         LAPSE_OK);
}

/* Compares every case of an evaluation whose window is as long as the context, or begins with its sequence, with a session that
 * has the whole history. Returns the number of cases whose window was cut. */
static int compare_evaluation(const lapse_model *model, const lapse_dataset *dataset)
{
    int cut = 0;
    lp_evaluator evaluator;
    lapse_session *session = NULL;
    small_evaluate(&evaluator, model, dataset);
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    const lp_case *answer = evaluator.predictions[LP_TARGET_EVENT].cases;
    for (int64_t w = 0; w < evaluator.windows.count; w++) {
        const lp_window *window = &evaluator.windows.windows[w];
        int64_t start = (int64_t)dataset->start[window->sequence];
        for (int position = window->from; position < window->count; position++, answer++) {
            double probabilities[TYPES];
            int64_t target = window->first + position + 1;
            if (window->first > start && position + 1 < model->config.context)
                continue;
            lapse_session_clear(session);
            append(session, dataset, start, target, 0);
            assert_int_equal(lapse_session_predict(session, dataset->time[target], probabilities, NULL), LAPSE_OK);
            if (!(fabs(-log(probabilities[answer->target]) - answer->loss) < 1e-5))
                fail_msg("%s, context %d, event %lld: %.9g, evaluation says %.9g", model->config.row->name,
                         model->config.context, (long long)target, -log(probabilities[answer->target]), answer->loss);
            cut += window->first > start;
        }
    }
    lapse_session_free(session);
    lp_evaluator_clear(&evaluator);
    return cut;
}

static void evaluation_and_sessions_know_gaps_outside_the_window(void **state)
{
    (void)state;
    lp_random random = lp_random_start(6, LP_PURPOSE_TEST, 721);
    lapse_dataset *dataset = small_dataset_random(&random, 8, 40, TYPES, 5, false);
    for (int variant = 0; variant < 12; variant++) {
        lp_model_config config = small_config(lp_encodings[variant / 2], 8, 1 + variant % 2, 2);
        if (variant >= 10)
            config = small_config_of(lp_model_row_find("lstm"), 8);
        small_config_gap(&config);
        config.context = (int[]){1, 2, 5}[variant % 3];
        config.target_time = variant / 3 % 2;
        lapse_model *model = small_model(&config, (uint64_t)variant);
        assert_true(compare_evaluation(model, dataset) > 10);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* A model that sees one event: the event before it changes the prediction by the gap alone. */
static void only_the_gap_differs(void **state)
{
    (void)state;
    for (int gap_input = 0; gap_input < 2; gap_input++) {
        lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 1, 1);
        config.context = 1;
        if (gap_input)
            small_config_gap(&config);
        lapse_model *model = small_model(&config, 4);
        lapse_session *session = NULL;
        double answers[4][TYPES];
        static const double before[4] = {90, 99, 90, NAN}; /* times of the event before the one at 100 */
        assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
        for (int i = 0; i < 4; i++) {
            lapse_session_clear(session);
            if (!isnan(before[i]))
                assert_int_equal(lapse_session_append(session, before[i], names[i], NULL), LAPSE_OK);
            assert_int_equal(lapse_session_append(session, 100, "b", NULL), LAPSE_OK);
            assert_int_equal(lapse_session_predict(session, 103, answers[i], NULL), LAPSE_OK);
        }
        assert_memory_equal(answers[0], answers[2], sizeof *answers);
        for (int i = 1; i < 4; i += 2)
            if (memcmp(answers[0], answers[i], sizeof *answers) == 0 && gap_input)
                fail_msg("a gap of %g s has no effect", 100 - before[i]);
            else if (memcmp(answers[0], answers[i], sizeof *answers) != 0 && !gap_input)
                fail_msg("the event before the window has an effect");
        lapse_session_free(session);
        lapse_model_free(model);
    }
}

/* A shift of all times changes no bit. Times are whole seconds, so that their differences are exact. */
static void shift_changes_nothing(void **state)
{
    (void)state;
    enum { EVENTS = 30 };
    const double shift = 86400.0 * 365 * 40;
    double time[EVENTS], moved[EVENTS];
    int32_t type[EVENTS];
    lp_random random = lp_random_start(8, LP_PURPOSE_TEST, 722);
    for (int i = 0; i < EVENTS; i++) {
        time[i] = (i ? time[i - 1] : 1000) + lp_random_below(&random, 20);
        moved[i] = time[i] + shift;
        type[i] = (int32_t)lp_random_below(&random, TYPES);
    }
    lapse_dataset *one = small_dataset(1, (int[]){EVENTS}, time, type, TYPES, NULL);
    lapse_dataset *two = small_dataset(1, (int[]){EVENTS}, moved, type, TYPES, NULL);
    uint8_t split[EVENTS];
    memset(split, LP_SPLIT_TRAIN, sizeof split);
    lp_gap_scale scales[2];
    assert_int_equal(lp_gap_statistics(one, split, &scales[0], NULL), LAPSE_OK);
    assert_int_equal(lp_gap_statistics(two, split, &scales[1], NULL), LAPSE_OK);
    assert_memory_equal(&scales[0], &scales[1], sizeof *scales);
    for (int e = 0; lp_encodings[e]; e++) {
        lp_model_config config = small_config(lp_encodings[e], 8, 2, 2);
        small_config_gap(&config);
        config.context = 7;
        lapse_model *model = small_model(&config, 3);
        lapse_session *here = NULL, *there = NULL;
        assert_int_equal(lapse_session_new(model, &here, NULL), LAPSE_OK);
        assert_int_equal(lapse_session_new(model, &there, NULL), LAPSE_OK);
        for (int i = 0; i < EVENTS; i++) {
            double x[TYPES], y[TYPES];
            append(here, one, i, i + 1, 0);
            append(there, one, i, i + 1, shift);
            assert_int_equal(lapse_session_predict(here, time[i] + 5, x, NULL), LAPSE_OK);
            assert_int_equal(lapse_session_predict(there, time[i] + 5 + shift, y, NULL), LAPSE_OK);
            assert_memory_equal(x, y, sizeof x);
        }
        lapse_session_free(here);
        lapse_session_free(there);
        lapse_model_free(model);
    }
    lapse_dataset_close(one);
    lapse_dataset_close(two);
}

/* Training reads gaps: of an event's two possible successors, the gap before the event says which comes. */
static void training_uses_gaps(void **state)
{
    (void)state;
    enum { SEQUENCES = 200, LENGTH = 3 };
    double time[SEQUENCES * LENGTH];
    int32_t type[SEQUENCES * LENGTH];
    int lengths[SEQUENCES];
    lp_random random = lp_random_start(11, LP_PURPOSE_TEST, 723);
    for (int s = 0; s < SEQUENCES; s++) {
        bool late = lp_random_below(&random, 2);
        double *t = time + (ptrdiff_t)s * LENGTH;
        lengths[s] = LENGTH;
        t[0] = 1000;
        t[1] = t[0] + (late ? 1000 : 10) * (1 + lp_random_uniform(&random));
        t[2] = t[1] + 60;
        type[s * LENGTH] = type[s * LENGTH + 1] = 0;
        type[s * LENGTH + 2] = late ? 1 : 2;
    }
    lapse_dataset *dataset = small_dataset(SEQUENCES, lengths, time, type, 3, NULL);
    for (int gap_input = 0; gap_input < 2; gap_input++) {
        lapse_train_options options = small_train_options();
        small_set(&options, "model", "lstm"); /* it reads no other times */
        options.model.gap_input = gap_input;
        options.model.dims = 8;
        options.model.dropout = 0;
        options.run.epochs = 30;
        options.run.learning_rate = 0.05;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        lapse_evaluate_options evaluate;
        lapse_scores scores;
        lapse_evaluate_options_default(&evaluate);
        evaluate.split = "all";
        evaluate.bootstrap = 0;
        assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
        if (gap_input ? scores.log_loss > 0.1 : scores.log_loss < 0.3) /* without gaps: log(2) / 2 = 0.347 */
            fail_msg("log-loss %.4f with gaps %s", scores.log_loss, gap_input ? "on" : "off");
        lapse_scores_clear(&scores);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* ---------------------------------------------------------------------------------------------------- files ----- */

/* Saves the model with a property set to another value, or absent where value is NULL, and loads it. */
static lapse_status load_edited(const lp_model_config *config, const char *key, const char *value, lapse_model **loaded,
                                lapse_error *error)
{
    lapse_model *model = small_model(config, 2);
    assert_int_equal(lp_model_describe(model, NULL), LAPSE_OK);
    assert_non_null(lp_model_property_find(model, key));
    for (int i = 0; !value && i < model->property_count; i++)
        if (strcmp(model->property_name[i], key) == 0)
            model->property_name[i] = "another";
    if (value)
        assert_int_equal(lp_model_property_set(model, NULL, key, "%s", value), LAPSE_OK);
    assert_int_equal(lapse_model_save(model, small_path("edited"), NULL), LAPSE_OK);
    lapse_model_free(model);
    return lapse_model_load(small_path("edited"), loaded, error);
}

static void files_hold_the_scale(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
    } wrong[] = {{"gap_input", "maybe"},  {"gap.offset", NULL},   {"gap.offset", "0"},    {"gap.offset", "-1"},
                 {"gap.offset", "inf"},   {"gap.mean", NULL},     {"gap.mean", "nan"},    {"gap.mean", "many"},
                 {"gap.deviation", NULL}, {"gap.deviation", "0"}, {"gap.deviation", "-2"}};
    lp_model_config config = small_config(lp_encoding_find("mercer"), 4, 1, 1);
    small_config_gap(&config);
    config.gap.mean = 1.0 / 3;
    lapse_model *loaded = NULL;
    assert_int_equal(load_edited(&config, "gap_input", "on", &loaded, NULL), LAPSE_OK);
    assert_int_equal(loaded->config.gap_input, 1);
    assert_memory_equal(&loaded->config.gap, &config.gap, sizeof config.gap);
    lapse_model_free(loaded);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[120];
        lapse_error error = {0};
        snprintf(message, sizeof message, "this is not a Lapse model that can be used: '%s' is missing or wrong",
                 wrong[i].key);
        assert_int_equal(load_edited(&config, wrong[i].key, wrong[i].value, &loaded, &error), LAPSE_ERROR_FORMAT);
        assert_string_equal(error.message, message);
    }
}

/* A file without the key has no gap input. */
static void files_without_the_key(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 4, 1, 1);
    lapse_model *loaded = NULL;
    assert_int_equal(load_edited(&config, "gap_input", NULL, &loaded, NULL), LAPSE_OK);
    assert_int_equal(loaded->config.gap_input, 0);
    assert_null(lp_model_tensor_find(loaded, "gap.hidden.weight"));
    lapse_model_free(loaded);
}

static int teardown(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_comes_from_the_training_split),
        cmocka_unit_test(scale_without_gaps),
        cmocka_unit_test(default_follows_model_and_encoding),
        cmocka_unit_test(baselines_have_none),
        cmocka_unit_test(batches_have_the_gaps_of_sequences),
        cmocka_unit_test(evaluation_and_sessions_know_gaps_outside_the_window),
        cmocka_unit_test(only_the_gap_differs),
        cmocka_unit_test(shift_changes_nothing),
        cmocka_unit_test(training_uses_gaps),
        cmocka_unit_test(files_hold_the_scale),
        cmocka_unit_test(files_without_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
