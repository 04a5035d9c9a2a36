/* routes.c: see routes.h. */
#include "routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *srv_status_title(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        {200, "OK"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {409, "Conflict"},
        {410, "Gone"},
        {413, "Content Too Large"},
        {422, "Unprocessable Content"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
    };
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Error";
}

/* Whether a path matches the pattern of a route; fills the decoded segments of {name}. */
static bool match(const char *pattern, const char *path, const char *from[SRV_PATH_NAMES], size_t size[SRV_PATH_NAMES])
{
    int names = 0;
    while (*pattern) {
        if (*pattern == '{') {
            size_t length = strcspn(path, "/");
            if (length == 0 || names == SRV_PATH_NAMES)
                return false;
            from[names] = path;
            size[names++] = length;
            path += length;
            pattern = strchr(pattern, '}') + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == 0;
}

void srv_route_find(srv_request *r, const char *method, const char *path)
{
    const char *described = NULL; /* the path of the table; one without {name} comes first */
    for (const srv_route *route = srv_routes; route->path; route++) {
        const char *from[SRV_PATH_NAMES] = {NULL};
        size_t size[SRV_PATH_NAMES] = {0};
        if (!match(route->path, path, from, size))
            continue;
        if (!described || strcmp(route->path, path) == 0)
            described = route->path;
        if (strcmp(route->method, method) != 0)
            continue;
        r->route = route;
        for (int i = 0; i < SRV_PATH_NAMES && from[i]; i++)
            r->names[i] = strndup(from[i], size[i]);
        return;
    }
    if (!described) {
        srv_fail(r, 404, NULL, "there is no such path; /openapi.json lists all");
        return;
    }
    for (const srv_route *route = srv_routes; route->path; route++)
        if (strcmp(route->path, described) == 0) {
            size_t used = strlen(r->allow);
            snprintf(r->allow + used, sizeof r->allow - used, "%s%s", used ? ", " : "", route->method);
        }
    srv_fail(r, 405, NULL, "this path has no method %.20s", method);
}

void srv_route_argument(srv_request *r, const char *name, const char *value)
{
    const srv_member *m = r->route && r->route->limit == 0 ? r->route->body : NULL;
    char *end;
    while (m && m->name && strcmp(m->name, name) != 0)
        m++;
    if (!r->json)
        r->json = json_object();
    double number = value && *value ? strtod(value, &end) : 0;
    json_t *json = json_string(value ? value : "");
    if (m && m->name && !(m->types & SRV_STRING) && value && *value && !*end) {
        json_decref(json);
        json = (double)(int64_t)number == number ? json_integer((json_int_t)number) : json_real(number);
    }
    bool known = m && m->name && !json_object_get(r->json, name);
    if ((json_object_set_new(r->json, name, json) != 0 || !known) && r->status == 0)
        srv_fail(r, 400, name, "unknown or repeated argument, or one that is not UTF-8");
}

void srv_route_parse(srv_request *r)
{
    if (r->route->limit == 0) {
        if (r->route->body &&
            !srv_schema_check(r->json ? r->json : (r->json = json_object()), r->route->body, &r->problem))
            srv_fail_problem(r);
        return;
    }
    if (r->route->parse) {
        r->route->parse(r);
        return;
    }
    if (!r->route->body)
        return;
    json_error_t error;
    r->json = json_loadb(r->body.size ? r->body.data : "", r->body.size, JSON_REJECT_DUPLICATES, &error);
    if (!r->json) {
        srv_refuse(&r->problem, 400, NULL, "the body is not JSON: %s", error.text);
        r->problem.position = error.position;
        srv_fail_problem(r);
    } else if (!srv_schema_check(r->json, r->route->body, &r->problem)) {
        srv_fail_problem(r);
    }
}

/* ----------------------------------------------------------------------------------------------- OpenAPI ----- */

static const srv_member problem_members[] = {
    {.name = "status", .types = SRV_WHOLE, .required = true, .help = "HTTP status"},
    {.name = "title", .types = SRV_STRING, .required = true, .help = "its name"},
    {.name = "detail", .types = SRV_STRING, .required = true, .help = "what is wrong"},
    {.name = "field", .types = SRV_STRING, .help = "the member of the request that is wrong"},
    {.name = "position", .types = SRV_WHOLE, .help = "the byte of the body, from 0"},
    {0},
};

static void write_content(srv_text *text, const char *type, const srv_member *members, bool open)
{
    srv_text_name(text, "content");
    srv_text_open(text, '{');
    srv_text_name(text, type);
    srv_text_open(text, '{');
    srv_text_name(text, "schema");
    if (members)
        srv_schema_write(text, members, open);
    else
        srv_text_add(text, "{\"type\":\"string\"}"); /* text */
    srv_text_close(text, '}');
    srv_text_close(text, '}');
}

/* One object, or an array of them. */
static void write_events_content(srv_text *text, const srv_member *members)
{
    srv_text_add(text, ",\"content\":{\"application/json\":{\"schema\":{\"oneOf\":[");
    srv_schema_write(text, members, false);
    srv_text_add(text,
                 ",{\"type\":\"array\",\"minItems\":1,\"maxItems\":10000,\"items\":{}}]}}}"); /* each has a status */
}

static void write_operation(srv_text *text, const srv_route *route)
{
    char method[16];
    size_t i = 0;
    for (; route->method[i] && i + 1 < sizeof method; i++)
        method[i] = (char)(route->method[i] | 0x20);
    method[i] = 0;
    srv_text_name(text, method);
    srv_text_open(text, '{');
    srv_text_member(text, "summary", route->summary);
    const srv_member *arguments = route->limit == 0 ? route->body : NULL;
    if (strchr(route->path, '{') || arguments) {
        srv_text_name(text, "parameters");
        srv_text_open(text, '[');
        for (const char *at = strchr(route->path, '{'); at; at = strchr(at + 1, '{')) {
            srv_text_open(text, '{');
            srv_text_name(text, "name");
            srv_text_format(text, "\"%.*s\"", (int)strcspn(at + 1, "}"), at + 1);
            srv_text_add(text, ",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"}}");
        }
        for (const srv_member *m = arguments; m && m->name; m++) {
            const srv_member one[] = {*m, {0}};
            srv_text_open(text, '{');
            srv_text_member(text, "name", m->name);
            srv_text_member(text, "in", "query");
            srv_schema_write_values(text, one);
            srv_text_close(text, '}');
        }
        srv_text_close(text, ']');
    }
    if (route->body && !arguments) {
        srv_text_name(text, "requestBody");
        srv_text_open(text, '{');
        srv_text_member_bool(text, "required", true);
        if (route->parse)
            write_events_content(text, route->body);
        else
            write_content(text, "application/json", route->body, false);
        srv_text_close(text, '}');
    }
    srv_text_name(text, "responses");
    srv_text_open(text, '{');
    srv_text_name(text, "200");
    srv_text_open(text, '{');
    srv_text_member(text, "description", "OK");
    write_content(text,
                  route->response  ? "application/json"
                  : route->path[1] ? "text/plain"
                                   : "text/html",
                  route->response, true);
    srv_text_close(text, '}');
    srv_text_name(text, "default");
    srv_text_open(text, '{');
    srv_text_member(text, "description", "A problem (RFC 9457)");
    write_content(text, "application/problem+json", problem_members, true);
    srv_text_close(text, '}');
    srv_text_close(text, '}');
    srv_text_close(text, '}');
}

void srv_openapi_write(srv_text *text)
{
    srv_text_open(text, '{');
    srv_text_member(text, "openapi", "3.1.0");
    srv_text_add(text, ",\"info\":{\"title\":\"Lapse\",\"version\":");
    srv_text_quote(text, lapse_version());
    srv_text_add(text, "},\"paths\":{");
    for (const srv_route *route = srv_routes; route->path; route++) {
        bool first = true;
        for (const srv_route *before = srv_routes; before < route; before++)
            first = first && strcmp(before->path, route->path) != 0;
        if (!first)
            continue;
        srv_text_name(text, route->path);
        srv_text_open(text, '{');
        for (const srv_route *same = route; same->path; same++)
            if (strcmp(same->path, route->path) == 0)
                write_operation(text, same);
        srv_text_close(text, '}');
    }
    srv_text_add(text, "}}");
}
