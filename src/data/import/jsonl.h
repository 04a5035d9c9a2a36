/* jsonl.h: records of JSON Lines text (RFC 8259, one object per line).
 *
 * The scalar values of an object become the fields of a record: a string without its quotes and escapes, a number, true or
 * false as written. null, NaN and absent keys are empty fields. Values of other keys are checked, but not kept.
 */
#ifndef LP_JSONL_H
#define LP_JSONL_H

#include "data/import/csv.h"
#include "data/import/json_keys.h"
#include "data/import/sample.h"

/* A key that lp_json_keys does not have, seen in the current line. */
typedef struct lp_json_stranger {
    const char *text;
    uint32_t size, scope;
    uint32_t line;
} lp_json_stranger;

/* The parser of one worker. */
typedef struct lp_jsonl {
    const lp_json_keys *keys; /* shared */
    lp_json_keys *growing;    /* NULL, or the same keys: new ones are added and named */
    bool lenient;             /* arrays are empty fields, not errors */
    int32_t *next;            /* owned; [key]: the key that followed it last time */
    uint32_t *seen;           /* owned; [key]: the last line that has it */
    size_t capacity;          /* of next and seen */
    int64_t *columns;         /* owned; the columns that are read */
    int64_t column_count;
    lp_json_stranger *strangers; /* owned; hash table; capacity is a power of two */
    size_t stranger_count, stranger_capacity;
    uint32_t line;  /* counts lines, for seen and strangers */
    uint32_t scope; /* counts the objects of a line */
    int32_t previous;
    char *begin, *line_end, *end; /* the current line, up to its line end; the end of the text */
    lp_csv_record *record;
    const char *message; /* of a malformed line, or NULL when out of memory */
    int64_t key;         /* that the message is about: an index of keys; LP_JSON_NONE */
    int64_t position;    /* of the error: byte of the line, from 1 */
} lp_jsonl;

typedef enum lp_jsonl_result {
    LP_JSONL_END,
    LP_JSONL_ROW,
    LP_JSONL_BLANK,    /* an empty line */
    LP_JSONL_MALFORMED /* see message, key and position; the next call reads the next line */
} lp_jsonl_result;

/* record->capacity is the number of columns. False when out of memory. Free it with lp_jsonl_clear in any case. */
bool lp_jsonl_init(lp_jsonl *parser, const lp_json_keys *keys, lp_csv_record *record);
void lp_jsonl_clear(lp_jsonl *parser);

/* The text must be whole lines, each with its line end, and LP_CSV_PADDING readable bytes after them. It is modified:
 * strings are unescaped in place. */
void lp_jsonl_start(lp_jsonl *parser, char *text, size_t size);

/* Reads the next line into the record. */
lp_jsonl_result lp_jsonl_next(lp_jsonl *parser);

/* Collects the keys of the whole lines of a text, and their values as a sample. Malformed lines are left to the reader.
 * False when out of memory. */
bool lp_jsonl_discover(lp_json_keys *keys, lp_sample *sample, const char *text, size_t size);

#endif
