/* committing.h: the one thread that writes to the store. */
#ifndef SERVER_COMMITTING_H
#define SERVER_COMMITTING_H

#include "server.h"

void *srv_committing_thread(void *server);

#endif
