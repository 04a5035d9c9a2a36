/* polling.h: a store that several servers write to: what has been committed since the cache was brought up to date. */
#ifndef SERVER_POLLING_H
#define SERVER_POLLING_H

#include "server.h"

/* Brings the cache up to date with the store, so that a query sees every acknowledged event. Nothing to do where this server is
 * the only one. Returns false with the store's message. */
bool srv_poll(srv_server *server, srv_store *store);

#endif
