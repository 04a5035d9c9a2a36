/* run_record.h: what a sweep keeps of a finished training run: its scores, its learning curve, and the sums of its metrics over
 * groups of sequences, for paired tests. One small JSON file per run (docs/compare.md). */
#ifndef LP_RUN_RECORD_H
#define LP_RUN_RECORD_H

#include "evaluate/outcomes.h"
#include "train/train_options.h"

/* Sequences of a large split are grouped by a hash, so that a record has a bounded size. */
enum { LP_RECORD_GROUPS = 1000 };

typedef struct lp_epoch_point {
    double seconds; /* since the start of training, with the validations */
    double score;   /* the option "select" on the validation split; NaN: not finite */
} lp_epoch_point;

/* The cases of a group of sequences. */
typedef struct lp_record_group {
    int32_t group;
    int64_t cases;
    double sums[LP_OUTCOME_METRICS]; /* over the cases */
} lp_record_group;

typedef struct lp_run_record {
    bool diverged;  /* the loss was not finite in the first epoch: there are no scores */
    bool stopped;   /* by the caller, before its end (tuning) */
    double score;   /* the option "select" on the validation split, of the best epoch */
    int epochs;     /* complete; 0 for a baseline */
    int best_epoch; /* from 1; 0 for a baseline */
    double seconds; /* of training */
    int64_t parameters;
    lp_epoch_point *curve; /* [epochs]; owned */
    int metrics;           /* of the evaluated split; 0: it was not evaluated */
    int64_t cases, sequences;
    char *key; /* of a record that was read; owned */
    int group_count;
    lp_record_group *groups; /* ascending, those with cases; owned */
} lp_run_record;

void lp_run_record_clear(lp_run_record *record);

/* The mean of a metric over all cases. */
double lp_run_record_mean(const lp_run_record *record, int metric);

/* What is evaluated after training. */
typedef struct lp_run_evaluation {
    bool none;
    lp_split split;
    lp_protocol protocol;
    int negatives;
    int64_t cases; /* maximum of a recommender's; 0: all */
} lp_run_evaluation;

/* Options of one training's checkpoint are an error where many models are trained. */
lapse_status lp_run_record_check(const lapse_train_options *options, lapse_error *error);

/* Called after each step. Returns false to stop. */
typedef bool (*lp_run_watch)(const lapse_progress *progress, void *context);

/* Trains a model with these options and evaluates it. A run that diverges is a result, not an error. If `watch` stops it, its best
 * epoch is evaluated likewise. *model may be NULL; otherwise it is the model, or NULL if the run diverged. */
lapse_status lp_run_record_make(const lapse_dataset *dataset, const lapse_train_options *options,
                                const lp_run_evaluation *evaluation, lp_run_watch watch, void *context,
                                lp_run_record *record, lapse_model **model, lapse_error *error);

/* Writes a record with its key, the text that identifies the run, and a name for people. */
lapse_status lp_run_record_save(const lp_run_record *record, const char *key, const char *name, const char *path,
                                lapse_error *error);

/* Reads a record. *found is false if there is no such file. A file that is no record, or whose key does not begin with this one, is
 * LAPSE_ERROR_FORMAT. */
lapse_status lp_run_record_load(lp_run_record *record, const char *key, const char *path, bool *found,
                                lapse_error *error);

/* The same from memory. */
lapse_status lp_run_record_parse(lp_run_record *record, const char *key, const char *path, const char *text,
                                 size_t size, lapse_error *error);

#endif
