/* timestamp.c: timestamps in ISO 8601 or with the day or month first, and durations. strptime and timegm support neither
 * fractions nor all zones. A fraction is rounded once, with the whole seconds, so that the ISO and the decimal form of a
 * timestamp give the same double. */
#include "base/timestamp.h"

#include "base/calendar.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------- dates ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

/* Exactly `count` digits. */
static bool number(cursor *text, int count, int *value)
{
    if (text->end - text->at < count)
        return false;
    *value = 0;
    for (int i = 0; i < count; i++) {
        unsigned digit = (unsigned)(unsigned char)text->at[i] - '0';
        if (digit > 9)
            return false;
        *value = *value * 10 + (int)digit;
    }
    text->at += count;
    return true;
}

static bool character(cursor *text, const char *any_of)
{
    if (text->at == text->end || !*text->at || !strchr(any_of, *text->at))
        return false;
    text->at++;
    return true;
}

enum { FRACTION_DIGITS = 18 };

/* The digits after the point as an integer, and their count; digits beyond 18 are ignored. */
static bool fraction(cursor *text, int64_t *value, int *count)
{
    *value = 0;
    *count = 0;
    const char *first = text->at;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        if (*count < FRACTION_DIGITS) {
            *value = *value * 10 + (*text->at - '0');
            ++*count;
        }
    }
    return text->at > first;
}

/* Seconds east of Greenwich. False if the text is not a zone. */
static bool zone(cursor *text, int *seconds)
{
    int hours, minutes = 0;
    *seconds = 0;
    if (lp_text_is(text->at, text->end, "z") || lp_text_is(text->at, text->end, "utc")) {
        text->at = text->end;
        return true;
    }
    bool west = text->at < text->end && *text->at == '-';
    if (!character(text, "+-") || !number(text, 2, &hours))
        return false;
    bool colon = character(text, ":");
    if ((colon || text->at < text->end) && !number(text, 2, &minutes))
        return false;
    *seconds = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return hours < 24 && minutes < 60;
}

/* seconds + value / 10^count, rounded once. */
double lp_time_with_fraction(int64_t seconds, int64_t value, int count)
{
    if (value == 0)
        return (double)seconds;
    int64_t scale = 1;
    for (int i = 0; i < count; i++)
        scale *= 10;
    bool negative = seconds < 0;
    if (negative) {
        seconds = -seconds - 1;
        value = scale - value;
    }
    char text[64];
    int size = snprintf(text, sizeof text, "%s%" PRId64 ".%0*" PRId64, negative ? "-" : "", seconds, count, value);
    double result = 0;
    lp_number_parse(text, text + size, &result);
    return result;
}

static const char *const not_iso = "is not a time in ISO 8601 such as 2026-11-15T12:00:00Z";
static const char *const no_such_date = "has a date that does not exist";
static const char *const no_such_clock = "has an hour, minute or second that does not exist";
static const char *const out_of_range = "lies outside the years 1 to 9999";

/* One or two digits. */
static bool short_number(cursor *text, int *value)
{
    return number(text, 2, value) || number(text, 1, value);
}

/* "AM" or "PM" after an hour of 1 to 12; false if the hour is another. */
static bool half_day(cursor *text, int *hour)
{
    char first = text->end - text->at >= 2 ? (char)(*text->at | 0x20) : 0;
    if ((first != 'a' && first != 'p') || (text->at[1] | 0x20) != 'm')
        return true;
    text->at += 2;
    if (*hour < 1 || *hour > 12)
        return false;
    *hour = *hour % 12 + (first == 'p' ? 12 : 0);
    return true;
}

/* A time of day after the date; *zoned says whether a zone follows it, which is then subtracted. */
static const char *parse_clock(cursor *text, bool iso, int64_t *seconds, int64_t *part, int *part_digits, bool *zoned)
{
    int hour, minute, second = 0;
    if (!character(text, "Tt ") || !(iso ? number(text, 2, &hour) : short_number(text, &hour)) ||
        !character(text, ":") || !number(text, 2, &minute))
        return not_iso;
    if (character(text, ":")) {
        if (!number(text, 2, &second) || (character(text, ".,") && !fraction(text, part, part_digits)))
            return not_iso;
    }
    character(text, " ");
    if (!iso && !half_day(text, &hour))
        return no_such_clock;
    bool leap_second = second == 60 && minute == 59;
    if (hour > 23 || minute > 59 || (second > 59 && !leap_second))
        return no_such_clock;
    *seconds += hour * 3600 + minute * 60 + second;
    *zoned = text->at < text->end;
    int offset = 0;
    if (*zoned && !zone(text, &offset))
        return "has a zone that is not Z, UTC or an offset such as +02:00";
    *seconds -= offset;
    return NULL;
}

/* A date with the year first: 2026-11-15 or 2026/11/15. */
static bool year_first(cursor *text, int *year, int *month, int *day)
{
    if (!number(text, 4, year) || !character(text, "-/"))
        return false;
    bool slash = text->at[-1] == '/';
    return (slash ? short_number(text, month) : number(text, 2, month)) && character(text, slash ? "/" : "-") &&
           (slash ? short_number(text, day) : number(text, 2, day));
}

/* A date with the year last: its first two numbers. */
static bool year_last(cursor *text, int *first, int *second, int *year)
{
    if (!short_number(text, first) || !character(text, "/.-"))
        return false;
    const char separator[] = {text->at[-1], 0};
    return short_number(text, second) && character(text, separator) && number(text, 4, year);
}

const char *lp_timestamp_parse(const char *begin, const char *end, lp_date_order order, const lp_zone *local_zone,
                               double *time, lp_local *local)
{
    cursor text = {begin, end};
    int year, month, day, part_digits = 0;
    int64_t part = 0;
    if (order == LP_DATE_YEAR_FIRST ? !year_first(&text, &year, &month, &day) : !year_last(&text, &month, &day, &year))
        return order == LP_DATE_YEAR_FIRST    ? not_iso
               : order == LP_DATE_MONTH_FIRST ? "is not a date such as 11/15/2026 (month first)"
                                              : "is not a date such as 15/11/2026 (day first)";
    if (order == LP_DATE_DAY_FIRST) {
        int swap = month;
        month = day;
        day = swap;
    }
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > lp_days_in_month(year, month))
        return no_such_date;
    int64_t seconds = lp_days_of_date(year, month, day) * 86400;
    bool zoned = false;
    if (text.at < text.end) {
        const char *reason =
            parse_clock(&text, order == LP_DATE_YEAR_FIRST && begin[4] == '-', &seconds, &part, &part_digits, &zoned);
        if (reason)
            return reason;
        if (text.at != text.end)
            return not_iso;
    }
    *local = LP_LOCAL_NONE;
    if (!zoned)
        seconds -= lp_zone_offset(local_zone, seconds, local);
    double result = lp_time_with_fraction(seconds, part, part_digits);
    if (result < LP_TIME_MIN || result > LP_TIME_MAX)
        return out_of_range;
    *time = result;
    return NULL;
}

bool lp_timestamp_is_date(const char *begin, const char *end)
{
    int year;
    cursor text = {begin, end};
    return number(&text, 4, &year) && character(&text, "-/");
}

bool lp_timestamp_is_year_last(const char *begin, const char *end, bool *month_first, bool *day_first)
{
    int first, second, year;
    cursor text = {begin, end};
    if (!year_last(&text, &first, &second, &year))
        return false;
    bool equal = first == second; /* both orders are right */
    *month_first = equal || (first <= 12 && second > 12);
    *day_first = equal || (first > 12 && second <= 12);
    return true;
}

/* A text with a date, in any order that is certain. */
static lapse_status parse_date(const char *begin, const char *end, const lp_zone *local_zone, double *time,
                               lapse_error *error)
{
    char shown[LP_EXCERPT_SIZE];
    lp_text_excerpt(begin, end, shown);
    lp_date_order order = LP_DATE_YEAR_FIRST;
    bool month_first, day_first;
    if (lp_timestamp_is_year_last(begin, end, &month_first, &day_first)) {
        if (!month_first && !day_first)
            return lp_fail(error, LAPSE_ERROR_INPUT,
                           "'%s' may have the day or the month first: write the year first, such as 2026-11-15", shown);
        order = month_first ? LP_DATE_MONTH_FIRST : LP_DATE_DAY_FIRST;
    }
    lp_local local;
    const char *reason = lp_timestamp_parse(begin, end, order, local_zone, time, &local);
    return reason ? lp_fail(error, LAPSE_ERROR_INPUT, "'%s' %s", shown, reason) : LAPSE_OK;
}

lapse_status lapse_time_parse_zone(const char *text, const char *timezone, double *time, lapse_error *error)
{
    LP_REQUIRE(error, text, time);
    const char *begin = text, *end = text + strlen(text);
    char shown[LP_EXCERPT_SIZE];
    lp_text_trim(&begin, &end);
    lp_text_excerpt(begin, end, shown);
    lp_zone *local_zone = NULL;
    if (timezone)
        LP_TRY(lp_zone_open(&local_zone, timezone, error));
    double value = 0;
    bool month_first, day_first;
    lapse_status status = LAPSE_OK;
    if (lp_timestamp_is_date(begin, end) || lp_timestamp_is_year_last(begin, end, &month_first, &day_first))
        status = parse_date(begin, end, local_zone, &value, error);
    else if (!lp_number_parse(begin, end, &value))
        status = lp_fail(error, LAPSE_ERROR_INPUT,
                         "'%s' is not a time: give unix seconds, or ISO 8601 such as 2026-11-15T12:00:00Z", shown);
    else if (value < LP_TIME_MIN || value > LP_TIME_MAX)
        status = lp_fail(error, LAPSE_ERROR_INPUT, "'%s' %s: unix times are seconds", shown, out_of_range);
    lp_zone_free(local_zone);
    if (status == LAPSE_OK)
        *time = value;
    return status;
}

lapse_status lapse_time_parse(const char *text, double *time, lapse_error *error)
{
    LP_REQUIRE(error, text, time);
    return lapse_time_parse_zone(text, NULL, time, error);
}

const char *lapse_time_format(double time, char *out, size_t out_size)
{
    if (!(time >= LP_TIME_MIN && time <= LP_TIME_MAX)) {
        snprintf(out, out_size, "%.17g", time);
        return out;
    }
    int64_t whole = (int64_t)floor(time), part = llround((time - floor(time)) * 1000);
    whole += part == 1000;
    part %= 1000;
    int64_t days = (whole >= 0 ? whole : whole - 86399) / 86400, second = whole - days * 86400, year;
    int month, day;
    lp_date_of_days(days, &year, &month, &day);
    char text[64], milliseconds[8] = "";
    if (part)
        snprintf(milliseconds, sizeof milliseconds, ".%03d", (int)part);
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", (int)year, month, day, (int)(second / 3600),
             (int)(second / 60 % 60), (int)(second % 60), milliseconds);
    snprintf(out, out_size, "%s", text);
    return out;
}

/* ----------------------------------------------------------------------------------------- durations ---- */

typedef struct unit {
    const char *symbol, *name; /* parsed; formatted */
    double seconds;
} unit;

/* A week is formatted as 7 days. */
static const unit units[] = {
    {"ms", "millisecond", 0.001}, {"s", "second", 1},  {"m", "minute", 60},     {"h", "hour", 3600},
    {"d", "day", 86400},          {"w", NULL, 604800}, {"y", "year", 31557600},
};

enum { UNIT_COUNT = sizeof units / sizeof *units };

lapse_status lapse_duration_parse(const char *text, double *seconds, lapse_error *error)
{
    LP_REQUIRE(error, text, seconds);
    if (!text || !seconds)
        return lp_fail(error, LAPSE_ERROR_USAGE, "no length of time was given");
    const char *begin = text, *end = text + strlen(text);
    lp_text_trim(&begin, &end);
    const char *letters = end;
    while (letters > begin &&
           ((letters[-1] >= 'a' && letters[-1] <= 'z') || (letters[-1] >= 'A' && letters[-1] <= 'Z')))
        letters--;
    const char *number_end = letters;
    lp_text_trim(&begin, &number_end);
    char shown[LP_EXCERPT_SIZE];
    lp_text_excerpt(begin, end, shown);
    double value;
    for (int i = 0; i < UNIT_COUNT; i++) {
        if (!lp_text_is(letters, end, units[i].symbol) || !lp_number_parse(begin, number_end, &value))
            continue;
        value = i == 0 ? value / 1000 : value * units[i].seconds;
        if (!(value >= 0 && value <= LP_TIME_MAX - LP_TIME_MIN))
            return lp_fail(error, LAPSE_ERROR_INPUT, "'%s' is out of range: a length of time is 0 to 9999 years",
                           shown);
        *seconds = value;
        return LAPSE_OK;
    }
    return lp_fail(
        error, LAPSE_ERROR_INPUT,
        "'%s' is not a length of time: give a number and its unit, such as 250ms, 90s, 15m, 3h, 2d, 1w or 2y", shown);
}

/* Formats with three significant digits, or all digits before the point; returns the rounded value. */
static double rounded(double value, char digits[40])
{
    snprintf(digits, 40, value < 1000 ? "%.3g" : "%.0f", value);
    return strtod(digits, NULL);
}

const char *lapse_duration_format(double seconds, char *out, size_t out_size)
{
    double size = fabs(seconds);
    if (!(size <= 1e20)) {
        snprintf(out, out_size, "unknown");
        return out;
    }
    /* The largest unit whose rounded number is at least 1: 59.96 s is 1 minute, not 60 seconds. */
    char digits[40];
    const unit *best = size > 0 ? &units[0] : &units[1];
    for (const unit *next = best + 1; next < units + UNIT_COUNT; next++) {
        double shown = rounded(size / best->seconds, digits) * best->seconds;
        if (next->name && (size >= next->seconds || shown >= next->seconds)) {
            best = next;
            size = size > next->seconds ? size : next->seconds;
        }
    }
    rounded(size / best->seconds, digits);
    bool one = strcmp(digits, "1") == 0;
    snprintf(out, out_size, "%s%s %s%s", seconds < 0 ? "-" : "", digits, best->name, one ? "" : "s");
    return out;
}
