/* test_train_fields.c: whole runs on events with fields: what is learned from each type of field, causality, evaluation
 * against sessions, files, and what does not fit. */
#include "simulate/simulate.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "support/table_text.h"
#include "train/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------- whole runs ---------- */

static lapse_dataset *import_table(const lp_buffer *text, bool action, bool device, bool price)
{
    static const char *const devices[] = {"device"}, *const prices[] = {"price"};
    lapse_import_options options = defaults();
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    options.event = "item";
    options.action = action ? "action" : NULL;
    options.categories = devices;
    options.category_count = device;
    options.numbers = prices;
    options.number_count = price;
    if (import_bytes(text->data, text->size, &options, 1000, &dataset, NULL, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return dataset;
}

/* What decides the next item ("x" or "y") of make_table: nothing (chance), or a field of the event before it. */
typedef enum decider { BY_CHANCE, BY_ACTION, BY_DEVICE, BY_PRICE } decider;

static lp_buffer make_table(decider by, int sequences, uint64_t seed)
{
    lp_buffer text = {0};
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 412);
    lp_buffer_print(&text, "user,time,item,action,device,price\n");
    for (int s = 0; s < sequences; s++) {
        bool next = lp_random_below(&random, 2);
        for (int i = 0; i < 12; i++) {
            uint32_t chance[] = {lp_random_below(&random, 2), lp_random_below(&random, 2), lp_random_below(&random, 2),
                                 lp_random_below(&random, 2)};
            lp_buffer_print(&text, "u%d,%d,%s,%s,%s,%s\n", s, 10 * i + (int)lp_random_below(&random, 9),
                            next ? "y" : "x", chance[BY_ACTION] ? "buy" : "view", chance[BY_DEVICE] ? "phone" : "",
                            chance[BY_PRICE] ? "1300.5" : "1299");
            next = chance[by];
        }
    }
    return text;
}

static lapse_model *learn(const lapse_dataset *dataset, const char *predict, int epochs)
{
    lapse_train_options options = small_train_options();
    options.model.dims = 8;
    small_set(&options, "predict", predict);
    options.run.epochs = epochs;
    options.model.gap_input = 0; /* sessions of these tests begin with a window, not with its sequence */
    return small_train(dataset, &options, NULL, NULL);
}

static double accuracy(const lapse_model *model, const lapse_dataset *dataset)
{
    lapse_evaluate_options options;
    lapse_scores scores;
    lapse_evaluate_options_default(&options);
    options.bootstrap = 0;
    assert_int_equal(lapse_evaluate(model, dataset, &options, &scores, NULL), LAPSE_OK);
    double result = scores.accuracy;
    lapse_scores_clear(&scores);
    return result;
}

static void each_type_of_field_is_learned_from(void **state)
{
    (void)state;
    for (int by = BY_ACTION; by <= BY_PRICE; by++) {
        lp_buffer text = make_table((decider)by, 150, 3);
        lapse_dataset *with = import_table(&text, by == BY_ACTION, by == BY_DEVICE, by == BY_PRICE);
        lapse_dataset *without = import_table(&text, false, false, false);
        lapse_model *sees = learn(with, "event", 12), *blind = learn(without, "event", 2);
        print_message("field %d: %.3f with it, %.3f without\n", by, accuracy(sees, with), accuracy(blind, without));
        assert_true(accuracy(sees, with) > 0.97);
        assert_true(accuracy(blind, without) < 0.7);
        lapse_model_free(sees);
        lapse_model_free(blind);
        lapse_dataset_close(with);
        lapse_dataset_close(without);
        lp_buffer_clear(&text);
    }
}

/* The losses of all cases of one target, with the dataset's fields as they are. */
static double *losses(const lapse_model *model, const lapse_dataset *dataset, lp_target target, int64_t *count)
{
    lp_evaluator evaluator;
    small_evaluate(&evaluator, model, dataset);
    double *out = lp_alloc((size_t)evaluator.case_count, sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < evaluator.case_count; i++)
        out[i] = evaluator.predictions[target].cases[i].loss;
    *count = evaluator.case_count;
    lp_evaluator_clear(&evaluator);
    return out;
}

/* Changing the fields of event `place` of every sequence changes no answer up to that event itself, but later ones. */
static void fields_of_the_predicted_event_do_not_matter(void **state)
{
    (void)state;
    lp_buffer text = make_table(BY_CHANCE, 20, 4);
    lapse_dataset *dataset = import_table(&text, true, true, true);
    lapse_train_options options = small_train_options();
    small_set(&options, "predict", "both");
    options.model.context = 20; /* one window a sequence */
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    for (int place = 0; place < 12; place++) {
        int64_t count, again;
        double *before = losses(model, dataset, LP_TARGET_EVENT, &count);
        for (int64_t i = place; i < dataset->event_count; i += 12) {
            ((int32_t *)dataset->fields[0].buffers[0])[i] ^= 1;
            ((int32_t *)dataset->fields[1].buffers[0])[i] ^= 1;
            ((double *)dataset->fields[2].buffers[0])[i] += 1;
        }
        double *after = losses(model, dataset, LP_TARGET_EVENT, &again);
        assert_int_equal(count, again);
        assert_int_equal(count, 20 * 11);
        for (int64_t i = 0; i < count; i++) {
            int64_t target_position = i % 11 + 1;
            if (target_position <= place ? before[i] != after[i]
                                         : target_position == place + 1 && before[i] == after[i])
                fail_msg("event %d, fields of event %d changed: %.17g and %.17g", (int)target_position, place,
                         before[i], after[i]);
        }
        lp_free(before);
        lp_free(after);
    }
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lp_buffer_clear(&text);
}

/* What an evaluation says of both targets is what sessions say, and what the public scores add up. */
static void evaluation_and_sessions_agree(void **state)
{
    (void)state;
    lp_buffer text = make_table(BY_ACTION, 20, 6);
    lapse_dataset *dataset = import_table(&text, true, true, true);
    lapse_model *model = learn(dataset, "both", 2);
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_string_equal(lapse_model_target(model, 0), "event");
    assert_string_equal(lapse_model_target(model, 1), "action");
    assert_null(lapse_model_target(model, 2));
    for (int target = 0; target < LP_TARGET_COUNT; target++) {
        lp_evaluator evaluator;
        small_evaluate(&evaluator, model, dataset);
        const lp_case *answer = evaluator.predictions[target].cases;
        double sum = 0;
        for (int64_t w = 0; w < evaluator.windows.count; w++) {
            const lp_window *window = &evaluator.windows.windows[w];
            lapse_session_clear(session);
            for (int place = 0; place < window->count; place++) {
                int64_t i = window->first + place;
                double probabilities[2];
                lapse_value values[] = {
                    {.text = lapse_dataset_category_name(dataset, 0, dataset->fields[0].category[i])},
                    {.text = lapse_dataset_category_name(dataset, 1, dataset->fields[1].category[i])},
                    {.number = dataset->fields[2].number[i]},
                };
                lapse_event event = {dataset->time[i], lapse_dataset_event_type_name(dataset, dataset->type[i]), values,
                                     3};
                assert_int_equal(lapse_session_append_event(session, &event, NULL), LAPSE_OK);
                if (place < window->from)
                    continue;
                assert_int_equal(lapse_session_predict_target(session, dataset->time[i + 1], lp_predict_names[target],
                                                              probabilities, NULL),
                                 LAPSE_OK);
                assert_int_equal(answer->target,
                                 target == LP_TARGET_EVENT ? dataset->type[i + 1] : dataset->fields[0].category[i + 1]);
                assert_true(fabs(answer->loss + log(probabilities[answer->target])) < 1e-5);
                sum += (answer++)->loss;
            }
        }
        assert_int_equal(answer - evaluator.predictions[target].cases, evaluator.case_count);
        lapse_evaluate_options options;
        lapse_scores scores;
        lapse_evaluate_options_default(&options);
        options.split = "all";
        options.target = lp_predict_names[target];
        assert_int_equal(lapse_evaluate(model, dataset, &options, &scores, NULL), LAPSE_OK);
        assert_string_equal(scores.target, lp_predict_names[target]);
        assert_string_equal(scores.classes[0].name, lapse_model_target_name(model, lp_predict_names[target], 0));
        assert_true(fabs(scores.log_loss - sum / (double)evaluator.case_count) < 1e-12);
        lapse_scores_clear(&scores);
        lp_evaluator_clear(&evaluator);
    }
    lapse_session_free(session);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lp_buffer_clear(&text);
}

/* Another import of the same data numbers categories otherwise: answers stay. */
static void categories_are_translated_by_name(void **state)
{
    (void)state;
    lp_buffer text = make_table(BY_ACTION, 20, 8), more = {0};
    lapse_dataset *dataset = import_table(&text, true, true, true), *other = NULL;
    lapse_model *model = learn(dataset, "both", 2);
    /* The same sequences after one in which what is rare is frequent. */
    const char *rows = strchr(text.data, '\n') + 1;
    lp_buffer_add(&more, text.data, (size_t)(rows - text.data));
    for (int i = 0; i < 200; i++)
        lp_buffer_print(&more, "first,%d,%s,%s,%s,1\n", i, lapse_dataset_event_type_name(dataset, 1),
                        lapse_dataset_category_name(dataset, 0, 1), lapse_dataset_category_name(dataset, 1, 1));
    lp_buffer_add(&more, rows, text.size - (size_t)(rows - text.data));
    other = import_table(&more, true, true, true);
    assert_string_equal(lapse_dataset_category_name(other, 0, 0), lapse_dataset_category_name(dataset, 0, 1));
    for (int target = 0; target < LP_TARGET_COUNT; target++) {
        int64_t count, longer;
        double *one = losses(model, dataset, (lp_target)target, &count);
        double *two = losses(model, other, (lp_target)target, &longer);
        assert_int_equal(longer - 199, count);
        for (int64_t i = 0; i < count; i++)
            assert_true(fabs(one[i] - two[i + 199]) < 1e-5);
        lp_free(one);
        lp_free(two);
    }
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
    lp_buffer_clear(&text);
    lp_buffer_clear(&more);
}

/* The law's best possible scores of items and actions: its chances of pairs, added here a second time. */
static void the_law_is_added_up(void **state)
{
    (void)state;
    lapse_simulate_options options;
    lapse_simulation *simulation = NULL;
    lapse_simulate_options_default(&options);
    options.sequences = 30;
    assert_int_equal(lapse_simulate(&options, &simulation, NULL), LAPSE_OK);
    assert_int_equal(lapse_simulation_save(simulation, small_path("shop.csv"), NULL), LAPSE_OK);
    lapse_import_options import = defaults();
    lapse_dataset *dataset = NULL;
    import.input = small_path("shop.csv");
    import.event = "item";
    import.action = "action";
    assert_int_equal(lapse_dataset_read(&import, &dataset, NULL, NULL), LAPSE_OK);
    lapse_model *model = learn(dataset, "both", 1);
    const lp_law *law = &simulation->law;
    double *chances = lp_alloc((size_t)law->type_count, sizeof *chances);
    for (int target = 0; target < LP_TARGET_COUNT; target++) {
        double sure = 0, tied = 0, loss = 0, cases = 0; /* right for sure, and where the best are equally likely */
        for (int64_t user = 0; user < simulation->sequence_count; user++) {
            for (int64_t i = simulation->start[user] + 1; i < simulation->start[user + 1]; i++, cases++) {
                const lp_law_type *truth = &law->types[simulation->type[i]];
                double of_truth = 0, highest = 0; /* of all others */
                lp_simulation_probabilities(simulation, user, i, chances);
                for (int32_t a = 0; a < law->type_count; a++) {
                    double sum = 0;
                    bool same = true;
                    for (int32_t b = 0; b < law->type_count; b++) {
                        same = target == LP_TARGET_EVENT ? strcmp(law->types[a].item, law->types[b].item) == 0
                                                         : strcmp(law->types[a].action, law->types[b].action) == 0;
                        sum += same ? chances[b] : 0;
                    }
                    same = target == LP_TARGET_EVENT ? strcmp(law->types[a].item, truth->item) == 0
                                                     : strcmp(law->types[a].action, truth->action) == 0;
                    of_truth = same ? sum : of_truth;
                    highest = same ? highest : fmax(highest, sum);
                }
                sure += of_truth > highest + 1e-12;
                tied += fabs(of_truth - highest) <= 1e-12;
                loss -= log(of_truth);
            }
        }
        lapse_evaluate_options evaluate;
        lapse_scores scores;
        lapse_evaluate_options_default(&evaluate);
        evaluate.split = "all";
        evaluate.target = lp_predict_names[target];
        assert_int_equal(lapse_simulation_evaluate(simulation, model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
        assert_string_equal(scores.target, lp_predict_names[target]);
        assert_int_equal(scores.cases, cases);
        assert_true(scores.accuracy > sure / cases - 1e-9 && scores.accuracy < (sure + tied) / cases + 1e-9);
        assert_true(fabs(scores.log_loss - loss / cases) < 1e-9);
        lapse_scores_clear(&scores);
    }
    lp_free(chances);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    lapse_simulation_free(simulation);
}

/* ---------------------------------------------------------------------------------------------- files --------- */

static void threads_files_and_resuming_do_not_show(void **state)
{
    (void)state;
    lp_buffer text = make_table(BY_PRICE, 30, 9);
    lapse_dataset *dataset = import_table(&text, true, true, true);
    lapse_train_options options = small_train_options();
    small_set(&options, "predict", "both");
    lapse_model *model = small_train(dataset, &options, NULL, NULL), *loaded = NULL;
    assert_int_equal(lapse_model_save(model, small_path("one"), NULL), LAPSE_OK);
    assert_int_equal(lapse_model_load(small_path("one"), &loaded, NULL), LAPSE_OK);
    assert_int_equal(lapse_model_save(loaded, small_path("two"), NULL), LAPSE_OK);
    small_files_same(small_path("one"), small_path("two"));
    lapse_model_free(model);
    lapse_model_free(loaded);
    options.run.threads = 3;
    model = small_train(dataset, &options, NULL, NULL);
    assert_int_equal(lapse_model_save(model, small_path("two"), NULL), LAPSE_OK);
    small_files_same(small_path("one"), small_path("two"));
    lapse_model_free(model);
    small_set(&options, "checkpoint", small_path("checkpoint"));
    options.run.epochs = 3;
    options.run.resume = true;
    for (int round = 0; round < 2; round++) { /* the second begins at the first one's last checkpoint */
        model = small_train(dataset, &options, NULL, NULL);
        assert_int_equal(lapse_model_save(model, small_path("two"), NULL), LAPSE_OK);
        small_files_same(small_path("one"), small_path("two"));
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
    lp_buffer_clear(&text);
}

/* Mean and deviation are of the training split alone, and of what is not missing. */
static void numbers_are_standardized_by_the_training_split(void **state)
{
    (void)state;
    static const char text[] = "user,time,item,price,part\na,1,x,2,train\na,2,y,,train\na,3,x,4,train\n"
                               "b,1,x,1000,valid\nb,2,y,,valid\nc,1,x,-1000,test\nc,2,y,7,test\n";
    lapse_import_options options = defaults();
    lapse_dataset *dataset = NULL;
    options.split = "part";
    options.numbers = (const char *const[]){"price"};
    options.number_count = 1;
    assert_int_equal(import_bytes(text, sizeof text - 1, &options, 1000, &dataset, NULL, NULL), LAPSE_OK);
    lapse_model *model = learn(dataset, "event", 1);
    assert_string_equal(lp_model_property_find(model, "field.0.mean"), "3");
    assert_string_equal(lp_model_property_find(model, "field.0.deviation"), "1");
    const lp_model_field *price = &model->config.fields[0];
    assert_true(lp_model_standardize(price, 3.5) == 0.5f);
    assert_true(lp_model_standardize(price, NAN) == 0);
    assert_true(lp_model_standardize(price, 1e300) == 10 && lp_model_standardize(price, -1e300) == -10);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------ what is refused --- */

static void refuse_train(const lapse_dataset *dataset, const char *model_name, const char *predict, const char *message)
{
    lapse_train_options options = small_train_options();
    lapse_model *model = NULL;
    lapse_error error = {0};
    small_set(&options, "model", model_name);
    small_set(&options, "predict", predict);
    assert_int_not_equal(lapse_train(dataset, &options, NULL, NULL, &model, &error), LAPSE_OK);
    assert_string_equal(error.message, message);
    assert_null(model);
}

static void refuse_evaluate(const lapse_model *model, const lapse_dataset *dataset, const char *target,
                            const char *message)
{
    lapse_evaluate_options options;
    lapse_scores scores;
    lapse_error error = {0};
    lapse_evaluate_options_default(&options);
    options.split = "all";
    options.target = target;
    assert_int_not_equal(lapse_evaluate(model, dataset, &options, &scores, &error), LAPSE_OK);
    assert_string_equal(error.message, message);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    lp_buffer text = make_table(BY_CHANCE, 20, 2), strange = {0};
    lapse_dataset *all = import_table(&text, true, true, true), *none = import_table(&text, false, false, false);
    lapse_dataset *some = import_table(&text, true, false, true);
    lapse_model *model = learn(all, "event", 1), *acts = learn(some, "action", 1);
    refuse_train(none, "attention", "action",
                 "the action cannot be predicted, because the dataset has none: import it with --action COLUMN");
    refuse_train(
        all, "markov", "both",
        "the model 'markov' predicts events only; to predict the action, import the data with --event 'action'");
    refuse_evaluate(
        model, none, NULL,
        "the model sees the action 'action' of every event, and the dataset does not have it; import it with "
        "--action 'action'");
    refuse_evaluate(model, some, NULL,
                    "the model sees the category 'device' of every event, and the dataset does not have it; import it "
                    "with --field 'device'");
    refuse_evaluate(model, all, "action", "the model does not predict 'action', but the event");
    refuse_evaluate(acts, some, "event", "the model does not predict 'event', but the action");
    lp_buffer_add(&strange, text.data, text.size);
    lp_buffer_print(&strange, "z,1,x,steal,phone,1\n");
    lapse_dataset *stolen = import_table(&strange, true, true, true);
    refuse_evaluate(model, stolen, NULL,
                    "the dataset has events with 'steal' in 'action', which the model does not know; leave them out of "
                    "the import");
    strange.size = text.size;
    lp_buffer_print(&strange, "z,1,x,,phone,1\n");
    lapse_dataset *idle = import_table(&strange, true, true, true);
    refuse_evaluate(model, idle, NULL,
                    "the dataset has events without 'action', and the model has never seen one; leave them out of the "
                    "import");
    lapse_dataset_close(stolen);
    lapse_dataset_close(idle);
    lapse_dataset_close(all);
    lapse_dataset_close(some);
    lapse_dataset_close(none);
    lapse_model_free(model);
    lapse_model_free(acts);
    lp_buffer_clear(&text);
    lp_buffer_clear(&strange);
}

/* With the n-th allocation failing, for every n: a clean refusal until nothing fails any more. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    lp_buffer text = make_table(BY_CHANCE, 20, 2);
    lapse_dataset *dataset = import_table(&text, true, true, true);
    lapse_train_options options = small_train_options();
    small_set(&options, "predict", "both");
    options.run.epochs = 1;
    int64_t n = 1;
    for (;; n++) {
        lapse_model *model = NULL, *loaded = NULL;
        lapse_session *session = NULL;
        lapse_error error = {0};
        lp_memory_fail_at(n);
        lapse_status status = lapse_train(dataset, &options, NULL, NULL, &model, &error);
        if (status == LAPSE_OK)
            status = lapse_model_save(model, small_path("one"), &error);
        if (status == LAPSE_OK)
            status = lapse_model_load(small_path("one"), &loaded, &error);
        if (status == LAPSE_OK)
            status = lapse_session_new(loaded, &session, &error);
        lp_memory_fail_at(0);
        lapse_session_free(session);
        lapse_model_free(model);
        lapse_model_free(loaded);
        if (status == LAPSE_OK)
            break;
        assert_int_equal(status, LAPSE_ERROR_MEMORY);
    }
    print_message("%lld allocations\n", (long long)n - 1);
    assert_true(n > 100);
    lapse_dataset_close(dataset);
    lp_buffer_clear(&text);
}

/* A file that is whole and has every property of the run, but a model with fewer categories: its parameters are fewer. */
static void checkpoints_with_other_categories(void **state)
{
    (void)state;
    lp_buffer text = make_table(BY_DEVICE, 6, 5), more = make_table(BY_DEVICE, 6, 5);
    for (int i = 0; i < 20; i++)
        lp_buffer_print(&more, "u0,500,x,view,tablet %d,1\n", i);
    lapse_dataset *fewer_data = import_table(&text, false, true, false),
                  *data = import_table(&more, false, true, false);
    lapse_train_options options = small_train_options();
    small_set(&options, "field-dims", "2");
    lp_trainer fewer, trainer;
    assert_int_equal(lp_trainer_init(&fewer, fewer_data, &options, NULL), LAPSE_OK);
    assert_int_equal(lp_trainer_init(&trainer, data, &options, NULL), LAPSE_OK);
    assert_true(fewer.adam.size < trainer.adam.size);
    for (int i = 0; i < trainer.model->property_count; i++)
        assert_int_equal(lp_model_property_set(fewer.model, NULL, trainer.model->property_name[i], "%s",
                                               trainer.model->property_value[i]),
                         LAPSE_OK);
    const char *path = small_path("checkpoint");
    lapse_model *own = trainer.model;
    trainer.model = trainer.trained = fewer.model;
    assert_int_equal(lp_checkpoint_save(&trainer, path, NULL), LAPSE_OK);
    trainer.model = trainer.trained = own;
    bool found;
    lapse_error error = {0};
    assert_int_equal(lp_checkpoint_load(&trainer, path, &found, &error), LAPSE_ERROR_FORMAT);
    assert_string_equal(error.message,
                        "this is not a checkpoint that can be used: its model does not have the sizes of this run's");
    lp_trainer_clear(&fewer);
    lp_trainer_clear(&trainer);
    lapse_dataset_close(fewer_data);
    lapse_dataset_close(data);
    lp_buffer_clear(&text);
    lp_buffer_clear(&more);
}

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_of_field_is_learned_from),
        cmocka_unit_test(fields_of_the_predicted_event_do_not_matter),
        cmocka_unit_test(evaluation_and_sessions_agree),
        cmocka_unit_test(categories_are_translated_by_name),
        cmocka_unit_test(the_law_is_added_up),
        cmocka_unit_test(threads_files_and_resuming_do_not_show),
        cmocka_unit_test(numbers_are_standardized_by_the_training_split),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(checkpoints_with_other_categories),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
