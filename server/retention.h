/* retention.h: events that are not kept: older than --keep, or beyond the newest --keep-events of their history. */
#ifndef SERVER_RETENTION_H
#define SERVER_RETENTION_H

#include "server.h"

/* Deletes them, in a transaction. Old answers that need them are refused from then on. Prints a problem. */
bool srv_retain(srv_server *server);

#endif
