/* model_routes.c: see model_routes.h. */
#include "model_routes.h"

#include "http.h"

/* clang-format off */
static const srv_member named_members[] = {
    {.name = "name", .types = SRV_STRING, .required = true, .help = "its file, without folder and ending"},
    {.name = "fingerprint", .types = SRV_STRING, .required = true, .help = "of the bytes of the file"},
    {.name = "events", .types = SRV_WHOLE, .required = true, .help = "event types"},
    {.name = "when", .types = SRV_BOOL, .required = true, .help = "whether it predicts times"},
    {.name = "properties", .types = SRV_OBJECT, .required = true, .help = "as in lapse info"},
    {0},
};

const srv_member srv_models_response[] = {
    {.name = "models", .types = SRV_ARRAY, .element = SRV_OBJECT, .members = named_members, .required = true},
    {.name = "aliases", .types = SRV_OBJECT, .required = true, .help = "alias: name of a model"},
    {.name = "split", .types = SRV_OBJECT, .required = true, .help = "alias: percent of the histories, by a hash of the name"},
    {0},
};

const srv_member srv_model_members[] = {
    {.name = "name", .types = SRV_STRING, .required = true,
     .help = "NAME of a file NAME.safetensors in the folder of the model that the server was started with"},
    {0},
};

const srv_member srv_alias_members[] = {
    {.name = "aliases", .types = SRV_OBJECT, .required = true, .help = "live and canary: names of models"},
    {.name = "split", .types = SRV_OBJECT, .help = "percent of each; default: all of live"},
    {0},
};
/* clang-format on */

void srv_handle_models(srv_request *r)
{
    r->status = 200;
    srv_registry_write(&r->server->registry, &r->out);
}

/* Sessions of a model that was replaced are freed; it is itself when the last request about it ends. */
static void drop(void *context, srv_model *before)
{
    srv_server *server = context;
    if (before)
        srv_cache_drop_model(&server->cache, before);
    srv_model_drop(before);
}

void srv_handle_load(srv_request *r)
{
    srv_model *before = NULL;
    if (!srv_registry_load(&r->server->registry, json_string_value(json_object_get(r->json, "name")), &before,
                           &r->problem))
        srv_fail_problem(r);
    else
        srv_handle_models(r);
    drop(r->server, before);
}

void srv_handle_unload(srv_request *r)
{
    srv_model *before = NULL;
    if (!srv_registry_unload(&r->server->registry, r->names[0], &before, &r->problem))
        srv_fail_problem(r);
    else
        srv_handle_models(r);
    drop(r->server, before);
}

void srv_handle_aliases(srv_request *r)
{
    if (!srv_registry_alias(&r->server->registry, json_object_get(r->json, "aliases"),
                            json_object_get(r->json, "split"), &r->problem))
        srv_fail_problem(r);
    else
        srv_handle_models(r);
}

void srv_models_reload(srv_server *server)
{
    srv_registry_reload(&server->registry, drop, server);
}

void *srv_loading_thread(void *context)
{
    srv_server *server = context;
    srv_request *r;
    while ((r = srv_queue_take(&server->queues[SRV_LOAD], 1)) != NULL) {
        r->route->handle(r);
        srv_http_resume(r);
    }
    return NULL;
}
