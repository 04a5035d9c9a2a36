/* json_keys.c: see json_keys.h. */
#include "data/import/json_keys.h"

#include <string.h>

enum { FIRST_SLOTS = 64, LARGEST_PATH = 4096 };

bool lp_json_keys_init(lp_json_keys *keys)
{
    *keys = (lp_json_keys){.slot_count = FIRST_SLOTS};
    keys->slots = lp_alloc(FIRST_SLOTS, sizeof *keys->slots);
    if (!keys->slots || !lp_reserve(&keys->keys, &keys->capacity, 16, sizeof *keys->keys))
        return false;
    keys->keys[LP_JSON_ROOT] = (lp_json_key){.text = "", .parent = LP_JSON_NONE, .column = LP_JSON_NONE};
    keys->count = 1;
    return true;
}

void lp_json_keys_clear(lp_json_keys *keys)
{
    lp_free(keys->keys);
    lp_free(keys->slots);
    lp_intern_clear(&keys->names);
    lp_arena_clear(&keys->arena);
    *keys = (lp_json_keys){0};
}

static size_t slot_of(const lp_json_keys *keys, int32_t parent, const char *text, size_t size)
{
    uint64_t hash =
        (lp_intern_key(text, size) ^ (uint64_t)(uint32_t)parent * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    return (size_t)(hash ^ hash >> 32) & (keys->slot_count - 1);
}

static bool is_key(const lp_json_key *key, int32_t parent, const char *text, size_t size)
{
    return key->parent == parent && key->size == size && memcmp(key->text, text, size) == 0;
}

int32_t lp_json_keys_find(const lp_json_keys *keys, int32_t parent, const char *text, size_t size)
{
    size_t mask = keys->slot_count - 1;
    for (size_t slot = slot_of(keys, parent, text, size); keys->slots[slot]; slot = (slot + 1) & mask)
        if (is_key(&keys->keys[keys->slots[slot]], parent, text, size))
            return keys->slots[slot];
    return LP_JSON_NONE;
}

static void insert(lp_json_keys *keys, int32_t index)
{
    const lp_json_key *key = &keys->keys[index];
    size_t slot = slot_of(keys, key->parent, key->text, key->size);
    while (keys->slots[slot])
        slot = (slot + 1) & (keys->slot_count - 1);
    keys->slots[slot] = index;
}

static bool grow(lp_json_keys *keys)
{
    int32_t *slots = lp_alloc(keys->slot_count * 2, sizeof *slots);
    if (!slots)
        return false;
    lp_free(keys->slots);
    keys->slots = slots;
    keys->slot_count *= 2;
    for (size_t i = 1; i < keys->count; i++)
        insert(keys, (int32_t)i);
    return true;
}

int32_t lp_json_keys_add(lp_json_keys *keys, int32_t parent, const char *text, size_t size)
{
    int32_t found = lp_json_keys_find(keys, parent, text, size);
    if (found != LP_JSON_NONE)
        return found;
    if ((keys->count * 2 > keys->slot_count && !grow(keys)) ||
        !lp_reserve(&keys->keys, &keys->capacity, keys->count + 1, sizeof *keys->keys))
        return LP_JSON_NONE;
    char *copy = lp_arena_alloc(&keys->arena, size + 1);
    if (!copy)
        return LP_JSON_NONE;
    memcpy(copy, text, size);
    int32_t index = (int32_t)keys->count++;
    bool plain = true;
    for (size_t i = 0; i < size; i++)
        plain = plain && text[i] != '"' && text[i] != '\\' && (unsigned char)text[i] >= 0x20;
    keys->keys[index] = (lp_json_key){copy, (uint32_t)size, parent, LP_JSON_NONE, plain};
    insert(keys, index);
    return index;
}

bool lp_json_keys_name(lp_json_keys *keys, int32_t key)
{
    char path[LARGEST_PATH];
    size_t first = sizeof path;
    for (int32_t at = key; at != LP_JSON_ROOT; at = keys->keys[at].parent) {
        size_t size = keys->keys[at].size + (at != key);
        if (size > first)
            return true; /* too long for a name: never a column */
        first -= size;
        memcpy(path + first, keys->keys[at].text, keys->keys[at].size);
        if (at != key)
            path[first + size - 1] = '.';
    }
    size_t size = sizeof path - first;
    bool added;
    uint32_t column = lp_intern_add(&keys->names, path + first, size, lp_intern_key(path + first, size), &added);
    keys->keys[key].column = column == LP_INTERN_NONE ? LP_JSON_NONE : (int32_t)column;
    return column != LP_INTERN_NONE;
}

/* Adds the keys of the path `name`, in the object and in nested ones, as column `column`. */
static bool add_path(lp_json_keys *keys, const char *name, int32_t column)
{
    int32_t whole = lp_json_keys_add(keys, LP_JSON_ROOT, name, strlen(name)), part = LP_JSON_ROOT;
    if (whole == LP_JSON_NONE)
        return false;
    keys->keys[whole].column = column;
    for (const char *at = name; strchr(name, '.');) {
        const char *end = at + strcspn(at, ".");
        part = lp_json_keys_add(keys, part, at, (size_t)(end - at));
        if (part == LP_JSON_NONE)
            return false;
        if (!*end) {
            keys->keys[part].column = column;
            break;
        }
        at = end + 1;
    }
    return true;
}

bool lp_json_keys_select(lp_json_keys *keys, const lp_columns *columns)
{
    bool *used = lp_alloc((size_t)columns->count + 1, sizeof *used);
    if (!used)
        return false;
    used[columns->sequence] = used[columns->time] = true;
    if (columns->split >= 0)
        used[columns->split] = true;
    if (columns->clock >= 0)
        used[columns->clock] = true;
    for (int64_t i = 0; i < columns->event_count; i++)
        used[columns->event[i]] = true;
    for (int i = 0; i < columns->field_count; i++)
        used[columns->field[i]] = true;
    for (size_t i = 1; i < keys->count; i++)
        if (keys->keys[i].column != LP_JSON_NONE && !used[keys->keys[i].column])
            keys->keys[i].column = LP_JSON_NONE;
    bool good = true;
    for (int64_t c = (int64_t)keys->names.count; good && c < columns->count; c++)
        good = add_path(keys, columns->name[c], (int32_t)c);
    lp_free(used);
    return good;
}
