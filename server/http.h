/* http.h: the glue to the HTTP library, which no other file includes. */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include "server.h"

typedef struct srv_http srv_http;

/* Listens; fills the address. Returns false after printing what is wrong. */
bool srv_http_start(srv_server *server, srv_http **http, char *address, size_t address_size);
/* Closes the listening socket; requests on open connections are still read and answered. */
void srv_http_quiesce(srv_http *http);
void srv_http_stop(srv_http *http);

/* Continues a suspended request whose response is complete. */
void srv_http_resume(srv_request *request);

#endif
