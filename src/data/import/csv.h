/* csv.h: records and fields of delimited text (RFC 4180, read leniently).
 *
 * A field that begins with a quote ends at the next quote that is not doubled, and may hold delimiters, doubled quotes
 * and line breaks. A quote anywhere else is an ordinary character. Lines end with LF or CR LF.
 */
#ifndef LP_CSV_H
#define LP_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that must be readable (not meaningful) after the end of a text given to a scanner. */
enum { LP_CSV_PADDING = 64 };

/* How much of a text is whole records. */
typedef struct lp_csv_cut {
    size_t size;  /* bytes of whole records from the start, line ends included */
    size_t quote; /* where a quoted field begins that does not end in the text, or SIZE_MAX */
} lp_csv_cut;

/* The text must begin where a record begins. */
lp_csv_cut lp_csv_cut_text(const char *text, size_t size, char delimiter);

typedef struct lp_csv_record {
    const char **begin, **end; /* fields 0 .. capacity-1; the caller's */
    int64_t capacity;
    int64_t count;    /* fields there are: more than capacity if they do not fit */
    int64_t lines;    /* line ends in the record */
    bool after_quote; /* a quoted field is followed by something else than a delimiter: field fault_field */
    int64_t fault_field;
} lp_csv_record;

typedef struct lp_csv_scanner {
    char *at, *end; /* the next record begins at `at` */
    char delimiter;
    const char *base; /* 64 bytes whose marks not yet used are in mask */
    uint64_t mask;
} lp_csv_scanner;

/* The text is whole records, each with its line end, and may be changed: quoted fields are unpacked in their place. */
void lp_csv_start(lp_csv_scanner *scanner, char *text, size_t size, char delimiter);

/* The next record; false at the end. */
bool lp_csv_next(lp_csv_scanner *scanner, lp_csv_record *record);

/* A record with one empty field: an empty line. */
static inline bool lp_csv_is_blank(const lp_csv_record *record)
{
    return record->count == 1 && record->begin[0] == record->end[0];
}

/* The delimiter of a text, told from its first line: the most frequent of comma, tab, semicolon and bar outside quotes.
 */
char lp_csv_guess(const char *text, size_t size);

#endif
