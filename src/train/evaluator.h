/* evaluator.h: asks a model for every event of a split, on several threads, and keeps what it said.
 *
 * Made once and run as often as wanted (after every epoch) without further allocation.
 */
#ifndef LP_EVALUATOR_H
#define LP_EVALUATOR_H

#include "model/runner.h"
#include "model/translate.h"
#include "train/ranking.h"
#include "train/scores.h"
#include "train/prefetch.h"

/* What the model said of one target. */
typedef struct lp_verdicts {
    int32_t *predicted; /* [targets of a batch]; owned, and NULL where the model does not predict the target */
    double *loss;       /* [targets of a batch]; owned */
    lp_case *cases;     /* [windows.targets]; owned */
    double *shares;     /* [targets of a batch x names]: answers summed over draws, where there are several; owned */
} lp_verdicts;

typedef struct lp_evaluator {
    const lapse_model *model;
    lp_targets targets;
    lp_translation translation;
    lp_windows windows;
    lp_batch batch;
    lp_prefetch prefetch; /* where a device works on the current batch; empty for others */
    lp_network network;   /* of networks: planned for this evaluator's batches */
    lp_runner runner;     /* likewise */
    const lp_backend *backend;
    int threads;
    double *scratch;    /* [shards x event types]: baselines' answers; owned */
    float *states;      /* [windows.targets x dims]: of a recommender, in the order of events; owned */
    float *table;       /* a device's items and biases, on the host; owned */
    lp_ranking ranking; /* of a recommender's cases */
    uint8_t *drawn;     /* a split that has the cases drawn, where not all are ranked; owned */
    lp_verdicts verdicts[LP_TARGET_COUNT];
    int64_t case_count;
    int64_t *times;           /* as lp_pass.times, for who measures; not owned, NULL at first */
    const lp_profiler *watch; /* as lp_pass.watch; the same */
    float *parameters;        /* of the model, in the memory of a device: lp_evaluator_run_model; owned */
} lp_evaluator;

/* split holds each event's split. The model and dataset must outlive the evaluator. */
lapse_status lp_evaluator_init(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                               const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, int threads,
                               lapse_error *error);
/* The same for a network that recommends, with a ranking of one's own making: most, negatives, counts and seed are taken
 * from *wish. lp_evaluator_init draws no negatives, and where cases times items would take too long, some cases. */
lapse_status lp_evaluator_init_ranked(lp_evaluator *evaluator, const lp_backend *backend, const lapse_model *model,
                                      const lapse_dataset *dataset, const uint8_t *split, lp_split wanted, int threads,
                                      const lp_ranking_setup *wish, lapse_error *error);
void lp_evaluator_clear(lp_evaluator *evaluator);

/* Fills cases, with these parameters (networks), which lie in the backend's memory. */
void lp_evaluator_run(lp_evaluator *evaluator, const float *parameters);

/* Asks a baseline for the event `asked` of the sequence that begins at `start`; event type holds the model's numbers. */
void lp_baseline_query(const lapse_model *model, const lapse_dataset *dataset, const int32_t *type, int64_t start,
                       int64_t target_position, double *answer);

/* Ranks the cases of a recommender's run with these parameters: fills ranking. */
void lp_evaluator_rank(lp_evaluator *evaluator, const float *parameters);

/* What evaluates a model where a device of this name is wished for; NULL: "cpu". */
lapse_status lp_evaluator_device(const lapse_model *model, const char *name, const lp_backend **backend,
                                 lapse_error *error);

/* A run with the model's own parameters, and the ranks of a recommender. Once. */
lapse_status lp_evaluator_run_model(lp_evaluator *evaluator, lapse_error *error);

/* What training watches, after a run with these parameters: the share of cases whose first choice was right, of all
 * targets together; or a recommender's NDCG@10 among all items that a sequence did not have yet. */
double lp_evaluator_score(lp_evaluator *evaluator, const float *parameters);
const char *lp_evaluator_score_name(const lp_evaluator *evaluator); /* "accuracy" or "NDCG@10" */

/* The target of a name, NULL being the model's first; an error for a network that recommends, which has first choices of
 * nothing. */
lapse_status lp_evaluator_target(const lapse_model *model, const char *name, lp_target *target, lapse_error *error);

/* Each event's split for this model and dataset (owned by the caller), and which one `name` means. */
lapse_status lp_evaluator_split(const lapse_model *model, const lapse_dataset *dataset, const char *name,
                                uint8_t **split, lp_split *wanted, lapse_error *error);

#endif
