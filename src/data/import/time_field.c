/* time_field.c: see time_field.h. The unit of a unix time is detected by its magnitude. */
#include "data/import/time_field.h"

#include "base/text.h"

#include <math.h>

/* A unit of unix time. The limits of magnitude put every unit's times into the years 1973 to 5138. */
typedef struct number_unit {
    double per_second, below; /* magnitudes below this, from the limit of the unit before on */
    const char *not_one, *others_have;
} number_unit;

#define OTHERS(unit) "has another magnitude than the other rows, which have " unit ": set --time-unit"

static const number_unit number_units[] = {
    [LP_TIME_AUTO] = {1, 0, NULL, NULL},
    [LP_TIME_SECONDS] = {1, 1e11, "is not a time in unix seconds", OTHERS("seconds")},
    [LP_TIME_MILLISECONDS] = {1e3, 1e14, "is not a time in unix milliseconds", OTHERS("milliseconds")},
    [LP_TIME_MICROSECONDS] = {1e6, 1e17, "is not a time in unix microseconds", OTHERS("microseconds")},
    [LP_TIME_NANOSECONDS] = {1e9, INFINITY, "is not a time in unix nanoseconds", OTHERS("nanoseconds")},
};

const char *const lp_time_unit_names[] = {"auto", "s", "ms", "us", "ns", "iso", "mdy", "dmy", NULL};

const char *lp_time_unit_text(lp_time_unit unit)
{
    static const char *const texts[LP_TIME_UNITS] = {"unknown",           "unix seconds",     "unix milliseconds",
                                                     "unix microseconds", "unix nanoseconds", "ISO 8601",
                                                     "month/day/year",    "day/month/year",   "unknown"};
    return texts[unit];
}

static bool is_number(lp_time_unit unit)
{
    return unit >= LP_TIME_SECONDS && unit <= LP_TIME_NANOSECONDS;
}

static lp_time_unit unit_of(double number)
{
    lp_time_unit unit = LP_TIME_SECONDS;
    while (!(fabs(number) < number_units[unit].below) && unit < LP_TIME_NANOSECONDS)
        unit++;
    return unit;
}

/* Integer nanoseconds exceed the 53 bits of a double: whole seconds and the rest are converted apart. From the magnitude
 * at which nanoseconds are detected, the sum is correctly rounded. */
static double nanoseconds(int64_t number)
{
    int64_t seconds = number / 1000000000;
    return (double)seconds + (double)(number % 1000000000) / 1e9;
}

/* Digits after an optional minus sign. False: there are others, or too many. */
static bool read_integer(const char *begin, const char *end, int64_t *number)
{
    bool negative = begin < end && *begin == '-';
    const char *at = begin + negative;
    if (at == end || end - at > 19)
        return false;
    uint64_t sum = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return false;
        sum = sum * 10 + (uint64_t)(*at - '0');
    }
    *number = negative ? -(int64_t)sum : (int64_t)sum;
    return sum <= INT64_MAX;
}

static bool in_range(double time)
{
    return time >= LP_TIME_MIN && time <= LP_TIME_MAX;
}

static lp_date_order order_of(lp_time_unit unit)
{
    return unit == LP_TIME_MONTH_FIRST ? LP_DATE_MONTH_FIRST
           : unit == LP_TIME_DAY_FIRST ? LP_DATE_DAY_FIRST
                                       : LP_DATE_YEAR_FIRST;
}

/* The unit of one value, or LP_TIME_AUTO if it is not a time. */
static lp_time_unit detect_one(const char *begin, const char *end)
{
    bool month_first, day_first;
    double number;
    if (lp_timestamp_is_date(begin, end))
        return LP_TIME_ISO;
    if (lp_timestamp_is_year_last(begin, end, &month_first, &day_first))
        return month_first ? LP_TIME_MONTH_FIRST : day_first ? LP_TIME_DAY_FIRST : LP_TIME_UNCERTAIN;
    if (!lp_number_parse(begin, end, &number))
        return LP_TIME_AUTO;
    lp_time_unit unit = unit_of(number);
    return in_range(number / number_units[unit].per_second) ? unit : LP_TIME_AUTO;
}

/* Counts dates with the year last as one unit: the order that all certain ones have. */
static void merge_dates(int64_t count[LP_TIME_UNITS], int64_t first[LP_TIME_UNITS])
{
    static const lp_time_unit dates[] = {LP_TIME_MONTH_FIRST, LP_TIME_DAY_FIRST, LP_TIME_UNCERTAIN};
    lp_time_unit order = count[LP_TIME_MONTH_FIRST] && !count[LP_TIME_DAY_FIRST]   ? LP_TIME_MONTH_FIRST
                         : count[LP_TIME_DAY_FIRST] && !count[LP_TIME_MONTH_FIRST] ? LP_TIME_DAY_FIRST
                                                                                   : LP_TIME_UNCERTAIN;
    int64_t total = 0, earliest = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        total += count[dates[i]];
        earliest = first[dates[i]] < earliest ? first[dates[i]] : earliest;
        count[dates[i]] = 0;
    }
    count[order] = total;
    first[order] = earliest;
}

void lp_time_detect(lp_time_format *format, const lp_sample *sample, int64_t column)
{
    int64_t count[LP_TIME_UNITS] = {0}, first[LP_TIME_UNITS];
    if (format->unit != LP_TIME_AUTO || column >= sample->column_count)
        return;
    for (int i = 0; i < LP_TIME_UNITS; i++)
        first[i] = INT64_MAX;
    for (int64_t row = 0; row < sample->row_count; row++) {
        const char *begin = sample->begin[row * sample->column_count + column];
        const char *end = sample->end[row * sample->column_count + column];
        lp_text_trim(&begin, &end);
        lp_time_unit unit = detect_one(begin, end);
        count[unit]++;
        first[unit] = row < first[unit] ? row : first[unit];
    }
    merge_dates(count, first);
    lp_time_unit best = LP_TIME_AUTO;
    for (lp_time_unit unit = LP_TIME_SECONDS; unit < LP_TIME_UNITS; unit++)
        if (count[unit] > 0 && (best == LP_TIME_AUTO || count[unit] > count[best] ||
                                (count[unit] == count[best] && first[unit] < first[best])))
            best = unit;
    format->unit = best;
    format->found = is_number(best);
}

const char *lp_time_check(double time)
{
    return in_range(time) ? NULL : "lies outside the years 1 to 9999";
}

/* Sets the unit by the magnitude of the first time, or checks it. */
static const char *check_unit(lp_time_format *format, double number)
{
    if (format->unit == LP_TIME_AUTO) {
        lp_time_unit unit = unit_of(number);
        const char *reason = lp_time_check(number / number_units[unit].per_second);
        if (reason)
            return reason;
        format->unit = unit;
        format->found = true;
    }
    if (!is_number(format->unit))
        return "is a number, but the times are dates: set --time-unit";
    const number_unit *unit = &number_units[format->unit];
    double size = fabs(number);
    return format->found && (size >= unit->below || size < unit[-1].below) ? unit->others_have : NULL;
}

const char *lp_time_number(lp_time_format *format, double number, double *time)
{
    const char *reason = check_unit(format, number);
    if (reason)
        return reason;
    *time = format->unit == LP_TIME_SECONDS ? number : number / number_units[format->unit].per_second;
    return lp_time_check(*time);
}

const char *lp_time_integer(lp_time_format *format, int64_t number, double *time)
{
    const char *reason = check_unit(format, (double)number);
    if (reason || format->unit != LP_TIME_NANOSECONDS)
        return reason ? reason : lp_time_number(format, (double)number, time);
    *time = nanoseconds(number);
    return lp_time_check(*time);
}

static const char *read_number(lp_time_format *format, const char *begin, const char *end, double *time)
{
    int64_t integer;
    double number;
    if (format->unit == LP_TIME_NANOSECONDS && read_integer(begin, end, &integer))
        return lp_time_integer(format, integer, time);
    return lp_number_parse(begin, end, &number) ? lp_time_number(format, number, time)
                                                : number_units[format->unit].not_one;
}

/* The first time of a file, where the sample had none. */
static const char *read_first(lp_time_format *format, const char *begin, const char *end, double *time, lp_local *local)
{
    double number;
    lp_time_format tried = *format;
    tried.unit = detect_one(begin, end);
    if (tried.unit == LP_TIME_AUTO)
        return lp_number_parse(begin, end, &number) ? "lies outside the years 1 to 9999"
                                                    : "is not a time: expected unix seconds, milliseconds, "
                                                      "microseconds or nanoseconds, or a date such as "
                                                      "2026-11-15T12:00:00Z";
    const char *reason = lp_time_read(&tried, begin, end, time, local);
    if (!reason) {
        tried.found = is_number(tried.unit);
        *format = tried;
    }
    return reason;
}

const char *lp_time_read(lp_time_format *format, const char *begin, const char *end, double *time, lp_local *local)
{
    *local = LP_LOCAL_NONE;
    lp_text_trim(&begin, &end);
    if (begin == end)
        return "is not a time: it is empty";
    if (is_number(format->unit))
        return read_number(format, begin, end, time);
    if (format->unit == LP_TIME_AUTO)
        return read_first(format, begin, end, time, local);
    if (format->unit == LP_TIME_UNCERTAIN)
        return "may have the day or the month first: set --time-unit mdy (month first) or dmy (day first)";
    return lp_timestamp_parse(begin, end, order_of(format->unit), format->zone, time, local);
}
