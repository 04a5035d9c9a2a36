/* tls.c: see tls.h. A handshake may be using a former certificate, so that these are freed at the end. */
#include "tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHAIN_MOST = 16 };

typedef struct pair {
    gnutls_pcert_st chain[CHAIN_MOST];
    unsigned count;
    gnutls_privkey_t key;
    struct pair *before;
} pair;

static _Atomic(pair *) newest;

static int choose(gnutls_session_t session, const gnutls_datum_t *names, int name_count,
                  const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **chain,
                  unsigned *count, gnutls_privkey_t *key)
{
    pair *p = atomic_load(&newest);
    (void)session, (void)names, (void)name_count, (void)algorithms, (void)algorithm_count;
    *chain = p->chain;
    *count = p->count;
    *key = p->key;
    return 0;
}

void *srv_tls_choose(void)
{
    gnutls_certificate_retrieve_function2 *function = choose;
    return (void *)(size_t)function;
}

static void free_pair(pair *p)
{
    for (unsigned i = 0; i < p->count; i++)
        gnutls_pcert_deinit(&p->chain[i]);
    if (p->key)
        gnutls_privkey_deinit(p->key);
    free(p);
}

/* Whether the files belong together: the library checks it when it makes credentials of them. */
static int check(const char *certificate, const char *key)
{
    gnutls_certificate_credentials_t credentials;
    int status = gnutls_certificate_allocate_credentials(&credentials);
    if (status < 0)
        return status;
    status = gnutls_certificate_set_x509_key_file(credentials, certificate, key, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(credentials);
    return status;
}

bool srv_tls_load(const char *certificate, const char *key)
{
    gnutls_datum_t chain_text = {NULL, 0}, key_text = {NULL, 0};
    pair *p = calloc(1, sizeof *p);
    unsigned count = CHAIN_MOST;
    int status = p ? check(certificate, key) : GNUTLS_E_MEMORY_ERROR;
    if (status >= 0)
        status = gnutls_load_file(certificate, &chain_text);
    if (status >= 0)
        status = gnutls_load_file(key, &key_text);
    if (status >= 0)
        status = gnutls_pcert_list_import_x509_raw(p->chain, &count, &chain_text, GNUTLS_X509_FMT_PEM, 0);
    if (status >= 0) {
        p->count = count;
        status = gnutls_privkey_init(&p->key);
    }
    if (status >= 0)
        status = gnutls_privkey_import_x509_raw(p->key, &key_text, GNUTLS_X509_FMT_PEM, NULL, 0);
    gnutls_free(chain_text.data);
    gnutls_free(key_text.data);
    if (status >= 0) {
        p->before = atomic_load(&newest);
        atomic_store(&newest, p);
        return true;
    }
    fprintf(stderr, "lapse: --tls-cert %s, --tls-key %s: %s\n", certificate, key, gnutls_strerror(status));
    if (p)
        free_pair(p);
    return false;
}

void srv_tls_clear(void)
{
    for (pair *p = atomic_exchange(&newest, NULL), *before; p; p = before) {
        before = p->before;
        free_pair(p);
    }
}
