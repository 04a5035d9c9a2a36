/* text_fold.c: see text_fold.h. */
#include "data/import/text_fold.h"

/* The letters of U+00C0 to U+017F; a blank where there is none. */
static const char latin[] = "aaaaaaaceeeeiiiidnooooo ouuuuytsaaaaaaaceeeeiiiidnooooo ouuuuyty"
                            "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll"
                            "lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

size_t lp_text_fold(const char *begin, const char *end, char *out, size_t size)
{
    size_t used = 0;
    for (const unsigned char *at = (const unsigned char *)begin; at < (const unsigned char *)end && used + 2 < size;
         at++) {
        unsigned char c = *at;
        if (c < 0x80) {
            out[used++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
            continue;
        }
        unsigned next = at + 1 < (const unsigned char *)end ? at[1] : 0;
        unsigned code = (c & 0x1Fu) << 6 | (next & 0x3Fu);
        if (c >= 0xC3 && c <= 0xC5 && (next & 0xC0) == 0x80 && code >= 0xC0 && code <= 0x17F &&
            latin[code - 0xC0] != ' ') {
            out[used++] = latin[code - 0xC0];
            at++;
            continue;
        }
        if (c == 0xCC && (next & 0xC0) == 0x80) { /* combining accents */
            at++;
            continue;
        }
        if ((c == 0xD0 || c == 0xD1) && (next & 0xC0) == 0x80) { /* Cyrillic: U+0410 .. U+042F are capitals */
            code = code >= 0x410 && code <= 0x42F ? code + 0x20 : code;
            out[used++] = (char)(0xC0 | code >> 6);
            out[used++] = (char)(0x80 | (code & 0x3F));
            at++;
            continue;
        }
        out[used++] = (char)c;
    }
    out[used] = 0;
    return used;
}
