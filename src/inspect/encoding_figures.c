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
    ROWS_MOST = 50,  /* frequencies of Phi */
    WITHIN = 8,      /* samples per column for the band */
    PAIR_CELLS = 48, /* of each axis of K(t1, t2) */
    CURVES_MOST = 6, /* periods that have a curve */
    CURVE_POINTS = 121,
    BINS = 40,
    FILE_WIDTH = 984,
    FILE_CURVE_COLUMNS = 860,
    FILE_CELL_COLUMNS = 215
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

void lp_spectrum_figure(lp_figures *figures, const lapse_spectrum *s)
{
    double shortest, longest;
    lp_spectrum_periods(s, &shortest, &longest);
    /* A margin around the stems, and a minimum width if all periods are equal. */
    double margin = fmax(pow(longest / shortest, 0.03), 1.3);
    lp_figure *f = lp_figures_add(figures, "spectrum", "Spectrum: weight of each period in the kernel",
                                  "A high stem is a period that the model uses much: events that far apart, or a "
                                  "multiple of it, look alike to it.");
    f->x =
        (lp_figure_axis){"period", "period_seconds", LP_AXIS_TIME, true, shortest / margin, longest * margin, NULL, 0};
    f->y = (lp_figure_axis){.name = "weight", .column = "weight"};
    f->series_column = "kind";
    lp_series *first = lp_figure_series(figures, f, "period", LP_MARK_STEM), *harmonics = NULL;
    for (int i = 0; i < s->count; i++) {
        if (!isfinite(s->period[i]))
            continue;
        if (s->harmonic[i] > 1 && !harmonics)
            harmonics = lp_figure_series(figures, f, "its harmonics", LP_MARK_STEM);
        lp_series_add(figures, s->harmonic[i] > 1 ? harmonics : first, s->period[i], s->weight[i]);
    }
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
    lp_figure *f = lp_figures_add(figures, "kernel", "Kernel K(lag)",
                                  "How alike two times are at each lag. The line is the mean over the lags of a pixel, "
                                  "the band goes from their minimum to their maximum.");
    f->x = lag_axis(lags);
    f->y = (lp_figure_axis){.name = "K(lag)", .column = "kernel"};
    lp_series *curve = lp_figure_series(figures, f, "K", LP_MARK_LINE);
    for (int i = 0; i < columns; i++) {
        double from, to;
        column_lags(lags, columns, i, &from, &to);
        lp_series_add_interval(figures, curve, kernel_point(s, from, to));
    }
}

void lp_kernel_pair_figure(lp_figures *figures, const lapse_spectrum *s)
{
    double shortest, longest, end = 0;
    lp_spectrum_periods(s, &shortest, &longest);
    for (int rank = 0; rank < s->count && end == 0; rank++)
        if (isfinite(s->period[s->order[rank]]))
            end = 3 * s->period[s->order[rank]];
    end = end > 0 ? end : longest;
    lp_figure *f = lp_figures_add(figures, "kernel-pairs", "Kernel of two times, K(t1, t2)",
                                  "Red where the encodings of two times are alike, blue where they are opposite; over "
                                  "three turns of the period with the largest weight. Stripes along the diagonal mean "
                                  "that only the lag matters.");
    f->x = (lp_figure_axis){"t1", "t1_seconds", LP_AXIS_TIME, false, 0, end, NULL, 0};
    f->y = (lp_figure_axis){"t2", "t2_seconds", LP_AXIS_TIME, false, 0, end, NULL, 0};
    double *cell = lp_figure_grid(figures, f, PAIR_CELLS, PAIR_CELLS), most = 0;
    for (int row = 0; cell && row < PAIR_CELLS; row++)
        for (int column = 0; column < PAIR_CELLS; column++, cell++) {
            double low1 = end * column / PAIR_CELLS, high1 = end * (column + 1) / PAIR_CELLS;
            double high2 = end - end * row / PAIR_CELLS, low2 = end - end * (row + 1) / PAIR_CELLS;
            for (int i = 0; i < s->count; i++) {
                double w = s->frequency[i];
                *cell += s->cosine[i] * s->cosine[i] * lp_cosine_mean(w, low1, high1) * lp_cosine_mean(w, low2, high2) +
                         s->sine[i] * s->sine[i] * lp_sine_mean(w, low1, high1) * lp_sine_mean(w, low2, high2);
            }
            most = fmax(most, fabs(*cell));
        }
    f->grid.most = most;
    f->grid.diverging = true;
}

/* The weight of a period and of its harmonics, which follow it. */
static double series_weight(const lapse_spectrum *s, int first)
{
    double sum = s->weight[first];
    for (int i = first + 1; i < s->count && s->harmonic[i] > 1; i++)
        sum += s->weight[i];
    return sum;
}

/* The periods with the largest weights, harmonics included, in that order. */
static int heaviest_periods(const lapse_spectrum *s, int chosen[CURVES_MOST])
{
    int count = 0;
    for (int i = 0; i < s->count; i++) {
        if (s->harmonic[i] != 1 || !isfinite(s->period[i]))
            continue;
        int place = count < CURVES_MOST ? count++ : CURVES_MOST;
        for (; place > 0 && series_weight(s, chosen[place - 1]) < series_weight(s, i); place--)
            if (place < CURVES_MOST)
                chosen[place] = chosen[place - 1];
        if (place < CURVES_MOST)
            chosen[place] = i;
    }
    return count;
}

void lp_period_kernel_figure(lp_figures *figures, const lapse_spectrum *s)
{
    int chosen[CURVES_MOST], count = heaviest_periods(s, chosen);
    lp_figure *f =
        lp_figures_add(figures, "kernel-periods", "Kernel of each period",
                       "One curve for each of the periods with the largest weights, with its harmonics, over "
                       "two turns: its part of K(lag). A peak that is narrower than a cosine comes from the "
                       "harmonics.");
    f->x = (lp_figure_axis){.name = "lag in periods", .column = "lag_periods", .from = 0, .to = 2};
    f->y = (lp_figure_axis){.name = "part of K(lag)", .column = "kernel"};
    f->series_column = "period";
    for (int rank = 0; rank < count; rank++) {
        char name[64];
        int first = chosen[rank];
        lp_series *curve =
            lp_figure_series(figures, f, lapse_duration_format(s->period[first], name, sizeof name), LP_MARK_LINE);
        for (int point = 0; point < CURVE_POINTS; point++) {
            double turns = 2.0 * point / (CURVE_POINTS - 1), value = 0;
            for (int i = first; i < s->count && (i == first || s->harmonic[i] > 1); i++)
                value += s->weight[i] * cos(fabs(s->frequency[i]) * s->period[first] * turns);
            lp_series_add(figures, curve, turns, value);
        }
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
    lp_figure *f = lp_figures_add(figures, "phi", title,
                                  "Each row is a feature that the model sees of a lag: red above zero, blue below. "
                                  "White stretches on the left are waves too short to be seen at this scale.");
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

/* ---------------------------------------------------------------------------------------------- density ------- */

void lp_density_figure(lp_figures *figures, const lapse_spectrum *s)
{
    double shortest, longest;
    lp_spectrum_periods(s, &shortest, &longest);
    double width = fmax(log(longest / shortest), 0.1) / BINS;
    int counts[BINS] = {0}, total = 0;
    for (int i = 0; i < s->count; i++) {
        if (!isfinite(s->period[i]))
            continue;
        int bin = (int)(log(s->period[i] / shortest) / width);
        counts[bin < BINS ? bin : BINS - 1]++;
        total++;
    }
    lp_figure *f = lp_figures_add(figures, "frequency-density", "Learned density of frequencies",
                                  "Where the learned distribution of frequencies has its mass, by the period that they "
                                  "belong to: high where the model samples many.");
    f->x = (lp_figure_axis){
        "period", "period_seconds", LP_AXIS_TIME, true, shortest, shortest * exp(width * BINS), NULL, 0};
    f->y = (lp_figure_axis){.name = "samples per decade", .column = "samples_per_decade", .type = LP_AXIS_PERCENT};
    lp_series *bins = lp_figure_series(figures, f, "density", LP_MARK_STEPS);
    for (int i = 0; i <= BINS; i++)
        lp_series_add(figures, bins, shortest * exp(width * i),
                      i < BINS && total > 0 ? counts[i] / (double)total / (width / log(10)) : 0);
}

/* ------------------------------------------------------------------------------------------------- file ------- */

/* Spectrum, kernel and Phi below each other. */
static bool draw_file(const lapse_spectrum *s, const lapse_lags *lags, const char *title, lp_figures *figures,
                      lp_svg *svg)
{
    char note[128];
    lp_spectrum_figure(figures, s);
    lp_kernel_figure(figures, s, lags, FILE_CURVE_COLUMNS);
    lp_phi_figure(figures, s, lags, FILE_CELL_COLUMNS);
    int height = 70;
    for (const lp_figure *f = figures->first; f; f = f->next)
        height += lp_figure_height(f, FILE_WIDTH, true);
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
