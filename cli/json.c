/* json.c: see json.h. JSON must be UTF-8, so invalid bytes (such as a file name in another encoding) are replaced by
 * U+FFFD. */
#include "json.h"

#include "lapse_lab.h"

#include <math.h>

static void quote(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int length = lapse_utf8_size((const char *)c);
        if (length == 0) {
            fputs("\\ufffd", file);
            c++;
        } else if (*c == '"' || *c == '\\') {
            fprintf(file, "\\%c", *c++);
        } else if (*c < 32 || *c == 127) {
            fprintf(file, "\\u%04x", *c++);
        } else {
            fwrite(c, 1, (size_t)length, file);
            c += length;
        }
    }
    fputc('"', file);
}

static void indent(cli_json *json)
{
    if (!json->compact)
        fprintf(json->file, "\n%*s", 2 * json->depth, "");
}

static void next(cli_json *json, const char *name)
{
    if (json->depth > 0) {
        if (json->filled[json->depth - 1])
            fputs(json->compact ? ", " : ",", json->file);
        json->filled[json->depth - 1] = true;
        indent(json);
    }
    if (name) {
        quote(json->file, name);
        fputs(": ", json->file);
    }
}

static void open_container(cli_json *json, const char *name, char bracket)
{
    next(json, name);
    fputc(bracket, json->file);
    json->filled[json->depth++] = false;
}

void cli_json_object(cli_json *json, const char *name)
{
    open_container(json, name, '{');
}

void cli_json_array(cli_json *json, const char *name)
{
    open_container(json, name, '[');
}

void cli_json_end(cli_json *json, char bracket)
{
    json->depth--;
    if (json->filled[json->depth])
        indent(json);
    fputc(bracket, json->file);
    if (json->depth == 0)
        fputc('\n', json->file);
}

void cli_json_text(cli_json *json, const char *name, const char *text)
{
    next(json, name);
    if (text)
        quote(json->file, text);
    else
        fputs("null", json->file);
}

void cli_json_whole(cli_json *json, const char *name, int64_t value)
{
    next(json, name);
    fprintf(json->file, "%lld", (long long)value);
}

void cli_json_seed(cli_json *json, const char *name, uint64_t value)
{
    next(json, name);
    fprintf(json->file, "%llu", (unsigned long long)value);
}

void cli_json_number(cli_json *json, const char *name, double value, int digits)
{
    next(json, name);
    if (isfinite(value))
        fprintf(json->file, "%.*g", digits, value);
    else
        fputs("null", json->file);
}

void cli_json_bool(cli_json *json, const char *name, bool value)
{
    next(json, name);
    fputs(value ? "true" : "false", json->file);
}
