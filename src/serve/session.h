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
    void **fields;      /* field_count of them, each like types: int32_t of a category, float of a number */
    float *gaps;        /* standardized, to the event appended before; NaN: none. Of models that read them */
    uint64_t *seen;     /* one bit per event type: the history has had it */
    lp_decoder decoder; /* of networks */
    float *items; /* [dims x stride]: transposed item vectors of a recommender; NULL: the catalogue is too large */
    size_t stride;
    float *scores;         /* [classes of the largest target]: of a recommender, or logs of probabilities */
    double *probabilities; /* [classes]: of baselines, and of means over parameter samples */
    float *state;          /* [dims]: of a recommender, the mean over parameter samples, as in evaluation */
    lp_target target;      /* of the current query */
    double *output;        /* where its probabilities go; NULL: scores suffice */
    const float *logits;   /* scores or logits of the newest query */
    float *time_outputs;   /* [parameter samples x columns of lp_network_time]: of models that predict times */
    double *time_memory;   /* [lp_time_law_size]: the numbers of the newest law */
    int time_sample;       /* parameter sample that the next output belongs to */
};

/* A state of a session, to which it can return: of events appended since then nothing remains. Not after `dropped` changes. */
typedef struct lp_session_mark {
    int64_t count, total;
    lp_decoder_mark decoder;
} lp_session_mark;

lp_session_mark lp_session_mark_of(const lapse_session *session);
void lp_session_return(lapse_session *session, lp_session_mark mark);

/* Drops events that no query reads any more, so that as many can be appended before the session drops some by itself. */
void lp_session_compact(lapse_session *session);

/* The law of the time of the next event, from the last event on; valid until the next query. The session has events, and its model
 * predicts times. */
lapse_status lp_session_law(lapse_session *session, lp_next_time *law, lapse_error *error);

/* A class drawn from probabilities that sum to 1. */
int64_t lp_draw_type(const double *probabilities, int64_t count, lp_random *random);

/* lapse_session_predict without checks of the time. */
lapse_status lp_session_probabilities(lapse_session *session, double time, double *probabilities, lapse_error *error);

/* Appends an event by id, at a finite time that is not before the last. */
void lp_session_add(lapse_session *session, double time, int32_t type, const lp_field_number *fields);

/* Appends an event of a dataset, at this time, from columns with the model's ids (model/id_map.h). */
void lp_session_add_row(lapse_session *session, const lp_event_columns *columns, double time, uint64_t event);

/* lapse_session_recommend for any target. */
lapse_status lp_session_best(lapse_session *session, double time, const char *target, int64_t top, bool unseen,
                             lapse_recommendation *best, int64_t *count, lapse_error *error);

/* Of a network that ranks: the state [dims] whose products with item vectors are the scores. */
lapse_status lp_session_state(lapse_session *session, double time, float *state, lapse_error *error);

#endif
