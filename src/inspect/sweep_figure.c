/* sweep_figure.c: learning curves of a sweep: the validation score of every run against the seconds of its training. */
#include "base/file.h"
#include "inspect/figure_draw.h"
#include "lapse_lab.h"

enum { WIDTH = 600 };
static const double SHORTEST = 1e-3; /* seconds on the logarithmic axis */

/* One line for each seed, in the colour of its row; only the first is in the legend. */
static bool add_row(lp_figures *figures, lp_figure *figure, const lapse_sweep *sweep, int row, int seeds)
{
    lapse_sweep_cell cell;
    lapse_sweep_result run;
    bool any = false;
    lapse_sweep_row(sweep, row, &cell);
    for (int seed = 0; seed < seeds; seed++) {
        if (!lapse_sweep_result_at(sweep, row, seed, &run) || run.epochs == 0)
            continue;
        lp_series *series = lp_figure_series(figures, figure, any ? "" : cell.row, LP_MARK_LINE);
        series->colour = row;
        for (int e = 0; e < run.epochs; e++)
            if (isfinite(run.curve[2 * e + 1]))
                lp_series_add(figures, series, fmax(run.curve[2 * e], SHORTEST), run.curve[2 * e + 1]);
        any = true;
    }
    return any;
}

lapse_status lapse_sweep_save_svg(const lapse_sweep *sweep, const char *title, const char *path, lapse_error *error)
{
    LP_REQUIRE(error, sweep, path);
    lapse_sweep_info info = lapse_sweep_describe(sweep);
    lp_figures figures = {0};
    lp_figure *figure = lp_figures_add(&figures, "curves", title ? title : "Learning curves", "");
    figure->x = (lp_figure_axis){.name = "time since the start of training", .type = LP_AXIS_TIME, .log = true};
    figure->y = (lp_figure_axis){.name = lp_figures_text(&figures, "%s on the validation split", info.select)};
    bool any = false;
    for (int row = 0; row < info.rows; row++)
        any |= add_row(&figures, figure, sweep, row, info.seeds);
    lp_svg svg = {0};
    lp_svg_open(&svg, WIDTH, lp_figure_height(figure, WIDTH, true), figure->title);
    lp_figure_draw(figure, &svg, 0, 0, WIDTH, true);
    lp_svg_close(&svg);
    lapse_status status;
    if (svg.failed || figures.failed)
        status = lp_fail_memory(error, "a figure", svg.text.size);
    else if (!any)
        status = lp_fail(error, LAPSE_ERROR_USAGE, "there are no learning curves: no network has finished an epoch");
    else
        status = lapse_file_write(path, svg.text.data, svg.text.size, error);
    lp_svg_clear(&svg);
    lp_figures_clear(&figures);
    return status;
}
