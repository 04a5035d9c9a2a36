/* branches.h: continuations of a session's history that are queried together, each by events of its own.
 *
 * The session's history is common to all branches. A branch is queried for the type of its next event at a time, and for the law of
 * the time; an event is then appended to it. With an incremental model one query about many branches costs little more than the
 * products of matrices in it (decoder.h); another model runs one window after another. An appended event has the fields of the last
 * event of its type before it or, where there is none, of the last event.
 */
#ifndef LP_BRANCHES_H
#define LP_BRANCHES_H

#include "serve/session.h"

typedef struct lp_branches {
    lapse_session *session; /* holds a decoder */
    lp_branch_rows rows;    /* of up to rows.branches branches of rows.events events */
    lp_branch_rows times_rows; /* the same of a network of times; empty where the model has none */
    int32_t *length;        /* [branches]: events of each after the history */
    double *times;          /* [branches x rows.events] */
    int32_t *types;         /* the same, as are gaps and sources */
    int32_t *sources;       /* the event of the session's history whose fields it has */
    float *gaps;
    double *query_time; /* [branches]: of the newest query about its type */
    int32_t *first;     /* [branches]: those of one event, of a query */
    const lp_answer *laws; /* of the newest query about laws */
    /* [branches]: the rows of a query */
    int32_t *row_length, *row_type, *row_source;
    double *row_event_time, *row_time;
    float *row_gap;
} lp_branches;

/* Events of a history that leave space in the context for those of a branch. */
int64_t lp_branches_history(const lapse_model *model);

/* For up to `count` branches, or fewer where a model has many classes. The session outlives the branches. After an error there is
 * nothing to clear. */
lapse_status lp_branches_init(lp_branches *branches, lapse_session *session, int count, lapse_error *error);
void lp_branches_clear(lp_branches *branches);

/* Takes a branch back to the history. */
void lp_branches_reset(lp_branches *branches, int branch);

/* Probabilities [count x types] of the next event's type, of `count` branches at these times. */
lapse_status lp_branches_types(lp_branches *branches, int count, const int32_t *branch, const double *time,
                               double *probabilities, lapse_error *error);

/* Queries the laws of the next event's time of `count` branches, from their newest events on. lp_branches_law then gives the law of
 * one: valid until the next call of it or query. */
lapse_status lp_branches_laws(lp_branches *branches, int count, const int32_t *branch, lapse_error *error);
lp_next_time lp_branches_law(const lp_branches *branches, int row);

/* Whether one more event fits a branch. Otherwise lp_branches_commit makes its events part of the history. */
bool lp_branches_has_space(const lp_branches *branches, int branch);

/* Appends an event of this type to a branch, at the time of its newest query, which was about the type. */
void lp_branches_add(lp_branches *branches, int branch, int32_t type);

/* Appends the events of a branch to the session's history, and then one of this type at the time of the branch's newest query. The
 * branch starts from there; others are reset before they are queried again. */
lapse_status lp_branches_commit(lp_branches *branches, int branch, int32_t type, lapse_error *error);

#endif
