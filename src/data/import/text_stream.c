/* text_stream.c: see text_stream.h. The encoding is that of a byte-order mark, UTF-16 if every other byte is 0, UTF-8 if the first
 * RAW_SIZE bytes are, and otherwise the page that fits (code_page.h). A text that is UTF-8 with a JSON object in each line
 * passes through without a copy. */
#include "data/import/text_stream.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/import/code_page.h"
#include "data/import/file_kind.h"
#include "data/import/text_fold.h"

#include <string.h>

enum { RAW_SIZE = 1 << 18, TEXT_SIZE = 1 << 18 };

const char *const lp_text_encoding_names[] = {"utf-8",        "utf-16le",     "utf-16be", "windows-1250",
                                              "windows-1251", "windows-1252", "latin-1",  NULL};

/* ----------------------------------------------------------------------------------------------- encodings ---- */

static size_t write_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    size_t size = code < 0x10000 ? 3 : 4;
    out[0] = (char)(size == 3 ? 0xE0 | code >> 12 : 0xF0 | code >> 18);
    if (size == 4)
        out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[size - 2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[size - 1] = (char)(0x80 | (code & 0x3F));
    return size;
}

static unsigned unit_at(const lp_text_stream *s, size_t at)
{
    const unsigned char *p = (const unsigned char *)s->raw + at;
    return s->encoding == LP_UTF_16LE ? (unsigned)(p[0] | p[1] << 8) : (unsigned)(p[0] << 8 | p[1]);
}

/* Decodes one character of the raw bytes; returns its size in UTF-8, or 0 if more bytes are needed. */
static size_t decode_one(lp_text_stream *s, char *out)
{
    if (s->encoding >= LP_WINDOWS_1250 || s->encoding == LP_UTF_8) {
        if (s->left == 0)
            return 0;
        unsigned code = (unsigned char)s->raw[s->at++];
        s->left--;
        if (s->encoding == LP_UTF_8) {
            *out = (char)code;
            return 1;
        }
        return write_utf8(out,
                          lp_code_page_character((lp_code_page)(s->encoding - LP_WINDOWS_1250), (unsigned char)code));
    }
    if (s->left < 2) {
        s->left = s->ended ? 0 : s->left; /* half of a character at the end is dropped */
        return 0;
    }
    unsigned code = unit_at(s, s->at);
    size_t used = 2;
    if (code >= 0xD800 && code < 0xDC00) {
        if (s->left < 4 && !s->ended)
            return 0;
        unsigned low = s->left >= 4 ? unit_at(s, s->at + 2) : 0;
        bool pair = low >= 0xDC00 && low < 0xE000;
        code = pair ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
        used = pair ? 4 : 2;
    } else if (code >= 0xDC00 && code < 0xE000) {
        code = 0xFFFD;
    }
    s->at += used;
    s->left -= used;
    return write_utf8(out, code);
}

/* UTF-16 without a mark: of a text with mostly Latin letters, one byte of each character is 0. */
static bool looks_like_utf16(const unsigned char *raw, size_t size, bool first_zero)
{
    size_t zeros = 0, others = 0, seen = size < 512 ? size / 2 : 256;
    for (size_t i = 0; i < seen; i++) {
        zeros += raw[2 * i + !first_zero] == 0;
        others += raw[2 * i + first_zero] == 0;
    }
    return seen > 2 && others * 20 <= seen && zeros * 10 >= seen * 7;
}

static bool is_utf8(const char *raw, size_t size, bool ended)
{
    const char *end = raw + size;
    if (!ended) /* the last character may be cut */
        for (int i = 0; i < 4 && end > raw && (unsigned char)end[-1] >= 0x80; i++)
            end--;
    return lp_text_is_utf8(raw, end);
}

/* LP_TEXT_ENCODINGS: none of them. */
static lp_text_encoding find_encoding(lp_text_stream *s)
{
    const unsigned char *raw = (const unsigned char *)s->raw;
    size_t size = s->left;
    if (size >= 2 && ((raw[0] == 0xFF && raw[1] == 0xFE) || (raw[0] == 0xFE && raw[1] == 0xFF)) &&
        !(size >= 4 && raw[2] == 0xFF && raw[3] == 0xFF))
        return raw[0] == 0xFF ? LP_UTF_16LE : LP_UTF_16BE;
    if (size >= 3 && memcmp(raw, "\xEF\xBB\xBF", 3) == 0)
        return LP_UTF_8;
    if (lp_file_kind_check(s->raw, size, "", NULL) != LAPSE_OK)
        return LP_UTF_8;
    if (looks_like_utf16(raw, size, false))
        return LP_UTF_16LE;
    if (looks_like_utf16(raw, size, true))
        return LP_UTF_16BE;
    if (memchr(raw, 0, size) || is_utf8(s->raw, size, s->ended))
        return LP_UTF_8;
    return (lp_text_encoding)(LP_WINDOWS_1250 + lp_code_page_find(raw, size));
}

static void skip_mark(lp_text_stream *s)
{
    bool wide = s->encoding == LP_UTF_16LE || s->encoding == LP_UTF_16BE;
    if (wide && s->left >= 2 && unit_at(s, s->at) == 0xFEFF) {
        s->at += 2;
        s->left -= 2;
    }
}

static lapse_status read_name(lp_text_stream *s, const char *name, lapse_error *error)
{
    static const struct {
        const char *name;
        lp_text_encoding encoding;
    } others[] = {{"utf8", LP_UTF_8},          {"utf-8-sig", LP_UTF_8},          {"ascii", LP_UTF_8},
                  {"cp1250", LP_WINDOWS_1250}, {"cp1251", LP_WINDOWS_1251},      {"cp1252", LP_WINDOWS_1252},
                  {"latin1", LP_LATIN_1},      {"iso-8859-1", LP_LATIN_1},       {"iso8859-1", LP_LATIN_1},
                  {"utf16", LP_UTF_16LE},      {"windows1252", LP_WINDOWS_1252}, {"utf-16", LP_UTF_16LE}};
    char folded[40];
    lp_text_fold(name, name + strlen(name), folded, sizeof folded);
    int index = lp_name_index(folded, lp_text_encoding_names);
    for (size_t i = 0; i < sizeof others / sizeof *others && index < 0; i++)
        if (strcmp(others[i].name, folded) == 0)
            index = (int)others[i].encoding;
    if (index < 0)
        return lp_fail(error, LAPSE_ERROR_USAGE,
                       "encoding is '%.40s'; it must be utf-8, utf-16le, utf-16be, windows-1250, windows-1251, "
                       "windows-1252 or latin-1; iconv converts others",
                       name);
    s->encoding = (lp_text_encoding)index;
    if (s->encoding == LP_UTF_16LE && s->left >= 2 && memcmp(s->raw, "\xFE\xFF", 2) == 0)
        s->encoding = LP_UTF_16BE;
    return LAPSE_OK;
}

/* -------------------------------------------------------------------------------------------------- reading --- */

static lapse_status fill_raw(lp_text_stream *s, lapse_error *error)
{
    size_t count;
    if (s->ended)
        return LAPSE_OK;
    if (s->left)
        memmove(s->raw, s->raw + s->at, s->left);
    s->at = 0;
    LP_TRY(lp_source_read(s->source, s->raw + s->left, RAW_SIZE - s->left, &count, error));
    s->ended = count < RAW_SIZE - s->left;
    s->left += count;
    return LAPSE_OK;
}

/* Decodes until the text buffer is full, or to the end. */
static lapse_status fill_text(lp_text_stream *s, lapse_error *error)
{
    if (s->text_left)
        memmove(s->text, s->text + s->text_at, s->text_left);
    s->text_at = 0;
    while (s->text_left + 4 <= TEXT_SIZE) {
        size_t size = decode_one(s, s->text + s->text_left);
        s->text_left += size;
        if (size == 0 && s->ended)
            break;
        if (size == 0)
            LP_TRY(fill_raw(s, error));
    }
    return LAPSE_OK;
}

/* -------------------------------------------------------------------------------------------------- objects --- */

/* One byte of text between and in the elements; returns the number of bytes to write, 0 or 1. */
static int filter(lp_text_stream *s, char c, char *out)
{
    *out = c == '\n' || c == '\r' ? ' ' : c;
    if (s->done)
        return 0;
    if (!s->in_element) {
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',';
        if (s->array && c == ']')
            s->done = true;
        if (blank || s->done) {
            bool owed = s->owes_line;
            s->owes_line = false;
            *out = '\n';
            return owed;
        }
        s->in_element = true;
        s->depth = 0;
    }
    if (s->in_string) {
        s->in_string = s->escaped || c != '"';
        s->escaped = !s->escaped && c == '\\';
        return 1;
    }
    s->in_string = c == '"';
    s->depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (s->depth <= 0 && (c == '}' || c == ']' || c == ',' || c == '\n')) {
        s->in_element = false;
        s->owes_line = true;
        if (c == ',' || (c == ']' && s->depth < 0)) { /* after a number or a string */
            s->done = c == ']' && s->array;
            s->owes_line = false;
            *out = '\n';
        }
    }
    return 1;
}

/* Where the elements begin: after the bracket of an array at the top, or of the first array of objects in objects. */
typedef struct shape {
    bool objects, array;
    size_t skip;
} shape;

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static shape find_shape(const char *text, size_t size, bool whole)
{
    enum { DEEPEST = 4 };
    const char *end = text + size, *first = text;
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        first += 3;
    first = skip_blanks(first, end);
    if (first == end || (*first != '[' && *first != '{'))
        return (shape){0};
    if (*first == '[') {
        const char *second = skip_blanks(first + 1, end);
        return second < end && *second == '{' ? (shape){true, true, (size_t)(first + 1 - text)} : (shape){0};
    }
    const char *line_end = memchr(first, '\n', (size_t)(end - first)), *array = NULL, *stop = NULL;
    int depth = 0, within = 0; /* the depth in the array */
    bool string = false, several = false;
    for (const char *at = first; at < end && !stop; at++) {
        if (string) {
            at += *at == '\\';
            string = at >= end || *at != '"';
            continue;
        }
        string = *at == '"';
        if (*at == '[' && !array && depth <= DEEPEST) {
            const char *next = skip_blanks(at + 1, end);
            array = next < end && *next == '{' ? at : NULL;
            within = array ? depth + 1 : within;
        }
        several = several || (array && *at == ',' && depth == within);
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        stop = depth == 0 ? at + 1 : NULL;
    }
    bool alone = !stop ? true : whole && skip_blanks(stop, end) == end;
    if (array && alone && several)
        return (shape){true, true, (size_t)(array + 1 - text)};
    return (shape){.objects = stop && line_end && stop > line_end};
}

/* ------------------------------------------------------------------------------------------------- interface -- */

/* The shape of the lines, and the header that they do not have. */
static lapse_status find_lines(lp_text_stream *s, const char *text, size_t size, lapse_error *error)
{
    s->shape = lp_line_shape_find(text, size);
    if (s->shape.names && !lp_buffer_add(&s->line, s->shape.names, strlen(s->shape.names)))
        return lp_fail_memory(error, "the beginning of the text", strlen(s->shape.names));
    return LAPSE_OK;
}

lapse_status lp_text_open(lp_text_stream *s, lp_source *source, const char *encoding, const char *preferred, bool logs,
                          lapse_error *error)
{
    *s = (lp_text_stream){.source = source};
    s->raw = lp_alloc_raw(RAW_SIZE, 1);
    if (!s->raw)
        return lp_fail_memory(error, "the beginning of the text", RAW_SIZE);
    LP_TRY(fill_raw(s, error));
    if (encoding)
        LP_TRY(read_name(s, encoding, error));
    else
        s->encoding = find_encoding(s);
    if (!encoding && preferred && s->encoding >= LP_WINDOWS_1250)
        LP_TRY(read_name(s, preferred, error));
    if (s->encoding == LP_TEXT_ENCODINGS)
        return lp_fail_at(
            error, LAPSE_ERROR_INPUT, source->name, 0, 0,
            "this is neither UTF-8 nor an encoding of one byte for each character; if it is Chinese, paste: "
            "iconv -f gb18030 -t utf-8 '%.100s' | lapse import - -o DATASET (Japanese: cp932, Korean: cp949)",
            source->name);
    skip_mark(s);
    bool utf8 = s->encoding == LP_UTF_8;
    shape found = utf8 ? find_shape(s->raw + s->at, s->left, s->ended) : (shape){0};
    if (utf8 && logs && !found.objects)
        LP_TRY(find_lines(s, s->raw + s->at, s->left, error));
    s->direct = utf8 && !found.objects && s->shape.form == LP_LINES_PLAIN;
    if (s->direct)
        return LAPSE_OK;
    s->text = lp_alloc_raw(TEXT_SIZE, 1);
    if (!s->text)
        return lp_fail_memory(error, "the beginning of the text", TEXT_SIZE);
    LP_TRY(fill_text(s, error));
    found = find_shape(s->text, s->text_left, s->ended && s->left == 0);
    s->objects = found.objects;
    s->array = found.array;
    s->text_at += found.skip;
    s->text_left -= found.skip;
    return logs && !s->objects && !utf8 ? find_lines(s, s->text, s->text_left, error) : LAPSE_OK;
}

/* Puts the next line into s->line in its new form; a line that the text buffer cannot hold is cut. *more: there was one. */
static lapse_status next_line(lp_text_stream *s, bool *more, lapse_error *error)
{
    const char *end = s->text_left ? memchr(s->text + s->text_at, '\n', s->text_left) : NULL;
    if (!end) {
        LP_TRY(fill_text(s, error));
        end = s->text_left ? memchr(s->text, '\n', s->text_left) : NULL;
    }
    *more = s->text_left > 0;
    if (!*more)
        return LAPSE_OK;
    const char *begin = s->text + s->text_at, *stop = end ? end : begin + s->text_left;
    s->line.size = s->line_at = 0;
    if (!lp_line_shape_write(&s->shape, begin, stop, &s->line))
        return lp_fail_memory(error, "a line", (size_t)(stop - begin));
    size_t used = (size_t)(stop - begin) + (end != NULL);
    s->text_at += used;
    s->text_left -= used;
    return LAPSE_OK;
}

static lapse_status read_lines(lp_text_stream *s, char *into, size_t size, size_t *count, lapse_error *error)
{
    for (bool more = true; more && *count < size;) {
        size_t left = s->line.size - s->line_at, part = left < size - *count ? left : size - *count;
        if (left == 0) {
            LP_TRY(next_line(s, &more, error));
            continue;
        }
        memcpy(into + *count, s->line.data + s->line_at, part);
        *count += part;
        s->line_at += part;
    }
    return LAPSE_OK;
}

/* The text as it comes from the source, after the bytes that were read already. */
static lapse_status read_direct(lp_text_stream *s, char *into, size_t size, size_t *count, lapse_error *error)
{
    size_t part = s->left < size ? s->left : size;
    memcpy(into, s->raw + s->at, part);
    s->at += part;
    s->left -= part;
    *count = part;
    if (part == size || s->ended)
        return LAPSE_OK;
    LP_TRY(lp_source_read(s->source, into + part, size - part, count, error));
    *count += part;
    return LAPSE_OK;
}

lapse_status lp_text_read(lp_text_stream *s, char *into, size_t size, size_t *count, lapse_error *error)
{
    *count = 0;
    if (s->direct)
        return read_direct(s, into, size, count, error);
    if (s->shape.form != LP_LINES_PLAIN)
        return read_lines(s, into, size, count, error);
    while (*count < size) {
        if (s->text_left == 0)
            LP_TRY(fill_text(s, error));
        if (s->text_left == 0)
            return LAPSE_OK;
        if (!s->objects) {
            size_t part = s->text_left < size - *count ? s->text_left : size - *count;
            memcpy(into + *count, s->text + s->text_at, part);
            *count += part;
            s->text_at += part;
            s->text_left -= part;
            continue;
        }
        while (s->text_left > 0 && *count < size) {
            *count += (size_t)filter(s, s->text[s->text_at++], into + *count);
            s->text_left--;
        }
    }
    return LAPSE_OK;
}

void lp_text_close(lp_text_stream *s)
{
    lp_free(s->raw);
    lp_free(s->text);
    lp_buffer_clear(&s->line);
    *s = (lp_text_stream){0};
}
