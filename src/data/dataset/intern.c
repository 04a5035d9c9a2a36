/* intern.c: string interning with a hash table of 16-byte slots (open addressing). Most names in event data are short
 * (user ids, codes): a slot stores names of up to 8 bytes inline, so that a lookup touches one cache line and
 * compares no text. */
#include "data/dataset/intern.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

enum { SHORT_NAME = 8, FIRST_SLOTS = 256, FIRST_NAMES = 64, LINE = 4 /* slots of a cache line */ };

/* The bytes of a short name. Overlapping loads instead of a copy of variable length. */
static inline uint64_t short_key(const char *name, size_t size)
{
    uint64_t key = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint8_t *byte = (const uint8_t *)name;
    if (size >= 4) {
        uint32_t low, high;
        memcpy(&low, name, 4);
        memcpy(&high, name + size - 4, 4);
        return (uint64_t)low | (uint64_t)high << (8 * (size - 4));
    }
    if (size > 0)
        key =
            (uint64_t)byte[0] | (uint64_t)byte[size / 2] << 8 * (size / 2) | (uint64_t)byte[size - 1] << 8 * (size - 1);
#else
    memcpy(&key, name, size);
#endif
    return key;
}

static inline uint64_t key_of(const char *name, size_t size)
{
    return size > SHORT_NAME ? XXH3_64bits(name, size) : short_key(name, size);
}

uint64_t lp_intern_key(const char *name, size_t size)
{
    return key_of(name, size);
}

static inline size_t home(const lp_intern *intern, uint64_t key)
{
    uint64_t mixed = (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
    return (mixed ^ mixed >> 32) & (intern->slot_count - 1);
}

void lp_intern_prefetch(const lp_intern *intern, uint64_t key)
{
    if (intern->slots)
        __builtin_prefetch(&intern->slots[home(intern, key)], 1);
}

/* The slot to try after i others: first those of the same cache line, then those of the next line. */
static inline size_t place(const lp_intern *intern, size_t home, size_t i)
{
    return ((home ^ (i & (LINE - 1))) + (i & ~(size_t)(LINE - 1))) & (intern->slot_count - 1);
}

static bool grow_slots(lp_intern *intern)
{
    lp_intern old = *intern;
    size_t count = old.slot_count ? old.slot_count * 2 : FIRST_SLOTS;
    lp_intern_slot *slots = lp_alloc(count, sizeof *slots);
    if (!slots)
        return false;
    intern->slots = slots;
    intern->slot_count = count;
    for (size_t i = 0; i < old.slot_count; i++) {
        if (!old.slots[i].size)
            continue;
        size_t first = home(intern, old.slots[i].key), tried = 0;
        while (slots[place(intern, first, tried)].size)
            tried++;
        slots[place(intern, first, tried)] = old.slots[i];
    }
    lp_free_large(old.slots);
    return true;
}

static bool grow_names(lp_intern *intern)
{
    size_t capacity = intern->capacity ? intern->capacity * 2 : FIRST_NAMES;
    uint64_t *offset = lp_grow(intern->offset, capacity, sizeof *offset);
    if (!offset)
        return false;
    if (!intern->capacity)
        offset[0] = 0;
    intern->offset = offset;
    intern->capacity = capacity;
    return true;
}

/* Whether long names of this size are equal. */
static inline bool same_bytes(const char *left, const char *right, size_t size)
{
    uint64_t a[2], b[2];
    if (size > 2 * SHORT_NAME)
        return memcmp(left, right, size) == 0;
    memcpy(&a[0], left, SHORT_NAME);
    memcpy(&b[0], right, SHORT_NAME);
    memcpy(&a[1], left + size - SHORT_NAME, SHORT_NAME);
    memcpy(&b[1], right + size - SHORT_NAME, SHORT_NAME);
    return ((a[0] ^ b[0]) | (a[1] ^ b[1])) == 0;
}

/* The slot of the name, or the free slot for it. */
static inline lp_intern_slot *probe(const lp_intern *intern, const char *name, size_t size, uint64_t key)
{
    for (size_t first = home(intern, key), tried = 0;; tried++) {
        lp_intern_slot *slot = &intern->slots[place(intern, first, tried)];
        if (!slot->size)
            return slot;
        if (slot->key == key && slot->size == size + 1 &&
            (size <= SHORT_NAME || same_bytes(intern->bytes.data + intern->offset[slot->index], name, size)))
            return slot;
    }
}

static uint32_t add_new(lp_intern *intern, const char *name, size_t size, uint64_t key)
{
    if (intern->count >= LP_INTERN_NONE - 1 || size >= UINT32_MAX)
        return LP_INTERN_NONE;
    if ((size_t)intern->count + 2 > intern->capacity && !grow_names(intern))
        return LP_INTERN_NONE;
    if (((size_t)intern->count + 1) * 8 > intern->slot_count * 5 && !grow_slots(intern))
        return LP_INTERN_NONE;
    if (!lp_buffer_reserve(&intern->bytes, size + 1))
        return LP_INTERN_NONE;
    lp_buffer_add(&intern->bytes, name, size);
    lp_buffer_add(&intern->bytes, "", 1);
    uint32_t index = intern->count++;
    intern->offset[index + 1] = intern->bytes.size;
    *probe(intern, name, size, key) = (lp_intern_slot){key, (uint32_t)size + 1, index};
    return index;
}

/* The slot of this key and size, or a free one. */
static inline const lp_intern_slot *probe_key(const lp_intern *intern, size_t size, uint64_t key)
{
    for (size_t first = home(intern, key), tried = 0;; tried++) {
        const lp_intern_slot *slot = &intern->slots[place(intern, first, tried)];
        if (!slot->size || (slot->key == key && slot->size == size + 1))
            return slot;
    }
}

void lp_intern_keys(const lp_intern *intern, const char *const *name, const size_t *size, int count, uint64_t *key)
{
    const lp_intern table = *intern; /* a copy, because a key that is written might be in *intern */
    for (int i = 0; i < count; i++) {
        key[i] = key_of(name[i], size[i]);
        if (table.slots)
            __builtin_prefetch(&table.slots[home(&table, key[i])]);
    }
}

/* Each loop prefetches what the next one reads: the offsets of long names, then their bytes. */
void lp_intern_find(const lp_intern *intern, const char *const *name, const size_t *size, const uint64_t *key,
                    int count, uint32_t *id)
{
    bool any_long = false;
    for (int i = 0; i < count; i++) {
        const lp_intern_slot *slot = intern->slots ? probe_key(intern, size[i], key[i]) : NULL;
        id[i] = slot && slot->size ? slot->index : LP_INTERN_NONE;
        if (size[i] <= SHORT_NAME || id[i] == LP_INTERN_NONE)
            continue;
        any_long = true;
        __builtin_prefetch(&intern->offset[id[i]]);
    }
    if (!any_long)
        return;
    for (int i = 0; i < count; i++)
        if (size[i] > SHORT_NAME && id[i] != LP_INTERN_NONE)
            __builtin_prefetch(intern->bytes.data + intern->offset[id[i]]);
    for (int i = 0; i < count; i++) {
        if (size[i] <= SHORT_NAME || id[i] == LP_INTERN_NONE ||
            same_bytes(intern->bytes.data + intern->offset[id[i]], name[i], size[i]))
            continue;
        const lp_intern_slot *slot = probe(intern, name[i], size[i], key[i]); /* another name has the same hash */
        id[i] = slot->size ? slot->index : LP_INTERN_NONE;
    }
}

uint32_t lp_intern_add(lp_intern *intern, const char *name, size_t size, uint64_t key, bool *added)
{
    *added = false;
    if (intern->slots) {
        const lp_intern_slot *slot = probe(intern, name, size, key);
        if (slot->size)
            return slot->index;
    }
    *added = true;
    return add_new(intern, name, size, key);
}

void lp_intern_seal(lp_intern *intern)
{
    lp_free_large(intern->slots);
    intern->slots = NULL;
    intern->slot_count = 0;
}

void lp_intern_clear(lp_intern *intern)
{
    lp_free_large(intern->slots);
    lp_free_large(intern->offset);
    lp_free_large(intern->bytes.data);
    *intern = (lp_intern){0};
}

lp_names lp_intern_names(const lp_intern *intern)
{
    return (lp_names){.count = intern->count, .offset = intern->offset, .bytes = intern->bytes.data};
}
