/* committing.c: takes all requests that wait to write. Their events become one transaction (group commit), so the cost of
 * making it durable is shared; other changes are transactions of their own, in the order of arrival. */
#include "committing.h"

#include "arrivals.h"
#include "http.h"
#include "polling.h"
#include "retention.h"

enum { COMMIT_REQUESTS = 512, POPULAR_SECONDS = 60, RETAIN_SECONDS = 3600 };

/* The list of popular events follows them: when there is none, and once a minute. */
static void update_popular(srv_server *server, double *newest)
{
    srv_catalogue *catalogue = NULL;
    bool written;
    int64_t position;
    srv_catalogue *current = srv_cache_catalogue(&server->cache);
    bool fresh = current->popular_count > 0 && srv_clock() - *newest < POPULAR_SECONDS;
    srv_catalogue_drop(current);
    if (fresh)
        return;
    *newest = srv_clock();
    if (srv_popular_update(&server->store, &written, &position) && written && !server->store.engine->shared &&
        srv_catalogue_read(&server->store, position, &catalogue))
        srv_cache_renew(&server->cache, catalogue, position);
}

void *srv_committing_thread(void *context)
{
    srv_server *server = context;
    srv_request *list;
    double popular = 0, retained = srv_clock();
    while ((list = srv_queue_take(&server->queues[SRV_COMMIT], COMMIT_REQUESTS)) != NULL) {
        while (list) {
            srv_request *group[COMMIT_REQUESTS];
            int count = 0;
            bool events = list->route->handle == NULL;
            do {
                group[count++] = list;
                list = list->next;
            } while (list && events && list->route->handle == NULL);
            if (events)
                srv_events_commit(server, group, count);
            else if (srv_poll(server, &server->store))
                group[0]->route->handle(group[0]);
            else
                srv_fail(group[0], 503, NULL, "%s", server->store.message);
            for (int i = 0; i < count; i++)
                srv_http_resume(group[i]);
            if (events)
                update_popular(server, &popular);
        }
        if (srv_clock() - retained > RETAIN_SECONDS) {
            srv_retain(server);
            retained = srv_clock();
        }
    }
    return NULL;
}
