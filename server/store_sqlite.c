/* store_sqlite.c: the embedded store: one file in WAL mode, synced at every commit. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store.h"

enum { STATEMENTS = 64, NAME_SLOTS = 1 << 16 };

/* A name that the writer has seen, so that it is not looked up for every event. */
typedef struct known_name {
    char *name, *root; /* owned; root: of a history, the name of the one that it was merged into */
    int64_t id;
    int64_t uses; /* of an event type: not yet in the database */
} known_name;

struct srv_connection {
    sqlite3 *database;
    const char *texts[STATEMENTS]; /* by address: statements are constants */
    sqlite3_stmt *statements[STATEMENTS];
    int statement_count;
    known_name *histories, *events; /* [NAME_SLOTS] */
};

static const char *const schema[] = {
    "CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS histories(history INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, "
    "into_history INTEGER, into_position INTEGER, trimmed INTEGER NOT NULL DEFAULT 0)",
    "CREATE INDEX IF NOT EXISTS merged ON histories(into_history) WHERE into_history IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS names(name_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, uses INTEGER NOT NULL "
    "DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS popular(position INTEGER PRIMARY KEY, names TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS events(history INTEGER NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, time NOT "
    "NULL, event INTEGER NOT NULL, fields TEXT, answer TEXT, PRIMARY KEY(history, id)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS attributed ON events(position) WHERE answer IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS commits(arrived INTEGER PRIMARY KEY, position INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS changes(position INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT)",
    "CREATE TABLE IF NOT EXISTS items(name TEXT NOT NULL, position INTEGER NOT NULL, fields TEXT, PRIMARY KEY(name, "
    "position)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS model_states(time INTEGER PRIMARY KEY, state TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS model_files(fingerprint TEXT PRIMARY KEY, path TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS backups(path TEXT PRIMARY KEY) WITHOUT ROWID",
    NULL,
};

static bool fail(srv_connection *c, char message[512])
{
    snprintf(message, 512, "the store: %s", sqlite3_errmsg(c->database));
    return false;
}

static void close_database(srv_connection *c)
{
    for (int i = 0; i < c->statement_count; i++)
        sqlite3_finalize(c->statements[i]);
    for (int i = 0; i < NAME_SLOTS && c->histories; i++) {
        free(c->histories[i].name);
        free(c->histories[i].root);
        free(c->events[i].name);
    }
    free(c->histories);
    free(c->events);
    sqlite3_close(c->database);
    free(c);
}

static bool open_database(const char *place, srv_connection **out, char message[512])
{
    srv_connection *c = calloc(1, sizeof *c);
    if (c) {
        c->histories = calloc(NAME_SLOTS, sizeof *c->histories);
        c->events = calloc(NAME_SLOTS, sizeof *c->events);
    }
    if (!c || !c->histories || !c->events) {
        snprintf(message, 512, "out of memory");
        if (c)
            close_database(c);
        return false;
    }
    if (sqlite3_open_v2(place, &c->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        snprintf(message, 512, "%.400s: %s", place, sqlite3_errmsg(c->database));
        close_database(c);
        return false;
    }
    sqlite3_busy_timeout(c->database, 10000);
    static const char *const settings[] = {"PRAGMA journal_mode = WAL",         "PRAGMA synchronous = FULL",
                                           "PRAGMA wal_autocheckpoint = 25000", "PRAGMA cache_size = -65536",
                                           "PRAGMA temp_store = MEMORY",        "PRAGMA secure_delete = ON"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (sqlite3_exec(c->database, settings[i], NULL, NULL, NULL) != SQLITE_OK) {
            snprintf(message, 512, "%.400s: %s", place, sqlite3_errmsg(c->database));
            close_database(c);
            return false;
        }
    *out = c;
    return true;
}

static sqlite3_stmt *prepare(srv_connection *c, const char *sql)
{
    for (int i = 0; i < c->statement_count; i++)
        if (c->texts[i] == sql)
            return c->statements[i];
    sqlite3_stmt *statement = NULL;
    if (c->statement_count == STATEMENTS ||
        sqlite3_prepare_v3(c->database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK)
        return NULL;
    c->texts[c->statement_count] = sql;
    c->statements[c->statement_count++] = statement;
    return statement;
}

static void bind(sqlite3_stmt *statement, int index, const srv_value *value)
{
    if (value->type == SRV_INTEGER)
        sqlite3_bind_int64(statement, index, value->whole);
    else if (value->type == SRV_REAL)
        sqlite3_bind_double(statement, index, value->number);
    else if (value->type == SRV_TEXT)
        sqlite3_bind_text(statement, index, value->text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, index);
}

static void read_columns(sqlite3_stmt *statement, srv_value *columns, int count)
{
    for (int i = 0; i < count; i++) {
        int type = sqlite3_column_type(statement, i);
        columns[i] = type == SQLITE_INTEGER ? SRV_W(sqlite3_column_int64(statement, i))
                     : type == SQLITE_FLOAT ? SRV_R(sqlite3_column_double(statement, i))
                     : type == SQLITE_NULL  ? (srv_value){0}
                                            : SRV_T((const char *)sqlite3_column_text(statement, i));
    }
}

static bool run(srv_connection *c, const char *sql, const srv_value *values, int count, srv_row row, void *context,
                char message[512])
{
    srv_value columns[16];
    sqlite3_stmt *statement = prepare(c, sql);
    if (!statement)
        return fail(c, message);
    for (int i = 0; i < count; i++)
        bind(statement, i + 1, &values[i]);
    int result;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW)
        if (row) {
            int width = sqlite3_column_count(statement);
            read_columns(statement, columns, width);
            row(context, columns);
        }
    bool good = result == SQLITE_DONE || fail(c, message);
    sqlite3_reset(statement);
    if (strcmp(sql, "ROLLBACK") == 0 || strncmp(sql, "DELETE FROM histories", 21) == 0 ||
        strncmp(sql, "UPDATE histories", 16) == 0)
        for (int i = 0; i < NAME_SLOTS; i++) { /* names may not exist any more, or mean another history */
            free(c->histories[i].name);
            c->histories[i].name = NULL;
            if (strcmp(sql, "ROLLBACK") == 0) {
                free(c->events[i].name);
                c->events[i].name = NULL;
                c->events[i].uses = 0;
            }
        }
    return good;
}

/* --------------------------------------------------------------------------------------------- inserting ----- */

static known_name *slot_of(known_name *slots, const char *name)
{
    uint64_t hash = 1469598103934665603u;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    return &slots[(hash ^ hash >> 32) % NAME_SLOTS];
}

typedef struct found_row {
    int64_t id, into;
    char *name;
} found_row;

static void read_found(void *context, const srv_value *columns)
{
    found_row *row = context;
    row->id = columns[0].whole;
    row->into = columns[1].whole;
    free(row->name);
    row->name = columns[2].text ? strdup(columns[2].text) : NULL;
}

static const known_name *find_history(srv_connection *c, const char *name, char message[512])
{
    static const char by_name[] = "SELECT history, into_history, name FROM histories WHERE name = $1";
    static const char by_id[] = "SELECT history, into_history, name FROM histories WHERE history = $1";
    known_name *slot = slot_of(c->histories, name);
    if (slot->name && strcmp(slot->name, name) == 0)
        return slot;
    found_row row = {0};
    if (!run(c, by_name, (srv_value[]){SRV_T(name)}, 1, read_found, &row, message))
        return NULL;
    if (!row.id) {
        if (!run(c, "INSERT INTO histories(name) VALUES($1)", (srv_value[]){SRV_T(name)}, 1, NULL, NULL, message))
            return NULL;
        row = (found_row){.id = sqlite3_last_insert_rowid(c->database), .name = strdup(name)};
    }
    for (int steps = 0; row.into && steps < 64; steps++)
        if (!run(c, by_id, (srv_value[]){SRV_W(row.into)}, 1, read_found, &row, message)) {
            free(row.name);
            return NULL;
        }
    free(slot->name);
    free(slot->root);
    *slot = (known_name){strdup(name), row.name, row.id, 0};
    return slot->name && slot->root ? slot : NULL;
}

static void read_id(void *context, const srv_value *columns)
{
    *(int64_t *)context = columns[0].whole;
}

/* Uses of an event type are written once for all of its events. */
static bool write_uses(srv_connection *c, known_name *slot, char message[512])
{
    srv_value values[] = {SRV_W(slot->uses), SRV_W(slot->id)};
    if (slot->uses == 0)
        return true;
    slot->uses = 0;
    return run(c, "UPDATE names SET uses = uses + $1 WHERE name_id = $2", values, 2, NULL, NULL, message);
}

static known_name *find_name(srv_connection *c, const char *name, char message[512])
{
    known_name *slot = slot_of(c->events, name);
    if (slot->name && strcmp(slot->name, name) == 0)
        return slot;
    int64_t id = 0;
    srv_value value = SRV_T(name);
    if (!write_uses(c, slot, message) ||
        !run(c, "SELECT name_id FROM names WHERE name = $1", &value, 1, read_id, &id, message))
        return NULL;
    if (!id) {
        if (!run(c, "INSERT INTO names(name) VALUES($1)", &value, 1, NULL, NULL, message))
            return NULL;
        id = sqlite3_last_insert_rowid(c->database);
    }
    free(slot->name);
    *slot = (known_name){strdup(name), NULL, id, 0};
    return slot->name ? slot : NULL;
}

/* An event on its way into the table. */
typedef struct new_row {
    srv_new_event *event;
    int64_t history, name;
} new_row;

/* By the key of the table; equal keys in the order of arrival. */
static int compare_rows(const void *a, const void *b)
{
    const new_row *x = a, *y = b;
    if (x->history != y->history)
        return x->history < y->history ? -1 : 1;
    int order = strcmp(x->event->id, y->event->id);
    return order ? order : (x->event->position > y->event->position) - (x->event->position < y->event->position);
}

static bool insert_row(srv_connection *c, const new_row *row, char message[512])
{
    static const char sql[] =
        "INSERT INTO events(history, id, position, time, event, fields, answer) VALUES($1, $2, $3, $4, "
        "$5, $6, $7) ON CONFLICT DO NOTHING";
    srv_new_event *e = row->event;
    char none[24];
    bool whole = e->time == (double)(int64_t)e->time; /* fewer bytes */
    if (!*e->id)
        snprintf(none, sizeof none, "\t%lld", (long long)e->position);
    srv_value values[] = {SRV_W(row->history), SRV_T(*e->id ? e->id : none),
                          SRV_W(e->position),  whole ? SRV_W((int64_t)e->time) : SRV_R(e->time),
                          SRV_W(row->name),    SRV_T(e->fields),
                          SRV_T(e->answer)};
    if (!run(c, sql, values, 7, NULL, NULL, message))
        return false;
    e->duplicate = sqlite3_changes(c->database) == 0;
    return true;
}

/* Rows are inserted in the order of the table, so that a page is visited once. */
static bool insert(srv_connection *c, srv_new_event *events, int64_t count, int64_t first, char message[512])
{
    new_row *rows = malloc(((size_t)count + 1) * sizeof *rows);
    bool good = rows || snprintf(message, 512, "out of memory") < 0;
    for (int64_t i = 0; i < count && good; i++) {
        srv_new_event *e = &events[i];
        const known_name *history = find_history(c, e->history, message);
        known_name *name = history ? find_name(c, e->event, message) : NULL;
        good = name != NULL;
        if (!good)
            break;
        e->position = first + i;
        e->root = strcmp(e->history, history->root) == 0 ? NULL : strdup(history->root);
        rows[i] = (new_row){e, history->id, name->id};
        name->uses++;
    }
    if (good)
        qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    for (int64_t i = 0; i < count && good; i++)
        good = insert_row(c, &rows[i], message);
    for (int64_t i = 0; i < count && good; i++) {
        known_name *name = events[i].duplicate ? find_name(c, events[i].event, message) : NULL;
        good = name || !events[i].duplicate;
        if (name)
            name->uses--;
    }
    for (int64_t i = 0; i < count && good; i++)
        good = write_uses(c, slot_of(c->events, events[i].event), message);
    free(rows);
    return good;
}

static bool backup(srv_connection *c, const char *path, char message[512])
{
    sqlite3 *copy = NULL;
    bool good = sqlite3_open(path, &copy) == SQLITE_OK;
    sqlite3_backup *work = good ? sqlite3_backup_init(copy, "main", c->database, "main") : NULL;
    good = work && sqlite3_backup_step(work, -1) == SQLITE_DONE;
    if (work)
        good = sqlite3_backup_finish(work) == SQLITE_OK && good;
    if (!good)
        snprintf(message, 512, "%.400s: %s", path, sqlite3_errmsg(copy));
    sqlite3_close(copy);
    return good;
}

const srv_engine srv_engine_sqlite = {
    .open = open_database,
    .close = close_database,
    .run = run,
    .insert = insert,
    .backup = backup,
    .schema = schema,
    .begin = "BEGIN IMMEDIATE",
    .after_erase = "PRAGMA wal_checkpoint(TRUNCATE)",
    .lock = "SELECT value FROM meta WHERE name = 'position'",
};
