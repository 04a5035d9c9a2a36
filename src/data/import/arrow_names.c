/* arrow_names.c: maps the names in Arrow columns to ids. */
#include "data/import/arrow_names.h"

#include "base/text.h"

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

enum { FIRST_SLOTS = 256, AHEAD = 32 };

void lp_arrow_names_clear(lp_arrow_names *names)
{
    lp_free(names->by_value.key);
    lp_free(names->by_value.id);
    lp_free(names->pairs.key);
    lp_free(names->pairs.id);
    lp_free(names->by_term);
    lp_rows_names_clear(&names->part);
    lp_rows_names_clear(&names->joined);
    *names = (lp_arrow_names){0};
}

/* --------------------------------------------------------------------------------------------------- maps ---- */

static size_t slot_of(const lp_arrow_map *map, uint64_t key)
{
    uint64_t mixed = (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
    size_t at = (mixed ^ mixed >> 32) & (map->slot_count - 1);
    while (map->id[at] != LP_INTERN_NONE && map->key[at] != key)
        at = (at + 1) & (map->slot_count - 1);
    return at;
}

static bool map_grow(lp_arrow_map *map)
{
    lp_arrow_map old = *map;
    map->slot_count = old.slot_count ? old.slot_count * 2 : FIRST_SLOTS;
    map->key = lp_grow(NULL, map->slot_count, sizeof *map->key);
    map->id = lp_grow(NULL, map->slot_count, sizeof *map->id);
    if (!map->key || !map->id) {
        lp_free(map->key);
        lp_free(map->id);
        *map = old;
        return false;
    }
    memset(map->id, 0xFF, map->slot_count * sizeof *map->id);
    for (size_t i = 0; i < old.slot_count; i++) {
        if (old.id[i] == LP_INTERN_NONE)
            continue;
        size_t at = slot_of(map, old.key[i]);
        map->key[at] = old.key[i];
        map->id[at] = old.id[i];
    }
    lp_free(old.key);
    lp_free(old.id);
    return true;
}

/* The id of a key, which is LP_INTERN_NONE if it is new: then the caller sets it. NULL when out of memory. */
static uint32_t *map_find(lp_arrow_map *map, uint64_t key)
{
    if (map->used * 8 >= map->slot_count * 5 && !map_grow(map))
        return NULL;
    size_t at = slot_of(map, key);
    if (map->id[at] == LP_INTERN_NONE) {
        map->key[at] = key;
        map->used++;
    }
    return &map->id[at];
}

/* ------------------------------------------------------------------------------------------------- checks ---- */

/* Whether all bytes are ASCII and none is NUL. */
static bool is_plain(const char *begin, const char *end)
{
    uint8_t any = 0, zero = 0;
    for (const char *at = begin; at < end; at++) {
        any |= (uint8_t)*at;
        zero |= !*at;
    }
    return any < 128 && !zero;
}

static lp_arrow_check check_text(const lp_arrow_values *values, int64_t i)
{
    const char *begin, *end;
    if (lp_arrow_text(values, i, &begin, &end))
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
#define SCAN(element)                                                                    \
    for (int64_t i = 0; i < count; i++) {                                                \
        element at[2];                                                                   \
        memcpy(at, values->data + (values->offset + first + i) * sizeof *at, sizeof at); \
        falling |= at[1] < at[0];                                                        \
        check[i] = at[1] == at[0] ? LP_ARROW_EMPTY : LP_ARROW_GOOD;                      \
    }

/* Checks the strings first .. first + count - 1 together. False: some offset is not valid, or some character is not plain
 * ASCII, so that they must be checked one by one. */
static bool check_plain(const lp_arrow_values *values, int64_t first, int64_t count, uint8_t *check)
{
    const char *begin, *middle, *end;
    bool falling = lp_arrow_text(values, first, &begin, &middle) ||
                   lp_arrow_text(values, first + count - 1, &middle, &end) || begin > end;
    if (falling)
        return false;
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

bool lp_arrow_names_check(lp_arrow_names *names, const lp_arrow_values *values, int64_t first, int64_t count,
                          uint8_t *check)
{
    lp_arrow_kind kind = values->type.kind;
    if (values->terms && !open_terms(names, values->terms))
        return false;
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

/* Batches rows so that the prefetches of lp_intern slots have completed: a table of many names exceeds the cache. */
static bool ids_of_texts(lp_rows_names *table, const lp_arrow_values *values, const int32_t *row, int64_t first,
                         int64_t count, uint64_t position, uint32_t *ids)
{
    const char *begin[AHEAD];
    size_t size[AHEAD];
    uint64_t key[AHEAD];
    for (int64_t done = 0; done < count; done += AHEAD) {
        int few = (int)(count - done < AHEAD ? count - done : AHEAD);
        for (int i = 0; i < few; i++) {
            int64_t at = first + row[done + i];
            const char *end = begin[i] = "";
            if (lp_arrow_missing(values, at))
                ;
            else if (values->type.kind == LP_ARROW_TEXT)
                checked_text(values, at, &begin[i], &end);
            else
                lp_arrow_text(values, at, &begin[i], &end);
            size[i] = (size_t)(end - begin[i]);
        }
        lp_intern_find(&table->intern, begin, size, few, key, ids + done);
        for (int i = 0; i < few; i++) {
            if (ids[done + i] != LP_INTERN_NONE)
                continue;
            ids[done + i] = lp_rows_name(table, begin[i], size[i], key[i], position + (uint64_t)(done + i));
            if (ids[done + i] == LP_INTERN_NONE)
                return false;
        }
    }
    return true;
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
    uint32_t *id = map_find(&names->by_value, (uint64_t)value);
    if (id && *id == LP_INTERN_NONE) {
        lp_arrow_value_text(values, i, text, &begin, &end);
        *id = intern(table, begin, end, position);
    }
    return id ? *id : LP_INTERN_NONE;
}

bool lp_arrow_names_ids(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values, const int32_t *row,
                        int64_t first, int64_t count, uint64_t position, uint32_t *ids)
{
    if (!values->terms && lp_arrow_is_text(values))
        return ids_of_texts(table, values, row, first, count, position, ids);
    bool good = true;
    for (int64_t i = 0; good && i < count; i++) {
        uint64_t at = position + (uint64_t)i;
        ids[i] = values->terms ? id_of_term(names, table, values, first + row[i], at)
                               : id_of_value(names, table, values, first + row[i], at);
        good = ids[i] != LP_INTERN_NONE;
    }
    return good;
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
