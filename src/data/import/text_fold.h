/* text_fold.h: words of headers and dates without case and accents, so that one table serves many languages. */
#ifndef LP_TEXT_FOLD_H
#define LP_TEXT_FOLD_H

#include <stddef.h>

/* Writes begin .. end in lower case and without accents (Latin and Cyrillic letters of UTF-8 text; others as they are) into
 * out, cut at size - 1 bytes. Returns the number of bytes. */
size_t lp_text_fold(const char *begin, const char *end, char *out, size_t size);

#endif
