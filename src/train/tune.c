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
#include "data/dataset/fingerprint.h"
#include "model/model_file.h"
#include "train/bootstrap.h"
#include "train/provenance.h"
#include "train/run_folder.h"
#include "train/run_record.h"
#include "train/search_space.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TRIALS = 4096, ATTEMPTS = 100, MEDIAN_OF = 3, CHANGE_TEXT = 512 };

/* Seconds between two calls of on_progress, between two looks at the trials of other processes, and until these have to end. */
static const double REPORT_SECONDS = 0.1, LOOK_SECONDS = 0.5, END_SECONDS = 10;

typedef enum trial_state { TRIAL_NONE, TRIAL_RUNNING, TRIAL_ELSEWHERE, TRIAL_DONE } trial_state;

typedef struct lp_trial {
    trial_state state;
    lapse_train_options *options; /* as given to training; owned */
    char change[CHANGE_TEXT];     /* "dropout 0.2, heads 4" */
    lp_run_record record;
} lp_trial;

typedef struct tuning {
    const lapse_dataset *dataset;
    lapse_train_options base; /* without threads and checkpoint */
    lapse_tune_options options;
    lp_metric select;
    lp_run_folder folder;
    char *header; /* of the keys of all trials; owned */
    int threads, parallel;
    double start;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    lp_trial *trials;   /* [MAX_TRIALS]; owned */
    int count;          /* trials up to the last one that has begun */
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

static bool better(const tuning *t, double value, double than)
{
    return lp_metric_better(t->select, value, than);
}

/* The finished trial with the best score; -1: none. */
static int best_trial(const tuning *t)
{
    int best = -1;
    for (int i = 0; i < t->count; i++) {
        const lp_trial *trial = &t->trials[i];
        if (trial->state == TRIAL_DONE && !trial->record.diverged && !isnan(trial->record.score) &&
            (best < 0 || better(t, trial->record.score, t->trials[best].record.score)))
            best = i;
    }
    return best;
}

/* The best score of the first `epochs` epochs. */
static double best_until(const tuning *t, const lp_run_record *record, int epochs)
{
    double best = NAN;
    for (int e = 0; e < epochs && e < record->epochs; e++)
        if (better(t, record->curve[e].score, best))
            best = record->curve[e].score;
    return best;
}

/* The trial is worse than the median of the others at this epoch. */
static bool is_hopeless(const tuning *t, const lp_trial *mine)
{
    const lp_run_record *first = &t->trials[0].record;
    double scores[MAX_TRIALS];
    int count = 0, epoch = mine->record.epochs;
    if (mine == &t->trials[0] || t->trials[0].state != TRIAL_DONE || 3 * epoch < first->best_epoch)
        return false;
    for (int i = 0; i < t->count; i++) {
        const lp_trial *other = &t->trials[i];
        if (other == mine || other->state != TRIAL_DONE || other->record.diverged || other->record.epochs < epoch)
            continue;
        double score = best_until(t, &other->record, epoch);
        if (!isnan(score))
            scores[count++] = score;
    }
    if (count < MEDIAN_OF)
        return false;
    lp_sort_numbers(scores, count);
    double median = lp_quantile(scores, count, 0.5), best = best_until(t, &mine->record, epoch);
    return best != median && !better(t, best, median);
}

/* "name=value" lines of the options that differ from the base, and their text for people. */
static bool describe(const tuning *t, const lapse_train_options *options, lp_buffer *lines, char text[CHANGE_TEXT])
{
    lapse_option option;
    char value[LP_OPTION_TEXT_SIZE], before[LP_OPTION_TEXT_SIZE];
    size_t used = 0;
    bool good = lp_buffer_print(lines, "%s", t->header);
    text[0] = 0;
    for (int i = 0; good && lapse_train_option(i, &option); i++) {
        if (!options->given[i] || lp_train_option_given(&t->base, option.name))
            continue;
        lapse_train_options_get(options, option.name, value, sizeof value);
        lapse_train_options_get(&t->base, option.name, before, sizeof before);
        if (option.initial &&
            strcmp(value, before) == 0) /* a default that a rule chooses may depend on other changes */
            continue;
        good = lp_buffer_print(lines, "%s=%s\n", option.name, value);
        int size = snprintf(text + used, CHANGE_TEXT - used, "%s%s %s", used ? ", " : "", option.name, value);
        used = size > 0 && used + (size_t)size < CHANGE_TEXT ? used + (size_t)size : used;
    }
    return good;
}

static bool same_change(const tuning *t, const char *change)
{
    for (int i = 0; i < t->count; i++)
        if (t->trials[i].state != TRIAL_NONE && t->trials[i].options && strcmp(t->trials[i].change, change) == 0)
            return true;
    return false;
}

enum { TRIAL_PATH = LP_PATH_SIZE + 32 };

static const char *trial_path(const tuning *t, int index, const char *suffix, char path[TRIAL_PATH])
{
    snprintf(path, TRIAL_PATH, "%s/trial-%04d.%s", t->folder.path, index + 1, suffix);
    return path;
}

/* A claim of this trial: claims drop the two lowest bits. */
static uint64_t trial_claim(int index)
{
    return (uint64_t)(index + 1) << 2;
}

/* The options of a trial that another process has finished, from the lines of its key. */
static lapse_status read_options(tuning *t, lp_trial *trial, lapse_error *error)
{
    lp_buffer lines = {0};
    trial->options = lp_alloc(1, sizeof *trial->options);
    if (!trial->options)
        return lp_fail_memory(error, "a trial", sizeof *trial->options);
    *trial->options = t->base;
    for (char *line = trial->record.key + strlen(t->header), *end; *line; line = end + 1) {
        char *equals = strchr(line, '=');
        end = strchr(line, '\n');
        if (!end || !equals || equals > end)
            return lp_fail(error, LAPSE_ERROR_FORMAT, "a trial's file is damaged; delete the folder");
        *equals = *end = 0;
        LP_TRY(lapse_train_options_set(trial->options, line, equals + 1, error));
    }
    bool good = describe(t, trial->options, &lines, trial->change);
    lp_buffer_clear(&lines);
    return good ? LAPSE_OK : lp_fail_memory(error, "a trial", CHANGE_TEXT);
}

/* Reads a trial that another process has finished. */
static lapse_status read_trial(tuning *t, int index, bool *found, lapse_error *error)
{
    char path[TRIAL_PATH];
    lp_trial *trial = &t->trials[index];
    *found = false;
    if (!*t->folder.path)
        return LAPSE_OK;
    LP_TRY(lp_run_record_load(&trial->record, t->header, trial_path(t, index, "json", path), found, error));
    if (!*found)
        return LAPSE_OK;
    LP_TRY(read_options(t, trial, error));
    trial->state = TRIAL_DONE;
    if (index >= t->count)
        t->count = index + 1;
    return LAPSE_OK;
}

static void fail(tuning *t, lapse_status status, const lapse_error *error)
{
    if (t->status != LAPSE_OK)
        return;
    t->stop = true;
    t->status = status;
    t->error = *error;
}

/* Trials of other processes that have ended. Returns how many are running there. */
static int look_elsewhere(tuning *t)
{
    int others = 0;
    for (int i = 0; *t->folder.path && i < MAX_TRIALS; i++) {
        lapse_error error;
        bool found = false;
        lp_trial *trial = &t->trials[i];
        if (trial->state == TRIAL_RUNNING || trial->state == TRIAL_DONE)
            continue;
        bool elsewhere =
            lp_run_folder_is_elsewhere(&t->folder, trial_claim(i)); /* first: a trial is saved, then released */
        lapse_status status = read_trial(t, i, &found, &error);
        if (status != LAPSE_OK)
            fail(t, status, &error);
        if (!found)
            trial->state = elsewhere ? TRIAL_ELSEWHERE : TRIAL_NONE;
        others += !found && elsewhere;
        if (!found && !elsewhere && i >= t->count)
            break;
        if (i >= t->count)
            t->count = i + 1;
    }
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
                           lapse_train_options *given, char text[CHANGE_TEXT], bool *good, lapse_error *error)
{
    int best = best_trial(t);
    bool restart = lp_random_below(random, 4) == 0;
    uint32_t draw = lp_random_below(random, 10);
    int changes = draw < 5 ? 1 : draw < 9 ? 2 : 3;
    const char *name;
    lp_buffer lines = {0};
    *given = best >= 0 && !restart ? *t->trials[best].options : t->base;
    LP_TRY(resolve(t, given, resolved, good, error));
    for (int c = 0; *good && c < changes; c++)
        *good = lp_search_change(&t->base, resolved, random, given, &name);
    if (!*good)
        return LAPSE_OK;
    bool described = describe(t, given, &lines, text);
    lp_buffer_clear(&lines);
    if (!described)
        return lp_fail_memory(error, "a trial", CHANGE_TEXT);
    *good = !same_change(t, text);
    return *good ? resolve(t, given, resolved, good, error) : LAPSE_OK;
}

/* The options of a new trial. *found is false if there are no more. */
static lapse_status propose(const tuning *t, int index, lapse_train_options *given, char text[CHANGE_TEXT], bool *found,
                            lapse_error *error)
{
    lp_random random = lp_random_start(t->base.run.seed, LP_PURPOSE_TUNE, (uint32_t)index);
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
    lp_trial *trial = &t->trials[index];
    lapse_train_options *options = lp_alloc(1, sizeof *options);
    if (!options)
        return lp_fail_memory(error, "a trial", sizeof *options);
    *options = t->base;
    *found = index == 0;
    lapse_status status = *found ? LAPSE_OK : propose(t, index, options, trial->change, found, error);
    if (status != LAPSE_OK || !*found) {
        lp_free(options);
        return status;
    }
    trial->options = options;
    trial->state = TRIAL_RUNNING;
    t->count = index >= t->count ? index + 1 : t->count;
    return LAPSE_OK;
}

static int most_trials(const tuning *t)
{
    return t->options.trials > 0 && t->options.trials < MAX_TRIALS ? t->options.trials : MAX_TRIALS;
}

/* Whether a trial is left that nobody runs: another process may have ended and given it up. */
static bool is_one_left(const tuning *t)
{
    int i = 0;
    while (i < most_trials(t) && t->trials[i].state != TRIAL_NONE)
        i++;
    return i < most_trials(t);
}

/* The next trial; NULL: there is none. */
static lp_trial *take(tuning *t)
{
    for (int i = 0; !t->stop && i < most_trials(t); i++) {
        lp_trial *trial = &t->trials[i];
        lapse_error error;
        bool found = false;
        if (trial->state != TRIAL_NONE)
            continue;
        if (!lp_run_folder_claim(&t->folder, trial_claim(i))) {
            trial->state = TRIAL_ELSEWHERE;
            t->count = i >= t->count ? i + 1 : t->count;
            continue;
        }
        bool begun = false;
        lapse_status status = read_trial(t, i, &found, &error);
        if (status == LAPSE_OK && !found)
            status = begin(t, i, &begun, &error);
        if (begun && status == LAPSE_OK)
            return trial;
        lp_run_folder_release(&t->folder, trial_claim(i));
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
        go_on = !is_hopeless(t, w->mine);
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
    char path[TRIAL_PATH];
    lp_trial *mine = &t->trials[index];
    mine->state = TRIAL_DONE;
    lapse_status status = LAPSE_OK;
    if (best_trial(t) == index || (index == 0 && t->model_trial < 0)) {
        lapse_model_free(t->model);
        t->model = *model;
        *model = NULL;
        t->model_trial = index;
        if (*t->folder.path && t->model)
            status = lapse_model_save(t->model, trial_path(t, index, "safetensors", path), error);
    }
    lp_buffer key = {0};
    char change[CHANGE_TEXT];
    if (status == LAPSE_OK && *t->folder.path)
        status = describe(t, mine->options, &key, change)
                     ? lp_run_record_save(&mine->record, key.data, change, trial_path(t, index, "json", path), error)
                     : lp_fail_memory(error, "a trial", CHANGE_TEXT);
    lp_buffer_clear(&key);
    return status;
}

/* There is time for a third of the first trial. */
static bool has_time(const tuning *t)
{
    double left = t->options.seconds - (lp_clock_seconds() - t->start);
    const lp_trial *first = &t->trials[0];
    return left > 0 && (first->state != TRIAL_DONE || left > first->record.seconds / 3 || first->record.epochs == 0);
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
        int index = (int)(mine - t->trials);
        pthread_mutex_unlock(&t->mutex);
        lapse_status status = train(t, mine, &model, &error);
        pthread_mutex_lock(&t->mutex);
        if (status == LAPSE_OK)
            status = keep(t, index, &model, &error);
        else
            mine->state = TRIAL_NONE;
        lapse_model_free(model);
        lp_run_folder_release(&t->folder, trial_claim(index));
        if (status != LAPSE_OK)
            fail(t, status, &error);
    }
    t->working--;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->mutex);
}

static lapse_tune_progress progress_of(const tuning *t)
{
    int best = best_trial(t);
    const lp_trial *first = &t->trials[0];
    lapse_tune_progress p = {.seconds = lp_clock_seconds() - t->start,
                             .budget = t->options.seconds,
                             .metric = lp_metric_names[t->select],
                             .first = first->state == TRIAL_DONE && !first->record.diverged ? first->record.score : NAN,
                             .best = best >= 0 ? t->trials[best].record.score : NAN,
                             .best_trial = best + 1,
                             .change = best >= 0 ? t->trials[best].change : ""};
    for (int i = 0; i < t->count; i++) {
        const lp_trial *trial = &t->trials[i];
        bool done = trial->state == TRIAL_DONE, early = trial->record.stopped || trial->record.diverged;
        p.finished += done && !early;
        p.stopped += done && early;
        p.running += trial->state == TRIAL_RUNNING || trial->state == TRIAL_ELSEWHERE;
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
            others = look_elsewhere(t);
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

static lapse_status record_trial(const tuning *t, int index, lapse_model *model, lapse_error *error)
{
    const lp_trial *trial = &t->trials[index];
    const lp_run_record *record = &trial->record;
    char name[64], number[LP_NUMBER_SIZE];
    const char *what = *trial->change ? trial->change : "options as given";
    snprintf(name, sizeof name, "tune.trial.%d", index + 1);
    if (record->diverged || isnan(record->score))
        return lp_model_property_set(model, error, name, "%s: %s", what, record->diverged ? "diverged" : "no epoch");
    snprintf(number, sizeof number, "%.6g", record->score);
    if (record->epochs == 0)
        return lp_model_property_set(model, error, name, "%s: %s %s", what, lp_metric_names[t->select], number);
    return lp_model_property_set(model, error, name, "%s: %s %s in epoch %d of %d%s", what, lp_metric_names[t->select],
                                 number, record->best_epoch, record->epochs, record->stopped ? ", stopped" : "");
}

static lapse_status record_trials(const tuning *t, int best, lapse_model *model, lapse_error *error)
{
    int trials = 0;
    for (int i = 0; i < t->count; i++)
        trials += t->trials[i].state == TRIAL_DONE;
    LP_TRY(lp_model_property_number(model, error, "tune.trials", trials));
    LP_TRY(lp_model_property_number(model, error, "tune.budget", t->options.seconds));
    LP_TRY(lp_model_property_number(model, error, "tune.best", best + 1));
    for (int i = 0; i < t->count; i++)
        if (t->trials[i].state == TRIAL_DONE)
            LP_TRY(record_trial(t, i, model, error));
    return LAPSE_OK;
}

/* The model of the best trial, which another process may have trained. */
static lapse_status finish(tuning *t, lapse_model **model, lapse_error *error)
{
    char path[TRIAL_PATH];
    int best = best_trial(t);
    if (best < 0)
        best = t->model_trial;
    if (best < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE, "no trial has a score: %s",
                       t->trials[0].record.diverged ? "training diverged; try a smaller --learning-rate"
                                                    : "the budget is too short for an epoch of the first one");
    if (best != t->model_trial) {
        lapse_model_free(t->model);
        t->model = NULL;
        LP_TRY(lapse_model_load(trial_path(t, best, "safetensors", path), &t->model, error));
    }
    LP_TRY(record_trials(t, best, t->model, error));
    *model = t->model;
    t->model = NULL;
    return LAPSE_OK;
}

static lapse_status make_header(tuning *t, lapse_error *error)
{
    lp_buffer out = {0};
    lapse_option option;
    char text[LP_OPTION_TEXT_SIZE];
    bool good =
        lp_buffer_print(&out, "lapse=%s\ncommit=%s\ndata=%016llx\nseed=%llu\n", LAPSE_VERSION, lp_build_commit(),
                        (unsigned long long)lp_dataset_fingerprint(t->dataset), (unsigned long long)t->base.run.seed);
    for (int i = 0; good && lapse_train_option(i, &option); i++)
        if (t->base.given[i] && strcmp(option.name, "threads") != 0 && strcmp(option.name, "seed") != 0)
            good = lp_buffer_print(&out, "%s=%s\n", option.name,
                                   lapse_train_options_get(&t->base, option.name, text, sizeof text));
    good = good && lp_buffer_print(&out, "--\n");
    if (good)
        t->header = out.data;
    else
        lp_buffer_clear(&out);
    return good ? LAPSE_OK : lp_fail_memory(error, "a search", out.size);
}

/* Checks the options as given, and shares the cores. */
static lapse_status prepare(tuning *t, lapse_error *error)
{
    lapse_train_options *resolved = lp_alloc(1, sizeof *resolved);
    lp_resolved besides = {0};
    if (!resolved)
        return lp_fail_memory(error, "training options", sizeof *resolved);
    *resolved = t->base;
    lapse_status status = lp_train_options_resolve(resolved, t->dataset, &besides, error);
    if (status == LAPSE_OK) {
        bool gpu = resolved->run.device == LP_DEVICE_CUDA, given = lp_train_option_given(&t->base, "threads");
        int cores = lp_threads_available(), threads = given ? t->base.run.threads : 1;
        t->select = (lp_metric)resolved->run.select;
        t->base.run.device = resolved->run.device;
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
    t->trials = lp_alloc(MAX_TRIALS, sizeof *t->trials);
    lapse_status status =
        workers && t->trials ? LAPSE_OK : lp_fail_memory(error, "a search", MAX_TRIALS * sizeof *t->trials);
    for (int w = 0; status == LAPSE_OK && w < t->parallel; w++)
        if (!(workers[w] = lp_worker_new()))
            status = lp_fail(error, LAPSE_ERROR_MEMORY,
                             "out of memory or threads: %d trials at the same time are too many", t->parallel);
    if (status == LAPSE_OK) {
        pthread_mutex_lock(&t->mutex);
        t->start = lp_clock_seconds();
        look_elsewhere(t);
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
    for (int i = 0; t->trials && i < MAX_TRIALS; i++) {
        lp_run_record_clear(&t->trials[i].record);
        lp_free(t->trials[i].options);
    }
    lp_free(t->trials);
    lapse_model_free(t->model);
    lp_buffer_clear(&(lp_buffer){.data = t->header});
    lp_run_folder_close(&t->folder);
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
    t->base = *options;
    t->options = *tune;
    t->model_trial = -1;
    t->folder.lock = -1;
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
        status = make_header(t, error);
    if (status == LAPSE_OK)
        status = lp_run_folder_open(&t->folder, tune->folder ? tune->folder : "", error);
    if (status == LAPSE_OK)
        status = run(t, on_progress, context, error);
    if (status == LAPSE_OK)
        status = finish(t, model, error);
    clear(t);
    return status;
}
