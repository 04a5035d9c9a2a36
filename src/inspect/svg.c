/* svg.c: writes SVG. Colours and fonts are in one style sheet at the top of every figure; shapes only name their
 * class. */
#include "inspect/svg.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char style[] = "text{font:12px 'Helvetica Neue',Helvetica,Arial,sans-serif;fill:#4a4a4a}"
                            ".title{font-size:16px;font-weight:600;fill:#1a1a1a}"
                            ".heading{font-size:13px;font-weight:600;fill:#1a1a1a}"
                            ".note{fill:#767676}"
                            ".label{font-size:11px}"
                            ".right{text-anchor:end}"
                            ".middle{text-anchor:middle}"
                            ".grid{stroke:#e6e6e6}"
                            ".axis{stroke:#9a9a9a}"
                            ".stem{stroke:#2f5d8c;stroke-width:1.6}"
                            ".overtone{stroke:#e08a3c;stroke-width:1.2}"
                            "circle.stem{fill:#2f5d8c;stroke:none}"
                            "circle.overtone{fill:#e08a3c;stroke:none}"
                            ".band{fill:#2f5d8c;fill-opacity:.16;stroke:none}"
                            ".curve{fill:none;stroke:#2f5d8c;stroke-width:1.6;stroke-linejoin:round}"
                            ".cells{shape-rendering:crispEdges;stroke:none}";

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

/* XML permits neither control characters nor invalid UTF-8: both become '?'. */
static void add_escaped(lp_svg *svg, const char *words)
{
    size_t length = strlen(words);
    bool utf8 = lp_text_is_utf8(words, words + length);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)words[i];
        const char *name = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : NULL;
        char plain[2] = {c < 32 || c == 127 || (c > 127 && !utf8) ? '?' : (char)c, 0};
        name = name ? name : plain;
        if (!lp_buffer_add(&svg->text, name, strlen(name)))
            svg->failed = true;
    }
}

void lp_svg_open(lp_svg *svg, int width, int height, const char *title)
{
    lp_svg_print(svg,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                 "role=\"img\">\n<title>",
                 width, height, width, height);
    add_escaped(svg, title);
    lp_svg_print(svg, "</title>\n<style>");
    if (!lp_buffer_add(&svg->text, style, sizeof style - 1))
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
