/* time_field.c: see time_field.h. The unit of a unix time is detected by its magnitude. */
#include "data/import/time_field.h"

#include "base/text.h"
#include "data/import/time_text.h"

#include <math.h>
#include <string.h>

/* A unit of unix time. The limits of magnitude put every unit's times into the years 1973 to 5138. */
typedef struct number_unit {
    double per_second, below; /* magnitudes below this, from the limit of the unit before on */
    const char *not_one, *others_have;
} number_unit;

#define OTHERS(unit) "has another magnitude than the other rows, which have " unit ": set " LP_OPTION("--time-unit")

static const number_unit number_units[] = {
    [LP_TIME_AUTO] = {1, 0, NULL, NULL},
    [LP_TIME_SECONDS] = {1, 1e11, "is not a time in unix seconds", OTHERS("seconds")},
    [LP_TIME_MILLISECONDS] = {1e3, 1e14, "is not a time in unix milliseconds", OTHERS("milliseconds")},
    [LP_TIME_MICROSECONDS] = {1e6, 1e17, "is not a time in unix microseconds", OTHERS("microseconds")},
    [LP_TIME_NANOSECONDS] = {1e9, INFINITY, "is not a time in unix nanoseconds", OTHERS("nanoseconds")},
};

const char *const lp_time_unit_names[] = {"auto", "s",    "ms",      "us",    "ns",       "iso", "mdy",
                                          "dmy",  "text", "compact", "excel", "relative", NULL};

const char *lp_time_unit_text(lp_time_unit unit)
{
    static const char *const texts[LP_TIME_UNITS] = {"unknown",
                                                     "unix seconds",
                                                     "unix milliseconds",
                                                     "unix microseconds",
                                                     "unix nanoseconds",
                                                     "ISO 8601",
                                                     "month/day/year",
                                                     "day/month/year",
                                                     "dates in words",
                                                     "dates as digits",
                                                     "Excel day numbers",
                                                     "relative numbers",
                                                     "day/month/year or month/day/year"};
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

/* The unit of a date with the year last, of which perhaps only the beginning is right. */
static lp_time_unit detect_numbers(const char *begin, const char *end)
{
    bool month_first, day_first;
    if (!lp_timestamp_is_year_last(begin, end, &month_first, &day_first))
        return LP_TIME_AUTO;
    return month_first == day_first ? LP_TIME_UNCERTAIN : month_first ? LP_TIME_MONTH_FIRST : LP_TIME_DAY_FIRST;
}

/* The unit of one date, or LP_TIME_AUTO if it is none. */
static lp_time_unit detect_date(const char *begin, const char *end, bool *clock)
{
    static const lp_time_unit units[] = {[LP_SHAPE_CERTAIN] = LP_TIME_TEXT,
                                         [LP_SHAPE_MONTH_FIRST] = LP_TIME_MONTH_FIRST,
                                         [LP_SHAPE_DAY_FIRST] = LP_TIME_DAY_FIRST,
                                         [LP_SHAPE_EQUAL] = LP_TIME_UNCERTAIN,
                                         [LP_SHAPE_UNCERTAIN] = LP_TIME_UNCERTAIN};
    lp_time_parts parts;
    double time;
    lp_local local;
    if (lp_timestamp_is_date(begin, end) && !lp_timestamp_parse(begin, end, LP_DATE_YEAR_FIRST, NULL, &time, &local)) {
        *clock = end - begin > 10;
        return LP_TIME_ISO;
    }
    lp_date_order order = LP_DATE_YEAR_FIRST;
    bool read = !lp_time_parts_read(begin, end, &parts);
    if (parts.shape == LP_SHAPE_UNCERTAIN)
        order = LP_DATE_DAY_FIRST;
    if (!read || lp_time_parts_resolve(&parts, order, NULL, &time, &local))
        return lp_timestamp_is_date(begin, end) ? LP_TIME_ISO
                                                : detect_numbers(begin, end); /* its error is more precise */
    *clock = parts.clock;
    return units[parts.shape];
}

/* Excel writes days since 1899-12-30, with a decimal comma in some countries. */
static bool read_serial(const char *begin, const char *end, double *number)
{
    char text[40];
    const char *comma = memchr(begin, ',', (size_t)(end - begin));
    if (!comma || end - begin >= (int)sizeof text)
        return lp_number_parse(begin, end, number);
    memcpy(text, begin, (size_t)(end - begin));
    text[comma - begin] = '.';
    return lp_number_parse(text, text + (end - begin), number);
}

/* The numbers of a column. */
typedef struct number_column {
    int64_t count, compact, short_dates, serial, fractions;
    int64_t unit[LP_TIME_ISO]; /* [LP_TIME_SECONDS ..]: by magnitude */
    lp_time_unit first_unit;
    double first, last, most; /* smallest, largest value; largest magnitude */
} number_column;

enum { EXCEL_FIRST = 25569, EXCEL_LAST = 73051 }; /* the years 1970 to 2099 */
static const double excel_epoch = 25569;          /* 1970-01-01 */
static const double least_unix = 1e8;             /* numbers below are not unix times: 1973 */
static const double RELATIVE_MOST = 1e15;

static bool add_number(number_column *numbers, const char *begin, const char *end)
{
    double number;
    if (!read_serial(begin, end, &number))
        return false;
    lp_time_unit unit = unit_of(number);
    if (!in_range(number / number_units[unit].per_second))
        return false;
    numbers->first = numbers->count == 0 || number < numbers->first ? number : numbers->first;
    numbers->last = numbers->count == 0 || number > numbers->last ? number : numbers->last;
    numbers->most = fabs(number) > numbers->most ? fabs(number) : numbers->most;
    numbers->first_unit = numbers->count == 0 ? unit : numbers->first_unit;
    numbers->count++;
    numbers->unit[unit]++;
    numbers->compact += lp_time_is_compact(begin, end);
    numbers->short_dates += end - begin == 6;
    numbers->serial += number >= EXCEL_FIRST && number <= EXCEL_LAST;
    numbers->fractions += number != floor(number) && end - begin >= 8; /* 45294.5: 0.1 s takes four digits */
    return true;
}

/* The unit of numbers as a whole: a single one says little. */
static lp_time_unit unit_of_numbers(const number_column *numbers, int64_t *count)
{
    lp_time_unit best = numbers->first_unit;
    *count = numbers->count;
    if (numbers->compact == numbers->count && (numbers->short_dates == 0 || numbers->count >= 20))
        return LP_TIME_COMPACT;
    if (numbers->serial == numbers->count && numbers->fractions * 2 > numbers->count)
        return LP_TIME_EXCEL;
    if (numbers->most < least_unix)
        return LP_TIME_RELATIVE;
    for (lp_time_unit unit = LP_TIME_SECONDS; unit < LP_TIME_ISO; unit++)
        best = numbers->unit[unit] > numbers->unit[best] ? unit : best;
    *count = numbers->unit[best];
    return best;
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

/* Without blanks, and without what JSON of .NET puts around a number: "/Date(1767225600000+0100)/". */
static void trim(const char **begin, const char **end)
{
    lp_text_trim(begin, end);
    if (*end - *begin < 9 || memcmp(*begin, "/Date(", 6) != 0 || memcmp(*end - 2, ")/", 2) != 0)
        return;
    *begin += 6;
    *end -= 2;
    for (const char *at = *begin + 1; at < *end; at++)
        if (*at == '+' || *at == '-')
            *end = at; /* a zone, which does not change the time */
}

lp_time_look lp_time_look_at(const lp_sample *sample, int64_t column, int64_t rows)
{
    int64_t count[LP_TIME_UNITS] = {0}, first[LP_TIME_UNITS];
    number_column numbers = {0};
    lp_time_look look = {.unit = LP_TIME_AUTO};
    for (int i = 0; i < LP_TIME_UNITS; i++)
        first[i] = INT64_MAX;
    for (int64_t row = 0; column < sample->column_count && row < sample->row_count && row < rows; row++) {
        const char *begin = sample->begin[row * sample->column_count + column];
        const char *end = sample->end[row * sample->column_count + column];
        bool clock = false;
        trim(&begin, &end);
        if (begin == end)
            continue;
        look.filled++;
        bool number_clock = end - begin <= 5 && lp_time_is_clock(begin, end); /* 8.15 */
        look.clock_only += number_clock;
        if (add_number(&numbers, begin, end)) {
            first[LP_TIME_AUTO] = row < first[LP_TIME_AUTO] ? row : first[LP_TIME_AUTO];
            continue;
        }
        lp_time_unit unit = detect_date(begin, end, &clock);
        if (unit == LP_TIME_AUTO) {
            look.clock_only += !number_clock && lp_time_is_clock(begin, end);
            continue;
        }
        look.clocks += clock;
        count[unit]++;
        first[unit] = row < first[unit] ? row : first[unit];
    }
    merge_dates(count, first);
    if (numbers.count > 0) {
        int64_t of_unit;
        lp_time_unit unit = unit_of_numbers(&numbers, &of_unit);
        count[unit] = of_unit;
        first[unit] = first[LP_TIME_AUTO];
    }
    for (lp_time_unit unit = LP_TIME_SECONDS; unit < LP_TIME_UNITS; unit++)
        if (count[unit] > 0 && (look.unit == LP_TIME_AUTO || count[unit] > count[look.unit] ||
                                (count[unit] == count[look.unit] && first[unit] < first[look.unit])))
            look.unit = unit;
    look.times = look.unit == LP_TIME_AUTO ? 0 : count[look.unit];
    if (is_number(look.unit) || look.unit >= LP_TIME_EXCEL)
        look.clocks += look.unit == LP_TIME_UNCERTAIN ? 0 : look.times;
    return look;
}

void lp_time_found(lp_time_format *format, lp_time_unit unit)
{
    format->unit = unit;
    format->found = is_number(unit);
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
        format->unit = fabs(number) < least_unix ? LP_TIME_RELATIVE : unit;
        format->found = format->unit == unit;
    }
    if (format->unit == LP_TIME_RELATIVE || format->unit == LP_TIME_EXCEL)
        return NULL;
    if (!is_number(format->unit))
        return "is a number, but the times are dates: set " LP_OPTION("--time-unit");
    const number_unit *unit = &number_units[format->unit];
    double size = fabs(number);
    return format->found && (size >= unit->below || size < unit[-1].below) ? unit->others_have : NULL;
}

const char *lp_time_number(lp_time_format *format, double number, double *time)
{
    const char *reason = check_unit(format, number);
    if (reason)
        return reason;
    if (format->unit == LP_TIME_RELATIVE) { /* no years */
        *time = number;
        return fabs(number) <= RELATIVE_MOST ? NULL
                                             : "is larger than 1e15, where a number has no room for parts of a unit";
    }
    if (format->unit == LP_TIME_EXCEL)
        *time = round((number - excel_epoch) * 86400e3) / 1e3; /* cells have about a millisecond */
    else
        *time = format->unit <= LP_TIME_SECONDS ? number : number / number_units[format->unit].per_second;
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
    return read_serial(begin, end, &number) ? lp_time_number(format, number, time) : number_units[format->unit].not_one;
}

/* The unit of one value, or LP_TIME_AUTO if it is not a time. */
static lp_time_unit detect_one(const char *begin, const char *end)
{
    number_column numbers = {0};
    bool clock;
    int64_t count;
    return add_number(&numbers, begin, end) ? unit_of_numbers(&numbers, &count) : detect_date(begin, end, &clock);
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

/* A date in another form than ISO 8601 and digits with the year last; `reason` says why it is not one of those. */
static const char *read_text(lp_time_format *format, const char *begin, const char *end, double *time, lp_local *local,
                             const char *reason)
{
    lp_time_parts parts;
    const char *other = lp_time_parts_read(begin, end, &parts);
    lp_date_order order = order_of(format->unit);
    bool numbers = parts.shape > LP_SHAPE_CERTAIN;
    if (other || (reason && numbers != (order != LP_DATE_YEAR_FIRST)))
        return reason ? reason : other;
    return lp_time_parts_resolve(&parts, order, format->zone, time, local);
}

const char *lp_time_read(lp_time_format *format, const char *begin, const char *end, double *time, lp_local *local)
{
    *local = LP_LOCAL_NONE;
    trim(&begin, &end);
    if (begin == end)
        return "is not a time: it is empty";
    if (is_number(format->unit))
        return read_number(format, begin, end, time);
    if (format->unit == LP_TIME_AUTO)
        return read_first(format, begin, end, time, local);
    if (format->unit == LP_TIME_UNCERTAIN)
        return "may have the day or the month first: set " LP_OPTION(
            "--time-unit mdy") " (month first) or dmy (day first)";
    if (format->unit == LP_TIME_EXCEL || format->unit == LP_TIME_RELATIVE) {
        double number;
        return read_serial(begin, end, &number) ? lp_time_number(format, number, time)
               : format->unit == LP_TIME_EXCEL  ? "is not a day number of a spreadsheet"
                                                : "is not a number, as the other times are";
    }
    if (format->unit == LP_TIME_TEXT || format->unit == LP_TIME_COMPACT)
        return read_text(format, begin, end, time, local, NULL);
    const char *reason = lp_timestamp_parse(begin, end, order_of(format->unit), format->zone, time, local);
    return reason ? read_text(format, begin, end, time, local, reason) : NULL;
}
