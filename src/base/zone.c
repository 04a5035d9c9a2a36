/* zone.c: reads TZif files (RFC 8536, versions 1 to 4) and converts local times. The rule for the future in the file's
 * footer (a POSIX TZ string) is expanded into explicit changes up to the year 9999, so that a conversion is one binary
 * search. */
#include "base/zone.h"

#include "base/calendar.h"
#include "base/file.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A change of the offset. In local time, clocks are changed in the interval from .. from + |after - before|: those times
 * occur twice if after < before, and never if after > before. */
typedef struct change {
    int64_t from;          /* local time: UTC of the change + min(before, after) */
    int32_t before, after; /* offsets, seconds east */
} change;

struct lp_zone {
    int32_t first;   /* offset before the first change */
    change *changes; /* owned; from never decreases */
    size_t count, capacity;
    int64_t last; /* UTC of the last change */
};

enum { LAST_YEAR = 9999, LARGEST_OFFSET = 26 * 3600 };

static const char default_folder[] = "/usr/share/zoneinfo";

void lp_zone_free(lp_zone *zone)
{
    if (!zone)
        return;
    lp_free(zone->changes);
    lp_free(zone);
}

/* Adds the change at `utc` to the offset `after`; false when out of memory. Two changes at one time are one: a rule of
 * summer time for the whole year has them. */
static bool add_change(lp_zone *zone, int64_t utc, int32_t after)
{
    if (zone->count && utc == zone->last)
        zone->count--;
    int32_t before = zone->count ? zone->changes[zone->count - 1].after : zone->first;
    if (before == after)
        return true;
    if (!lp_reserve(&zone->changes, &zone->capacity, zone->count + 1, sizeof *zone->changes))
        return false;
    int64_t from = utc + (before < after ? before : after);
    if (zone->count && from < zone->changes[zone->count - 1].from) /* two changes within hours: keeps the order */
        from = zone->changes[zone->count - 1].from;
    zone->changes[zone->count++] = (change){from, before, after};
    zone->last = utc;
    return true;
}

int64_t lp_zone_offset(const lp_zone *zone, int64_t local, lp_local *how)
{
    *how = LP_LOCAL_UNIQUE;
    if (!zone)
        return 0;
    size_t low = 0, high = zone->count; /* changes[low - 1].from <= local < changes[high].from */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->changes[middle].from <= local)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return zone->first;
    const change *found = &zone->changes[low - 1];
    int64_t size = (int64_t)found->after - found->before;
    if (local - found->from >= (size < 0 ? -size : size))
        return found->after;
    *how = size < 0 ? LP_LOCAL_AMBIGUOUS : LP_LOCAL_MISSING;
    return found->before;
}

/* ----------------------------------------------------------------------------------------- the future rule --- */

/* A day of the year and a time, as in ",M3.2.0/2". */
typedef struct rule_day {
    char type; /* 'M': day `day` (0 Sunday) of week `week` (5: the last) of `month`; 'J': day 1 to 365
                                 * without leap days; 0: day 0 to 365 */
    int month, week, day;
    int64_t seconds; /* after midnight, may be negative or beyond a day */
} rule_day;

typedef struct rule {
    int32_t standard, summer; /* offsets, seconds east */
    bool has_summer;
    rule_day start, end;
} rule;

typedef struct cursor {
    const char *at, *end;
} cursor;

static bool take(cursor *text, char c)
{
    bool found = text->at < text->end && *text->at == c;
    text->at += found;
    return found;
}

static bool take_whole(cursor *text, int most, int *value)
{
    const char *first = text->at;
    *value = 0;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        *value = *value * 10 + (*text->at - '0');
        if (*value > most)
            return false;
    }
    return text->at > first;
}

/* A name of a zone: letters, or anything in angle brackets. */
static bool take_name(cursor *text)
{
    const char *first = text->at;
    if (take(text, '<')) {
        while (text->at < text->end && *text->at != '>')
            text->at++;
        return take(text, '>');
    }
    while (text->at < text->end && ((*text->at >= 'A' && *text->at <= 'Z') || (*text->at >= 'a' && *text->at <= 'z')))
        text->at++;
    return text->at - first >= 3;
}

/* [+-]hours[:minutes[:seconds]] */
static bool take_time(cursor *text, int64_t *seconds)
{
    bool negative = take(text, '-');
    if (!negative)
        take(text, '+');
    int hours, minutes = 0, second = 0;
    if (!take_whole(text, 167, &hours) || (take(text, ':') && !take_whole(text, 59, &minutes)) ||
        (take(text, ':') && !take_whole(text, 59, &second)))
        return false;
    *seconds = (hours * 3600 + minutes * 60 + second) * (negative ? -1 : 1);
    return true;
}

static bool take_day(cursor *text, rule_day *day)
{
    *day = (rule_day){.seconds = 7200};
    if (take(text, 'M')) {
        day->type = 'M';
        if (!take_whole(text, 12, &day->month) || !take(text, '.') || !take_whole(text, 5, &day->week) ||
            !take(text, '.') || !take_whole(text, 6, &day->day) || day->month < 1 || day->week < 1)
            return false;
    } else {
        day->type = take(text, 'J') ? 'J' : 0;
        if (!take_whole(text, 365, &day->day) || (day->type == 'J' && day->day < 1))
            return false;
    }
    return !take(text, '/') || take_time(text, &day->seconds);
}

/* std offset [dst [offset] , start , end]. Offsets of POSIX are seconds west. */
static bool read_rule(const char *begin, const char *end, rule *made)
{
    cursor text = {begin, end};
    int64_t west;
    *made = (rule){0};
    if (!take_name(&text) || !take_time(&text, &west) || west < -LARGEST_OFFSET || west > LARGEST_OFFSET)
        return false;
    made->standard = (int32_t)-west;
    if (text.at == text.end)
        return true;
    made->has_summer = true;
    if (!take_name(&text))
        return false;
    west -= 3600;
    if (text.at < text.end && *text.at != ',' && !take_time(&text, &west))
        return false;
    made->summer = (int32_t)-west;
    return west >= -LARGEST_OFFSET && west <= LARGEST_OFFSET && take(&text, ',') && take_day(&text, &made->start) &&
           take(&text, ',') && take_day(&text, &made->end) && text.at == text.end;
}

/* Seconds since 1970 of a rule's day in a year, on the clock before the change. */
static int64_t rule_time(const rule_day *day, int64_t year)
{
    int64_t days;
    if (day->type == 'M') {
        int64_t first = lp_days_of_date(year, day->month, 1);
        int64_t weekday = ((first + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
        int64_t in_month = (day->day - weekday + 7) % 7 + 7 * (day->week - 1);
        while (in_month >= lp_days_in_month(year, day->month))
            in_month -= 7;
        days = first + in_month;
    } else {
        days = lp_days_of_date(year, 1, 1) + day->day;
        if (day->type == 'J')
            days -= lp_is_leap_year(year) && day->day >= 60 ? 0 : 1;
    }
    return days * 86400 + day->seconds;
}

/* Adds the changes of the rule after `last`; false when out of memory. */
static bool expand(lp_zone *zone, const rule *future, int64_t last, bool any)
{
    if (!future->has_summer)
        return !any || add_change(zone, last, future->standard);
    int64_t year = 1;
    if (any) {
        int month, day;
        lp_date_of_days(last >= 0 ? last / 86400 : (last - 86399) / 86400, &year, &month, &day);
        year = year > 1 ? year - 1 : 1;
    }
    bool good = true;
    for (; good && year <= LAST_YEAR; year++) {
        struct {
            int64_t utc;
            int32_t after;
        } two[2] = {{rule_time(&future->start, year) - future->standard, future->summer},
                    {rule_time(&future->end, year) - future->summer, future->standard}};
        int order = two[0].utc > two[1].utc;
        for (int i = 0; good && i < 2; i++)
            if (!any || two[i ^ order].utc > last)
                good = add_change(zone, two[i ^ order].utc, two[i ^ order].after);
    }
    return good;
}

/* ---------------------------------------------------------------------------------------------- TZif files --- */

/* The counts of a header, in the order of the file. */
enum { IS_UTC, IS_STANDARD, LEAPS, TIMES, TYPES, LETTERS, COUNTS };
enum { HEADER_SIZE = 44, TYPE_SIZE = 6 };

static int64_t big_endian(const unsigned char *at, int size)
{
    uint64_t value = at[0] & 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return (int64_t)value;
}

/* Reads the header at `at`; *body is the size of the data after it, with times of `width` bytes. */
static bool read_header(const unsigned char *at, const unsigned char *end, int width, int64_t counts[COUNTS],
                        int64_t *body)
{
    if (end - at < HEADER_SIZE || memcmp(at, "TZif", 4) != 0)
        return false;
    for (int i = 0; i < COUNTS; i++) {
        counts[i] = big_endian(at + 20 + 4 * i, 4);
        if (counts[i] < 0 || counts[i] > 1 << 20)
            return false;
    }
    *body = counts[TIMES] * (width + 1) + counts[TYPES] * TYPE_SIZE + counts[LETTERS] + counts[LEAPS] * (width + 4) +
            counts[IS_STANDARD] + counts[IS_UTC];
    return counts[TYPES] > 0 && end - at - HEADER_SIZE >= *body;
}

/* Offset of type `index`; false if the file is malformed. */
static bool type_offset(const unsigned char *types, const int64_t counts[COUNTS], int index, int32_t *offset)
{
    if (index >= counts[TYPES])
        return false;
    *offset = (int32_t)big_endian(types + TYPE_SIZE * index, 4);
    return *offset >= -LARGEST_OFFSET && *offset <= LARGEST_OFFSET;
}

typedef enum outcome { READ, MALFORMED, NO_MEMORY } outcome;

static outcome read_body(lp_zone *zone, const unsigned char *body, const int64_t counts[COUNTS], int width,
                         const char *footer, const char *footer_end)
{
    const unsigned char *index = body + counts[TIMES] * width, *types = index + counts[TIMES];
    if (!type_offset(types, counts, 0, &zone->first))
        return MALFORMED;
    int64_t last = INT64_MIN;
    for (int64_t i = 0; i < counts[TIMES]; i++) {
        int64_t utc = big_endian(body + i * width, width);
        int32_t after;
        if ((i > 0 && utc <= last) || !type_offset(types, counts, index[i], &after))
            return MALFORMED;
        last = utc;
        if (utc > -((int64_t)1 << 40) && utc < (int64_t)1 << 40 && !add_change(zone, utc, after))
            return NO_MEMORY;
    }
    rule future;
    if (footer == footer_end)
        return READ;
    if (!read_rule(footer, footer_end, &future))
        return MALFORMED;
    if (counts[TIMES] == 0 && !future.has_summer)
        zone->first = future.standard;
    bool any = counts[TIMES] > 0 && last > -((int64_t)1 << 40);
    return expand(zone, &future, last, any) ? READ : NO_MEMORY;
}

lapse_status lp_zone_parse(lp_zone **zone, const char *name, const void *data, size_t size, lapse_error *error)
{
    const unsigned char *at = data, *end = at + size;
    int64_t counts[COUNTS], body = 0;
    int width = 4;
    bool good = read_header(at, end, width, counts, &body);
    const char *footer = "", *footer_end = footer;
    if (good && at[4] >= '2') { /* the same data again, with 64 bits, and a footer */
        at += HEADER_SIZE + body;
        width = 8;
        good = read_header(at, end, width, counts, &body);
        footer = good ? (const char *)at + HEADER_SIZE + body : footer;
        const char *stop = good && footer < (const char *)end && *footer == '\n'
                               ? memchr(footer + 1, '\n', (size_t)((const char *)end - footer - 1))
                               : NULL;
        good = stop != NULL;
        footer += good;
        footer_end = stop;
    }
    if (good && counts[LEAPS] > 0)
        return lp_fail(
            error, LAPSE_ERROR_USAGE,
            "the time zone '%.60s' counts leap seconds, which unix time does not: use the zone without right/", name);
    lp_zone *made = good ? lp_alloc(1, sizeof *made) : NULL;
    outcome result = !good  ? MALFORMED
                     : made ? read_body(made, at + HEADER_SIZE, counts, width, footer, footer_end)
                            : NO_MEMORY;
    if (result == READ) {
        *zone = made;
        return LAPSE_OK;
    }
    lp_zone_free(made);
    return result == NO_MEMORY
               ? lp_fail_memory(error, "a time zone", sizeof *made)
               : lp_fail(error, LAPSE_ERROR_FORMAT, "the file of the time zone '%.60s' is not a valid TZif file", name);
}

/* ---------------------------------------------------------------------------------------- the database ------- */

/* Whether a name stays within the folder of the database. */
static bool is_safe(const char *name)
{
    if (!*name || *name == '/' || strlen(name) > 100)
        return false;
    for (const char *at = name; *at; at++) {
        bool allowed = (*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') ||
                       strchr("+-_/", *at);
        if (!allowed)
            return false;
    }
    return true;
}

/* "UTC", "Z", "+02:00", "-0330" or "+02". */
static bool fixed_offset(const char *name, int32_t *offset)
{
    *offset = 0;
    if (strcmp(name, "UTC") == 0 || strcmp(name, "Z") == 0)
        return true;
    if ((*name != '+' && *name != '-') || strspn(name + 1, "0123456789:") != strlen(name + 1))
        return false;
    cursor text = {name + 1, name + strlen(name)};
    int hours, minutes = 0;
    if (text.end - text.at < 2 || !take_whole(&(cursor){text.at, text.at + 2}, 23, &hours))
        return false;
    text.at += 2;
    bool colon = take(&text, ':');
    if ((colon || text.at < text.end) && (text.end - text.at != 2 || !take_whole(&text, 59, &minutes)))
        return false;
    *offset = (hours * 3600 + minutes * 60) * (*name == '-' ? -1 : 1);
    return true;
}

static lapse_status fail_unknown(const char *name, const char *folder, lapse_error *error)
{
    struct stat state;
    if (stat(folder, &state) != 0)
        return lp_fail(error, LAPSE_ERROR_FILE,
                       "the time zone database is missing: there is no folder %.120s; install the package tzdata, or "
                       "set TZDIR to the folder of the database",
                       folder);
    return lp_fail(error, LAPSE_ERROR_USAGE,
                   "there is no time zone '%.60s' in %.120s; give a name such as Europe/Berlin, UTC, or an offset such "
                   "as +02:00",
                   name, folder);
}

lapse_status lp_zone_open(lp_zone **zone, const char *name, lapse_error *error)
{
    int32_t offset;
    if (fixed_offset(name, &offset)) {
        lp_zone *made = lp_alloc(1, sizeof *made);
        if (!made)
            return lp_fail_memory(error, "a time zone", sizeof *made);
        made->first = offset;
        *zone = made;
        return LAPSE_OK;
    }
    if (!is_safe(name))
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "'%.60s' is not the name of a time zone; give a name such as Europe/Berlin, UTC, or an offset "
                       "such as +02:00",
                       name);
    const char *folder = getenv("TZDIR");
    folder = folder && *folder ? folder : default_folder;
    char path[4096];
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    struct stat state;
    if (size < 0 || (size_t)size >= sizeof path || stat(path, &state) != 0 || !S_ISREG(state.st_mode))
        return fail_unknown(name, folder, error);
    lp_map map;
    LP_TRY(lp_map_open(&map, path, error));
    lapse_status status = map.size ? lp_zone_parse(zone, name, map.data, map.size, error)
                                   : lp_fail(error, LAPSE_ERROR_FORMAT,
                                             "the file of the time zone '%.60s' is not a valid TZif file", name);
    lp_map_close(&map);
    return status;
}
