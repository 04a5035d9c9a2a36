/* cache.c: see cache.h. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS_FIRST = 1024 };

bool srv_cache_new(srv_cache *cache, int64_t limit)
{
    *cache = (srv_cache){.limit = limit, .bucket_count = BUCKETS_FIRST};
    pthread_mutex_init(&cache->mutex, NULL);
    cache->buckets = calloc(cache->bucket_count, sizeof *cache->buckets);
    return cache->buckets != NULL;
}

static uint64_t hash_of(const char *name)
{
    uint64_t hash = 1469598103934665603u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return hash ^ hash >> 32;
}

static void clear_sessions(srv_cached *entry)
{
    for (int i = 0; i < SRV_CACHED_SESSIONS; i++) {
        lapse_session_free(entry->sessions[i].session);
        srv_model_drop(entry->sessions[i].model);
        entry->sessions[i] = (srv_cached_session){0};
    }
}

static void clear_pending(srv_cached *entry)
{
    while (entry->pending) {
        srv_pending *next = entry->pending->next;
        free(entry->pending->text);
        free(entry->pending);
        entry->pending = next;
    }
    entry->pending_end = &entry->pending;
}

static void free_entry(srv_cached *entry)
{
    clear_sessions(entry);
    clear_pending(entry);
    srv_events_clear(&entry->events);
    free(entry->name);
    free(entry);
}

static srv_cached *find(srv_cache *cache, const char *name, uint64_t hash)
{
    srv_cached *entry = cache->buckets[hash % cache->bucket_count];
    while (entry && (entry->hash != hash || strcmp(entry->name, name) != 0))
        entry = entry->next;
    return entry;
}

static void unlink_use(srv_cache *cache, srv_cached *entry)
{
    *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
    entry->older = entry->newer = NULL;
}

static void link_newest(srv_cache *cache, srv_cached *entry)
{
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

/* Takes an entry out of the table. */
static void take_out(srv_cache *cache, srv_cached *entry)
{
    srv_cached **at = &cache->buckets[entry->hash % cache->bucket_count];
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    unlink_use(cache, entry);
    cache->count--;
    cache->bytes -= entry->bytes;
    entry->dropped = true;
}

static void evict(srv_cache *cache)
{
    srv_cached *entry = cache->oldest;
    while (entry && cache->bytes > cache->limit) {
        srv_cached *newer = entry->newer;
        if (!entry->busy) {
            take_out(cache, entry);
            free_entry(entry);
            atomic_fetch_add(&cache->evictions, 1);
        }
        entry = newer;
    }
}

static void grow(srv_cache *cache)
{
    size_t count = cache->bucket_count * 2;
    srv_cached **buckets = calloc(count, sizeof *buckets);
    if (!buckets)
        return;
    for (size_t i = 0; i < cache->bucket_count; i++)
        for (srv_cached *entry = cache->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            entry->next = buckets[entry->hash % count];
            buckets[entry->hash % count] = entry;
        }
    free(cache->buckets);
    cache->buckets = buckets;
    cache->bucket_count = count;
}

static srv_cached *add(srv_cache *cache, const char *name, uint64_t hash)
{
    srv_cached *entry = calloc(1, sizeof *entry);
    if (!entry || !(entry->name = strdup(name))) {
        free(entry);
        return NULL;
    }
    entry->hash = hash;
    entry->pending_end = &entry->pending;
    entry->bytes = (int64_t)(sizeof *entry + strlen(name) + 1);
    if ((size_t)cache->count >= cache->bucket_count)
        grow(cache);
    srv_cached **bucket = &cache->buckets[hash % cache->bucket_count];
    entry->next = *bucket;
    *bucket = entry;
    link_newest(cache, entry);
    cache->count++;
    cache->bytes += entry->bytes;
    return entry;
}

/* Committed events become part of the history. */
static void apply_pending(srv_cached *entry)
{
    if (!entry->pending)
        return;
    for (srv_pending *p = entry->loaded ? entry->pending : NULL; p; p = p->next) {
        const char *name = p->text + strlen(p->text) + 1, *fields = name + strlen(name) + 1;
        if (!srv_events_insert(&entry->events, p->time, p->position, p->text, name, fields)) {
            srv_events_clear(&entry->events); /* out of memory: it is loaded again */
            entry->loaded = false;
            break;
        }
        entry->known = true;
    }
    for (int i = 0; i < SRV_CACHED_SESSIONS; i++)
        entry->sessions[i].current = false;
    clear_pending(entry);
}

void srv_cache_acquire(srv_cache *cache, const char *const *names, int count, srv_cached **entries, int64_t *position,
                       srv_catalogue **catalogue)
{
    pthread_mutex_lock(&cache->mutex);
    for (int i = 0; i < count; i++) {
        uint64_t hash = hash_of(names[i]);
        srv_cached *entry = find(cache, names[i], hash);
        atomic_fetch_add(entry && entry->loaded ? &cache->hits : &cache->misses, 1);
        if (!entry)
            entry = add(cache, names[i], hash);
        entries[i] = entry && !entry->busy ? entry : NULL;
        if (!entries[i])
            continue;
        entry->busy = true;
        unlink_use(cache, entry);
        link_newest(cache, entry);
        apply_pending(entry);
    }
    *position = cache->position;
    *catalogue = srv_catalogue_take(cache->catalogue);
    pthread_mutex_unlock(&cache->mutex);
}

static int64_t measure(const srv_cached *entry)
{
    int64_t bytes = (int64_t)(sizeof *entry + strlen(entry->name) + 33) + entry->events.bytes +
                    entry->events.capacity * (int64_t)sizeof *entry->events.items + entry->events.count * 16;
    for (int i = 0; i < SRV_CACHED_SESSIONS; i++)
        if (entry->sessions[i].session)
            bytes += srv_model_session_bytes(entry->sessions[i].model, entry->sessions[i].session);
    return bytes;
}

void srv_cache_release(srv_cache *cache, srv_cached *entry)
{
    int64_t bytes = measure(entry);
    pthread_mutex_lock(&cache->mutex);
    entry->busy = false;
    if (entry->alias)
        entry->loaded = false;
    if (entry->dropped) {
        free_entry(entry);
    } else {
        cache->bytes += bytes - entry->bytes;
        entry->bytes = bytes;
        evict(cache);
    }
    pthread_mutex_unlock(&cache->mutex);
}

static void push(srv_cache *cache, const srv_new_event *e)
{
    const char *name = e->root ? e->root : e->history, *fields = e->fields ? e->fields : "";
    srv_cached *entry = find(cache, name, hash_of(name));
    if (!entry)
        return;
    size_t id = strlen(e->id) + 1, event = strlen(e->event) + 1, rest = strlen(fields) + 1;
    srv_pending *p = malloc(sizeof *p);
    char *text = malloc(id + event + rest);
    if (!p || !text) { /* what cannot be updated is read again */
        free(p);
        free(text);
        take_out(cache, entry);
        if (!entry->busy)
            free_entry(entry);
        return;
    }
    memcpy(text, e->id, id);
    memcpy(text + id, e->event, event);
    memcpy(text + id + event, fields, rest);
    *p = (srv_pending){e->time, e->position, text, NULL};
    *entry->pending_end = p;
    entry->pending_end = &p->next;
}

void srv_cache_push(srv_cache *cache, const srv_new_event *events, int64_t count, int64_t position)
{
    pthread_mutex_lock(&cache->mutex);
    for (int64_t i = 0; i < count; i++)
        if (!events[i].duplicate)
            push(cache, &events[i]);
    cache->position = position;
    pthread_mutex_unlock(&cache->mutex);
}

void srv_cache_drop(srv_cache *cache, const char *name, int64_t position)
{
    pthread_mutex_lock(&cache->mutex);
    for (srv_cached *entry = cache->oldest, *newer; entry; entry = newer) {
        newer = entry->newer;
        if (name && strcmp(entry->name, name) != 0)
            continue;
        take_out(cache, entry);
        if (!entry->busy)
            free_entry(entry);
    }
    if (position > cache->position)
        cache->position = position;
    pthread_mutex_unlock(&cache->mutex);
}

void srv_cache_renew(srv_cache *cache, srv_catalogue *catalogue, int64_t position)
{
    pthread_mutex_lock(&cache->mutex);
    srv_catalogue *before = cache->catalogue;
    cache->catalogue = catalogue;
    cache->position = position;
    pthread_mutex_unlock(&cache->mutex);
    srv_catalogue_drop(before);
}

srv_catalogue *srv_cache_catalogue(srv_cache *cache)
{
    pthread_mutex_lock(&cache->mutex);
    srv_catalogue *catalogue = srv_catalogue_take(cache->catalogue);
    pthread_mutex_unlock(&cache->mutex);
    return catalogue;
}

void srv_cache_drop_model(srv_cache *cache, const srv_model *model)
{
    pthread_mutex_lock(&cache->mutex);
    for (srv_cached *entry = cache->oldest; entry; entry = entry->newer)
        for (int i = 0; i < SRV_CACHED_SESSIONS && !entry->busy; i++)
            if (entry->sessions[i].model == model) {
                lapse_session_free(entry->sessions[i].session);
                srv_model_drop(entry->sessions[i].model);
                entry->sessions[i] = (srv_cached_session){0};
            }
    pthread_mutex_unlock(&cache->mutex);
}

void srv_cache_clear(srv_cache *cache)
{
    srv_cache_drop(cache, NULL, 0);
    srv_catalogue_drop(cache->catalogue);
    free(cache->buckets);
}
