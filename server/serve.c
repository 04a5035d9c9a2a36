/* serve.c: starts the parts of the server in order, waits for a signal, and stops them in the reverse order. */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "answering.h"
#include "committing.h"
#include "http.h"
#include "importing.h"
#include "model_routes.h"
#include "retention.h"
#include "tls.h"

enum { QUEUE_MOST = 4096, DRAIN_SECONDS = 30 };

/* What srv_run starts besides the server's members. */
typedef struct threads {
    pthread_t answering[256], committing, loading;
    srv_worker workers[256];
    int count;           /* answering threads that run */
    bool commits, loads; /* the committing and the loading thread run */
    int lock;            /* of the store's file; -1: none */
    char temporary[64];
} threads;

void srv_options_default(srv_options *options)
{
    memset(options, 0, sizeof *options);
    options->listen = "127.0.0.1:8080";
    options->memory = 1e9;
}

static void pause_milliseconds(long milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

/* Answers every request that has begun. A request may be under way in the socket of an open connection, so the server stops
 * when it has been idle for a moment. */
static void drain(srv_server *server)
{
    double begun = srv_clock(), busy = begun;
    atomic_store(&server->draining, true);
    srv_http_quiesce(server->http);
    while (srv_clock() - busy < 0.25 && srv_clock() - begun < DRAIN_SECONDS) {
        if (atomic_load(&server->active) > 0)
            busy = srv_clock();
        pause_milliseconds(10);
    }
}

static bool fail(const char *what, const char *why)
{
    fprintf(stderr, "lapse: %s: %s\n", what, why);
    return false;
}

/* One server per file. The lock ends with the process. */
static bool lock_file(threads *t, const char *place)
{
    char path[4096];
    snprintf(path, sizeof path, "%s-serve", place);
    t->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (t->lock < 0)
        return fail(path, strerror(errno));
    return flock(t->lock, LOCK_EX | LOCK_NB) == 0 || fail(place, "another lapse serve uses this store");
}

static bool open_store(srv_server *server, threads *t)
{
    char message[512] = "";
    const char *place = server->options.store;
    if (!place) {
        snprintf(t->temporary, sizeof t->temporary, "%s/lapse-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        int handle = mkstemp(t->temporary);
        if (handle < 0)
            return fail(t->temporary, strerror(errno));
        close(handle);
        server->options.store = place = t->temporary;
    }
    const srv_engine *engine = srv_engine_find(place, message);
    if (!engine)
        return fail("--store", message);
    if (!engine->shared && !lock_file(t, place))
        return false;
    if (!srv_store_open(&server->store, place, true) || !srv_store_position(&server->store, &server->cache.position) ||
        !srv_catalogue_read(&server->store, server->cache.position, &server->cache.catalogue))
        return fail("--store", server->store.message);
    return (!server->options.import || srv_import(server, server->options.import)) && srv_retain(server);
}

static bool start_threads(srv_server *server, threads *t)
{
    int count = server->options.threads > 0 ? server->options.threads : (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < SRV_STAGES; i++) {
        pthread_mutex_init(&server->queues[i].mutex, NULL);
        pthread_cond_init(&server->queues[i].ready, NULL);
        server->queues[i].most = QUEUE_MOST;
    }
    for (; t->count < count && t->count < (int)(sizeof t->workers / sizeof *t->workers); t->count++) {
        srv_worker *w = &t->workers[t->count];
        w->server = server;
        if (!srv_store_open(&w->store, server->options.store, false))
            return fail("--store", w->store.message);
        if (pthread_create(&t->answering[t->count], NULL, srv_answering_thread, w) != 0) {
            srv_worker_clear(w);
            return fail("--threads", "the system refuses more threads");
        }
    }
    t->commits = pthread_create(&t->committing, NULL, srv_committing_thread, server) == 0;
    t->loads = pthread_create(&t->loading, NULL, srv_loading_thread, server) == 0;
    return (t->commits && t->loads) || fail("--threads", "the system refuses more threads");
}

static void stop(srv_server *server, threads *t)
{
    for (int i = 0; i < SRV_STAGES; i++)
        srv_queue_close(&server->queues[i]);
    for (int i = 0; i < t->count; i++) {
        pthread_join(t->answering[i], NULL);
        srv_worker_clear(&t->workers[i]);
    }
    if (t->commits)
        pthread_join(t->committing, NULL);
    if (t->loads)
        pthread_join(t->loading, NULL);
    if (server->http)
        srv_http_stop(server->http);
    srv_cache_clear(&server->cache);
    srv_store_close(&server->store);
    if (t->lock >= 0) {
        char path[4096];
        snprintf(path, sizeof path, "%s-serve", server->options.store);
        unlink(path);
        close(t->lock);
    }
    if (t->temporary[0])
        unlink(t->temporary);
    srv_registry_clear(&server->registry);
}

static bool start(srv_server *server, threads *t)
{
    lapse_error error;
    char address[320];
    if (!srv_cache_new(&server->cache, (int64_t)server->options.memory))
        return fail("serve", "out of memory");
    if (server->options.token_file && !srv_access_read(&server->access, server->options.token_file))
        return false;
    if (!open_store(server, t))
        return false;
    if (!srv_registry_new(&server->registry, server->options.model, server->options.store, &error))
        return fail(server->options.model, error.message);
    if (!start_threads(server, t) || !srv_http_start(server, &server->http, address, sizeof address))
        return false;
    printf("ready in %.0f ms: http%s://%s/\n", (srv_clock() - server->begun) * 1e3, server->options.tls_cert ? "s" : "",
           address);
    fflush(stdout);
    return true;
}

int srv_run(const srv_options *options)
{
    srv_server *server = calloc(1, sizeof *server);
    threads *t = calloc(1, sizeof *t);
    sigset_t signals;
    int status = 1, number = 0;
    if (server && t) {
        t->lock = -1;
        server->options = *options;
        server->begun = srv_clock();
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGHUP);
        pthread_sigmask(SIG_BLOCK, &signals, NULL); /* inherited by all threads */
        signal(SIGPIPE, SIG_IGN);
        if (start(server, t)) {
            while (sigwait(&signals, &number) != 0 || number == SIGHUP)
                if (number == SIGHUP) {
                    srv_models_reload(server);
                    if (options->tls_cert && options->tls_key)
                        srv_tls_load(options->tls_cert, options->tls_key);
                }
            drain(server);
            status = 0;
        }
        stop(server, t);
    }
    free(server);
    free(t);
    return status;
}
