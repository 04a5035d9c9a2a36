/* text_buffer.c: see text_buffer.h. */
#include "text_buffer.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void srv_text_clear(srv_text *text)
{
    free(text->data);
    *text = (srv_text){0};
}

static bool grow(srv_text *text, size_t more)
{
    if (text->failed)
        return false;
    if (text->size + more + 1 <= text->capacity)
        return true;
    size_t capacity = text->capacity * 2 < text->size + more + 256 ? text->size + more + 256 : text->capacity * 2;
    char *data = realloc(text->data, capacity);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void srv_text_bytes(srv_text *text, const void *data, size_t size)
{
    if (size && grow(text, size)) {
        memcpy(text->data + text->size, data, size);
        text->size += size;
    }
}

void srv_text_add(srv_text *text, const char *string)
{
    srv_text_bytes(text, string, strlen(string));
}

void srv_text_format(srv_text *text, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size > 0)
        srv_text_bytes(text, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
}

const char *srv_text_string(srv_text *text)
{
    if (!grow(text, 0))
        return NULL;
    text->data[text->size] = 0;
    return text->data;
}

void srv_text_quote(srv_text *text, const char *string)
{
    srv_text_bytes(text, "\"", 1);
    const char *from = string;
    for (const char *at = string; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        char escape[8];
        srv_text_bytes(text, from, (size_t)(at - from));
        snprintf(escape, sizeof escape, byte < 0x20 ? "\\u%04x" : "\\%c", byte);
        srv_text_add(text, escape);
        from = at + 1;
    }
    srv_text_add(text, from);
    srv_text_bytes(text, "\"", 1);
}

/* Whole, with a point before its last `places` digits, without zeros at the end. */
static void add_decimal(srv_text *text, uint64_t whole, int places)
{
    char digits[32], *end = digits + sizeof digits, *at = end;
    for (; places > 0 && whole % 10 == 0; places--)
        whole /= 10;
    for (int i = 0; whole || i <= places; i++, whole /= 10) {
        if (i == places && i > 0)
            *--at = '.';
        *--at = (char)('0' + whole % 10);
    }
    srv_text_bytes(text, at, (size_t)(end - at));
}

void srv_text_number(srv_text *text, double value)
{
    /* Exact: 5^27 is below 2^63. */
    static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                         1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                         1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    char digits[32];
    long double size = fabsl(value);
    if (!isfinite(value)) {
        srv_text_add(text, "null");
    } else if (value == floor(value) && size < 1e15L) {
        srv_text_whole(text, (int64_t)value);
    } else if (LDBL_MANT_DIG < 64 || size < 1e-9L || size >= 1e15L) {
        snprintf(digits, sizeof digits, "%.17g", value);
        srv_text_add(text, digits);
    } else {
        int places = 14, exponent; /* places: digits after the point when there are 15 in all */
        for (; places > 0 && size >= powers[15 - places]; places--)
            continue;
        for (; size * powers[places - 14 > 0 ? places - 14 : 0] < 1; places++)
            continue;
        frexp(value, &exponent);
        long double near = ldexpl(0.99L, exponent - 54); /* nearer to the value than to any other double */
        uint64_t whole = (uint64_t)(size * powers[places] + 0.5L);
        for (int more = 0; more < 2 && fabsl((long double)whole / powers[places] - size) >= near; more++)
            whole = (uint64_t)(size * powers[++places] + 0.5L); /* the 17 digits of the last round always are */
        if (value < 0)
            srv_text_bytes(text, "-", 1);
        add_decimal(text, whole, places);
    }
}

void srv_text_whole(srv_text *text, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    srv_text_bytes(text, at, (size_t)(digits + sizeof digits - at));
}

void srv_text_comma(srv_text *text)
{
    if (text->size && text->data[text->size - 1] != '{' && text->data[text->size - 1] != '[' &&
        text->data[text->size - 1] != ':')
        srv_text_bytes(text, ",", 1);
}

void srv_text_name(srv_text *text, const char *name)
{
    srv_text_comma(text);
    srv_text_quote(text, name);
    srv_text_bytes(text, ":", 1);
}

void srv_text_open(srv_text *text, char bracket)
{
    srv_text_comma(text);
    srv_text_bytes(text, &bracket, 1);
}

void srv_text_close(srv_text *text, char bracket)
{
    srv_text_bytes(text, &bracket, 1);
}

void srv_text_member(srv_text *text, const char *name, const char *string)
{
    srv_text_name(text, name);
    srv_text_quote(text, string);
}

void srv_text_member_number(srv_text *text, const char *name, double value)
{
    srv_text_name(text, name);
    srv_text_number(text, value);
}

void srv_text_member_whole(srv_text *text, const char *name, int64_t value)
{
    srv_text_name(text, name);
    srv_text_whole(text, value);
}

void srv_text_member_bool(srv_text *text, const char *name, bool value)
{
    srv_text_name(text, name);
    srv_text_add(text, value ? "true" : "false");
}
