/* arrow_names.c: checks the names in Arrow columns and maps them to ids: those of numbers and dictionaries here, those of
 * strings by arrow_texts.c. */
#include "data/import/arrow_names.h"

#include "base/text.h"
#include "data/import/arrow_texts.h"

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

enum { FIRST_SLOTS = 256, AHEAD = LP_ARROW_STEP };

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

static uint32_t id_of_term(lp_arrow_names *names, lp_rows_names *table, const lp_arrow_values *values, int64_t i,
                           uint64_t position)
{
    char text[LP_ARROW_NAME_SIZE];
    const char *begin = "", *end = begin;
    if (lp_arrow_missing(values, i))
        return lp_arrow_intern(table, begin, end, position);
    int64_t term = lp_arrow_term(values, i);
    if (names->by_term[term] < TERM_STATES)
        return names->by_term[term];
    lp_arrow_value_text(values->terms, term, text, &begin, &end);
    uint32_t id = lp_arrow_intern(table, begin, end, position);
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
        return lp_arrow_intern(table, "", "", position);
    uint32_t *id;
    if (!lp_arrow_number_slot(names, table, (uint64_t)value, &id))
        return LP_INTERN_NONE;
    id = id ? id : map_find(&names->by_value, (uint64_t)value);
    if (id && *id == LP_INTERN_NONE) {
        lp_arrow_value_text(values, i, text, &begin, &end);
        *id = lp_arrow_intern(table, begin, end, position);
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
        return lp_arrow_text_ids(names, table, values, row, first, count, position, ahead, ids);
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
    uint32_t id = good ? lp_arrow_intern(table, begin, begin + text.size, position) : LP_INTERN_NONE;
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
