/* subjects.h: the histories that a run of questions is about, with a session of each for its model. */
#ifndef SERVER_SUBJECTS_H
#define SERVER_SUBJECTS_H

#include "cache.h"
#include "server.h"

enum { SRV_SCRATCH_MODELS = 4 };

/* What an answering thread keeps from run to run. */
typedef struct srv_worker {
    srv_server *server;
    srv_store store; /* its connection */
    struct {
        srv_model *model;
        lapse_session **sessions; /* of histories that are not cached */
        int count, used;
    } scratch[SRV_SCRATCH_MODELS];
} srv_worker;

/* A history, and the session that has its events. */
typedef struct srv_subject {
    const char *name;   /* of the request; NULL: events of the request */
    srv_model *model;   /* a reference */
    srv_events own;     /* events of the request, or read from the store for this request alone */
    srv_cached *cached; /* NULL: `own`. Owned by the run */
    const srv_events *events;
    lapse_session *session;
    int64_t known; /* events that the model knows */
    double last;
    bool found; /* the store has it */
    int64_t trimmed;
} srv_subject;

/* The session of a subject: of the cache, or a scratch session. `entry` NULL with a name: reads the store at `position`. */
bool srv_subject_open(srv_worker *worker, srv_subject *subject, srv_cached *entry, int64_t position,
                      lapse_error *error);
void srv_subject_close(srv_subject *subject);

/* A further session of the same model, empty: for histories that differ. Valid until the run ends. */
lapse_session *srv_scratch_take(srv_worker *worker, srv_model *model, lapse_error *error);

/* The run ends: scratch sessions are free again. */
void srv_worker_rest(srv_worker *worker);
void srv_worker_clear(srv_worker *worker);

#endif
