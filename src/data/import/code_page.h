/* code_page.h: encodings of one byte for each character. */
#ifndef LP_CODE_PAGE_H
#define LP_CODE_PAGE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum lp_code_page {
    LP_PAGE_1250, /* Central European */
    LP_PAGE_1251, /* Cyrillic */
    LP_PAGE_1252, /* Western European, of which Latin-1 is a part */
    LP_PAGE_LATIN_1,
    LP_PAGE_UNKNOWN /* several bytes for a character, as in Chinese, Japanese and Korean */
} lp_code_page;

/* The Unicode character of a byte. */
unsigned lp_code_page_character(lp_code_page page, unsigned char byte);

/* The page that a text is likely to have, which is not UTF-8. */
lp_code_page lp_code_page_find(const unsigned char *text, size_t size);

#endif
