/* text.h: parsing of text that is not NUL-terminated, such as a CSV field; UTF-8; lookup by name. */
#ifndef LP_TEXT_H
#define LP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Reads the decimal number that fills begin .. end exactly: sign, digits, point, digits, exponent. The value is
 * correctly rounded and does not depend on the locale. False for anything else: blanks, "nan", "inf", hexadecimal, no
 * digit at all, a value beyond the range of double. */
bool lp_number_parse(const char *begin, const char *end, double *value);

/* Trims spaces and tabs at both ends of *begin .. *end. */
void lp_text_trim(const char **begin, const char **end);

/* Whether begin .. end equals the ASCII word, ignoring case. */
bool lp_text_is(const char *begin, const char *end, const char *word);

/* Whether begin .. end is well-formed UTF-8 (RFC 3629). */
bool lp_text_is_utf8(const char *begin, const char *end);

/* Bytes of the UTF-8 character at `at` < end, or 0 if it is not well-formed. In NUL-terminated text end may be at + 4: a
 * NUL byte ends a character. */
size_t lp_utf8_size(const char *at, const char *end);

/* Buffer size of lp_text_excerpt. */
enum { LP_EXCERPT_SIZE = 56 };

/* Formats begin .. end for a message: about 40 bytes at most, whole UTF-8 characters, '?' for unprintable bytes, "..." if
 * truncated. Returns out. */
const char *lp_text_excerpt(const char *begin, const char *end, char out[LP_EXCERPT_SIZE]);

/* The index of a text in a NULL-terminated list of names; -1 if it is absent or NULL. */
int lp_name_index(const char *text, const char *const *names);

/* Finds a row by name. rows: a NULL-terminated array of pointers to structs whose first member is `const char *name`.
 * Returns the row, or NULL if it is absent or name is NULL. */
const void *lp_find_by_name(const void *rows, const char *name);

#endif
