/* answer_token.h: the token of an answer: all that it depends on. The models, the position of the log, the meaning of "now" and
 * the request itself. So an answer can be made again, byte for byte. */
#ifndef SERVER_ANSWER_TOKEN_H
#define SERVER_ANSWER_TOKEN_H

#include <stdbool.h>

#include "text_buffer.h"

enum { SRV_TOKEN_MODELS = 4, SRV_TOKEN_BODY = 32768 };

typedef struct srv_token {
    int route; /* index in the table of routes that can be replayed */
    int64_t position;
    double now;
    uint64_t models[SRV_TOKEN_MODELS];
    int model_count;
    uint64_t found;   /* a hash of which subjects the store had */
    const char *body; /* JSON of the request */
    size_t body_size;
} srv_token;

/* Writes it in base64url without quotes. */
void srv_token_write(srv_text *out, const srv_token *token);
/* Reads it; `bytes` holds the body and belongs to the caller. */
bool srv_token_read(const char *text, srv_token *token, srv_text *bytes);

#endif
