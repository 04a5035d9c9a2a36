/* time_text.c: see time_text.h. A text is read word by word: numbers, month names, a clock, a zone; what is between them hardly
 * matters. */
#include "data/import/time_text.h"

#include "base/calendar.h"
#include "base/text.h"
#include "data/import/text_fold.h"

#include <string.h>

static const char *const not_a_date = "is not a date that is known: expected one such as 2026-11-15 12:00:00";
static const char *const no_year = "has no year";
static const char *const no_such_clock = "has an hour, minute or second that does not exist";

/* Names of months; a word of three letters or more that begins one of them is that month. */
static const char *const month_names[12] = {
    "january januar janvier enero gennaio janeiro januari styczen stycznia ocak янв tammikuu",
    "february februar fevrier febrero febbraio fevereiro februari luty lutego subat фев",
    "march marz maerz mars marzo marco maart mrt marzec marca mart мар",
    "april avril abril aprile kwiecien kwietnia nisan апр",
    "may mai mayo maggio maio mei maj maja mayis май мая",
    "june juni juin junio giugno junho czerwiec czerwca haziran июн",
    "july juli juillet julio luglio julho lipiec lipca temmuz июл",
    "august aout agosto augustus augusti sierpien sierpnia agustos авг",
    "september septembre septiembre settembre setembro wrzesien wrzesnia eylul сен",
    "october oktober octobre octubre ottobre outubro pazdziernik pazdziernika ekim окт",
    "november novembre noviembre novembro listopad listopada kasim ноя",
    "december dezember decembre diciembre dicembre dezembro desember grudzien grudnia aralik дек",
};

static const char *const weekdays =
    " mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday "
    "sunday mo di mi do fr sa so montag dienstag mittwoch donnerstag freitag samstag sonnabend "
    "sonntag lun mar mer jeu ven sam dim lundi mardi mercredi jeudi vendredi samedi dimanche lunes "
    "martes miercoles jueves viernes sabado domingo ";
static const char *const fillers = " at um a om kl klo de del of the st nd rd th den le el il t uhr h ";

static const struct {
    const char *name;
    int hours;
} zones[] = {
    {"z", 0},    {"utc", 0},  {"gmt", 0},  {"ut", 0},    {"wet", 0},   {"cet", 1},  {"met", 1},  {"mez", 1},
    {"west", 1}, {"bst", 1},  {"cest", 2}, {"mesz", 2},  {"eet", 2},   {"eest", 3}, {"msk", 3},  {"est", -5},
    {"edt", -4}, {"cst", -6}, {"cdt", -5}, {"mst", -7},  {"mdt", -6},  {"pst", -8}, {"pdt", -7}, {"jst", 9},
    {"kst", 9},  {"hkt", 8},  {"sgt", 8},  {"aest", 10}, {"aedt", 11},
};

typedef struct reading {
    const char *at, *end;
    int64_t number[4];
    int digits[4];
    int count;      /* numbers of the date */
    int month;      /* by name, or 0 */
    int named_at;   /* numbers before the name */
    bool separated; /* the date has a separator that dates have */
    lp_time_parts *parts;
} reading;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t read_digits(reading *r, int *digits)
{
    int64_t value = 0;
    const char *first = r->at;
    for (; r->at < r->end && is_digit(*r->at) && r->at - first < 18; r->at++)
        value = value * 10 + (*r->at - '0');
    *digits = (int)(r->at - first);
    return value;
}

static bool has_word(const char *list, const char *word, size_t size)
{
    for (const char *at = list; (at = strstr(at, word)) != NULL; at++)
        if (at > list && at[-1] == ' ' && at[size] == ' ')
            return true;
    return false;
}

static int month_of(const char *word, size_t size)
{
    int found = 0;
    for (int m = 0; m < 12; m++)
        for (const char *at = month_names[m]; at; at = strchr(at, ' '), at = at ? at + 1 : NULL)
            if (size >= 3 && strncmp(at, word, size) == 0) {
                if (found && found != m + 1)
                    return at[size] == ' ' || !at[size] ? m + 1 : 0;
                found = m + 1;
            }
    return found;
}

/* AM or PM after an hour: "pm", "p.m.", "PM". */
static const char *half_day(reading *r, int64_t *hour)
{
    const char *at = r->at;
    while (at < r->end && (*at == ' ' || (unsigned char)*at == 0xC2 || (unsigned char)*at == 0xA0))
        at++;
    if (r->end - at < 2)
        return NULL;
    char first = (char)(*at | 0x20);
    const char *m = at + 1 + (at[1] == '.');
    if ((first != 'a' && first != 'p') || m >= r->end || (*m | 0x20) != 'm' ||
        (m + 1 < r->end && ((m[1] | 0x20) >= 'a' && (m[1] | 0x20) <= 'z')))
        return NULL;
    r->at = m + 1 + (m + 1 < r->end && m[1] == '.');
    if (*hour < 1 || *hour > 12)
        return no_such_clock;
    *hour = *hour % 12 + (first == 'p' ? 12 : 0);
    return NULL;
}

/* The minutes and seconds after an hour, at its separator. */
static const char *read_clock(reading *r, int64_t hour)
{
    int digits;
    char separator = *r->at++;
    int64_t minute = read_digits(r, &digits), second = 0;
    if (digits != 2)
        return not_a_date;
    if (r->end - r->at > 2 && (*r->at == ':' || *r->at == separator) && is_digit(r->at[1]) && is_digit(r->at[2])) {
        r->at++;
        second = read_digits(r, &digits);
        if (digits != 2)
            return not_a_date;
        if (r->end - r->at > 1 && (*r->at == '.' || *r->at == ',' || *r->at == ':') && is_digit(r->at[1])) {
            r->at++;
            r->parts->part = read_digits(r, &r->parts->part_digits);
            while (r->at < r->end && is_digit(*r->at))
                r->at++;
        }
    }
    const char *reason = half_day(r, &hour);
    if (reason || hour > 23 || minute > 59 || second > 60)
        return reason ? reason : no_such_clock;
    r->parts->clock = true;
    r->parts->seconds = hour * 3600 + minute * 60 + second;
    return NULL;
}

/* An offset such as +02:00, +0200 or -5, at its sign. */
static const char *read_offset(reading *r)
{
    int digits;
    bool west = *r->at++ == '-';
    int64_t hours = read_digits(r, &digits), minutes = 0;
    if (digits == 4) {
        minutes = hours % 100;
        hours /= 100;
    } else if (r->at < r->end && *r->at == ':') {
        r->at++;
        minutes = read_digits(r, &digits);
    }
    if (hours > 14 || minutes > 59 || digits == 0)
        return "has a zone that does not exist";
    r->parts->seconds -= (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    r->parts->zoned = true;
    return NULL;
}

static bool is_separator(const reading *r, size_t *size)
{
    static const char *const texts[] = {"\xE5\xB9\xB4", "\xE6\x9C\x88",
                                        "\xE6\x97\xA5"}; /* year, month, day in Chinese and Japanese */
    for (int i = 0; i < 3; i++)
        if (r->end - r->at >= 3 && memcmp(r->at, texts[i], 3) == 0) {
            *size = 3;
            return true;
        }
    *size = 1;
    return strchr("/-.", *r->at) != NULL;
}

static bool is_blank(const char *at)
{
    return strchr(" ,[]()\"'\t", *at) && *at;
}

static const char *read_word(reading *r)
{
    const char *first = r->at;
    size_t separator;
    while (r->at < r->end && !is_blank(r->at) && !is_digit(*r->at) && *r->at != '.' && *r->at != '+' && *r->at != '/' &&
           *r->at != ':' && *r->at != '-' && !((unsigned char)*r->at >= 0xE0 && is_separator(r, &separator)))
        r->at++;
    char word[40];
    size_t size = lp_text_fold(first, r->at, word, sizeof word);
    if (r->at == first)
        return not_a_date;
    int month = month_of(word, size);
    bool weekday = has_word(weekdays, word, size);
    if (month && !r->month && !(weekday && r->count == 0 && r->at < r->end && strchr(",.", *r->at))) {
        r->month = month;
        r->named_at = r->count;
        return NULL;
    }
    for (size_t i = 0; i < sizeof zones / sizeof *zones && r->parts->clock; i++)
        if (strcmp(zones[i].name, word) == 0) {
            if (!r->parts->zoned)
                r->parts->seconds -= zones[i].hours * 3600;
            r->parts->zoned = true;
            return NULL;
        }
    return weekday || has_word(fillers, word, size) ? NULL : not_a_date;
}

static bool date_is_complete(const reading *r)
{
    return r->count + (r->month > 0) >= 3 || (r->count == 1 && r->digits[0] >= 8);
}

static const char *read_number(reading *r)
{
    int digits;
    int64_t value = read_digits(r, &digits);
    bool clock_next = r->end - r->at > 2 && is_digit(r->at[1]) && is_digit(r->at[2]);
    bool colon = clock_next && *r->at == ':',
         other = clock_next && (*r->at == '.' || *r->at == 'h') && date_is_complete(r);
    if (!r->parts->clock && digits <= 2 && (colon || other))
        return read_clock(r, value);
    if (!r->parts->clock && date_is_complete(r) && (digits == 6 || digits == 4)) { /* T081500 */
        int64_t whole = digits == 6 ? value : value * 100;
        if (r->count == 1 && r->digits[0] == 8) {
            r->parts->clock = true;
            r->parts->seconds = whole / 10000 * 3600 + whole / 100 % 100 * 60 + whole % 100;
            return whole / 10000 > 23 || whole / 100 % 100 > 59 || whole % 100 > 60 ? no_such_clock : NULL;
        }
    }
    if (!r->parts->clock && date_is_complete(r) && digits <= 2 && value <= 12) { /* 8 PM */
        int64_t hour = value;
        const char *before = r->at;
        const char *reason = half_day(r, &hour);
        if (r->at > before) {
            r->parts->clock = true;
            r->parts->seconds = hour * 3600;
            return reason;
        }
    }
    if (r->count == 3 || (r->count == 2 && r->month))
        return not_a_date;
    r->number[r->count] = value;
    r->digits[r->count++] = digits;
    return NULL;
}

/* What follows a number of the date: a separator of dates, a blank, a T. */
static const char *read_all(reading *r)
{
    while (r->at < r->end) {
        size_t size;
        const char *reason = NULL;
        if (is_digit(*r->at))
            reason = read_number(r);
        else if (is_blank(r->at))
            r->at++;
        else if ((*r->at == '+' || *r->at == '-') && r->parts->clock && !r->parts->zoned && r->end - r->at > 1 &&
                 is_digit(r->at[1]))
            reason = read_offset(r);
        else if (is_separator(r, &size)) {
            r->at += size;
            r->separated = true;
        } else if (*r->at == ':' && date_is_complete(r) && !r->parts->clock)
            r->at++; /* 29/Nov/2017:07:14:36 */
        else if (((unsigned char)*r->at | 0x20) >= 'a')
            reason = read_word(r);
        else
            reason = not_a_date;
        if (reason)
            return reason;
    }
    return NULL;
}

static int full_year(int64_t year, int digits)
{
    return (int)(digits == 2 ? year + (year < 70 ? 2000 : 1900) : year);
}

/* The date of the numbers that were read. */
static const char *arrange(reading *r)
{
    lp_time_parts *parts = r->parts;
    const int64_t *n = r->number;
    parts->shape = LP_SHAPE_CERTAIN;
    if (r->month) {
        if (r->count < 2)
            return no_year;
        int year = r->digits[0] == 4 ? 0 : 1;
        if (r->digits[year] != 4 && r->digits[year] != 2)
            return not_a_date;
        parts->year = full_year(n[year], r->digits[year]);
        parts->month = r->month;
        parts->day = (int)n[!year];
        return NULL;
    }
    if (r->count == 1 && r->digits[0] == 6 && !parts->clock) { /* 950301 */
        parts->year = full_year(n[0] / 10000, 2);
        parts->month = (int)(n[0] / 100 % 100);
        parts->day = (int)(n[0] % 100);
        return NULL;
    }
    if (r->count == 1 && (r->digits[0] == 8 || r->digits[0] == 14)) {
        int64_t date = r->digits[0] == 14 ? n[0] / 1000000 : n[0], clock = n[0] % 1000000;
        parts->year = (int)(date / 10000);
        parts->month = (int)(date / 100 % 100);
        parts->day = (int)(date % 100);
        if (r->digits[0] == 8)
            return NULL;
        parts->clock = true;
        parts->seconds = clock / 10000 * 3600 + clock / 100 % 100 * 60 + clock % 100;
        return clock / 10000 > 23 || clock / 100 % 100 > 59 || clock % 100 > 60 ? no_such_clock : NULL;
    }
    if (r->count != 3 || !r->separated)
        return not_a_date;
    bool year_first = r->digits[0] == 4 || (r->digits[2] <= 2 && n[0] > 31);
    if (year_first) {
        parts->year = full_year(n[0], r->digits[0]);
        parts->month = (int)n[1];
        parts->day = (int)n[2];
        return r->digits[1] > 2 || r->digits[2] > 2 ? not_a_date : NULL;
    }
    if ((r->digits[2] != 4 && r->digits[2] != 2) || r->digits[0] > 2 || r->digits[1] > 2)
        return not_a_date;
    parts->year = full_year(n[2], r->digits[2]);
    parts->month = (int)n[0];
    parts->day = (int)n[1];
    parts->shape = n[0] == n[1]               ? LP_SHAPE_EQUAL
                   : n[0] <= 12 && n[1] <= 12 ? LP_SHAPE_UNCERTAIN
                   : n[0] <= 12               ? LP_SHAPE_MONTH_FIRST
                                              : LP_SHAPE_DAY_FIRST;
    return NULL;
}

const char *lp_time_parts_read(const char *begin, const char *end, lp_time_parts *parts)
{
    *parts = (lp_time_parts){0};
    reading r = {.at = begin, .end = end, .parts = parts};
    const char *reason = end - begin > 64 ? not_a_date : read_all(&r);
    reason = reason ? reason : arrange(&r);
    if (reason)
        parts->shape = LP_SHAPE_NONE;
    return reason;
}

const char *lp_time_parts_resolve(const lp_time_parts *parts, lp_date_order order, const lp_zone *local_zone,
                                  double *time, lp_local *local)
{
    int month = parts->month, day = parts->day;
    if (parts->shape > LP_SHAPE_CERTAIN && order == LP_DATE_YEAR_FIRST && parts->shape == LP_SHAPE_UNCERTAIN)
        return "may have the day or the month first: set " LP_OPTION(
            "--time-unit mdy") " (month first) or dmy (day first)";
    if (parts->shape > LP_SHAPE_CERTAIN &&
        (order == LP_DATE_DAY_FIRST || (order == LP_DATE_YEAR_FIRST && parts->shape == LP_SHAPE_DAY_FIRST))) {
        month = parts->day;
        day = parts->month;
    }
    if (parts->shape == LP_SHAPE_NONE || parts->year < 1 || month < 1 || month > 12 || day < 1 ||
        day > lp_days_in_month(parts->year, month))
        return "has a date that does not exist";
    int64_t seconds = lp_days_of_date(parts->year, month, day) * 86400 + parts->seconds;
    *local = LP_LOCAL_NONE;
    if (!parts->zoned)
        seconds -= lp_zone_offset(local_zone, seconds, local);
    *time = lp_time_with_fraction(seconds, parts->part, parts->part_digits);
    return *time < LP_TIME_MIN || *time > LP_TIME_MAX ? "lies outside the years 1 to 9999" : NULL;
}

bool lp_time_is_clock(const char *begin, const char *end)
{
    lp_time_parts parts = {0};
    reading r = {.at = begin, .end = end, .parts = &parts};
    int digits;
    int64_t hour = read_digits(&r, &digits);
    if (digits < 1 || digits > 2 || end - r.at < 3 || !strchr(":.h", *r.at))
        return false;
    return !read_clock(&r, hour) && r.at == end;
}

bool lp_time_is_compact(const char *begin, const char *end)
{
    lp_time_parts parts;
    if (end - begin != 6 && end - begin != 8 && end - begin != 14)
        return false;
    for (const char *at = begin; at < end; at++)
        if (!is_digit(*at))
            return false;
    return !lp_time_parts_read(begin, end, &parts) && parts.year >= 1900 && parts.year <= 2100 && parts.month >= 1 &&
           parts.month <= 12 && parts.day >= 1 && parts.day <= lp_days_in_month(parts.year, parts.month);
}
