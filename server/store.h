/* store.h: the durable histories. One schema and one set of statements; an engine (store_sqlite.c, store_postgres.c) runs them.
 *
 * The log: every event and every other change has a position, which increases; a transaction's are consecutive. What a reader
 * sees at a position is the changes up to it, for ever, unless a history is erased or trimmed. */
#ifndef SERVER_STORE_H
#define SERVER_STORE_H

#include "event_list.h"

#define SRV_SCHEMA_VERSION 1
#define SRV_NEWEST INT64_MAX /* the position of a reader that sees everything */

typedef struct srv_value {
    enum { SRV_NONE, SRV_INTEGER, SRV_REAL, SRV_TEXT } type;
    int64_t whole;
    double number;
    const char *text;
} srv_value;

#define SRV_W(x) ((srv_value){.type = SRV_INTEGER, .whole = (x)})
#define SRV_R(x) ((srv_value){.type = SRV_REAL, .number = (x)})
#define SRV_T(x) srv_text_value(x)

/* NULL is not a value. */
static inline srv_value srv_text_value(const char *text)
{
    return (srv_value){.type = text ? SRV_TEXT : SRV_NONE, .text = text};
}

typedef void (*srv_row)(void *context, const srv_value *columns);

/* A connection belongs to one thread at a time. */
typedef struct srv_connection srv_connection;

typedef struct srv_new_event {
    const char *history, *id, *event, *fields, *answer; /* id "": none; the last two may be NULL */
    double time;
    bool duplicate;   /* filled */
    int64_t position; /* filled, unless it is a duplicate */
    char *root;       /* filled: the history that `history` was merged into; NULL: none. The caller frees it */
} srv_new_event;

/* What differs between databases. Parameters of statements are $1, $2, ... in the order of their first occurrence. */
typedef struct srv_engine {
    bool (*open)(const char *place, srv_connection **connection, char message[512]);
    void (*close)(srv_connection *connection);
    bool (*run)(srv_connection *connection, const char *sql, const srv_value *values, int count, srv_row row,
                void *context, char message[512]);
    /* The whole transaction of srv_store_write; or, NULL, inserts the events of one whose first position is given. Fills duplicate
     * and position; insert: root, too. */
    bool (*write)(srv_connection *connection, srv_new_event *events, int64_t count, double arrived, int64_t *position,
                  char message[512]);
    bool (*insert)(srv_connection *connection, srv_new_event *events, int64_t count, int64_t first, char message[512]);
    bool (*backup)(srv_connection *connection, const char *path,
                   char message[512]); /* NULL: the database has its own */
    const char *const *schema;         /* statements that create it, NULL-terminated */
    const char *begin;                 /* of a transaction that writes */
    const char *lock;                  /* reads the position, and keeps other servers from writing until the commit */
    const char *after_erase;           /* removes what was erased from the log of the database; NULL: nothing to do */
    const char *count;                 /* adds new events to names.uses; NULL: insert does */
    bool shared;                       /* several servers may use it at once */
} srv_engine;

extern const srv_engine srv_engine_sqlite, srv_engine_postgres;

typedef struct srv_store {
    const srv_engine *engine;
    srv_connection *connection;
    char message[512]; /* of the newest failure */
} srv_store;

/* The engine of FILE.db or postgresql://...; NULL, with a message: it was not built. */
const srv_engine *srv_engine_find(const char *place, char message[512]);

/* Opens a connection. The first one creates the schema or migrates it; a newer schema is refused. */
bool srv_store_open(srv_store *store, const char *place, bool create);
void srv_store_close(srv_store *store);

/* One statement; row may be NULL. */
bool srv_store_run(srv_store *store, const char *sql, const srv_value *values, int count, srv_row row, void *context);

bool srv_store_position(srv_store *store, int64_t *position);
/* The newest position at a time. */
bool srv_store_position_at(srv_store *store, double time, int64_t *position);

/* Writes events in one transaction, which is durable on return. `arrived` is unix time. */
bool srv_store_write(srv_store *store, srv_new_event *events, int64_t count, double arrived, int64_t *position);

typedef struct srv_stored {
    bool found;
    char *root;      /* owned: its name, unless it was merged into another; NULL: not found */
    int64_t trimmed; /* events before this position may be missing */
} srv_stored;

/* Reads a history as it was at a position. */
bool srv_store_read(srv_store *store, const char *name, int64_t position, srv_events *events, srv_stored *stored);

/* Further changes, each a transaction. *position is that of the change. */
bool srv_store_erase(srv_store *store, const char *name, bool *found, int64_t *position);
bool srv_store_merge(srv_store *store, const char *from, const char *into, int64_t *position);

/* Begins a transaction that changes something; `next` is its position. Ends it, with what has changed, for other servers. */
bool srv_store_begin(srv_store *store, int64_t *next);
bool srv_store_commit(srv_store *store, int64_t position, double arrived, const char *kind, const char *name);
void srv_store_rollback(srv_store *store);

#endif
