/* models.h: the models of the server. A model is shared by reference: requests finish on the model that they began with. */
#ifndef SERVER_MODELS_H
#define SERVER_MODELS_H

#include <lapse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct srv_model {
    lapse_model *model;
    char *path;           /* owned */
    uint64_t fingerprint; /* of the bytes of the file */
    char fingerprint_text[17];
    int64_t *popular; /* event types, the most frequent in training first; owned */
    atomic_int references;
} srv_model;

/* Loads a file, and answers one question, so that a model that cannot answer is refused. */
bool srv_model_load(const char *path, srv_model **model, lapse_error *error);
srv_model *srv_model_take(srv_model *model);
void srv_model_drop(srv_model *model);

/* Bytes of a session. */
int64_t srv_model_session_bytes(const srv_model *model, const lapse_session *session);

#endif
