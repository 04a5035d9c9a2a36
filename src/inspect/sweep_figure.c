/* sweep_figure.c: learning curves of a sweep: the validation score of every run against the seconds of its training. */
#include "base/file.h"
#include "inspect/axis.h"
#include "inspect/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 984,
    LEFT = 100,
    RIGHT = 700,
    TOP = 92,
    BOTTOM = 480,
    HEIGHT = 550,
    LEGEND = 724,
    LINE = 20,
    COLOURS = 8
};

/* The palette of Okabe and Ito, which the colour-blind can tell apart. After the last colour lines are dashed. */
static const char *const colours[COLOURS] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                             "#E69F00", "#56B4E9", "#000000", "#8B6C00"};

typedef struct limits {
    double seconds_from, seconds_to, from, to;
    bool any;
} limits;

/* Calls `use` for every run that has epochs. */
static void each_run(const lapse_sweep *sweep, void (*use)(void *context, int row, const lapse_sweep_result *run),
                     void *context)
{
    lapse_sweep_info info = lapse_sweep_describe(sweep);
    lapse_sweep_result run;
    for (int row = 0; row < info.rows; row++)
        for (int seed = 0; seed < info.seeds; seed++)
            if (lapse_sweep_result_at(sweep, row, seed, &run) && run.epochs > 0)
                use(context, row, &run);
}

static void widen(void *context, int row, const lapse_sweep_result *run)
{
    limits *l = context;
    (void)row;
    for (int e = 0; e < run->epochs; e++) {
        double seconds = fmax(run->curve[2 * e], 1e-3), score = run->curve[2 * e + 1];
        if (!isfinite(score))
            continue;
        l->seconds_from = l->any ? fmin(l->seconds_from, seconds) : seconds;
        l->seconds_to = l->any ? fmax(l->seconds_to, seconds) : seconds;
        l->from = l->any ? fmin(l->from, score) : score;
        l->to = l->any ? fmax(l->to, score) : score;
        l->any = true;
    }
}

typedef struct drawing {
    lp_svg *svg;
    lp_axis x, y;
} drawing;

static const char *dash(int row)
{
    return row >= COLOURS ? " stroke-dasharray=\"6 3\"" : "";
}

static void draw_run(void *context, int row, const lapse_sweep_result *run)
{
    drawing *d = context;
    bool begun = false;
    lp_svg_print(d->svg, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\" stroke-opacity=\"0.8\"%s d=\"",
                 colours[row % COLOURS], dash(row));
    for (int e = 0; e < run->epochs; e++) {
        double score = run->curve[2 * e + 1];
        if (!isfinite(score))
            continue;
        lp_svg_print(d->svg, "%s%.1f %.1f", begun ? "L" : "M", lp_axis_pixel(&d->x, fmax(run->curve[2 * e], 1e-3)),
                     lp_axis_pixel(&d->y, score));
        begun = true;
    }
    lp_svg_print(d->svg, "%s\"/>\n", begun ? "" : "M0 0");
}

static void draw_frame(drawing *d, const char *select)
{
    lp_tick ticks[LP_TICKS];
    char name[96];
    int count = lp_axis_time_ticks(&d->x, 58, ticks);
    for (int i = 0; i < count; i++) {
        double x = lp_axis_pixel(&d->x, ticks[i].value);
        lp_svg_line(d->svg, "grid", x, TOP, x, BOTTOM);
        lp_svg_words(d->svg, "label middle", x, BOTTOM + 17, ticks[i].label);
    }
    count = lp_axis_number_ticks(&d->y, 6, ticks);
    for (int i = 0; i < count; i++) {
        double y = lp_axis_pixel(&d->y, ticks[i].value);
        lp_svg_line(d->svg, "grid", LEFT, y, RIGHT, y);
        lp_svg_words(d->svg, "label right", LEFT - 8, y + 4, ticks[i].label);
    }
    lp_svg_line(d->svg, "axis", LEFT, BOTTOM, RIGHT, BOTTOM);
    lp_svg_words(d->svg, "note middle", (LEFT + RIGHT) / 2.0, BOTTOM + 40, "time since the start of training");
    snprintf(name, sizeof name, "%s on the validation split, one line for each seed", select);
    lp_svg_words(d->svg, "heading", LEFT, TOP - 14, name);
}

static void draw_legend(drawing *d, const lapse_sweep *sweep)
{
    lapse_sweep_cell row;
    for (int r = 0; lapse_sweep_row(sweep, r, &row); r++) {
        double y = TOP + LINE * r;
        if (row.epochs.count == 0)
            continue;
        lp_svg_print(d->svg, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"3\"%s d=\"M%d %.1fL%d %.1f\"/>\n",
                     colours[r % COLOURS], dash(r), LEGEND, y, LEGEND + 24, y);
        lp_svg_words(d->svg, "label", LEGEND + 32, y + 4, row.row);
    }
}

lapse_status lapse_sweep_save_svg(const lapse_sweep *sweep, const char *title, const char *path, lapse_error *error)
{
    LP_REQUIRE(error, sweep, path);
    limits l = {0};
    lapse_sweep_info info = lapse_sweep_describe(sweep);
    each_run(sweep, widen, &l);
    if (!l.any)
        return lp_fail(error, LAPSE_ERROR_USAGE, "there are no learning curves: no network has finished an epoch");
    double margin = l.to > l.from ? 0.05 * (l.to - l.from) : fmax(fabs(l.to), 1) * 0.05;
    double stretch = l.seconds_to > 1.2 * l.seconds_from ? 1 : 1.2;
    int height = TOP + LINE * info.rows + LINE > HEIGHT ? TOP + LINE * info.rows + LINE : HEIGHT;
    lp_svg svg = {0};
    drawing d = {.svg = &svg,
                 .x = {true, l.seconds_from / stretch, l.seconds_to * stretch, LEFT, RIGHT},
                 .y = {false, l.from - margin, l.to + margin, BOTTOM, TOP}};
    lp_svg_open(&svg, WIDTH, height, title ? title : "Learning curves");
    draw_frame(&d, info.select);
    each_run(sweep, draw_run, &d);
    draw_legend(&d, sweep);
    lp_svg_close(&svg);
    lapse_status status = svg.failed ? lp_fail_memory(error, "a figure", svg.text.size)
                                     : lapse_file_write(path, svg.text.data, svg.text.size, error);
    lp_svg_clear(&svg);
    return status;
}
