/* evaluator.h: asks a model for every event of a split, on several threads, and keeps what it said.
 *
 * Made once and run as often as wanted (after every epoch) without further allocation.
 */
#ifndef LP_EVALUATOR_H
#define LP_EVALUATOR_H

#include "model/runner.h"
#include "train/scores.h"

typedef struct lp_evaluator {
    const lapse_model *model;
    lp_targets targets;
    const int32_t *kinds; /* of every event, in the model's numbers */
    int32_t *mapped;      /* owned; what kinds points to where the dataset numbers them otherwise */
    lp_windows windows;
    lp_batch batch;
    lp_network network;   /* of networks: planned for this evaluator's batches */
    lp_runner runner;     /* likewise */
    int threads;
    double *scratch;      /* [shards x kinds]: floors' answers; owned */
    double *shares;       /* [tokens of a batch x kinds]: answers summed over draws, where there are several; owned */
    int32_t *predicted;   /* [tokens of a batch]; owned */
    double *loss;         /* [tokens of a batch]; owned */
    lp_case *cases;       /* [windows.targets]; owned */
    int64_t case_count;
} lp_evaluator;

/* split holds each event's split. The model and dataset must outlive the evaluator. */
lapse_status lp_evaluator_init(lp_evaluator *evaluator, const lapse_model *model, const lapse_dataset *dataset,
                               const uint8_t *split, lp_split wanted, int threads, lapse_error *error);
void lp_evaluator_clear(lp_evaluator *evaluator);

/* Fills cases, with these parameters (networks). */
void lp_evaluator_run(lp_evaluator *evaluator, const float *parameters);

/* Share of cases whose first choice was right. */
double lp_evaluator_accuracy(const lp_evaluator *evaluator);

/* Each event's split for this model and dataset (owned by the caller), and which one `name` means. */
lapse_status lp_evaluator_split(const lapse_model *model, const lapse_dataset *dataset, const char *name,
                                uint8_t **split, lp_split *wanted, lapse_error *error);

#endif
