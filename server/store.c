/* store.c: see store.h. */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve.h"
#include "server.h"

const srv_engine *srv_engine_find(const char *place, char message[512])
{
    if (strncmp(place, "postgresql://", 13) != 0 && strncmp(place, "postgres://", 11) != 0)
        return &srv_engine_sqlite;
#ifdef LAPSE_POSTGRES
    (void)message;
    return &srv_engine_postgres;
#else
    snprintf(message, 512, "this lapse was built without PostgreSQL: install libpq-dev and build again");
    return NULL;
#endif
}

bool srv_store_run(srv_store *store, const char *sql, const srv_value *values, int count, srv_row row, void *context)
{
    return store->engine->run(store->connection, sql, values, count, row, context, store->message);
}

static bool run(srv_store *store, const char *sql)
{
    return srv_store_run(store, sql, NULL, 0, NULL, NULL);
}

static void read_whole(void *context, const srv_value *columns)
{
    *(int64_t *)context = columns[0].whole;
}

/* ---------------------------------------------------------------------------------------------- opening ------ */

static bool create_schema(srv_store *store)
{
    int64_t version = 0;
    for (int i = 0; store->engine->schema[i]; i++)
        if (!run(store, store->engine->schema[i]))
            return false;
    if (!run(store, store->engine->begin) ||
        !srv_store_run(store, "SELECT value FROM meta WHERE name = 'version'", NULL, 0, read_whole, &version))
        return false;
    if (version > SRV_SCHEMA_VERSION) {
        snprintf(store->message, sizeof store->message,
                 "the store has schema %lld, of a newer lapse; this one reads up to %d", (long long)version,
                 SRV_SCHEMA_VERSION);
        srv_store_rollback(store);
        return false;
    }
    if (version == 0 &&
        (!srv_store_run(store, "INSERT INTO meta(name, value) VALUES('version', $1) ON CONFLICT DO NOTHING",
                        (srv_value[]){SRV_W(SRV_SCHEMA_VERSION)}, 1, NULL, NULL) ||
         !run(store, "INSERT INTO meta(name, value) VALUES('position', 0) ON CONFLICT DO NOTHING")))
        return false;
    return run(store, "COMMIT");
}

bool srv_store_open(srv_store *store, const char *place, bool create)
{
    *store = (srv_store){0};
    store->engine = srv_engine_find(place, store->message);
    if (!store->engine || !store->engine->open(place, &store->connection, store->message))
        return false;
    if (!create || create_schema(store))
        return true;
    srv_store_close(store);
    return false;
}

void srv_store_close(srv_store *store)
{
    if (store->connection)
        store->engine->close(store->connection);
    store->connection = NULL;
}

/* ------------------------------------------------------------------------------------------ transactions ----- */

bool srv_store_position(srv_store *store, int64_t *position)
{
    return srv_store_run(store, "SELECT value FROM meta WHERE name = 'position'", NULL, 0, read_whole, position);
}

bool srv_store_position_at(srv_store *store, double time, int64_t *position)
{
    *position = 0;
    return srv_store_run(store, "SELECT position FROM commits WHERE arrived <= $1 ORDER BY arrived DESC LIMIT 1",
                         (srv_value[]){SRV_W((int64_t)(time * 1e3))}, 1, read_whole, position);
}

void srv_store_rollback(srv_store *store)
{
    char message[512];
    store->engine->run(store->connection, "ROLLBACK", NULL, 0, NULL, NULL, message);
}

bool srv_store_begin(srv_store *store, int64_t *next)
{
    int64_t position = -1;
    if (!run(store, store->engine->begin))
        return false;
    if (!srv_store_run(store, store->engine->lock, NULL, 0, read_whole, &position) || position < 0) {
        srv_store_rollback(store);
        return false;
    }
    *next = position + 1;
    return true;
}

/* Times of commits do not decrease, even if the clock does. */
bool srv_store_commit(srv_store *store, int64_t position, double arrived, const char *kind, const char *name)
{
    int64_t milliseconds = (int64_t)(arrived * 1e3), before = 0;
    bool good = srv_store_run(store, "SELECT arrived FROM commits ORDER BY arrived DESC LIMIT 1", NULL, 0, read_whole,
                              &before) &&
                srv_store_run(store, "UPDATE meta SET value = $1 WHERE name = 'position'",
                              (srv_value[]){SRV_W(position)}, 1, NULL, NULL) &&
                srv_store_run(store,
                              "INSERT INTO commits(arrived, position) VALUES($1, $2) "
                              "ON CONFLICT(arrived) DO UPDATE SET position = excluded.position",
                              (srv_value[]){SRV_W(milliseconds > before ? milliseconds : before), SRV_W(position)}, 2,
                              NULL, NULL);
    if (good && kind)
        good = srv_store_run(store, "INSERT INTO changes(position, kind, name) VALUES($1, $2, $3)",
                             (srv_value[]){SRV_W(position), SRV_T(kind), SRV_T(name)}, 3, NULL, NULL);
    if (good && run(store, "COMMIT"))
        return true;
    srv_store_rollback(store);
    return false;
}

bool srv_store_write(srv_store *store, srv_new_event *events, int64_t count, double arrived, int64_t *position)
{
    int64_t first;
    if (store->engine->write)
        return store->engine->write(store->connection, events, count, arrived, position, store->message);
    if (!srv_store_begin(store, &first))
        return false;
    if (!store->engine->insert(store->connection, events, count, first, store->message)) {
        srv_store_rollback(store);
        return false;
    }
    int64_t last = first - 1;
    for (int64_t i = 0; i < count; i++)
        if (!events[i].duplicate && events[i].position > last)
            last = events[i].position;
    *position = last;
    return srv_store_commit(store, last, arrived, NULL, NULL);
}

/* --------------------------------------------------------------------------------------------- histories ----- */

typedef struct history_row {
    int64_t id, into, into_position, trimmed;
    char *name;
} history_row;

static void read_history_row(void *context, const srv_value *columns)
{
    history_row *row = context;
    row->id = columns[0].whole;
    row->into = columns[1].whole;
    row->into_position = columns[2].whole;
    row->trimmed = columns[3].whole;
    free(row->name);
    row->name = strdup(columns[4].text);
}

/* The history with this name at a position, which is another one after a merge. id 0: there is none. */
static bool find_root(srv_store *store, const char *name, int64_t position, history_row *row)
{
    *row = (history_row){0};
    if (!srv_store_run(store,
                       "SELECT history, into_history, into_position, trimmed, name FROM histories WHERE name = $1",
                       (srv_value[]){SRV_T(name)}, 1, read_history_row, row))
        return false;
    for (int steps = 0; row->into && row->into_position <= position && steps < 64; steps++)
        if (!srv_store_run(
                store, "SELECT history, into_history, into_position, trimmed, name FROM histories WHERE history = $1",
                (srv_value[]){SRV_W(row->into)}, 1, read_history_row, row))
            return false;
    return true;
}

typedef struct reading {
    srv_events *events;
    int64_t parts[256]; /* histories that were merged into it, themselves included */
    int part_count;
    bool failed;
} reading;

static void read_part(void *context, const srv_value *columns)
{
    reading *r = context;
    if (r->part_count < 256)
        r->parts[r->part_count++] = columns[0].whole;
}

static void read_event(void *context, const srv_value *columns)
{
    reading *r = context;
    const char *id = columns[2].text[0] == '\t' ? "" : columns[2].text;
    if (!srv_events_append(r->events, columns[0].type == SRV_REAL ? columns[0].number : (double)columns[0].whole,
                           columns[1].whole, id, columns[3].text, columns[4].type == SRV_TEXT ? columns[4].text : ""))
        r->failed = true;
}

bool srv_store_read(srv_store *store, const char *name, int64_t position, srv_events *events, srv_stored *stored)
{
    history_row root;
    reading r = {.events = events};
    *stored = (srv_stored){0};
    bool good = find_root(store, name, position, &root);
    stored->root = root.name;
    stored->found = root.id != 0;
    stored->trimmed = root.trimmed;
    if (!good || !root.id)
        return good;
    r.parts[r.part_count++] = root.id;
    for (int i = 0; good && i < r.part_count; i++)
        good =
            srv_store_run(store, "SELECT history FROM histories WHERE into_history = $1 AND into_position <= $2",
                          (srv_value[]){SRV_W(r.parts[i]), SRV_W(position)}, 2, read_part, &r) &&
            srv_store_run(store,
                          "SELECT e.time, e.position, e.id, n.name, e.fields FROM events e JOIN names n ON n.name_id "
                          "= e.event WHERE e.history = $1 AND e.position <= $2",
                          (srv_value[]){SRV_W(r.parts[i]), SRV_W(position)}, 2, read_event, &r);
    if (r.failed)
        snprintf(store->message, sizeof store->message, "out of memory");
    srv_events_sort(events, r.part_count > 1);
    return good && !r.failed;
}

static bool change(srv_store *store, const char *const *statements, const srv_value *values, int count)
{
    for (int i = 0; statements[i]; i++)
        if (!srv_store_run(store, statements[i], values, count, NULL, NULL))
            return false;
    return true;
}

/* Erases a history with all that was merged into it. Its identifier does not come back, so that old answers about it are
 * refused. */
bool srv_store_erase(srv_store *store, const char *name, bool *found, int64_t *position)
{
    static const char *const statements[] = {"DELETE FROM events WHERE history = $1",
                                             "DELETE FROM histories WHERE history = $1", NULL};
    history_row root;
    reading r = {0};
    if (!srv_store_begin(store, position))
        return false;
    bool good = find_root(store, name, SRV_NEWEST, &root);
    *found = good && root.id;
    if (*found)
        r.parts[r.part_count++] = root.id;
    for (int i = 0; good && i < r.part_count; i++)
        good = srv_store_run(store, "SELECT history FROM histories WHERE into_history = $1",
                             (srv_value[]){SRV_W(r.parts[i])}, 1, read_part, &r) &&
               change(store, statements, (srv_value[]){SRV_W(r.parts[i])}, 1);
    if (good && *found) {
        good = srv_store_commit(store, *position, srv_now(), "erase", NULL) &&
               (!store->engine->after_erase || run(store, store->engine->after_erase));
    } else {
        srv_store_rollback(store);
    }
    free(root.name);
    return good;
}

bool srv_store_merge(srv_store *store, const char *from, const char *into, int64_t *position)
{
    history_row a = {0}, b = {0};
    if (!srv_store_begin(store, position))
        return false;
    static const char create[] = "INSERT INTO histories(name) VALUES($1) ON CONFLICT DO NOTHING";
    bool good = srv_store_run(store, create, (srv_value[]){SRV_T(into)}, 1, NULL, NULL) &&
                srv_store_run(store, create, (srv_value[]){SRV_T(from)}, 1, NULL, NULL) &&
                find_root(store, from, SRV_NEWEST, &a) && find_root(store, into, SRV_NEWEST, &b);
    if (good && a.id != b.id)
        good = srv_store_run(store, "UPDATE histories SET into_history = $1, into_position = $2 WHERE history = $3",
                             (srv_value[]){SRV_W(b.id), SRV_W(*position), SRV_W(a.id)}, 3, NULL, NULL) &&
               srv_store_commit(store, *position, srv_now(), "merge", NULL);
    else
        srv_store_rollback(store);
    free(a.name);
    free(b.name);
    return good;
}

bool srv_backup(const char *place, const char *path, char message[512])
{
    srv_store store;
    char full[4096], link[4096];
    bool good = srv_store_open(&store, place, true);
    const char *folder = realpath(".", link);
    snprintf(full, sizeof full, "%s%s%s", path[0] == '/' ? "" : folder, path[0] == '/' ? "" : "/", path);
    if (good && !store.engine->backup)
        good = snprintf(store.message, sizeof store.message, "PostgreSQL has its own backups: pg_dump") < 0;
    /* The record comes first: a backup that is not recorded would keep what is erased. */
    good = good &&
           srv_store_run(&store, "INSERT INTO backups(path) VALUES($1) ON CONFLICT DO NOTHING",
                         (srv_value[]){SRV_T(full)}, 1, NULL, NULL) &&
           store.engine->backup(store.connection, path, store.message);
    snprintf(message, 512, "%s", store.message);
    srv_store_close(&store);
    return good;
}
