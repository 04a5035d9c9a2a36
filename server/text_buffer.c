/* text_buffer.c: see text_buffer.h. */
#include "text_buffer.h"

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

void srv_text_number(srv_text *text, double value)
{
    char digits[32];
    if (!isfinite(value)) {
        srv_text_add(text, "null");
        return;
    }
    if (value == floor(value) && fabs(value) < 1e15) {
        srv_text_whole(text, (int64_t)value);
        return;
    }
    for (int precision = 9; precision <= 17; precision += precision == 9 ? 6 : 1) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    srv_text_add(text, digits);
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
