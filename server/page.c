/* page.c: the page at /: one file inside the program (page.html). The policy allows the style and the script of the page by a
 * nonce, which is drawn for every response, and nothing from elsewhere. */
#include "page.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <page_data.h> /* made of page.html by the build */

void srv_handle_page(srv_request *r)
{
    static const char mark[] = "NONCE";
    unsigned char random[16];
    char nonce[33];
    const char *at = (const char *)page_data, *found;
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        srv_fail(r, 503, NULL, "no random numbers");
        return;
    }
    for (int i = 0; i < 16; i++)
        snprintf(nonce + 2 * i, 3, "%02x", random[i]);
    while ((found = strstr(at, mark)) != NULL) {
        srv_text_bytes(&r->out, at, (size_t)(found - at));
        srv_text_add(&r->out, nonce);
        at = found + sizeof mark - 1;
    }
    srv_text_add(&r->out, at);
    snprintf(r->policy, sizeof r->policy,
             "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
             "style-src 'nonce-%s'; script-src 'nonce-%s'",
             nonce, nonce);
    r->type = "text/html; charset=utf-8";
    r->status = 200;
}
