/* kernel_figure.c: a figure of a model's spectrum, kernel and features.
 *
 * A lag axis spans many decades, and most waves are far shorter than a pixel of it, so samples at one lag per pixel
 * would alias. Instead a column of pixels shows the exact mean of the wave over the lags that it covers, and for the
 * kernel also a band from the minimum to the maximum within.
 */
#include "base/file.h"
#include "inspect/axis.h"
#include "inspect/spectrum.h"
#include "inspect/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 984,
    LEFT = 100,
    RIGHT = 960,
    SPECTRUM_TOP = 92,
    SPECTRUM_BOTTOM = 262,
    KERNEL_TOP = 348,
    KERNEL_BOTTOM = 548,
    PHI_TOP = 634,
    PHI_HALF = 200, /* height of the cosines, and of the sines */
    PHI_GAP = 16,
    HEIGHT = 1122,
    CURVE_COLUMNS = RIGHT - LEFT, /* one pixel wide */
    CELL_COLUMNS = 215,           /* four pixels wide */
    ROWS_MOST = 50,
    WITHIN = 8, /* samples per column for the band */
    LEVELS = 10 /* colours on each side of white */
};

typedef struct figure {
    const lapse_spectrum *spectrum;
    lp_svg svg;
    lp_axis lag;
} figure;

/* ------------------------------------------------------------------------------------------------ frame ------- */

static void time_axis(lp_svg *svg, const lp_axis *axis, double top, double bottom, const char *name)
{
    lp_tick ticks[LP_TICKS];
    int count = lp_axis_time_ticks(axis, 58, ticks);
    for (int i = 0; i < count; i++) {
        double x = lp_axis_pixel(axis, ticks[i].value);
        lp_svg_line(svg, "grid", x, top, x, bottom);
        lp_svg_words(svg, "label middle", x, bottom + 17, ticks[i].label);
    }
    lp_svg_line(svg, "axis", axis->begin, bottom, axis->end, bottom);
    lp_svg_words(svg, "note middle", (axis->begin + axis->end) / 2, bottom + 36, name);
}

static void number_axis(lp_svg *svg, const lp_axis *axis)
{
    lp_tick ticks[LP_TICKS];
    int count = lp_axis_number_ticks(axis, 5, ticks);
    for (int i = 0; i < count; i++) {
        double y = lp_axis_pixel(axis, ticks[i].value);
        lp_svg_line(svg, ticks[i].value == 0 ? "axis" : "grid", LEFT, y, RIGHT, y);
        lp_svg_words(svg, "label right", LEFT - 8, y + 4, ticks[i].label);
    }
}

/* --------------------------------------------------------------------------------------------- spectrum ------- */

static lp_axis period_axis(const lapse_spectrum *spectrum)
{
    double shortest, longest;
    lp_spectrum_periods(spectrum, &shortest, &longest);
    /* A margin around the stems, and a minimum width if all periods are equal. */
    double margin = fmax(pow(longest / shortest, 0.03), 1.3);
    return (lp_axis){true, shortest / margin, longest * margin, LEFT, RIGHT};
}

static void draw_spectrum(figure *f)
{
    const lapse_spectrum *s = f->spectrum;
    lp_svg *svg = &f->svg;
    double most = s->count > 0 ? s->weight[s->order[0]] : 0;
    lp_axis x = period_axis(s), y = {false, 0, most > 0 ? most * 1.08 : 1, SPECTRUM_BOTTOM, SPECTRUM_TOP};
    bool series = false;
    lp_svg_words(svg, "heading", LEFT, SPECTRUM_TOP - 14, "Spectrum: weight of each period in the kernel");
    time_axis(svg, &x, SPECTRUM_TOP, SPECTRUM_BOTTOM, "period");
    number_axis(svg, &y);
    for (int i = 0; i < s->count; i++) {
        if (!isfinite(s->period[i]))
            continue;
        const char *class_name = s->harmonic[i] > 1 ? "overtone" : "stem";
        double at = lp_axis_pixel(&x, s->period[i]), top = lp_axis_pixel(&y, s->weight[i]);
        lp_svg_line(svg, class_name, at, SPECTRUM_BOTTOM, at, top);
        lp_svg_print(svg, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"/>\n", class_name, at, top);
        series = series || s->harmonic[i] > 1;
    }
    if (!series)
        return;
    lp_svg_print(svg, "<circle class=\"stem\" cx=\"%d\" cy=\"%d\" r=\"4\"/>", RIGHT - 158, SPECTRUM_TOP - 18);
    lp_svg_words(svg, "label", RIGHT - 150, SPECTRUM_TOP - 14, "period");
    lp_svg_print(svg, "<circle class=\"overtone\" cx=\"%d\" cy=\"%d\" r=\"4\"/>", RIGHT - 100, SPECTRUM_TOP - 18);
    lp_svg_words(svg, "label", RIGHT - 92, SPECTRUM_TOP - 14, "its harmonics");
}

/* ----------------------------------------------------------------------------------------------- kernel ------- */

/* Mean, minimum and maximum of K over the lags of one column. */
static void column_of_kernel(const figure *f, double from, double to, double value[3])
{
    const lapse_spectrum *s = f->spectrum;
    value[0] = 0;
    for (int i = 0; i < s->count; i++)
        value[0] += s->weight[i] * lp_cosine_mean(s->frequency[i], from, to);
    value[1] = value[2] = value[0];
    for (int i = 0; i < WITHIN; i++) {
        double k = lapse_spectrum_kernel(s, from + (to - from) * (i + 0.5) / WITHIN);
        value[1] = fmin(value[1], k);
        value[2] = fmax(value[2], k);
    }
}

static void draw_curves(lp_svg *svg, const lp_axis *y, double (*value)[3])
{
    lp_svg_print(svg, "<path class=\"band\" d=\"");
    for (int i = 0; i < CURVE_COLUMNS; i++)
        lp_svg_print(svg, "%s%.1f %.1f", i ? "L" : "M", LEFT + i + 0.5, lp_axis_pixel(y, value[i][2]));
    for (int i = CURVE_COLUMNS - 1; i >= 0; i--)
        lp_svg_print(svg, "L%.1f %.1f", LEFT + i + 0.5, lp_axis_pixel(y, value[i][1]));
    lp_svg_print(svg, "Z\"/>\n<path class=\"curve\" d=\"");
    for (int i = 0; i < CURVE_COLUMNS; i++)
        lp_svg_print(svg, "%s%.1f %.1f", i ? "L" : "M", LEFT + i + 0.5, lp_axis_pixel(y, value[i][0]));
    lp_svg_print(svg, "\"/>\n");
}

static bool draw_kernel(figure *f)
{
    double(*value)[3] = lp_alloc(CURVE_COLUMNS, sizeof *value);
    if (!value)
        return false;
    double least = 0, most = 0;
    for (int i = 0; i < CURVE_COLUMNS; i++) {
        column_of_kernel(f, lp_axis_value(&f->lag, LEFT + i), lp_axis_value(&f->lag, LEFT + i + 1), value[i]);
        least = fmin(least, value[i][1]);
        most = fmax(most, value[i][2]);
    }
    double margin = most > least ? 0.05 * (most - least) : 1;
    lp_axis y = {false, least - margin, most + margin, KERNEL_BOTTOM, KERNEL_TOP};
    lp_svg_words(&f->svg, "heading", LEFT, KERNEL_TOP - 14, "Kernel K(lag)");
    lp_svg_words(&f->svg, "note right", RIGHT, KERNEL_TOP - 14,
                 "line: mean over a pixel's lags; band: minimum to maximum");
    time_axis(&f->svg, &f->lag, KERNEL_TOP, KERNEL_BOTTOM, "lag");
    number_axis(&f->svg, &y);
    draw_curves(&f->svg, &y, value);
    lp_free(value);
    return true;
}

/* -------------------------------------------------------------------------------------------------- Phi ------- */

/* A diverging colour map: blue below 0, white at 0, red above. */
static void level_colour(int level, char out[8])
{
    static const double low[3] = {33, 102, 172}, high[3] = {178, 24, 43};
    double part = fabs((double)level) / LEVELS;
    const double *end = level < 0 ? low : high;
    int c[3];
    for (int i = 0; i < 3; i++)
        c[i] = (int)(255 + part * (end[i] - 255) + 0.5);
    snprintf(out, 8, "#%02x%02x%02x", (unsigned)c[0] & 255u, (unsigned)c[1] & 255u, (unsigned)c[2] & 255u);
}

/* One path per colour; adjacent cells of one colour are merged. */
static void draw_cells(lp_svg *svg, const signed char *level, int rows, double top)
{
    double height = (double)PHI_HALF / rows, width = (double)(RIGHT - LEFT) / CELL_COLUMNS;
    for (int colour = -LEVELS; colour <= LEVELS; colour++) {
        char name[8];
        bool open = false;
        level_colour(colour, name);
        for (int row = 0; row < rows && colour != 0; row++) {
            const signed char *line = level + (size_t)row * CELL_COLUMNS;
            for (int i = 0, next; i < CELL_COLUMNS; i = next) {
                for (next = i + 1; next < CELL_COLUMNS && line[next] == line[i]; next++)
                    continue;
                if (line[i] != colour)
                    continue;
                if (!open)
                    lp_svg_print(svg, "<path class=\"cells\" fill=\"%s\" d=\"", name);
                open = true;
                lp_svg_print(svg, "M%.4g %.5gh%.4gv%.4gh-%.4gz", LEFT + i * width, top + row * height,
                             (next - i) * width, height, (next - i) * width);
            }
        }
        if (open)
            lp_svg_print(svg, "\"/>\n");
    }
}

static void fill_cells(const figure *f, const int *shown, int rows, bool sine, double most, signed char *level)
{
    const lapse_spectrum *s = f->spectrum;
    double width = (double)(RIGHT - LEFT) / CELL_COLUMNS;
    for (int row = 0; row < rows; row++) {
        int i = shown[row];
        for (int column = 0; column < CELL_COLUMNS; column++) {
            double from = lp_axis_value(&f->lag, LEFT + column * width);
            double to = lp_axis_value(&f->lag, LEFT + (column + 1) * width);
            double value = sine ? s->sine[i] * lp_sine_mean(s->frequency[i], from, to)
                                : s->cosine[i] * lp_cosine_mean(s->frequency[i], from, to);
            level[(size_t)row * CELL_COLUMNS + column] =
                (signed char)(most > 0 ? lrint(fmax(-1, fmin(1, value / most)) * LEVELS) : 0);
        }
    }
}

static void label_rows(lp_svg *svg, const lapse_spectrum *s, const int *shown, int rows, double top)
{
    double height = (double)PHI_HALF / rows, last = -100;
    for (int row = 0; row < rows; row++) {
        char text[64];
        double y = top + (row + 0.5) * height;
        if (y - last < 26)
            continue;
        if (isfinite(s->period[shown[row]]))
            lapse_duration_format(s->period[shown[row]], text, sizeof text);
        else
            snprintf(text, sizeof text, "constant");
        lp_svg_words(svg, "label right", LEFT - 6, y + 4, text);
        last = y;
    }
}

/* The colour bar, above the cells on the right. */
static void draw_legend(lp_svg *svg, double most)
{
    enum { CELL = 7 };
    char number[32];
    double x = RIGHT - 44 - (2 * LEVELS + 1) * CELL;
    snprintf(number, sizeof number, "%.3g", -most);
    lp_svg_words(svg, "label right", x - 6, PHI_TOP - 14, number);
    for (int level = -LEVELS; level <= LEVELS; level++, x += CELL) {
        char name[8];
        level_colour(level, name);
        lp_svg_print(svg, "<rect class=\"cells\" fill=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%d\" height=\"10\"/>\n", name,
                     x, PHI_TOP - 23, CELL);
    }
    snprintf(number, sizeof number, "%.3g", most);
    lp_svg_words(svg, "label", x + 6, PHI_TOP - 14, number);
}

static bool draw_phi(figure *f)
{
    const lapse_spectrum *s = f->spectrum;
    int rows = s->count < ROWS_MOST ? s->count : ROWS_MOST;
    signed char *level = lp_alloc((size_t)ROWS_MOST * CELL_COLUMNS, sizeof *level);
    if (!level)
        return false;
    /* The largest weights, sorted by descending period. */
    int shown[ROWS_MOST];
    double most = 0;
    for (int i = 0; i < rows; i++) {
        int moved = s->order[i], j = i;
        for (; j > 0 && s->period[shown[j - 1]] < s->period[moved]; j--)
            shown[j] = shown[j - 1];
        shown[j] = moved;
        most = fmax(most, fmax(fabs(s->cosine[moved]), fabs(s->sine[moved])));
    }
    char heading[96];
    if (rows < s->count)
        snprintf(heading, sizeof heading, "Features Phi(lag) of the %d frequencies with the largest weights, of %d",
                 rows, s->count);
    else
        snprintf(heading, sizeof heading, "Features Phi(lag) by period");
    lp_svg_words(&f->svg, "heading", LEFT, PHI_TOP - 14, heading);
    draw_legend(&f->svg, most);
    for (int sine = 0; sine < 2 && rows > 0; sine++) {
        double top = PHI_TOP + sine * (PHI_HALF + PHI_GAP);
        fill_cells(f, shown, rows, sine == 1, most, level);
        draw_cells(&f->svg, level, rows, top);
        lp_svg_print(&f->svg, "<rect class=\"axis\" fill=\"none\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n",
                     LEFT, top, RIGHT - LEFT, PHI_HALF);
        label_rows(&f->svg, s, shown, rows, top);
        lp_svg_print(&f->svg, "<g transform=\"translate(%d %.1f) rotate(90)\">", RIGHT + 10, top + PHI_HALF / 2.0);
        lp_svg_words(&f->svg, "note middle", 0, 0, sine ? "sine" : "cosine");
        lp_svg_print(&f->svg, "</g>\n");
    }
    lp_free(level);
    double bottom = PHI_TOP + 2 * PHI_HALF + PHI_GAP;
    time_axis(&f->svg, &f->lag, bottom, bottom, "lag");
    return true;
}

/* ------------------------------------------------------------------------------------------------- file ------- */

static bool draw(figure *f, const char *title)
{
    char note[128];
    const lapse_spectrum *s = f->spectrum;
    lp_svg_open(&f->svg, WIDTH, HEIGHT, title);
    lp_svg_words(&f->svg, "title", LEFT, 34, title);
    snprintf(note, sizeof note, "%d frequencies, K(0) = %.4g", s->count, lapse_spectrum_kernel(s, 0));
    lp_svg_words(&f->svg, "note", LEFT, 54, note);
    draw_spectrum(f);
    bool whole = draw_kernel(f) && draw_phi(f);
    lp_svg_close(&f->svg);
    return whole && !f->svg.failed;
}

lapse_status lapse_spectrum_save_svg(const lapse_spectrum *spectrum, const lapse_lags *lags, const char *title,
                                     const char *path, lapse_error *error)
{
    LP_REQUIRE(error, spectrum, lags, path);
    LP_REQUIRE(error, lags->axis);
    figure f = {.spectrum = spectrum, .lag = {strcmp(lags->axis, "log") == 0, lags->from, lags->to, LEFT, RIGHT}};
    bool whole = draw(&f, title ? title : "Time kernel");
    lp_writer writer = {0};
    lapse_status status = whole ? LAPSE_OK : lp_fail_memory(error, "a figure", f.svg.text.size);
    if (status == LAPSE_OK)
        status = lp_writer_open(&writer, path, error);
    if (status == LAPSE_OK)
        status = lp_writer_add(&writer, f.svg.text.data, f.svg.text.size, error);
    if (status == LAPSE_OK)
        status = lp_writer_commit(&writer, error);
    else
        lp_writer_abandon(&writer);
    lp_svg_clear(&f.svg);
    return status;
}
