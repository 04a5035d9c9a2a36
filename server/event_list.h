/* event_list.h: the events of a history in memory, in their order: by time, ties by id, then by name and fields. So a history
 * is a function of the set of its events, whatever the order in which they arrived. */
#ifndef SERVER_EVENT_LIST_H
#define SERVER_EVENT_LIST_H

#include <lapse.h>

#include "request_schema.h"

typedef struct srv_event {
    double time;
    int64_t position; /* in the log of the store; 0: of a request */
    char *text; /* owned: the id, the name and the fields as JSON, each ending with a 0; "" for no id, no fields */
    uint32_t name, fields; /* where these begin in the text */
} srv_event;

typedef struct srv_events {
    srv_event *items; /* owned */
    int64_t count, capacity;
    int64_t bytes; /* of all texts */
} srv_events;

void srv_events_clear(srv_events *events);

/* Inserts an event at its place; false: out of memory. The caller makes sure that its id is new. */
bool srv_events_insert(srv_events *events, double time, int64_t position, const char *id, const char *event,
                       const char *fields);

/* The same without order, which srv_events_sort makes: for many events. unique: drops repeated ids. */
bool srv_events_append(srv_events *events, double time, int64_t position, const char *id, const char *event,
                       const char *fields);
void srv_events_sort(srv_events *events, bool unique);

/* An event of a request. */
extern const srv_member srv_event_members[];

typedef struct srv_event_parts {
    const char *history; /* NULL: none */
    double time;
    const char *id, *event; /* id "": none */
    char *fields;           /* JSON of an object with sorted names; owned; NULL: none */
    const char *answer;     /* token of the answer that led to it, or NULL */
} srv_event_parts;

/* Reads an event that has passed the schema; `path` names it in problems. */
bool srv_event_read(const json_t *json, const char *path, double now, srv_event_parts *parts, srv_problem *problem);

/* Makes the events that a model knows the history of a session. *known is the number of events that it knows, *last the time of the
 * last one. */
lapse_status srv_events_sync(const srv_events *events, const lapse_model *model, lapse_session *session, int64_t *known,
                             double *last, lapse_error *error);

#endif
