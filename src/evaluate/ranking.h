/* ranking.h: the rank of the target item among candidate items (docs/evaluation.md).
 *
 * A case is a target event. Its rank is 1 plus the number of other candidates whose score is not below the target's:
 * ties rank against the target, and so do NaN scores. The candidates are
 *
 *   full         the whole catalogue
 *   full-unseen  the same without the items of the sequence before the target event; the target itself always remains
 *   uniform      the target and 100 negatives sampled uniformly from the items that the sequence never has
 *   popularity   the same, sampled by their number of occurrences in training
 *
 * Scores come from the states of a network, multiplied with the item table a tile at a time and never stored whole, or
 * as a row of all items from a baseline.
 */
#ifndef LP_RANKING_H
#define LP_RANKING_H

#include "backend/backend.h"
#include "data/batch/window.h"
#include "evaluate/rank_negatives.h"

typedef enum lp_protocol {
    LP_PROTOCOL_UNSEEN = 0,
    LP_PROTOCOL_FULL = 1,
    LP_PROTOCOL_UNIFORM = 2,
    LP_PROTOCOL_POPULARITY = 3,
    LP_PROTOCOL_COUNT = 4
} lp_protocol;

const char *lp_protocol_name(lp_protocol protocol);

typedef struct lp_rank_result {
    int32_t rank[LP_PROTOCOL_COUNT];
    int32_t candidates[LP_PROTOCOL_COUNT]; /* the target included; 0: the protocol is not used */
} lp_rank_result;

typedef struct lp_ranking_setup {
    const lapse_dataset *dataset;
    const int32_t *type; /* of each event: item ids of the catalogue */
    int64_t items;
    const uint8_t *split;  /* of each event, as in lp_targets */
    lp_split wanted;       /* likewise; the first event of a sequence is never a case */
    int64_t max_cases;     /* a sample of this size if there are more cases; 0: all */
    int negatives;         /* 0: only the full protocols */
    const int64_t *counts; /* [items]: for negatives by popularity */
    uint64_t seed;         /* of negatives and of the sample of cases */
    int threads;
    const lp_backend *device; /* counts what states are ranked by; NULL: the host does */
    int dims;                 /* columns of a state on the device */
} lp_ranking_setup;

/* What a rank has counted of a case, among the items that it has. */
typedef struct lp_rank_partial {
    lp_rank_counts counts;
    int negatives[LP_RANK_POOLS]; /* of all ranks */
} lp_rank_partial;

/* The part of the catalogue that this process has, where it is divided among ranks: rankings then fill parts of the counts. */
typedef struct lp_rank_part {
    int64_t first_item, end_item;
    const float *target_scores; /* [case_count] */
    lp_rank_partial *partials;  /* [case_count] */
} lp_rank_part;

typedef struct lp_ranking {
    const lp_rank_part *part; /* NULL: all of the catalogue is here. Not owned */
    lp_ranking_setup setup;
    lp_rank_case *cases; /* in the order of events; owned */
    int64_t case_count;
    int64_t case_total;           /* before sampling */
    int64_t *list_start;          /* [lists + 1]; owned */
    lp_sequence_item *list_items; /* distinct items of each sequence that has a case, ascending; owned */
    lp_rank_pool pools[LP_RANK_POOLS];
    lp_rank_result *results;        /* [case_count]; owned */
    struct lp_rank_worker *workers; /* [threads]; owned */
    int block;                      /* cases of a thread's task */
    struct lp_rank_device *device;  /* owned; NULL without a device */
} lp_ranking;

/* Allocates all buffers. The arrays of *setup must outlive the ranking. */
lapse_status lp_ranking_init(lp_ranking *ranking, const lp_ranking_setup *setup, lapse_error *error);
void lp_ranking_clear(lp_ranking *ranking);

/* Scores of the cases: state [case_count x dims] times table [items x dims] plus bias [items], which may be NULL; or by a distance. The
 * states are in host memory. Table and bias are in that of the ranking's device, if it has one. */
typedef struct lp_rank_states {
    int dims;
    const float *state, *table, *bias;
    lp_score_rule rule;
} lp_rank_states;

/* Ranks the cases first .. end - 1 by these scores. */
void lp_ranking_states(lp_ranking *ranking, const lp_rank_states *states, int64_t first, int64_t end);

/* The scores of the targets of these cases, with one part of the catalogue: 0 for those of other parts. */
void lp_ranking_target_scores(const lp_ranking *ranking, const lp_rank_states *states, int64_t first, int64_t end,
                              float *scores);

/* Ranks a case by the counts of all parts: partials[0], [stride], [2 stride], ... */
void lp_ranking_finish(lp_ranking *ranking, int64_t number, const lp_rank_partial *partials, int parts, size_t stride);

/* Ranks all cases by rows of scores: `score` fills scores [items] for a case, on any thread. */
typedef void (*lp_rank_row)(void *context, const lp_rank_case *rank_case, double *scores);
void lp_ranking_rows(lp_ranking *ranking, lp_rank_row score, void *context);

/* Means over all cases. */
double lp_ranking_ndcg(const lp_ranking *ranking, lp_protocol protocol, int cutoff);
double lp_ranking_hit(const lp_ranking *ranking, lp_protocol protocol, int cutoff);
double lp_ranking_mrr(const lp_ranking *ranking, lp_protocol protocol);

/* Discounted gain of a rank at a cutoff: 1 / log2(1 + rank), or 0 past the cutoff. */
double lp_rank_gain(int32_t rank, int cutoff);

#endif
