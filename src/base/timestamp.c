/* timestamp.c: ISO 8601 timestamps and durations. strptime and timegm support neither fractions nor all zones. A fraction
 * is rounded once, with the whole seconds, so that the ISO and the decimal form of a timestamp give the same double. */
#include "base/timestamp.h"

#include "base/error.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- the calendar ---- */

/* Days from 1970-01-01 to a date of the Gregorian calendar. Years start in March, so that the leap day is the
 * last day. */
static int64_t days_of_date(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void date_of_days(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097, day_of_era = days - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
    *month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

static int days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

/* ----------------------------------------------------------------------------------------------- ISO 8601 ---- */

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
static double with_fraction(int64_t seconds, int64_t value, int count)
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

static const char *parse_clock(cursor *text, int64_t *seconds, int64_t *part, int *part_digits)
{
    int hour, minute, second = 0;
    if (!character(text, "Tt ") || !number(text, 2, &hour) || !character(text, ":") || !number(text, 2, &minute))
        return not_iso;
    if (character(text, ":")) {
        if (!number(text, 2, &second) || (character(text, ".,") && !fraction(text, part, part_digits)))
            return not_iso;
    }
    bool leap_second = second == 60 && minute == 59;
    if (hour > 23 || minute > 59 || (second > 59 && !leap_second))
        return "has an hour, minute or second that does not exist";
    *seconds += hour * 3600 + minute * 60 + second;
    character(text, " ");
    if (text->at == text->end)
        return "has no zone: append Z for UTC, or an offset such as +02:00";
    int offset;
    if (!zone(text, &offset))
        return "has a zone that is not Z, UTC or an offset such as +02:00";
    *seconds -= offset;
    return NULL;
}

const char *lp_timestamp_parse(const char *begin, const char *end, double *time)
{
    cursor text = {begin, end};
    int year, month, day, part_digits = 0;
    int64_t part = 0;
    if (!number(&text, 4, &year) || !character(&text, "-") || !number(&text, 2, &month) || !character(&text, "-") ||
        !number(&text, 2, &day))
        return not_iso;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return "has a date that does not exist";
    int64_t seconds = days_of_date(year, month, day) * 86400;
    if (text.at < text.end) {
        const char *reason = parse_clock(&text, &seconds, &part, &part_digits);
        if (reason)
            return reason;
        if (text.at != text.end)
            return not_iso;
    }
    double result = with_fraction(seconds, part, part_digits);
    if (result < LP_TIME_MIN || result > LP_TIME_MAX)
        return "lies outside the years 1 to 9999";
    *time = result;
    return NULL;
}

bool lp_timestamp_is_date(const char *begin, const char *end)
{
    int year;
    cursor text = {begin, end};
    return number(&text, 4, &year) && character(&text, "-");
}

lapse_status lapse_time_parse(const char *text, double *time, lapse_error *error)
{
    LP_REQUIRE(error, text, time);
    if (!text || !time)
        return lp_fail(error, LAPSE_ERROR_USAGE, "no time was given");
    const char *begin = text, *end = text + strlen(text);
    char shown[LP_EXCERPT_SIZE];
    lp_text_trim(&begin, &end);
    lp_text_excerpt(begin, end, shown);
    double value;
    if (lp_timestamp_is_date(begin, end)) {
        const char *reason = lp_timestamp_parse(begin, end, &value);
        if (reason)
            return lp_fail(error, LAPSE_ERROR_INPUT, "'%s' %s", shown, reason);
    } else if (!lp_number_parse(begin, end, &value)) {
        return lp_fail(error, LAPSE_ERROR_INPUT,
                       "'%s' is not a time: give unix seconds, or ISO 8601 with a zone such as 2026-11-15T12:00:00Z",
                       shown);
    } else if (value < LP_TIME_MIN || value > LP_TIME_MAX) {
        return lp_fail(error, LAPSE_ERROR_INPUT, "'%s' lies outside the years 1 to 9999: unix times are seconds",
                       shown);
    }
    *time = value;
    return LAPSE_OK;
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
    date_of_days(days, &year, &month, &day);
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
