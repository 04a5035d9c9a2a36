/* when_answers.h: POST /v1/when: the time of the next event of a history, given that nothing has happened until `at`. */
#ifndef SERVER_WHEN_ANSWERS_H
#define SERVER_WHEN_ANSWERS_H

#include "questions.h"

extern const srv_member srv_when_members[], srv_when_response[];

/* Computes and writes the answers of one question. Returns false after setting a problem. */
bool srv_when_read(srv_asked *asked);
bool srv_when_write(srv_asked *asked, const srv_question *question, srv_text *out);

#endif
