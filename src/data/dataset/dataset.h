/* dataset.h: events in memory, sorted by sequence and time: flat columns, whether read from text or mapped from a file.
 *
 * Invariants
 *   1. start[0] == 0, start[sequence_count] == event_count, start never decreases, and no sequence is empty.
 *   2. Within a sequence time never decreases; every time is finite. Equal times keep the order of the source.
 *   3. 0 <= event type[i] < type_count. Event types are numbered by how often they occur, the most frequent first (ties: by first
 *      appearance). Every event type occurs.
 *   4. A field is a further column of the source. Its categories are numbered as event types are; where the source had nothing
 *      there, that is the category "". A number is finite, or NaN where the source had nothing. The action, if there is
 *      one, is the first field; categories come before numbers.
 *   5. Sequences stand in the order of their first appearance in the source. Names of sequences are unique, and so
 *      are names of event types.
 */
#ifndef LP_DATASET_H
#define LP_DATASET_H

#include "base/file.h"
#include "base/memory.h"

/* A table of NUL-terminated names: name i is bytes + offset[i], and offset[count] is the size of bytes. A view. */
typedef struct lp_names {
    int64_t count;
    const uint64_t *offset; /* count + 1 */
    const char *bytes;
    const int32_t *slots; /* slot_count, a power of two: a name's number + 1, or 0 (names.h); NULL: none */
    size_t slot_count;
} lp_names;

/* Which split a target event belongs to. */
typedef enum lp_split { LP_SPLIT_TRAIN = 0, LP_SPLIT_VALID = 1, LP_SPLIT_TEST = 2, LP_SPLIT_COUNT = 3 } lp_split;

/* "train", "valid" or "test". */
const char *lp_split_name(lp_split split);

enum { LP_FIELD_LIMIT = 64 };

typedef struct lp_field {
    const char *name; /* of the column */
    lapse_field_type type;
    lp_names categories;     /* of an action or category */
    const int32_t *category; /* event_count; NULL for a number */
    const double *number;    /* event_count; NULL for an action or category */
    void *blocks[3];         /* owned, in a dataset in memory */
} lp_field;

struct lapse_dataset {
    int64_t sequence_count, event_count;
    const uint64_t *start; /* sequence_count + 1: first event of each sequence */
    const double *time;    /* event_count, unix seconds */
    const int32_t *type;   /* event_count */
    const uint8_t *split;  /* event_count of lp_split, or NULL where the source had no such column */
    lp_names types, sequences;
    lp_field *fields; /* field_count, in the arena */
    int field_count;

    /* Where it came from: name and text, in the order shown. */
    int property_count;
    const char **property_name, **property_value;

    lp_map map;      /* what the columns point into, for a mapped file */
    lp_arena arena;  /* what the small things point into */
    void *blocks[8]; /* owned columns of a dataset in memory; freed by lapse_dataset_close */
};

static inline const char *lp_names_get(const lp_names *names, int64_t i)
{
    return names->bytes + names->offset[i];
}

/* Names of a type of field: "action", "category", "number". */
const char *lp_field_type_name(lapse_field_type type);

/* The text of a property ("column.event", "source", ...), or NULL. */
const char *lp_dataset_property_find(const lapse_dataset *dataset, const char *name);

#endif
