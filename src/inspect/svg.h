/* svg.h: writes SVG into memory: lines and text; other shapes with lp_svg_print. */
#ifndef LP_SVG_H
#define LP_SVG_H

#include "base/memory.h"

typedef struct lp_svg {
    lp_buffer text;
    bool failed; /* out of memory: the figure is incomplete */
} lp_svg;

/* Initialize with {0}. Sizes and positions are in pixels from the upper left corner. A file has its own style sheet and background; a part
 * of a page uses the page's, which must contain lp_svg_style. */
void lp_svg_open(lp_svg *svg, int width, int height, const char *title);
void lp_svg_open_inline(lp_svg *svg, int width, int height, const char *title, const char *description);
void lp_svg_close(lp_svg *svg);
void lp_svg_clear(lp_svg *svg);

/* The style sheet, for a light and a dark screen. */
extern const char lp_svg_style[];

/* Colours of the palette of series: classes c0, c1, ... */
enum { LP_SVG_COLOURS = 8 };

/* Appends text with &, <, > and " escaped. Control characters and, in text that is not UTF-8, all bytes beyond ASCII become
 * '?'. False: out of memory. */
bool lp_xml_add(lp_buffer *out, const char *text);

/* Appends raw SVG. */
void lp_svg_print(lp_svg *svg, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* class_name is a class of the style sheet: "grid", "axis", "stem", ... */
void lp_svg_line(lp_svg *svg, const char *class_name, double x1, double y1, double x2, double y2);
/* Text at a position, escaped; class_name may be two classes separated by a space, such as "label right". */
void lp_svg_words(lp_svg *svg, const char *class_name, double x, double y, const char *words);

#endif
