/* test_bar.c: what lines of progress look like, by a clock and a width that the test sets. */
#include "cli/bar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/golden_text.h"

static double now;
static int width;

double __wrap_cli_clock(void);
int __wrap_cli_width(FILE *file);

double __wrap_cli_clock(void)
{
    return now;
}

int __wrap_cli_width(FILE *file)
{
    (void)file;
    return width;
}

static lapse_progress progress_at(int epoch, int64_t step, double seconds)
{
    lapse_progress p = {.epoch = epoch,
                        .epochs = 12,
                        .step = step,
                        .steps = 40,
                        .loss = 1.25,
                        .score = NAN,
                        .best_score = NAN,
                        .score_name = "log-loss",
                        .events_per_second = 12345,
                        .seconds = seconds,
                        .epoch_seconds = 9.2,
                        .seconds_left = 59,
                        .seconds_left_most = 59};
    if (epoch > 1) {
        p.best_score = 1.2164;
        p.best_epoch = epoch - 1;
        p.newest = (lapse_epoch){.epoch = epoch - 1,
                                 .metric_count = 4,
                                 .metrics = {{"log-loss", "event", 1.25}, {"accuracy", "event", 0.479},
                                             {"log-loss", "action", 0.75}, {"action-loss", "action", 0.5}}};
    }
    return p;
}

/* A terminal as wide as each limit of the pieces, and beyond. */
static void lines_fit_a_terminal(void)
{
    for (width = 1; width <= 150; width += width == 1 ? 11 : 1) {
        cli_bar bar = {.label = width % 2 ? NULL : "fit", .terminal = true, .drawn = -1e9, .announced = true};
        lapse_progress p = progress_at(2, width % 41, 4);
        p.seconds_left_most = width % 3 ? 59 : 90 * 60;
        fprintf(stderr, "width %d:", width);
        cli_bar_update(&bar, &p);
        cli_bar_end(&bar);
    }
    width = 80;
    cli_bar bar = {.terminal = true, .drawn = -1e9};
    lapse_progress p = progress_at(1, 0, 0);
    p.steps = 0;
    p.loss = NAN;
    p.events_per_second = 0;
    cli_bar_update(&bar, &p);
    cli_bar_wipe(&bar);
    cli_bar_wipe(&bar);
    cli_bar_end(&bar);
    p.steps = 1;
    p.step = 2;
    cli_bar_update(&bar, &p); /* too early to draw it again */
    now += 0.125;
    cli_bar_update(&bar, &p);
    cli_bar_end(&bar);
}

static void times_have_units(void)
{
    static const double seconds[] = {0, 0.4, 1, 59, 59.5, 60, 99, 99.5, 100, 101, 150, 5999, 6000, 6001, 36000};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
        for (int sure = 0; sure < 2; sure++) {
            cli_bar bar = {.terminal = false, .drawn = -1e9};
            lapse_progress p = progress_at(1, 20, 3 - (i % 4 == 3));
            p.seconds_left_most = seconds[i];
            p.seconds_left = sure ? seconds[i] : 5;
            cli_bar_update(&bar, &p);
            cli_bar_update(&bar, &p);
            p = progress_at(2, 40, 7);
            p.epoch_end = true;
            p.seconds_left_most = seconds[i];
            p.seconds_left = sure ? seconds[i] : 5;
            cli_bar_update(&bar, &p);
        }
}

static void epochs_have_lines(void)
{
    for (int terminal = 0; terminal < 2; terminal++)
        for (int label = 0; label < 2; label++) {
            fprintf(stderr, "terminal %d, label %d\n", terminal, label);
            cli_bar bar = {.label = label ? "fit" : NULL, .terminal = terminal, .drawn = -1e9};
            for (int i = 1; i <= 8; i++) {
                now += 0.0625;
                lapse_progress p = progress_at(1 + i / 4, 10 * (i % 4), i);
                p.epoch_end = i % 4 == 0;
                p.seconds_left_most = i * 20;
                cli_bar_update(&bar, &p);
            }
            cli_bar_end(&bar);
        }
}

static void parts_have_quarters(void)
{
    for (int terminal = 0; terminal < 2; terminal++)
        for (width = 20; width <= 80; width += 30) {
            cli_bar bar = {.terminal = terminal, .drawn = now - 1};
            for (int i = 0; i <= 16; i++) {
                now += 0.0625;
                cli_bar_fraction(&bar, "forecast: some of 80 histories", i / 16.0, 1 + i / 8.0, 2 * (16 - i));
            }
            now += 0.1 - 0.0625;
            cli_bar_fraction(&bar, "the end", 1, 2, 0);
            cli_bar_end(&bar);
        }
}

/* Exactly at the time of the next drawing, and before. */
static void lines_are_drawn_in_time(void)
{
    width = 60;
    for (int i = 0; i < 2; i++) {
        cli_bar bar = {.terminal = true}, other = {.terminal = true, .announced = true};
        lapse_progress p = progress_at(1, 20, 4);
        now = i ? 0.1 : 0.0999999;
        cli_bar_fraction(&bar, "exactly", 0.5, 2, 3);
        cli_bar_update(&other, &p);
        cli_bar_end(&bar);
        cli_bar_end(&other);
    }
}

static void lines_are_as_recorded(void **state)
{
    (void)state;
    fflush(stderr);
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    lines_fit_a_terminal();
    times_have_units();
    epochs_have_lines();
    parts_have_quarters();
    lines_are_drawn_in_time();
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    long size = lseek(fileno(file), 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(pread(fileno(file), text, (size_t)size, 0), size);
    for (long i = 0; i < size; i++) /* so that the file is text */
        text[i] = text[i] == '\r' ? '<' : text[i] == '\033' ? '^' : text[i];
    golden_text_check("tests/golden/bar.txt", text, (size_t)size);
    free(text);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_are_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
