/* svg.c: writes SVG. Colours and fonts are in one style sheet at the top of every figure; shapes only name their
 * class. */
#include "inspect/svg.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The palette of Okabe and Ito, which the colour-blind can tell apart, without its yellow and black; later colours are
 * dashed as well. */
const char lp_svg_style[] =
    "svg text{font:12px 'Helvetica Neue',Helvetica,Arial,sans-serif;fill:var(--ink,#4a4a4a)}"
    "svg .title{font-size:16px;font-weight:600;fill:var(--strong,#1a1a1a)}"
    "svg .heading{font-size:13px;font-weight:600;fill:var(--strong,#1a1a1a)}"
    "svg .note{fill:var(--soft,#6b6b6b)}"
    "svg .label{font-size:12px}"
    "svg .number{font-size:9px;text-anchor:middle}"
    "svg .right{text-anchor:end}"
    "svg .middle{text-anchor:middle}"
    "svg .grid{stroke:var(--grid,#e6e6e6)}"
    "svg .axis{stroke:var(--axis,#9a9a9a)}"
    "svg .line{fill:none;stroke-width:1.8;stroke-linejoin:round}"
    "svg .band{fill-opacity:.16;stroke:none}"
    "svg .reference{fill:none;stroke:var(--soft,#6b6b6b);stroke-width:1.2;stroke-dasharray:2 3}"
    "svg .frame{fill:none;stroke:var(--axis,#9a9a9a)}"
    "svg .cells{shape-rendering:crispEdges;stroke:none}"
    "svg .c0{stroke:var(--blue,#0072b2);fill:var(--blue,#0072b2)}svg .c1{stroke:#d55e00;fill:#d55e00}"
    "svg .c2{stroke:#009e73;fill:#009e73}svg .c3{stroke:#cc79a7;fill:#cc79a7}"
    "svg .c4{stroke:#e69f00;fill:#e69f00}svg .c5{stroke:#56b4e9;fill:#56b4e9}"
    "svg .c6{stroke:#7f7f7f;fill:#7f7f7f}svg .c7{stroke:var(--brown,#8c564b);fill:var(--brown,#8c564b)}"
    "svg .line.c4,svg .line.c5,svg .line.c6,svg .line.c7{stroke-dasharray:6 3}"
    "svg .line.again{stroke-width:3;stroke-opacity:.5}"
    "svg path.line{fill:none}svg path.band{stroke:none}";

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

void lp_svg_open_inline(lp_svg *svg, int width, int height, const char *title)
{
    lp_svg_print(svg,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                 "role=\"img\">\n<title>",
                 width, height, width, height);
    add_escaped(svg, title);
    lp_svg_print(svg, "</title>\n");
}

void lp_svg_open(lp_svg *svg, int width, int height, const char *title)
{
    lp_svg_open_inline(svg, width, height, title);
    lp_svg_print(svg, "<style>");
    if (!lp_buffer_add(&svg->text, lp_svg_style, strlen(lp_svg_style)))
        svg->failed = true;
    lp_svg_print(svg, "</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
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
