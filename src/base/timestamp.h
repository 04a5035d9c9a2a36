/* timestamp.h: parsing of timestamps in fields. The public functions for times and durations are in lapse.h. */
#ifndef LP_TIMESTAMP_H
#define LP_TIMESTAMP_H

#include "base/zone.h"

#include <stdbool.h>

/* The range of timestamps: the years 1 to 9999, in unix seconds. */
#define LP_TIME_MIN (-62135596800.0)
#define LP_TIME_MAX 253402300799.999

typedef enum lp_date_order {
    LP_DATE_YEAR_FIRST = 0,  /* ISO 8601, or with slashes: 2026-11-15, 2026/11/15 */
    LP_DATE_MONTH_FIRST = 1, /* 11/15/2026, also with points or dashes, and one digit */
    LP_DATE_DAY_FIRST = 2    /* 15/11/2026 */
} lp_date_order;

/* Reads a date, optionally with a time of day and a zone, from begin .. end: "2026-11-15T12:00:00.25+02:00", a space for
 * the T, the zone as Z, UTC, +02:00, +0200 or +02; seconds may be missing; a date alone is midnight. Without a zone it is a
 * local time of local_zone, or of UTC if that is NULL; *local says how it relates to that clock. Dates that are not ISO
 * 8601 may have an hour of one digit, and AM or PM. Returns NULL, or the error as the end of a sentence that begins with
 * the text ("'...' " + "has a date that does not exist"). */
const char *lp_timestamp_parse(const char *begin, const char *end, lp_date_order order, const lp_zone *local_zone,
                               double *time, lp_local *local);

/* seconds + value / 10^count with a count of at most 18, rounded once. */
double lp_time_with_fraction(int64_t seconds, int64_t value, int count);

/* Whether begin .. end looks like a date with the year first (four digits and a dash or slash) rather than a number. */
bool lp_timestamp_is_date(const char *begin, const char *end);

/* Whether begin .. end looks like a date with the year last; then *month_first and *day_first are set if it can only be
 * read so, and both if both mean the same day. */
bool lp_timestamp_is_year_last(const char *begin, const char *end, bool *month_first, bool *day_first);

#endif
