/* encoding_figures.c: figures of a model's spectrum, kernel and features.
 *
 * A lag axis spans many decades, and most waves are far shorter than a pixel of it, so samples at one lag per pixel
 * would alias. Instead a column of pixels shows the exact mean of the wave over the lags that it covers, and for the
 * kernel also a band from the minimum to the maximum within.
 */
#include "inspect/encoding_figures.h"

#include "base/file.h"
#include "inspect/axis.h"
#include "inspect/figure_draw.h"

#include <stdio.h>
#include <string.h>

enum {
    ROWS_MOST = 50, /* frequencies of Phi */
    WITHIN = 8,     /* samples per column for the band */
    FILE_WIDTH = 520,
    FILE_LEFT = 130,
    FILE_COLUMNS = 368
};

static bool is_log(const lapse_lags *lags)
{
    return strcmp(lags->axis, "log") == 0;
}

static lp_figure_axis lag_axis(const lapse_lags *lags)
{
    return (lp_figure_axis){"lag", "lag_seconds", LP_AXIS_TIME, is_log(lags), lags->from, lags->to, NULL, 0};
}

/* The lags of a column. */
static void column_lags(const lapse_lags *lags, int columns, int column, double *from, double *to)
{
    lp_axis axis = {is_log(lags), lags->from, lags->to, 0, columns};
    *from = lp_axis_value(&axis, column);
    *to = lp_axis_value(&axis, column + 1);
}

/* --------------------------------------------------------------------------------------------- spectrum ------- */

void lp_spectrum_figure(lp_figures *figures, const lapse_spectrum *s, const lapse_lags *lags)
{
    int finite = 0, heaviest = -1;
    double all = 0;
    for (int i = 0; i < s->count; i++) {
        if (!isfinite(s->period[i]))
            continue;
        finite++;
        all += s->weight[i];
        heaviest = heaviest < 0 || s->weight[i] > s->weight[heaviest] ? i : heaviest;
    }
    const char *title = "The kernel has no periods";
    if (all > 0)
        title = lp_figures_text(figures, "The period of %s has the largest weight: %.1f %% of the kernel",
                                lapse_duration_format(s->period[heaviest], (char[64]){0}, 64),
                                100 * s->weight[heaviest] / all);
    lp_figure *f = lp_figures_add(figures, "spectrum", title,
                                  lp_figures_text(figures,
                                                  "Tall stems are the time scales that the model relies on. If all "
                                                  "periods counted the same, each would have %.1f %%.",
                                                  100.0 / fmax(finite, 1)));
    f->x = lag_axis(lags);
    f->x.name = "period";
    f->x.column = "period_seconds";
    f->y = (lp_figure_axis){.name = "weight", .column = "weight"};
    f->series_column = "kind";
    lp_series *first = lp_figure_series(figures, f, "period", LP_MARK_STEM), *harmonics = NULL;
    for (int i = 0; i < s->count; i++) {
        if (!(s->period[i] >= lags->from && s->period[i] <= lags->to))
            continue;
        if (s->harmonic[i] > 1 && !harmonics)
            harmonics = lp_figure_series(figures, f, "its harmonics", LP_MARK_STEM);
        lp_series_add(figures, s->harmonic[i] > 1 ? harmonics : first, s->period[i], s->weight[i]);
    }
    lp_series *equal = lp_figure_series(figures, f, "equal weights", LP_MARK_LINE);
    equal->colour = LP_COLOUR_REFERENCE;
    lp_series_add(figures, equal, lags->from, all / fmax(finite, 1));
    lp_series_add(figures, equal, lags->to, all / fmax(finite, 1));
}

/* ----------------------------------------------------------------------------------------------- kernel ------- */

/* Mean, minimum and maximum of K over the lags of one column. */
static lp_point kernel_point(const lapse_spectrum *s, double from, double to)
{
    lp_point p = {from + (to - from) / 2, 0, 0, 0};
    for (int i = 0; i < s->count; i++)
        p.y += s->weight[i] * lp_cosine_mean(s->frequency[i], from, to);
    p.low = p.high = p.y;
    for (int i = 0; i < WITHIN; i++) {
        double k = lapse_spectrum_kernel(s, from + (to - from) * (i + 0.5) / WITHIN);
        p.low = fmin(p.low, k);
        p.high = fmax(p.high, k);
    }
    return p;
}

void lp_kernel_figure(lp_figures *figures, const lapse_spectrum *s, const lapse_lags *lags, int columns)
{
    lp_figure *f = lp_figures_add(
        figures, "kernel", "Kernel K(lag): how alike two times are",
        "The line is the mean over the lags of a pixel, the band goes from their minimum to their maximum.");
    f->x = lag_axis(lags);
    f->y = (lp_figure_axis){.name = "K(lag)", .column = "kernel"};
    lp_series *curve = lp_figure_series(figures, f, "K", LP_MARK_LINE);
    for (int i = 0; i < columns; i++) {
        double from, to;
        column_lags(lags, columns, i, &from, &to);
        lp_series_add_interval(figures, curve, kernel_point(s, from, to));
    }
}

/* -------------------------------------------------------------------------------------------------- Phi ------- */

/* The frequencies with the largest weights, sorted by descending period. Returns their number. */
static int shown_rows(const lapse_spectrum *s, int shown[ROWS_MOST], double *most)
{
    int rows = s->count < ROWS_MOST ? s->count : ROWS_MOST;
    for (int i = 0; i < rows; i++) {
        int moved = s->order[i], j = i;
        for (; j > 0 && s->period[shown[j - 1]] < s->period[moved]; j--)
            shown[j] = shown[j - 1];
        shown[j] = moved;
        *most = fmax(*most, fmax(fabs(s->cosine[moved]), fabs(s->sine[moved])));
    }
    return rows;
}

void lp_phi_figure(lp_figures *figures, const lapse_spectrum *s, const lapse_lags *lags, int columns)
{
    int shown[ROWS_MOST];
    double most = 0;
    int rows = shown_rows(s, shown, &most);
    const char *title =
        rows < s->count
            ? lp_figures_text(figures, "Features Phi(lag) of the %d frequencies with the largest weights, of %d", rows,
                              s->count)
            : "Features Phi(lag) by period";
    lp_figure *f = lp_figures_add(
        figures, "phi", title,
        "Each row is a feature that the model sees of a lag: red above zero, blue below. Sines are blank on the left, "
        "where the lag is much shorter than the period, and waves are blank on the right, where one pixel has many "
        "turns. "
        "`lapse kernel --csv` prints the numbers.");
    f->csv_left_out = true;
    f->x = lag_axis(lags);
    f->y = (lp_figure_axis){.name = "", .column = "feature", .type = LP_AXIS_NAMES};
    const char **names = lp_figure_names(figures, &f->y, 2 * rows);
    double *cell = rows > 0 ? lp_figure_grid(figures, f, 2 * rows, columns) : NULL;
    f->grid.most = most;
    f->grid.diverging = true;
    for (int row = 0; names && cell && row < 2 * rows; row++) {
        int i = shown[row % rows];
        bool sine = row >= rows;
        char period[64] = "constant";
        if (isfinite(s->period[i]))
            lapse_duration_format(s->period[i], period, sizeof period);
        names[row] = lp_figures_text(figures, "%s %s", sine ? "sine" : "cosine", period);
        for (int column = 0; column < columns; column++) {
            double from, to;
            column_lags(lags, columns, column, &from, &to);
            *cell++ = sine ? s->sine[i] * lp_sine_mean(s->frequency[i], from, to)
                           : s->cosine[i] * lp_cosine_mean(s->frequency[i], from, to);
        }
    }
}

/* ------------------------------------------------------------------------------------------------- file ------- */

/* Spectrum, kernel and Phi below each other. */
static bool draw_file(const lapse_spectrum *s, const lapse_lags *lags, const char *title, lp_figures *figures,
                      lp_svg *svg)
{
    char note[128];
    lp_spectrum_figure(figures, s, lags);
    lp_kernel_figure(figures, s, lags, FILE_COLUMNS);
    lp_phi_figure(figures, s, lags, FILE_COLUMNS / 2);
    int height = 70;
    for (lp_figure *f = figures->first; f; f = f->next) {
        f->left = FILE_LEFT; /* so that the time axes line up */
        height += lp_figure_height(f, FILE_WIDTH, true);
    }
    lp_svg_open(svg, FILE_WIDTH, height, title);
    lp_svg_words(svg, "title", 8, 34, title);
    snprintf(note, sizeof note, "%d frequencies, K(0) = %.4g", s->count, lapse_spectrum_kernel(s, 0));
    lp_svg_words(svg, "note", 8, 54, note);
    double y = 64;
    for (const lp_figure *f = figures->first; f; f = f->next) {
        lp_figure_draw(f, svg, 0, y, FILE_WIDTH, true);
        y += lp_figure_height(f, FILE_WIDTH, true);
    }
    lp_svg_close(svg);
    return !figures->failed && !svg->failed;
}

lapse_status lapse_spectrum_save_svg(const lapse_spectrum *spectrum, const lapse_lags *lags, const char *title,
                                     const char *path, lapse_error *error)
{
    LP_REQUIRE(error, spectrum, lags, path);
    LP_REQUIRE(error, lags->axis);
    lp_figures figures = {0};
    lp_svg svg = {0};
    lapse_status status = draw_file(spectrum, lags, title ? title : "Time kernel", &figures, &svg)
                              ? lapse_file_write(path, svg.text.data, svg.text.size, error)
                              : lp_fail_memory(error, "a figure", svg.text.size);
    lp_svg_clear(&svg);
    lp_figures_clear(&figures);
    return status;
}
