/* arrivals.h: POST /v1/events: events on their way into the store. */
#ifndef SERVER_ARRIVALS_H
#define SERVER_ARRIVALS_H

#include "server.h"
#include "store.h"

extern const srv_member srv_events_response[];

enum { SRV_EVENTS_BODY = 16 << 20 };

/* An event of a request: what is wrong with it, or what is to be written. */
typedef struct srv_arrival {
    srv_event_parts parts;
    srv_problem *problem; /* owned; NULL: it is good */
    bool duplicate;       /* filled by the commit */
} srv_arrival;

typedef struct srv_arrivals {
    json_t **json; /* [count]: owned references; they hold the text of the parts */
    srv_arrival *items;
    int64_t count;
    int64_t position; /* of the log, after the commit */
} srv_arrivals;

/* Reads one event, an array, or one event per line. Sets a response if nothing can be written. */
void srv_events_parse(srv_request *request);
void srv_arrivals_free(void *arrivals);

/* Writes the events of many requests in one transaction. Then each has a response: srv_events_respond. */
void srv_events_commit(srv_server *server, srv_request *const *requests, int count);
void srv_events_respond(srv_request *request);

#endif
