/* timestamp.h: parsing of ISO 8601 timestamps in fields. The public functions for times and durations are in lapse.h. */
#ifndef LP_TIMESTAMP_H
#define LP_TIMESTAMP_H

#include <stdbool.h>

/* The range of timestamps: the years 1 to 9999, in unix seconds. */
#define LP_TIME_MIN (-62135596800.0)
#define LP_TIME_MAX 253402300799.999

/* Reads ISO 8601 with a zone from begin .. end: "2026-11-15T12:00:00.25+02:00", a space for the T, the zone as Z, UTC,
 * +02:00, +0200 or +02; seconds may be missing; a date alone is midnight UTC. Returns NULL, or
 * the error as the end of a sentence that begins with the text ("'...' " + "has no zone: ..."). */
const char *lp_timestamp_parse(const char *begin, const char *end, double *time);

/* Whether begin .. end looks like a date (four digits and a dash) rather than a number. */
bool lp_timestamp_is_date(const char *begin, const char *end);

#endif
