/* access.h: who may do what: bearer tokens from a file. */
#ifndef SERVER_ACCESS_H
#define SERVER_ACCESS_H

#include <stdbool.h>

/* Rights, each of which includes the ones before it. SRV_OPEN: no token. */
typedef enum srv_right { SRV_OPEN, SRV_READ, SRV_WRITE, SRV_ADMIN } srv_right;

typedef struct srv_access {
    struct {
        srv_right right;
        char token[256];
    } tokens[64];
    int count;
} srv_access;

/* Reads lines `read TOKEN`, `write TOKEN`, `admin TOKEN`; # begins a comment. Prints what is wrong. */
bool srv_access_read(srv_access *access, const char *path);

/* The right of the value of an Authorization header (NULL: none). Compares in constant time. Without tokens: all rights. */
srv_right srv_access_right(const srv_access *access, const char *header);

#endif
