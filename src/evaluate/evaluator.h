/* evaluator.h: predicts every event of a split with a model, on several threads.
 *
 * An evaluator is initialized once and can run any number of times (after every epoch) without further allocation.
 */
#ifndef LP_EVALUATOR_H
#define LP_EVALUATOR_H

#include "base/threads.h"
#include "comm/comm.h"
#include "model/runner.h"
#include "model/id_map.h"
#include "model/item_rows.h"
#include "model/metric.h"
#include "evaluate/ranking.h"
#include "evaluate/scores.h"
#include "data/batch/prefetch.h"
#include "evaluate/time_scores.h"

/* Predictions of one target (event or action). */
typedef struct lp_predictions {
    int32_t *predicted;    /* [targets of a batch]; owned, and NULL where the model does not predict the target */
    double *loss;          /* [targets of a batch]; owned */
    lp_case *cases;        /* [windows.targets]; owned */
    double *probabilities; /* [targets of a batch x classes]: mean over frequency samples; NULL: one sample; owned */
} lp_predictions;

/* Laws of the time of the next event. */
typedef struct lp_time_predictions {
    int width;           /* columns of lp_network_time; 0: the model predicts no times, and the rest is empty */
    double floor;        /* seconds: a shorter gap counts as this */
    bool whole;          /* all scores of a case are computed, not its log-likelihood alone */
    float *outputs;      /* [targets of a batch x frequency samples x width]; owned */
    double *memory;      /* [threads x lp_time_law_size]; owned */
    lp_time_case *batch; /* [targets of a batch]; owned */
    lp_time_case *cases; /* [windows.targets]; owned */
} lp_time_predictions;

typedef struct lp_evaluator {
    const lapse_model *model;
    lp_targets targets;
    lp_id_map id_map;
    lp_windows windows;
    lp_batch batch;
    lp_prefetch prefetch; /* of a device; empty on the host */
    lp_network network;   /* planned for this evaluator's batches; empty for baselines */
    lp_runner runner;     /* likewise */
    const lp_backend *backend;
    int threads;
    double *scratch;    /* [shards x event types]: probabilities of a baseline; owned */
    float *states;      /* [windows.targets x dims]: of a recommender, in the order of events; owned */
    bool direct;        /* a device copies to the states without waiting: they are pinned */
    lp_ranking ranking; /* of a recommender */
    uint8_t *sampled;   /* split in which only the sampled cases are LP_SPLIT_TEST; NULL: all are ranked; owned */
    lp_predictions predictions[LP_TARGET_COUNT];
    lp_time_predictions time;
    int sample; /* frequency sample of the current pass */
    int64_t case_count;
    double open_nll;             /* of the open gaps, summed (lp_evaluator_init_censored) */
    double *batch_open_nll;      /* [batches]: the same of each batch; owned */
    lapse_comm *comm;            /* batches are divided among its ranks; not owned; NULL unless the caller sets it */
    int64_t own_first, own_end;  /* cases of this rank's batches; their states are the first ones */
    lp_item_rows item_rows;      /* of a model whose item tables are divided; otherwise empty */
    float *target_scores;        /* [windows.targets]: of such a recommender; owned, as are the next two */
    lp_rank_partial *partials;   /* [ranks x PARTIALS]: what each rank has counted */
    int32_t *types;              /* [tokens of a batch] */
    int64_t *times;              /* as lp_pass.times; not owned; NULL unless the caller sets it */
    const lp_profiler *profiler; /* as lp_pass.profiler; likewise */
    float *parameters;           /* the model's, in device memory (lp_evaluator_run_model); owned */
} lp_evaluator;

/* split holds each event's split. The model and dataset must outlive the evaluator. */
lapse_status lp_evaluator_init(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                               const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, int threads,
                               lapse_error *error);
/* The same for a recommender, with max_cases, negatives, counts and seed of the ranking from *setup. lp_evaluator_init
 * ranks without negatives, and samples the cases where all of them would take too long. */
lapse_status lp_evaluator_init_ranked(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                                      const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, int threads,
                                      const lp_ranking_setup *setup, lapse_error *error);
/* The same for the validation of a training with right censoring: gaps of the split that are open at the time `end` (lp_split_end) count
 * in the metric of times. They do not count as cases, and a recommender leaves them out. */
lapse_status lp_evaluator_init_censored(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                                        const lapse_dataset *dataset, const uint8_t *split, lp_split wanted,
                                        int threads, double end, lapse_error *error);
void lp_evaluator_clear(lp_evaluator *evaluator);

/* Predicts every target with these parameters of a network, which are in the backend's memory. Fills cases, or
 * states. */
void lp_evaluator_run(lp_evaluator *evaluator, const float *parameters);

/* Predicts `event` of the sequence that begins at `start` with a baseline. type: of each event, in the model's ids. */
void lp_baseline_predict(const lapse_model *model, const lapse_dataset *dataset, const int32_t *type, int64_t start,
                         int64_t event, double *probabilities);

static inline int64_t lp_evaluator_batches(const lp_evaluator *evaluator)
{
    int64_t windows = evaluator->batch.capacity_windows;
    return (evaluator->windows.count + windows - 1) / windows;
}

/* evaluator_ranks.c: ends a run, of this rank's batches: gives all ranks the cases of all, in the order of events; comm->numbers then has
 * the first case of each rank. `gather` does the same for another array of cases, in which those of this rank are in their places. */
void lp_evaluator_join(lp_evaluator *evaluator);
/* Ranks all cases against divided tables: each rank against its own rows. */
void lp_evaluator_rank_divided(lp_evaluator *evaluator, const lp_rank_states *states);
/* After init: divides the work among ranks. A model whose item tables are divided needs their communicator. */
lapse_status lp_evaluator_on_ranks(lp_evaluator *evaluator, lapse_comm *comm, lapse_error *error);
void lp_evaluator_gather(lp_evaluator *evaluator, void *cases, size_t size);

/* Ranks the cases of a recommender by the states of the last run, which had the same parameters. */
void lp_evaluator_rank(lp_evaluator *evaluator, const float *parameters);

/* The backend that evaluates a model on the device of this name; NULL: "cpu". Baselines always use the CPU. */
lapse_status lp_evaluator_device(const lapse_model *model, const char *name, const lp_backend **backend,
                                 lapse_error *error);

/* Runs with the model's own parameters, and ranks a recommender's cases. May be called once. */
lapse_status lp_evaluator_run_model(lp_evaluator *evaluator, lapse_error *error);

/* lapse_rank_evaluate with other scores than the model's: `score` fills the scores of all items at a case. The model gives
 * catalogue, split and target. Runs on one thread. */
lapse_status lp_rank_evaluate_rows(const lapse_model *model, const lapse_dataset *dataset,
                                   const lapse_rank_options *options, lp_rank_row score, void *context,
                                   lapse_rank_scores *scores, lapse_error *error);

/* The metrics of training (lp_metric_columns), after a run with these parameters. */
void lp_evaluator_metrics(lp_evaluator *evaluator, const float *parameters, double values[LP_METRIC_COLUMNS]);

/* Parses lapse_evaluate_options.target: the predicted target, and the target events ("action=view"), a part of the text or
 * of the model. */
lapse_status lp_evaluator_target(const lapse_model *model, const char *text, lp_target *target, const char **events,
                                 lapse_error *error);

/* The same for a classifier or a baseline. A recommender is an error: it has no class probabilities. */
lapse_status lp_evaluator_class_target(const lapse_model *model, const char *text, lp_target *target,
                                       const char **events, lapse_error *error);

/* Fills *split with each event's split for this model and dataset, LP_SPLIT_NONE for events that are not targets (owned by
 * the caller; NULL for "all" if every event is a target), and *wanted with the one of this name, LP_SPLIT_COUNT for
 * "all". */
lapse_status lp_evaluator_split(const lapse_model *model, const lapse_dataset *dataset, const char *name,
                                const char *events, uint8_t **split, lp_split *wanted, lapse_error *error);

#endif
