/* polling.c: see polling.h. */
#include "polling.h"

#include <stdlib.h>
#include <string.h>

enum { EVENTS_MOST = 50000 }; /* beyond this, the cache begins anew */

typedef struct reading {
    srv_new_event *events;
    int64_t count, capacity;
    bool failed;
} reading;

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void read_event(void *context, const srv_value *columns)
{
    reading *r = context;
    if (r->count == r->capacity) {
        int64_t capacity = r->capacity ? 2 * r->capacity : 64;
        srv_new_event *events = realloc(r->events, sizeof *events * (size_t)capacity);
        r->failed |= !events;
        if (!events)
            return;
        r->events = events;
        r->capacity = capacity;
    }
    char *name = copy(columns[0].text), *id = copy(columns[1].text[0] == '\t' ? "" : columns[1].text),
         *event = copy(columns[4].text);
    r->failed |= !name || !id || !event;
    r->events[r->count++] = (srv_new_event){.history = name,
                                            .id = id,
                                            .time = columns[2].number,
                                            .position = columns[3].whole,
                                            .event = event,
                                            .fields = copy(columns[5].text)};
}

static void read_whole(void *context, const srv_value *columns)
{
    *(int64_t *)context = columns[0].whole;
}

static bool read_new(srv_server *server, srv_store *store, int64_t from, int64_t to)
{
    static const char events[] =
        "SELECT h.name, e.id, e.time, e.position, n.name, e.fields FROM events e JOIN histories h ON "
        "h.history = e.history JOIN names n ON n.name_id = e.event WHERE e.position > $1 AND "
        "e.position <= $2 ORDER BY e.position";
    srv_value range[] = {SRV_W(from), SRV_W(to)};
    srv_catalogue *catalogue = NULL;
    reading r = {0};
    int64_t changes = 0;
    if (!srv_store_run(store, "SELECT count(*) FROM changes WHERE position > $1 AND position <= $2", range, 2,
                       read_whole, &changes))
        return false;
    if (changes && !srv_catalogue_read(store, to, &catalogue))
        return false;
    if (changes || to - from > EVENTS_MOST) {
        srv_cache_drop(&server->cache, NULL, 0);
    } else if (!srv_store_run(store, events, range, 2, read_event, &r)) {
        r.failed = true;
    }
    if (!r.failed)
        srv_cache_push(&server->cache, r.events, r.count, to);
    if (catalogue)
        srv_cache_renew(&server->cache, catalogue, to);
    for (int64_t i = 0; i < r.count; i++) {
        free((char *)r.events[i].history);
        free((char *)r.events[i].id);
        free((char *)r.events[i].event);
        free((char *)r.events[i].fields);
    }
    free(r.events);
    return !r.failed;
}

bool srv_poll(srv_server *server, srv_store *store)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    int64_t position = 0;
    if (!store->engine->shared)
        return true;
    pthread_mutex_lock(&turn);
    bool good = srv_store_position(store, &position);
    int64_t from = server->cache.position;
    if (good && position > from)
        good = read_new(server, store, from, position);
    pthread_mutex_unlock(&turn);
    return good;
}
