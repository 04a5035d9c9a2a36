/* query_times.h: the times of a request: numbers, timestamps, now, +1h after the last event, and sweeps. */
#ifndef SERVER_QUERY_TIMES_H
#define SERVER_QUERY_TIMES_H

#include "request_schema.h"

typedef struct srv_when {
    bool relative;
    double seconds; /* unix time, or after the last event */
} srv_when;

typedef struct srv_times {
    srv_when *items; /* owned */
    int count;
} srv_times;

enum { SRV_TIMES_MAX = 1000 };

/* Reads a member that is a time or an array of times; NULL: `now`. */
bool srv_times_read(const json_t *value, const char *field, double now, srv_times *times, srv_problem *problem);
void srv_times_clear(srv_times *times);

/* A single unix time: a number, a timestamp or "now". */
bool srv_time_read(const json_t *value, const char *field, double now, double *time, srv_problem *problem);
/* A duration: seconds, or text such as 7d. */
bool srv_duration_read(const json_t *value, const char *field, double *seconds, srv_problem *problem);

#endif
