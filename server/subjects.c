/* subjects.c: see subjects.h. */
#include "subjects.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool out_of_memory(lapse_error *error)
{
    *error = (lapse_error){.status = LAPSE_ERROR_MEMORY, .message = "out of memory"};
    return false;
}

static void clear_scratch(srv_worker *w, int i)
{
    for (int j = 0; j < w->scratch[i].count; j++)
        lapse_session_free(w->scratch[i].sessions[j]);
    free(w->scratch[i].sessions);
    srv_model_drop(w->scratch[i].model);
    w->scratch[i].model = NULL;
    w->scratch[i].sessions = NULL;
    w->scratch[i].count = w->scratch[i].used = 0;
}

lapse_session *srv_scratch_take(srv_worker *w, srv_model *model, lapse_error *error)
{
    int place = -1;
    for (int i = 0; i < SRV_SCRATCH_MODELS; i++)
        if (w->scratch[i].model == model)
            place = i;
    for (int i = 0; i < SRV_SCRATCH_MODELS && place < 0; i++)
        if (w->scratch[i].used == 0) { /* of a model that this run has not needed so far */
            clear_scratch(w, i);
            w->scratch[i].model = srv_model_take(model);
            place = i;
        }
    if (place < 0) {
        *error = (lapse_error){.status = LAPSE_ERROR_USAGE, .message = "requests of too many models at once"};
        return NULL;
    }
    int used = w->scratch[place].used;
    if (used == w->scratch[place].count) {
        lapse_session **sessions = realloc(w->scratch[place].sessions, sizeof *sessions * (size_t)(used + 1));
        if (!sessions)
            return out_of_memory(error), NULL;
        w->scratch[place].sessions = sessions;
        if (lapse_session_new(model->model, &sessions[used], error) != LAPSE_OK)
            return NULL;
        w->scratch[place].count++;
    }
    w->scratch[place].used++;
    return w->scratch[place].sessions[used];
}

enum { SCRATCH_KEPT = 256 };

void srv_worker_rest(srv_worker *w)
{
    for (int i = 0; i < SRV_SCRATCH_MODELS; i++) {
        w->scratch[i].used = 0;
        /* Nobody else has the model any more; or a large request has left many sessions. */
        if (w->scratch[i].model &&
            (atomic_load(&w->scratch[i].model->references) == 1 || w->scratch[i].count > SCRATCH_KEPT))
            clear_scratch(w, i);
    }
}

void srv_worker_clear(srv_worker *w)
{
    for (int i = 0; i < SRV_SCRATCH_MODELS; i++)
        clear_scratch(w, i);
    srv_store_close(&w->store);
}

/* The cached session of a model; the slot of the least recent model is replaced. */
static srv_cached_session *find_session(srv_cached *entry, srv_model *model, lapse_error *error)
{
    srv_cached_session *found = NULL;
    for (int i = 0; i < SRV_CACHED_SESSIONS; i++)
        if (entry->sessions[i].model == model)
            return &entry->sessions[i];
    for (int i = 0; i < SRV_CACHED_SESSIONS && !found; i++)
        if (!entry->sessions[i].model)
            found = &entry->sessions[i];
    if (!found) {
        found = &entry->sessions[SRV_CACHED_SESSIONS - 1];
        lapse_session_free(found->session);
        srv_model_drop(found->model);
        *found = (srv_cached_session){0};
    }
    if (lapse_session_new(model->model, &found->session, error) != LAPSE_OK)
        return NULL;
    found->model = srv_model_take(model);
    return found;
}

static bool load(srv_worker *w, srv_cached *entry, int64_t position, lapse_error *error)
{
    srv_stored stored;
    if (entry->loaded)
        return true;
    srv_events_clear(&entry->events);
    bool good = srv_store_read(&w->store, entry->name, position, &entry->events, &stored);
    entry->alias = stored.root && strcmp(stored.root, entry->name) != 0;
    entry->known = entry->events.count > 0;
    entry->trimmed = stored.trimmed;
    free(stored.root);
    for (int i = 0; i < SRV_CACHED_SESSIONS; i++)
        entry->sessions[i].current = false;
    entry->loaded = good;
    if (good)
        return true;
    *error = (lapse_error){.status = LAPSE_ERROR_COMM};
    snprintf(error->message, sizeof error->message, "%s", w->store.message);
    return false;
}

static bool open_cached(srv_worker *w, srv_subject *s, srv_cached *entry, int64_t position, lapse_error *error)
{
    s->cached = entry;
    s->events = &entry->events;
    if (!load(w, entry, position, error))
        return false;
    srv_cached_session *session = find_session(entry, s->model, error);
    if (!session)
        return false;
    if (!session->current && srv_events_sync(&entry->events, s->model->model, session->session, &session->known,
                                             &session->last, error) != LAPSE_OK)
        return false;
    session->current = true;
    s->session = session->session;
    s->known = session->known;
    s->last = session->last;
    s->found = entry->known;
    s->trimmed = entry->trimmed;
    return true;
}

bool srv_subject_open(srv_worker *w, srv_subject *s, srv_cached *entry, int64_t position, lapse_error *error)
{
    if (entry)
        return open_cached(w, s, entry, position, error);
    if (s->name) {
        srv_stored stored;
        bool good = srv_store_read(&w->store, s->name, position, &s->own, &stored);
        s->found = s->own.count > 0;
        s->trimmed = stored.trimmed;
        free(stored.root);
        if (!good) {
            *error = (lapse_error){.status = LAPSE_ERROR_COMM};
            snprintf(error->message, sizeof error->message, "%s", w->store.message);
            return false;
        }
    }
    s->events = &s->own;
    s->session = srv_scratch_take(w, s->model, error);
    return s->session && srv_events_sync(&s->own, s->model->model, s->session, &s->known, &s->last, error) == LAPSE_OK;
}

void srv_subject_close(srv_subject *s)
{
    srv_events_clear(&s->own);
    srv_model_drop(s->model);
    s->model = NULL;
}
