/* test_train.c: training: the same bits whatever the threads and however often it was stopped; the best parameters kept; and
 * what was learned. */
#include "support/small_data.h"
#include "support/small_train.h"
#include "train/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int remove_files(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

static void save_and_free(lapse_model *model, const char *name)
{
    lapse_error error = {0};
    if (lapse_model_save(model, small_path(name), &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lapse_model_free(model);
}

static bool files_equal(const char *a, const char *b)
{
    lp_buffer first = small_file_read(small_path(a)), second = small_file_read(small_path(b));
    bool same = first.size == second.size && memcmp(first.data, second.data, first.size) == 0;
    lp_buffer_clear(&first);
    lp_buffer_clear(&second);
    return same;
}

/* ------------------------------------------------------------------------------------------------ same bits -- */

static void threads_change_nothing(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    for (int e = 0; lp_encodings[e]; e++) {
        lapse_train_options options = small_train_options();
        small_set(&options, "encoding", lp_encodings[e]->name);
        small_set_number(&options, "blocks", 1 + e % 3);
        small_set_number(&options, "hidden", 5);
        small_set_number(&options, "frequency-samples", 2);
        save_and_free(small_train(dataset, &options, NULL, NULL), "one");
        for (options.run.threads = 1; options.run.threads <= 4; options.run.threads++) {
            save_and_free(small_train(dataset, &options, NULL, NULL), "other");
            if (!files_equal("one", "other"))
                fail_msg("%s: %d threads give other bytes than one", lp_encodings[e]->name, options.run.threads);
        }
    }
    lapse_dataset_close(dataset);
}

static void seeds_and_shards_change_the_result(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = small_train_options();
    save_and_free(small_train(dataset, &options, NULL, NULL), "one");
    options.run.seed = 2;
    save_and_free(small_train(dataset, &options, NULL, NULL), "other");
    assert_false(files_equal("one", "other"));
    options.run.seed = 1;
    options.run.shards = 4;
    save_and_free(small_train(dataset, &options, NULL, NULL), "other");
    assert_false(files_equal("one", "other"));
    lapse_dataset_close(dataset);
}

/* --------------------------------------------------------------------------------------- stop and resume ----- */

/* Stops after a number of reports; 0: never. Counts them. */
typedef struct stopper {
    int calls, stop_after, steps;
} stopper;

static bool stop_after(const lapse_progress *progress, void *context)
{
    stopper *this = context;
    this->steps += !progress->epoch_end;
    return ++this->calls != this->stop_after;
}

/* Stops every `every` reports and goes on, until it has run to its end. */
static void train_in_parts(const lapse_dataset *dataset, lapse_train_options options, int every, const char *name)
{
    unlink(options.run.checkpoint);
    options.run.resume = true;
    for (int part = 0; part < 200; part++) {
        stopper stop = {.stop_after = every};
        options.run.threads = 1 + part % 2;
        lapse_model *model = small_train(dataset, &options, stop_after, &stop);
        if (stop.calls < every || every == 0) {
            save_and_free(model, name);
            return;
        }
        lapse_model_free(model);
    }
    fail_msg("stopped every %d reports it never ends", every);
}

/* The initial state names an encoding other than the default, whose run has an average of parameters too; or "when": a second network. */
static void stopping_anywhere_changes_nothing(void **state)
{
    lapse_dataset *dataset = small_train_data(2);
    lapse_train_options options = small_train_options();
    stopper count = {0};
    bool when = *state && strcmp(*state, "when") == 0;
    if (when)
        small_set(&options, "when", "true");
    else
        small_set(&options, "encoding", *state ? *state : "mercer");
    small_set_number(&options, "hidden", 5);
    small_set_number(&options, "frequency-samples", 2);
    options.run.ema_decay = *state ? 0.6 : 0;
    save_and_free(small_train(dataset, &options, stop_after, &count), "whole");
    assert_true(count.calls > 9 && count.steps == count.calls - (when ? 6 : 3));
    small_set(&options, "checkpoint", small_path("checkpoint"));
    for (int every = 1; every <= count.calls + 1; every += small_effort(1, 3)) {
        /* A checkpoint at every step, or only where it was stopped. */
        options.run.checkpoint_seconds = every % 2 ? 0 : 1e9;
        train_in_parts(dataset, options, every, "parts");
        if (!files_equal("whole", "parts"))
            fail_msg("stopped every %d reports the file differs", every);
    }
    lapse_dataset_close(dataset);
}

static void resuming_what_is_finished(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(2);
    lapse_train_options options = small_train_options();
    small_set(&options, "checkpoint", small_path("checkpoint"));
    options.run.resume = true;
    unlink(options.run.checkpoint);
    stopper first = {0}, again = {0};
    save_and_free(small_train(dataset, &options, stop_after, &first), "one"); /* nothing to resume: it starts */
    save_and_free(small_train(dataset, &options, stop_after, &again), "other");
    assert_true(files_equal("one", "other"));
    assert_true(first.steps > 3);
    assert_int_equal(again.steps, 0);
    /* Without resume the checkpoint is not looked at. */
    options.run.resume = false;
    again = (stopper){0};
    lapse_model_free(small_train(dataset, &options, stop_after, &again));
    assert_int_equal(again.steps, first.steps);
    lapse_dataset_close(dataset);
}

/* A run stopped at its first step gives a model that answers. */
static void stopped_at_once(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(2);
    lapse_train_options options = small_train_options();
    stopper stop = {.stop_after = 1};
    lapse_model *model = small_train(dataset, &options, stop_after, &stop);
    assert_int_equal(stop.calls, 1);
    assert_string_equal(lp_model_property_find(model, "score.epoch"), "0");
    assert_string_equal(lp_model_property_find(model, "run.status"), "stopped");
    lapse_evaluate_options evaluate;
    lapse_evaluate_options_default(&evaluate);
    evaluate.split = "valid";
    lapse_scores scores;
    assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
    assert_true(strtod(lp_model_property_find(model, "score.valid.accuracy"), NULL) == scores.accuracy);
    lapse_scores_clear(&scores);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static void check_resume_fails(const lapse_dataset *dataset, const lapse_train_options *options, lapse_status wanted,
                               const char *message)
{
    lapse_model *model = NULL;
    lapse_error error = {0};
    if (lapse_train(dataset, options, NULL, NULL, &model, &error) != wanted || strcmp(error.message, message) != 0)
        fail_msg("'%s', should be '%s'", error.message, message);
    assert_null(model);
    assert_string_equal(error.file, options->run.checkpoint);
}

#define ANOTHER(difference)                                                                                           \
    "this checkpoint is of another run: " difference "; give the same data and options, or remove the checkpoint to " \
    "start anew"

static void checkpoints_of_other_runs(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(2), *other = small_train_data(3);
    lapse_train_options options = small_train_options(), changed;
    small_set(&options, "checkpoint", small_path("checkpoint"));
    small_set_number(&options, "period-min", 10);
    small_set_number(&options, "period-max", 1000);
    lapse_model_free(small_train(dataset, &options, NULL, NULL));
    options.run.resume = true;
    changed = options;
    changed.model.dims = 8;
    check_resume_fails(dataset, &changed, LAPSE_ERROR_USAGE, ANOTHER("dims was '4' and is now '8'"));
    changed = options;
    small_set(&changed, "encoding", "bochner");
    check_resume_fails(dataset, &changed, LAPSE_ERROR_USAGE, ANOTHER("encoding was 'mercer' and is now 'bochner'"));
    changed = options;
    changed.run.learning_rate = 0.5;
    check_resume_fails(dataset, &changed, LAPSE_ERROR_USAGE,
                       ANOTHER("train.learning_rate was '0.02' and is now '0.5'"));
    changed = options;
    changed.run.seed = 9;
    check_resume_fails(dataset, &changed, LAPSE_ERROR_USAGE, ANOTHER("seed was '1' and is now '9'"));
    changed = options;
    changed.run.epochs = 4;
    check_resume_fails(dataset, &changed, LAPSE_ERROR_USAGE, ANOTHER("train.epochs was '3' and is now '4'"));
    changed = options;
    changed.run.shards = 4;
    check_resume_fails(dataset, &changed, LAPSE_ERROR_USAGE, ANOTHER("train.shards was '3' and is now '4'"));
    lapse_model *model = NULL;
    lapse_error error;
    assert_int_equal(lapse_train(other, &options, NULL, NULL, &model, &error), LAPSE_ERROR_USAGE);
    assert_non_null(strstr(error.message, "this checkpoint is of another run: dataset.fingerprint was '"));
    /* How many threads work on it, and how often it is saved, is no difference. */
    changed = options;
    changed.run.threads = 3;
    changed.run.checkpoint_seconds = 100;
    lapse_model_free(small_train(dataset, &changed, NULL, NULL));
    lapse_dataset_close(dataset);
    lapse_dataset_close(other);
}

#define FOREIGN "this file is not a checkpoint, and a checkpoint would overwrite it; set another --checkpoint FILE"

/* Puts a file of another program at the path of the checkpoint in the middle of a run. */
static bool put_another_file(const lapse_progress *progress, void *context)
{
    (void)progress;
    small_file_write(context, "notes", 5);
    return true;
}

static void check_holds_notes(const char *path)
{
    lp_buffer found = small_file_read(path);
    assert_int_equal(found.size, 5);
    assert_memory_equal(found.data, "notes", 5);
    lp_buffer_clear(&found);
}

/* The library refuses them too, before the first step and in the middle of a run, and whether or not it would save. */
static void checkpoints_replace_no_other_file(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(2);
    lapse_train_options options = small_train_options();
    lapse_model *model = NULL;
    lapse_trainer *trainer = NULL;
    lapse_error error = {0};
    small_set(&options, "checkpoint", small_path("checkpoint"));
    small_file_write(options.run.checkpoint, "notes", 5);
    for (int seldom = 0; seldom < 2; seldom++) {
        options.run.checkpoint_seconds = seldom ? 1e9 : 0;
        assert_int_equal(lapse_trainer_new(dataset, &options, &trainer, &error), LAPSE_ERROR_USAGE);
        assert_string_equal(error.message, FOREIGN);
        assert_string_equal(error.file, options.run.checkpoint);
        assert_null(trainer);
        check_holds_notes(options.run.checkpoint);
    }
    unlink(options.run.checkpoint);
    small_set(&options, "checkpoint", small_path("model"));
    unlink(options.run.checkpoint);
    options.run.checkpoint_seconds = 1e9;
    save_and_free(small_train(dataset, &options, NULL, NULL), "model");
    check_resume_fails(dataset, &options, LAPSE_ERROR_USAGE, FOREIGN);
    unlink(options.run.checkpoint);
    options.run.checkpoint_seconds = 0;
    char *path = options.run.checkpoint;
    assert_int_equal(lapse_train(dataset, &options, put_another_file, path, &model, &error), LAPSE_ERROR_USAGE);
    assert_string_equal(error.message, FOREIGN);
    check_holds_notes(path);
    unlink(path);
    /* A checkpoint is replaced, by another run too. */
    lapse_model_free(small_train(dataset, &options, NULL, NULL));
    options.run.seed = 7;
    lapse_model_free(small_train(dataset, &options, NULL, NULL));
    unlink(path);
    lapse_dataset_close(dataset);
}

static void damaged_checkpoints(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(2);
    lapse_train_options options = small_train_options();
    small_set(&options, "checkpoint", small_path("checkpoint"));
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    options.run.resume = true;
    lp_buffer bytes = small_file_read(options.run.checkpoint);
    bytes.data[bytes.size / 2] ^= 4;
    small_file_write(options.run.checkpoint, bytes.data, bytes.size);
    check_resume_fails(dataset, &options, LAPSE_ERROR_FORMAT,
                       "this is not a whole Lapse model: its checksum does not match; it was edited or damaged");
    small_file_write(options.run.checkpoint, bytes.data, bytes.size - 5);
    check_resume_fails(dataset, &options, LAPSE_ERROR_FORMAT,
                       "this is not a whole Lapse model: a tensor lies outside the file; was it cut off?");
    small_file_write(options.run.checkpoint, "", 0);
    check_resume_fails(dataset, &options, LAPSE_ERROR_FORMAT,
                       "this is not a whole Lapse model: it is shorter than 8 bytes");
    /* A model is no checkpoint. */
    save_and_free(model, "checkpoint");
    check_resume_fails(dataset, &options, LAPSE_ERROR_FORMAT,
                       "this is not a checkpoint that can be used: 'run.state' is missing or wrong");
    unlink(options.run.checkpoint);
    lp_buffer_clear(&bytes);
    lapse_dataset_close(dataset);
}

/* Counts that no run can have, in a file that is whole. */
static void impossible_checkpoints(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(2);
    lapse_train_options options = small_train_options();
    lp_trainer trainer, fresh;
    assert_int_equal(lp_trainer_init(&trainer, dataset, &options, NULL), LAPSE_OK);
    for (int i = 0; i < 4; i++) {
        bool found;
        lapse_error error = {0};
        trainer.state =
            (lp_trainer_state){.window = i == 1 ? -1 : 0, .targets = i == 2 ? -7 : 0, .step = i == 3 ? UINT64_MAX : 0};
        assert_int_equal(lp_checkpoint_save(&trainer, small_path("checkpoint"), &error), LAPSE_OK);
        assert_int_equal(lp_trainer_init(&fresh, dataset, &options, NULL), LAPSE_OK);
        lapse_status status = lp_checkpoint_load(&fresh, small_path("checkpoint"), &found, &error);
        assert_int_equal(status, i == 0 ? LAPSE_OK : LAPSE_ERROR_FORMAT);
        if (i > 0)
            assert_string_equal(error.message,
                                "this is not a checkpoint that can be used: 'run.state' is missing or wrong");
        lp_trainer_clear(&fresh);
    }
    lp_trainer_clear(&trainer);
    lapse_dataset_close(dataset);
}

/* --------------------------------------------------------------------------------- stopping early, the best -- */

typedef struct record {
    int epochs;
    double scores[100];
    lapse_progress last;
    int64_t step;
    bool orderly;
} record;

static bool keep_record(const lapse_progress *progress, void *context)
{
    record *this = context;
    this->orderly = this->orderly && progress->epoch == this->epochs + 1 && progress->loss > 0 &&
                    progress->seconds >= 0 && progress->events_per_second > 0 && progress->epoch_seconds > 0 &&
                    progress->seconds_left >= 0 && progress->seconds_left <= progress->seconds_left_most;
    if (progress->epoch_end) { /* best + patience at least, all epochs at most */
        int least = progress->best_epoch + 3 < progress->epochs ? progress->best_epoch + 3 : progress->epochs;
        double whole = progress->epoch_seconds;
        this->orderly = this->orderly && progress->newest.epoch == progress->epoch &&
                        progress->newest.score == progress->score && progress->newest.loss == progress->loss &&
                        fabs(progress->seconds_left - (least - progress->epoch) * whole) < 1e-9 &&
                        fabs(progress->seconds_left_most - (progress->epochs - progress->epoch) * whole) < 1e-9;
    }
    if (progress->epoch_end) {
        this->orderly = this->orderly && this->step == progress->steps && progress->step == progress->steps;
        this->scores[this->epochs++] = progress->score;
        this->step = 0;
    } else {
        this->orderly = this->orderly && progress->step == ++this->step && progress->step <= progress->steps;
    }
    this->last = *progress;
    return true;
}

static void the_best_is_kept(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        lapse_dataset *dataset = small_train_data(seed);
        lapse_train_options options = small_train_options();
        options.run.learning_rate = 0.05;
        options.run.epochs = 40;
        options.run.patience = 3;
        options.run.seed = seed;
        record seen = {.orderly = true};
        lapse_model *model = small_train(dataset, &options, keep_record, &seen);
        int best = 0;
        for (int i = 1; i < seen.epochs; i++)
            best = seen.scores[i] < seen.scores[best] ? i : best;
        assert_true(seen.orderly);
        assert_int_equal(seen.last.best_epoch, best + 1);
        assert_true(seen.last.best_score == seen.scores[best]);
        assert_int_equal(seen.epochs, best + 1 + 3 < 40 ? best + 1 + 3 : 40);
        char text[40];
        snprintf(text, sizeof text, "%d", best + 1);
        assert_string_equal(lp_model_property_find(model, "score.epoch"), text);
        assert_string_equal(lp_model_property_find(model, "run.status"), "complete");
        assert_true(strtod(lp_model_property_find(model, "score.valid.log_loss"), NULL) == seen.scores[best]);
        /* And what is kept does score that. */
        lapse_evaluate_options evaluate;
        lapse_evaluate_options_default(&evaluate);
        evaluate.split = "valid";
        lapse_scores scores;
        assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
        assert_true(scores.log_loss == seen.scores[best]);
        assert_string_equal(scores.split, "valid");
        assert_string_equal(scores.target_time, "known");
        lapse_scores_clear(&scores);
        lapse_model_free(model);
        lapse_dataset_close(dataset);
    }
}

static void when_it_is_done(void **state)
{
    (void)state;
    lp_trainer trainer = {.options = {.run = {.epochs = 10, .patience = 3}}};
    assert_false(lp_trainer_done(&trainer));
    trainer.state = (lp_trainer_state){.epoch = 5, .best_epoch = 3};
    assert_false(lp_trainer_done(&trainer));
    trainer.state = (lp_trainer_state){.epoch = 6, .best_epoch = 3};
    assert_true(lp_trainer_done(&trainer));
    trainer.state = (lp_trainer_state){.epoch = 6, .best_epoch = 3, .window = 2}; /* in the middle of an epoch */
    assert_false(lp_trainer_done(&trainer));
    trainer.state = (lp_trainer_state){.epoch = 10, .best_epoch = 10};
    assert_true(lp_trainer_done(&trainer));
}

/* A score that is only as good as the best does not replace it; a better one does. */
static void the_first_of_equals_is_kept(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = small_train_options();
    small_set(&options, "select", "accuracy");
    lp_trainer trainer;
    assert_int_equal(lp_trainer_init(&trainer, dataset, &options, NULL), LAPSE_OK);
    size_t size = trainer.adam.size * sizeof *trainer.parameters;
    lp_trainer_score(&trainer);
    assert_int_equal(trainer.state.best_epoch, 1);
    trainer.parameters[0] += 1e-6f; /* other bits, the same score */
    lp_trainer_score(&trainer);
    assert_int_equal(trainer.state.epoch, 2);
    assert_true(trainer.state.score == trainer.state.best_score);
    assert_int_equal(trainer.state.best_epoch, 1);
    assert_memory_not_equal(trainer.model->parameters, trainer.parameters, size);
    trainer.state.best_score -= 0.01;
    lp_trainer_score(&trainer);
    assert_int_equal(trainer.state.best_epoch, 3);
    assert_memory_equal(trainer.model->parameters, trainer.parameters, size);
    lp_trainer_clear(&trainer);
    lapse_dataset_close(dataset);
}

/* The average of epochs 1 to n has equal weights until 1 / n is the weight of the newest. It is what is scored and kept; the
 * parameters that are trained do not change by it. */
static void the_average_is_kept(void **state)
{
    (void)state;
    enum { EPOCHS = 5, MOST = 1 << 16 };
    static const double weights[EPOCHS] = {1, 0.5, 1 / 3.0, 0.25, 0.25};
    static float wanted[MOST];
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = small_train_options();
    options.run.epochs = EPOCHS;
    lp_trainer trainer;
    assert_int_equal(lp_trainer_init(&trainer, dataset, &options, NULL), LAPSE_OK);
    options.run.ema_decay = 0.75;
    lp_trainer averaged;
    assert_int_equal(lp_trainer_init(&averaged, dataset, &options, NULL), LAPSE_OK);
    size_t count = trainer.adam.size, size = count * sizeof *wanted;
    assert_true(count <= MOST);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        lp_trainer *both[] = {&trainer, &averaged};
        for (int i = 0; i < 2; i++) {
            assert_int_equal(lp_trainer_epoch(both[i], NULL), LAPSE_OK);
            while (!lp_trainer_epoch_done(both[i]))
                lp_trainer_step(both[i]);
            both[i]->state.best_epoch = 0; /* so that the newest are kept */
            lp_trainer_score(both[i]);
        }
        assert_memory_equal(trainer.parameters, averaged.parameters, size);
        for (size_t i = 0; i < count; i++) {
            wanted[i] += (float)(weights[epoch] * ((double)trainer.parameters[i] - (double)wanted[i]));
            assert_float_equal(averaged.model->parameters[i], wanted[i], 1e-7 + 1e-6 * fabsf(wanted[i]));
        }
        assert_true(epoch == 0 ? averaged.state.score == trainer.state.score
                               : averaged.state.score != trainer.state.score);
    }
    lp_trainer_clear(&trainer);
    lp_trainer_clear(&averaged);
    lapse_dataset_close(dataset);
}

/* A loss that is no number is an error before the first score; after it, the end of the run with the best model. */
static void training_that_diverges(void **state)
{
    (void)state;
    lapse_dataset *dataset = small_train_data(1);
    lapse_train_options options = small_train_options();
    small_set(&options, "checkpoint", small_path("checkpoint"));
    options.run.resume = true;
    lp_trainer trainer;
    assert_int_equal(lp_trainer_init(&trainer, dataset, &options, NULL), LAPSE_OK);
    for (size_t i = 0; i < trainer.adam.size; i++) /* finite, so they can be saved, but the loss is not */
        trainer.parameters[i] = i % 2 ? 3e38f : -2e38f;
    for (int scored = 0; scored < 2; scored++) {
        lapse_model *model = NULL;
        lapse_error error = {0};
        stopper count = {0};
        trainer.state = (lp_trainer_state){.step = 4, .score = NAN, .best_score = NAN};
        const double metrics[LP_METRIC_COLUMNS] = {0.25, 0.5};
        if (scored)
            lp_history_add(trainer.model, 1.5, metrics);
        if (scored)
            trainer.state =
                (lp_trainer_state){.step = 4, .epoch = 1, .score = 0.25, .best_score = 0.25, .best_epoch = 1};
        assert_int_equal(lp_checkpoint_save(&trainer, options.run.checkpoint, NULL), LAPSE_OK);
        lapse_status status = lapse_train(dataset, &options, stop_after, &count, &model, &error);
        if (!scored) {
            assert_int_equal(status, LAPSE_ERROR_USAGE);
            assert_string_equal(error.message,
                                "training diverged in epoch 1: the loss is not finite. Try a smaller --learning-rate "
                                "than 0.02, or a smaller --clip");
            continue;
        }
        assert_int_equal(status, LAPSE_OK);
        assert_int_equal(count.calls, 0);
        assert_string_equal(lp_model_property_find(model, "score.epoch"), "1");
        assert_string_equal(lp_model_property_find(model, "run.status"), "diverged");
        for (size_t i = 0; i < model->network.graph.parameter_size; i++)
            assert_true(isfinite(model->parameters[i]));
        lapse_model_free(model);
    }
    lp_trainer_clear(&trainer);
    lapse_dataset_close(dataset);
}

/* --------------------------------------------------------------------------------------------- learning ------ */

static double test_accuracy(const lapse_model *model, const lapse_dataset *dataset, double *log_loss)
{
    lapse_evaluate_options options;
    lapse_evaluate_options_default(&options);
    options.bootstrap = 0;
    lapse_scores scores;
    lapse_error error = {0};
    if (lapse_evaluate(model, dataset, &options, &scores, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    double accuracy = scores.accuracy;
    *log_loss = scores.log_loss;
    lapse_scores_clear(&scores);
    return accuracy;
}

static void the_shop_is_learned(void **state)
{
    (void)state;
    small_skip_under_tools(); /* a minute there, and nothing new to see */
    lapse_dataset *dataset = small_dataset_shop(150, 120, 5);
    lapse_train_options options;
    lp_train_options_default(&options);
    small_set(&options, "model", "markov");
    double accuracy[2], loss[2];
    lapse_model *baseline = small_train(dataset, &options, NULL, NULL);
    accuracy[0] = test_accuracy(baseline, dataset, &loss[0]);
    lapse_model_free(baseline);
    small_set(&options, "model", "attention");
    options.model.dims = 16;
    options.model.context = 32;
    small_set_number(&options, "periods", 8);
    small_set_number(&options, "harmonics", 3);
    options.run.learning_rate = 0.01;
    options.run.epochs = 8;
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    accuracy[1] = test_accuracy(model, dataset, &loss[1]);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
    if (!(accuracy[1] > accuracy[0] + 0.05 && loss[1] < loss[0] - 0.1))
        fail_msg("accuracy %.3f, log-loss %.3f; the baseline has %.3f and %.3f", accuracy[1], loss[1], accuracy[0],
                 loss[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(seeds_and_shards_change_the_result),
        cmocka_unit_test(stopping_anywhere_changes_nothing),
        {"stopping_anywhere_with_two_networks", stopping_anywhere_changes_nothing, NULL, NULL, "when"},
        {"stopping_anywhere_with_draws_and_average", stopping_anywhere_changes_nothing, NULL, NULL,
         (char[]){"bochner-invcdf"}},
        cmocka_unit_test(resuming_what_is_finished),
        cmocka_unit_test(stopped_at_once),
        cmocka_unit_test(checkpoints_of_other_runs),
        cmocka_unit_test(checkpoints_replace_no_other_file),
        cmocka_unit_test(damaged_checkpoints),
        cmocka_unit_test(impossible_checkpoints),
        cmocka_unit_test(the_best_is_kept),
        cmocka_unit_test(when_it_is_done),
        cmocka_unit_test(the_first_of_equals_is_kept),
        cmocka_unit_test(the_average_is_kept),
        cmocka_unit_test(training_that_diverges),
        cmocka_unit_test(the_shop_is_learned),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
