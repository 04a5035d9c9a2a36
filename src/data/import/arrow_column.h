/* arrow_column.h: the types of Arrow columns that an import understands, and their values.
 *
 * Arrow's buffers have no sizes: a length that lies about its buffers cannot be detected. All that can be checked is:
 * counts and offsets are checked when an array is opened, offsets of texts and indices of dictionaries before each use.
 */
#ifndef LP_ARROW_COLUMN_H
#define LP_ARROW_COLUMN_H

#include "base/error.h"
#include "base/zone.h"
#include "data/import/arrow_abi.h"

#include <string.h>

typedef enum lp_arrow_kind {
    LP_ARROW_NULL = 0, /* every value is missing */
    LP_ARROW_BOOL,
    LP_ARROW_INTEGER,
    LP_ARROW_UNSIGNED,
    LP_ARROW_FLOAT,
    LP_ARROW_DECIMAL,   /* an integer / 10^scale */
    LP_ARROW_DATE,      /* 32-bit days, or 64-bit milliseconds */
    LP_ARROW_TIMESTAMP, /* an integer / 10^scale seconds since 1970 UTC */
    LP_ARROW_TEXT,      /* offsets of `size` bytes, 4 or 8 */
    LP_ARROW_VIEW       /* texts of up to 12 bytes inside the element, longer ones in further buffers */
} lp_arrow_kind;

typedef struct lp_arrow_type {
    lp_arrow_kind kind;
    int size;   /* bytes of an element; 0: bits */
    int scale;  /* of LP_ARROW_DECIMAL and LP_ARROW_TIMESTAMP */
    bool local; /* a date, or a timestamp without a zone: seconds since 1970 on a local clock */
} lp_arrow_type;

/* The type of a format string of the C data interface; false: not supported. */
bool lp_arrow_type_parse(const char *format, lp_arrow_type *type);

/* The values of one array. Points into it. */
typedef struct lp_arrow_values {
    lp_arrow_type type;
    int64_t length;       /* elements */
    int64_t offset;       /* of element 0 in the buffers */
    const uint8_t *valid; /* bitmap; NULL: nothing is missing */
    const uint8_t *data;
    const char *text;           /* LP_ARROW_TEXT: all texts of the array, */
    int64_t text_size;          /* and their bytes, if length is not 0 */
    const void *const *buffers; /* LP_ARROW_VIEW: the further buffers, */
    const int64_t *buffer_size; /* their sizes */
    int64_t buffer_count;       /* and their number */
    const struct lp_arrow_values
        *terms; /* of a dictionary-encoded array, whose own values are indices; otherwise NULL */
} lp_arrow_values;

/* Opens `length` elements of an array of this type from `first` on. Returns NULL, or the error as a sentence. */
const char *lp_arrow_open(lp_arrow_values *values, const struct ArrowArray *array, lp_arrow_type type, int64_t first,
                          int64_t length);

static inline bool lp_arrow_bit(const uint8_t *bits, int64_t i)
{
    return bits[i >> 3] >> (i & 7) & 1;
}

static inline bool lp_arrow_missing(const lp_arrow_values *values, int64_t i)
{
    return values->type.kind == LP_ARROW_NULL || (values->valid && !lp_arrow_bit(values->valid, values->offset + i));
}

/* Element i of LP_ARROW_VIEW, which is not missing. False: it is not valid, and the range is not set. */
static inline bool lp_arrow_view(const lp_arrow_values *values, int64_t i, const char **begin, const char **end)
{
    int32_t view[4]; /* size; then up to 12 bytes of text, or a prefix, the buffer, and the offset in it */
    const char *element = (const char *)values->data + (values->offset + i) * 16;
    memcpy(view, element, sizeof view);
    if (view[0] >= 0 && view[0] <= 12) {
        *begin = element + 4;
        *end = *begin + view[0];
        return true;
    }
    if (view[0] < 0 || view[2] < 0 || view[2] >= values->buffer_count || view[3] < 0 || !values->buffers[view[2]] ||
        (int64_t)view[3] + view[0] > values->buffer_size[view[2]])
        return false;
    *begin = (const char *)values->buffers[view[2]] + view[3];
    *end = *begin + view[0];
    return true;
}

/* Element i of a text type, which is not missing; the range is valid even if the element is not. Returns NULL, or the
 * error as a sentence. */
const char *lp_arrow_text(const lp_arrow_values *values, int64_t i, const char **begin, const char **end);

/* Element i of every other type, which is not missing, as 64 bits that are equal for equal values: an integer, the bits
 * of a double, or the integer of a date, timestamp or decimal. False: a decimal does not fit. */
bool lp_arrow_integer(const lp_arrow_values *values, int64_t i, int64_t *value);

/* The index of element i of a dictionary-encoded array, which is not missing; -1: outside the dictionary. */
int64_t lp_arrow_term(const lp_arrow_values *values, int64_t i);

/* Follows a dictionary: the values and the index of element i. False: it is missing, or outside the dictionary. */
bool lp_arrow_resolve(const lp_arrow_values **values, int64_t *i);

static inline bool lp_arrow_is_text(const lp_arrow_values *values)
{
    return values->type.kind == LP_ARROW_TEXT || values->type.kind == LP_ARROW_VIEW;
}

/* The number of an integer of lp_arrow_integer: of a date or timestamp the unix time in seconds; rounded once. */
double lp_arrow_number(lp_arrow_type type, int64_t value);

/* The unix time of an integer of a date or timestamp; one without a zone is a local time of this zone, NULL: UTC. Outside
 * the years 1 to 9999 it is not moved. */
double lp_arrow_instant(lp_arrow_type type, int64_t value, const lp_zone *zone, lp_local *local);

/* Fills out with lp_arrow_number of elements first .. first + count - 1; NaN where one is missing. False: the type is not
 * one of those that this function converts fast. */
bool lp_arrow_numbers(const lp_arrow_values *values, int64_t first, int64_t count, double *out);

/* Fills out with lp_arrow_integer of elements first .. first + count - 1, or with their indices if they are encoded by a
 * dictionary; where one is missing, any integer. False: the type is not one of those that this function reads fast. */
bool lp_arrow_integers(const lp_arrow_values *values, int64_t first, int64_t count, int64_t *out);

/* Whether lp_arrow_number of these elements is from least to most. Also false if some may be missing, or the type is not one
 * of those that this function reads fast. */
bool lp_arrow_within(const lp_arrow_values *values, int64_t first, int64_t count, double least, double most);

/* Formats an integer of lp_arrow_integer as a name: decimal digits; a float with the fewest digits that give it back,
 * such as 5.0 or 1e+16; true or false; ISO 8601. Returns the size. */
enum { LP_ARROW_NAME_SIZE = 64 };
size_t lp_arrow_name(lp_arrow_type type, int64_t value, char out[LP_ARROW_NAME_SIZE]);

/* The text of element i of any type: as it is, or as lp_arrow_name makes it, in out; "" where it is missing or invalid. */
void lp_arrow_value_text(const lp_arrow_values *values, int64_t i, char out[LP_ARROW_NAME_SIZE], const char **begin,
                         const char **end);

#endif
