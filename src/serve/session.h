/* session.h: the inside of a session: events by their ids, for callers that have mapped names to ids. */
#ifndef LP_SESSION_H
#define LP_SESSION_H

#include "data/batch/batch.h"
#include "serve/decoder.h"

struct lapse_session {
    lapse_model *model;      /* shared: it lives as long as the session */
    int64_t count, capacity; /* events in times and types */
    int64_t total;           /* events since the history began: more than count only after lp_session_keep */
    double *times;
    int32_t *types;
    void **fields;      /* field_count of them, each like types: int32_t of a category, float of a number; NULL: none */
    float *gaps;        /* standardized, to the event appended before; NaN: none. Of models that read them */
    int32_t sequence;   /* of the training data: its index plus 1; 0: unknown */
    lp_row_cache cache; /* of networks */
    lp_decoder *decoder; /* held; NULL: none */
    lp_row_cache times_cache;   /* of a network of times, as is the next: made by the first query about a time */
    lp_decoder *times_decoder;  /* held with `decoder`; NULL: none */
    int holders;
    bool in_run; /* while the queries of a run are gathered: one is about the session */
};

/* Makes the session have a decoder, whose answer is that of its newest query, until as many calls of lp_session_release. */
lapse_status lp_session_hold(lapse_session *session, lapse_error *error);
void lp_session_release(lapse_session *session);

/* A network of the model, as a session that holds a decoder queries it. */
typedef struct lp_session_network {
    lp_decoder *decoder;
    lp_row_cache *cache;
} lp_session_network;

lp_session_network lp_session_events(lapse_session *session);
/* The network that predicts the time of the next event, of a model that does. */
lapse_status lp_session_times(lapse_session *session, lp_session_network *network, lapse_error *error);

/* Nodes of the midpoint rule in the probability of the time: each stands for the same part of the mass up to the horizon. */
enum { LP_WITHIN_NODES = 64 };

/* Rows of outputs: `wanted`, or fewer where a model has so many classes that outputs are large. */
int lp_output_rows(const lapse_model *model, int wanted);

/* A state of a session, to which it can return: of events appended since then nothing remains. Not after lp_session_keep. */
typedef struct lp_session_mark {
    int64_t count, total;
    lp_row_mark rows, times_rows;
} lp_session_mark;

lp_session_mark lp_session_mark_of(const lapse_session *session);
void lp_session_return(lapse_session *session, lp_session_mark mark);

/* Drops the oldest events, so that at most `events` are left. */
void lp_session_keep(lapse_session *session, int64_t events);

/* A view of the session's events. */
lp_history lp_session_history(const lapse_session *session);

/* Checks a query at this time: the target of a name, or with NULL the first one. */
lapse_status lp_session_check(const lapse_session *session, double time, const char *name, lp_target *target,
                              lapse_error *error);
lapse_status lp_session_check_state(const lapse_session *session, double time, lapse_error *error);

/* lapse_session_state of any recommender, also of one whose scores are distances. */
lapse_status lp_session_state(lapse_session *session, double time, float *state, lapse_error *error);

/* The functions up to lp_session_branch are of a session that holds a decoder. */

/* The law of the time of the next event, from the last event on; valid until the next query. The session has events, and its model
 * predicts times. */
lapse_status lp_session_law(lapse_session *session, lp_next_time *law, lapse_error *error);

/* A class drawn from probabilities that sum to 1. */
int64_t lp_draw_type(const double *probabilities, int64_t count, lp_random *random);

/* lapse_session_predict without checks of the time. */
lapse_status lp_session_probabilities(lapse_session *session, double time, double *probabilities, lapse_error *error);

/* The same at several times, [count x classes]; count is at most lp_output_rows of LP_WITHIN_NODES. */
lapse_status lp_session_probabilities_at(lapse_session *session, int count, const double *time, double *probabilities,
                                         lapse_error *error);

/* The same for rows of a query about branches, whose outputs are [count x classes]. NULL: only time_outputs can be used. A model that
 * cannot decode incrementally is queried for one branch, whose events the session has: the output is that of branch `row`. */
lapse_status lp_session_branches(lapse_session *session, lp_session_network network, lp_branch_rows *rows,
                                 const lp_branch_query *query, double *probabilities, lapse_error *error);
lapse_status lp_session_branch(lapse_session *session, lp_session_network network, double time, int row,
                               double *probabilities, lapse_error *error);

/* Makes space for this many events in all: the next calls of lp_session_add up to these do not fail. */
lapse_status lp_session_reserve(lapse_session *session, int64_t events, lapse_error *error);

/* Appends an event by id, at a finite time that is not before the last. */
lapse_status lp_session_add(lapse_session *session, double time, int32_t type, const lp_field_number *fields,
                            lapse_error *error);

/* Appends an event of a dataset, at this time, from columns with the model's ids (model/id_map.h). */
lapse_status lp_session_add_row(lapse_session *session, const lp_event_columns *columns, double time, uint64_t event,
                                lapse_error *error);

/* Reads an event of the caller, after one at the time `last` (NaN: none): its id and fields [LP_FIELD_LIMIT]. */
lapse_status lp_session_read_event(const lapse_session *session, const lapse_event *event, double last, int32_t *id,
                                   lp_field_number *fields, lapse_error *error);

/* lapse_session_recommend for any target and filter, which is valid. */
lapse_status lp_session_best(lapse_session *session, double time, const char *target, int64_t top,
                             const lapse_item_filter *filter, lapse_recommendation *best, int64_t *count,
                             lapse_error *error);

/* Chooses the best of the scores of all classes of the answer's target, to which it adds the filter's offsets. */
void lp_session_select(const lapse_session *session, lp_answer *answer, float *scores, const lapse_item_filter *filter,
                       int64_t top, lapse_recommendation *best, int64_t *count);

#endif
