/* page.h: the page at /. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H

#include "server.h"

void srv_handle_page(srv_request *request);

#endif
