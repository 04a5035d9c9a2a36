/* serve.c: starts the parts of the server in order, waits for a signal, and stops them in the reverse order. */
#include "serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "answering.h"
#include "http.h"

enum { QUEUE_MOST = 4096, DRAIN_SECONDS = 30 };

void srv_options_default(srv_options *options)
{
    memset(options, 0, sizeof *options);
    options->listen = "127.0.0.1:8080";
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

static bool start_threads(srv_server *server, pthread_t *threads, int count)
{
    for (int i = 0; i < SRV_STAGES; i++) {
        pthread_mutex_init(&server->queues[i].mutex, NULL);
        pthread_cond_init(&server->queues[i].ready, NULL);
        server->queues[i].most = QUEUE_MOST;
    }
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, srv_answering_thread, server) != 0) {
            fprintf(stderr, "lapse: cannot start %d threads\n", count);
            return false;
        }
    return true;
}

static void wait_for_signal(const sigset_t *signals)
{
    int number = 0;
    while (sigwait(signals, &number) != 0)
        ;
}

int srv_run(const srv_options *options)
{
    srv_server *server = calloc(1, sizeof *server);
    lapse_error error;
    char address[320];
    sigset_t signals;
    if (!server)
        return 1;
    server->options = *options;
    server->begun = srv_clock();
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* inherited by all threads */
    signal(SIGPIPE, SIG_IGN);
    if (lapse_model_load(options->model, &server->model, &error) != LAPSE_OK) {
        fprintf(stderr, "lapse: %s: %s\n", options->model, error.message);
        free(server);
        return 1;
    }
    int count = options->threads > 0 ? options->threads : (int)sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    int status = 1;
    if (threads && start_threads(server, threads, count) &&
        srv_http_start(server, &server->http, address, sizeof address)) {
        printf("ready in %.0f ms: http://%s/\n", (srv_clock() - server->begun) * 1e3, address);
        fflush(stdout);
        wait_for_signal(&signals);
        drain(server);
        status = 0;
    }
    for (int i = 0; i < SRV_STAGES; i++)
        srv_queue_close(&server->queues[i]);
    for (int i = 0; threads && i < count && threads[i]; i++)
        pthread_join(threads[i], NULL);
    if (server->http)
        srv_http_stop(server->http);
    free(threads);
    lapse_model_free(server->model);
    free(server);
    return status;
}
