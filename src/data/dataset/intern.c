/* intern.c: string interning with a hash table of 16-byte slots (open addressing). Most names in event data are short
 * (user ids, codes): a slot stores names of up to 8 bytes inline, so that a lookup touches one cache line and
 * compares no text. */
#include "data/dataset/intern.h"

#include "base/assert.h"
#include "base/system.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

enum { FIRST_SLOTS = 256, FIRST_NAMES = 64, LINE = 4 /* slots of a cache line */ };

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
    key = lp_little_endian(key);
#endif
    return key;
}

static inline uint64_t key_of(const char *name, size_t size)
{
    return size > LP_INTERN_SHORT ? XXH3_64bits(name, size) : short_key(name, size);
}

uint64_t lp_intern_key(const char *name, size_t size)
{
    return key_of(name, size);
}

/* The slot to try after i others: first those of the same cache line, then those of the next line. */
static inline size_t place(const lp_intern *intern, size_t home, size_t i)
{
    return ((home ^ (i & (LINE - 1))) + (i & ~(size_t)(LINE - 1))) & (intern->slot_count - 1);
}

/* Replaces the slots by `count` others. */
static bool set_slots(lp_intern *intern, size_t count)
{
    LP_ASSERT((count & (count - 1)) == 0);
    lp_intern old = *intern;
    lp_intern_slot *slots = lp_alloc(count, sizeof *slots);
    if (!slots)
        return false;
    intern->slots = slots;
    intern->slot_count = count;
    for (size_t i = 0; i < old.slot_count; i++) {
        if (!old.slots[i].size)
            continue;
        size_t first = lp_intern_home(intern, old.slots[i].key), tried = 0;
        while (slots[place(intern, first, tried)].size)
            tried++;
        slots[place(intern, first, tried)] = old.slots[i];
    }
    lp_free_large(old.slots);
    return true;
}

bool lp_intern_reserve(lp_intern *intern, size_t names)
{
    size_t count = intern->slot_count ? intern->slot_count : FIRST_SLOTS;
    while (names * 8 > count * 5)
        count *= 2;
    return count == intern->slot_count || set_slots(intern, count);
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
    if (size > 2 * LP_INTERN_SHORT)
        return memcmp(left, right, size) == 0;
    memcpy(&a[0], left, LP_INTERN_SHORT);
    memcpy(&b[0], right, LP_INTERN_SHORT);
    memcpy(&a[1], left + size - LP_INTERN_SHORT, LP_INTERN_SHORT);
    memcpy(&b[1], right + size - LP_INTERN_SHORT, LP_INTERN_SHORT);
    return ((a[0] ^ b[0]) | (a[1] ^ b[1])) == 0;
}

/* The slot of the name, or the free slot for it. */
static inline lp_intern_slot *probe(const lp_intern *intern, const char *name, size_t size, uint64_t key)
{
    for (size_t first = lp_intern_home(intern, key), tried = 0;; tried++) {
        lp_intern_slot *slot = &intern->slots[place(intern, first, tried)];
        if (!slot->size)
            return slot;
        if (slot->key == key && slot->size == size + 1 &&
            (size <= LP_INTERN_SHORT || same_bytes(intern->bytes.data + intern->offset[slot->index], name, size)))
            return slot;
    }
}

/* Adds a name; slot is the free one for it, or NULL. */
static uint32_t add_new(lp_intern *intern, lp_intern_slot *slot, const char *name, size_t size, uint64_t key)
{
    if (intern->count >= LP_INTERN_NONE - 1 || size >= UINT32_MAX)
        return LP_INTERN_NONE;
    if ((size_t)intern->count + 2 > intern->capacity && !grow_names(intern))
        return LP_INTERN_NONE;
    if (!lp_buffer_reserve(&intern->bytes, size + 1))
        return LP_INTERN_NONE;
    size_t slot_count = intern->slot_count;
    if (!lp_intern_reserve(intern, (size_t)intern->count + 1))
        return LP_INTERN_NONE;
    if (intern->slot_count != slot_count)
        slot = probe(intern, name, size, key);
    char *copy = intern->bytes.data + intern->bytes.size;
    memcpy(copy, name, size);
    copy[size] = '\0';
    intern->bytes.size += size + 1;
    LP_ASSERT(!slot->size && (size_t)intern->count * 8 < intern->slot_count * 5);
    uint32_t index = intern->count++;
    intern->offset[index + 1] = intern->bytes.size;
    *slot = (lp_intern_slot){key, (uint32_t)size + 1, index};
    return index;
}

/* The id of this key and size; LP_INTERN_NONE: there is none. */
static uint32_t find_key(const lp_intern *intern, size_t size, uint64_t key)
{
    for (size_t first = lp_intern_home(intern, key), tried = 0;; tried++) {
        const lp_intern_slot *slot = &intern->slots[place(intern, first, tried)];
        if (!slot->size)
            return LP_INTERN_NONE;
        if (slot->key == key && slot->size == size + 1)
            return slot->index;
    }
}

/* The slot of this key if it is in the cache line of `home`, otherwise another slot of that line. No branch depends on
 * the place in the line: one in five would be mispredicted. */
static inline const lp_intern_slot *find_in_line(const lp_intern *intern, size_t home, uint64_t key)
{
    const lp_intern_slot *line = &intern->slots[home & ~(size_t)(LINE - 1)];
    bool second = line[1].key == key, third = line[2].key == key, fourth = line[3].key == key;
    return &line[(second | fourth) + 2 * (third | fourth)];
}

/* Corrects the ids of long names whose hash is that of another one; whether some are new. Each loop prefetches what the
 * next one reads. */
static bool compare_long(const lp_intern *intern, const lp_intern_query *query, int count, uint32_t *id)
{
    bool any_new = false;
    for (int i = 0; i < count; i++)
        if (query[i].size > LP_INTERN_SHORT && id[i] != LP_INTERN_NONE)
            __builtin_prefetch(&intern->offset[id[i]]);
    for (int i = 0; i < count; i++)
        if (query[i].size > LP_INTERN_SHORT && id[i] != LP_INTERN_NONE)
            __builtin_prefetch(intern->bytes.data + intern->offset[id[i]]);
    for (int i = 0; i < count; i++) {
        const lp_intern_query *q = &query[i];
        if (q->size <= LP_INTERN_SHORT || id[i] == LP_INTERN_NONE ||
            same_bytes(intern->bytes.data + intern->offset[id[i]], q->name, q->size))
            continue;
        const lp_intern_slot *slot = probe(intern, q->name, q->size, q->key);
        id[i] = slot->size ? slot->index : LP_INTERN_NONE;
        any_new |= !slot->size;
    }
    return any_new;
}

bool lp_intern_find(const lp_intern *intern, const lp_intern_query *query, int count, uint32_t *id)
{
    const lp_intern table = *intern; /* a copy, because an id that is written might be in *intern */
    bool any_long = false, any_new = false;
    for (int i = 0; i < count; i++) {
        const lp_intern_query *q = &query[i];
        const lp_intern_slot *slot = find_in_line(&table, q->home, q->key);
        any_long |= q->size > LP_INTERN_SHORT;
        id[i] = slot->index;
        if (slot->key != q->key || slot->size != q->size + 1) {
            id[i] = find_key(intern, q->size, q->key);
            any_new |= id[i] == LP_INTERN_NONE;
        }
    }
    if (any_long)
        any_new |= compare_long(intern, query, count, id);
    return !any_new;
}

uint32_t lp_intern_add(lp_intern *intern, const char *name, size_t size, uint64_t key, bool *added)
{
    lp_intern_slot *slot = intern->slots ? probe(intern, name, size, key) : NULL;
    *added = !slot || !slot->size;
    return *added ? add_new(intern, slot, name, size, key) : slot->index;
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
