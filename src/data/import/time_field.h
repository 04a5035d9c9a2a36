/* time_field.h: the format of the time column, and the times in it. */
#ifndef LP_TIME_FIELD_H
#define LP_TIME_FIELD_H

#include "base/timestamp.h"
#include "data/import/sample.h"

typedef enum lp_time_unit {
    LP_TIME_AUTO = 0,
    LP_TIME_SECONDS,
    LP_TIME_MILLISECONDS,
    LP_TIME_MICROSECONDS,
    LP_TIME_NANOSECONDS,
    LP_TIME_ISO,
    LP_TIME_MONTH_FIRST,
    LP_TIME_DAY_FIRST,
    LP_TIME_TEXT,      /* dates with month names, or with the year first in other ways than ISO 8601 (time_text.h) */
    LP_TIME_COMPACT,   /* 20261115 or 20261115120000 */
    LP_TIME_EXCEL,     /* days since 1899-12-30, as in spreadsheets */
    LP_TIME_RELATIVE,  /* numbers that are not dates: seconds, or another unit, since a start of their own */
    LP_TIME_UNCERTAIN, /* day or month first: the sample does not tell */
    LP_TIME_UNITS
} lp_time_unit;

typedef struct lp_time_format {
    lp_time_unit unit;
    bool found;    /* the unit was detected, so that a row may contradict it */
    lp_zone *zone; /* owned; of times without a zone; NULL: UTC */
} lp_time_format;

/* The values of the option time_unit, in the order of lp_time_unit up to LP_TIME_RELATIVE. */
extern const char *const lp_time_unit_names[];

/* "unix seconds", "ISO 8601", ... */
const char *lp_time_unit_text(lp_time_unit unit);

/* Sets a unit that was found before. */
void lp_time_found(lp_time_format *format, lp_time_unit unit);

/* What the values of a column look like as times: the unit, the number of values that are times of that unit, and of those
 * that have a time of day (or are numbers). */
typedef struct lp_time_look {
    lp_time_unit unit;
    int64_t filled, times, clocks;
    int64_t clock_only; /* a time of day without a date */
} lp_time_look;

/* Of the first rows of the sample, at most `rows`. */
lp_time_look lp_time_look_at(const lp_sample *sample, int64_t column, int64_t rows);

/* Reads a time. With LP_TIME_AUTO it also sets the unit, so only one thread may call it. Returns NULL, or the error as the
 * end of a sentence that begins with the text. */
const char *lp_time_read(lp_time_format *format, const char *begin, const char *end, double *time, lp_local *local);

/* The time of a number in the unit of the format. An integer is not rounded before its unit is applied. Both set the unit
 * and report errors as lp_time_read does. */
const char *lp_time_number(lp_time_format *format, double number, double *time);
const char *lp_time_integer(lp_time_format *format, int64_t number, double *time);

/* The error of a time outside the years 1 to 9999, as of lp_time_read; otherwise NULL. */
const char *lp_time_check(double time);

#endif
