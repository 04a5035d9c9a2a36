/* trainer.h: a training run: its resolved options, its buffers, which are allocated before the first step, and its progress.
 *
 * A model with --when has two networks. The run trains one after the other, each as if it were alone, so the events' is that of a model
 * without --when, bit by bit.
 *
 * All randomness is a function of (seed, epoch or step), so lp_trainer_state, parameters and Adam's moments are all that a
 * checkpoint holds: a resumed run continues bit by bit.
 */
#ifndef LP_TRAINER_H
#define LP_TRAINER_H

#include "base/file.h"
#include "model/history.h"
#include "model/item_rows.h"
#include "model/sampler.h"
#include "evaluate/evaluator.h"
#include "train/item_init.h"
#include "train/rank_sums.h"
#include "data/batch/prefetch.h"
#include "train/train_options.h"

typedef struct lp_trainer_state {
    uint64_t step;   /* optimizer steps done */
    uint32_t epoch;  /* current, from 0 */
    int64_t window;  /* of the epoch's order: the next one */
    double loss;     /* sum over these targets */
    int64_t targets; /* of the epoch so far; on a device, of the steps whose losses were fetched */
    double score;    /* `select`, newest on the validation split; NaN before the first */
    double best_score;
    uint32_t best_epoch; /* from 1; 0 before the first */
} lp_trainer_state;

typedef struct lapse_trainer lp_trainer;

struct lapse_trainer {
    lapse_dataset *dataset;      /* shared: it lives as long as the trainer */
    lapse_train_options options; /* resolved */
    uint8_t *split;              /* of each event; owned */
    uint8_t *target_split;       /* the same, LP_SPLIT_NONE for events that are not targets; owned */
    lapse_model *model;          /* its parameters are the best so far; owned until it is returned */
    lapse_model *trained;        /* whose network is trained now: the model, or its network of times */
    lp_metric select;            /* by which its best epoch is chosen */
    lp_network network;          /* with loss and gradients */
    lp_targets targets;
    lp_id_map id_map;
    lp_windows windows; /* of the current epoch, in its order */
    lp_batch batch;
    lp_item_init item_init; /* where the items of a recommender start; empty: by chance */
    lp_negatives negatives; /* of a sampled loss, as are the next two */
    lp_batch_vocabulary vocabulary;
    lp_row_union rows;       /* that the current batch has */
    lp_prefetch prefetch[2]; /* where a device works on the current one: of even steps, of odd ones; empty for others */
    const lp_backend *backend;
    lp_runner runner;
    lp_sampler sampler; /* of sampled encodings; empty for others */
    lp_adam adam;
    lapse_comm *comm; /* NULL: one process; not owned */
    lp_rank_sums rank_sums;
    lapse_comm *divided; /* `comm`, where item tables are divided among its ranks; otherwise NULL */
    lp_item_rows item_rows;
    bool stop;         /* the caller of this rank wants to stop: known to all after the next step */
    float *parameters; /* current, in the backend's memory; owned */
    float *average,
        *newest;    /* with ema_decay, in host memory: the average over epochs, and a copy of `parameters`; owned */
    float *losses;  /* [LP_LOSS_STEPS x shards]: of the newest steps, not yet added up; owned */
    int loss_steps; /* steps in `losses` */
    int64_t loss_targets;   /* their targets */
    double mean_loss;       /* of the epoch's targets, when losses were last added up */
    lp_evaluator evaluator; /* on the validation split */
    lp_trainer_state state;
    lp_trainer_state events;           /* that of the events' network once its training has ended */
    double metrics[LP_METRIC_COLUMNS]; /* of the best parameters */
    lp_file_version checkpoint;        /* that this run saved last, or was resumed from */
    struct lp_step_times *times;       /* filled by every step; NULL: steps are not timed */
};

/* Steps between two copies of a device's losses to the host. */
enum { LP_LOSS_STEPS = 128 };

/* Times of the parts of a step, for benchmarks. */
typedef struct lp_step_times {
    int64_t *run;                /* as lp_pass.times */
    const lp_profiler *profiler; /* as lp_pass.profiler */
    int64_t fill, total;         /* laying out the batch; all of it: nanoseconds of the newest step */
    int64_t join, adam;          /* joining the shards' lists; the sum over shards and the optimizer */
} lp_step_times;

/* Resolves the options, makes the split, reads the item vectors and allocates all buffers. */
lapse_status lp_trainer_init(lp_trainer *trainer, const lapse_dataset *dataset, const lapse_train_options *options,
                             lapse_error *error);
void lp_trainer_clear(lp_trainer *trainer);

/* Goes on to the model's network of times, which begins as the first network did: with an optimizer, epochs and patience of its own. */
lapse_status lp_trainer_times(lp_trainer *trainer, lapse_error *error);

/* Copies parameters, or what this rank has of them, from host memory to the backend's. */
void lp_trainer_copy(const lp_trainer *trainer, float *to, const float *from);

/* Lays out the windows of the current epoch. */
lapse_status lp_trainer_epoch(lp_trainer *trainer, lapse_error *error);

/* One optimizer step on the next windows. */
void lp_trainer_step(lp_trainer *trainer);

/* The gradient of the current batch's loss, a sum over its targets, that a step backpropagates. */
float lp_trainer_loss_gradient(const lp_trainer *trainer);

/* Waits for the losses of the newest steps and adds them to the state. On a device the state is behind by up to LP_LOSS_STEPS
 * steps otherwise. */
void lp_trainer_collect(lp_trainer *trainer);

/* Ends an epoch: evaluates the validation split, copies the parameters if they are the best, and starts the next epoch. */
void lp_trainer_score(lp_trainer *trainer);

static inline bool lp_trainer_epoch_done(const lp_trainer *trainer)
{
    return trainer->state.window >= trainer->windows.count;
}

/* Gives items that never occur in training their learned-space vectors (item_init.h) in the returned model, and evaluates it
 * again. */
lapse_status lp_trainer_place_items(lp_trainer *trainer, lapse_error *error);

/* All epochs are done, or the score has not improved for `patience` epochs. */
bool lp_trainer_done(const lp_trainer *trainer);

#endif
