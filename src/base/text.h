/* text.h: reading numbers and words out of text that is not NUL-terminated, such as a field of a CSV line. */
#ifndef LP_TEXT_H
#define LP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Reads the decimal number that fills begin .. end exactly: sign, digits, point, digits, exponent. The value is
 * correctly rounded and does not depend on the locale. False for anything else: blanks, "nan", "inf", hexadecimal, no
 * digit at all, a value beyond the range of double. */
bool lp_number_parse(const char *begin, const char *end, double *value);

/* Drops blanks (spaces and tabs) at both ends of *begin .. *end. */
void lp_text_trim(const char **begin, const char **end);

/* Whether begin .. end is the ASCII word, in any case. */
bool lp_text_is(const char *begin, const char *end, const char *word);

/* Whether begin .. end is well-formed UTF-8 (RFC 3629). */
bool lp_text_is_utf8(const char *begin, const char *end);

/* Room for what lp_text_excerpt writes. */
enum { LP_EXCERPT_SIZE = 56 };

/* Shows begin .. end inside a message: at most about 40 bytes, whole UTF-8 characters, '?' for what cannot be printed,
 * "..." where it was cut. Returns out. */
const char *lp_text_excerpt(const char *begin, const char *end, char out[LP_EXCERPT_SIZE]);

/* The place of a text in a NULL-terminated list of names; -1 where it is not there, or NULL. */
int lp_name_index(const char *text, const char *const *names);

#endif
