/* trials.h: the trials of a search: what each changed, how it scored, which are hopeless, and the folder of files in which several
 * processes share them. tune.c decides what to try next. */
#ifndef LP_TRIALS_H
#define LP_TRIALS_H

#include "model/model.h"
#include "search/run_folder.h"
#include "search/run_record.h"

enum { LP_MAX_TRIALS = 4096, LP_TRIAL_CHANGE = 512 };

typedef enum lp_trial_state { LP_TRIAL_NONE, LP_TRIAL_RUNNING, LP_TRIAL_ELSEWHERE, LP_TRIAL_DONE } lp_trial_state;

typedef struct lp_trial {
    lp_trial_state state;
    lapse_train_options *options; /* as given to training; owned */
    char change[LP_TRIAL_CHANGE]; /* "dropout 0.2, heads 4" */
    lp_run_record record;
} lp_trial;

typedef struct lp_trials {
    lapse_train_options base; /* of the first trial */
    lp_metric select;
    lp_run_folder folder;
    char *header;   /* of the keys of all trials; owned */
    lp_trial *list; /* [LP_MAX_TRIALS]; owned */
    int count;      /* up to the last one that has begun */
} lp_trials;

/* folder: "" is none. `base` and `select` are set before. */
lapse_status lp_trials_open(lp_trials *trials, const lapse_dataset *dataset, const char *folder, lapse_error *error);
void lp_trials_close(lp_trials *trials);

/* The finished trial with the best score; -1: none. */
int lp_trials_best(const lp_trials *trials);

/* The median stopping rule: the trial is worse than the median of the others at this epoch. */
bool lp_trials_hopeless(const lp_trials *trials, const lp_trial *mine);

/* The text of what the options change of the base. False: out of memory. */
bool lp_trials_describe(const lp_trials *trials, const lapse_train_options *options, char text[LP_TRIAL_CHANGE]);

/* Whether a trial has this change. */
bool lp_trials_have(const lp_trials *trials, const char *change);

/* Claims a trial for this process. False: another process has it. */
bool lp_trials_claim(lp_trials *trials, int index);
void lp_trials_release(const lp_trials *trials, int index);

/* *found: the trial is finished, by another process. */
lapse_status lp_trials_read(lp_trials *trials, int index, bool *found, lapse_error *error);

/* What other processes do with the trials that this one does not run. *others: how many they are running. */
lapse_status lp_trials_look(lp_trials *trials, int *others, lapse_error *error);

/* Writes the record of a finished trial, where there is a folder. model: NULL, or its model, which is written too. */
lapse_status lp_trials_save(const lp_trials *trials, int index, const lapse_model *model, lapse_error *error);
lapse_status lp_trials_load_model(const lp_trials *trials, int index, lapse_model **model, lapse_error *error);

/* Properties of the model: the trials, the seconds that they were given, and which one was chosen. */
lapse_status lp_trials_record(const lp_trials *trials, double budget, int best, lapse_model *model, lapse_error *error);

#endif
