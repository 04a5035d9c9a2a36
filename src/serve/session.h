/* session.h: a session from within: events by their numbers, for who has translated names already. */
#ifndef LP_SESSION_H
#define LP_SESSION_H

#include "serve/decoder.h"

/* A field of an event in the model's numbers. */
typedef union lp_field_number {
    int32_t category;
    float number;
} lp_field_number;

struct lapse_session {
    const lapse_model *model;
    int64_t count,
        capacity;  /* events in times and event types; room for twice what is kept, so that moving down is rare */
    int64_t total; /* events since the history began */
    double *times;
    int32_t *types;
    void **fields;      /* field_count of them, each like event types: int32_t of a category, float of a number */
    uint64_t *seen;     /* a bit for each event type: the history has had it */
    lp_decoder decoder; /* of networks */
    float *transposed;  /* [dims x stride]: the vectors of a recommender's items, on their side; NULL: too many */
    size_t stride;
    float *scores;     /* [names of the largest target]: of a recommender, and where chances are turned into scores */
    double *chances;   /* [names]: of baselines, and where the answer is a mean of chances */
    float *state;      /* [dims]: of a recommender, the mean over draws, as evaluation has it */
    lp_target target;  /* asked for */
    double *answer;    /* where probabilities go */
    const float *made; /* scores or logits of the newest answer */
};

/* Appends an event in the model's numbers, of finite time and not before the last. */
void lp_session_add(lapse_session *session, double time, int32_t type, const lp_field_number *fields);

/* The best of what the target may be: lapse_session_recommend for any target. */
lapse_status lp_session_best(lapse_session *session, double time, const char *target, int64_t top, bool unseen,
                             lapse_recommendation *best, int64_t *count, lapse_error *error);

/* Of a network that recommends: the state [dims] that items are scored by. */
lapse_status lp_session_state(lapse_session *session, double time, float *state, lapse_error *error);

#endif
