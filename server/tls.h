/* tls.h: the certificate of the server, which can change while it runs. */
#ifndef SERVER_TLS_H
#define SERVER_TLS_H

#include <stdbool.h>

/* Reads the certificate chain and its key (PEM) for connections from now on. Returns false, after printing why, and leaves the
 * former ones if a file cannot be read or the key is not that of the certificate. One thread at a time. */
bool srv_tls_load(const char *certificate, const char *key);

/* The function that the HTTP library asks for the certificate of a connection (MHD_OPTION_HTTPS_CERT_CALLBACK). */
void *srv_tls_choose(void);

/* Frees all, when no connection is left. */
void srv_tls_clear(void);

#endif
