/* store_postgres.c: several servers on one set of histories. Writers take turns by the lock of a row, so that positions become
 * visible in their order. The events of many requests are one call of a function of the database, which is one transaction and
 * one round trip. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

enum { STATEMENTS = 64, VALUES = 16, TYPE_INT8 = 20, TYPE_INT4 = 23, TYPE_FLOAT8 = 701 };

struct srv_connection {
    PGconn *database;
    const char *texts[STATEMENTS]; /* prepared, by address */
    int count;
    bool changing; /* inside a transaction */
};

static const char *const schema[] = {
    "SELECT pg_advisory_lock(7310829)",
    "CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value BIGINT)",
    "CREATE TABLE IF NOT EXISTS histories(history BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT COLLATE "
    "\"C\" "
    "NOT NULL UNIQUE, into_history BIGINT, into_position BIGINT, trimmed BIGINT NOT NULL DEFAULT 0)",
    "CREATE INDEX IF NOT EXISTS merged ON histories(into_history) WHERE into_history IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS names(name_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT COLLATE \"C\" "
    "NOT "
    "NULL UNIQUE, uses BIGINT NOT NULL DEFAULT 0)",
    "CREATE TABLE IF NOT EXISTS popular(position BIGINT PRIMARY KEY, names TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS events(history BIGINT NOT NULL, id TEXT COLLATE \"C\" NOT NULL, position BIGINT NOT "
    "NULL, "
    "time DOUBLE PRECISION NOT NULL, event BIGINT NOT NULL, fields TEXT, answer TEXT, PRIMARY KEY(history, id))",
    "CREATE INDEX IF NOT EXISTS events_position ON events(position)",
    "CREATE TABLE IF NOT EXISTS commits(arrived BIGINT PRIMARY KEY, position BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS changes(position BIGINT PRIMARY KEY, kind TEXT NOT NULL, name TEXT)",
    "CREATE TABLE IF NOT EXISTS items(name TEXT COLLATE \"C\" NOT NULL, position BIGINT NOT NULL, fields TEXT, PRIMARY "
    "KEY(name, position))",
    "CREATE TABLE IF NOT EXISTS model_states(time BIGINT PRIMARY KEY, state TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS model_files(fingerprint TEXT PRIMARY KEY, path TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS backups(path TEXT PRIMARY KEY)",
    "INSERT INTO meta(name, value) VALUES('counted', 0) ON CONFLICT DO NOTHING",
    /* Lookups are subqueries, so that each is an index scan whatever the size of the tables. Events of a history that was merged
     * belong to the other one; a chain of merges has at most four steps here. Returns the first and the last position of the
     * transaction, then the positions of the events that were new. */
    "CREATE OR REPLACE FUNCTION lapse_write(h text[], i text[], t float8[], e text[], f text[], a text[], milliseconds "
    "bigint) "
    "RETURNS SETOF bigint LANGUAGE plpgsql AS $$ DECLARE first bigint; newest bigint; stored bigint[]; BEGIN "
    "SELECT value + 1 INTO first FROM meta m WHERE m.name = 'position' FOR UPDATE; "
    "INSERT INTO histories(name) SELECT DISTINCT x FROM unnest(h) x WHERE (SELECT o.history FROM histories o WHERE "
    "o.name = x) IS "
    "NULL ON CONFLICT DO NOTHING; "
    "INSERT INTO names(name) SELECT DISTINCT x FROM unnest(e) x WHERE (SELECT o.name_id FROM names o WHERE o.name = x) "
    "IS NULL ON "
    "CONFLICT DO NOTHING; "
    "WITH added AS (INSERT INTO events AS v(history, id, position, time, event, fields, answer) SELECT (SELECT "
    "coalesce(d.history, "
    "c.history, b.history, o.history) FROM histories o LEFT JOIN histories b ON b.history = o.into_history LEFT JOIN "
    "histories c "
    "ON c.history = b.into_history LEFT JOIN histories d ON d.history = c.into_history WHERE o.name = u.h), "
    "CASE WHEN u.i = '' THEN E'\\t' || (first + u.n - 1) ELSE u.i END, first + u.n - 1, u.t, (SELECT o.name_id FROM "
    "names o WHERE "
    "o.name = u.e), u.f, u.a FROM unnest(h, i, t, e, f, a) WITH ORDINALITY AS u(h, i, t, e, f, a, n) ORDER BY u.n "
    "ON CONFLICT DO NOTHING RETURNING v.position) SELECT array_agg(g.position), max(g.position) INTO stored, newest "
    "FROM added g; "
    "newest := coalesce(newest, first - 1); "
    "UPDATE meta SET value = newest WHERE name = 'position'; "
    "INSERT INTO commits AS c(arrived, position) VALUES(greatest(milliseconds, (SELECT max(o.arrived) FROM commits "
    "o)), newest) "
    "ON CONFLICT(arrived) DO UPDATE SET position = excluded.position; "
    "RETURN NEXT first; RETURN NEXT newest; RETURN QUERY SELECT unnest(stored); END $$",
    "SELECT pg_advisory_unlock(7310829)",
    NULL,
};

static void close_database(srv_connection *c)
{
    PQfinish(c->database);
    free(c);
}

static bool open_database(const char *place, srv_connection **out, char message[512])
{
    srv_connection *c = calloc(1, sizeof *c);
    if (!c) {
        snprintf(message, 512, "out of memory");
        return false;
    }
    c->database = PQconnectdb(place);
    if (PQstatus(c->database) != CONNECTION_OK) {
        snprintf(message, 512, "PostgreSQL: %.450s", PQerrorMessage(c->database));
        close_database(c);
        return false;
    }
    PQsetClientEncoding(c->database, "UTF8");
    PQclear(PQexec(c->database, "SET client_min_messages = warning; SET synchronous_commit = on"));
    *out = c;
    return true;
}

/* After a restart of the database, the next statement outside a transaction connects again. */
static void reconnect(srv_connection *c)
{
    PQreset(c->database);
    c->count = 0;
}

static bool fail(srv_connection *c, PGresult *result, char message[512])
{
    snprintf(message, 512, "PostgreSQL: %.450s", PQerrorMessage(c->database));
    for (size_t end = strlen(message); end > 0 && message[end - 1] == '\n'; end--)
        message[end - 1] = 0;
    for (char *at = message; *at; at++)
        *at = (unsigned char)*at < ' ' ? ' ' : *at;
    /* libpq's own errors have no code; those of 57P end the connection. */
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (PQstatus(c->database) != CONNECTION_OK || !code || strncmp(code, "57P", 3) == 0)
        reconnect(c);
    PQclear(result);
    return false;
}

static bool prepare(srv_connection *c, const char *sql, char name[16], char message[512])
{
    int i = 0;
    while (i < c->count && c->texts[i] != sql)
        i++;
    snprintf(name, 16, "s%d", i);
    if (i < c->count)
        return true;
    PGresult *result = i < STATEMENTS ? PQprepare(c->database, name, sql, 0, NULL) : NULL;
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        return fail(c, result, message);
    PQclear(result);
    c->texts[c->count++] = sql;
    return true;
}

static void read_row(const PGresult *result, int row, srv_value *columns, int width)
{
    for (int i = 0; i < width; i++) {
        const char *text = PQgetvalue(result, row, i);
        Oid type = PQftype(result, i);
        columns[i] = PQgetisnull(result, row, i)              ? (srv_value){0}
                     : type == TYPE_INT8 || type == TYPE_INT4 ? SRV_W(strtoll(text, NULL, 10))
                     : type == TYPE_FLOAT8                    ? SRV_R(strtod(text, NULL))
                                                              : SRV_T(text);
    }
}

static bool run_once(srv_connection *c, const char *sql, const srv_value *values, int count, srv_row row, void *context,
                     char message[512])
{
    char name[16], numbers[VALUES][32];
    const char *texts[VALUES];
    if (!prepare(c, sql, name, message))
        return false;
    for (int i = 0; i < count; i++) {
        texts[i] = values[i].type == SRV_NONE ? NULL : values[i].type == SRV_TEXT ? values[i].text : numbers[i];
        if (values[i].type == SRV_INTEGER)
            snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)values[i].whole);
        else if (values[i].type == SRV_REAL)
            snprintf(numbers[i], sizeof numbers[i], "%.17g", values[i].number);
    }
    PGresult *result = PQexecPrepared(c->database, name, count, texts, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return fail(c, result, message);
    srv_value columns[VALUES];
    int width = PQnfields(result);
    for (int i = 0; row && i < PQntuples(result); i++) {
        read_row(result, i, columns, width);
        row(context, columns);
    }
    PQclear(result);
    return true;
}

/* A statement outside a transaction that finds the connection lost is run again on a new one. */
static bool run(srv_connection *c, const char *sql, const srv_value *values, int count, srv_row row, void *context,
                char message[512])
{
    const int process = PQbackendPID(c->database);
    bool good = run_once(c, sql, values, count, row, context, message);
    if (!good && !c->changing && PQstatus(c->database) == CONNECTION_OK && PQbackendPID(c->database) != process)
        good = run_once(c, sql, values, count, row, context, message);
    if (strcmp(sql, "BEGIN") == 0)
        c->changing = good;
    else if (strcmp(sql, "COMMIT") == 0 || strcmp(sql, "ROLLBACK") == 0)
        c->changing = false;
    return good;
}

/* An element of an array in PostgreSQL's text form; NULL: no value. */
static void add_element(srv_text *array, const char *text)
{
    srv_text_bytes(array, array->size ? "," : "{", 1);
    if (!text) {
        srv_text_add(array, "NULL");
        return;
    }
    srv_text_bytes(array, "\"", 1);
    for (;;) {
        size_t plain = strcspn(text, "\"\\");
        srv_text_bytes(array, text, plain);
        text += plain;
        if (!*text)
            break;
        srv_text_bytes(array, (char[]){'\\', *text++}, 2);
    }
    srv_text_bytes(array, "\"", 1);
}

typedef struct written {
    srv_new_event *events;
    int64_t first, last; /* -1: not read so far */
} written;

static void read_written(void *context, const srv_value *columns)
{
    written *w = context;
    int64_t position = columns[0].whole;
    if (w->first < 0) {
        w->first = position;
    } else if (w->last < 0) {
        w->last = position;
    } else {
        w->events[position - w->first].duplicate = false;
        w->events[position - w->first].position = position;
    }
}

/* It is never sent twice: nobody knows whether one that was interrupted has been executed. So a connection that was closed in the
 * meantime is replaced first. */
static bool write_events(srv_connection *c, srv_new_event *events, int64_t count, double arrived, int64_t *position,
                         char message[512])
{
    srv_text arrays[6] = {{0}};
    srv_value values[7] = {{0}};
    written w = {events, -1, -1};
    for (int64_t i = 0; i < count; i++) {
        char time[32];
        snprintf(time, sizeof time, "%.17g", events[i].time);
        const char *parts[] = {events[i].history, events[i].id,     time,
                               events[i].event,   events[i].fields, events[i].answer};
        for (int j = 0; j < 6; j++)
            add_element(&arrays[j], parts[j]);
        events[i].duplicate = true;
    }
    bool good = true;
    for (int j = 0; j < 6; j++) {
        srv_text_add(&arrays[j], arrays[j].size ? "}" : "{}");
        const char *text = srv_text_string(&arrays[j]);
        good = good && text;
        values[j] = SRV_T(text);
    }
    values[6] = SRV_W((int64_t)(arrived * 1e3));
    if (!PQconsumeInput(c->database) || PQstatus(c->database) != CONNECTION_OK)
        reconnect(c);
    if (good)
        good = run_once(c, "SELECT lapse_write($1, $2, $3, $4, $5, $6, $7)", values, 7, read_written, &w, message);
    else
        snprintf(message, 512, "out of memory");
    *position = w.last;
    for (int j = 0; j < 6; j++)
        srv_text_clear(&arrays[j]);
    return good;
}

const srv_engine srv_engine_postgres = {
    .open = open_database,
    .close = close_database,
    .run = run,
    .write = write_events,
    .schema = schema,
    .begin = "BEGIN",
    .lock = "SELECT value FROM meta WHERE name = 'position' FOR UPDATE",
    .count = "WITH c AS (SELECT value FROM meta WHERE name = 'counted' FOR UPDATE), p AS (SELECT value FROM meta WHERE "
             "name = "
             "'position'), u AS (SELECT event, count(*) k FROM events WHERE position > (SELECT value FROM c) AND "
             "position <= (SELECT "
             "value FROM p) GROUP BY event), n AS (UPDATE names SET uses = uses + k FROM u WHERE name_id = u.event) "
             "UPDATE meta SET value = greatest(value, (SELECT value FROM p)) WHERE name = 'counted'",
    .shared = true,
};
