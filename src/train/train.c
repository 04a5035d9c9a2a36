/* train.c: lapse_trainer and lapse_train: the loop around the trainer with progress, checkpoints and early stopping. */
#include "base/clock.h"
#include "train/checkpoint.h"
#include "train/provenance.h"
#include "train/rank_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct run_watch {
    lapse_on_progress on_progress;
    void *context;
    double start, saved; /* clock at the start and at the newest checkpoint */
    int64_t events;      /* since the start */
    double epoch_end;    /* seconds from the start to the newest end of an epoch; 0: none yet */
    int64_t epoch_events;
    const char *status; /* how the run ended: "complete", "stopped" by the caller, or "diverged" */
} run_watch;

/* Seconds of a whole epoch with its validation. In the first epoch the validation is not known. */
static double epoch_seconds(const lp_trainer *trainer, const run_watch *watch, double seconds)
{
    bool ended = watch->epoch_end > 0;
    double events = (double)(ended ? watch->epoch_events : watch->events);
    return (ended ? watch->epoch_end : seconds) / fmax(events, 1) * (double)trainer->windows.targets;
}

/* Epochs of the run, if no later one is better. */
static int least_epochs(const lp_trainer *trainer)
{
    const lp_run_settings *run = &trainer->options.run;
    int best = trainer->state.best_epoch > 0 ? (int)trainer->state.best_epoch : 1; /* the first one is better */
    return best < run->epochs - run->patience ? best + run->patience : run->epochs;
}

/* Whether the network of times is still to be trained after the one that is. */
static bool times_follow(const lp_trainer *trainer)
{
    return trainer->model->times && trainer->trained == trainer->model;
}

/* Epochs that remain: of a network of times that follows, the least and the most that it can have. */
static double epochs_left(const lp_trainer *trainer, int epoch, bool most)
{
    const lp_run_settings *run = &trainer->options.run;
    int least = 1 + run->patience < run->epochs ? 1 + run->patience : run->epochs;
    int following = !times_follow(trainer) ? 0 : most ? run->epochs : least;
    return fmax((most ? run->epochs : least_epochs(trainer)) - epoch, 0) + following;
}

/* Reports progress. epoch is the one that the numbers belong to, from 1. */
static bool report(const lp_trainer *trainer, const run_watch *watch, uint32_t epoch, bool epoch_end, double loss)
{
    if (!watch->on_progress)
        return true;
    const lp_trainer_state *state = &trainer->state;
    int batch = trainer->options.run.batch;
    double seconds = lp_clock_seconds() - watch->start, rate = (double)watch->events / fmax(seconds, 1e-9);
    int64_t left = epoch_end ? 0 : trainer->windows.targets - state->targets - trainer->loss_targets;
    double whole = epoch_seconds(trainer, watch, seconds);
    double rest = (double)left / fmax((double)trainer->windows.targets, 1) * whole;
    int64_t steps = (trainer->windows.count + batch - 1) / batch;
    int epochs = trainer->trained->epochs; /* complete */
    const double *newest = epochs > 0 ? lp_history_metrics(trainer->trained, epochs) : NULL;
    lapse_progress progress = {
        .times = trainer->trained != trainer->model,
        .newest = newest ? lp_history_describe(trainer->trained, epochs, newest[-1], newest) : (lapse_epoch){0},
        .epoch = (int)epoch,
        .epochs = trainer->options.run.epochs,
        .step = epoch_end ? steps : (state->window + batch - 1) / batch,
        .steps = steps,
        .epoch_end = epoch_end,
        .loss = loss,
        .score = state->score,
        .score_name = lp_metric_names[trainer->select],
        .best_score = state->best_score,
        .best_epoch = (int)state->best_epoch,
        .events_per_second = rate,
        .seconds = seconds,
        .epoch_seconds = whole,
        .seconds_left = rest + epochs_left(trainer, (int)epoch, false) * whole,
        .seconds_left_most = rest + epochs_left(trainer, (int)epoch, true) * whole,
    };
    return watch->on_progress(&progress, watch->context);
}

static lapse_status save_if_due(lp_trainer *trainer, run_watch *watch, bool force, lapse_error *error)
{
    const lp_run_settings *run = &trainer->options.run;
    double clock = lp_clock_seconds();
    bool first = lp_comm_rank(trainer->comm) == 0,
         due = *run->checkpoint && (force || clock - watch->saved >= run->checkpoint_seconds);
    if (trainer->divided) { /* all ranks save when rank 0 does */
        due = lp_comm_any(trainer->divided, "whether a checkpoint is due", first && due);
        LP_TRY(lp_comm_check(trainer->divided, error));
    } else {
        due = due && first;
    }
    if (!due)
        return LAPSE_OK;
    watch->saved = clock;
    lp_trainer_collect(trainer);
    return lp_checkpoint_save(trainer, run->checkpoint, error);
}

/* The loss is not finite. The best parameters of earlier epochs are returned, if there are any. */
static lapse_status diverged(const lp_trainer *trainer, lapse_error *error)
{
    if (trainer->state.best_epoch > 0)
        return LAPSE_OK;
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "training diverged in epoch %u: the loss is not finite. Try a smaller " LP_OPTION(
                       "--learning-rate") " than %g, or a "
                                          "smaller " LP_OPTION("--clip"),
                   (unsigned)trainer->state.epoch + 1, trainer->options.run.learning_rate);
}

/* Trains a network until the end, or until the caller stops it. */
static lapse_status run(lp_trainer *trainer, run_watch *watch, lapse_error *error)
{
    lp_trainer_state *state = &trainer->state;
    while (!lp_trainer_done(trainer)) {
        LP_TRY(lp_trainer_epoch(trainer, error));
        bool go_on = true;
        while (go_on && !lp_trainer_epoch_done(trainer)) {
            lp_trainer_step(trainer);
            watch->events += trainer->batch.targets;
            LP_TRY(lp_backend_check(trainer->backend, error));
            LP_TRY(lp_comm_check(trainer->comm, error));
            if (!isfinite(state->loss)) {
                watch->status = "diverged";
                return diverged(trainer, error);
            }
            LP_TRY(save_if_due(trainer, watch, false, error));
            trainer->stop = !report(trainer, watch, state->epoch + 1, false, trainer->mean_loss);
            go_on = !(trainer->comm ? trainer->rank_sums.stopped : trainer->stop);
        }
        if (!go_on) {
            watch->status = "stopped";
            return save_if_due(trainer, watch, true, error);
        }
        double loss = state->loss / (double)state->targets;
        lp_trainer_score(trainer);
        LP_TRY(lp_comm_check(trainer->comm, error));
        watch->epoch_end = lp_clock_seconds() - watch->start;
        watch->epoch_events = watch->events;
        trainer->stop =
            lp_comm_any(trainer->comm, "ending an epoch", !report(trainer, watch, state->epoch, true, loss));
        LP_TRY(lp_comm_check(trainer->comm, error));
        if (trainer->stop) {
            watch->status = lp_trainer_done(trainer) && !times_follow(trainer) ? "complete" : "stopped";
            return save_if_due(trainer, watch, true, error);
        }
    }
    return LAPSE_OK;
}

/* "score.valid.log_loss"; where the model has two targets, "score.valid.event.log_loss". */
static lapse_status record_metrics(lp_trainer *trainer, lapse_error *error)
{
    lp_metric_column columns[LP_METRIC_COLUMNS];
    const lp_model_config *config = &trainer->trained->config;
    int count = lp_metric_columns(config, columns);
    for (int i = 0; i < count; i++) {
        bool both = config->predict == LP_PREDICT_BOTH;
        char key[64];
        snprintf(key, sizeof key, "score.valid.%s%s%s", both ? lp_metric_target_name(&columns[i]) : "", both ? "." : "",
                 lp_metric_names[columns[i].metric]);
        for (char *c = key; *c; c++)
            *c = *c == '-' ? '_' : *c;
        LP_TRY(lp_model_property_number(trainer->model, error, key, trainer->metrics[i]));
    }
    return LAPSE_OK;
}

/* Records the scores of a network. One that was stopped before its first validation has its current parameters. */
static lapse_status finish(lp_trainer *trainer, lapse_error *error)
{
    lp_trainer_state *state = &trainer->state;
    bool events = trainer->trained == trainer->model;
    if (state->best_epoch == 0) {
        lp_trainer_score(trainer);
        state->best_epoch = 0;
    }
    LP_TRY(lp_trainer_place_items(trainer, error));
    LP_TRY(lp_comm_check(trainer->comm, error));
    const lp_ranking *ranking = &trainer->evaluator.ranking;
    LP_TRY(record_metrics(trainer, error));
    if (lp_model_ranks(&trainer->trained->config) && ranking->case_count < ranking->case_total)
        LP_TRY(lp_model_property_number(trainer->model, error, "score.valid.cases", (double)ranking->case_count));
    if (events)
        trainer->events = *state;
    return lp_model_property_set(trainer->model, error, events ? "score.epoch" : "score.time.epoch", "%u",
                                 (unsigned)state->best_epoch);
}

/* Trains the network of times, unless the run was stopped: then the model has none, and a resumed run trains it. */
static lapse_status train_times(lp_trainer *trainer, run_watch *watch, lapse_error *error)
{
    if (strcmp(watch->status, "stopped") == 0)
        return lp_model_drop_times(trainer->model, error);
    LP_TRY(lp_trainer_times(trainer, error));
    LP_TRY(run(trainer, watch, error));
    return finish(trainer, error);
}

static lapse_status train_network(lp_trainer *trainer, lapse_on_progress on_progress, void *context, lapse_error *error)
{
    const lp_run_settings *settings = &trainer->options.run;
    bool found = false;
    if (settings->resume && *settings->checkpoint)
        LP_TRY(lp_checkpoint_load(trainer, settings->checkpoint, &found, error));
    LP_TRY(lp_rank_check(trainer, error));
    run_watch watch = {.on_progress = on_progress, .context = context, .start = lp_clock_seconds()};
    watch.saved = watch.start;
    watch.status = "complete";
    LP_TRY(run(trainer, &watch, error));
    LP_TRY(finish(trainer, error));
    if (times_follow(trainer))
        LP_TRY(train_times(trainer, &watch, error));
    return lp_model_property_set(trainer->model, error, "run.status", "%s", watch.status);
}

/* A run that does not resume replaces a checkpoint of an earlier run, but no other file. */
static lapse_status check_checkpoint(const lp_trainer *trainer, lapse_error *error)
{
    const lp_run_settings *run = &trainer->options.run;
    bool saves = lp_model_is_network(&trainer->model->config) && *run->checkpoint;
    return saves && !run->resume ? lp_checkpoint_check(run->checkpoint, error) : LAPSE_OK;
}

lapse_status lapse_trainer_new(const lapse_dataset *dataset, const lapse_train_options *options,
                               lapse_trainer **trainer, lapse_error *error)
{
    LP_REQUIRE(error, dataset, options, trainer);
    lp_trainer *made = lp_alloc(1, sizeof *made);
    if (!made)
        return lp_fail_memory(error, "a training run", sizeof *made);
    lapse_status status = lp_trainer_init(made, dataset, options, error);
    if (status == LAPSE_OK && (status = check_checkpoint(made, error)) != LAPSE_OK)
        lp_trainer_clear(made);
    if (status != LAPSE_OK) {
        lp_free(made);
        return status;
    }
    *trainer = made;
    return LAPSE_OK;
}

const lapse_train_options *lapse_trainer_options(const lapse_trainer *trainer)
{
    return &trainer->options;
}

lapse_status lapse_trainer_run(lapse_trainer *trainer, lapse_on_progress on_progress, void *context,
                               lapse_model **model, lapse_error *error)
{
    LP_REQUIRE(error, trainer, model);
    if (!trainer->model)
        return lp_fail(error, LAPSE_ERROR_USAGE, "this training run has returned its model already");
    const lp_model_row *row = trainer->model->config.row;
    lapse_status status =
        row->build ? train_network(trainer, on_progress, context, error)
                   : row->fit(trainer->model, &(lp_fit_data){trainer->dataset, trainer->target_split}, error);
    if (status == LAPSE_OK)
        status = lp_provenance_build(trainer->model, error);
    if (status == LAPSE_OK) {
        *model = trainer->model;
        trainer->model = NULL;
    }
    return status;
}

lapse_status lapse_trainer_delete_checkpoint(lapse_trainer *trainer, lapse_error *error)
{
    LP_REQUIRE(error, trainer);
    return lp_checkpoint_delete(trainer, trainer->options.run.checkpoint, error);
}

void lapse_trainer_free(lapse_trainer *trainer)
{
    if (trainer)
        lp_trainer_clear(trainer);
    lp_free(trainer);
}

lapse_status lapse_train(const lapse_dataset *dataset, const lapse_train_options *options,
                         lapse_on_progress on_progress, void *context, lapse_model **model, lapse_error *error)
{
    LP_REQUIRE(error, dataset, options, model);
    lapse_trainer *trainer = NULL;
    LP_TRY(lapse_trainer_new(dataset, options, &trainer, error));
    lapse_status status = lapse_trainer_run(trainer, on_progress, context, model, error);
    lapse_trainer_free(trainer);
    return status;
}
