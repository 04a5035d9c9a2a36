/* dataset.h: a dataset in memory: events sorted by sequence and time, in flat columns that are owned or mapped from a
 * file.
 *
 * Invariants
 *   1. start[0] == 0, start[sequence_count] == event_count, start strictly increases: no sequence is empty.
 *   2. Within a sequence time never decreases; every time is finite. Equal times keep the order of the source.
 *   3. 0 <= type[i] < types.count. Type ids are sorted by descending count (ties: by first appearance). Every event
 *      type occurs.
 *   4. A field is an additional column of the source. Its category ids are sorted as type ids are; a missing value is
 *      the category "". A number is finite, or NaN where it is missing. The action, if there is one, is the first
 *      field; categories precede numbers.
 *   5. Sequences are in the order of their first appearance in the source. Names of sequences are unique, and so are
 *      names of event types and of the categories of a field. Names contain no NUL byte.
 */
#ifndef LP_DATASET_H
#define LP_DATASET_H

#include "base/file.h"
#include "base/memory.h"

/* A string table: name i is bytes + offset[i], NUL-terminated, and offset[count] is the size of bytes. A view. */
typedef struct lp_names {
    int64_t count;
    const uint64_t *offset; /* count + 1 */
    const char *bytes;
    const int32_t *slots; /* hash table of names.h: slot_count entries, a power of two; a name's index + 1, or 0;
                           * NULL: none */
    size_t slot_count;
} lp_names;

/* Which split a target event belongs to. */
typedef enum lp_split {
    LP_SPLIT_TRAIN = 0,
    LP_SPLIT_VALID = 1,
    LP_SPLIT_TEST = 2,
    LP_SPLIT_COUNT = 3, /* as a wanted split: all of them */
    LP_SPLIT_NONE = 4   /* of an event that is not a target, only context */
} lp_split;

/* Whether an event belongs to the wanted split. split may be NULL where all are wanted. */
static inline bool lp_split_includes(const uint8_t *split, lp_split wanted, int64_t event)
{
    if (wanted == LP_SPLIT_COUNT)
        return !split || split[event] != LP_SPLIT_NONE;
    return split[event] == (uint8_t)wanted;
}

/* "train", "valid" or "test". */
const char *lp_split_name(lp_split split);

enum { LP_FIELD_LIMIT = 64 };

typedef struct lp_field {
    const char *name; /* of the column */
    lapse_field_type type;
    lp_names categories;     /* of an action or category */
    const int32_t *category; /* event_count; NULL for a number */
    const double *number;    /* event_count; NULL for an action or category */
    void *buffers[3];        /* owned; NULL if the dataset is mapped from a file */
} lp_field;

struct lapse_dataset {
    int64_t sequence_count, event_count;
    const uint64_t *start; /* sequence_count + 1: first event of each sequence */
    const double *time;    /* event_count, unix seconds */
    const int32_t *type;   /* event_count */
    const uint8_t *split;  /* event_count of lp_split; NULL if the source has no split column */
    lp_names types, sequences;
    lp_field *fields; /* field_count, in the arena */
    int field_count;

    /* Metadata: name and text, in the order shown. */
    int property_count;
    const char **property_name, **property_value;

    int sharers; /* objects that keep the dataset alive besides its owner; changed atomically. Not _Atomic: C++ reads this */
    lp_map map;       /* the columns point into it if the dataset is mapped from a file */
    lp_arena arena;   /* owns fields and properties */
    void *buffers[8]; /* owned columns of an imported dataset */
};

/* Keeps a dataset alive until one more lapse_dataset_close. Returns it; any thread may call it. */
lapse_dataset *lp_dataset_share(const lapse_dataset *dataset);

static inline const char *lp_names_get(const lp_names *names, int64_t i)
{
    return names->bytes + names->offset[i];
}

/* "action", "category" or "number". */
const char *lp_field_type_name(lapse_field_type type);

/* The text of a property ("column.event", "source", ...), or NULL. */
const char *lp_dataset_property_find(const lapse_dataset *dataset, const char *name);
/* lapse_dataset_select of the first events[i] events of each sequence, at least 1; events: NULL is all. */
lapse_status lp_dataset_select(const lapse_dataset *dataset, const int64_t *sequences, const int64_t *events,
                               int64_t count, lapse_dataset **selected, lapse_error *error);

/* Whether times are numbers since a start of their own. */
bool lp_dataset_relative(const lapse_dataset *dataset);

#endif
