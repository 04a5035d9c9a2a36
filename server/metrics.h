/* metrics.h: counters of requests, in the text format of Prometheus. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "server.h"

void srv_metrics_count(srv_request *request); /* when its response is sent */
void srv_metrics_write(srv_server *server, srv_text *out);

#endif
