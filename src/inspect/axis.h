/* axis.h: an axis of time or of numbers in a figure, and its tick marks. */
#ifndef LP_AXIS_H
#define LP_AXIS_H

#include <stdbool.h>

typedef struct lp_axis {
    bool log;
    double from, to;   /* values at its ends */
    double begin, end; /* pixels of its ends */
} lp_axis;

typedef struct lp_tick {
    double value;
    char label[16];
} lp_tick;

enum { LP_TICKS = 16 };

double lp_axis_pixel(const lp_axis *axis, double value);
double lp_axis_value(const lp_axis *axis, double pixel);

/* Ticks at round durations, no two closer than `apart` pixels. Returns their number. */
int lp_axis_time_ticks(const lp_axis *axis, double apart, lp_tick ticks[LP_TICKS]);

/* Ticks at round numbers of a linear axis, about `wanted` of them (2 to 8). Returns their number. */
int lp_axis_number_ticks(const lp_axis *axis, int wanted, lp_tick ticks[LP_TICKS]);

/* Ticks at 1, 2 and 5 times powers of ten of a log axis, no two closer than `apart` pixels. Returns their number. */
int lp_axis_log_ticks(const lp_axis *axis, double apart, lp_tick ticks[LP_TICKS]);

#endif
