/* routes.h: finds the route of a request, reads its body by the route's table, and prints /openapi.json from all tables. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "server.h"

/* Sets the route, or a response 404 or 405. */
void srv_route_find(srv_request *request, const char *method, const char *path);

/* An argument of the query string (value NULL: without one), in the place of a member of the body. */
void srv_route_argument(srv_request *request, const char *name, const char *value);

/* Parses and checks the body; sets a response if it is wrong. */
void srv_route_parse(srv_request *request);

/* "Bad Request": the title of an HTTP status. */
const char *srv_status_title(int status);

void srv_openapi_write(srv_text *text);

#endif
