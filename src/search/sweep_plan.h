/* sweep_plan.h: what a sweep compares: rows of training options, grids of option values, seeds, and how runs are scored.
 *
 * A plan is set by name or read from JSON (docs/compare.md). What is set first stays, so a command line overrides a file. */
#ifndef LP_SWEEP_PLAN_H
#define LP_SWEEP_PLAN_H

#include "base/memory.h"
#include "search/run_record.h"
#include "lapse_lab.h"

/* Values of one option. */
typedef struct lp_sweep_grid {
    const char *option;
    const char **values; /* [count] */
    int count;
} lp_sweep_grid;

typedef struct lp_sweep_pair {
    const char *name, *value;
} lp_sweep_pair;

enum { LP_SWEEP_GRIDS = 16, LP_SWEEP_PAIRS = 64 };

/* A row of the table. */
typedef struct lp_sweep_row {
    const char *name; /* NULL: made of model and encoding */
    lp_sweep_pair options[LP_SWEEP_PAIRS];
    int option_count;
    lp_sweep_grid grid[LP_SWEEP_GRIDS];
    int grid_count;
} lp_sweep_row;

/* The plan's own options, by member: lp_sweep_options. */
typedef struct lp_sweep_settings {
    char data[LP_PATH_SIZE];
    char folder[LP_PATH_SIZE]; /* "none" or "": runs are kept in memory */
    int split, protocol;       /* lp_split, lp_protocol */
    int metric;                /* lp_metric */
    int negatives, cases;
    double reach;
    int grid_seeds, bootstrap, parallel;
} lp_sweep_settings;

enum { LP_SWEEP_OPTIONS = 16 };

struct lapse_sweep_plan {
    lp_arena arena; /* of all texts and lists below */
    lapse_train_options train;
    lp_sweep_settings settings;
    bool given[LP_SWEEP_OPTIONS];
    const char *title;
    const char **models, **encodings; /* [count] */
    int model_count, encoding_count;
    uint64_t *seeds; /* [seed_count] */
    int seed_count;
    lp_sweep_grid grid[LP_SWEEP_GRIDS];
    int grid_count;
    lp_sweep_row *rows; /* [row_count]; owned */
    int row_count, row_capacity;
};

extern const lp_option lp_sweep_options[];

/* Adds an option's values to a grid of *count options, after checking each value. An option that the grid has is left as it is. */
lapse_status lp_sweep_plan_grid(lapse_sweep_plan *plan, lp_sweep_grid *grid, int *count, const char *name,
                                const lp_sweep_grid *values, lapse_error *error);

#endif
