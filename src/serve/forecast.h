/* forecast.h: the state of a forecast, for its parts: forecast.c (sequences, the estimate, results) and forecast_futures.c (drawing). */
#ifndef LP_FORECAST_H
#define LP_FORECAST_H

#include "serve/branches.h"
#include "serve/session_pool.h"

#include <pthread.h>
#include <stdatomic.h>

/* Events of one future, at most: a law whose times are all 0 would never reach the horizon. In the estimate: a few. */
enum { LP_FUTURE_EVENTS = 100000, LP_TRIAL_EVENTS = 32 };

/* Futures that are drawn together, at most: enough rows for products of matrices. */
enum { LP_FUTURES = 128, LP_SEEN_WORDS = LP_FUTURES / 64 };

/* A future, in the branch of the same index. */
typedef struct lp_future {
    lp_random random;
    double time;  /* of its next event */
    int64_t type; /* of the event that its branch has no space for */
    int events;
    bool cut; /* it has more events than may be drawn */
} lp_future;

typedef struct lp_future_worker {
    lp_branches branches;
    double *probabilities; /* [futures drawn together x types] */
    double *first_law;     /* [lp_time_law_size]: the law of the first event, which other queries would overwrite */
    double *counts;        /* [samples]: events of each future */
    /* Of the group of futures that is being drawn: the types that occur, how often each of all types does, and a bit for each future
     * that has had it. The last two are 0 between groups. */
    int32_t *touched; /* [types]; touched_count of them */
    int64_t touched_count;
    double *drawn;  /* [types] */
    uint64_t *seen; /* [types x LP_SEEN_WORDS] */
    double *steps;  /* [options->steps]: events of the group in each part of the horizon; 0 between groups */
    double begin;   /* of the group's futures */
    bool stopped;   /* the group was left unfinished */
    lp_future futures[LP_FUTURES];
    int32_t active[LP_FUTURES], full[LP_FUTURES]; /* futures to draw further; those whose branch has no space */
    double times[LP_FUTURES];                     /* of the next events of `active` */
} lp_future_worker;

typedef struct lp_forecast_job {
    const lapse_model *model;
    const lapse_forecast_options *options;
    lp_session_pool pool;
    lapse_forecasts *out;
    lp_future_worker *workers; /* [threads] */
    double start;              /* by lp_clock_seconds */
    bool trial;                /* the estimate is being made: futures end after LP_TRIAL_EVENTS */
    double trial_end;          /* and all of them at this time, by lp_clock_seconds */
    double expected;           /* events of a sequence, by the estimate */
    pthread_mutex_t watch;     /* held by the thread that reports; guards `reported` */
    double reported;           /* by lp_clock_seconds */
    atomic_bool stop;
    _Atomic int64_t events, finished_events, finished,
        cut; /* drawn; of finished sequences; their number; cut futures */
} lp_forecast_job;

/* Reads a sequence into the session of a thread. */
lapse_status lp_forecast_read(const lp_forecast_job *job, int thread, int64_t sequence, lapse_error *error);

/* Counts events that a worker has drawn, and reports. Returns whether to leave its group unfinished, as worker->stopped says too. */
bool lp_forecast_count(lp_forecast_job *job, lp_future_worker *worker, int rows);

/* Draws futures first .. first + count - 1 of the history that the session has, from `now` on; law: of the first event. Their events go
 * to the sums of the sequence and to worker->counts, unless this is the estimate, or the group was stopped: worker->stopped. *moved: the
 * session's history is another one now. */
lapse_status lp_futures_draw(lp_forecast_job *job, int thread, int64_t sequence, int64_t first, int count, double now,
                             const lp_next_time *law, bool *moved, lapse_error *error);

#endif
