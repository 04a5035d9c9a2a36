/* test_figure_draw.c: every kind of axis, mark and grid, drawn as SVG and written as CSV, against tests/golden/figures.svg. After a change
 * of the drawing, LAPSE_TEST_RECORD=1 writes that file anew: look at it in a browser, and read its diff. */
#include "inspect/figure_draw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/golden_text.h"

static lp_figures figures;

static lp_figure *add(const char *id, lp_axis_type x, lp_axis_type y)
{
    lp_figure *figure = lp_figures_add(&figures, id, lp_figures_text(&figures, "A figure: %s", id), "How to read it.");
    figure->x = (lp_figure_axis){.name = "what is across", .column = "across", .type = x};
    figure->y = (lp_figure_axis){.name = "what is upward", .column = "upward", .type = y};
    return figure;
}

static void name_axis(lp_figure_axis *axis, int count)
{
    static const char *const names[] = {"iljt", "WMQ@", "caf\xc3\xa9 \xe2\x82\xac",
                                        "a name of more than thirty-two letters in all", ""};
    const char **list = lp_figure_names(&figures, axis, count);
    for (int i = 0; i < count; i++)
        list[i] = names[i % 5];
}

/* Points that are absent, alone, with an interval and without, and beyond the ends of their axis. */
static void lines(lp_figure *figure, double scale)
{
    lp_series *series = lp_figure_series(&figures, figure, "first & <best>", LP_MARK_LINE);
    for (int i = 0; i < 9; i++)
        lp_series_add_interval(
            &figures, series,
            (lp_point){scale * (i + 1), i == 4 ? NAN : 1.5 * i * i - 6, i == 7 ? NAN : 1.5 * i * i - 9, 2.0 * i * i});
    series = lp_figure_series(&figures, figure, "second", LP_MARK_LINE);
    for (int i = 0; i < 45; i++)
        lp_series_add(&figures, series, scale * (i + 2) / 5, 30 - i);
    series = lp_figure_series(&figures, figure, "reference", LP_MARK_LINE);
    series->colour = -1;
    lp_series_add(&figures, series, scale, 10);
    lp_series_add(&figures, series, scale * 12, 10);
    series = lp_figure_series(&figures, figure, "", LP_MARK_LINE);
    lp_series_add(&figures, series, scale * 2, 40);
    lp_series_add(&figures, series, scale * 8, -20);
}

static void fill_grid(lp_figure *figure, int rows, int cols, bool diverging, bool numbers)
{
    double *cells = lp_figure_grid(&figures, figure, rows, cols);
    for (int i = 0; i < rows * cols; i++)
        cells[i] = i % 7 == 3 ? 0.5 : diverging ? (i - rows * cols / 2) / 10.0 : i / (double)(rows * cols);
    figure->grid.most = diverging ? 1.2 : 0.9;
    figure->grid.diverging = diverging;
    figure->grid.numbers = numbers;
    name_axis(&figure->y, rows);
}

static void make(void)
{
    lines(add("numbers", LP_AXIS_NUMBER, LP_AXIS_NUMBER), 1);
    lp_figure *figure = add("whole", LP_AXIS_WHOLE, LP_AXIS_NUMBER);
    figure->x.from = 2, figure->x.to = 7;
    figure->y.from = -10, figure->y.to = 50;
    lines(figure, 1);
    figure = add("logarithmic", LP_AXIS_NUMBER, LP_AXIS_NUMBER);
    figure->x.log = figure->y.log = true;
    figure->x.from = 1, figure->x.to = 1000;
    lines(figure, 30);
    figure = add("times", LP_AXIS_TIME, LP_AXIS_PERCENT);
    figure->x.log = true;
    lp_series *series = lp_figure_series(&figures, figure, "stems", LP_MARK_STEM);
    for (int i = 0; i < 10; i++)
        lp_series_add(&figures, series, 30 * pow(4, i), i % 3 ? 0.08 * i : -0.2);
    figure = add("days", LP_AXIS_TIME, LP_AXIS_NUMBER);
    lines(figure, 86400);
    figure = add("many-lines", LP_AXIS_NUMBER, LP_AXIS_PERCENT);
    for (int s = 0; s < 10; s++) { /* more series than colours */
        series = lp_figure_series(&figures, figure, lp_figures_text(&figures, "the series with number %d", s),
                                  LP_MARK_LINE);
        for (int i = 0; i < 4; i++)
            lp_series_add(&figures, series, i, 0.1 * s + 0.05 * i);
    }
    for (int along = 0; along < 2; along++) {
        figure = along ? add("intervals-along", LP_AXIS_NUMBER, LP_AXIS_NAMES)
                       : add("intervals-upward", LP_AXIS_NAMES, LP_AXIS_NUMBER);
        name_axis(along ? &figure->y : &figure->x, 5);
        series = lp_figure_series(&figures, figure, "", LP_MARK_INTERVAL);
        for (int i = 0; i < 5; i++) {
            double value = 0.3 * i - 0.4;
            lp_series_add_interval(
                &figures, series,
                (lp_point){along ? value : i, along ? i : value, i == 2 ? NAN : value - 0.1, value + 0.2});
        }
    }
    figure = add("grid", LP_AXIS_NAMES, LP_AXIS_NAMES);
    fill_grid(figure, 3, 4, false, true);
    name_axis(&figure->x, 4);
    figure = add("grid-diverging", LP_AXIS_TIME, LP_AXIS_NAMES);
    figure->x.log = true;
    figure->x.from = 60, figure->x.to = 1e6;
    fill_grid(figure, 5, 24, true, false);
    figure = add("many-rows", LP_AXIS_WHOLE, LP_AXIS_NAMES);
    figure->x.from = 0, figure->x.to = 9;
    fill_grid(figure, 60, 3, false, false);
    figure = add("one-point", LP_AXIS_NUMBER, LP_AXIS_NUMBER);
    lp_series_add(&figures, lp_figure_series(&figures, figure, "one", LP_MARK_LINE), 3, 0);
    add("nothing", LP_AXIS_NUMBER, LP_AXIS_NUMBER);
}

/* All figures below each other, two of them without a title; then their numbers in a comment. */
static void draw(lp_svg *svg)
{
    int height = 10;
    for (const lp_figure *f = figures.first; f; f = f->next)
        height += lp_figure_height(f, LP_FIGURE_WIDTH, true) + 10;
    lp_svg_open(svg, LP_FIGURE_WIDTH + 20, height, "figures of a test");
    double y = 10;
    int number = 0;
    for (const lp_figure *f = figures.first; f; f = f->next) {
        bool heading = number++ > 1;
        lp_figure_draw(f, svg, 10, y, number == 3 ? 300 : LP_FIGURE_WIDTH, heading);
        y += lp_figure_height(f, number == 3 ? 300 : LP_FIGURE_WIDTH, heading) + 10;
    }
    lp_svg_print(svg, "<!--\n");
    for (const lp_figure *f = figures.first; f; f = f->next)
        assert_true(lp_figure_csv(f, false, &svg->text));
    lp_svg_print(svg, "-->\n");
    lp_svg_close(svg);
}

static void drawings_are_as_recorded(void **state)
{
    (void)state;
    lp_svg svg = {0};
    make();
    draw(&svg);
    assert_false(figures.failed || svg.failed);
    golden_text_check("tests/golden/figures.svg", svg.text.data, svg.text.size);
    lp_svg_clear(&svg);
    lp_figures_clear(&figures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawings_are_as_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
