/* queue.c: the queues between the threads that read requests and those that answer them, and the clocks. */
#include <time.h>

#include "server.h"

bool srv_queue_put(srv_queue *queue, srv_request *request)
{
    pthread_mutex_lock(&queue->mutex);
    bool open = !queue->closed && queue->count < queue->most;
    if (open) {
        request->next = NULL;
        if (queue->last)
            queue->last->next = request;
        else
            queue->first = request;
        queue->last = request;
        queue->count++;
        pthread_cond_signal(&queue->ready);
    }
    pthread_mutex_unlock(&queue->mutex);
    return open;
}

srv_request *srv_queue_take(srv_queue *queue, int most)
{
    pthread_mutex_lock(&queue->mutex);
    while (!queue->first && !queue->closed)
        pthread_cond_wait(&queue->ready, &queue->mutex);
    srv_request *first = queue->first, *last = first;
    if (first) {
        int taken = 1;
        for (; taken < most && last->next; taken++)
            last = last->next;
        queue->first = last->next;
        if (!queue->first)
            queue->last = NULL;
        last->next = NULL;
        queue->count -= taken;
    }
    pthread_mutex_unlock(&queue->mutex);
    return first;
}

void srv_queue_close(srv_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    pthread_cond_broadcast(&queue->ready);
    pthread_mutex_unlock(&queue->mutex);
}

static double read_clock(clockid_t id)
{
    struct timespec time;
    clock_gettime(id, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double srv_clock(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double srv_now(void)
{
    return read_clock(CLOCK_REALTIME);
}
