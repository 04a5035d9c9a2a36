/* answering.h: the threads that answer questions about histories. The questions of many requests become one run of the
 * network. */
#ifndef SERVER_ANSWERING_H
#define SERVER_ANSWERING_H

#include "questions.h"

/* The loop of an answering thread: until the queue is closed. The worker is ready, and freed by the caller. */
void *srv_answering_thread(void *worker);

/* Answers the request of a token again, and calls `use` with the answer before it is freed; NULL: it is refused. */
void srv_answer_again(srv_worker *worker, const char *token,
                      void (*use)(void *context, const srv_asked *asked, const char *event), void *context,
                      const char *event);

#endif
