/* attribution.h: GET /v1/attribution: which ranks of which models' answers led to events. */
#ifndef SERVER_ATTRIBUTION_H
#define SERVER_ATTRIBUTION_H

#include "questions.h"

extern const srv_member srv_attribution_members[], srv_attribution_response[];

void srv_attribute(srv_worker *worker, srv_request *request);

#endif
