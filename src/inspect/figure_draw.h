/* figure_draw.h: draws a figure (figure.h) as SVG. */
#ifndef LP_FIGURE_DRAW_H
#define LP_FIGURE_DRAW_H

#include "inspect/figure.h"
#include "inspect/svg.h"

/* The width of a figure in the report and in files: that of a phone, so that its text is never shrunk. */
enum { LP_FIGURE_WIDTH = 360 };

/* The height of a figure of this width, with or without its title. A grid is as high as its rows need. */
int lp_figure_height(const lp_figure *figure, int width, bool heading);

/* Draws a figure with its upper left corner at (x, y), and its title as a heading if asked for. */
void lp_figure_draw(const lp_figure *figure, lp_svg *svg, double x, double y, int width, bool heading);

#endif
