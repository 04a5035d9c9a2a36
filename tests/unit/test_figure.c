/* test_figure.c: figures are well-formed XML for any input, axes have ticks at round values, and a figure that cannot
 * be created or written leaves no file. */
#include "base/memory.h"
#include "inspect/axis.h"
#include "inspect/encoding_figures.h"
#include "inspect/figure.h"
#include "inspect/spectrum.h"
#include "inspect/svg.h"

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/near.h"
#include "support/small_data.h"

/* ------------------------------------------------------------------------------------- a small reader of XML -- */

/* Returns the position after the attributes ` name="value"` at s, or NULL if they are malformed. */
static const char *skip_attributes(const char *s)
{
    while (*s == ' ') {
        s++;
        while (isalnum((unsigned char)*s) || *s == '-')
            s++;
        if (s[0] != '=' || s[1] != '"')
            return NULL;
        s = strpbrk(s + 2, "\"<");
        if (!s || *s == '<')
            return NULL;
        s++;
    }
    return s;
}

/* Returns the position after the tag at s and updates the open elements; NULL if it is malformed. */
static const char *skip_tag(const char *s, char open[8][16], int *depth)
{
    bool closing = s[1] == '/';
    s += closing ? 2 : 1;
    size_t length = strspn(s, "abcdefghijklmnopqrstuvwxyz");
    if (length == 0 || length > 15)
        return NULL;
    if (closing) {
        if (*depth == 0 || strlen(open[*depth - 1]) != length || memcmp(open[*depth - 1], s, length) != 0)
            return NULL;
        (*depth)--;
        return s[length] == '>' ? s + length + 1 : NULL;
    }
    const char *end = skip_attributes(s + length);
    if (!end)
        return NULL;
    if (end[0] == '/')
        return end[1] == '>' ? end + 2 : NULL;
    if (end[0] != '>' || *depth == 8)
        return NULL;
    snprintf(open[(*depth)++], 16, "%.*s", (int)length, s);
    return end + 1;
}

/* One closed element and then only blanks; every & begins a known entity; no control characters. */
static bool well_formed(const char *s)
{
    char open[8][16];
    int depth = 0, elements = 0;
    while (*s) {
        if (*s == '<') {
            if (depth == 0 && elements++ > 0)
                return false;
            s = skip_tag(s, open, &depth);
            if (!s)
                return false;
            continue;
        }
        if (*s == '&' && strncmp(s, "&amp;", 5) != 0 && strncmp(s, "&lt;", 4) != 0 && strncmp(s, "&gt;", 4) != 0 &&
            strncmp(s, "&quot;", 6) != 0)
            return false;
        if ((depth == 0 && *s != '\n') || ((unsigned char)*s < 32 && *s != '\n'))
            return false;
        s++;
    }
    return depth == 0 && elements == 1;
}

static void test_the_reader_can_fail(void **state)
{
    (void)state;
    assert_true(well_formed("<a b=\"c\"><d e-f=\"\"/>x &amp; y</a>\n"));
    static const char *const bad[] = {"",         "<a>",           "<a></b>",     "<a b=c/>", "<a b=\"<\"/>",
                                      "<a>&</a>", "<a/><b/>",      "<a>\x01</a>", "<a></a>x", "<a b=\"c/>",
                                      "</a>",     "<a b=\"c\"d/>", "<a>a < b</a>"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(well_formed(bad[i]));
}

/* ---------------------------------------------------------------------------------------------- pictures ------ */

/* Random frequencies of periods between seconds and years, in series of `harmonics`. */
static lapse_spectrum random_spectrum(int count, int harmonics, lp_random *random)
{
    lapse_spectrum s;
    assert_int_equal(lp_spectrum_init(&s, count, NULL), LAPSE_OK);
    for (int i = 0; i < count; i++) {
        int j = i % harmonics;
        s.frequency[i] = j ? (j + 1) * s.frequency[i - j] : exp(-18 * lp_random_uniform(random));
        s.cosine[i] = lp_random_normal(random);
        s.sine[i] = lp_random_normal(random);
    }
    assert_int_equal(lp_spectrum_complete(&s, NULL), LAPSE_OK);
    return s;
}

static char *picture(const lapse_spectrum *s, lapse_lags lags, const char *title)
{
    lapse_error error = {0};
    const char *path = small_path("picture.svg");
    if (lapse_lags_resolve(s, &lags, &error) != LAPSE_OK ||
        lapse_spectrum_save_svg(s, &lags, title, path, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    lp_buffer text = small_file_read(path);
    assert_true(lp_buffer_add(&text, "", 1));
    return text.data;
}

static void assert_good(const char *text)
{
    assert_true(strncmp(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 40) == 0);
    assert_true(well_formed(text));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_null(strstr(text, "<script"));
}

static void test_pictures_are_well_formed(void **state)
{
    (void)state;
    static const struct {
        int count, harmonics;
        lapse_lags lags;
    } cases[] = {{1, 1, {"log", 0, 0, 60}},     {1, 1, {"linear", 0, 0, 60}},    {7, 1, {"log", 60, 63e6, 2}},
                 {12, 4, {"linear", 0, 1, 9}},  {50, 1, {"log", 1e-3, 1e3, 9}},  {200, 5, {"log", 0, 0, 60}},
                 {30, 3, {"log", 5, 5.001, 9}}, {30, 3, {"linear", 0, 3e11, 9}}, {3, 3, {"linear", 99, 100, 9}}};
    lp_random random = lp_random_start(11, LP_PURPOSE_TEST, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_spectrum s = random_spectrum(cases[i].count, cases[i].harmonics, &random);
        char *text = picture(&s, cases[i].lags, "A title");
        assert_good(text);
        assert_non_null(strstr(text, "<title>A title</title>"));
        bool shown = strstr(text, "its harmonics") != NULL; /* where they are within the lags */
        assert_true(cases[i].lags.to == 0 ? shown == (cases[i].harmonics > 1) : !shown || cases[i].harmonics > 1);
        assert_true((strstr(text, "Features Phi(lag) of the 50 frequencies") && strstr(text, "of 200</text>")) ==
                    (cases[i].count == 200));
        lp_free(text);
        lapse_spectrum_clear(&s);
    }
    small_paths_remove();
}

/* No frequency, zero frequencies, and zero amplitudes. */
static void test_degenerate_spectra(void **state)
{
    (void)state;
    lapse_lags lags = {"log", 1, 1000, 10};
    for (int count = 0; count < 4; count++) {
        lapse_spectrum s;
        assert_int_equal(lp_spectrum_init(&s, count, NULL), LAPSE_OK);
        for (int i = 0; i < count; i++)
            s.cosine[i] = i > 0;
        assert_int_equal(lp_spectrum_complete(&s, NULL), LAPSE_OK);
        char *text = picture(&s, lags, NULL);
        assert_good(text);
        assert_true((strstr(text, "constant") != NULL) == (count > 0));
        lp_free(text);
        lapse_spectrum_clear(&s);
    }
    small_paths_remove();
}

/* A kernel has a point for each column of pixels, from the first lag to the last, each within its band. */
static void test_kernels_have_their_columns(void **state)
{
    (void)state;
    lp_random random = lp_random_start(8, LP_PURPOSE_TEST, 3);
    lapse_spectrum s = random_spectrum(3, 1, &random);
    for (int columns = 1; columns < 60; columns += 29) {
        lapse_lags lags = {"linear", 1, 1000, 10};
        lp_figures figures = {0};
        assert_int_equal(lapse_lags_resolve(&s, &lags, NULL), LAPSE_OK);
        lp_kernel_figure(&figures, &s, &lags, columns);
        const lp_series *curve = figures.first->series;
        assert_int_equal(curve->count, columns);
        for (int i = 0; i < columns; i++) {
            const lp_point *p = &curve->points[i];
            assert_true(p->x > 1 && p->x < 1000 && (i == 0 || p->x > curve->points[i - 1].x));
            assert_true(p->low <= p->y + 1e-3 && p->y <= p->high + 1e-3);
        }
        lp_figures_clear(&figures);
    }
    lapse_spectrum_clear(&s);
}

static void test_hostile_titles(void **state)
{
    (void)state;
    lp_random random = lp_random_start(12, LP_PURPOSE_TEST, 1);
    lapse_spectrum s = random_spectrum(3, 1, &random);
    lapse_lags lags = {"log", 1, 1000, 10};
    char *text = picture(&s, lags, "</title><script>\x01\"&'\xff");
    assert_good(text);
    assert_non_null(strstr(text, "<title>&lt;/title&gt;&lt;script&gt;?&quot;&amp;'?</title>"));
    lp_free(text);
    text = picture(&s, lags,
                   "Zeit \xc3\xbc"
                   "ber alles");
    assert_non_null(strstr(text, "<title>Zeit \xc3\xbc"
                                 "ber alles</title>"));
    lp_free(text);
    lapse_spectrum_clear(&s);
    small_paths_remove();
}

/* Series have the colours 0, 1, 2, ...; a series without a colour takes none. */
static void test_series_have_different_colours(void **state)
{
    (void)state;
    lp_figures figures = {0};
    lp_figure *figure = lp_figures_add(&figures, "id", "title", "caption");
    for (int i = 0; i < 5; i++) {
        lp_series *series = lp_figure_series(&figures, figure, "name", LP_MARK_LINE);
        assert_int_equal(series->colour, i < 3 ? i : i - 1);
        if (i == 2)
            series->colour = -1;
    }
    lp_figures_clear(&figures);
}

static void test_failures_leave_nothing(void **state)
{
    (void)state;
    lp_random random = lp_random_start(13, LP_PURPOSE_TEST, 1);
    lapse_spectrum s = random_spectrum(3, 1, &random);
    const lapse_lags lags = {"log", 1, 1000, 10};
    const char *path = small_path("failed.svg");
    lapse_error error = {0};
    lapse_status status = LAPSE_ERROR_MEMORY;
    int n = 0;
    while (status != LAPSE_OK && n < 1000) {
        lp_memory_fail_at(++n);
        status = lapse_spectrum_save_svg(&s, &lags, "t", path, &error);
        lp_memory_fail_at(0);
        assert_true(status == LAPSE_OK || status == LAPSE_ERROR_MEMORY);
        assert_int_equal(access(path, F_OK), status == LAPSE_OK ? 0 : -1);
    }
    assert_in_range(n, 4, 999);
    assert_int_equal(lapse_spectrum_save_svg(&s, &lags, "t", "no/such/folder/x.svg", &error), LAPSE_ERROR_FILE);
    assert_string_equal(error.file, "no/such/folder/x.svg");
    lapse_spectrum_clear(&s);
    small_paths_remove();
}

/* -------------------------------------------------------------------------------------------------- axes ------ */

static void assert_ticks(bool logarithmic, double from, double to, const char *expected)
{
    lp_axis axis = {logarithmic, from, to, 0, 860};
    lp_tick ticks[LP_TICKS];
    char labels[512] = "";
    size_t used = 0;
    int count = lp_axis_time_ticks(&axis, 58, ticks);
    assert_in_range(count, 0, LP_TICKS);
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(labels + used, sizeof labels - used, "%s%s", i ? ", " : "", ticks[i].label);
        for (int j = 0; j < i; j++)
            assert_true(fabs(lp_axis_pixel(&axis, ticks[i].value) - lp_axis_pixel(&axis, ticks[j].value)) > 57);
    }
    assert_string_equal(labels, expected);
}

static void test_time_ticks(void **state)
{
    (void)state;
    assert_ticks(false, 0, 30 * 86400, "0 d, 3 d, 6 d, 9 d, 12 d, 15 d, 18 d, 21 d, 24 d, 27 d, 30 d");
    assert_ticks(false, 0, 7200,
                 "0 min, 10 min, 20 min, 30 min, 40 min, 50 min, 60 min, 70 min, 80 min, 90 min, "
                 "100 min, 110 min, 120 min");
    assert_ticks(true, 60, 86400 * 7, "1 min, 1 h, 1 d, 10 min, 30 min, 6 h, 7 d, 2 min, 5 min, 2 h, 12 h, 2 d");
    assert_ticks(true, 5, 5.001, "5 s");
}

static void test_axis_there_and_back(void **state)
{
    (void)state;
    lp_axis axes[] = {{true, 0.5, 3e8, 100, 960}, {false, -2, 7, 548, 348}};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k <= 10; k++) {
            double pixel = axes[i].begin + (axes[i].end - axes[i].begin) * k / 10;
            assert_near(lp_axis_pixel(&axes[i], lp_axis_value(&axes[i], pixel)), pixel, 1e-9);
        }
    lp_tick ticks[LP_TICKS];
    assert_int_equal(lp_axis_number_ticks(&axes[1], 5, ticks), 5);
    assert_string_equal(ticks[0].label, "-2");
    assert_string_equal(ticks[1].label, "0");
    assert_string_equal(ticks[4].label, "6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_have_their_columns),
        cmocka_unit_test(test_the_reader_can_fail),    cmocka_unit_test(test_pictures_are_well_formed),
        cmocka_unit_test(test_degenerate_spectra),     cmocka_unit_test(test_hostile_titles),
        cmocka_unit_test(test_failures_leave_nothing), cmocka_unit_test(test_time_ticks),
        cmocka_unit_test(test_axis_there_and_back),    cmocka_unit_test(test_series_have_different_colours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
