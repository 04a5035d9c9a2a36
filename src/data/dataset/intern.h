/* intern.h: string interning: maps names to consecutive ids in the order of their first appearance. */
#ifndef LP_INTERN_H
#define LP_INTERN_H

#include "data/dataset/dataset.h"

typedef struct lp_intern_slot {
    uint64_t key;   /* the name itself if it has up to 8 bytes, as a little-endian number; otherwise its hash */
    uint32_t size;  /* size of the name with its NUL; 0: the slot is free */
    uint32_t index; /* id of the name */
} lp_intern_slot;

/* Initialize with {0}. */
typedef struct lp_intern {
    lp_intern_slot *slots; /* owned; slot_count is a power of two, the load factor at most 5/8 */
    size_t slot_count;
    uint32_t count;
    uint64_t *offset; /* owned; count + 1: offset of each name in bytes (see lp_names) */
    size_t capacity;  /* of offset */
    lp_buffer bytes;  /* owned; NUL-terminated names */
} lp_intern;

enum { LP_INTERN_SHORT = 8 }; /* a name of up to so many bytes is its own key */

#define LP_INTERN_NONE UINT32_MAX /* out of memory, or too many names */

/* The key that lp_intern_add and lp_intern_prefetch take. Names contain no NUL byte. */
uint64_t lp_intern_key(const char *name, size_t size);

/* Allocates the hash table for so many names. False when out of memory. */
bool lp_intern_reserve(lp_intern *intern, size_t names);

/* Returns the id of a name and adds the name if it is new (then *added is set). */
uint32_t lp_intern_add(lp_intern *intern, const char *name, size_t size, uint64_t key, bool *added);

/* The slot to try first. */
static inline size_t lp_intern_home(const lp_intern *intern, uint64_t key)
{
    uint64_t mixed = (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
    return (mixed ^ mixed >> 32) & (intern->slot_count - 1);
}

/* Prefetches the slot of this key. */
static inline void lp_intern_prefetch(const lp_intern *intern, uint64_t key)
{
    if (intern->slots)
        __builtin_prefetch(&intern->slots[lp_intern_home(intern, key)]);
}

/* A name to look up. */
typedef struct lp_intern_query {
    const char *name;
    size_t size;
    uint64_t key;
    size_t home; /* set by lp_intern_begin; the table may grow after it */
} lp_intern_query;

/* Begins the lookup of a name by its key in a table that is not empty: prefetches its slot. */
static inline void lp_intern_begin(const lp_intern *intern, lp_intern_query *query)
{
    query->home = lp_intern_home(intern, query->key);
    __builtin_prefetch(&intern->slots[query->home]);
}

/* The ids of a few names whose lookup has begun, so that their cache misses overlap. False if some are new: their id is
 * LP_INTERN_NONE. */
bool lp_intern_find(const lp_intern *intern, const lp_intern_query *query, int count, uint32_t *id);

/* Frees the hash table: names can still be read, but no longer added. */
void lp_intern_seal(lp_intern *intern);
void lp_intern_clear(lp_intern *intern);

/* The names as a view. */
lp_names lp_intern_names(const lp_intern *intern);

#endif
