/* model_routes.h: requests about models, handled by a thread of their own, because loading takes long. */
#ifndef SERVER_MODEL_ROUTES_H
#define SERVER_MODEL_ROUTES_H

#include "server.h"

extern const srv_member srv_models_response[], srv_model_members[], srv_alias_members[];

void srv_handle_models(srv_request *request);
void srv_handle_load(srv_request *request);
void srv_handle_unload(srv_request *request);
void srv_handle_aliases(srv_request *request);

/* Loads all files again: SIGHUP. */
void srv_models_reload(srv_server *server);
void *srv_loading_thread(void *server);

#endif
