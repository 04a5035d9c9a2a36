/* ranking.h: where the item that came next stands among all others.
 *
 * A case is an event that was asked for. Its rank is 1 and one more for each other candidate whose score is not below the
 * target's: ties rank against the target, and so does what is no number. Candidates are
 *
 *   full         the whole catalogue
 *   full-unseen  the same without the items that the sequence had before; the target itself always stays
 *   uniform      the target and 100 items drawn alike from those that the sequence never has
 *   popularity   the same, drawn by how often they occur in training
 *
 * Scores come as states of a network, whose products with the item table are made a tile at a time and never stored
 * whole, or as a row of all items from a baseline. docs/evaluation.md is for people.
 */
#ifndef LP_RANKING_H
#define LP_RANKING_H

#include "data/batch/window.h"
#include "train/rank_negatives.h"

typedef enum lp_protocol {
    LP_PROTOCOL_UNSEEN = 0,
    LP_PROTOCOL_FULL = 1,
    LP_PROTOCOL_UNIFORM = 2,
    LP_PROTOCOL_POPULARITY = 3,
    LP_PROTOCOL_COUNT = 4
} lp_protocol;

const char *lp_protocol_name(lp_protocol protocol);

typedef struct lp_rank_case {
    int64_t sequence, event;
    int64_t own; /* which of the lists of own items is the sequence's */
} lp_rank_case;

/* Where a case's target came to stand. */
typedef struct lp_standing {
    int32_t rank[LP_PROTOCOL_COUNT];
    int32_t candidates[LP_PROTOCOL_COUNT]; /* the target included; 0: the protocol was not asked for */
} lp_standing;

/* An item of a sequence, with its first event there. */
typedef struct lp_own_item {
    int32_t item;
    int64_t first;
} lp_own_item;

/* What is ranked, and how. */
typedef struct lp_ranking_setup {
    const lapse_dataset *dataset;
    const int32_t *type; /* of each event, in the catalogue's numbers */
    int64_t items;
    const uint8_t *split;  /* of each event */
    lp_split wanted;       /* LP_SPLIT_COUNT: every event but the first ones */
    int64_t most;          /* cases, drawn by the seed where there are more; 0: all */
    int negatives;         /* 0: only the full protocols */
    const int64_t *counts; /* [items]: for negatives by popularity */
    uint64_t seed;         /* of negatives and of the drawn cases */
    int threads;
} lp_ranking_setup;

typedef struct lp_ranking {
    lp_ranking_setup setup;
    lp_rank_case *cases; /* in the order of events; owned */
    int64_t case_count;
    int64_t case_total;             /* before some were drawn */
    int64_t *own_start;             /* [lists + 1]; owned */
    lp_own_item *own;               /* each list in the order of items; owned */
    lp_rank_pool pools[2];          /* uniform, popularity */
    lp_standing *standing;          /* [case_count]: the result; owned */
    struct lp_rank_worker *workers; /* [threads]; owned */
    int block;                      /* cases that a thread takes at a time */
} lp_ranking;

/* What *setup points to must outlive the ranking. Nothing is allocated later on. */
lapse_status lp_ranking_init(lp_ranking *ranking, const lp_ranking_setup *setup, lapse_error *error);
void lp_ranking_clear(lp_ranking *ranking);

/* Ranks all cases by state [case_count x dims] times table [items x dims] plus bias [items], which may be NULL. */
void lp_ranking_states(lp_ranking *ranking, int dims, const float *state, const float *table, const float *bias);

/* Ranks all cases by rows of scores: `score` fills scores [items] for a case, on any thread. */
typedef void (*lp_rank_row)(void *context, const lp_rank_case *target_position, double *scores);
void lp_ranking_rows(lp_ranking *ranking, lp_rank_row score, void *context);

/* Means over all cases. */
double lp_ranking_hit(const lp_ranking *ranking, lp_protocol protocol, int cutoff);
double lp_ranking_ndcg(const lp_ranking *ranking, lp_protocol protocol, int cutoff);

/* What a rank is worth at a cutoff: 1 / log2(1 + rank), or 0 below it. */
double lp_rank_gain(int32_t rank, int cutoff);

#endif
