/* tune.c: searches training options within a budget of time.
 *
 * Trial 1 has the options as given. A later trial starts from the best one so far, or now and then from the first, and changes one
 * to three options. The median stopping rule ends bad trials: from a third of the first trial's best epoch on, a trial whose best
 * score so far is worse than the median of the other trials at the same epoch stops. Only validation scores are used. */
#include "base/clock.h"
#include "base/condition.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "model/model_file.h"
#include "search/search_space.h"
#include "search/trials.h"
#include "lapse_lab.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ATTEMPTS = 100 };

/* Seconds between two calls of on_progress, between two looks at the trials of other processes, and until these have to end. */
static const double REPORT_SECONDS = 0.1, LOOK_SECONDS = 0.5, END_SECONDS = 10;

typedef struct tuning {
    const lapse_dataset *dataset;
    lapse_tune_options options;
    int threads, parallel;
    double start;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    lp_trials trials;
    lapse_model *model; /* of the best trial of this process; owned */
    int model_trial;    /* index; -1: none */
    int working;
    bool stop, exhausted;
    lapse_status status;
    lapse_error error;
} tuning;

void lapse_tune_options_default(lapse_tune_options *options)
{
    *options = (lapse_tune_options){.seconds = 600};
}

static void fail(tuning *t, lapse_status status, const lapse_error *error)
{
    if (t->status != LAPSE_OK)
        return;
    t->stop = true;
    t->status = status;
    t->error = *error;
}

/* Returns how many trials other processes are running. */
static int look(tuning *t)
{
    lapse_error error;
    int others = 0;
    lapse_status status = lp_trials_look(&t->trials, &others, &error);
    if (status != LAPSE_OK)
        fail(t, status, &error);
    return others;
}

/* *good: training accepts the options for this dataset. Fails only if out of memory. */
static lapse_status resolve(const tuning *t, const lapse_train_options *given, lapse_train_options *resolved,
                            bool *good, lapse_error *error)
{
    lp_resolved besides = {0};
    *resolved = *given;
    lapse_status status = lp_train_options_resolve(resolved, t->dataset, &besides, error);
    lp_free(besides.split);
    lapse_vectors_free(besides.vectors);
    *good = status == LAPSE_OK;
    return status == LAPSE_ERROR_MEMORY ? status : LAPSE_OK;
}

/* Changes one to three options of the best trial or of the first. *good: the result is new, and training accepts it. */
static lapse_status change(const tuning *t, lp_random *random, lapse_train_options *resolved,
                           lapse_train_options *given, char text[LP_TRIAL_CHANGE], bool *good, lapse_error *error)
{
    int best = lp_trials_best(&t->trials);
    bool restart = lp_random_below(random, 4) == 0;
    uint32_t draw = lp_random_below(random, 10);
    int changes = draw < 5 ? 1 : draw < 9 ? 2 : 3;
    const char *name;
    *given = best >= 0 && !restart ? *t->trials.list[best].options : t->trials.base;
    LP_TRY(resolve(t, given, resolved, good, error));
    for (int c = 0; *good && c < changes; c++)
        *good = lp_search_change(&t->trials.base, resolved, random, given, &name);
    if (!*good)
        return LAPSE_OK;
    if (!lp_trials_describe(&t->trials, given, text))
        return lp_fail_memory(error, "a trial", LP_TRIAL_CHANGE);
    *good = !lp_trials_have(&t->trials, text);
    return *good ? resolve(t, given, resolved, good, error) : LAPSE_OK;
}

/* The options of a new trial. *found is false if there are no more. */
static lapse_status propose(const tuning *t, int index, lapse_train_options *given, char text[LP_TRIAL_CHANGE],
                            bool *found, lapse_error *error)
{
    lp_random random = lp_random_start(t->trials.base.run.seed, LP_PURPOSE_TUNE, (uint32_t)index);
    lapse_train_options *resolved = lp_alloc(1, sizeof *resolved);
    lapse_status status = resolved ? LAPSE_OK : lp_fail_memory(error, "a trial", sizeof *resolved);
    *found = false;
    for (int attempt = 0; status == LAPSE_OK && !*found && attempt < ATTEMPTS; attempt++)
        status = change(t, &random, resolved, given, text, found, error);
    lp_free(resolved);
    return status;
}

/* Fills a trial that this process has claimed: with the options as given, or with a proposal. *found: there is one. */
static lapse_status begin(tuning *t, int index, bool *found, lapse_error *error)
{
    lp_trial *trial = &t->trials.list[index];
    lapse_train_options *options = lp_alloc(1, sizeof *options);
    if (!options)
        return lp_fail_memory(error, "a trial", sizeof *options);
    *options = t->trials.base;
    *found = index == 0;
    lapse_status status = *found ? LAPSE_OK : propose(t, index, options, trial->change, found, error);
    if (status != LAPSE_OK || !*found) {
        lp_free(options);
        return status;
    }
    trial->options = options;
    trial->state = LP_TRIAL_RUNNING;
    t->trials.count = index >= t->trials.count ? index + 1 : t->trials.count;
    return LAPSE_OK;
}

static int most_trials(const tuning *t)
{
    return t->options.trials > 0 && t->options.trials < LP_MAX_TRIALS ? t->options.trials : LP_MAX_TRIALS;
}

/* Whether a trial is left that nobody runs: another process may have ended and given it up. */
static bool is_one_left(const tuning *t)
{
    int i = 0;
    while (i < most_trials(t) && t->trials.list[i].state != LP_TRIAL_NONE)
        i++;
    return i < most_trials(t);
}

/* The next trial; NULL: there is none. */
static lp_trial *take(tuning *t)
{
    for (int i = 0; !t->stop && i < most_trials(t); i++) {
        lp_trial *trial = &t->trials.list[i];
        lapse_error error;
        bool found = false;
        if (trial->state != LP_TRIAL_NONE)
            continue;
        if (!lp_trials_claim(&t->trials, i)) {
            trial->state = LP_TRIAL_ELSEWHERE;
            t->trials.count = i >= t->trials.count ? i + 1 : t->trials.count;
            continue;
        }
        bool begun = false;
        lapse_status status = lp_trials_read(&t->trials, i, &found, &error);
        if (status == LAPSE_OK && !found)
            status = begin(t, i, &begun, &error);
        if (begun && status == LAPSE_OK)
            return trial;
        lp_trials_release(&t->trials, i);
        if (status != LAPSE_OK)
            fail(t, status, &error);
        t->exhausted = status == LAPSE_OK && !found;
        if (t->exhausted)
            return NULL;
    }
    return NULL;
}

typedef struct watching {
    tuning *t;
    lp_trial *mine;
} watching;

static bool watch(const lapse_progress *progress, void *context)
{
    watching *w = context;
    tuning *t = w->t;
    pthread_mutex_lock(&t->mutex);
    bool go_on = !t->stop && lp_clock_seconds() - t->start < t->options.seconds;
    if (go_on && progress->epoch_end)
        go_on = !lp_trials_hopeless(&t->trials, w->mine);
    pthread_mutex_unlock(&t->mutex);
    return go_on;
}

/* The score of a trial that was stopped before its first epoch says nothing. */
static void forget_unfinished(lp_run_record *record)
{
    if (record->stopped && record->epochs == 0)
        record->score = NAN;
}

/* Trains without the mutex; the record is in the trial from the start, because the rule of `watch` reads its curve. */
static lapse_status train(tuning *t, lp_trial *mine, lapse_model **model, lapse_error *error)
{
    lapse_train_options *options = lp_alloc(1, sizeof *options);
    if (!options)
        return lp_fail_memory(error, "training options", sizeof *options);
    *options = *mine->options;
    options->run.threads = t->threads;
    snprintf(options->run.checkpoint, sizeof options->run.checkpoint, "none");
    lapse_status status = lp_run_record_make(t->dataset, options, &(lp_run_evaluation){.none = true}, watch,
                                             &(watching){t, mine}, &mine->record, model, error);
    lp_free(options);
    forget_unfinished(&mine->record);
    return status;
}

/* Saves the trial and, where it is the best one, its model. Called with the mutex held. */
static lapse_status keep(tuning *t, int index, lapse_model **model, lapse_error *error)
{
    t->trials.list[index].state = LP_TRIAL_DONE;
    bool best = lp_trials_best(&t->trials) == index || (index == 0 && t->model_trial < 0);
    if (best) {
        lapse_model_free(t->model);
        t->model = *model;
        *model = NULL;
        t->model_trial = index;
    }
    return lp_trials_save(&t->trials, index, best ? t->model : NULL, error);
}

/* There is time for a third of the first trial. */
static bool has_time(const tuning *t)
{
    double left = t->options.seconds - (lp_clock_seconds() - t->start);
    const lp_trial *first = &t->trials.list[0];
    return left > 0 && (first->state != LP_TRIAL_DONE || left > first->record.seconds / 3 || first->record.epochs == 0);
}

static void work(void *context)
{
    tuning *t = context;
    pthread_mutex_lock(&t->mutex);
    while (!t->stop && !t->exhausted && has_time(t)) {
        lapse_error error = {0};
        lapse_model *model = NULL;
        lp_trial *mine = take(t);
        if (!mine)
            break;
        int index = (int)(mine - t->trials.list);
        pthread_mutex_unlock(&t->mutex);
        lapse_status status = train(t, mine, &model, &error);
        pthread_mutex_lock(&t->mutex);
        if (status == LAPSE_OK)
            status = keep(t, index, &model, &error);
        else
            mine->state = LP_TRIAL_NONE;
        lapse_model_free(model);
        lp_trials_release(&t->trials, index);
        if (status != LAPSE_OK)
            fail(t, status, &error);
    }
    t->working--;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

static lapse_tune_progress progress_of(const tuning *t)
{
    int best = lp_trials_best(&t->trials);
    const lp_trial *first = &t->trials.list[0];
    lapse_tune_progress p = {.seconds = lp_clock_seconds() - t->start,
                             .budget = t->options.seconds,
                             .metric = lp_metric_names[t->trials.select],
                             .first =
                                 first->state == LP_TRIAL_DONE && !first->record.diverged ? first->record.score : NAN,
                             .best = best >= 0 ? t->trials.list[best].record.score : NAN,
                             .best_trial = best + 1,
                             .change = best >= 0 ? t->trials.list[best].change : ""};
    for (int i = 0; i < t->trials.count; i++) {
        const lp_trial *trial = &t->trials.list[i];
        bool done = trial->state == LP_TRIAL_DONE, early = trial->record.stopped || trial->record.diverged;
        p.finished += done && !early;
        p.stopped += done && early;
        p.running += trial->state == LP_TRIAL_RUNNING || trial->state == LP_TRIAL_ELSEWHERE;
    }
    return p;
}

/* Until this process and then the others have ended their trials. Called with the mutex held. */
static void search(tuning *t, lp_worker **workers, lapse_on_tune_progress on_progress, void *context)
{
    double looked = 0;
    int others = 0;
    bool ended = false; /* the others were counted after the last of our trials */
    t->working = t->parallel;
    for (int w = 0; w < t->parallel; w++)
        lp_worker_start(workers[w], work, t);
    while (!ended || (others > 0 && !t->stop)) {
        lp_condition_wait(&t->changed, &t->mutex, REPORT_SECONDS);
        double now = lp_clock_seconds();
        if (now - looked > LOOK_SECONDS || (t->working == 0 && !ended)) {
            ended = t->working == 0;
            others = look(t);
            looked = now;
        }
        if (ended && !t->stop && !t->exhausted && has_time(t) && is_one_left(t)) {
            ended = false;
            t->working = 1;
            lp_worker_wait(workers[0]); /* it may still be about to return */
            lp_worker_start(workers[0], work, t);
        }
        lapse_tune_progress progress = progress_of(t);
        pthread_mutex_unlock(&t->mutex); /* a callback may take its time */
        bool go_on = !on_progress || on_progress(&progress, context);
        pthread_mutex_lock(&t->mutex);
        t->stop = t->stop || !go_on;
        if (t->working == 0 && now - t->start > t->options.seconds + END_SECONDS)
            break;
    }
}

/* The model of the best trial, which another process may have trained. */
static lapse_status finish(tuning *t, lapse_model **model, lapse_error *error)
{
    int best = lp_trials_best(&t->trials);
    if (best < 0)
        best = t->model_trial;
    if (best < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "no trial has a score: %s",
                       t->trials.list[0].record.diverged
                           ? "training diverged; try a smaller " LP_OPTION("--learning-rate")
                           : "the budget is too short for an epoch of the first one");
    if (best != t->model_trial) {
        lapse_model_free(t->model);
        t->model = NULL;
        LP_TRY(lp_trials_load_model(&t->trials, best, &t->model, error));
    }
    LP_TRY(lp_trials_record(&t->trials, t->options.seconds, best, t->model, error));
    *model = t->model;
    t->model = NULL;
    return LAPSE_OK;
}

/* Checks the options as given, and shares the cores. */
static lapse_status prepare(tuning *t, lapse_error *error)
{
    lapse_train_options *resolved = lp_alloc(1, sizeof *resolved);
    lp_resolved besides = {0};
    if (!resolved)
        return lp_fail_memory(error, "training options", sizeof *resolved);
    *resolved = t->trials.base;
    lapse_status status = lp_train_options_resolve(resolved, t->dataset, &besides, error);
    if (status == LAPSE_OK) {
        bool gpu = !lp_devices[resolved->run.device].host, given = lp_train_option_given(&t->trials.base, "threads");
        int cores = lp_threads_available(), threads = given ? t->trials.base.run.threads : 1;
        t->trials.select = (lp_metric)resolved->run.select;
        t->trials.base.run.device = resolved->run.device;
        t->parallel = gpu                       ? 1
                      : t->options.parallel > 0 ? t->options.parallel
                      : cores / threads > 0     ? cores / threads
                                                : 1;
        t->threads = given ? threads : cores / t->parallel > 0 ? cores / t->parallel : 1;
    }
    lp_free(besides.split);
    lapse_vectors_free(besides.vectors);
    lp_free(resolved);
    return status;
}

static lapse_status run(tuning *t, lapse_on_tune_progress on_progress, void *context, lapse_error *error)
{
    lp_worker **workers = lp_alloc((size_t)t->parallel, sizeof *workers);
    lapse_status status = workers ? LAPSE_OK : lp_fail_memory(error, "threads", (size_t)t->parallel * sizeof *workers);
    for (int w = 0; status == LAPSE_OK && w < t->parallel; w++)
        if (!(workers[w] = lp_worker_new()))
            status = lp_fail(error, LAPSE_ERROR_MEMORY,
                             "out of memory or threads: %d trials at the same time are too many", t->parallel);
    if (status == LAPSE_OK) {
        pthread_mutex_lock(&t->mutex);
        t->start = lp_clock_seconds();
        look(t);
        search(t, workers, on_progress, context);
        pthread_mutex_unlock(&t->mutex);
        status = t->status;
        if (status != LAPSE_OK && error)
            *error = t->error;
    }
    for (int w = 0; workers && w < t->parallel; w++)
        lp_worker_free(workers[w]);
    lp_free(workers);
    return status;
}

static void clear(tuning *t)
{
    lp_trials_close(&t->trials);
    lapse_model_free(t->model);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->mutex);
    lp_free(t);
}

static tuning *new_tuning(const lapse_dataset *dataset, const lapse_train_options *options,
                          const lapse_tune_options *tune)
{
    tuning *t = lp_alloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->dataset = dataset;
    t->trials.base = *options;
    t->options = *tune;
    t->model_trial = -1;
    t->trials.folder.lock = -1;
    pthread_mutex_init(&t->mutex, NULL);
    lp_condition_init(&t->changed);
    return t;
}

static lapse_status check(const lapse_train_options *options, const lapse_tune_options *tune, lapse_error *error)
{
    if (!(tune->seconds > 0 && tune->seconds <= 1e9) || tune->trials < 0 || tune->parallel < 0 || tune->parallel > 256)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "a search needs a budget above 0 seconds, and numbers of trials and of parallel trials (at most "
                       "256) that are not negative");
    return lp_run_record_check(options, error);
}

lapse_status lapse_tune(const lapse_dataset *dataset, const lapse_train_options *options,
                        const lapse_tune_options *tune, lapse_on_tune_progress on_progress, void *context,
                        lapse_model **model, lapse_error *error)
{
    LP_REQUIRE(error, dataset, options, tune, model);
    LP_TRY(check(options, tune, error));
    tuning *t = new_tuning(dataset, options, tune);
    if (!t)
        return lp_fail_memory(error, "a search", sizeof *t);
    lapse_status status = prepare(t, error);
    if (status == LAPSE_OK)
        status = lp_trials_open(&t->trials, dataset, tune->folder ? tune->folder : "", error);
    if (status == LAPSE_OK)
        status = run(t, on_progress, context, error);
    if (status == LAPSE_OK)
        status = finish(t, model, error);
    clear(t);
    return status;
}
