/* intern.h: string interning: maps names to consecutive ids in the order of their first appearance. */
#ifndef LP_INTERN_H
#define LP_INTERN_H

#include "data/dataset/dataset.h"

typedef struct lp_intern_slot {
    uint64_t key;   /* the name itself if it has up to 8 bytes, zero-padded; otherwise its hash */
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

#define LP_INTERN_NONE UINT32_MAX /* out of memory, or too many names */

/* The key that lp_intern_add and lp_intern_prefetch take. Names contain no NUL byte. */
uint64_t lp_intern_key(const char *name, size_t size);

/* Returns the id of a name and adds the name if it is new (then *added is set). */
uint32_t lp_intern_add(lp_intern *intern, const char *name, size_t size, uint64_t key, bool *added);

/* Looks up a few names at once, so that cache misses overlap, in two steps with other work in between: the first sets
 * their keys and prefetches their slots, the second sets their ids; LP_INTERN_NONE: the name is new. */
void lp_intern_keys(const lp_intern *intern, const char *const *name, const size_t *size, int count, uint64_t *key);
void lp_intern_find(const lp_intern *intern, const char *const *name, const size_t *size, const uint64_t *key,
                    int count, uint32_t *id);

/* Prefetches the slot of this key. */
void lp_intern_prefetch(const lp_intern *intern, uint64_t key);

/* Frees the hash table: names can still be read, but no longer added. */
void lp_intern_seal(lp_intern *intern);
void lp_intern_clear(lp_intern *intern);

/* The names as a view. */
lp_names lp_intern_names(const lp_intern *intern);

#endif
