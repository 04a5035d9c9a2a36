/* jsonl.c: a JSON Lines parser. Lines of a log have mostly the same keys in the same order, so a key is first compared with
 * the one that followed its predecessor in the line before: then it needs neither a scan nor a lookup. */
#include "data/import/jsonl.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

enum { DEEPEST = 64, FIRST_STRANGERS = 64 };

static const char missing[1] = "";

/* Fails at `at`; returns NULL. */
static char *fail_at(lp_jsonl *parser, const char *at, const char *message)
{
    parser->message = message;
    parser->key = LP_JSON_NONE;
    parser->position = at - parser->begin + 1;
    return NULL;
}

static char *fail_key(lp_jsonl *parser, const char *at, int32_t key, const char *message)
{
    fail_at(parser, at, message);
    parser->key = key;
    return NULL;
}

static inline char *skip_blanks(char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

/* ------------------------------------------------------------------------------------------------ strings ---- */

/* The first quote, backslash or control character from `at` on; every line ends with one. */
static inline char *plain_end(char *at)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1F);
    for (;; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i hits = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                    _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
        unsigned mask = (unsigned)_mm_movemask_epi8(hits);
        if (mask)
            return at + __builtin_ctz(mask);
    }
#elif defined(__ARM_NEON)
    for (;; at += 16) {
        uint8x16_t bytes = vld1q_u8((const uint8_t *)at);
        uint8x16_t hits = vorrq_u8(vorrq_u8(vceqq_u8(bytes, vdupq_n_u8('"')), vceqq_u8(bytes, vdupq_n_u8('\\'))),
                                   vcltq_u8(bytes, vdupq_n_u8(0x20)));
        /* Four bits of each byte */
        uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(hits), 4)), 0);
        if (mask)
            return at + __builtin_ctzll(mask) / 4;
    }
#else
    while (*at != '"' && *at != '\\' && (unsigned char)*at >= 0x20)
        at++;
    return at;
#endif
}

static bool read_hex(const char *at, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        *value = *value << 4 | digit;
    }
    return true;
}

static char *write_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    } else {
        *out++ = (char)(0xF0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3F));
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    }
    return out;
}

/* The escape at `at`, a backslash; writes its character at *out and returns the byte after it. */
static char *read_escape(lp_jsonl *parser, char *at, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *simple = at[1] ? strchr(from, at[1]) : NULL;
    if (simple) {
        *(*out)++ = to[simple - from];
        return at + 2;
    }
    uint32_t code, low;
    if (at[1] != 'u' || !read_hex(at + 2, &code))
        return fail_at(parser, at,
                       "this escape is not one of JSON: \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hex digits");
    char *next = at + 6;
    if (code >= 0xD800 && code < 0xDC00 && next[0] == '\\' && next[1] == 'u' && read_hex(next + 2, &low) &&
        low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        next += 6;
    } else if (code >= 0xD800 && code < 0xE000) {
        return fail_at(parser, at, "this escape is half of a surrogate pair: the other half is missing");
    }
    if (code == 0)
        return fail_at(parser, at, "a string contains the character \\u0000");
    *out = write_utf8(*out, code);
    return next;
}

/* The string that begins at `at`, after its quote: at .. *end, unescaped. Returns the byte after the closing quote. */
static inline char *read_string(lp_jsonl *parser, char *at, char **end)
{
    char *read = plain_end(at), *write = read;
    for (;;) {
        if (*read == '"') {
            *end = write;
            return read + 1;
        }
        if (*read != '\\')
            return *read == '\n' ? fail_at(parser, at - 1, "a string that begins here has no closing quote")
                                 : fail_at(parser, read, "a control character in a string must be escaped");
        read = read_escape(parser, read, &write);
        if (!read)
            return NULL;
        char *stop = plain_end(read);
        memmove(write, read, (size_t)(stop - read));
        write += stop - read;
        read = stop;
    }
}

/* ------------------------------------------------------------------------------------------------- values ---- */

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char *read_number(lp_jsonl *parser, char *at)
{
    char *first = at;
    at += *at == '-';
    if (*at == '0')
        at++;
    else
        while (is_digit(*at))
            at++;
    bool good = at > first && is_digit(at[-1]) && !is_digit(*at);
    if (*at == '.') {
        good = good && is_digit(at[1]);
        for (at++; is_digit(*at); at++)
            ;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        good = good && is_digit(*at);
        while (is_digit(*at))
            at++;
    }
    return good ? at : fail_at(parser, first, "this is not a number of JSON, such as -12.5e3");
}

static char *read_object(lp_jsonl *parser, char *at, int32_t key, int depth);

static char *skip_array(lp_jsonl *parser, char *at, int depth);

/* A value whose text is not kept. */
static char *skip_value(lp_jsonl *parser, char *at, int depth);

/* true, false, null, NaN or Infinity. */
static char *read_word(lp_jsonl *parser, char *at, bool *is_missing)
{
    static const struct {
        const char *word;
        size_t size;
        bool missing;
    } words[] = {{"true", 4, false}, {"false", 5, false},    {"null", 4, true},
                 {"NaN", 3, true},   {"Infinity", 8, false}, {"-Infinity", 9, false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strncmp(at, words[i].word, words[i].size) == 0) {
            *is_missing = words[i].missing;
            return at + words[i].size;
        }
    }
    return fail_at(parser, at,
                   "a value is missing or malformed here: expected a string in double quotes, a number, true, "
                   "false, null, an object or an array");
}

/* The value of a key, at `at`. */
static inline char *read_value(lp_jsonl *parser, char *at, int32_t key, int depth)
{
    int32_t column = key >= 0 ? parser->keys->keys[key].column : LP_JSON_NONE;
    char *begin = at, *end;
    bool is_missing = false;
    if (*at == '"') {
        begin = at + 1;
        at = read_string(parser, begin, &end);
    } else if (is_digit(*at) || (*at == '-' && at[1] != 'I')) {
        at = end = read_number(parser, at);
    } else if (*at == '{') {
        if (column != LP_JSON_NONE && !parser->lenient)
            return fail_key(parser, at, key, "is an object: select one of its keys");
        return read_object(parser, at + 1, key, depth + 1);
    } else if (*at == '[') {
        if (column != LP_JSON_NONE && !parser->lenient)
            return fail_key(parser, at, key, "is an array: a column must have strings, numbers, booleans or null");
        is_missing = true;
        end = begin;
        at = skip_array(parser, at + 1, depth + 1);
    } else {
        at = end = read_word(parser, at, &is_missing);
    }
    if (!at)
        return NULL;
    if (parser->growing && key >= 0) {
        if (parser->keys->keys[key].column == LP_JSON_NONE && !lp_json_keys_name(parser->growing, key))
            return fail_at(parser, begin, NULL);
        return at;
    }
    if (column == LP_JSON_NONE)
        return at;
    if (parser->record->begin[column] != missing && !parser->lenient)
        return fail_key(parser, begin, key, "occurs twice in this object");
    if (!is_missing) {
        parser->record->begin[column] = begin;
        parser->record->end[column] = end;
    }
    return at;
}

static char *skip_value(lp_jsonl *parser, char *at, int depth)
{
    return read_value(parser, at, LP_JSON_NONE, depth);
}

static char *skip_array(lp_jsonl *parser, char *at, int depth)
{
    if (depth > DEEPEST)
        return fail_at(parser, at, "values are nested deeper than 64 levels");
    at = skip_blanks(at);
    if (*at == ']')
        return at + 1;
    for (;;) {
        at = skip_value(parser, skip_blanks(at), depth);
        if (!at)
            return NULL;
        at = skip_blanks(at);
        if (*at == ']')
            return at + 1;
        if (*at != ',')
            return fail_at(parser, at, "expected , or ] in an array");
        at++;
    }
}

/* ---------------------------------------------------------------------------------------------------- keys --- */

static size_t stranger_slot(const lp_jsonl *parser, const lp_json_stranger *stranger)
{
    uint64_t hash = (lp_intern_key(stranger->text, stranger->size) ^ (uint64_t)stranger->scope * 0x9E3779B97F4A7C15u) *
                    0xD6E8FEB86659FD93u;
    size_t mask = parser->stranger_capacity - 1, slot = (size_t)(hash ^ hash >> 32) & mask;
    for (;; slot = (slot + 1) & mask) {
        const lp_json_stranger *other = &parser->strangers[slot];
        if (other->line != parser->line || (other->scope == stranger->scope && other->size == stranger->size &&
                                            memcmp(other->text, stranger->text, stranger->size) == 0))
            return slot;
    }
}

static bool grow_strangers(lp_jsonl *parser)
{
    lp_json_stranger *old = parser->strangers;
    size_t old_capacity = parser->stranger_capacity, capacity = old_capacity ? old_capacity * 2 : FIRST_STRANGERS;
    parser->strangers = lp_alloc(capacity, sizeof *parser->strangers);
    if (!parser->strangers) {
        parser->strangers = old;
        return false;
    }
    parser->stranger_capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].line == parser->line)
            parser->strangers[stranger_slot(parser, &old[i])] = old[i];
    lp_free(old);
    return true;
}

/* Records a key of the object `scope` that keys does not have; false if it is there already, or out of memory. */
static bool add_stranger(lp_jsonl *parser, const char *text, size_t size, uint32_t scope)
{
    if (parser->stranger_count * 2 >= parser->stranger_capacity && !grow_strangers(parser)) {
        fail_at(parser, text, NULL);
        return false;
    }
    lp_json_stranger stranger = {text, (uint32_t)size, scope, parser->line};
    size_t slot = stranger_slot(parser, &stranger);
    if (parser->strangers[slot].line == parser->line) {
        fail_at(parser, text - 1, "this key occurs twice in its object");
        return false;
    }
    parser->strangers[slot] = stranger;
    parser->stranger_count++;
    return true;
}

/* Space for the arrays by key. */
static bool reserve_keys(lp_jsonl *parser)
{
    size_t capacity = parser->capacity, need = parser->keys->count;
    return need <= capacity || (lp_reserve(&parser->seen, &capacity, need, sizeof *parser->seen) &&
                                lp_reserve(&parser->next, &parser->capacity, need, sizeof *parser->next));
}

/* Whether the key at `at`, after its quote, is the one that is expected. */
static inline bool is_expected(const lp_jsonl *parser, const char *at, int32_t parent, int32_t expected)
{
    const lp_json_key *key = &parser->keys->keys[expected];
    return expected > 0 && key->parent == parent && key->plain && (size_t)(parser->line_end - at) > key->size &&
           at[key->size] == '"' && memcmp(at, key->text, key->size) == 0;
}

/* The key at `at`, after its quote, of an object with the key `parent`. Returns the byte after the closing quote. */
static inline char *read_key(lp_jsonl *parser, char *at, int32_t parent, uint32_t scope, int32_t *key)
{
    char *text = at, *end;
    *key = parser->next[parser->previous];
    if (is_expected(parser, at, parent, *key)) {
        at += parser->keys->keys[*key].size + 1;
    } else {
        at = read_string(parser, text, &end);
        if (!at)
            return NULL;
        size_t size = (size_t)(end - text);
        *key = parent < 0 ? LP_JSON_NONE : lp_json_keys_find(parser->keys, parent, text, size);
        if (*key < 0 && parent >= 0 && parser->growing) {
            *key = lp_json_keys_add(parser->growing, parent, text, size);
            if (*key < 0 || !reserve_keys(parser))
                return fail_at(parser, text, NULL);
        }
        if (*key < 0)
            return add_stranger(parser, text, size, scope) ? at : NULL;
        parser->next[parser->previous] = *key;
    }
    if (parser->seen[*key] == parser->line)
        return fail_key(parser, text - 1, *key, "occurs twice in this object");
    parser->seen[*key] = parser->line;
    parser->previous = *key;
    return at;
}

/* An object after its brace; `key` is its own key. Returns the byte after the closing brace. */
static char *read_object(lp_jsonl *parser, char *at, int32_t key, int depth)
{
    if (depth > DEEPEST)
        return fail_at(parser, at, "values are nested deeper than 64 levels");
    uint32_t scope = parser->scope++;
    at = skip_blanks(at);
    if (*at == '}')
        return at + 1;
    for (;;) {
        int32_t child;
        if (*at != '"')
            return *at == '\n' ? fail_at(parser, at,
                                         "the object does not end in its line: JSON Lines has one object per line "
                                         "(jq -c . FILE writes it so)")
                               : fail_at(parser, at, "expected a key in double quotes");
        at = read_key(parser, at + 1, key, scope, &child);
        if (!at)
            return NULL;
        at = skip_blanks(at);
        if (*at != ':')
            return fail_at(parser, at, "expected : after a key");
        at = read_value(parser, skip_blanks(at + 1), child, depth);
        if (!at)
            return NULL;
        at = skip_blanks(at);
        if (*at == '}')
            return at + 1;
        if (*at != ',')
            return *at == '\n' ? fail_at(parser, at,
                                         "the object does not end in its line: JSON Lines has one object per "
                                         "line (jq -c . FILE writes it so)")
                               : fail_at(parser, at, "expected , or } in an object");
        at = skip_blanks(at + 1);
    }
}

/* ---------------------------------------------------------------------------------------------------- lines -- */

bool lp_jsonl_init(lp_jsonl *parser, const lp_json_keys *keys, lp_csv_record *record)
{
    *parser = (lp_jsonl){.keys = keys, .record = record};
    parser->columns = lp_alloc(keys->count, sizeof *parser->columns);
    if (!parser->columns || !reserve_keys(parser))
        return false;
    for (size_t i = 1; i < keys->count; i++)
        if (keys->keys[i].column != LP_JSON_NONE)
            parser->columns[parser->column_count++] = keys->keys[i].column;
    return true;
}

void lp_jsonl_clear(lp_jsonl *parser)
{
    lp_free(parser->next);
    lp_free(parser->seen);
    lp_free(parser->columns);
    lp_free(parser->strangers);
    *parser = (lp_jsonl){0};
}

void lp_jsonl_start(lp_jsonl *parser, char *text, size_t size)
{
    parser->begin = text;
    parser->end = text + size;
}

static void next_line(lp_jsonl *parser)
{
    if (++parser->line == 0) { /* lines of 2^32 lines ago must not look like this one */
        memset(parser->seen, 0, parser->capacity * sizeof *parser->seen);
        if (parser->strangers)
            memset(parser->strangers, 0, parser->stranger_capacity * sizeof *parser->strangers);
        parser->line = 1;
    }
    parser->scope = 0;
    parser->previous = LP_JSON_ROOT;
    parser->stranger_count = 0;
    for (int64_t i = 0; parser->record && i < parser->column_count; i++)
        parser->record->begin[parser->columns[i]] = parser->record->end[parser->columns[i]] = missing;
}

lp_jsonl_result lp_jsonl_next(lp_jsonl *parser)
{
    if (parser->begin >= parser->end)
        return LP_JSONL_END;
    next_line(parser);
    /* Found before strings are unescaped, which may write line ends. */
    parser->line_end = memchr(parser->begin, '\n', (size_t)(parser->end - parser->begin));
    char *at = skip_blanks(parser->begin);
    lp_jsonl_result result = LP_JSONL_BLANK;
    if (*at == '{') {
        at = read_object(parser, at + 1, LP_JSON_ROOT, 1);
        at = at ? skip_blanks(at) : NULL;
        if (at && *at != '\n')
            at = fail_at(parser, at, "text follows the object: JSON Lines has one object per line");
        result = at ? LP_JSONL_ROW : LP_JSONL_MALFORMED;
    } else if (*at != '\n') {
        fail_at(parser, at, "this line is not a JSON object: it must begin with {");
        result = LP_JSONL_MALFORMED;
    }
    if (parser->record)
        parser->record->text = parser->begin;
    parser->begin = parser->line_end + 1;
    return result;
}

/* --------------------------------------------------------------------------------------------- discovery ----- */

static char *padded_copy(const char *text, size_t size)
{
    char *copy = lp_alloc(size + LP_CSV_PADDING, 1);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

/* Collects the keys of all lines; *lines counts those that are whole objects. */
static bool collect_keys(lp_json_keys *keys, const char *text, size_t size, int64_t *lines)
{
    char *copy = padded_copy(text, size);
    lp_jsonl parser = {0};
    bool good = copy && lp_jsonl_init(&parser, keys, NULL);
    parser.growing = keys;
    parser.lenient = true;
    if (good)
        lp_jsonl_start(&parser, copy, size);
    for (lp_jsonl_result result; good && (result = lp_jsonl_next(&parser)) != LP_JSONL_END;) {
        *lines += result == LP_JSONL_ROW;
        good = result != LP_JSONL_MALFORMED || parser.message;
    }
    lp_jsonl_clear(&parser);
    lp_free(copy);
    return good;
}

static bool collect_rows(const lp_json_keys *keys, lp_sample *sample, const char *text, size_t size, int64_t lines)
{
    lp_csv_record record = {0};
    lp_jsonl parser = {0};
    int64_t columns = (int64_t)keys->names.count;
    sample->text = padded_copy(text, size);
    bool good = sample->text && lp_sample_reserve(sample, columns, &lines) && lp_csv_record_init(&record, columns) &&
                lp_jsonl_init(&parser, keys, &record);
    parser.lenient = true;
    lp_jsonl_result result;
    if (good)
        lp_jsonl_start(&parser, sample->text, size);
    while (good && sample->row_count < lines && (result = lp_jsonl_next(&parser)) != LP_JSONL_END) {
        good = result != LP_JSONL_MALFORMED || parser.message;
        if (result != LP_JSONL_ROW)
            continue;
        int64_t first = sample->row_count++ * columns;
        memcpy(sample->begin + first, record.begin, (size_t)columns * sizeof *record.begin);
        memcpy(sample->end + first, record.end, (size_t)columns * sizeof *record.end);
    }
    lp_jsonl_clear(&parser);
    lp_csv_record_clear(&record);
    return good;
}

bool lp_jsonl_discover(lp_json_keys *keys, lp_sample *sample, const char *text, size_t size)
{
    int64_t lines = 0;
    return collect_keys(keys, text, size, &lines) && collect_rows(keys, sample, text, size, lines);
}
