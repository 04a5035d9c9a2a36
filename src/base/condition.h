/* condition.h: condition variables whose waits end after a time by the monotonic clock. */
#ifndef LP_CONDITION_H
#define LP_CONDITION_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static inline void lp_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Waits for a signal, at most this long. The condition must be initialized by lp_condition_init. */
static inline void lp_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + (int64_t)(seconds * 1e9);
    until.tv_sec += (time_t)(nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_cond_timedwait(condition, mutex, &until);
}

#endif
