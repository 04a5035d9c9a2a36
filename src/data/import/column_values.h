/* column_values.h: what the values of the sample say about columns, and about pairs of columns. */
#ifndef LP_COLUMN_VALUES_H
#define LP_COLUMN_VALUES_H

#include "data/import/sample.h"
#include "data/import/time_field.h"

typedef struct lp_column_values {
    int32_t *id;       /* owned; [rows]: the number of the value, in order of appearance; -1: empty */
    int32_t distinct;  /* numbers in use */
    int64_t filled;    /* values that are not empty */
    int64_t numbers;   /* of these: numbers */
    int64_t fractions; /* numbers that are not whole */
    int64_t texts;     /* values with a letter */
    int64_t
        codes; /* whole numbers of four digits or more, words with a digit (and one blank at most), and those with an @ */
    int64_t words;                     /* blanks between words of all values */
    int64_t paths;                     /* values that begin with a slash, or are addresses of pages */
    int64_t replies;                   /* status codes of HTTP: 200, 404, ... */
    int clock_digits;                  /* lp_sample_clock_digits; 0 with few values */
    int64_t zeros;                     /* whole numbers with ".0" behind them */
    lp_time_look look;                 /* as times */
    double *time;                      /* owned; [rows], NAN: none; NULL unless most values are times */
    double rising, falling;            /* of neighbours with different times: the part that rises or falls */
    double first, last;                /* smallest and largest time */
    const char *example, *example_end; /* a value, in the sample; NULL: there is none */
} lp_column_values;

/* Initialize with {0}. */
typedef struct lp_table_values {
    lp_column_values *columns; /* owned; [count] */
    int64_t count, rows;
} lp_table_values;

/* False when out of memory. Free it with lp_table_values_clear in any case. */
bool lp_table_values_init(lp_table_values *table, const lp_sample *sample, int64_t columns);
void lp_table_values_clear(lp_table_values *table);

/* How two columns belong together. */
typedef struct lp_column_pair {
    double varies; /* of the values of a with several rows: the part with several values of b */
    double shared; /* of the values of b with several rows: the part that occurs with several values of a */
    bool one_to_one;
} lp_column_pair;

/* False when out of memory. */
bool lp_column_pair_of(const lp_column_values *a, const lp_column_values *b, int64_t rows, lp_column_pair *pair);

/* Whether the values are times of day in digits: 4 for 0815, 6 for 081500, also without leading zeros, or 0 if they are not. */
int lp_sample_clock_digits(const lp_sample *sample, int64_t column);

/* Whether all values are whole numbers, some of which have ".0" behind them (pandas writes so where a value is missing). */
bool lp_sample_has_zeros(const lp_sample *sample, int64_t column);

#endif
