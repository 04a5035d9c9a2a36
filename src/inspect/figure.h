/* figure.h: figures: their numbers and axes, apart from how they are drawn.
 *
 * A figure is a list of series over two axes, or a grid of values. The same numbers are drawn as SVG (figure_draw.c) and
 * written as CSV, in the report and in files. A figure that cannot be made says why in `missing`.
 *
 * Builders do not fail: out of memory sets lp_figures.failed, which is checked once, at the end. */
#ifndef LP_FIGURE_H
#define LP_FIGURE_H

#include "base/memory.h"

#include <math.h>

typedef enum lp_axis_type {
    LP_AXIS_NUMBER,
    LP_AXIS_WHOLE,   /* numbers with ticks at integers */
    LP_AXIS_TIME,    /* seconds, with ticks in human units */
    LP_AXIS_PERCENT, /* fractions, shown in percent */
    LP_AXIS_NAMES    /* value i is names[i] */
} lp_axis_type;

typedef struct lp_figure_axis {
    const char *name;   /* what it is, as a label */
    const char *column; /* its name in CSV, with the unit, such as "lag_seconds" */
    lp_axis_type type;
    bool log;
    double from, to; /* equal: chosen from the values */
    const char **names;
    int name_count;
} lp_figure_axis;

typedef enum lp_series_mark {
    LP_MARK_LINE,    /* with a band from low to high where points have them */
    LP_MARK_STEM,    /* a line from 0, and a dot */
    LP_MARK_INTERVAL /* a dot, and a line from low to high: along x if y has names, otherwise along y */
} lp_series_mark;

typedef struct lp_point {
    double x, y;
    double low, high; /* an interval; NaN: none */
} lp_point;

/* The model, or the only series of a figure, has colour 0; what it is compared with has colour 1. Events have the others, each the same
 * in all figures (lp_figures_colour). */
enum { LP_COLOUR_REFERENCE = -1, LP_COLOUR_MODEL = 0, LP_COLOUR_OTHER = 1 };

typedef struct lp_series {
    const char *name; /* "": not in the legend */
    lp_series_mark mark;
    int colour; /* of the palette; LP_COLOUR_REFERENCE: thin and dashed */
    lp_point *points;
    int count;
    size_t capacity;
    struct lp_series *next;
} lp_series;

/* rows x cols values. Row 0 is at the top, and column i covers the i-th part of the x axis in pixels. Names of rows are
 * y.names. */
typedef struct lp_grid {
    int rows, cols;
    double *values; /* in the arena */
    double most;    /* the value of the strongest colour */
    bool diverging; /* from -most to most, otherwise from 0 */
    bool numbers;   /* cells show their value in percent; all values are fractions */
} lp_grid;

typedef struct lp_figure {
    const char *section;       /* of the report */
    const char *id;            /* letters, digits and '-'; unique */
    const char *title;         /* what it shows, from its numbers */
    const char *caption;       /* a sentence: how to read it */
    const char *missing;       /* a sentence: why there are no numbers; NULL: there are */
    const char *series_column; /* what the names of series are, in CSV: "event" */
    lp_figure_axis x, y;
    lp_series *series, *last_series;
    lp_grid grid;        /* rows 0: none */
    double left;         /* width of the left margin, at least */
    bool csv_left_out;   /* of the page: another command prints the numbers */
    const char *details; /* of a case: JSON for the page's script, in the arena; NULL: none */
    const char *cursor;  /* id of the case whose slider moves a line along the x axis; NULL: none */
    struct lp_figure *next;
} lp_figure;

typedef struct lp_figures {
    lp_arena arena;
    lp_figure *first, *last;
    const char *section;      /* of the next figures */
    const char *coloured[16]; /* names that have a colour */
    int colour_count;
    bool failed;     /* out of memory: something is missing */
    lp_figure spare; /* written to instead after a failure */
    lp_series spare_series;
} lp_figures;

/* Initialize with {0}. */
void lp_figures_clear(lp_figures *figures);

/* Adds a figure. The texts must outlive the figures, or be of lp_figures_text. */
lp_figure *lp_figures_add(lp_figures *figures, const char *id, const char *title, const char *caption);

/* Adds a figure that cannot be drawn. */
void lp_figures_missing(lp_figures *figures, const char *id, const char *title, const char *reason);

/* A text in the arena; "" after a failure. */
const char *lp_figures_text(lp_figures *figures, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A number with thousands separators. */
const char *lp_figures_whole(lp_figures *figures, int64_t number);

/* A duration in two digits: "34 minutes". */
const char *lp_figures_duration(lp_figures *figures, double seconds);

/* A text for ids: lower-case letters and digits, and '-' for other characters. */
const char *lp_figures_slug(lp_figures *figures, const char *prefix, const char *text);

/* Zeroed memory in the arena; NULL after a failure. */
void *lp_figures_alloc(lp_figures *figures, size_t count, size_t size);

/* The colour of an event on the whole page. */
int lp_figures_colour(lp_figures *figures, const char *name);

/* Adds a series with the next colour; the name is copied. */
lp_series *lp_figure_series(lp_figures *figures, lp_figure *figure, const char *name, lp_series_mark mark);
void lp_series_add(lp_figures *figures, lp_series *series, double x, double y);
void lp_series_add_interval(lp_figures *figures, lp_series *series, lp_point point);

/* Gives the figure a grid of zeros; NULL after a failure. */
double *lp_figure_grid(lp_figures *figures, lp_figure *figure, int rows, int cols);

/* Names of an axis, all NULL at first; NULL after a failure. */
const char **lp_figure_names(lp_figures *figures, lp_figure_axis *axis, int count);

/* Appends the numbers as CSV with a header; false: out of memory. safe: names that a spreadsheet would run as formulas, which begin with
 * =, +, -, @, a tab or a line break, get an apostrophe before them. */
bool lp_figure_csv(const lp_figure *figure, bool safe, lp_buffer *out);

#endif
