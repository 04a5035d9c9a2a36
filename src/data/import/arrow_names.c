/* arrow_names.c: maps the names in Arrow columns to ids. */
#include "data/import/arrow_names.h"

#include "base/text.h"

#include <endian.h>
#include <math.h>
#include <string.h>

/* States of a dictionary entry without an id. */
enum {
    TERM_NEW = 0xFFFFFFFFu,
    TERM_CHECKED = 0xFFFFFFFEu,
    TERM_EMPTY = 0xFFFFFFFDu,
    TERM_BAD = 0xFFFFFFFCu,
    TERM_BROKEN = 0xFFFFFFFBu,
    TERM_STATES = 0xFFFFFFF0u
};

enum {
    FIRST_SLOTS = 256,
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

void lp_arrow_names_clear(lp_arrow_names *names)
{
    lp_free(names->recent);
    lp_free(names->by_number);
    lp_free(names->by_value.slots);
    lp_free(names->pairs.slots);
    lp_free(names->by_term);
    lp_rows_names_clear(&names->part);
    lp_rows_names_clear(&names->joined);
    *names = (lp_arrow_names){0};
}

/* --------------------------------------------------------------------------------------------------- maps ---- */

static inline size_t home(const lp_arrow_map *map, uint64_t key)
{
    uint64_t mixed = (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
    return (mixed ^ mixed >> 32) & (map->slot_count - 1);
}

static inline lp_arrow_slot *slot_of(const lp_arrow_map *map, uint64_t key)
{
    size_t at = home(map, key);
    while (map->slots[at].id != LP_INTERN_NONE && map->slots[at].key != key)
        at = (at + 1) & (map->slot_count - 1);
    return &map->slots[at];
}

static bool map_grow(lp_arrow_map *map)
{
    lp_arrow_map old = *map;
    map->slot_count = old.slot_count ? old.slot_count * 2 : FIRST_SLOTS;
    map->slots = lp_grow(NULL, map->slot_count, sizeof *map->slots);
    if (!map->slots) {
        *map = old;
        return false;
    }
    memset(map->slots, 0xFF, map->slot_count * sizeof *map->slots);
    for (size_t i = 0; i < old.slot_count; i++)
        if (old.slots[i].id != LP_INTERN_NONE)
            *slot_of(map, old.slots[i].key) = old.slots[i];
    lp_free(old.slots);
    return true;
}

/* The id of a key, which is LP_INTERN_NONE if it is new: then the caller sets it. NULL when out of memory. */
static inline uint32_t *map_find(lp_arrow_map *map, uint64_t key)
{
    if (map->used * 8 >= map->slot_count * 5 && !map_grow(map))
        return NULL;
    lp_arrow_slot *slot = slot_of(map, key);
    if (slot->id == LP_INTERN_NONE) {
        slot->key = key;
        map->used++;
    }
    return &slot->id;
}

/* ------------------------------------------------------------------------------------------------- checks ---- */

/* Whether one of eight bytes is 0 or above 127: only then does it, or one less, have the highest bit. */
static inline uint64_t unusual(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return (word | (word - 0x0101010101010101u)) & 0x8080808080808080u;
}

/* Whether all bytes are ASCII and none is NUL. */
static bool is_plain(const char *begin, const char *end)
{
    uint64_t any = 0;
    if (end - begin < 8) {
        for (const char *at = begin; at < end; at++)
            any |= ((uint64_t)*at | ((uint64_t)*at - 1)) & 0x80;
        return !any;
    }
    for (const char *at = begin; at + 8 <= end; at += 8)
        any |= unusual(at);
    return !(any | unusual(end - 8));
}

static lp_arrow_check check_text(const lp_arrow_values *values, int64_t i)
{
    const char *begin, *end;
    if (values->type.kind == LP_ARROW_VIEW ? !lp_arrow_view(values, i, &begin, &end)
                                           : lp_arrow_text(values, i, &begin, &end) != NULL)
        return LP_ARROW_BROKEN;
    if (begin == end)
        return LP_ARROW_EMPTY;
    if (is_plain(begin, end) || (lp_text_is_utf8(begin, end) && !memchr(begin, 0, (size_t)(end - begin))))
        return LP_ARROW_GOOD;
    return LP_ARROW_BAD;
}

static lp_arrow_check check_value(const lp_arrow_values *values, int64_t i)
{
    int64_t value;
    if (lp_arrow_is_text(values))
        return check_text(values, i);
    if (!lp_arrow_integer(values, i, &value))
        return LP_ARROW_BAD;
    return values->type.kind == LP_ARROW_FLOAT && isnan(lp_arrow_number(values->type, value)) ? LP_ARROW_EMPTY
                                                                                              : LP_ARROW_GOOD;
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

/* A loop over offsets: whether one falls, and which strings are empty. */
#define SCAN(element)                                              \
    for (int64_t i = 0; i < count; i++) {                          \
        element at, next;                                          \
        memcpy(&at, offsets + i * sizeof at, sizeof at);           \
        memcpy(&next, offsets + (i + 1) * sizeof at, sizeof next); \
        falling |= next < at;                                      \
        check[i] = next == at ? LP_ARROW_EMPTY : LP_ARROW_GOOD;    \
    }

/* Checks the strings first .. first + count - 1 together. False: some offset is not valid, or some character is not plain
 * ASCII, so that they must be checked one by one. */
static bool check_plain(const lp_arrow_values *values, int64_t first, int64_t count, uint8_t *check)
{
    const char *begin, *middle, *end;
    if (lp_arrow_text(values, first, &begin, &middle) || lp_arrow_text(values, first + count - 1, &middle, &end) ||
        begin > end)
        return false;
    const uint8_t *offsets = values->data + (values->offset + first) * values->type.size;
    int falling = 0;
    if (values->type.size == 4)
        SCAN(int32_t)
    else
        SCAN(int64_t)
    return !falling && is_plain(begin, end);
}

/* The dictionary of the next rows: forgets the ids of the last one if it is another. */
static bool open_terms(lp_arrow_names *names, const lp_arrow_values *terms)
{
    const lp_arrow_values *last = &names->terms;
    if (last->data == terms->data && last->text == terms->text && last->buffers == terms->buffers &&
        last->valid == terms->valid && last->offset == terms->offset && last->length == terms->length && last->data)
        return true;
    names->terms = (lp_arrow_values){0};
    if (!lp_reserve(&names->by_term, &names->term_capacity, (size_t)terms->length + 1, sizeof *names->by_term))
        return false;
    memset(names->by_term, 0xFF, (size_t)terms->length * sizeof *names->by_term);
    names->terms = *terms;
    return true;
}

static lp_arrow_check check_term(lp_arrow_names *names, const lp_arrow_values *values, int64_t i)
{
    int64_t term = lp_arrow_term(values, i);
    if (term < 0)
        return LP_ARROW_BROKEN;
    uint32_t *state = &names->by_term[term];
    if (*state == TERM_NEW) {
        static const uint32_t states[] = {[LP_ARROW_GOOD] = TERM_CHECKED,
                                          [LP_ARROW_EMPTY] = TERM_EMPTY,
                                          [LP_ARROW_BAD] = TERM_BAD,
                                          [LP_ARROW_BROKEN] = TERM_BROKEN};
        *state = lp_arrow_missing(values->terms, term) ? TERM_EMPTY : states[check_value(values->terms, term)];
    }
    return *state == TERM_EMPTY    ? LP_ARROW_EMPTY
           : *state == TERM_BAD    ? LP_ARROW_BAD
           : *state == TERM_BROKEN ? LP_ARROW_BROKEN
                                   : LP_ARROW_GOOD;
}

/* Checks dictionary-encoded names, none of which is missing. */
static void check_terms(lp_arrow_names *names, const lp_arrow_values *values, int64_t first, int64_t count,
                        uint8_t *check)
{
    int64_t term[AHEAD];
    for (int64_t done = 0; done < count; done += AHEAD) {
        int few = (int)(count - done < AHEAD ? count - done : AHEAD);
        bool fast = lp_arrow_integers(values, first + done, few, term);
        for (int i = 0; i < few; i++) {
            bool known = fast && (uint64_t)term[i] < (uint64_t)values->terms->length &&
                         (names->by_term[term[i]] < TERM_STATES || names->by_term[term[i]] == TERM_CHECKED);
            check[done + i] = known ? LP_ARROW_GOOD : (uint8_t)check_term(names, values, first + done + i);
        }
    }
}

bool lp_arrow_names_check(lp_arrow_names *names, const lp_arrow_values *values, int64_t first, int64_t count,
                          uint8_t *check)
{
    lp_arrow_kind kind = values->type.kind;
    if (values->terms && !open_terms(names, values->terms))
        return false;
    if (values->terms && !values->valid) {
        check_terms(names, values, first, count, check);
        return true;
    }
    bool good = kind == LP_ARROW_BOOL || kind == LP_ARROW_INTEGER || kind == LP_ARROW_UNSIGNED ||
                kind == LP_ARROW_DATE || kind == LP_ARROW_TIMESTAMP;
    if (good && !values->terms)
        memset(check, LP_ARROW_GOOD, (size_t)count);
    else if (kind == LP_ARROW_TEXT && count > 0)
        good = check_plain(values, first, count, check);
    if (good && !values->terms && !values->valid)
        return true;
    for (int64_t i = 0; i < count; i++) {
        if (lp_arrow_missing(values, first + i))
            check[i] = LP_ARROW_EMPTY;
        else if (values->terms)
            check[i] = (uint8_t)check_term(names, values, first + i);
        else if (!good)
            check[i] = (uint8_t)check_value(values, first + i);
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------- ids ---- */

static uint32_t intern(lp_rows_names *table, const char *begin, const char *end, uint64_t position)
{
    size_t size = (size_t)(end - begin);
    return lp_rows_name(table, begin, size, lp_intern_key(begin, size), position);
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
    return le64toh(word) & masks[bytes + 8];
}

/* The words of a text that is long, or close to the end of what can be read. */
static void take_rare(const char *begin, size_t size, uint64_t word[2])
{
    uint64_t bytes[2] = {0, NO_TEXT};
    if (size <= WORDS) {
        bytes[1] = 0;
        memcpy(bytes, begin, size);
    }
    word[0] = le64toh(bytes[0]);
    word[1] = le64toh(bytes[1]);
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
    for (int t = 0; values->type.size == 4 && t <= few; t++) {
        int32_t narrow;
        memcpy(&narrow, offsets + t * 4, sizeof narrow);
        at[t] = narrow;
    }
    for (int t = 0; values->type.size == 8 && t <= few; t++)
        memcpy(&at[t], offsets + t * 8, sizeof *at);
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
    id = intern(table, begin, begin + size, position);
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

/* Where the id of a number is; NULL: the number is too large for so few names. False when out of memory. */
static bool number_slot(lp_arrow_names *names, const lp_rows_names *table, uint64_t number, uint32_t **slot)
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

/* The numbers of a few texts that may be such; NO_TEXT: it is none. */
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
            number[t] = decimal(le64toh(word), (uint64_t)(at[t + 1] - at[t]));
        }
        return;
    }
    for (int t = 0; t < few; t++) {
        take_text(values, first + row[t], &begin, &size);
        number[t] = NO_TEXT;
        if (size - 1 < LP_INTERN_SHORT && (views || limit - begin >= LP_INTERN_SHORT)) {
            memcpy(&word, begin, sizeof word);
            number[t] = decimal(le64toh(word), size);
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
            uint32_t id = intern(table, begin, begin + size, position + (uint64_t)(done + t));
            if (id == LP_INTERN_NONE || !number_slot(names, table, number[t], &slot))
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

static bool ids_of_texts(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values, const int32_t *row,
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

static uint32_t id_of_term(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values, int64_t i,
                           uint64_t position)
{
    char text[LP_ARROW_NAME_SIZE];
    const char *begin = "", *end = begin;
    if (lp_arrow_missing(values, i))
        return intern(table, begin, end, position);
    int64_t term = lp_arrow_term(values, i);
    if (names->by_term[term] < TERM_STATES)
        return names->by_term[term];
    lp_arrow_value_text(values->terms, term, text, &begin, &end);
    uint32_t id = intern(table, begin, end, position);
    if (begin < end && id != LP_INTERN_NONE) /* an empty entry keeps its state: other rows are checked for it */
        names->by_term[term] = id;
    return id;
}

static uint32_t id_of_value(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values, int64_t i,
                            uint64_t position)
{
    char text[LP_ARROW_NAME_SIZE];
    const char *begin, *end;
    int64_t value;
    if (lp_arrow_missing(values, i) || !lp_arrow_integer(values, i, &value))
        return intern(table, "", "", position);
    uint32_t *id;
    if (!number_slot(names, table, (uint64_t)value, &id))
        return LP_INTERN_NONE;
    id = id ? id : map_find(&names->by_value, (uint64_t)value);
    if (id && *id == LP_INTERN_NONE) {
        lp_arrow_value_text(values, i, text, &begin, &end);
        *id = intern(table, begin, end, position);
    }
    return id ? *id : LP_INTERN_NONE;
}

/* Ids that are known of a few rows by their integers: numbers, or indices of a dictionary. The others become
 * LP_INTERN_NONE. */
static void known_ids(const lp_arrow_names *names, const lp_arrow_values *values, const int64_t *integer, int few,
                      uint32_t *ids)
{
    const lp_arrow_map *map = &names->by_value;
    for (int i = 0; !values->terms && map->slots && i < few; i++)
        __builtin_prefetch(&map->slots[home(map, (uint64_t)integer[i])]);
    for (int i = 0; i < few; i++) {
        if (!values->terms && (uint64_t)integer[i] < names->number_count)
            ids[i] = names->by_number[integer[i]];
        else if (values->terms)
            ids[i] = names->by_term[integer[i]] < TERM_STATES ? names->by_term[integer[i]] : LP_INTERN_NONE;
        else
            ids[i] = map->slots ? slot_of(map, (uint64_t)integer[i])->id : LP_INTERN_NONE;
    }
}

bool lp_arrow_names_ids(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values, const int32_t *row,
                        int64_t first, int64_t count, uint64_t position, lp_arrow_ahead *ahead, uint32_t *ids)
{
    if (!values->terms && lp_arrow_is_text(values))
        return ids_of_texts(names, table, values, row, first, count, position, ahead, ids);
    int64_t integer[AHEAD];
    for (int64_t done = 0; done < count; done += AHEAD) {
        int few = (int)(count - done < AHEAD ? count - done : AHEAD);
        lp_arrow_ahead_step(ahead);
        bool adjacent = row[done + few - 1] - row[done] == few - 1;
        if (adjacent && !values->valid && lp_arrow_integers(values, first + row[done], few, integer))
            known_ids(names, values, integer, few, ids + done);
        else
            memset(ids + done, 0xFF, (size_t)few * sizeof *ids);
        for (int64_t i = done; i < done + few; i++) {
            uint64_t at = position + (uint64_t)i;
            if (ids[i] == LP_INTERN_NONE)
                ids[i] = values->terms ? id_of_term(names, table, values, first + row[i], at)
                                       : id_of_value(names, table, values, first + row[i], at);
            if (ids[i] == LP_INTERN_NONE)
                return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------- joining --- */

static uint32_t join(const lp_rows_names *left, uint32_t l, const lp_rows_names *right, uint32_t r,
                     lp_rows_names *table, uint64_t position)
{
    const lp_intern *a = &left->intern, *b = &right->intern;
    lp_buffer text = {0};
    size_t left_size = a->offset[l + 1] - a->offset[l] - 1, right_size = b->offset[r + 1] - b->offset[r] - 1;
    bool good = lp_buffer_add(&text, a->bytes.data + a->offset[l], left_size) &&
                lp_buffer_add(&text, " ", left_size && right_size) &&
                lp_buffer_add(&text, b->bytes.data + b->offset[r], right_size);
    const char *begin = text.data ? text.data : "";
    uint32_t id = good ? intern(table, begin, begin + text.size, position) : LP_INTERN_NONE;
    lp_buffer_clear(&text);
    return id;
}

bool lp_arrow_names_join(lp_arrow_names *names, const lp_rows_names *left, lp_rows_names *table,
                         const uint32_t *further, int64_t count, uint64_t position, uint32_t *ids)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t *id = map_find(&names->pairs, (uint64_t)ids[i] << 32 | further[i]);
        if (id && *id == LP_INTERN_NONE)
            *id = join(left, ids[i], &names->part, further[i], table, position + (uint64_t)i);
        if (!id || *id == LP_INTERN_NONE)
            return false;
        ids[i] = *id;
    }
    return true;
}
