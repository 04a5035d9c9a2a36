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
    {"GET", "/", SRV_OPEN, SRV_AT_ONCE, "The page", .handle = srv_handle_page},
    {"GET", "/healthz", SRV_OPEN, SRV_AT_ONCE, "Whether the process runs", .handle = handle_health,
     .response = status_members},
    {"GET", "/readyz", SRV_OPEN, SRV_AT_ONCE, "Whether requests are accepted", .handle = handle_ready,
     .response = status_members},
    {"GET", "/openapi.json", SRV_OPEN, SRV_AT_ONCE, "This description", .handle = handle_openapi,
     .response = document_members},
    {"GET", "/metrics", SRV_READ, SRV_AT_ONCE, "Counters for Prometheus", .handle = handle_metrics},
    {"POST", "/v1/predict", SRV_READ, SRV_ANSWER, "What comes next, at given times", .body = srv_predict_members,
     .response = srv_predict_response, .limit = SRV_BODY_LIMIT},
    {"POST", "/v1/rank", SRV_READ, SRV_ANSWER, "Put candidates in order", .body = srv_rank_members,
     .response = srv_predict_response, .limit = SRV_BODY_LIMIT},
    {"POST", "/v1/when", SRV_READ, SRV_ANSWER, "When the next event comes", .body = srv_when_members,
     .response = srv_when_response, .limit = SRV_BODY_LIMIT},
    {"POST", "/v1/forecast", SRV_READ, SRV_ANSWER, "Futures of histories", .body = srv_forecast_members,
     .response = srv_forecast_response, .limit = SRV_BODY_LIMIT, .answer = srv_forecast},
    {"GET", "/v1/attribution", SRV_READ, SRV_ANSWER, "Ranks that led to events", .body = srv_attribution_members,
     .response = srv_attribution_response, .answer = srv_attribute},
    {"POST", "/v1/replay", SRV_READ, SRV_ANSWER, "An old answer again, byte for byte", .body = srv_replay_members,
     .response = srv_replay_response, .limit = SRV_BODY_LIMIT},
    {"GET", "/v1/models", SRV_READ, SRV_LOAD, "Models, aliases and split", .handle = srv_handle_models,
     .response = srv_models_response},
    {"POST", "/v1/models", SRV_ADMIN, SRV_LOAD, "Load a model, or load it again", .handle = srv_handle_load,
     .body = srv_model_members, .response = srv_models_response, .limit = SRV_BODY_LIMIT},
    {"DELETE", "/v1/models/{name}", SRV_ADMIN, SRV_LOAD, "Unload a model", .handle = srv_handle_unload,
     .response = srv_models_response},
    {"PUT", "/v1/aliases", SRV_ADMIN, SRV_LOAD, "Which models answer", .handle = srv_handle_aliases,
     .body = srv_alias_members, .response = srv_models_response, .limit = SRV_BODY_LIMIT},
    {"POST", "/v1/events", SRV_WRITE, SRV_COMMIT, "Store events: one, an array, or one per line",
     .body = srv_event_members, .response = srv_events_response, .limit = SRV_EVENTS_BODY, .parse = srv_events_parse,
     .respond = srv_events_respond},
    {"GET", "/v1/histories", SRV_READ, SRV_COMMIT, "Names of histories", .handle = srv_handle_names,
     .body = srv_names_members, .response = srv_names_response},
    {"GET", "/v1/histories/{name}", SRV_READ, SRV_COMMIT, "The events of a history", .handle = srv_handle_history,
     .body = srv_page_members, .response = srv_history_response},
    {"DELETE", "/v1/histories/{name}", SRV_ADMIN, SRV_COMMIT, "Erase a history, in backups too",
     .handle = srv_handle_erase, .response = srv_position_response},
    {"POST", "/v1/histories/merge", SRV_WRITE, SRV_COMMIT, "Merge a history into another", .handle = srv_handle_merge,
     .body = srv_merge_members, .response = srv_position_response, .limit = SRV_BODY_LIMIT},
    {"GET", "/v1/items", SRV_READ, SRV_COMMIT, "The catalogue", .handle = srv_handle_items,
     .body = srv_item_search_members, .response = srv_items_response},
    {"PUT", "/v1/items", SRV_WRITE, SRV_COMMIT, "Replace items of the catalogue", .handle = srv_handle_put_items,
     .body = srv_items_members, .response = srv_position_response, .limit = SRV_EVENTS_BODY},
    {"PATCH", "/v1/items", SRV_WRITE, SRV_COMMIT, "Change fields of items; null removes one",
     .handle = srv_handle_put_items, .body = srv_items_members, .response = srv_position_response,
     .limit = SRV_EVENTS_BODY},
    {0},
};
