/* metrics.c: see metrics.h. Requests are counted by the pattern of their path, which no client chooses. */
#include "metrics.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUTES = 48, CLASSES = 6, BUCKETS = 14 };

static const double limits[BUCKETS] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                       0.025,  0.05,    0.1,    0.25,  0.5,    1,     5};
static atomic_llong counts[ROUTES][CLASSES], buckets[ROUTES][BUCKETS + 1], microseconds[ROUTES];

void srv_metrics_count(srv_request *r)
{
    int route = r->route ? (int)(r->route - srv_routes) : ROUTES - 1, bucket = 0;
    double seconds = srv_clock() - r->begun;
    if (route >= ROUTES)
        route = ROUTES - 1;
    while (bucket < BUCKETS && seconds > limits[bucket])
        bucket++;
    atomic_fetch_add(&counts[route][r->status / 100 < CLASSES ? r->status / 100 : 5], 1);
    atomic_fetch_add(&buckets[route][bucket], 1);
    atomic_fetch_add(&microseconds[route], (long long)(seconds * 1e6));
}

static void write_route(srv_text *out, int i, const char *method, const char *path)
{
    int64_t total = 0;
    for (int c = 0; c < CLASSES; c++)
        if (atomic_load(&counts[i][c]))
            srv_text_format(out, "lapse_requests_total{method=\"%s\",path=\"%s\",status=\"%dxx\"} %lld\n", method, path,
                            c, atomic_load(&counts[i][c]));
    for (int b = 0; b <= BUCKETS; b++) {
        char limit[32] = "+Inf";
        total += atomic_load(&buckets[i][b]);
        if (b < BUCKETS)
            snprintf(limit, sizeof limit, "%g", limits[b]);
        if (total)
            srv_text_format(out, "lapse_request_seconds_bucket{method=\"%s\",path=\"%s\",le=\"%s\"} %lld\n", method,
                            path, limit, (long long)total);
    }
    if (total)
        srv_text_format(out,
                        "lapse_request_seconds_sum{method=\"%s\",path=\"%s\"} %.6f\n"
                        "lapse_request_seconds_count{method=\"%s\",path=\"%s\"} %lld\n",
                        method, path, (double)atomic_load(&microseconds[i]) * 1e-6, method, path, (long long)total);
}

static void write_value(srv_text *out, const char *name, const char *type, const char *help, double value)
{
    srv_text_format(out, "# HELP lapse_%s %s\n# TYPE lapse_%s %s\nlapse_%s ", name, help, name, type, name);
    srv_text_number(out, value);
    srv_text_add(out, "\n");
}

static double resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void srv_metrics_write(srv_server *server, srv_text *out)
{
    srv_cache *c = &server->cache;
    srv_text_add(out, "# HELP lapse_requests_total Responses by path and status\n# TYPE lapse_requests_total counter\n"
                      "# HELP lapse_request_seconds Time from the header of a request to its response\n"
                      "# TYPE lapse_request_seconds histogram\n");
    int i = 0;
    for (; srv_routes[i].path; i++)
        write_route(out, i, srv_routes[i].method, srv_routes[i].path);
    write_route(out, ROUTES - 1, "", "");
    pthread_mutex_lock(&c->mutex);
    double histories = (double)c->count, bytes = (double)c->bytes, position = (double)c->position;
    pthread_mutex_unlock(&c->mutex);
    write_value(out, "cache_histories", "gauge", "Histories in memory", histories);
    write_value(out, "cache_bytes", "gauge", "Their bytes, with sessions", bytes);
    write_value(out, "cache_hits_total", "counter", "Histories found in memory", (double)atomic_load(&c->hits));
    write_value(out, "cache_misses_total", "counter", "Histories read from the store", (double)atomic_load(&c->misses));
    write_value(out, "cache_evictions_total", "counter", "Histories dropped from memory",
                (double)atomic_load(&c->evictions));
    write_value(out, "store_position", "gauge", "Position of the log", position);
    write_value(out, "answer_queue", "gauge", "Requests that wait for an answer", server->queues[SRV_ANSWER].count);
    write_value(out, "commit_queue", "gauge", "Requests that wait for a commit", server->queues[SRV_COMMIT].count);
    write_value(out, "requests_active", "gauge", "Requests that have begun", atomic_load(&server->active));
    write_value(out, "resident_bytes", "gauge", "Memory of the process", resident_bytes());
    write_value(out, "uptime_seconds", "gauge", "Since the start", srv_clock() - server->begun);
}
