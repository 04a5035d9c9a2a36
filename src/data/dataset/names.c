/* names.c: a hash table over a string table (open addressing, load factor at most 1/2). A slot stores only the name's
 * index. */
#include "data/dataset/names.h"

#include "base/assert.h"
#include "base/system.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

/* Up to this many names a linear search is faster. */
enum { FEW_NAMES = 8 };

static size_t home(const lp_names *names, const char *name, size_t size)
{
    return (size_t)XXH3_64bits(name, size) & (names->slot_count - 1);
}

static bool make_slots(lp_arena *arena, lp_names *names)
{
    size_t count = 2 * FEW_NAMES;
    if (names->count <= FEW_NAMES || names->count > INT32_MAX)
        return true;
    while (count < 2 * (size_t)names->count)
        count *= 2;
    int32_t *slots = lp_arena_alloc(arena, count * sizeof *slots);
    if (!slots)
        return false;
    LP_ASSERT((count & (count - 1)) == 0 && (size_t)names->count * 2 <= count);
    names->slots = slots;
    names->slot_count = count;
    for (int64_t i = 0; i < names->count; i++) {
        const char *name = lp_names_get(names, i);
        size_t at = home(names, name, strlen(name));
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = (int32_t)(i + 1);
    }
    return true;
}

bool lp_names_copy(lp_arena *arena, const lp_names *from, lp_names *to)
{
    size_t count = (size_t)from->count + 1, size = (size_t)from->offset[from->count];
    uint64_t *offset = lp_arena_alloc(arena, count * sizeof *offset);
    char *bytes = lp_arena_alloc(arena, size);
    if (!offset || !bytes)
        return false;
    memcpy(offset, from->offset, count * sizeof *offset);
    memcpy(bytes, from->bytes, size);
    *to = (lp_names){.count = from->count, .offset = offset, .bytes = bytes};
    return make_slots(arena, to);
}

/* Names that lp_names_unique checks at most: their slots are numbered by 32 bits. */
static const int64_t MAX_UNIQUE = INT64_C(3) << 30;

/* A slot of lp_names_unique. The tag avoids nearly all comparisons of different names. */
typedef struct unique_slot {
    uint32_t tag;
    uint32_t index; /* of the name, + 1; 0: the slot is free */
} unique_slot;

lapse_status lp_names_unique(const lp_names *names, int64_t *first, int64_t *second)
{
    if (names->count > MAX_UNIQUE)
        return LAPSE_ERROR_MEMORY;
    uint64_t count = (uint64_t)names->count + (uint64_t)names->count / 3 + 1; /* load factor 3/4 */
    unique_slot *slots = lp_alloc(count, sizeof *slots);
    if (!slots)
        return LAPSE_ERROR_MEMORY;
    /* Names of a file may be chosen to collide under a known seed, which would make the table quadratic. */
    uint64_t seed = lp_system_random();
    lapse_status status = LAPSE_OK;
    for (int64_t i = 0; status == LAPSE_OK && i < names->count; i++) {
        const char *name = lp_names_get(names, i);
        size_t size = names->offset[i + 1] - names->offset[i];
        uint64_t hash = XXH3_64bits_withSeed(name, size, seed), at = (hash >> 32) * count >> 32;
        for (; slots[at].index; at = at + 1 < count ? at + 1 : 0) {
            int64_t other = (int64_t)slots[at].index - 1;
            if (slots[at].tag != (uint32_t)hash || strcmp(lp_names_get(names, other), name) != 0)
                continue;
            *first = other;
            *second = i;
            status = LAPSE_ERROR_FORMAT;
            break;
        }
        slots[at] = (unique_slot){(uint32_t)hash, (uint32_t)i + 1};
    }
    lp_free(slots);
    return status;
}

static int64_t find_linear(const lp_names *names, const char *name)
{
    for (int64_t i = 0; i < names->count; i++)
        if (strcmp(lp_names_get(names, i), name) == 0)
            return i;
    return -1;
}

int64_t lp_names_find(const lp_names *names, const char *name)
{
    if (!names->slots)
        return find_linear(names, name);
    for (size_t at = home(names, name, strlen(name)); names->slots[at]; at = (at + 1) & (names->slot_count - 1))
        if (strcmp(lp_names_get(names, names->slots[at] - 1), name) == 0)
            return names->slots[at] - 1;
    return -1;
}
