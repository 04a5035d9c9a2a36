/* json_keys.h: the keys of the objects of a JSON Lines file, as a tree: a key and the key of the object that it is in. The
 * path of a value, its keys joined by points, is the name of a column. */
#ifndef LP_JSON_KEYS_H
#define LP_JSON_KEYS_H

#include "base/memory.h"
#include "data/dataset/intern.h"
#include "data/import/columns.h"

#define LP_JSON_ROOT 0
#define LP_JSON_NONE (-1)

typedef struct lp_json_key {
    const char *text; /* in the arena */
    uint32_t size;
    int32_t parent; /* index of a key; LP_JSON_ROOT is the object of the line */
    int32_t column; /* LP_JSON_NONE: its value is not read */
    bool plain;     /* it has no character that JSON escapes */
} lp_json_key;

/* Initialize with lp_json_keys_init. Read-only once the columns are selected, and shared by all workers. */
typedef struct lp_json_keys {
    lp_json_key *keys; /* owned; keys[LP_JSON_ROOT] has no text */
    size_t count, capacity;
    int32_t *slots; /* owned; hash table of indices, 0: free; slot_count is a power of two */
    size_t slot_count;
    lp_intern names; /* owned; the names of columns, by index */
    lp_arena arena;  /* owned */
} lp_json_keys;

/* False when out of memory. Free it with lp_json_keys_clear in any case. */
bool lp_json_keys_init(lp_json_keys *keys);
void lp_json_keys_clear(lp_json_keys *keys);

/* Index of a key, or LP_JSON_NONE. */
int32_t lp_json_keys_find(const lp_json_keys *keys, int32_t parent, const char *text, size_t size);

/* Index of a key, added if it is new; LP_JSON_NONE when out of memory. */
int32_t lp_json_keys_add(lp_json_keys *keys, int32_t parent, const char *text, size_t size);

/* Gives a key a column named by its path. False when out of memory. */
bool lp_json_keys_name(lp_json_keys *keys, int32_t key);

/* Keeps the columns that have a role, and adds the keys of those that the sample does not have. False when out of memory. */
bool lp_json_keys_select(lp_json_keys *keys, const lp_columns *columns);

#endif
