/* svg.h: writes a figure as SVG into memory: lines and text; other shapes with lp_svg_print. */
#ifndef LP_SVG_H
#define LP_SVG_H

#include "base/memory.h"

typedef struct lp_svg {
    lp_buffer text;
    bool failed; /* out of memory: the figure is incomplete */
} lp_svg;

/* Initialize with {0}. Sizes and positions are in pixels from the upper left corner. */
void lp_svg_open(lp_svg *svg, int width, int height, const char *title);
void lp_svg_close(lp_svg *svg);
void lp_svg_clear(lp_svg *svg);

/* Appends raw SVG. */
void lp_svg_print(lp_svg *svg, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* class_name is a class of the style sheet: "grid", "axis", "stem", ... */
void lp_svg_line(lp_svg *svg, const char *class_name, double x1, double y1, double x2, double y2);
/* Text at a position, escaped; class_name may be two classes separated by a space, such as "label right". */
void lp_svg_words(lp_svg *svg, const char *class_name, double x, double y, const char *words);

#endif
