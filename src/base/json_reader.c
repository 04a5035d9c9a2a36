/* json_reader.c: see json_reader.h. */
#include "base/json_reader.h"

#include "base/assert.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

static void skip_space(lp_json *json)
{
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
        json->at++;
}

bool lp_json_take(lp_json *json, char character)
{
    LP_ASSERT(json->at <= json->end);
    lp_json next = *json;
    skip_space(&next);
    if (next.at == next.end || *next.at != character)
        return false;
    json->at = next.at + 1;
    return true;
}

/* ------------------------------------------------------------------------------------------------ checking ---- */

/* The four digits of an escape \uXXXX; -1: they are not there. */
static int hex4(const char *at, const char *end)
{
    int value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static bool is_high(int unit)
{
    return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_low(int unit)
{
    return unit >= 0xDC00 && unit < 0xE000;
}

/* Bytes of the escape at `at`, which is a backslash; 0: it is not valid. *character is what it stands for. */
static size_t read_escape(const char *at, const char *end, uint32_t *character)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *name = end - at > 1 && at[1] ? strchr(names, at[1]) : NULL;
    if (name) {
        *character = (unsigned char)meanings[name - names];
        return 2;
    }
    int unit = end - at > 1 && at[1] == 'u' ? hex4(at + 2, end) : -1;
    if (unit <= 0 || is_low(unit))
        return 0;
    *character = (uint32_t)unit;
    if (!is_high(unit))
        return 6;
    int low = end - at > 7 && at[6] == '\\' && at[7] == 'u' ? hex4(at + 8, end) : -1;
    *character = 0x10000 + ((uint32_t)(unit - 0xD800) << 10) + (uint32_t)(low - 0xDC00);
    return is_low(low) ? 12 : 0;
}

static bool check_string(lp_json *json)
{
    if (!lp_json_take(json, '"'))
        return false;
    while (json->at < json->end && *json->at != '"') {
        uint32_t character;
        size_t size = (unsigned char)*json->at < 0x20 ? 0
                      : *json->at == '\\'             ? read_escape(json->at, json->end, &character)
                                                      : lp_utf8_size(json->at, json->end);
        if (size == 0)
            return false;
        json->at += size;
    }
    return lp_json_take(json, '"');
}

static bool skip_digits(lp_json *json)
{
    const char *first = json->at;
    while (json->at < json->end && *json->at >= '0' && *json->at <= '9')
        json->at++;
    return json->at > first;
}

static bool check_number(lp_json *json)
{
    lp_json_take(json, '-');
    const char *first = json->at;
    if (!skip_digits(json) || (*first == '0' && json->at > first + 1))
        return false;
    if (json->at < json->end && *json->at == '.') {
        json->at++;
        if (!skip_digits(json))
            return false;
    }
    if (json->at == json->end || (*json->at != 'e' && *json->at != 'E'))
        return true;
    json->at++;
    if (json->at < json->end && (*json->at == '+' || *json->at == '-'))
        json->at++;
    return skip_digits(json);
}

static bool check_word(lp_json *json)
{
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t size = strlen(words[i]);
        if ((size_t)(json->end - json->at) >= size && memcmp(json->at, words[i], size) == 0) {
            json->at += size;
            return true;
        }
    }
    return false;
}

static bool check_value(lp_json *json, int depth)
{
    bool object = lp_json_take(json, '{');
    if (object || lp_json_take(json, '[')) {
        char close = object ? '}' : ']';
        if (depth == MAX_DEPTH)
            return false;
        if (lp_json_take(json, close))
            return true;
        do {
            if ((object && !(check_string(json) && lp_json_take(json, ':'))) || !check_value(json, depth + 1))
                return false;
        } while (lp_json_take(json, ','));
        return lp_json_take(json, close);
    }
    skip_space(json);
    if (json->at == json->end)
        return false;
    return *json->at == '"' ? check_string(json) : check_word(json) || check_number(json);
}

bool lp_json_check(const char *text, size_t size, size_t *where)
{
    lp_json json = {text, text + size};
    bool good = check_value(&json, 0);
    skip_space(&json);
    *where = (size_t)(json.at - text);
    return good && json.at == json.end;
}

bool lp_json_valid(const char *text, size_t size)
{
    size_t where;
    return lp_json_check(text, size, &where);
}

/* ------------------------------------------------------------------------------------------------- reading ---- */

bool lp_json_string(lp_json *json, lp_json_text *text)
{
    lp_json next = *json;
    if (!check_string(&next))
        return false;
    lp_json_take(json, '"');
    *text = (lp_json_text){json->at, next.at - 1};
    json->at = next.at;
    return true;
}

static char *write_utf8(char *out, uint32_t character)
{
    if (character < 0x80) {
        *out++ = (char)character;
        return out;
    }
    int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    *out++ = (char)(first[more] | character >> (6 * more));
    while (more-- > 0)
        *out++ = (char)(0x80 | (character >> (6 * more) & 0x3F));
    return out;
}

void lp_json_decode(lp_json_text text, char *out)
{
    while (text.begin < text.end) {
        uint32_t character = 0;
        if (*text.begin != '\\') {
            *out++ = *text.begin++;
            continue;
        }
        text.begin += read_escape(text.begin, text.end, &character);
        out = write_utf8(out, character); /* never longer than its escape */
    }
    *out = 0;
}

bool lp_json_integer(lp_json *json, int64_t *value)
{
    lp_json next = *json, digits;
    bool negative = lp_json_take(&next, '-'), good = true;
    skip_space(&next);
    digits = next;
    good = check_number(&next);
    *value = 0;
    for (; good && digits.at < next.at; digits.at++)
        good = *digits.at >= '0' && *digits.at <= '9' && !__builtin_mul_overflow(*value, 10, value) &&
               !__builtin_add_overflow(*value, *digits.at - '0', value);
    *value = negative ? -*value : *value;
    if (good)
        json->at = next.at;
    return good;
}

bool lp_json_any(lp_json *json, lp_json_text *text)
{
    lp_json next = *json;
    skip_space(&next);
    const char *begin = next.at;
    if (!check_value(&next, 0))
        return false;
    *text = (lp_json_text){begin, next.at};
    json->at = next.at;
    return true;
}

bool lp_json_number(lp_json *json, double *value)
{
    lp_json next = *json;
    lp_json_text text;
    if (!lp_json_any(&next, &text))
        return false;
    bool null = text.end - text.begin == 4 && memcmp(text.begin, "null", 4) == 0;
    if (null)
        *value = NAN;
    if (!null && !lp_number_parse(text.begin, text.end, value))
        return false;
    json->at = next.at;
    return true;
}

bool lp_json_bool(lp_json *json, bool *value)
{
    lp_json next = *json;
    lp_json_text text;
    if (!lp_json_any(&next, &text) || (*text.begin != 't' && *text.begin != 'f'))
        return false;
    *value = *text.begin == 't';
    json->at = next.at;
    return true;
}

size_t lp_json_members(const lp_json *json)
{
    lp_json next = *json;
    size_t count = 0;
    if (!lp_json_take(&next, '{') || lp_json_take(&next, '}'))
        return 0;
    do {
        if (!check_string(&next) || !lp_json_take(&next, ':') || !check_value(&next, 0))
            return 0;
        count++;
    } while (lp_json_take(&next, ','));
    return count;
}

int lp_json_count(lp_json json)
{
    lp_json_text text;
    int count = 0;
    if (!lp_json_take(&json, '[') || lp_json_take(&json, ']'))
        return 0;
    do
        count += lp_json_any(&json, &text);
    while (lp_json_take(&json, ','));
    return count;
}
