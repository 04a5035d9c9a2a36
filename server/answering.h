/* answering.h: the threads that answer questions about histories. The questions of many requests become one run of the
 * network. */
#ifndef SERVER_ANSWERING_H
#define SERVER_ANSWERING_H

#include "questions.h"

/* The loop of an answering thread: until the queue is closed. The worker is ready, and freed by the caller. */
void *srv_answering_thread(void *worker);

#endif
