/* server.h: a request on its way through the server, and what the server consists of.
 *
 * Threads: those of the HTTP library read requests and write responses; a request that needs more than a moment is suspended
 * and put into the queue of its route's stage, whose threads answer it and resume it. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <lapse.h>
#include <pthread.h>
#include <stdatomic.h>

#include "access.h"
#include "cache.h"
#include "registry.h"
#include "request_schema.h"
#include "serve.h"
#include "text_buffer.h"

struct MHD_Connection;
typedef struct srv_server srv_server;
typedef struct srv_request srv_request;
struct srv_worker;

/* Where a request is handled. */
typedef enum srv_stage {
    SRV_AT_ONCE, /* by the thread that read it: no waiting, no computing */
    SRV_ANSWER,  /* by the answering threads, many in one run of the network */
    SRV_COMMIT,  /* by the thread that writes to the store: events of many requests in one transaction */
    SRV_LOAD,    /* by a thread that may take long: models */
    SRV_STAGES
} srv_stage;

/* A row of the table of routes. */
typedef struct srv_route {
    const char *method, *path; /* {name} matches one segment */
    srv_right right;           /* that it needs */
    srv_stage stage;
    const char *summary;
    void (*handle)(srv_request *request); /* NULL: by the stage itself */
    const srv_member *body;               /* of the request; NULL: none */
    const srv_member *response;           /* NULL: not JSON */
    size_t limit;                         /* bytes of the body */
    void (*answer)(struct srv_worker *worker,
                   srv_request *request);  /* of SRV_ANSWER; NULL: questions about histories */
    void (*parse)(srv_request *request);   /* reads the body; NULL: a JSON object */
    void (*respond)(srv_request *request); /* writes the response, by the thread that sends it; NULL: the stage does */
} srv_route;

extern const srv_route srv_routes[]; /* ends with a row without a path */

enum { SRV_PATH_NAMES = 2, SRV_BODY_LIMIT = 1 << 20 };

struct srv_request {
    srv_server *server;
    const srv_route *route;
    char *names[SRV_PATH_NAMES]; /* matched by {name} of the path, decoded; owned */
    srv_text body;
    json_t *json;    /* the body; NULL: none. Owned */
    double begun;    /* monotonic clock */
    double time;     /* unix time at which the request was read */
    bool dispatched; /* answered, or in a queue */
    bool too_large;
    srv_problem problem;
    int status;       /* of the response */
    const char *type; /* content type */
    char allow[32];   /* of a 405: the methods of the path */
    char policy[256]; /* Content-Security-Policy; "": none */
    srv_text out;     /* its body */
    void *extra;      /* of the route; freed by extra_free */
    void (*extra_free)(void *extra);
    struct MHD_Connection *connection;
    srv_request *next; /* in a queue */
};

/* Makes the response a problem (RFC 9457). */
void srv_fail(srv_request *request, int status, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void srv_fail_problem(srv_request *request);
/* The same with the sentence of the library. */
void srv_fail_error(srv_request *request, const char *field, const lapse_error *error);

/* A queue of requests. */
typedef struct srv_queue {
    pthread_mutex_t mutex;
    pthread_cond_t ready;
    srv_request *first, *last;
    int count, most;
    bool closed;
} srv_queue;

struct srv_server {
    srv_options options;
    srv_registry registry;
    srv_access access;
    srv_store store; /* of the committing thread */
    srv_cache cache;
    srv_queue queues[SRV_STAGES];
    atomic_int active;    /* requests that have begun and not ended */
    atomic_bool draining; /* no new connections */
    double begun;
    struct srv_http *http;
};

/* Puts a request into a queue; false if the queue is full or closed. Takes up to `most` requests, as a list; NULL: closed. */
bool srv_queue_put(srv_queue *queue, srv_request *request);
srv_request *srv_queue_take(srv_queue *queue, int most);
void srv_queue_close(srv_queue *queue);

double srv_clock(void); /* monotonic, seconds */
double srv_now(void);   /* unix time */

#endif
