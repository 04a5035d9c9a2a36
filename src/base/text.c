/* text.c: parsing of text. Numbers are the hot path of an import: the usual case (about 15 digits, a small exponent) is
 * one exact integer times or divided by one exact power of ten, which IEEE arithmetic rounds correctly (Clinger 1990).
 * Other numbers go to strtod in the C locale. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strtod_l */
#endif
#include "base/text.h"

#include "lapse_lab.h"

#include <locale.h>
#if __has_include(<xlocale.h>)
#include <xlocale.h>
#endif
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXACT_POWERS = 22,      /* 10^22 is the largest power of ten that a double holds exactly */
    EXACT_DIGITS = 19,      /* that fit a uint64_t */
    EXPONENT_LIMIT = 99999, /* beyond any double; prevents overflow of the sum of exponents */
    NUMBER_SIZE = 1024      /* longer texts are refused */
};

static const double power_of_ten[EXACT_POWERS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool parse_slowly(const char *begin, const char *end, double *value)
{
    char copy[NUMBER_SIZE];
    size_t size = (size_t)(end - begin);
    if (size >= sizeof copy)
        return false;
    memcpy(copy, begin, size);
    copy[size] = 0;
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale)
        return false;
    char *stop;
    double result = strtod_l(copy, &stop, locale);
    freelocale(locale);
    if (stop != copy + size || !isfinite(result))
        return false;
    *value = result;
    return true;
}

/* Appends the digits from `at` on to *mantissa, which may wrap (the caller checks), and returns the end of the digits. */
static const char *digits(const char *at, const char *end, uint64_t *mantissa)
{
    uint64_t sum = *mantissa;
    for (unsigned digit; at < end && (digit = (unsigned)(unsigned char)*at - '0') < 10; at++)
        sum = sum * 10 + digit;
    *mantissa = sum;
    return at;
}

/* Reads "e-12" at *at into *exponent; false where no digit follows the sign. */
static bool read_exponent(const char **at, const char *end, int64_t *exponent)
{
    const char *p = *at + 1;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    const char *first = p;
    int64_t sum = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        sum = sum < EXPONENT_LIMIT ? sum * 10 + (*p - '0') : sum;
    *at = p;
    *exponent += negative ? -sum : sum;
    return p > first;
}

bool lp_number_parse(const char *begin, const char *end, double *value)
{
    const char *at = begin;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    uint64_t mantissa = 0;
    const char *whole = at;
    at = digits(at, end, &mantissa);
    int64_t count = at - whole, exponent = 0;
    if (at < end && *at == '.') {
        const char *fraction = ++at;
        at = digits(at, end, &mantissa);
        exponent = fraction - at;
        count -= exponent;
    }
    if (count == 0)
        return false;
    if (at < end && (*at == 'e' || *at == 'E') && !read_exponent(&at, end, &exponent))
        return false;
    if (at != end)
        return false;
    if (count > EXACT_DIGITS || mantissa > (uint64_t)1 << 53 || exponent < -EXACT_POWERS || exponent > EXACT_POWERS)
        return parse_slowly(begin, end, value);
    double result = (double)mantissa;
    result = exponent < 0 ? result / power_of_ten[-exponent] : result * power_of_ten[exponent];
    *value = negative ? -result : result;
    return true;
}

void lp_text_trim(const char **begin, const char **end)
{
    while (*begin < *end && (**begin == ' ' || **begin == '\t'))
        ++*begin;
    while (*begin < *end && ((*end)[-1] == ' ' || (*end)[-1] == '\t'))
        --*end;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool lp_text_is(const char *begin, const char *end, const char *word)
{
    for (; begin < end && *word; begin++, word++)
        if (lower(*begin) != lower(*word))
            return false;
    return begin == end && !*word;
}

size_t lp_utf8_size(const char *at, const char *end)
{
    const unsigned char *p = (const unsigned char *)at;
    size_t left = (size_t)(end - at), size = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (size == 0 || size > left || p[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF4 && p[1] > 0x8F);
    return overlong || beyond ? 0 : size;
}

int lapse_utf8_size(const char *text)
{
    return (int)lp_utf8_size(text, text + 4);
}

/* Whether all bytes are ASCII, eight at a time with an overlapping last word: most names are short and ASCII. */
static bool is_ascii(const char *begin, size_t size)
{
    uint64_t word = 0, all = 0;
    if (size >= 8) {
        for (size_t i = 0; i + 8 <= size; i += 8) {
            memcpy(&word, begin + i, 8);
            all |= word;
        }
        memcpy(&word, begin + size - 8, 8);
        all |= word;
    } else {
        for (size_t i = 0; i < size; i++)
            all |= (unsigned char)begin[i];
    }
    return !(all & 0x8080808080808080u);
}

bool lp_text_is_utf8(const char *begin, const char *end)
{
    if (is_ascii(begin, (size_t)(end - begin)))
        return true;
    while (begin < end) {
        size_t size = lp_utf8_size(begin, end);
        if (size == 0)
            return false;
        begin += size;
    }
    return true;
}

const char *lp_text_excerpt(const char *begin, const char *end, char out[LP_EXCERPT_SIZE])
{
    enum { SHOWN = 40 };
    size_t used = 0;
    while (begin < end && used < SHOWN) {
        size_t size = lp_utf8_size(begin, end);
        bool printable = size > 1 || (size == 1 && *begin >= 32 && *begin != 127);
        if (printable)
            memcpy(out + used, begin, size);
        else
            out[used] = '?';
        used += printable ? size : 1;
        begin += size ? size : 1;
    }
    memcpy(out + used, begin < end ? "..." : "", begin < end ? 4 : 1);
    return out;
}

int lp_name_index(const char *text, const char *const *names)
{
    for (int i = 0; text && names[i]; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    return -1;
}

const void *lp_find_by_name(const void *rows, const char *name)
{
    const void *row;
    for (const char *at = rows; name; at += sizeof row) {
        const char *row_name;
        memcpy(&row, at, sizeof row); /* memcpy: the pointers have any type */
        if (!row)
            break;
        memcpy(&row_name, row, sizeof row_name);
        if (strcmp(row_name, name) == 0)
            return row;
    }
    return NULL;
}
