/* route_table.c: the routes of the server: one row each. The table dispatches and checks requests, and is printed as
 * /openapi.json. */
#include "arrivals.h"
#include "attribution.h"
#include "stored_changes.h"
#include "forecasting.h"
#include "metrics.h"
#include "model_routes.h"
#include "page.h"
#include "questions.h"
#include "routes.h"
#include "when_answers.h"

static void handle_health(srv_request *r)
{
    r->status = 200;
    srv_text_add(&r->out, "{\"status\":\"ok\"}");
}

static void handle_ready(srv_request *r)
{
    if (atomic_load(&r->server->draining)) {
        srv_fail(r, 503, NULL, "the server is stopping");
        return;
    }
    handle_health(r);
}

static void handle_openapi(srv_request *r)
{
    r->status = 200;
    srv_openapi_write(&r->out);
}

static void handle_metrics(srv_request *r)
{
    r->status = 200;
    r->type = "text/plain; version=0.0.4";
    srv_metrics_write(r->server, &r->out);
}

static const srv_member status_members[] = {
    {.name = "status", .types = SRV_STRING, .required = true},
    {0},
};

static const srv_member document_members[] = {
    {.name = "openapi", .types = SRV_STRING, .required = true},
    {.name = "paths", .types = SRV_OBJECT, .required = true},
    {0},
};

const srv_route srv_routes[] = {
    {"GET", "/", SRV_OPEN, SRV_AT_ONCE, srv_handle_page, "The page", NULL, NULL, 0, NULL, NULL},
    {"GET", "/healthz", SRV_OPEN, SRV_AT_ONCE, handle_health, "Whether the process runs", NULL, status_members, 0, NULL, NULL},
    {"GET", "/readyz", SRV_OPEN, SRV_AT_ONCE, handle_ready, "Whether requests are accepted", NULL, status_members, 0, NULL, NULL},
    {"GET", "/openapi.json", SRV_OPEN, SRV_AT_ONCE, handle_openapi, "This description", NULL, document_members, 0, NULL, NULL},
    {"GET", "/metrics", SRV_READ, SRV_AT_ONCE, handle_metrics, "Counters for Prometheus", NULL, NULL, 0, NULL, NULL},
    {"POST", "/v1/predict", SRV_READ, SRV_ANSWER, NULL, "What comes next, at given times", srv_predict_members,
     srv_predict_response, SRV_BODY_LIMIT, NULL, NULL},
    {"POST", "/v1/rank", SRV_READ, SRV_ANSWER, NULL, "Put candidates in order", srv_rank_members, srv_predict_response,
     SRV_BODY_LIMIT, NULL, NULL},
    {"POST", "/v1/when", SRV_READ, SRV_ANSWER, NULL, "When the next event comes", srv_when_members, srv_when_response,
     SRV_BODY_LIMIT, NULL, NULL},
    {"POST", "/v1/forecast", SRV_READ, SRV_ANSWER, NULL, "Futures of histories", srv_forecast_members,
     srv_forecast_response, SRV_BODY_LIMIT, srv_forecast, NULL},
    {"GET", "/v1/attribution", SRV_READ, SRV_ANSWER, NULL, "Ranks that led to events", srv_attribution_members,
     srv_attribution_response, 0, srv_attribute, NULL},
    {"POST", "/v1/replay", SRV_READ, SRV_ANSWER, NULL, "An old answer again, byte for byte", srv_replay_members,
     srv_replay_response, SRV_BODY_LIMIT, NULL, NULL},
    {"GET", "/v1/models", SRV_READ, SRV_LOAD, srv_handle_models, "Models, aliases and split", NULL, srv_models_response, 0, NULL, NULL},
    {"POST", "/v1/models", SRV_ADMIN, SRV_LOAD, srv_handle_load, "Load a model, or load it again", srv_model_members,
     srv_models_response, SRV_BODY_LIMIT, NULL, NULL},
    {"DELETE", "/v1/models/{name}", SRV_ADMIN, SRV_LOAD, srv_handle_unload, "Unload a model", NULL, srv_models_response, 0, NULL, NULL},
    {"PUT", "/v1/aliases", SRV_ADMIN, SRV_LOAD, srv_handle_aliases, "Which models answer", srv_alias_members, srv_models_response,
     SRV_BODY_LIMIT, NULL, NULL},
    {"POST", "/v1/events", SRV_WRITE, SRV_COMMIT, NULL, "Store events: one, an array, or one per line", srv_event_members,
     srv_events_response, SRV_EVENTS_BODY, NULL, srv_events_parse},
    {"GET", "/v1/histories/{name}", SRV_READ, SRV_COMMIT, srv_handle_history, "The events of a history", srv_page_members,
     srv_history_response, 0, NULL, NULL},
    {"DELETE", "/v1/histories/{name}", SRV_ADMIN, SRV_COMMIT, srv_handle_erase, "Erase a history, in backups too", NULL,
     srv_position_response, 0, NULL, NULL},
    {"POST", "/v1/histories/merge", SRV_WRITE, SRV_COMMIT, srv_handle_merge, "Merge a history into another", srv_merge_members,
     srv_position_response, SRV_BODY_LIMIT, NULL, NULL},
    {"GET", "/v1/items", SRV_READ, SRV_COMMIT, srv_handle_items, "The catalogue", srv_item_search_members, srv_items_response, 0,
     NULL, NULL},
    {"PUT", "/v1/items", SRV_WRITE, SRV_COMMIT, srv_handle_put_items, "Replace items of the catalogue", srv_items_members,
     srv_position_response, SRV_EVENTS_BODY, NULL, NULL},
    {"PATCH", "/v1/items", SRV_WRITE, SRV_COMMIT, srv_handle_put_items, "Change fields of items; null removes one",
     srv_items_members, srv_position_response, SRV_EVENTS_BODY, NULL, NULL},
    {0},
};
