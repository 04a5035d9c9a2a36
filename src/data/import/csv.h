/* csv.h: records and fields of delimited text (RFC 4180, parsed leniently).
 *
 * A field that begins with a quote ends at the next quote that is not doubled, and may contain delimiters, doubled
 * quotes and line breaks. A quote anywhere else is an ordinary character. Lines end with LF or CR LF.
 */
#ifndef LP_CSV_H
#define LP_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Messages of malformed text. */
#define LP_CSV_AFTER_QUOTE "text follows the closing quote of a field; a quote inside a quoted field must be doubled"
#define LP_CSV_BINARY "this is a binary file, not text: it has a NUL byte"

/* Bytes that must be readable after the end of a text; their values do not matter. */
enum { LP_CSV_PADDING = 64 };

/* The part of a text that is whole records. */
typedef struct lp_csv_cut {
    size_t size;  /* bytes of whole records from the start, line ends included */
    size_t quote; /* offset of a quoted field without end, or SIZE_MAX */
} lp_csv_cut;

/* The text must begin where a record begins. */
lp_csv_cut lp_csv_cut_text(const char *text, size_t size, char delimiter);

typedef struct lp_csv_record {
    const char **begin, **end; /* fields 0 .. capacity-1; the caller owns the arrays */
    int64_t capacity;
    int64_t count;    /* number of fields, may exceed capacity */
    int64_t lines;    /* line ends in the record */
    const char *text; /* JSON Lines: the beginning of the line */
    bool after_quote; /* text follows the closing quote of field fault_field */
    int64_t fault_field;
} lp_csv_record;

typedef struct lp_csv_scanner {
    char *at, *end; /* the next record begins at `at` */
    char delimiter;
    const char *base; /* the 64 bytes that mask describes; used bits of mask are cleared */
    uint64_t mask;
} lp_csv_scanner;

/* The text must be whole records, each with its line end. It is modified: quoted fields are unescaped in place. */
void lp_csv_start(lp_csv_scanner *scanner, char *text, size_t size, char delimiter);

/* The next record; false at the end. */
bool lp_csv_next(lp_csv_scanner *scanner, lp_csv_record *record);

/* Number of line ends in begin .. end. */
int64_t lp_csv_line_ends(const char *begin, const char *end);

/* Allocates the arrays of a record; false when out of memory. Free them with lp_csv_record_clear in any case. */
bool lp_csv_record_init(lp_csv_record *record, int64_t capacity);
void lp_csv_record_clear(lp_csv_record *record);

/* An empty line: a record with one empty field. */
static inline bool lp_csv_is_blank(const lp_csv_record *record)
{
    return record->count == 1 && record->begin[0] == record->end[0];
}

/* Detects the delimiter from the first line: the most frequent of comma, tab, semicolon and bar outside quotes. */
char lp_csv_guess(const char *text, size_t size);

#endif
