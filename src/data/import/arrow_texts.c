/* arrow_texts.c: maps strings in Arrow columns to ids: by their number, if they are digits; through a cache of recent names; or
 * by the string table of the worker. What does not fit a column is not tried again for some batches. */
#include "data/import/arrow_texts.h"

#include "base/system.h"

#include <string.h>

enum {
    AHEAD = LP_ARROW_STEP,
    WORDS = 16,       /* bytes of the texts that are cached */
    RECENT_BITS = 12, /* the cache has 1 << RECENT_BITS entries */
    TRIED = 512,      /* rows after which a cache that misses many is given up for this batch and PAUSE others */
    PAUSE = 32,
    NUMBER_PAUSE = 4,
    NUMBERS = 1 << 16, /* of by_number; there may be more, but not above SPARSE for each name */
    SPARSE = 16
};

#define NO_TEXT UINT64_MAX /* in UTF-8 no byte is 255 */

uint32_t lp_arrow_intern(lp_rows_names *table, const char *begin, const char *end, uint64_t position)
{
    size_t size = (size_t)(end - begin);
    return lp_rows_name(table, begin, size, lp_intern_key(begin, size), position);
}

/* An element of LP_ARROW_TEXT whose offsets are checked. */
static inline void checked_text(const lp_arrow_values *values, int64_t i, const char **begin, const char **end)
{
    i += values->offset;
    if (values->type.size == 4) {
        int32_t at[2];
        memcpy(at, values->data + i * 4, sizeof at);
        *begin = values->text + at[0];
        *end = values->text + at[1];
    } else {
        int64_t at[2];
        memcpy(at, values->data + i * 8, sizeof at);
        *begin = values->text + at[0];
        *end = values->text + at[1];
    }
}

/* Texts that are looked up together, so that cache misses overlap. */
struct texts {
    int count;
    uint64_t word[AHEAD][2]; /* the bytes of a text, padded by zeros; if they are more than WORDS: {0, NO_TEXT} */
    lp_intern_query query[AHEAD];
};

/* The text of a row that is checked; a missing one is "". WORDS bytes can be read of it. */
static inline void take_text(const lp_arrow_values *values, int64_t i, const char **begin, size_t *size)
{
    static const char empty[WORDS];
    const char *end = *begin = empty;
    if (values->valid && lp_arrow_missing(values, i))
        ;
    else if (values->type.kind == LP_ARROW_VIEW)
        lp_arrow_view(values, i, begin, &end);
    else
        checked_text(values, i, begin, &end);
    *size = (size_t)(end - *begin);
}

#define FIRST(n) (UINT64_MAX >> (64 - 8 * (n)))

/* The first bytes of a word, as a number: none of them for -8 to 0, all for 8 to 16. */
static inline uint64_t first_bytes(uint64_t word, int64_t bytes)
{
    static const uint64_t masks[] = {
        0,        0,        0,        0,        0,        0,        0,        0,        0,
        FIRST(1), FIRST(2), FIRST(3), FIRST(4), FIRST(5), FIRST(6), FIRST(7), FIRST(8), /* 1 to 8 */
        FIRST(8), FIRST(8), FIRST(8), FIRST(8), FIRST(8), FIRST(8), FIRST(8), FIRST(8)};
    return lp_little_endian(word) & masks[bytes + 8];
}

/* The words of a text that is long, or close to the end of what can be read. */
static void take_rare(const char *begin, size_t size, uint64_t word[2])
{
    uint64_t bytes[2] = {0, NO_TEXT};
    if (size <= WORDS) {
        bytes[1] = 0;
        memcpy(bytes, begin, size);
    }
    word[0] = lp_little_endian(bytes[0]);
    word[1] = lp_little_endian(bytes[1]);
}

/* Takes the texts of rows row[0 .. few-1]. The type is that of the column: where it is a constant, the loop is short. */
static inline void take_of_type(const lp_arrow_values *values, lp_arrow_type type, const int32_t *row, int64_t first,
                                int few, struct texts *texts)
{
    lp_arrow_values column = *values; /* a copy, because what is written might be in *values */
    bool views = type.kind == LP_ARROW_VIEW;
    const char *limit = views ? NULL : column.text + column.text_size;
    column.type = type;
    for (int t = 0; t < few; t++) {
        const char *begin;
        size_t size;
        take_text(&column, first + row[t], &begin, &size);
        if (views ? size <= 12 : size <= WORDS && limit - begin >= WORDS) {
            uint64_t low, high = 0;
            memcpy(&low, begin, 8);
            memcpy(&high, begin + 8, views ? 4 : 8); /* an inlined view has 12 bytes */
            texts->word[t][0] = first_bytes(low, (int64_t)size);
            texts->word[t][1] = first_bytes(high, (int64_t)size - 8);
        } else {
            take_rare(begin, size, texts->word[t]);
        }
        texts->query[t].name = begin;
        texts->query[t].size = size;
    }
}

/* Takes the texts of rows row[done ... count-1], at most AHEAD. */
static void take_texts(const lp_arrow_values *values, const int32_t *row, int64_t first, int64_t done, int64_t count,
                       struct texts *texts)
{
    int few = (int)(count - done < AHEAD ? count - done : AHEAD);
    texts->count = few > 0 ? few : 0;
    if (values->type.kind == LP_ARROW_VIEW)
        take_of_type(values, (lp_arrow_type){.kind = LP_ARROW_VIEW}, row + done, first, few, texts);
    else if (values->type.size == 4)
        take_of_type(values, (lp_arrow_type){.kind = LP_ARROW_TEXT, .size = 4}, row + done, first, few, texts);
    else
        take_of_type(values, (lp_arrow_type){.kind = LP_ARROW_TEXT, .size = 8}, row + done, first, few, texts);
}

/* The offsets of strings of adjacent rows row[0 .. few-1]: string t is text[at[t] .. at[t + 1] - 1], none is missing, and
 * WORDS bytes can be read of each. False: the column or these rows are of another kind. */
static inline bool take_spans(const lp_arrow_values *values, const int32_t *row, int64_t first, int few,
                              int64_t at[AHEAD + 1])
{
    if (values->type.kind != LP_ARROW_TEXT || values->valid || row[few - 1] - row[0] != few - 1)
        return false;
    const uint8_t *offsets = values->data + (values->offset + first + row[0]) * values->type.size;
    if (values->type.size == 4) {
        for (int t = 0; t <= few; t++) {
            int32_t narrow;
            memcpy(&narrow, offsets + t * 4, sizeof narrow);
            at[t] = narrow;
        }
    } else {
        for (int t = 0; t <= few; t++)
            memcpy(&at[t], offsets + t * 8, sizeof *at);
    }
    return values->text_size - at[few - 1] >= WORDS;
}

/* The pair of entries that a text may be in. */
static inline lp_arrow_recent *recent_pair(lp_arrow_recent *recent, uint64_t low, uint64_t high)
{
    uint64_t hash = (low ^ high * 0xD6E8FEB86659FD93u) * 0x9E3779B97F4A7C15u;
    return &recent[hash >> (65 - RECENT_BITS) << 1];
}

/* The id of a text in its pair. False: it is not there. */
static inline bool recent_id(const lp_arrow_recent *pair, uint64_t low, uint64_t high, uint32_t *id)
{
    bool second = ((pair[1].word[0] ^ low) | (pair[1].word[1] ^ high)) == 0; /* no branch: unpredictable */
    *id = pair[second].id;
    return ((pair[second].word[0] ^ low) | (pair[second].word[1] ^ high)) == 0;
}

/* The ids of a few strings that are in the cache; the others become LP_INTERN_NONE. Returns the number of these. */
static int find_recent(lp_arrow_recent *recent, const char *text, const int64_t *at, int few, uint32_t *ids)
{
    int missed = 0;
    for (int t = 0; t < few; t++) {
        int64_t size = at[t + 1] - at[t];
        uint64_t low, high;
        memcpy(&low, text + at[t], sizeof low);
        memcpy(&high, text + at[t] + 8, sizeof high);
        bool fits = size <= WORDS;
        size = fits ? size : WORDS;
        low = first_bytes(low, size);
        high = first_bytes(high, size - 8);
        bool found = recent_id(recent_pair(recent, low, high), low, high, &ids[t]) && fits;
        ids[t] = found ? ids[t] : LP_INTERN_NONE;
        missed += !found;
    }
    return missed;
}

/* Interns the text of a row that may not be in the cache, and caches it in the first entry of its pair. */
static uint32_t add_recent(lp_arrow_recent *recent, lp_rows_names *table, const lp_arrow_values *values, int64_t i,
                           uint64_t position)
{
    const char *begin;
    size_t size;
    uint64_t word[2];
    uint32_t id;
    take_text(values, i, &begin, &size);
    take_rare(begin, size, word);
    lp_arrow_recent *pair = recent_pair(recent, word[0], word[1]);
    if (recent_id(pair, word[0], word[1], &id)) /* since another row of these few */
        return id;
    id = lp_arrow_intern(table, begin, begin + size, position);
    if (size <= WORDS && id != LP_INTERN_NONE) {
        pair[1] = pair[0];
        pair[0] = (lp_arrow_recent){{word[0], word[1]}, id};
    }
    return id;
}

/* Ids of few names, or of rows with the same name: through the cache. Stops if it misses many. Returns the number of
 * rows done; -1 when out of memory. */
static int64_t ids_by_cache(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values,
                            const int32_t *row, int64_t first, int64_t count, uint64_t position, lp_arrow_ahead *ahead,
                            uint32_t *ids)
{
    struct texts texts;
    int64_t done = 0, misses = 0, at[AHEAD + 1];
    if (!names->recent) {
        names->recent = lp_alloc((size_t)1 << RECENT_BITS, sizeof *names->recent);
        if (!names->recent)
            return -1;
        memset(names->recent, 0xFF, sizeof *names->recent << RECENT_BITS);
    }
    while (done < count && (done < TRIED || misses * 4 <= done)) {
        int few = (int)(count - done < AHEAD ? count - done : AHEAD), missed = 0;
        lp_arrow_ahead_step(ahead);
        if (take_spans(values, row + done, first, few, at)) {
            missed = find_recent(names->recent, values->text, at, few, ids + done);
        } else {
            take_texts(values, row, first, done, count, &texts);
            for (int t = 0; t < few; t++) {
                uint64_t low = texts.word[t][0], high = texts.word[t][1];
                bool found = recent_id(recent_pair(names->recent, low, high), low, high, &ids[done + t]);
                ids[done + t] = found ? ids[done + t] : LP_INTERN_NONE;
                missed += !found;
            }
        }
        for (int64_t i = done; missed > 0 && i < done + few; i++) {
            if (ids[i] != LP_INTERN_NONE)
                continue;
            ids[i] = add_recent(names->recent, table, values, first + row[i], position + (uint64_t)i);
            if (ids[i] == LP_INTERN_NONE)
                return -1;
        }
        misses += missed;
        done += few;
    }
    if (misses * 4 > done)
        names->pause = PAUSE;
    return done;
}

/* Begins the lookup of texts in a table that is not empty. */
static void begin_texts(const lp_rows_names *table, struct texts *texts)
{
    const lp_intern intern = table->intern; /* a copy, because what is written might be in it */
    for (int t = 0; t < texts->count; t++) {
        lp_intern_query *query = &texts->query[t];
        query->key = query->size <= LP_INTERN_SHORT ? texts->word[t][0] : lp_intern_key(query->name, query->size);
        lp_intern_begin(&intern, query);
    }
}

/* Ids of many names, whose table exceeds the cache of the CPU: the slots of the next rows are prefetched before those of
 * these rows are read. */
static bool ids_by_table(lp_rows_names *table, const lp_arrow_values *values, const int32_t *row, int64_t first,
                         int64_t count, uint64_t position, lp_arrow_ahead *ahead, uint32_t *ids)
{
    struct texts texts[2];
    take_texts(values, row, first, 0, count, &texts[0]);
    begin_texts(table, &texts[0]);
    for (int64_t done = 0; done < count; done += AHEAD) {
        const struct texts *these = &texts[done / AHEAD % 2];
        struct texts *next = &texts[(done / AHEAD + 1) % 2];
        lp_arrow_ahead_step(ahead);
        take_texts(values, row, first, done + AHEAD, count, next);
        begin_texts(table, next);
        bool all = lp_intern_find(&table->intern, these->query, these->count, ids + done);
        for (int t = 0; !all && t < these->count; t++) {
            const lp_intern_query *query = &these->query[t];
            uint64_t at = position + (uint64_t)(done + t);
            if (ids[done + t] == LP_INTERN_NONE)
                ids[done + t] = lp_rows_name(table, query->name, query->size, query->key, at);
            if (ids[done + t] == LP_INTERN_NONE)
                return false;
        }
    }
    return true;
}

/* --------------------------------------------------------------------------------- ids of small numbers ---- */

/* The number of a text of 1 to 8 digits without a leading zero, given its first 8 bytes; NO_TEXT: it is none. Digits are
 * joined to pairs, then all pairs to the number. */
static inline uint64_t decimal(uint64_t word, uint64_t size)
{
    const uint64_t zeros = 0x3030303030303030u, pairs = 0x000000FF000000FFu;
    uint64_t digit = (word ^ zeros) << ((64 - 8 * size) & 63);
    bool leading = (word & 0xFF) == '0' && size > 1;
    bool other = (((digit + 0x0606060606060606u) | digit) & 0xF0F0F0F0F0F0F0F0u) != 0 || size - 1 >= LP_INTERN_SHORT;
    digit = digit * 10 + (digit >> 8);
    uint64_t number =
        ((digit & pairs) * (100 + (UINT64_C(1000000) << 32)) + (digit >> 16 & pairs) * (1 + (UINT64_C(10000) << 32))) >>
        32;
    return number | -(uint64_t)(other | leading); /* no branch, so that the loop is short */
}

bool lp_arrow_number_slot(lp_arrow_names *names, const lp_rows_names *table, uint64_t number, uint32_t **slot)
{
    *slot = NULL;
    if (number >= names->number_count) {
        if (number >= NUMBERS && number / SPARSE >= table->intern.count)
            return true;
        size_t count = names->number_count ? names->number_count : NUMBERS;
        while (count <= number)
            count *= 2;
        uint32_t *larger = lp_grow(names->by_number, count, sizeof *larger);
        if (!larger)
            return false;
        memset(larger + names->number_count, 0xFF, (count - names->number_count) * sizeof *larger);
        names->by_number = larger;
        names->number_count = count;
    }
    *slot = &names->by_number[number];
    return true;
}

/* The numbers that a few texts stand for; NO_TEXT: the text is not a number. */
static inline void take_numbers(const lp_arrow_values *values, const int32_t *row, int64_t first, int few,
                                uint64_t *number)
{
    bool views = values->type.kind == LP_ARROW_VIEW;
    const char *text = values->text, *limit = views ? NULL : text + values->text_size, *begin;
    int64_t at[AHEAD + 1];
    uint64_t word;
    size_t size;
    if (take_spans(values, row, first, few, at)) {
        for (int t = 0; t < few; t++) {
            memcpy(&word, text + at[t], sizeof word);
            number[t] = decimal(lp_little_endian(word), (uint64_t)(at[t + 1] - at[t]));
        }
        return;
    }
    for (int t = 0; t < few; t++) {
        take_text(values, first + row[t], &begin, &size);
        number[t] = NO_TEXT;
        if (size - 1 < LP_INTERN_SHORT && (views || limit - begin >= LP_INTERN_SHORT)) {
            memcpy(&word, begin, sizeof word);
            number[t] = decimal(lp_little_endian(word), size);
        }
    }
}

/* The ids that are known of a few numbers; the others become LP_INTERN_NONE. False: there are some. A short loop, so that
 * cache misses overlap. */
static inline bool find_numbers(const lp_arrow_names *names, const uint64_t *number, int few, uint32_t *ids)
{
    const uint32_t *by_number = names->by_number; /* copies, because what is written might be in them */
    size_t number_count = names->number_count;
    bool all = true;
    for (int t = 0; t < few; t++) {
        ids[t] = number[t] < number_count ? by_number[number[t]] : LP_INTERN_NONE;
        all &= ids[t] != LP_INTERN_NONE;
    }
    return all;
}

/* Prefetches the slots of the names of rows without an id. */
static void prefetch_names(const lp_rows_names *table, const lp_arrow_values *values, const int32_t *row, int64_t first,
                           int few, const uint32_t *ids)
{
    const char *begin;
    size_t size;
    for (int t = 0; t < few; t++) {
        if (ids[t] != LP_INTERN_NONE)
            continue;
        take_text(values, first + row[t], &begin, &size);
        lp_intern_prefetch(&table->intern, lp_intern_key(begin, size));
    }
}

/* Ids of texts that are small numbers, by the number: the table is much smaller than that of names. Stops if many are
 * not. Returns the number of rows done; -1 when out of memory. */
static int64_t ids_by_number(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values,
                             const int32_t *row, int64_t first, int64_t count, uint64_t position, lp_arrow_ahead *ahead,
                             uint32_t *ids)
{
    uint64_t number[AHEAD];
    int64_t done = 0, misses = 0;
    while (done < count && misses * 8 <= done) {
        int few = (int)(count - done < AHEAD ? count - done : AHEAD);
        lp_arrow_ahead_step(ahead);
        take_numbers(values, row + done, first, few, number);
        bool all = find_numbers(names, number, few, ids + done);
        if (!all)
            prefetch_names(table, values, row + done, first, few, ids + done);
        for (int t = 0; !all && t < few; t++) {
            if (ids[done + t] != LP_INTERN_NONE)
                continue;
            const char *begin;
            size_t size;
            uint32_t *slot;
            take_text(values, first + row[done + t], &begin, &size);
            uint32_t id = lp_arrow_intern(table, begin, begin + size, position + (uint64_t)(done + t));
            if (id == LP_INTERN_NONE || !lp_arrow_number_slot(names, table, number[t], &slot))
                return -1;
            if (slot)
                *slot = id;
            misses += !slot;
            ids[done + t] = id;
        }
        done += few;
    }
    if (misses * 8 > done)
        names->number_pause = NUMBER_PAUSE;
    return done;
}

bool lp_arrow_text_ids(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values, const int32_t *row,
                       int64_t first, int64_t count, uint64_t position, lp_arrow_ahead *ahead, uint32_t *ids)
{
    int64_t done = 0;
    if (names->number_pause > 0)
        names->number_pause--;
    else
        done = ids_by_number(names, table, values, row, first, count, position, ahead, ids);
    if (done < 0 || done == count)
        return done == count;
    row += done;
    ids += done;
    count -= done;
    position += (uint64_t)done;
    done = 0;
    if (names->pause > 0)
        names->pause--;
    else
        done = ids_by_cache(names, table, values, row, first, count, position, ahead, ids);
    return done == count || (done >= 0 && ids_by_table(table, values, row + done, first, count - done,
                                                       position + (uint64_t)done, ahead, ids + done));
}
