/* retention.c: see retention.h. */
#include "retention.h"

#include <stdio.h>

static void read_whole(void *context, const srv_value *columns)
{
    *(int64_t *)context = columns[0].whole;
}

static bool trim(srv_store *store, const char *const sql[3], srv_value limit, int64_t position, int64_t *deleted)
{
    int64_t count = 0;
    bool good = srv_store_run(store, sql[0], &limit, 1, read_whole, &count);
    *deleted += count;
    return good && (!count || (srv_store_run(store, sql[1], (srv_value[]){SRV_W(position), limit}, 2, NULL, NULL) &&
                               srv_store_run(store, sql[2], &limit, 1, NULL, NULL)));
}

#define RANKED \
    "(SELECT history, id, row_number() OVER (PARTITION BY history ORDER BY time DESC, id DESC) place FROM events) r"

bool srv_retain(srv_server *server)
{
    static const char *const by_time[] = {
        "SELECT count(*) FROM events WHERE time < $1",
        "UPDATE histories SET trimmed = $1 WHERE history IN (SELECT history FROM events WHERE time < $2)",
        "DELETE FROM events WHERE time < $1"};
    static const char *const by_count[] = {
        "SELECT count(*) FROM " RANKED " WHERE place > $1",
        "UPDATE histories SET trimmed = $1 WHERE history IN (SELECT history FROM " RANKED " WHERE place > $2)",
        "DELETE FROM events WHERE (history, id) IN (SELECT history, id FROM " RANKED " WHERE place > $1)"};
    const srv_options *o = &server->options;
    srv_store *store = &server->store;
    int64_t position, deleted = 0;
    if (o->keep <= 0 && o->keep_events <= 0)
        return true;
    bool good = srv_store_begin(store, &position);
    if (good) {
        good = (o->keep <= 0 || trim(store, by_time, SRV_R(srv_now() - o->keep), position, &deleted)) &&
               (o->keep_events <= 0 || trim(store, by_count, SRV_W(o->keep_events), position, &deleted));
        if (good && deleted)
            good = srv_store_commit(store, position, srv_now(), "retention", NULL);
        else
            srv_store_rollback(store);
    }
    if (!good)
        fprintf(stderr, "lapse: --keep: %s\n", store->message);
    else if (deleted && !store->engine->shared)
        srv_cache_drop(&server->cache, NULL, position);
    return good;
}
