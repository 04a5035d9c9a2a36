/* serve.h: the server, for the command-line tool: histories and a model behind HTTP (docs/serve.md). */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct srv_options {
    const char *model;  /* path of a model file */
    const char *listen; /* ADDRESS:PORT; port 0: any free port */
    const char *store;  /* FILE.db; NULL: histories are kept in a file that is deleted at the end */
    const char *token_file, *tls_cert, *tls_key; /* NULL: none */
    const char *import;  /* events to store at the start: what `lapse import` reads, or a dataset file; NULL: none */
    bool insecure;       /* other machines may connect without TLS */
    double keep;         /* seconds that an event is kept; 0: for ever */
    int64_t keep_events; /* newest events of a history that are kept; 0: all */
    double memory;       /* bytes of cached histories */
    int threads;         /* that answer queries; 0: all cores */
} srv_options;

void srv_options_default(srv_options *options);

/* Serves until SIGTERM or SIGINT. Prints the address on standard output when it is ready, and problems on standard error.
 * Returns the exit status: 0, 1 (it could not start) or 2 (an option is wrong). */
int srv_run(const srv_options *options);

/* Copies the store of a server, which may run, and records the copy, so that erasures reach it. */
bool srv_backup(const char *store, const char *path, char message[512]);

/* Writes the events of a store, whose server may run, as JSON Lines: history, time, event, and the members of its fields. */
bool srv_export(const char *store, FILE *out, char message[512]);

#endif
