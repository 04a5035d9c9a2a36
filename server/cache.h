/* cache.h: histories of the store in memory with their sessions, bounded in bytes.
 *
 * An entry belongs to one thread at a time. New events are pushed to entries as they are committed, and applied by the next
 * owner. So a reader sees, at the position that it is given, every event up to it and none after it. */
#ifndef SERVER_CACHE_H
#define SERVER_CACHE_H

#include "item_catalogue.h"
#include "models.h"
#include "store.h"

enum { SRV_CACHED_SESSIONS = 4 };

/* A session of a history for one model. */
typedef struct srv_cached_session {
    srv_model *model; /* a reference */
    lapse_session *session;
    bool current; /* it has the events */
    int64_t known;
    double last;
} srv_cached_session;

typedef struct srv_pending {
    double time;
    int64_t position;
    char *text; /* id, name, fields, as in srv_event */
    struct srv_pending *next;
} srv_pending;

typedef struct srv_cached {
    char *name;
    uint64_t hash;
    struct srv_cached *next;          /* of the bucket */
    struct srv_cached *older, *newer; /* by use */
    bool busy, loaded, dropped;       /* dropped: not in the table any more; freed on release */
    bool known;                       /* the store has it */
    bool alias;                       /* of a merged history, to which events are not pushed: not kept */
    int64_t trimmed;
    srv_pending *pending, **pending_end; /* committed, not yet in events */
    srv_events events;
    srv_cached_session sessions[SRV_CACHED_SESSIONS];
    int64_t bytes;
} srv_cached;

typedef struct srv_cache {
    pthread_mutex_t mutex;
    srv_cached **buckets;
    size_t bucket_count;
    srv_cached *oldest, *newest;
    int64_t count, bytes, limit;
    int64_t position;         /* that all readers see */
    srv_catalogue *catalogue; /* of this position; a reference */
    atomic_llong hits, misses, evictions;
} srv_cache;

bool srv_cache_new(srv_cache *cache, int64_t limit);
void srv_cache_clear(srv_cache *cache); /* everything, at the end */

/* Acquires entries. entries[i] is NULL where another thread owns it: then the caller reads the store at *position itself. An
 * entry that is not loaded must be, at *position, before it is released. *catalogue is a reference. */
void srv_cache_acquire(srv_cache *cache, const char *const *names, int count, srv_cached **entries, int64_t *position,
                       srv_catalogue **catalogue);
void srv_cache_release(srv_cache *cache, srv_cached *entry);

/* Events that have been committed, and the position after them. */
void srv_cache_push(srv_cache *cache, const srv_new_event *events, int64_t count, int64_t position);
/* Drops a history (NULL: all), and moves the position. */
void srv_cache_drop(srv_cache *cache, const char *name, int64_t position);
/* Replaces the catalogue, whose reference the cache takes over, and moves the position. */
void srv_cache_renew(srv_cache *cache, srv_catalogue *catalogue, int64_t position);
/* A reference to the catalogue. */
srv_catalogue *srv_cache_catalogue(srv_cache *cache);
/* Frees the sessions of models that are not wanted any more, except in entries that are in use. */
void srv_cache_drop_model(srv_cache *cache, const srv_model *model);

#endif
