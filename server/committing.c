/* committing.c: takes all requests that wait to write. Their events become one transaction (group commit), so the cost of
 * making it durable is shared; other changes are transactions of their own, in the order of arrival. */
#include "committing.h"

#include "arrivals.h"
#include "http.h"

enum { COMMIT_REQUESTS = 512 };

void *srv_committing_thread(void *context)
{
    srv_server *server = context;
    srv_request *list;
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
            else
                group[0]->route->handle(group[0]);
            for (int i = 0; i < count; i++)
                srv_http_resume(group[i]);
        }
    }
    return NULL;
}
