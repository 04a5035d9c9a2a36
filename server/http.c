/* http.c: libmicrohttpd reads requests and writes responses. A few threads with epoll serve all connections; a connection
 * whose request waits for an answer is suspended and costs nothing. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "metrics.h"
#include "routes.h"
#include "tls.h"

enum {
    CONNECTION_LIMIT = 12000,
    CONNECTION_MEMORY = 16 << 10, /* headers of a request: more is refused with 431 */
    IDLE_SECONDS = 60,
    REQUEST_SECONDS = 60, /* to send a request */
    HTTP_THREADS = 2,
    BACKLOG = 1024
};

struct srv_http {
    srv_server *server;
    struct MHD_Daemon *daemon;
    int socket;
};

/* ------------------------------------------------------------------------------------------- responses ------- */

void srv_fail_problem(srv_request *r)
{
    const srv_problem *p = &r->problem;
    r->status = p->status;
    r->type = "application/problem+json";
    r->out.size = 0;
    srv_text_open(&r->out, '{');
    srv_text_member_whole(&r->out, "status", p->status);
    srv_text_member(&r->out, "title", srv_status_title(p->status));
    srv_text_member(&r->out, "detail", p->detail);
    if (p->field[0])
        srv_text_member(&r->out, "field", p->field);
    if (p->position >= 0)
        srv_text_member_whole(&r->out, "position", p->position);
    srv_text_close(&r->out, '}');
}

void srv_fail(srv_request *r, int status, const char *field, const char *format, ...)
{
    char detail[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    srv_refuse(&r->problem, status, field, "%s", detail);
    srv_fail_problem(r);
}

void srv_fail_error(srv_request *r, const char *field, const lapse_error *error)
{
    int status = error->status == LAPSE_ERROR_MEMORY || error->status == LAPSE_ERROR_COMM ? 503
                 : error->status == LAPSE_ERROR_INTERNAL                                  ? 500
                                                                                          : 400;
    srv_fail(r, status, field, "%s", error->message);
}

static enum MHD_Result send_response(srv_request *r, struct MHD_Connection *connection)
{
    if (r->status == 0)
        r->route->respond(r);
    if (r->out.failed) {
        r->out.failed = false;
        srv_fail(r, 503, NULL, "out of memory");
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(r->out.size, r->out.data, MHD_RESPMEM_MUST_FREE);
    if (!response)
        return MHD_NO;
    r->out = (srv_text){0};
    srv_metrics_count(r);
    MHD_add_response_header(response, "Content-Type", r->type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (r->policy[0])
        MHD_add_response_header(response, "Content-Security-Policy", r->policy);
    if (r->allow[0])
        MHD_add_response_header(response, "Allow", r->allow);
    if (r->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (r->status == 503)
        MHD_add_response_header(response, "Retry-After", "1");
    if (atomic_load(&r->server->draining))
        MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return result;
}

void srv_http_resume(srv_request *r)
{
    MHD_resume_connection(r->connection);
}

/* -------------------------------------------------------------------------------------------- requests ------- */

static void free_request(srv_request *r)
{
    atomic_fetch_sub(&r->server->active, 1);
    for (int i = 0; i < SRV_PATH_NAMES; i++)
        free(r->names[i]);
    srv_text_clear(&r->body);
    srv_text_clear(&r->out);
    json_decref(r->json);
    if (r->extra)
        r->extra_free(r->extra);
    free(r);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)connection;
    (void)code;
    if (*slot)
        free_request(*slot);
    *slot = NULL;
}

/* The whole request is here: checks it, and answers it or puts it into the queue of its stage. */
static enum MHD_Result dispatch(srv_request *r, struct MHD_Connection *connection)
{
    r->dispatched = true;
    if (r->status == 0 && r->too_large)
        srv_fail(r, 413, NULL, "the body has more than %zu bytes", r->route->limit);
    if (r->status == 0)
        srv_route_parse(r);
    if (r->status != 0)
        return send_response(r, connection);
    if (r->route->stage == SRV_AT_ONCE) {
        r->route->handle(r);
        return send_response(r, connection);
    }
    r->connection = connection;
    MHD_suspend_connection(connection);
    if (srv_queue_put(&r->server->queues[r->route->stage], r))
        return MHD_YES;
    srv_fail(r, 503, NULL, "the server is overloaded: try again later");
    MHD_resume_connection(connection);
    return MHD_YES;
}

static enum MHD_Result on_argument(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    srv_route_argument(context, name, value);
    return MHD_YES;
}

static srv_request *begin_request(srv_server *server, struct MHD_Connection *connection, const char *path,
                                  const char *method)
{
    srv_request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    atomic_fetch_add(&server->active, 1);
    r->server = server;
    r->begun = srv_clock();
    r->time = srv_now();
    r->type = "application/json";
    srv_route_find(r, method, path);
    if (r->status == 0) {
        srv_right right = srv_access_right(
            &server->access, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION));
        if (right < r->route->right)
            srv_fail(r, right == SRV_OPEN ? 401 : 403, NULL, "%s",
                     right == SRV_OPEN ? "the header Authorization: Bearer TOKEN is missing, or the token is unknown"
                                       : "this token may not do that");
    }
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, on_argument, r);
    return r;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **slot)
{
    (void)version;
    srv_request *r = *slot;
    if (!r) {
        *slot = r = begin_request(context, connection, url, method);
        return r ? MHD_YES : MHD_NO;
    }
    if (*size > 0) {
        size_t limit = r->route ? r->route->limit : 0;
        if (srv_clock() - r->begun > REQUEST_SECONDS)
            return MHD_NO;
        if (r->body.size + *size > limit)
            r->too_large = true;
        else
            srv_text_bytes(&r->body, data, *size);
        /* A body that goes on for long after its end is not read. */
        if (r->too_large && (r->body.size += *size) > limit + (16u << 20))
            return MHD_NO;
        *size = 0;
        return MHD_YES;
    }
    if (!r->dispatched)
        return dispatch(r, connection);
    return send_response(r, connection);
}

/* ------------------------------------------------------------------------------------------- listening ------- */

/* HOST:PORT, [HOST]:PORT. */
static bool split_address(const char *listen, char host[256], const char **port)
{
    const char *colon = strrchr(listen, ':');
    if (!colon || colon == listen || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    size_t length = (size_t)(colon - listen);
    if (listen[0] == '[' && listen[length - 1] == ']') {
        listen++;
        length -= 2;
    }
    snprintf(host, 256, "%.*s", (int)length, listen);
    *port = colon + 1;
    return true;
}

static int open_socket(const struct addrinfo *info)
{
    int handle = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
    if (handle < 0)
        return -1;
    setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(handle, info->ai_addr, info->ai_addrlen) == 0 && listen(handle, BACKLOG) == 0)
        return handle;
    int error = errno;
    close(handle);
    errno = error;
    return -1;
}

static int listen_at(const char *address, char *shown, size_t size)
{
    char host[256], name[INET6_ADDRSTRLEN] = "", service[16] = "";
    const char *port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *info = NULL;
    if (!split_address(address, host, &port)) {
        fprintf(stderr, "lapse: --listen %s: an address is HOST:PORT, such as 127.0.0.1:8080\n", address);
        return -1;
    }
    int wrong = getaddrinfo(host, port, &hints, &info);
    if (wrong) {
        fprintf(stderr, "lapse: --listen %s: %s\n", address, gai_strerror(wrong));
        return -1;
    }
    int handle = open_socket(info);
    freeaddrinfo(info);
    if (handle < 0) {
        fprintf(stderr, "lapse: --listen %s: %s\n", address, strerror(errno));
        return -1;
    }
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    getsockname(handle, (struct sockaddr *)&bound, &length);
    getnameinfo((struct sockaddr *)&bound, length, name, sizeof name, service, sizeof service,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(shown, size, strchr(name, ':') ? "[%s]:%s" : "%s:%s", name, service);
    return handle;
}

/* Whether an address is of this machine alone. */
static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0;
}

static bool check_exposure(const srv_options *o, const char *address)
{
    if (is_loopback(address) || (o->token_file && ((o->tls_cert && o->tls_key) || o->insecure)))
        return true;
    fprintf(stderr,
            "lapse: --listen %s: an address that other machines reach needs --token-file, and --tls-cert with "
            "--tls-key or --insecure\n",
            address);
    return false;
}

bool srv_http_start(srv_server *server, srv_http **out, char *address, size_t address_size)
{
    srv_http *http = calloc(1, sizeof *http);
    if (!http)
        return false;
    http->server = server;
    http->socket = listen_at(server->options.listen, address, address_size);
    const srv_options *o = &server->options;
    bool tls = o->tls_cert && o->tls_key,
         good = http->socket >= 0 && check_exposure(o, address) && (!tls || srv_tls_load(o->tls_cert, o->tls_key));
    struct MHD_OptionItem extra[2] = {{tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, 0, srv_tls_choose()},
                                      {MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0u);
    if (good)
        http->daemon =
            MHD_start_daemon(flags, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, http->socket,
                             MHD_OPTION_THREAD_POOL_SIZE, (unsigned)HTTP_THREADS, MHD_OPTION_CONNECTION_LIMIT,
                             (unsigned)CONNECTION_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                             MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED,
                             on_completed, NULL, MHD_OPTION_ARRAY, extra, MHD_OPTION_END);
    if (!http->daemon) {
        if (good)
            fprintf(stderr, "lapse: cannot start the HTTP server: %s\n", strerror(errno));
        if (http->socket >= 0)
            close(http->socket);
        free(http);
        return false;
    }
    *out = http;
    return true;
}

void srv_http_quiesce(srv_http *http)
{
    MHD_socket handle = MHD_quiesce_daemon(http->daemon);
    if (handle != MHD_INVALID_SOCKET)
        close(handle);
}

void srv_http_stop(srv_http *http)
{
    MHD_stop_daemon(http->daemon);
    srv_tls_clear();
    free(http);
}
