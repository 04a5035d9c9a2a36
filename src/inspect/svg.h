/* svg.h: a picture as SVG text, written into memory. Lapse needs lines, areas, cells and words, and no library for
 * them. */
#ifndef LP_SVG_H
#define LP_SVG_H

#include "base/memory.h"

typedef struct lp_svg {
    lp_buffer text;
    bool failed; /* memory ran out: the picture is not whole */
} lp_svg;

/* A picture starts as {0}. Sizes and places are pixels, from the upper left corner. */
void lp_svg_open(lp_svg *svg, int width, int height, const char *title);
void lp_svg_close(lp_svg *svg);
void lp_svg_clear(lp_svg *svg);

/* Text that goes in as it is. */
void lp_svg_print(lp_svg *svg, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* class_name is one of the style's: "grid", "axis", "stem", ... */
void lp_svg_line(lp_svg *svg, const char *class_name, double x1, double y1, double x2, double y2);
/* Words at a place, escaped; class_name may be two joined by a space, such as "label right". */
void lp_svg_words(lp_svg *svg, const char *class_name, double x, double y, const char *words);

#endif
