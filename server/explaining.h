/* explaining.h: the events that mattered for the first prediction of an answer. */
#ifndef SERVER_EXPLAINING_H
#define SERVER_EXPLAINING_H

#include "questions.h"

/* Fills the reasons of all questions. */
void srv_explain(srv_worker *worker, srv_asked *asked);

#endif
