/* axis.c: maps values to pixels and chooses the tick marks of an axis. */
#include "inspect/axis.h"

#include <math.h>
#include <stdio.h>

/* Time units and the multiples that make good ticks. On a log axis the first multiple of each unit is placed first. */
typedef struct time_unit {
    const char *name;
    double seconds;
    double multiples[14]; /* terminated by 0 */
} time_unit;

static const time_unit units[] = {
    {"us", 1e-6, {1, 10, 100}},
    {"ms", 0.001, {1, 10, 100}},
    {"s", 1, {1, 2, 5, 10, 20, 30}},
    {"min", 60, {1, 2, 5, 10, 20, 30}},
    {"h", 3600, {1, 2, 3, 6, 12}},
    {"d", 86400, {1, 2, 3, 7, 14, 30, 90}},
    {"y", 31557600, {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4}},
};

enum { UNITS = sizeof units / sizeof *units, MULTIPLES = 14 };

double lp_axis_pixel(const lp_axis *axis, double value)
{
    double part = axis->log ? log(value / axis->from) / log(axis->to / axis->from)
                            : (value - axis->from) / (axis->to - axis->from);
    return axis->begin + part * (axis->end - axis->begin);
}

double lp_axis_value(const lp_axis *axis, double pixel)
{
    double part = (pixel - axis->begin) / (axis->end - axis->begin);
    return axis->log ? axis->from * exp(part * log(axis->to / axis->from))
                     : axis->from + part * (axis->to - axis->from);
}

/* Adds a tick unless it is out of range or too close to another. */
static int add_tick(const lp_axis *axis, double apart, const time_unit *unit, double multiple, lp_tick *ticks,
                    int count)
{
    double value = unit->seconds * multiple, rounding = 1e-9 * (axis->to - axis->from);
    if (count == LP_TICKS || value < axis->from - rounding || value > axis->to + rounding)
        return count;
    for (int i = 0; i < count; i++)
        if (fabs(lp_axis_pixel(axis, value) - lp_axis_pixel(axis, ticks[i].value)) < apart)
            return count;
    ticks[count].value = value;
    snprintf(ticks[count].label, sizeof ticks[count].label, "%.6g %s", multiple, unit->name);
    return count + 1;
}

static int log_ticks(const lp_axis *axis, double apart, lp_tick *ticks)
{
    int count = 0;
    for (int i = 0; i < UNITS; i++)
        count = add_tick(axis, apart, &units[i], units[i].multiples[0], ticks, count);
    /* Prefer a factor of about ten within a unit, then add whatever fits. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < UNITS; i++)
            for (int j = 1; j < MULTIPLES && units[i].multiples[j] > 0; j++)
                if (pass == 1 || units[i].multiples[j] == 10 || units[i].multiples[j] == 30 ||
                    units[i].multiples[j] == 7 || units[i].multiples[j] == 6)
                    count = add_tick(axis, apart, &units[i], units[i].multiples[j], ticks, count);
    return count;
}

/* The smallest step that keeps ticks `apart` pixels apart, in multiples of its unit. */
static int linear_ticks(const lp_axis *axis, double apart, lp_tick *ticks)
{
    double pixels = fabs(axis->end - axis->begin), least = (axis->to - axis->from) * apart / pixels;
    const time_unit *unit = &units[UNITS - 1];
    double step = 0;
    for (int i = 0; i < UNITS && step == 0; i++)
        for (int j = 0; j < MULTIPLES && units[i].multiples[j] > 0 && step == 0; j++)
            if (units[i].seconds * units[i].multiples[j] >= least) {
                unit = &units[i];
                step = units[i].multiples[j];
            }
    if (step == 0)
        step = 1e4;
    int count = 0;
    double first = ceil(axis->from / (unit->seconds * step) - 1e-9);
    for (int i = 0; i < LP_TICKS; i++)
        count = add_tick(axis, 0, unit, (first + i) * step, ticks, count);
    return count;
}

int lp_axis_time_ticks(const lp_axis *axis, double apart, lp_tick ticks[LP_TICKS])
{
    double pixels = fabs(axis->end - axis->begin);
    if (apart < pixels / (LP_TICKS - 1))
        apart = pixels / (LP_TICKS - 1);
    return axis->log ? log_ticks(axis, apart, ticks) : linear_ticks(axis, apart, ticks);
}

int lp_axis_number_ticks(const lp_axis *axis, int wanted, lp_tick ticks[LP_TICKS])
{
    double width = axis->to - axis->from, step = pow(10, floor(log10(width / wanted)));
    double rough = width / wanted / step;
    step *= rough > 7 ? 10 : rough > 3 ? 5 : rough > 1.4 ? 2 : 1;
    int count = 0;
    for (double value = ceil(axis->from / step - 1e-9) * step; value <= axis->to + 1e-9 * width && count < LP_TICKS;
         value += step) {
        ticks[count].value = fabs(value) < 1e-9 * width ? 0 : value;
        snprintf(ticks[count].label, sizeof ticks[count].label, "%.6g", ticks[count].value);
        count++;
    }
    return count;
}

int lp_axis_log_ticks(const lp_axis *axis, double apart, lp_tick ticks[LP_TICKS])
{
    static const double multiples[] = {1, 5, 2};
    int count = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int power = (int)floor(log10(axis->from)); power <= (int)ceil(log10(axis->to)); power++) {
            double value = multiples[pass] * pow(10, power), pixel = lp_axis_pixel(axis, value);
            bool fits = count < LP_TICKS && value >= axis->from * (1 - 1e-9) && value <= axis->to * (1 + 1e-9);
            for (int i = 0; fits && i < count; i++)
                fits = fabs(pixel - lp_axis_pixel(axis, ticks[i].value)) >= apart;
            if (!fits)
                continue;
            ticks[count].value = value;
            snprintf(ticks[count++].label, sizeof ticks->label, "%.6g", value);
        }
    return count;
}
