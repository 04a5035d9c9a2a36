/* sweep_run.c: trains the runs of a sweep on several threads, and beside other processes. */
#include "search/sweep.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/threads.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Seconds between two calls of on_progress, and between two looks for the runs of other processes. */
static const double REPORT_SECONDS = 0.1, LOOK_SECONDS = 0.5;

/* ---------------------------------------------------------------------------------------------- training ----- */

typedef struct watching {
    lapse_sweep *sweep;
    lp_sweep_run *run;
} watching;

static bool watch(const lapse_progress *progress, void *context)
{
    watching *w = context;
    pthread_mutex_lock(&w->sweep->mutex);
    w->run->left = progress->seconds_left;
    bool go_on = !w->sweep->stop;
    pthread_mutex_unlock(&w->sweep->mutex);
    return go_on;
}

/* The first failure stops the sweep. */
static void fail(lapse_sweep *sweep, const lp_sweep_run *run, lapse_status status, const lapse_error *error)
{
    char name[256];
    if (sweep->status != LAPSE_OK)
        return;
    sweep->stop = true;
    sweep->status = status;
    sweep->error = *error;
    if (status != LAPSE_ERROR_MEMORY && status != LAPSE_ERROR_FILE)
        snprintf(sweep->error.message, sizeof sweep->error.message, "%.180s: %.300s",
                 lp_sweep_run_name(sweep, run, name, sizeof name), error->message);
}

/* Trains a run that this process has claimed, and saves it. */
static lapse_status train(lapse_sweep *sweep, lp_sweep_run *run, lp_run_record *record, lapse_error *error)
{
    char path[LP_SWEEP_PATH], name[256];
    lapse_train_options *options = lp_alloc(1, sizeof *options);
    if (!options)
        return lp_fail_memory(error, "training options", sizeof *options);
    *options = *sweep->cells[run->cell].options;
    options->run.seed = sweep->seeds[run->seed];
    options->run.threads = sweep->threads;
    snprintf(options->run.checkpoint, sizeof options->run.checkpoint, "none");
    lapse_status status = lp_run_record_make(sweep->dataset, options, &sweep->evaluation, watch,
                                             &(watching){sweep, run}, record, NULL, error);
    lp_free(options);
    if (status == LAPSE_OK && !record->stopped && *sweep->folder.path)
        status = lp_run_record_save(record, run->key, lp_sweep_run_name(sweep, run, name, sizeof name),
                                    lp_sweep_path(sweep, run, path), error);
    return status;
}

/* The next run that is needed and waits; it is marked as running. NULL: none, or the sweep stops. */
static lp_sweep_run *take(lapse_sweep *sweep)
{
    for (int i = 0; !sweep->stop && i < sweep->run_count; i++) {
        lp_sweep_run *run = &sweep->runs[i];
        if (run->state != LP_RUN_WAITING || !lp_sweep_needs(sweep, run))
            continue;
        run->state = LP_RUN_RUNNING;
        run->left = NAN;
        return run;
    }
    return NULL;
}

/* Called with the mutex held, which is released while the run is trained. */
static void execute(lapse_sweep *sweep, lp_sweep_run *run)
{
    lapse_error error = {0};
    lp_run_record record = {0};
    if (!lp_run_folder_claim(&sweep->folder, run->hash)) {
        run->state = LP_RUN_ELSEWHERE;
        return;
    }
    lapse_status status = lp_sweep_read(sweep, run, &error); /* another process may have finished it just now */
    if (status == LAPSE_OK && run->state != LP_RUN_DONE) {
        pthread_mutex_unlock(&sweep->mutex);
        status = train(sweep, run, &record, &error);
        pthread_mutex_lock(&sweep->mutex);
        if (status == LAPSE_OK && !record.stopped) {
            run->record = record;
            run->state = LP_RUN_DONE;
            sweep->newest = run;
            pthread_cond_broadcast(&sweep->changed);
        } else {
            lp_run_record_clear(&record);
            run->state = LP_RUN_WAITING;
        }
    }
    if (status != LAPSE_OK)
        fail(sweep, run, status, &error);
    lp_run_folder_release(&sweep->folder, run->hash);
}

static void work(void *context)
{
    lapse_sweep *sweep = context;
    lp_sweep_run *run;
    pthread_mutex_lock(&sweep->mutex);
    while ((run = take(sweep)) != NULL)
        execute(sweep, run);
    sweep->working--;
    pthread_cond_broadcast(&sweep->changed);
    pthread_mutex_unlock(&sweep->mutex);
}

/* ---------------------------------------------------------------------------------------------- progress ----- */

/* Mean seconds of finished runs: of this row, or of all; NaN: none. */
static double usual_seconds(const lapse_sweep *sweep, int row)
{
    double sum = 0, all = 0;
    int count = 0, all_count = 0;
    for (int i = 0; i < sweep->run_count; i++) {
        const lp_sweep_run *run = &sweep->runs[i];
        if (run->state != LP_RUN_DONE)
            continue;
        bool same = sweep->cells[run->cell].row == row;
        sum += same ? run->record.seconds : 0;
        count += same;
        all += run->record.seconds;
        all_count++;
    }
    return count ? sum / count : all_count ? all / all_count : NAN;
}

double lp_sweep_seconds_left(const lapse_sweep *sweep)
{
    double sum = 0;
    int running = 0;
    for (int r = 0; r < sweep->row_count; r++) {
        double usual = usual_seconds(sweep, r);
        for (int i = 0; i < sweep->run_count; i++) {
            const lp_sweep_run *run = &sweep->runs[i];
            if (sweep->cells[run->cell].row != r || run->state == LP_RUN_DONE || !lp_sweep_needs(sweep, run))
                continue;
            bool here = run->state == LP_RUN_RUNNING, other = run->state == LP_RUN_ELSEWHERE;
            sum += here && !isnan(run->left) ? run->left : other ? usual / 2 : usual;
            running += here || other;
        }
    }
    return sum / (running > 0 ? running : 1);
}

static lapse_sweep_progress progress_of(lapse_sweep *sweep, double start)
{
    lapse_sweep_progress p = {.seconds = lp_clock_seconds() - start, .score = NAN};
    for (int i = 0; i < sweep->run_count; i++) {
        const lp_sweep_run *run = &sweep->runs[i];
        if (!lp_sweep_needs(sweep, run))
            continue;
        p.total++;
        p.done += run->state == LP_RUN_DONE;
        p.running += run->state == LP_RUN_RUNNING || run->state == LP_RUN_ELSEWHERE;
        p.left += run->state == LP_RUN_WAITING;
    }
    p.seconds_left = lp_sweep_seconds_left(sweep);
    if (sweep->newest) {
        p.newest = lp_sweep_run_name(sweep, sweep->newest, sweep->newest_name, sizeof sweep->newest_name);
        p.score = sweep->newest->record.score;
    }
    return p;
}

/* ------------------------------------------------------------------------------------------------ public ----- */

/* What other processes do with the runs that this one does not train: they began one, finished it, or ended and gave it up.
 * Returns how many they are running. */
static int look_elsewhere(lapse_sweep *sweep)
{
    int others = 0;
    for (int i = 0; i < sweep->run_count && !sweep->stop; i++) {
        lp_sweep_run *run = &sweep->runs[i];
        lapse_error error;
        if (run->state == LP_RUN_RUNNING || run->state == LP_RUN_DONE)
            continue;
        bool elsewhere =
            lp_run_folder_is_elsewhere(&sweep->folder, run->hash); /* first: a run is saved, then released */
        lapse_status status = lp_sweep_read(sweep, run, &error);
        if (status != LAPSE_OK)
            fail(sweep, run, status, &error);
        if (run->state == LP_RUN_DONE)
            sweep->newest = run;
        else
            run->state = elsewhere ? LP_RUN_ELSEWHERE : LP_RUN_WAITING;
        others += run->state == LP_RUN_ELSEWHERE;
    }
    return others;
}

static bool work_left(const lapse_sweep *sweep)
{
    for (int i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].state == LP_RUN_WAITING && lp_sweep_needs(sweep, &sweep->runs[i]))
            return true;
    return false;
}

/* Starts the workers, and waits until they have found nothing more to do. Called with the mutex held. */
static void run_workers(lapse_sweep *sweep, lp_worker **workers, double start, lapse_on_sweep_progress on_progress,
                        void *context)
{
    double looked = lp_clock_seconds();
    sweep->working = sweep->parallel;
    for (int w = 0; w < sweep->parallel; w++)
        lp_worker_start(workers[w], work, sweep);
    while (sweep->working > 0) {
        lp_condition_wait(&sweep->changed, &sweep->mutex, REPORT_SECONDS);
        if (lp_clock_seconds() - looked > LOOK_SECONDS) {
            look_elsewhere(sweep);
            looked = lp_clock_seconds();
        }
        lapse_sweep_progress progress = progress_of(sweep, start);
        pthread_mutex_unlock(&sweep->mutex); /* a callback may take its time */
        bool go_on = !on_progress || on_progress(&progress, context);
        pthread_mutex_lock(&sweep->mutex);
        sweep->stop = sweep->stop || !go_on;
    }
    for (int w = 0; w < sweep->parallel; w++) { /* a worker ends after its last change */
        pthread_mutex_unlock(&sweep->mutex);
        lp_worker_wait(workers[w]);
        pthread_mutex_lock(&sweep->mutex);
    }
}

/* Called with the mutex held. */
static void run_all(lapse_sweep *sweep, lp_worker **workers, lapse_on_sweep_progress on_progress, void *context)
{
    double start = lp_clock_seconds();
    while (!sweep->stop) {
        int others = look_elsewhere(sweep);
        if (!others)
            lp_sweep_choose(sweep);
        if (work_left(sweep)) {
            run_workers(sweep, workers, start, on_progress, context);
        } else if (others) {
            lp_condition_wait(&sweep->changed, &sweep->mutex, REPORT_SECONDS);
        } else {
            break;
        }
        lapse_sweep_progress progress = progress_of(sweep, start);
        pthread_mutex_unlock(&sweep->mutex);
        bool go_on = !on_progress || on_progress(&progress, context);
        pthread_mutex_lock(&sweep->mutex);
        sweep->stop = sweep->stop || !go_on;
    }
}

static lapse_status start_workers(const lapse_sweep *sweep, lp_worker ***workers, lapse_error *error)
{
    lp_worker **made = lp_alloc((size_t)sweep->parallel, sizeof *made);
    lapse_status status = made ? LAPSE_OK : lp_fail_memory(error, "threads", (size_t)sweep->parallel * sizeof *made);
    *workers = made;
    for (int w = 0; status == LAPSE_OK && w < sweep->parallel; w++)
        if (!(made[w] = lp_worker_new()))
            status = lp_fail(error, LAPSE_ERROR_MEMORY,
                             "out of memory or threads: %d runs at the same time are too many", sweep->parallel);
    return status;
}

lapse_status lapse_sweep_run(lapse_sweep *sweep, lapse_on_sweep_progress on_progress, void *context, lapse_error *error)
{
    LP_REQUIRE(error, sweep);
    lp_worker **workers = NULL;
    lapse_status status = start_workers(sweep, &workers, error);
    if (status == LAPSE_OK) {
        pthread_mutex_lock(&sweep->mutex);
        sweep->stop = false;
        sweep->status = LAPSE_OK;
        sweep->newest = NULL;
        run_all(sweep, workers, on_progress, context);
        status = sweep->status;
        pthread_mutex_unlock(&sweep->mutex);
        if (status != LAPSE_OK && error)
            *error = sweep->error;
    }
    for (int w = 0; workers && w < sweep->parallel; w++)
        lp_worker_free(workers[w]);
    lp_free(workers);
    if (status != LAPSE_OK)
        return status;
    lp_sweep_choose(sweep);
    return lp_sweep_test(sweep, error);
}
