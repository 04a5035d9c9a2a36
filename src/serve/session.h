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
};

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
