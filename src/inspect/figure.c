/* figure.c: builds figures and writes their numbers as CSV. */
#include "inspect/figure.h"

#include "inspect/svg.h"
#include "lapse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lp_figures_clear(lp_figures *figures)
{
    for (lp_figure *f = figures->first; f; f = f->next)
        for (lp_series *s = f->series; s; s = s->next)
            lp_free(s->points);
    lp_arena_clear(&figures->arena);
    *figures = (lp_figures){0};
}

void *lp_figures_alloc(lp_figures *figures, size_t count, size_t size)
{
    void *block = figures->failed ? NULL : lp_arena_alloc(&figures->arena, count * size + 1);
    figures->failed |= !block;
    return block;
}

const char *lp_figures_text(lp_figures *figures, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = size < 0 ? NULL : lp_figures_alloc(figures, (size_t)size + 1, 1);
    if (!text)
        return "";
    va_start(arguments, format);
    vsnprintf(text, (size_t)size + 1, format, arguments);
    va_end(arguments);
    return text;
}

const char *lp_figures_whole(lp_figures *figures, int64_t number)
{
    const char *rest = number < 1000 ? "" : lp_figures_text(figures, ",%03d", (int)(number % 1000));
    return number < 1000 ? lp_figures_text(figures, "%d", (int)number)
                         : lp_figures_text(figures, "%s%s", lp_figures_whole(figures, number / 1000), rest);
}

const char *lp_figures_duration(lp_figures *figures, double seconds)
{
    char words[64], *unit;
    double value = strtod(lapse_duration_format(seconds, words, sizeof words), &unit);
    int letters = (int)strlen(unit) - (value > 1 && value < 1.05); /* 1.03 hours are 1 hour */
    return lp_figures_text(figures, value < 9.95 ? "%.2g%.*s" : "%.0f%.*s", value, letters, unit);
}

const char *lp_figures_slug(lp_figures *figures, const char *prefix, const char *text)
{
    char *id = lp_figures_alloc(figures, strlen(prefix) + strlen(text) + 1, 1);
    if (!id)
        return "";
    size_t start = strlen(prefix);
    memcpy(id, prefix, start + 1);
    for (size_t i = 0; text[i]; i++) {
        char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 32) : text[i];
        id[start + i] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
    }
    return id;
}

/* Two columns may have the same slug: later ids get a number. */
static const char *unique_id(lp_figures *figures, const char *id)
{
    const char *found = id;
    int number = 1;
    for (const lp_figure *f = figures->first; f && !figures->failed; f = f->next)
        if (strcmp(f->id, found) == 0) {
            found = lp_figures_text(figures, "%s-%d", id, ++number);
            f = figures->first;
        }
    return found;
}

lp_figure *lp_figures_add(lp_figures *figures, const char *id, const char *title, const char *caption)
{
    id = unique_id(figures, id);
    lp_figure *figure = lp_figures_alloc(figures, 1, sizeof *figure);
    if (!figure)
        figure = &figures->spare;
    *figure = (lp_figure){.section = figures->section, .id = id, .title = title, .caption = caption};
    if (figure == &figures->spare)
        return figure;
    if (figures->last)
        figures->last->next = figure;
    else
        figures->first = figure;
    return figures->last = figure;
}

void lp_figures_missing(lp_figures *figures, const char *id, const char *title, const char *reason)
{
    lp_figures_add(figures, id, title, "")->missing = reason;
}

int lp_figures_colour(lp_figures *figures, const char *name)
{
    enum {
        FIRST = LP_COLOUR_OTHER + 1,
        EVENTS = LP_SVG_COLOURS - FIRST,
        MOST = sizeof figures->coloured / sizeof *figures->coloured
    };
    int i = 0;
    while (i < figures->colour_count && strcmp(figures->coloured[i], name) != 0)
        i++;
    if (i == figures->colour_count && i < MOST)
        figures->coloured[figures->colour_count++] = lp_figures_text(figures, "%s", name);
    return FIRST + i % EVENTS + LP_SVG_COLOURS * (i / EVENTS);
}

lp_series *lp_figure_series(lp_figures *figures, lp_figure *figure, const char *name, lp_series_mark mark)
{
    lp_series *series = lp_figures_alloc(figures, 1, sizeof *series);
    int colour = 0;
    for (const lp_series *s = figure->series; s; s = s->next)
        colour += s->colour >= 0;
    if (!series)
        series = &figures->spare_series;
    *series = (lp_series){.name = lp_figures_text(figures, "%s", name), .mark = mark, .colour = colour};
    if (series == &figures->spare_series || figure == &figures->spare)
        return series;
    if (figure->last_series)
        figure->last_series->next = series;
    else
        figure->series = series;
    return figure->last_series = series;
}

void lp_series_add_interval(lp_figures *figures, lp_series *series, lp_point point)
{
    if (figures->failed)
        return;
    if (!lp_reserve(&series->points, &series->capacity, (size_t)series->count + 1, sizeof *series->points)) {
        figures->failed = true;
        return;
    }
    series->points[series->count++] = point;
}

void lp_series_add(lp_figures *figures, lp_series *series, double x, double y)
{
    lp_series_add_interval(figures, series, (lp_point){x, y, NAN, NAN});
}

double *lp_figure_grid(lp_figures *figures, lp_figure *figure, int rows, int cols)
{
    figure->grid.values = lp_figures_alloc(figures, (size_t)rows * (size_t)cols, sizeof *figure->grid.values);
    figure->grid.rows = figure->grid.values ? rows : 0;
    figure->grid.cols = cols;
    return figure->grid.values;
}

const char **lp_figure_names(lp_figures *figures, lp_figure_axis *axis, int count)
{
    axis->names = lp_figures_alloc(figures, (size_t)count, sizeof *axis->names);
    axis->name_count = axis->names ? count : 0;
    return axis->names;
}

/* --------------------------------------------------------------------------------------------------- CSV ------ */

static bool add_text(lp_buffer *out, const char *text, bool safe)
{
    bool guard = safe && *text && strchr("=+-@\t\r\n", *text), quoted = strpbrk(text, ",\"\r\n") != NULL;
    bool good = (!quoted || lp_buffer_add(out, "\"", 1)) && (!guard || lp_buffer_add(out, "'", 1));
    for (; good && *text; text++)
        good = lp_buffer_add(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    return good && (!quoted || lp_buffer_add(out, "\"", 1));
}

static bool add_value(lp_buffer *out, const lp_figure_axis *axis, double value, bool safe)
{
    int index = (int)value;
    if (axis->type == LP_AXIS_NAMES && index >= 0 && index < axis->name_count)
        return add_text(out, axis->names[index], safe);
    return isnan(value) ? true : lp_buffer_print(out, "%.9g", value);
}

/* The value in the middle of a column of a grid. */
static double column_value(const lp_figure *figure, int column)
{
    const lp_figure_axis *x = &figure->x;
    double part = (column + 0.5) / figure->grid.cols;
    if (x->type == LP_AXIS_NAMES)
        return column;
    return x->log ? x->from * exp(part * log(x->to / x->from)) : x->from + part * (x->to - x->from);
}

static double row_value(const lp_figure *figure, int row)
{
    const lp_figure_axis *y = &figure->y;
    return y->type == LP_AXIS_NAMES ? row : y->to - (row + 0.5) / figure->grid.rows * (y->to - y->from);
}

static bool grid_csv(const lp_figure *figure, bool safe, lp_buffer *out)
{
    bool good = lp_buffer_print(out, "%s,%s,value\n", figure->y.column, figure->x.column);
    for (int row = 0; good && row < figure->grid.rows; row++)
        for (int column = 0; good && column < figure->grid.cols; column++)
            good = add_value(out, &figure->y, row_value(figure, row), safe) && lp_buffer_add(out, ",", 1) &&
                   add_value(out, &figure->x, column_value(figure, column), safe) &&
                   lp_buffer_print(out, ",%.9g\n",
                                   figure->grid.values[(size_t)row * (size_t)figure->grid.cols + (size_t)column]);
    return good;
}

bool lp_figure_csv(const lp_figure *figure, bool safe, lp_buffer *out)
{
    bool intervals = false;
    bool good = figure->grid.rows == 0 || grid_csv(figure, safe, out);
    if (!figure->series)
        return good;
    for (const lp_series *s = figure->series; s; s = s->next)
        for (int i = 0; i < s->count; i++)
            intervals |= !isnan(s->points[i].low);
    good = good && (figure->grid.rows == 0 || lp_buffer_add(out, "\n", 1)) &&
           lp_buffer_print(out, "%s,%s,%s%s\n", figure->series_column ? figure->series_column : "series",
                           figure->x.column, figure->y.column, intervals ? ",low,high" : "");
    for (const lp_series *s = figure->series; good && s; s = s->next)
        for (int i = 0; good && i < s->count; i++) {
            const lp_point *p = &s->points[i];
            if (isnan(p->x)) /* a gap in a line */
                continue;
            good = add_text(out, s->name, safe) && lp_buffer_add(out, ",", 1) &&
                   add_value(out, &figure->x, p->x, safe) && lp_buffer_add(out, ",", 1) &&
                   add_value(out, &figure->y, p->y, safe);
            if (good && intervals)
                good =
                    isnan(p->low) ? lp_buffer_add(out, ",,", 2) : lp_buffer_print(out, ",%.9g,%.9g", p->low, p->high);
            good = good && lp_buffer_add(out, "\n", 1);
        }
    return good;
}
