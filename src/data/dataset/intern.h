/* intern.h: names and their numbers. A name gets the next number when it is first met. */
#ifndef LP_INTERN_H
#define LP_INTERN_H

#include "data/dataset/dataset.h"

typedef struct lp_intern_slot {
    uint64_t key;   /* a name of up to 8 bytes itself, zero-padded; the hash of a longer one */
    uint32_t size;  /* bytes of the name and its NUL; 0: the slot is free */
    uint32_t index; /* its number */
} lp_intern_slot;

/* An intern table starts as {0}. */
typedef struct lp_intern {
    lp_intern_slot *slots; /* owned; slot_count is a power of two, at most 5/8 of it is in use */
    size_t slot_count;
    uint32_t count;
    uint64_t *offset; /* owned; count + 1: where each name begins in bytes (see lp_names) */
    size_t capacity;  /* of offset */
    lp_buffer bytes;  /* owned; names, each with its NUL */
} lp_intern;

#define LP_INTERN_NONE UINT32_MAX /* out of memory, or more names than fit */

/* The key that tells names apart quickly. Names hold no NUL byte. */
uint64_t lp_intern_key(const char *name, size_t size);

/* The number of a name, which is added if it is new (then *added is set). key is lp_intern_key of the name. */
uint32_t lp_intern_add(lp_intern *intern, const char *name, size_t size, uint64_t key, bool *added);

/* Asks for the memory that lp_intern_add will look at for this key. */
void lp_intern_prefetch(const lp_intern *intern, uint64_t key);

/* Gives the slots back: names can still be read, no longer added. */
void lp_intern_seal(lp_intern *intern);
void lp_intern_clear(lp_intern *intern);

/* The names as a view. */
lp_names lp_intern_names(const lp_intern *intern);

#endif
