/* importing.h: the events of a file, stored at the start of the server. */
#ifndef SERVER_IMPORTING_H
#define SERVER_IMPORTING_H

#include "server.h"

/* Stores the events of a dataset file or a text. Each has an id made of its contents, so that a second import of the file adds
 * nothing. Prints what it does, or what is wrong. */
bool srv_import(srv_server *server, const char *path);

#endif
