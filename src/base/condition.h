/* condition.h: condition variables whose waits end after a time by the monotonic clock (system_linux.c, system_darwin.c). */
#ifndef LP_CONDITION_H
#define LP_CONDITION_H

#include <pthread.h>

void lp_condition_init(pthread_cond_t *condition);

/* Waits for a signal, at most this long. The condition must be initialized by lp_condition_init. */
void lp_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, double seconds);

#endif
