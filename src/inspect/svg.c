/* svg.c: writes SVG. Colours and fonts are in one style sheet at the top of every figure; shapes only name their
 * class. */
#include "inspect/svg.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Colours without variables, which not every viewer of SVG knows: ink, strong ink, soft ink, grid, axis, background, negative and positive
 * cells, and the palette: the model, what it is compared with, events. Each has a contrast of at least 4.5 to the page. */
#define COLOURS(ink, strong, soft, grid, axis, page, negative, positive, c0, c1, c2, c3, c4, c5, c6, c7)             \
    "svg text{fill:" ink "}svg .title,svg .heading{fill:" strong "}svg .note{fill:" soft "}svg .number{fill:" strong \
    "}"                                                                                                              \
    "svg .grid{stroke:" grid "}svg .axis,svg .frame{stroke:" axis "}svg .page{fill:" page                            \
    "}svg .reference{stroke:" soft "}"                                                                               \
    "svg .negative{fill:" negative "}svg .positive{fill:" positive "}svg .cursor{stroke:" strong "}"                 \
    "svg .c0{stroke:" c0 ";fill:" c0 "}svg .c1{stroke:" c1 ";fill:" c1 "}svg .c2{stroke:" c2 ";fill:" c2 "}"         \
    "svg .c3{stroke:" c3 ";fill:" c3 "}svg .c4{stroke:" c4 ";fill:" c4 "}svg .c5{stroke:" c5 ";fill:" c5 "}"         \
    "svg .c6{stroke:" c6 ";fill:" c6 "}svg .c7{stroke:" c7 ";fill:" c7 "}"

const char lp_svg_style[] =
    "svg text{font:12px 'Helvetica Neue',Helvetica,Arial,sans-serif}"
    "svg .title{font-size:16px;font-weight:600}svg .heading{font-size:13px;font-weight:600}"
    "svg .number{font-size:10px;text-anchor:middle}svg .right{text-anchor:end}svg .middle{text-anchor:middle}" COLOURS(
        "#4a4a4a", "#1a1a1a", "#5f5f5f", "#e6e6e6", "#9a9a9a", "#fff", "#1f5fa8", "#b2182b", "#0072b2", "#6e6e6e",
        "#c24e00", "#00795a", "#a94d86", "#8a6d00", "#5b50c4",
        "#8c564b") "@media screen and (prefers-color-scheme:dark){" COLOURS("#c4c8cc", "#f2f3f4", "#9aa0a6", "#33373c",
                                                                            "#70767c", "#16181b", "#4aa3df", "#ef6a5b",
                                                                            "#4aa3df", "#9aa0a6", "#ff8a4c", "#2fc598",
                                                                            "#e08fc0", "#e6b93d", "#a79bff",
                                                                            "#c9a097") "}"
                                                                                       "svg path.line,svg .frame,svg "
                                                                                       "path.reference{fill:none}svg "
                                                                                       ".line{stroke-width:1.8;stroke-"
                                                                                       "linejoin:round}"
                                                                                       "svg "
                                                                                       ".band{fill-opacity:.16;stroke:"
                                                                                       "none}svg "
                                                                                       ".reference{stroke-width:1.2;"
                                                                                       "stroke-dasharray:2 3}"
                                                                                       "svg "
                                                                                       ".cells{shape-rendering:"
                                                                                       "crispEdges;stroke:none}svg "
                                                                                       ".cursor{stroke-width:1.5;"
                                                                                       "visibility:hidden}"
                                                                                       "svg .again{stroke-dasharray:6 "
                                                                                       "3}";

void lp_svg_print(lp_svg *svg, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof text || !lp_buffer_add(&svg->text, text, (size_t)size))
        svg->failed = true;
}

bool lp_xml_add(lp_buffer *out, const char *text)
{
    size_t length = strlen(text);
    bool utf8 = lp_text_is_utf8(text, text + length), good = true;
    for (size_t i = 0; good && i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        const char *name = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : NULL;
        char plain[2] = {c < 32 || c == 127 || (c > 127 && !utf8) ? '?' : (char)c, 0};
        name = name ? name : plain;
        good = lp_buffer_add(out, name, strlen(name));
    }
    return good;
}

static void add_escaped(lp_svg *svg, const char *words)
{
    if (!lp_xml_add(&svg->text, words))
        svg->failed = true;
}

void lp_svg_open_inline(lp_svg *svg, int width, int height, const char *title, const char *description)
{
    lp_svg_print(svg,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                 "role=\"img\">\n<title>",
                 width, height, width, height);
    add_escaped(svg, title);
    lp_svg_print(svg, "</title>\n<desc>");
    add_escaped(svg, description);
    lp_svg_print(svg, "</desc>\n");
}

void lp_svg_open(lp_svg *svg, int width, int height, const char *title)
{
    lp_svg_open_inline(svg, width, height, title, "");
    lp_svg_print(svg, "<style>");
    if (!lp_buffer_add(&svg->text, lp_svg_style, strlen(lp_svg_style)))
        svg->failed = true;
    lp_svg_print(svg, "</style>\n<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

void lp_svg_close(lp_svg *svg)
{
    lp_svg_print(svg, "</svg>\n");
}

void lp_svg_clear(lp_svg *svg)
{
    lp_buffer_clear(&svg->text);
    *svg = (lp_svg){0};
}

void lp_svg_line(lp_svg *svg, const char *class_name, double x1, double y1, double x2, double y2)
{
    lp_svg_print(svg, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class_name, x1, y1, x2,
                 y2);
}

void lp_svg_words(lp_svg *svg, const char *class_name, double x, double y, const char *words)
{
    lp_svg_print(svg, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class_name, x, y);
    add_escaped(svg, words);
    lp_svg_print(svg, "</text>\n");
}
