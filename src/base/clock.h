/* clock.h: the monotonic clock. */
#ifndef LP_CLOCK_H
#define LP_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t lp_clock_nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline double lp_clock_seconds(void)
{
    return 1e-9 * (double)lp_clock_nanoseconds();
}

#endif
