/* answering.h: answers requests about histories. The queries of many requests become one run of the network. */
#ifndef SERVER_ANSWERING_H
#define SERVER_ANSWERING_H

#include "server.h"

extern const srv_member srv_predict_members[], srv_predict_response[];

/* The loop of an answering thread: until the queue is closed. */
void *srv_answering_thread(void *server);

#endif
