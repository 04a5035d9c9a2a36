/* serve_load.c: sends requests to `lapse serve` from one thread and prints rates and latencies.
 *
 *   cc -O2 -o serve_load bench/serve_load.c -lm
 *   serve_load PORT REQUESTS [--connections 64] [--seconds 5] [--rate R] [--warm 1]
 *
 * A line of REQUESTS is METHOD PATH BODY; ########## in it becomes a number that does not repeat. Without --rate each connection
 * sends its next request when it has the response. With it, requests are due at Poisson arrivals of R a second, whatever the
 * server does, and a latency begins when the request is due: a slow server is not asked less. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PATHS = 16, MARK = 10 };

typedef struct request {
    char *text; /* whole, with headers */
    size_t size;
    int path;
} request;

typedef struct connection {
    int socket, path;
    bool busy;
    double due;
    const char *left; /* of the request, not sent */
    size_t left_size;
    char *sent; /* a copy, if the request has numbers */
    char in[1 << 16];
    size_t in_size;
    int64_t body_left; /* of the response; -1: the headers are not complete */
    int status;
} connection;

typedef struct sample {
    float latency;
    int path;
} sample;

static request *requests;
static size_t request_count, next_request, sample_count, sample_capacity;
static char paths[PATHS][64];
static int path_count, poll_handle;
static sample *samples;
static uint64_t number;
static int64_t failed, lost;
static int bad_status;
static bool measuring;
static struct sockaddr_in address = {.sin_family = AF_INET};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *what)
{
    fprintf(stderr, "serve_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void read_requests(const char *file)
{
    FILE *in = fopen(file, "r");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    if (!in)
        die(file);
    while ((size = getline(&line, &capacity, in)) > 0) {
        char method[8], path[64];
        int body = 0;
        line[size - 1] = 0;
        if (sscanf(line, "%7s %63s %n", method, path, &body) < 2)
            continue;
        requests = realloc(requests, (request_count + 1) * sizeof *requests);
        request *r = &requests[request_count++];
        int length = asprintf(&r->text, "%s %s HTTP/1.1\r\nHost: lapse\r\nContent-Length: %zu\r\n\r\n%s", method, path,
                              strlen(line + body), line + body);
        r->size = (size_t)length;
        for (r->path = 0; r->path < path_count && strcmp(paths[r->path], path) != 0; r->path++)
            continue;
        if (r->path == path_count && path_count < PATHS)
            strcpy(paths[path_count++], path);
        r->path = r->path < PATHS ? r->path : PATHS - 1;
    }
    fclose(in);
    free(line);
}

static void open_connection(connection *c)
{
    int yes = 1;
    if (c->socket > 0)
        close(c->socket);
    c->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (c->socket < 0 || connect(c->socket, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect");
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(c->socket, F_SETFL, O_NONBLOCK);
    epoll_ctl(poll_handle, EPOLL_CTL_ADD, c->socket, &(struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c});
    c->busy = false;
    c->in_size = 0;
}

static void write_more(connection *c)
{
    while (c->left_size) {
        ssize_t sent = send(c->socket, c->left, c->left_size, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        c->left += sent;
        c->left_size -= (size_t)sent;
    }
}

static void begin(connection *c, double due)
{
    const request *r = &requests[next_request];
    char *mark, digits[MARK + 1];
    next_request = (next_request + 1) % request_count;
    *c = (connection){.socket = c->socket, .sent = c->sent, .path = r->path, .busy = true, .due = due, .left = r->text,
                      .left_size = r->size, .body_left = -1};
    if (strstr(r->text, "##########")) {
        c->sent = realloc(c->sent, r->size + 1);
        memcpy(c->sent, r->text, r->size + 1);
        for (mark = c->sent; (mark = strstr(mark, "##########")); mark += MARK) {
            snprintf(digits, sizeof digits, "%010llu", (unsigned long long)number++);
            memcpy(mark, digits, MARK);
        }
        c->left = c->sent;
    }
    write_more(c);
}

/* Whether the response is complete. */
static bool parse(connection *c)
{
    if (c->body_left < 0) {
        char *end = memmem(c->in, c->in_size, "\r\n\r\n", 4);
        if (!end)
            return false;
        *end = 0;
        const char *length = strcasestr(c->in, "Content-Length:");
        c->status = atoi(c->in + 9);
        c->body_left = (length ? atoll(length + 15) : 0) - (int64_t)(c->in_size - (size_t)(end + 4 - c->in));
    }
    return c->body_left <= 0;
}

static void read_more(connection *c)
{
    for (;;) {
        bool head = c->body_left < 0;
        ssize_t got = recv(c->socket, head ? c->in + c->in_size : c->in, sizeof c->in - (head ? c->in_size : 0), 0);
        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            lost += c->busy;
            open_connection(c);
            return;
        }
        if (got < 0)
            return;
        if (head)
            c->in_size += (size_t)got;
        else
            c->body_left -= got;
        if (c->busy && parse(c))
            break;
    }
    c->busy = false;
    if (c->status != 200) {
        failed++;
        bad_status = c->status;
    }
    if (!measuring)
        return;
    if (sample_count == sample_capacity)
        samples = realloc(samples, (sample_capacity = sample_capacity * 2 + 1000) * sizeof *samples);
    samples[sample_count++] = (sample){(float)(now() - c->due), c->path};
}

static int compare(const void *a, const void *b)
{
    float x = ((const sample *)a)->latency, y = ((const sample *)b)->latency;
    return (x > y) - (x < y);
}

/* Of one path; -1: of all. */
static void report(int path, double seconds)
{
    size_t count = 0;
    float *of = malloc((sample_count + 1) * sizeof *of);
    for (size_t i = 0; i < sample_count; i++)
        if (path < 0 || samples[i].path == path)
            of[count++] = samples[i].latency;
    if (count)
        printf("%-16s %9.0f /s  p50 %8.3f ms  p99 %8.3f ms  p99.9 %8.3f ms  max %8.3f ms\n", path < 0 ? "all" : paths[path],
               (double)count / seconds, of[count / 2] * 1e3, of[count * 99 / 100] * 1e3, of[count * 999 / 1000] * 1e3,
               of[count - 1] * 1e3);
    free(of);
}

int main(int count, char **arguments)
{
    double options[] = {64, 5, 0, 1};
    static const char *const names[] = {"--connections", "--seconds", "--rate", "--warm"};
    for (int i = 3; i + 1 < count; i += 2)
        for (int j = 0; j < 4; j++)
            if (strcmp(arguments[i], names[j]) == 0)
                options[j] = atof(arguments[i + 1]);
    if (count < 3) {
        fprintf(stderr, "usage: serve_load PORT REQUESTS [--connections N] [--seconds S] [--rate R] [--warm S]\n");
        return 2;
    }
    read_requests(arguments[2]);
    if (!request_count)
        die("no requests");
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    address.sin_port = htons((uint16_t)atoi(arguments[1]));
    poll_handle = epoll_create1(0);
    number = (uint64_t)time(NULL) % 1000 * 10000000;
    int all = (int)options[0], free_count = 0;
    double rate = options[2], begun = now(), start = begun + options[3], end = start + options[1], due = begun;
    connection *c = calloc((size_t)all, sizeof *c), **idle = calloc((size_t)all + 1, sizeof *idle);
    struct epoll_event events[256];
    srand48(1);
    for (int i = 0; i < all; i++) {
        open_connection(&c[i]);
        idle[free_count++] = &c[i];
    }
    /* Connections that are waited for longest come first, so all of them are used. */
    int first = 0;
    for (double t = now(); t < end; t = now()) {
        measuring = t >= start;
        while (free_count && (rate == 0 || due <= t)) {
            begin(idle[first], rate == 0 ? t : due);
            first = (first + 1) % (all + 1);
            free_count--;
            due -= log(1 - drand48()) / (rate > 0 ? rate : 1);
        }
        double pause = free_count && rate > 0 ? (due - t) * 1e3 : 100;
        struct timespec wait = {.tv_nsec = (long)(fmax(fmin(pause, 100), 0) * 1e6)};
        int ready = epoll_pwait2(poll_handle, events, 256, &wait, NULL);
        for (int i = 0; i < ready; i++) {
            connection *one = events[i].data.ptr;
            bool busy = one->busy;
            if (busy && one->left_size)
                write_more(one);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                read_more(one);
            if (busy && !one->busy)
                idle[(first + free_count++) % (all + 1)] = one;
        }
    }
    qsort(samples, sample_count, sizeof *samples, compare);
    for (int i = 0; path_count > 1 && i < path_count; i++)
        report(i, now() - start);
    report(-1, now() - start);
    if (failed || lost)
        printf("FAILED: %lld responses, such as %d; %lld connections lost\n", (long long)failed, bad_status, (long long)lost);
    return failed || lost;
}
