/* time_text.h: dates as people and exports write them: month names, two-digit years, a comma or brackets, AM and PM, zones behind
 * the clock, digits alone. */
#ifndef LP_TIME_TEXT_H
#define LP_TIME_TEXT_H

#include "base/timestamp.h"

typedef enum lp_date_shape {
    LP_SHAPE_NONE = 0,    /* not a date */
    LP_SHAPE_CERTAIN,     /* the year first, or a month name */
    LP_SHAPE_MONTH_FIRST, /* 11/15/2026: the year is last, and only this order gives a date */
    LP_SHAPE_DAY_FIRST,
    LP_SHAPE_EQUAL,    /* 11/11/2026: both orders give this day */
    LP_SHAPE_UNCERTAIN /* 11/12/2026 */
} lp_date_shape;

/* What a text says about a time. */
typedef struct lp_time_parts {
    lp_date_shape shape;
    int year, month, day; /* if the shape has an order: month and day are the first and the second number */
    bool clock, zoned;
    int64_t seconds; /* of the day, less the offset of the zone */
    int64_t part;    /* the fraction: part / 10^part_digits */
    int part_digits;
} lp_time_parts;

/* Reads begin .. end, which has no blanks at its ends. NULL, or the error as the end of a sentence. */
const char *lp_time_parts_read(const char *begin, const char *end, lp_time_parts *parts);

/* The time, with this order of dates whose year is last; see lp_timestamp_parse. */
const char *lp_time_parts_resolve(const lp_time_parts *parts, lp_date_order order, const lp_zone *local_zone,
                                  double *time, lp_local *local);

/* Whether begin .. end is a time of day alone, such as 8:15, 08:15:30, 8.15 or 8:15 PM. */
bool lp_time_is_clock(const char *begin, const char *end);

/* Whether a number of 6, 8 or 14 digits is a date such as 261115, 20261115 or 20261115120000. */
bool lp_time_is_compact(const char *begin, const char *end);

#endif
