/* sweep.h: a sweep: its rows, cells and runs. sweep.c lists them, sweep_run.c trains them, sweep_table.c makes the table. */
#ifndef LP_SWEEP_H
#define LP_SWEEP_H

#include "search/run_folder.h"
#include "search/sweep_plan.h"
#include "lapse_lab.h"

#include <pthread.h>

typedef enum lp_run_state {
    LP_RUN_WAITING,
    LP_RUN_RUNNING,   /* in this process */
    LP_RUN_ELSEWHERE, /* in another process */
    LP_RUN_DONE
} lp_run_state;

typedef struct lp_sweep_run {
    int cell, seed; /* indices */
    char *key;      /* identifies the run: version, data, options, evaluation; of the arena */
    uint64_t hash;  /* of the key */
    lp_run_state state;
    lp_run_record record; /* of a finished run */
    double left;          /* seconds: estimate of a running one; NaN: none yet */
} lp_sweep_run;

typedef struct lp_sweep_cell {
    int row;
    lapse_train_options *options; /* without seed and threads; owned */
    const char *config, *key;     /* key: the part of its runs' keys that the options make */
    bool chosen;                  /* by the runs that are finished */
    bool settled;                 /* chosen, and all runs that choose are finished */
    lapse_mean difference;        /* of a chosen cell, as is p */
    double p;
} lp_sweep_cell;

struct lapse_sweep {
    lapse_dataset *dataset; /* shared */
    lp_arena arena;
    lp_sweep_settings settings;
    lp_run_evaluation evaluation;
    uint64_t *seeds;
    const char **row_names;
    lp_sweep_cell *cells; /* by row; owned */
    lp_sweep_run *runs;   /* [seed_count x cell_count], seed by seed; owned */
    int seed_count, row_count, cell_count, run_count;
    int task, select, metric; /* lp_task, lp_metric, lp_metric */
    lp_target target;
    const char *device;    /* of networks */
    int parallel, threads; /* in this process; of each run */
    int best;              /* cell; -1: none yet */
    lp_run_folder folder;

    /* While runs are trained. */
    pthread_mutex_t mutex; /* guards the states of runs and what follows */
    pthread_cond_t changed;
    int working; /* threads */
    bool stop;
    lapse_status status; /* of the first run that failed */
    lapse_error error;
    const lp_sweep_run *newest;
    char newest_name[256];
};

/* The run of a cell with a seed. */
static inline lp_sweep_run *lp_sweep_run_of(const lapse_sweep *sweep, int cell, int seed)
{
    return &sweep->runs[(size_t)seed * (size_t)sweep->cell_count + (size_t)cell];
}

/* Seeds that choose a row's cell. */
static inline int lp_sweep_choice_seeds(const lapse_sweep *sweep)
{
    int wanted = sweep->settings.grid_seeds;
    return wanted > 0 && wanted < sweep->seed_count ? wanted : sweep->seed_count;
}

/* Whether the table needs the run: all cells with the seeds that choose, and the chosen ones with all seeds. */
static inline bool lp_sweep_needs(const lapse_sweep *sweep, const lp_sweep_run *run)
{
    return run->seed < lp_sweep_choice_seeds(sweep) || sweep->cells[run->cell].settled;
}

/* The path of a run's file. */
enum { LP_SWEEP_PATH = LP_PATH_SIZE + 32 };
const char *lp_sweep_path(const lapse_sweep *sweep, const lp_sweep_run *run, char path[LP_SWEEP_PATH]);

/* "attention, mercer, dropout 0.3, seed 3" */
const char *lp_sweep_run_name(const lapse_sweep *sweep, const lp_sweep_run *run, char *out, size_t size);

/* Reads the record of a run that waits, if its file is there. */
lapse_status lp_sweep_read(lapse_sweep *sweep, lp_sweep_run *run, lapse_error *error);

/* Chooses the cell of each row by the validation scores of finished runs. */
void lp_sweep_choose(lapse_sweep *sweep);

/* Finds the best row, and tests the others against it. */
lapse_status lp_sweep_test(lapse_sweep *sweep, lapse_error *error);

/* Estimate of the time until all runs that the table needs are finished; NaN: no run has ended yet. */
double lp_sweep_seconds_left(const lapse_sweep *sweep);

#endif
