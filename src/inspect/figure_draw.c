/* figure_draw.c: axes, legend, and the marks of series or the cells of a grid. */
#include "inspect/figure_draw.h"

#include "base/text.h"
#include "inspect/axis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADING = 26,     /* height of a title of one line */
    LEGEND_LINE = 18, /* height of a line of the legend */
    BOTTOM = 46,      /* height of the ticks and the name of the x axis */
    PLOT = 190,       /* height of the plot of series */
    ROW_MOST = 22,    /* height of a row of a grid, at most */
    DOTS_MOST = 24,   /* points of a line with dots */
    X_LETTERS = 16,   /* of a name of the x axis, at most */
    Y_LETTERS = 24,   /* of a name of the y axis, at most */
    NAME_BYTES = 192, /* of a shortened name */
    RIGHT = 22,       /* margin on the right, for half of the last tick's label */
    LEVELS = 12       /* colours of a grid on each side of zero */
};

typedef struct canvas {
    const lp_figure *figure;
    lp_svg *svg;
    lp_axis x, y;
    double left, right, top, bottom;
} canvas;

/* The bytes of so many characters of a text. Text that is not UTF-8 counts by bytes. *count: the characters that there are. */
static size_t bytes_of(const char *text, int characters, int *count)
{
    const char *end = text + strlen(text), *at = text;
    for (*count = 0; at < end && *count < characters; ++*count) {
        size_t size = lp_utf8_size(at, end);
        at += size ? size : 1;
    }
    return (size_t)(at - text);
}

/* Shortens a name to some characters: an ellipsis takes the place of its middle. */
static const char *shorten(const char *name, int characters, char out[NAME_BYTES])
{
    int count, ignored, head = characters * 3 / 5;
    bytes_of(name, 1 << 30, &count);
    if (count <= characters)
        snprintf(out, NAME_BYTES, "%s", name);
    else
        snprintf(out, NAME_BYTES, "%.*s\xe2\x80\xa6%s", (int)bytes_of(name, head, &ignored), name,
                 name + bytes_of(name, count - (characters - 1 - head), &ignored));
    return out;
}

/* The same for a name of an axis. Names that become equal get a number. */
static const char *shorten_name(const lp_figure_axis *axis, int index, int characters, char out[NAME_BYTES])
{
    char other[NAME_BYTES], number[16];
    const char *name = axis->names[index] ? axis->names[index] : "";
    int same = 1;
    shorten(name, characters, out);
    for (int i = 0; i < index; i++)
        same += axis->names[i] && strcmp(axis->names[i], name) != 0 &&
                strcmp(shorten(axis->names[i], characters, other), out) == 0;
    if (same == 1)
        return out;
    snprintf(number, sizeof number, " %d", same);
    shorten(name, characters - (int)strlen(number), out);
    return strncat(out, number, NAME_BYTES - 1 - strlen(out));
}

/* The width of a shortened name in pixels, at most: fonts differ. */
static double width_of(const char *name, int most)
{
    char text[NAME_BYTES];
    double width = 0;
    for (const char *c = shorten(name, most, text); *c; c++) {
        if (((unsigned char)*c & 0xc0) == 0x80)
            continue;
        bool narrow = strchr("iljtfrI.,:;'|![]() -", *c), wide = strchr("mwMW@%<>=+~#&_", *c);
        width += (unsigned char)*c > 127 ? 12 : narrow ? 5 : wide || (*c >= 'A' && *c <= 'Z') ? 10.5 : 7.5;
    }
    return width;
}

/* ------------------------------------------------------------------------------------------------ legend ------ */

enum { LEGEND_LETTERS = 42 };

/* Whether dots have names on the y axis, and their values beside them. */
static bool is_across(const lp_figure *figure)
{
    return figure->series && figure->series->mark == LP_MARK_INTERVAL && figure->y.type == LP_AXIS_NAMES;
}

static bool has_legend(const lp_figure *figure)
{
    return figure->series && !is_across(figure) && (figure->series->next || figure->series->colour < 0);
}

static void draw_dot(lp_svg *svg, int colour, double x, double y)
{
    lp_svg_print(svg, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\"/>\n", colour % LP_SVG_COLOURS, x, y);
}

/* The class of lines whose colour has been used before. */
static const char *again(const lp_series *s)
{
    return s->colour >= LP_SVG_COLOURS ? " again" : "";
}

static double entry_width(const lp_series *s)
{
    return 34 + width_of(s->name, LEGEND_LETTERS);
}

/* Draws the legend, or with svg NULL only counts its lines. */
static int legend(const lp_figure *figure, lp_svg *svg, double left, double right, double top)
{
    double x = left;
    int lines = 1;
    if (!has_legend(figure))
        return 0;
    for (const lp_series *s = figure->series; s; s = s->next) {
        if (!*s->name)
            continue;
        if (x > left && x + entry_width(s) > right) {
            x = left;
            lines++;
        }
        double y = top + (lines - 0.5) * LEGEND_LINE;
        if (svg) {
            char name[NAME_BYTES];
            if (s->colour < 0)
                lp_svg_line(svg, "reference", x, y, x + 20, y);
            else if (s->mark == LP_MARK_STEM || s->mark == LP_MARK_INTERVAL)
                draw_dot(svg, s->colour, x + 10, y);
            else
                lp_svg_print(svg, "<line class=\"line c%d%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                             s->colour % LP_SVG_COLOURS, again(s), x, y, x + 20, y);
            lp_svg_words(svg, "label", x + 25, y + 4, shorten(s->name, LEGEND_LETTERS, name));
        }
        x += entry_width(s);
    }
    return lines;
}

/* -------------------------------------------------------------------------------------------------- axes ------ */

static void widen(double value, bool log, double *from, double *to)
{
    if (!isfinite(value) || (log && value <= 0))
        return;
    *from = fmin(*from, value);
    *to = fmax(*to, value);
}

/* The range of an axis: that of the figure, or that of its values. An axis of values has 0, so that noise does not look like a signal. */
static void range(const lp_figure *figure, const lp_figure_axis *axis, bool is_y, double *from, double *to)
{
    *from = axis->from;
    *to = axis->to;
    if (axis->type == LP_AXIS_NAMES) {
        *from = is_y ? axis->name_count - 0.5 : -0.5;
        *to = is_y ? -0.5 : axis->name_count - 0.5;
        return;
    }
    if (*from != *to)
        return;
    bool values = is_y || is_across(figure);
    *from = INFINITY;
    *to = -INFINITY;
    if (values)
        widen(0, axis->log, from, to);
    for (const lp_series *s = figure->series; s; s = s->next)
        for (int i = 0; i < s->count; i++) {
            bool along = s->mark == LP_MARK_INTERVAL ? (figure->y.type == LP_AXIS_NAMES) != is_y : is_y;
            widen(is_y ? s->points[i].y : s->points[i].x, axis->log, from, to);
            if (along) {
                widen(s->points[i].low, axis->log, from, to);
                widen(s->points[i].high, axis->log, from, to);
            }
        }
    if (!(*from <= *to)) {
        *from = axis->log ? 1 : 0;
        *to = axis->log ? 10 : 1;
    }
    if (axis->log) {
        double margin = is_y ? pow(*to / *from, 0.04) : 1;
        margin = *to / *from < 1.01 ? 1.5 : margin;
        *from /= margin;
        *to *= margin;
        return;
    }
    double margin = *to > *from ? (values ? 0.05 * (*to - *from) : 0) : fmax(fabs(*to) * 0.1, 0.5);
    *from -= *from == 0 && values ? 0 : margin;
    *to += is_y || !values ? margin : 6 * margin; /* numbers are beside the dots */
}

static int ticks_of(const lp_figure_axis *axis, const lp_axis *scale, double apart, int wanted, lp_tick *ticks)
{
    if (axis->type == LP_AXIS_TIME)
        return lp_axis_time_ticks(scale, apart, ticks);
    if (axis->log)
        return lp_axis_log_ticks(scale, apart, ticks);
    int count = lp_axis_number_ticks(scale, wanted, ticks), kept = 0;
    for (int i = 0; i < count && axis->type == LP_AXIS_WHOLE; i++)
        if (ticks[i].value == floor(ticks[i].value))
            ticks[kept++] = ticks[i];
    if (axis->type == LP_AXIS_WHOLE)
        return kept;
    for (int i = 0; i < count && axis->type == LP_AXIS_PERCENT; i++)
        snprintf(ticks[i].label, sizeof ticks[i].label, "%.6g %%", ticks[i].value * 100);
    return count;
}

/* Names of columns are slanted, so that long ones fit. */
static void x_names(const canvas *c)
{
    const lp_figure_axis *axis = &c->figure->x;
    for (int i = 0; i < axis->name_count; i++) {
        char name[NAME_BYTES];
        double x = lp_axis_pixel(&c->x, i);
        lp_svg_print(c->svg, "<g transform=\"translate(%.1f %.1f) rotate(-40)\">", x + 4, c->bottom + 12);
        lp_svg_words(c->svg, "label right", 0, 0, shorten_name(axis, i, X_LETTERS, name));
        lp_svg_print(c->svg, "</g>\n");
    }
}

static double name_height(const lp_figure *figure)
{
    double longest = 0;
    for (int i = 0; figure->x.type == LP_AXIS_NAMES && i < figure->x.name_count; i++)
        longest = fmax(longest, width_of(figure->x.names[i], X_LETTERS));
    return fmax(0, longest * 0.65 - 10);
}

static void draw_x(const canvas *c)
{
    lp_tick ticks[LP_TICKS];
    const lp_figure_axis *axis = &c->figure->x;
    double below = c->bottom + 36 + name_height(c->figure);
    int count =
        axis->type == LP_AXIS_NAMES ? 0 : ticks_of(axis, &c->x, 52, (int)fmax(2, (c->right - c->left) / 42), ticks);
    for (int i = 0; i < count; i++) {
        double x = lp_axis_pixel(&c->x, ticks[i].value);
        lp_svg_line(c->svg, "grid", x, c->top, x, c->bottom);
        lp_svg_words(c->svg, "label middle", x, c->bottom + 17, ticks[i].label);
    }
    if (axis->type == LP_AXIS_NAMES)
        x_names(c);
    lp_svg_line(c->svg, "axis", c->left, c->bottom, c->right, c->bottom);
    lp_svg_words(c->svg, "note middle", (c->left + c->right) / 2, below, axis->name);
}

static void y_names(const canvas *c)
{
    const lp_figure_axis *axis = &c->figure->y;
    double last = -100;
    for (int i = 0; i < axis->name_count; i++) {
        char name[NAME_BYTES];
        double y = lp_axis_pixel(&c->y, i);
        if (y - last < 12)
            continue;
        lp_svg_words(c->svg, "label right", c->left - 7, y + 4, shorten_name(axis, i, Y_LETTERS, name));
        last = y;
    }
}

static void draw_y(const canvas *c)
{
    lp_tick ticks[LP_TICKS];
    const lp_figure_axis *axis = &c->figure->y;
    if (axis->type == LP_AXIS_NAMES) {
        y_names(c);
        return;
    }
    int count = ticks_of(axis, &c->y, 24, 5, ticks);
    for (int i = 0; i < count; i++) {
        double y = lp_axis_pixel(&c->y, ticks[i].value);
        lp_svg_line(c->svg, ticks[i].value == 0 ? "axis" : "grid", c->left, y, c->right, y);
        lp_svg_words(c->svg, "label right", c->left - 7, y + 4, ticks[i].label);
    }
    lp_svg_print(c->svg, "<g transform=\"translate(%.1f %.1f) rotate(-90)\">", c->left - 46, (c->top + c->bottom) / 2);
    lp_svg_words(c->svg, "note middle", 0, 0, axis->name);
    lp_svg_print(c->svg, "</g>\n");
}

static double left_margin(const lp_figure *figure)
{
    double longest = 0;
    for (int i = 0; figure->y.type == LP_AXIS_NAMES && i < figure->y.name_count; i++)
        longest = fmax(longest, width_of(figure->y.names[i] ? figure->y.names[i] : "", Y_LETTERS));
    return fmax(figure->left, figure->y.type == LP_AXIS_NAMES ? longest + 14 : 58);
}

/* ------------------------------------------------------------------------------------------------- marks ------ */

static double clamp(double value, double a, double b)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), value));
}

static double x_of(const canvas *c, double value)
{
    return clamp(lp_axis_pixel(&c->x, c->x.log && value < c->x.from ? c->x.from : value), c->left, c->right);
}

static double y_of(const canvas *c, double value)
{
    return clamp(lp_axis_pixel(&c->y, c->y.log && value <= 0 ? c->y.from : value), c->y.begin, c->y.end);
}

static bool drawable(const lp_point *p)
{
    return isfinite(p->x) && isfinite(p->y);
}

/* A polygon between low and high, of the runs of points that have them. */
static void draw_band(const canvas *c, const lp_series *s)
{
    for (int first = 0, end; first < s->count; first = end + 1) {
        for (end = first; end < s->count && drawable(&s->points[end]) && isfinite(s->points[end].low); end++)
            continue;
        if (end - first < 2)
            continue;
        lp_svg_print(c->svg, "<path class=\"band c%d\" d=\"", s->colour % LP_SVG_COLOURS);
        for (int i = first; i < end; i++)
            lp_svg_print(c->svg, "%s%.1f %.1f", i > first ? "L" : "M", x_of(c, s->points[i].x),
                         y_of(c, s->points[i].high));
        for (int i = end - 1; i >= first; i--)
            lp_svg_print(c->svg, "L%.1f %.1f", x_of(c, s->points[i].x), y_of(c, s->points[i].low));
        lp_svg_print(c->svg, "Z\"/>\n");
    }
}

static void open_line(const canvas *c, const lp_series *s)
{
    if (s->colour < 0)
        lp_svg_print(c->svg, "<path class=\"reference\" d=\"");
    else
        lp_svg_print(c->svg, "<path class=\"line c%d%s\" d=\"", s->colour % LP_SVG_COLOURS, again(s));
}

static void draw_line(const canvas *c, const lp_series *s)
{
    bool moved = false;
    draw_band(c, s);
    open_line(c, s);
    for (int i = 0; i < s->count; i++) {
        bool shown = drawable(&s->points[i]);
        if (shown)
            lp_svg_print(c->svg, "%s%.1f %.1f", moved ? "L" : "M", x_of(c, s->points[i].x), y_of(c, s->points[i].y));
        moved = shown;
    }
    lp_svg_print(c->svg, "\"/>\n");
    for (int i = 0; i < s->count && s->count <= DOTS_MOST && s->colour >= 0; i++)
        if (drawable(&s->points[i]))
            draw_dot(c->svg, s->colour, x_of(c, s->points[i].x), y_of(c, s->points[i].y));
}

static void draw_stems(const canvas *c, const lp_series *s)
{
    for (int i = 0; i < s->count; i++) {
        double x = x_of(c, s->points[i].x), y = y_of(c, s->points[i].y);
        lp_svg_print(c->svg, "<line class=\"c%d\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                     s->colour % LP_SVG_COLOURS, x, y_of(c, 0), x, y);
        draw_dot(c->svg, s->colour, x, y);
    }
}

static void draw_intervals(const canvas *c, const lp_series *s)
{
    bool across = is_across(c->figure);
    for (int i = 0; i < s->count; i++) {
        const lp_point *p = &s->points[i];
        double x = x_of(c, p->x), y = y_of(c, p->y);
        if (!drawable(p))
            continue;
        if (isfinite(p->low))
            lp_svg_print(c->svg, "<line class=\"line c%d\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                         s->colour % LP_SVG_COLOURS, across ? x_of(c, p->low) : x, across ? y : y_of(c, p->low),
                         across ? x_of(c, p->high) : x, across ? y : y_of(c, p->high));
        draw_dot(c->svg, s->colour, x, y);
        char number[32];
        if (c->figure->x.type == LP_AXIS_PERCENT)
            snprintf(number, sizeof number, "%.1f %%", 100 * p->x);
        else
            snprintf(number, sizeof number, "%.3f", p->x);
        if (across)
            lp_svg_words(c->svg, "label", 7 + (isfinite(p->high) ? x_of(c, p->high) : x), y + 4, number);
    }
}

static void draw_series(const canvas *c, const lp_series *s)
{
    static void (*const draw[])(const canvas *, const lp_series *) = {
        [LP_MARK_LINE] = draw_line, [LP_MARK_STEM] = draw_stems, [LP_MARK_INTERVAL] = draw_intervals};
    draw[s->mark](c, s);
}

/* -------------------------------------------------------------------------------------------------- grid ------ */

/* A diverging colour map: blue below 0, nothing at 0, red above; a sequential one is blue. Cells with numbers stay light enough for them,
 * or dark enough on a dark screen. */
static void open_level(const canvas *c, int level, const char *element)
{
    const lp_grid *grid = &c->figure->grid;
    lp_svg_print(c->svg, "<%s class=\"cells %s\" fill-opacity=\"%.3f\" ", element,
                 level < 0 || !grid->diverging ? "negative" : "positive",
                 abs(level) * (grid->numbers ? 0.6 : 1) / LEVELS);
}

static int level_of(const lp_grid *grid, double value)
{
    double part = grid->most > 0 && isfinite(value) ? value / grid->most : 0;
    return (int)lrint(fmax(-1, fmin(1, part)) * LEVELS);
}

/* One path per colour; adjacent cells of one colour are merged. */
static void draw_cells(const canvas *c)
{
    const lp_grid *grid = &c->figure->grid;
    double height = (c->bottom - c->top) / grid->rows, width = (c->right - c->left) / grid->cols;
    for (int colour = -LEVELS; colour <= LEVELS; colour++) {
        bool open = false;
        for (int row = 0; row < grid->rows && colour != 0; row++) {
            const double *line = grid->values + (size_t)row * (size_t)grid->cols;
            for (int i = 0, next; i < grid->cols; i = next) {
                int level = level_of(grid, line[i]);
                for (next = i + 1; next < grid->cols && level_of(grid, line[next]) == level; next++)
                    continue;
                if (level != colour)
                    continue;
                if (!open) {
                    open_level(c, colour, "path");
                    lp_svg_print(c->svg, "d=\"");
                }
                open = true;
                /* Edges that cells share are the same numbers: otherwise there are seams. */
                lp_svg_print(c->svg, "M%.1f %.1fH%.1fV%.1fH%.1fz", c->left + i * width, c->top + row * height,
                             c->left + next * width, c->top + (row + 1) * height, c->left + i * width);
            }
        }
        if (open)
            lp_svg_print(c->svg, "\"/>\n");
    }
    lp_svg_print(c->svg, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", c->left,
                 c->top, c->right - c->left, c->bottom - c->top);
}

static void draw_numbers(const canvas *c)
{
    const lp_grid *grid = &c->figure->grid;
    double height = (c->bottom - c->top) / grid->rows, width = (c->right - c->left) / grid->cols;
    for (int row = 0; row < grid->rows && grid->numbers; row++)
        for (int column = 0; column < grid->cols; column++) {
            double value = grid->values[(size_t)row * (size_t)grid->cols + (size_t)column];
            if (value < 0.005)
                continue;
            lp_svg_print(c->svg, "<text class=\"number\" x=\"%.1f\" y=\"%.1f\">%.0f</text>\n",
                         c->left + (column + 0.5) * width, c->top + (row + 0.5) * height + 3.5, 100 * value);
        }
}

/* The colour bar above the cells on the right, and the name of the rows on the left. */
static void draw_scale(const canvas *c, double top)
{
    enum { CELL = 5 };
    const lp_grid *grid = &c->figure->grid;
    char number[32];
    int first = grid->diverging ? -LEVELS : 0;
    double x = c->right - 40 - (LEVELS - first + 1) * CELL;
    lp_svg_words(c->svg, "note", c->left - left_margin(c->figure) + 4, top + 12, c->figure->y.name);
    snprintf(number, sizeof number, "%.3g", -grid->most);
    lp_svg_words(c->svg, "label right", x - 6, top + 12, grid->diverging ? number : "0 %");
    for (int level = first; level <= LEVELS; level++, x += CELL) {
        open_level(c, level, "rect");
        lp_svg_print(c->svg, "x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"10\"/>\n", x, top + 3, CELL);
    }
    snprintf(number, sizeof number, grid->diverging ? "%.3g" : "%.3g %%", grid->most * (grid->diverging ? 1 : 100));
    lp_svg_words(c->svg, "label", x + 6, top + 12, number);
}

/* ------------------------------------------------------------------------------------------------ figure ------ */

static double plot_height(const lp_figure *figure)
{
    int rows = figure->grid.rows;
    if (rows == 0)
        return figure->y.type == LP_AXIS_NAMES ? 20 + ROW_MOST * figure->y.name_count : PLOT;
    return fmin(rows * ROW_MOST, rows > 40 ? 440 : 360);
}

/* The title in bold, in as many lines as it needs. Draws them, or with svg NULL only counts them. */
static int heading_lines(const lp_figure *figure, lp_svg *svg, double x, double y, int width)
{
    int lines = 0, most = (width - 16) / 7.6; /* letters of a line */
    for (const char *at = figure->title; *at && lines < 4; lines++) {
        char line[2 * NAME_BYTES];
        size_t size = 0, end = 0, limit = (size_t)most < sizeof line - 1 ? (size_t)most : sizeof line - 1;
        for (; size < limit && at[size]; size++)
            end = at[size] == ' ' ? size : end;
        end = !at[size] || end == 0 ? size : end;
        while (end > 1 && ((unsigned char)at[end] & 0xc0) == 0x80)
            end--;
        snprintf(line, sizeof line, "%.*s", (int)end, at);
        if (svg)
            lp_svg_words(svg, "heading", x + 8, y + 17 + 17 * lines, line);
        at += end;
        at += *at == ' ';
    }
    return lines;
}

static double heading_height(const lp_figure *figure, int width, bool heading)
{
    return heading ? HEADING + 17 * (heading_lines(figure, NULL, 0, 0, width) - 1) : 4;
}

int lp_figure_height(const lp_figure *figure, int width, bool heading)
{
    int lines = legend(figure, NULL, left_margin(figure), width - RIGHT, 0) + (figure->grid.rows > 0);
    return (int)(heading_height(figure, width, heading) + lines * LEGEND_LINE + 6 + plot_height(figure) + BOTTOM +
                 name_height(figure));
}

void lp_figure_draw(const lp_figure *figure, lp_svg *svg, double x, double y, int width, bool heading)
{
    double left = x + left_margin(figure), right = x + width - RIGHT, top = y + heading_height(figure, width, heading),
           from, to;
    canvas c = {.figure = figure, .svg = svg, .left = left, .right = right};
    if (heading)
        heading_lines(figure, svg, x, y, width);
    int lines = legend(figure, svg, left, right, top);
    if (figure->grid.rows > 0)
        draw_scale(&c, top + lines++ * LEGEND_LINE);
    c.top = top + lines * LEGEND_LINE + 6;
    c.bottom = c.top + plot_height(figure);
    range(figure, &figure->x, false, &from, &to);
    c.x = (lp_axis){figure->x.log, from, to, left, right};
    range(figure, &figure->y, true, &from, &to);
    c.y = (lp_axis){figure->y.log, from, to, c.bottom, c.top};
    draw_x(&c);
    draw_y(&c);
    if (figure->grid.rows > 0) {
        draw_cells(&c);
        draw_numbers(&c);
    }
    for (const lp_series *s = figure->series; s; s = s->next)
        draw_series(&c, s);
    if (figure->cursor)
        lp_svg_print(svg,
                     "<line class=\"cursor\" data-case=\"%s\" data-left=\"%.1f\" data-right=\"%.1f\" y1=\"%.1f\" "
                     "y2=\"%.1f\"/>\n",
                     figure->cursor, left, right, c.top, c.bottom);
}
