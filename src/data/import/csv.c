/* csv.c: a CSV scanner. It marks the delimiters, line ends and quotes of 64 bytes in one bit mask and iterates over
 * its bits, so that plain fields cost a few instructions at any length. Records with a quoted field take a slower
 * path. */
#include "data/import/csv.h"

#include "base/memory.h"
#include "base/system.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/* ------------------------------------------------------------------------------------------ whole records ---- */

/* Offset after the last line end in from .. to, or `otherwise`. */
static size_t last_line_end(const char *text, size_t from, size_t to, size_t otherwise)
{
    const char *found = to > from ? lp_system_find_last(text + from, '\n', to - from) : NULL;
    return found ? (size_t)(found - text) + 1 : otherwise;
}

lp_csv_cut lp_csv_cut_text(const char *text, size_t size, char delimiter)
{
    lp_csv_cut cut = {0, SIZE_MAX};
    size_t at = 0;
    for (;;) {
        const char *found = at < size ? memchr(text + at, '"', size - at) : NULL;
        size_t quote = found ? (size_t)(found - text) : size;
        cut.size = last_line_end(text, at, quote, cut.size);
        if (!found)
            return cut;
        at = quote + 1;
        if (quote > 0 && text[quote - 1] != delimiter && text[quote - 1] != '\n')
            continue;
        for (;;) {
            found = at < size ? memchr(text + at, '"', size - at) : NULL;
            if (!found) {
                cut.quote = quote;
                return cut;
            }
            at = (size_t)(found - text) + 1;
            if (at == size || text[at] != '"')
                break;
            at++;
        }
    }
}

char lp_csv_guess(const char *text, size_t size)
{
    static const char candidates[] = {',', '\t', ';', '|'};
    size_t counts[sizeof candidates] = {0};
    bool quoted = false;
    for (size_t i = 0; i < size && (quoted || text[i] != '\n'); i++) {
        if (text[i] == '"')
            quoted = !quoted;
        for (size_t c = 0; c < sizeof candidates && !quoted; c++)
            counts[c] += text[i] == candidates[c];
    }
    size_t best = 0;
    for (size_t c = 1; c < sizeof candidates; c++)
        if (counts[c] > counts[best])
            best = c;
    return candidates[best];
}

/* ------------------------------------------------------------------------------------------------ scanner ---- */

#ifdef __SSE2__
/* Bit i is set where at[i] is the delimiter, a line end or a quote. */
static inline uint64_t marks(const char *at, char delimiter)
{
    const __m128i a = _mm_set1_epi8(delimiter), b = _mm_set1_epi8('\n'), c = _mm_set1_epi8('"');
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
        __m128i hits =
            _mm_or_si128(_mm_cmpeq_epi8(bytes, a), _mm_or_si128(_mm_cmpeq_epi8(bytes, b), _mm_cmpeq_epi8(bytes, c)));
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(hits) << (16 * i);
    }
    return mask;
}
#elif defined(__ARM_NEON)
static inline uint8x16_t marks_16(const char *at, char delimiter)
{
    uint8x16_t bytes = vld1q_u8((const uint8_t *)at);
    return vorrq_u8(vceqq_u8(bytes, vdupq_n_u8((uint8_t)delimiter)),
                    vorrq_u8(vceqq_u8(bytes, vdupq_n_u8('\n')), vceqq_u8(bytes, vdupq_n_u8('"'))));
}

/* Each byte keeps the bit of its place among eight; sums of neighbours, three times, join eight bytes into one. */
static inline uint64_t marks(const char *at, char delimiter)
{
    const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    uint8x16_t a = vandq_u8(marks_16(at, delimiter), bits), b = vandq_u8(marks_16(at + 16, delimiter), bits);
    uint8x16_t c = vandq_u8(marks_16(at + 32, delimiter), bits), d = vandq_u8(marks_16(at + 48, delimiter), bits);
    uint8x16_t joined = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(joined, joined)), 0);
}
#else
static inline uint64_t marks(const char *at, char delimiter)
{
    uint64_t mask = 0;
    for (int i = 0; i < 64; i++)
        mask |= (uint64_t)(at[i] == delimiter || at[i] == '\n' || at[i] == '"') << i;
    return mask;
}
#endif

bool lp_csv_record_init(lp_csv_record *record, int64_t capacity)
{
    *record = (lp_csv_record){.capacity = capacity};
    record->begin = lp_alloc((size_t)capacity, sizeof *record->begin);
    record->end = lp_alloc((size_t)capacity, sizeof *record->end);
    return record->begin && record->end;
}

void lp_csv_record_clear(lp_csv_record *record)
{
    lp_free(record->begin);
    lp_free(record->end);
}

static void restart(lp_csv_scanner *scanner, char *at)
{
    scanner->at = at;
    scanner->base = at;
    scanner->mask = at < scanner->end ? marks(at, scanner->delimiter) : 0;
}

void lp_csv_start(lp_csv_scanner *scanner, char *text, size_t size, char delimiter)
{
    *scanner = (lp_csv_scanner){.end = text + size, .delimiter = delimiter};
    restart(scanner, text);
}

static void add_field(lp_csv_record *record, const char *begin, const char *end)
{
    if (record->count < record->capacity) {
        record->begin[record->count] = begin;
        record->end[record->count] = end;
    }
    record->count++;
}

static void drop_carriage_return(lp_csv_record *record)
{
    int64_t last = record->count - 1;
    if (last < record->capacity && record->end[last] > record->begin[last] && record->end[last][-1] == '\r')
        record->end[last]--;
}

int64_t lp_csv_line_ends(const char *begin, const char *end)
{
    int64_t count = 0;
    for (; begin < end; begin++)
        count += *begin == '\n';
    return count;
}

/* Unescapes the quoted field at `at`; returns the byte after its closing quote. */
static char *unescape_quoted(lp_csv_scanner *scanner, lp_csv_record *record, char *at)
{
    char *begin = ++at, *write = begin;
    for (;;) {
        char *quote = memchr(at, '"', (size_t)(scanner->end - at));
        if (!quote)
            quote = scanner->end; /* not reached for whole records; keeps malformed input in bounds */
        record->lines += lp_csv_line_ends(at, quote);
        memmove(write, at, (size_t)(quote - at));
        write += quote - at;
        at = quote < scanner->end ? quote + 1 : quote;
        if (at >= scanner->end || *at != '"')
            break;
        *write++ = '"';
        at++;
    }
    add_field(record, begin, write);
    return at;
}

/* Reads the record at scanner->at, which has a quoted field. */
static bool next_quoted(lp_csv_scanner *scanner, lp_csv_record *record)
{
    char *at = scanner->at, *end = scanner->end;
    record->count = 0;
    for (;;) {
        char *field = at;
        bool quoted = *at == '"';
        if (quoted)
            at = unescape_quoted(scanner, record, at);
        char *rest = at;
        while (at < end && *at != scanner->delimiter && *at != '\n')
            at++;
        bool last = at >= end || *at == '\n';
        if (!quoted) {
            add_field(record, field, at);
            if (last)
                drop_carriage_return(record);
        } else if (at > rest && !(last && at == rest + 1 && *rest == '\r') && !record->after_quote) {
            record->after_quote = true;
            record->fault_field = record->count - 1;
        }
        at += at < end;
        if (last)
            break;
    }
    restart(scanner, at);
    return true;
}

bool lp_csv_next(lp_csv_scanner *scanner, lp_csv_record *record)
{
    if (scanner->at >= scanner->end)
        return false;
    record->count = 0;
    record->lines = 1;
    record->after_quote = false;
    const char *field = scanner->at, *base = scanner->base;
    uint64_t mask = scanner->mask;
    const char delimiter = scanner->delimiter;
    for (;;) {
        while (!mask) {
            base += 64;
            mask = marks(base, delimiter);
        }
        const char *mark = base + __builtin_ctzll(mask);
        mask &= mask - 1;
        if (*mark == '"') {
            if (mark == field)
                return next_quoted(scanner, record);
            continue;
        }
        add_field(record, field, mark);
        field = mark + 1;
        if (*mark == '\n')
            break;
    }
    drop_carriage_return(record);
    scanner->at += field - scanner->at;
    scanner->base = base;
    scanner->mask = mask;
    return true;
}
