/* session.h: the inside of a session: events by their ids, for callers that have mapped names to ids. */
#ifndef LP_SESSION_H
#define LP_SESSION_H

#include "data/batch/batch.h"
#include "serve/decoder.h"

/* A field of an event: the id of a category, or a standardized number. */
typedef union lp_field_number {
    int32_t category;
    float number;
} lp_field_number;

struct lapse_session {
    lapse_model *model;      /* shared: it lives as long as the session */
    int64_t count, capacity; /* events in times and types; twice the lookback, so that events are moved down rarely */
    int64_t total;           /* events since the history began */
    double *times;
    int32_t *types;
    void **fields;           /* field_count of them, each like types: int32_t of a category, float of a number */
    float *gaps;             /* standardized, to the event appended before; NaN: none. Of models that read them */
    uint64_t *seen;          /* one bit per event type: the history has had it */
    uint64_t *skip;          /* the mask of the current query (item_filter.h) */
    lp_branch_limits limits; /* of queries about several branches (branches.h) */
    lp_decoder decoder;      /* of networks */
    float *items; /* [dims x stride]: transposed item vectors of a recommender; NULL: the catalogue is too large */
    size_t stride;
    float *scores;         /* [classes of the largest target]: of a recommender, or logs of probabilities */
    double *probabilities; /* [classes]: of baselines, and of means over parameter samples */
    float *state;          /* [branches x dims]: of a recommender, the mean over parameter samples, as in evaluation */
    lp_target target;      /* of the current query */
    int first_row, rows;   /* that the outputs of the current run are: branches, or 0 and 1 */
    double *output;        /* [rows x classes]: where its probabilities go; NULL: scores suffice */
    const float *logits;   /* scores or logits of the newest query */
    float *time_outputs; /* [branches x parameter samples x columns of lp_network_time]: of models that predict times */
    double *time_memory; /* [lp_time_law_size]: the numbers of the newest law */
    int time_sample;     /* parameter sample that the next output belongs to */
};

/* Nodes of the midpoint rule in the probability of the time: each stands for the same part of the mass up to the horizon. */
enum { LP_WITHIN_NODES = 64 };

/* Rows of a query about several times or branches: `wanted`, or fewer where a model has so many classes that outputs are large. */
int lp_session_rows(const lapse_model *model, int wanted);

/* The limits of lapse_session_new: those that the queries of a session itself need. */
lp_branch_limits lp_session_limits(const lapse_model *model);

/* lapse_session_new for queries about several branches. */
lapse_status lp_session_new(const lapse_model *model, lp_branch_limits limits, lapse_session **session,
                            lapse_error *error);

/* A state of a session, to which it can return: of events appended since then nothing remains. Not after `dropped` changes. */
typedef struct lp_session_mark {
    int64_t count, total;
    lp_decoder_mark decoder;
} lp_session_mark;

lp_session_mark lp_session_mark_of(const lapse_session *session);
void lp_session_return(lapse_session *session, lp_session_mark mark);

/* Drops the oldest events, so that at most `events` are left. */
void lp_session_keep(lapse_session *session, int64_t events);

/* The law of the time of the next event, from the last event on; valid until the next query. The session has events, and its model
 * predicts times. */
lapse_status lp_session_law(lapse_session *session, lp_next_time *law, lapse_error *error);

/* A class drawn from probabilities that sum to 1. */
int64_t lp_draw_type(const double *probabilities, int64_t count, lp_random *random);

/* lapse_session_predict without checks of the time. */
lapse_status lp_session_probabilities(lapse_session *session, double time, double *probabilities, lapse_error *error);

/* The same at several times, [count x classes]; count is at most limits.branches. */
lapse_status lp_session_probabilities_at(lapse_session *session, int count, const double *time, double *probabilities,
                                         lapse_error *error);

/* The same for rows of a query about branches, whose outputs are [count x classes]. NULL: only time_outputs are of use. A model that
 * cannot decode incrementally is queried for one branch, whose events the session has: the output is that of branch `row`. */
lapse_status lp_session_branches(lapse_session *session, const lp_branch_query *query, double *probabilities,
                                 lapse_error *error);
lapse_status lp_session_branch(lapse_session *session, double time, int row, double *probabilities, lapse_error *error);

/* Appends an event by id, at a finite time that is not before the last. */
void lp_session_add(lapse_session *session, double time, int32_t type, const lp_field_number *fields);

/* Appends an event of a dataset, at this time, from columns with the model's ids (model/id_map.h). */
void lp_session_add_row(lapse_session *session, const lp_event_columns *columns, double time, uint64_t event);

/* Reads an event of the caller, after one at the time `last` (NaN: none): its id and fields [LP_FIELD_LIMIT]. */
lapse_status lp_session_read_event(const lapse_session *session, const lapse_event *event, double last, int32_t *id,
                                   lp_field_number *fields, lapse_error *error);

/* lapse_session_recommend for any target and filter, which is valid. */
lapse_status lp_session_best(lapse_session *session, double time, const char *target, int64_t top,
                             const lapse_item_filter *filter, lapse_recommendation *best, int64_t *count,
                             lapse_error *error);

#endif
