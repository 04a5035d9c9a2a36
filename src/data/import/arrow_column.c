/* arrow_column.c: types and values of Arrow columns. */
#include "data/import/arrow_column.h"

#include "base/text.h"
#include "base/timestamp.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------- types ----- */

static bool parse_timestamp(const char *format, lp_arrow_type *type)
{
    static const struct {
        char letter;
        int scale;
    } units[] = {{'s', 0}, {'m', 3}, {'u', 6}, {'n', 9}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (format[2] == units[i].letter && format[3] == ':') {
            *type = (lp_arrow_type){LP_ARROW_TIMESTAMP, 8, units[i].scale, !format[4]};
            return true;
        }
    }
    return false;
}

/* "d:19,10" is a 128-bit decimal; a third number is another width. */
static bool parse_decimal(const char *format, lp_arrow_type *type)
{
    int precision, scale, width = 128;
    int found = sscanf(format, "d:%d,%d,%d", &precision, &scale, &width);
    *type = (lp_arrow_type){LP_ARROW_DECIMAL, width / 8, scale, false};
    return found >= 2 && (width == 32 || width == 64 || width == 128) && scale >= 0 && scale <= 18;
}

bool lp_arrow_type_parse(const char *format, lp_arrow_type *type)
{
    static const struct {
        const char *format;
        lp_arrow_type type;
    } plain[] = {
        {"n", {LP_ARROW_NULL, 0, 0, false}},     {"b", {LP_ARROW_BOOL, 0, 0, false}},
        {"c", {LP_ARROW_INTEGER, 1, 0, false}},  {"s", {LP_ARROW_INTEGER, 2, 0, false}},
        {"i", {LP_ARROW_INTEGER, 4, 0, false}},  {"l", {LP_ARROW_INTEGER, 8, 0, false}},
        {"C", {LP_ARROW_UNSIGNED, 1, 0, false}}, {"S", {LP_ARROW_UNSIGNED, 2, 0, false}},
        {"I", {LP_ARROW_UNSIGNED, 4, 0, false}}, {"L", {LP_ARROW_UNSIGNED, 8, 0, false}},
        {"e", {LP_ARROW_FLOAT, 2, 0, false}},    {"f", {LP_ARROW_FLOAT, 4, 0, false}},
        {"g", {LP_ARROW_FLOAT, 8, 0, false}},    {"u", {LP_ARROW_TEXT, 4, 0, false}},
        {"U", {LP_ARROW_TEXT, 8, 0, false}},     {"z", {LP_ARROW_TEXT, 4, 0, false}},
        {"Z", {LP_ARROW_TEXT, 8, 0, false}},     {"vu", {LP_ARROW_VIEW, 16, 0, false}},
        {"vz", {LP_ARROW_VIEW, 16, 0, false}},   {"tdD", {LP_ARROW_DATE, 4, 0, true}},
        {"tdm", {LP_ARROW_DATE, 8, 3, true}},
    };
    if (!format)
        return false;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(format, plain[i].format) == 0) {
            *type = plain[i].type;
            return true;
        }
    }
    if (strncmp(format, "ts", 2) == 0)
        return parse_timestamp(format, type);
    return strncmp(format, "d:", 2) == 0 && parse_decimal(format, type);
}

/* ------------------------------------------------------------------------------------------------ arrays ----- */

/* Reads a signed integer of 1 to 8 bytes at index i. Buffers need not be aligned. */
static int64_t signed_at(const uint8_t *data, int size, int64_t i)
{
    int8_t c;
    int16_t s;
    int32_t l;
    int64_t q;
    switch (size) {
    case 1:
        memcpy(&c, data + i, 1);
        return c;
    case 2:
        memcpy(&s, data + i * 2, 2);
        return s;
    case 4:
        memcpy(&l, data + i * 4, 4);
        return l;
    default:
        memcpy(&q, data + i * 8, 8);
        return q;
    }
}

static const char *open_buffers(lp_arrow_values *values, const struct ArrowArray *array)
{
    lp_arrow_kind kind = values->type.kind;
    int64_t buffers = kind == LP_ARROW_NULL ? 0 : kind == LP_ARROW_TEXT ? 3 : 2;
    if (kind == LP_ARROW_VIEW ? array->n_buffers < 3 : array->n_buffers != buffers)
        return "the array has a wrong number of buffers";
    if (kind == LP_ARROW_NULL)
        return NULL;
    if (!array->buffers)
        return "the array has no buffers";
    values->valid = array->null_count == 0 ? NULL : array->buffers[0];
    values->data = array->buffers[1];
    if (array->null_count > 0 && !values->valid)
        return "the array has nulls, but no bitmap of them";
    if (!values->data && values->length > 0)
        return "the array has no values";
    if (kind == LP_ARROW_TEXT) {
        values->text = array->buffers[2] ? array->buffers[2] : "";
        if (values->length > 0) /* the last offset of the array, not that of the elements that are opened */
            values->text_size = signed_at(values->data, values->type.size, array->offset + array->length);
        if (!array->buffers[2] && values->text_size > 0)
            return "the array has no text";
    }
    if (kind == LP_ARROW_VIEW) {
        values->buffers = array->buffers + 2;
        values->buffer_count = array->n_buffers - 3;
        values->buffer_size = array->buffers[array->n_buffers - 1];
        if (!values->buffer_size && values->buffer_count > 0)
            return "the array of string views has no sizes of its buffers";
    }
    return NULL;
}

const char *lp_arrow_open(lp_arrow_values *values, const struct ArrowArray *array, lp_arrow_type type, int64_t first,
                          int64_t length)
{
    int64_t end;
    *values = (lp_arrow_values){.type = type, .length = length};
    if (!array || !array->release)
        return "the array is missing or already released";
    if (array->length < 0 || array->offset < 0 || array->null_count < -1 || array->null_count > array->length)
        return "the array has a negative length, offset or number of nulls";
    if (first < 0 || length < 0 || length > array->length || first > array->length - length)
        return "the array is shorter than its table";
    /* No element has more than 16 bytes, so that no address overflows. */
    if (__builtin_add_overflow(array->offset, array->length, &end) || end > INT64_MAX / 16 - 1)
        return "the array has an offset that is too large";
    values->offset = array->offset + first;
    return open_buffers(values, array);
}

/* ------------------------------------------------------------------------------------------------ values ----- */

static int64_t unsigned_at(const uint8_t *data, int size, int64_t i)
{
    int64_t value = signed_at(data, size, i);
    return size == 8 ? value : value & (((int64_t)1 << (8 * size)) - 1);
}

static double half_to_double(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(1024 + fraction, exponent - 25);
    return half >> 15 ? -value : value;
}

static double float_at(const uint8_t *data, int size, int64_t i)
{
    uint16_t half;
    float single;
    double value;
    if (size == 2) {
        memcpy(&half, data + i * 2, 2);
        return half_to_double(half);
    }
    if (size == 4) {
        memcpy(&single, data + i * 4, 4);
        return single;
    }
    memcpy(&value, data + i * 8, 8);
    return value;
}

bool lp_arrow_integer(const lp_arrow_values *values, int64_t i, int64_t *value)
{
    int size = values->type.size;
    double number;
    i += values->offset;
    switch (values->type.kind) {
    case LP_ARROW_BOOL:
        *value = lp_arrow_bit(values->data, i);
        return true;
    case LP_ARROW_UNSIGNED:
        *value = unsigned_at(values->data, size, i);
        return true;
    case LP_ARROW_FLOAT:
        number = float_at(values->data, size, i);
        memcpy(value, &number, sizeof *value);
        return true;
    case LP_ARROW_DECIMAL:
        if (size < 16) {
            *value = signed_at(values->data, size, i);
            return true;
        }
        *value = signed_at(values->data, 8, 2 * i); /* little-endian: the low half first */
        return signed_at(values->data, 8, 2 * i + 1) == (*value < 0 ? -1 : 0);
    default:
        *value = signed_at(values->data, size, i);
        return true;
    }
}

int64_t lp_arrow_term(const lp_arrow_values *values, int64_t i)
{
    bool is_signed = values->type.kind == LP_ARROW_INTEGER;
    int64_t index = is_signed ? signed_at(values->data, values->type.size, values->offset + i)
                              : unsigned_at(values->data, values->type.size, values->offset + i);
    return index >= 0 && index < values->terms->length ? index : -1;
}

bool lp_arrow_resolve(const lp_arrow_values **values, int64_t *i)
{
    if (lp_arrow_missing(*values, *i))
        return false;
    if ((*values)->terms) {
        *i = lp_arrow_term(*values, *i);
        *values = (*values)->terms;
        return *i >= 0 && !lp_arrow_missing(*values, *i);
    }
    return true;
}

const char *lp_arrow_text(const lp_arrow_values *values, int64_t i, const char **begin, const char **end)
{
    static const char broken[] = "the offsets of the strings are not valid";
    *begin = *end = "";
    if (values->type.kind == LP_ARROW_VIEW)
        return lp_arrow_view(values, i, begin, end) ? NULL : broken;
    i += values->offset;
    int64_t first = signed_at(values->data, values->type.size, i);
    int64_t last = signed_at(values->data, values->type.size, i + 1);
    if (first < 0 || last < first || last > values->text_size)
        return broken;
    *begin = values->text + first;
    *end = values->text + last;
    return NULL;
}

static const int64_t powers[] = {1,
                                 10,
                                 100,
                                 1000,
                                 10000,
                                 100000,
                                 1000000,
                                 10000000,
                                 100000000,
                                 1000000000,
                                 10000000000,
                                 100000000000,
                                 1000000000000,
                                 10000000000000,
                                 100000000000000,
                                 1000000000000000,
                                 10000000000000000,
                                 100000000000000000,
                                 1000000000000000000};

static const int64_t exact = (int64_t)1 << 53; /* integers up to it are doubles */

/* value / 10^scale, rounded once, as a parser of the decimal text would. */
static double divide(int64_t value, int scale)
{
    for (; (value < -exact || value > exact) && scale > 0 && value % 10 == 0; scale--)
        value /= 10;
    if (value >= -exact && value <= exact)
        return (double)value / (double)powers[scale];
    /* The quotient has at least 57 bits, and its last one says whether there is a remainder: the conversion rounds. */
    unsigned __int128 dividend = (unsigned __int128)(value < 0 ? -(uint64_t)value : (uint64_t)value) << 64;
    unsigned __int128 quotient = dividend / (uint64_t)powers[scale];
    int shift = 64;
    bool rest = quotient * (uint64_t)powers[scale] != dividend;
    for (; quotient >> 62; quotient >>= 1, shift--)
        rest = rest || (quotient & 1);
    double result = ldexp((double)(uint64_t)(quotient | rest), -shift);
    return value < 0 ? -result : result;
}

/* divide, inline for what is exact: for loops. */
static inline double quotient(int64_t value, int scale)
{
    return value >= -exact && value <= exact ? (double)value / (double)powers[scale] : divide(value, scale);
}

double lp_arrow_number(lp_arrow_type type, int64_t value)
{
    double number;
    switch (type.kind) {
    case LP_ARROW_FLOAT:
        memcpy(&number, &value, sizeof number);
        return number;
    case LP_ARROW_UNSIGNED:
        return (double)(uint64_t)value;
    case LP_ARROW_DATE:
        return type.size == 4 ? (double)value * 86400 : divide(value, 3);
    case LP_ARROW_DECIMAL:
    case LP_ARROW_TIMESTAMP:
        return divide(value, type.scale);
    default:
        return (double)value;
    }
}

double lp_arrow_instant(lp_arrow_type type, int64_t value, const lp_zone *zone, lp_local *local)
{
    double time = lp_arrow_number(type, value);
    *local = LP_LOCAL_NONE;
    if (!type.local || !(time >= LP_TIME_MIN && time <= LP_TIME_MAX))
        return time;
    int64_t offset = lp_zone_offset(zone, (int64_t)floor(time), local), moved;
    if (offset == 0)
        return time;
    /* The integer is moved, so that the time is rounded once; days are not rounded. */
    bool days = type.kind == LP_ARROW_DATE && type.size == 4;
    int scale = type.kind == LP_ARROW_DATE ? 3 : type.scale;
    if (days || __builtin_sub_overflow(value, offset * powers[scale], &moved))
        return time - (double)offset;
    return lp_arrow_number(type, moved);
}

/* Quotients of 64-bit integers, which are usually small: those up to 2^51 become the fraction of a double by an addition,
 * so that the loop is vectorized. */
static void quotients(const uint8_t *data, int64_t count, int scale, double *out)
{
    enum { FEW = 512 };
    const double large = 6755399441055744.0, divisor = (double)powers[scale]; /* 1.5 * 2^52 */
    for (int64_t done = 0; done < count; done += FEW) {
        int few = (int)(count - done < FEW ? count - done : FEW);
        uint64_t any = 0, x, bits;
        memcpy(&bits, &large, sizeof bits);
        for (int i = 0; i < few; i++) {
            double number;
            memcpy(&x, data + (done + i) * 8, sizeof x);
            any |= (x + (UINT64_C(1) << 51)) >> 52;
            x += bits;
            memcpy(&number, &x, sizeof number);
            out[done + i] = (number - large) / divisor;
        }
        for (int i = 0; any && i < few; i++)
            out[done + i] = quotient(signed_at(data, 8, done + i), scale);
    }
}

/* A loop for one type of element. */
#define CONVERT(element, expression)                                 \
    for (int64_t i = 0; i < count; i++) {                            \
        element x;                                                   \
        memcpy(&x, values->data + (first + i) * sizeof x, sizeof x); \
        out[i] = (expression);                                       \
    }                                                                \
    break

bool lp_arrow_numbers(const lp_arrow_values *values, int64_t first, int64_t count, double *out)
{
    lp_arrow_type type = values->type;
    if (values->terms)
        return false;
    first += values->offset;
    switch ((int)type.kind * 16 + type.size) {
    case LP_ARROW_INTEGER * 16 + 4:
        CONVERT(int32_t, (double)x);
    case LP_ARROW_INTEGER * 16 + 8:
        CONVERT(int64_t, (double)x);
    case LP_ARROW_FLOAT * 16 + 4:
        CONVERT(float, (double)x);
    case LP_ARROW_FLOAT * 16 + 8:
        CONVERT(double, x);
    case LP_ARROW_DATE * 16 + 4:
        CONVERT(int32_t, (double)x * 86400);
    case LP_ARROW_DATE * 16 + 8:
    case LP_ARROW_TIMESTAMP * 16 + 8:
        quotients(values->data + first * 8, count, type.scale, out);
        break;
    default:
        return false;
    }
    for (int64_t i = 0; values->valid && i < count; i++)
        if (!lp_arrow_bit(values->valid, first + i))
            out[i] = NAN;
    return true;
}

bool lp_arrow_integers(const lp_arrow_values *values, int64_t first, int64_t count, int64_t *out)
{
    lp_arrow_type type = values->type;
    bool is_unsigned = type.kind == LP_ARROW_UNSIGNED;
    bool is_signed = type.kind == LP_ARROW_INTEGER || type.kind == LP_ARROW_DATE || type.kind == LP_ARROW_TIMESTAMP ||
                     (type.kind == LP_ARROW_DECIMAL && type.size < 16);
    if (!is_unsigned && !is_signed)
        return false;
    first += values->offset;
    switch (type.size * 2 + is_unsigned) {
    case 2:
        CONVERT(int8_t, x);
    case 3:
        CONVERT(uint8_t, x);
    case 4:
        CONVERT(int16_t, x);
    case 5:
        CONVERT(uint16_t, x);
    case 8:
        CONVERT(int32_t, x);
    case 9:
        CONVERT(uint32_t, x);
    default:
        CONVERT(int64_t, x);
    }
    return true;
}

/* Whether the elements of 8 bytes are from -limit to limit - 1, which is a power of two: a loop that is vectorized. */
static bool all_below(const uint8_t *data, int64_t count, uint64_t limit)
{
    uint64_t any = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t x;
        memcpy(&x, data + i * 8, sizeof x);
        any |= x + limit;
    }
    return any < 2 * limit;
}

bool lp_arrow_within(const lp_arrow_values *values, int64_t first, int64_t count, double least, double most)
{
    enum { FEW = 512 };
    int64_t few[FEW], limit = (int64_t)1 << 61;
    lp_arrow_type type = values->type;
    if (values->terms || values->valid || type.kind == LP_ARROW_UNSIGNED)
        return false;
    while (limit > 1 && (lp_arrow_number(type, -limit) < least || lp_arrow_number(type, limit) > most))
        limit /= 2;
    if (type.kind == LP_ARROW_TIMESTAMP &&
        all_below(values->data + (values->offset + first) * 8, count, (uint64_t)limit))
        return true;
    for (int64_t done = 0; done < count; done += FEW) {
        int64_t n = count - done < FEW ? count - done : FEW, low = INT64_MAX, high = INT64_MIN;
        if (!lp_arrow_integers(values, first + done, n, few))
            return false;
        for (int64_t i = 0; i < n; i++) {
            low = few[i] < low ? few[i] : low;
            high = few[i] > high ? few[i] : high;
        }
        if (!(lp_arrow_number(type, low) >= least && lp_arrow_number(type, high) <= most))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------- names ----- */

static bool gives_back(const char *text, double number, int size)
{
    double read;
    if (!lp_number_parse(text, text + strlen(text), &read))
        return false;
    return size == 8 ? read == number : (float)read == (float)number;
}

/* The fewest digits that give the float back; fixed notation for exponents from -4 to 15, with ".0" for integers. */
static size_t name_float(int size, double number, char out[LP_ARROW_NAME_SIZE])
{
    char digits[40];
    int precision = 0;
    do
        snprintf(digits, sizeof digits, "%.*e", precision, number);
    while (!gives_back(digits, number, size) && ++precision < 17);
    const char *mark = strchr(digits, 'e');
    int exponent = mark ? (int)strtol(mark + 1, NULL, 10) : 0;
    if (exponent < -4 || exponent >= 16) {
        snprintf(out, LP_ARROW_NAME_SIZE, "%s", digits);
    } else {
        int places = precision - exponent;
        snprintf(out, LP_ARROW_NAME_SIZE, "%.*f", places < 1 ? 1 : places, number);
    }
    return strlen(out);
}

static size_t name_decimal(int scale, int64_t value, char out[LP_ARROW_NAME_SIZE])
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value, power = (uint64_t)powers[scale];
    if (scale == 0)
        return (size_t)snprintf(out, LP_ARROW_NAME_SIZE, "%" PRId64, value);
    return (size_t)snprintf(out, LP_ARROW_NAME_SIZE, "%s%" PRIu64 ".%0*" PRIu64, value < 0 ? "-" : "",
                            magnitude / power, scale, magnitude % power);
}

size_t lp_arrow_name(lp_arrow_type type, int64_t value, char out[LP_ARROW_NAME_SIZE])
{
    switch (type.kind) {
    case LP_ARROW_BOOL:
        return (size_t)snprintf(out, LP_ARROW_NAME_SIZE, "%s", value ? "true" : "false");
    case LP_ARROW_UNSIGNED:
        return (size_t)snprintf(out, LP_ARROW_NAME_SIZE, "%" PRIu64, (uint64_t)value);
    case LP_ARROW_FLOAT:
        return name_float(type.size, lp_arrow_number(type, value), out);
    case LP_ARROW_DECIMAL:
        return name_decimal(type.scale, value, out);
    case LP_ARROW_DATE:
    case LP_ARROW_TIMESTAMP:
        lapse_time_format(lp_arrow_number(type, value), out, LP_ARROW_NAME_SIZE);
        if (type.kind == LP_ARROW_DATE && strlen(out) == 20)
            out[10] = 0; /* the date of a midnight */
        return strlen(out);
    default:
        return (size_t)snprintf(out, LP_ARROW_NAME_SIZE, "%" PRId64, value);
    }
}

void lp_arrow_value_text(const lp_arrow_values *values, int64_t i, char out[LP_ARROW_NAME_SIZE], const char **begin,
                         const char **end)
{
    int64_t value;
    *begin = *end = "";
    if (!lp_arrow_resolve(&values, &i))
        return;
    if (lp_arrow_is_text(values)) {
        lp_arrow_text(values, i, begin, end);
    } else if (lp_arrow_integer(values, i, &value) &&
               !(values->type.kind == LP_ARROW_FLOAT && isnan(lp_arrow_number(values->type, value)))) {
        *begin = out;
        *end = out + lp_arrow_name(values->type, value, out);
    }
}
