/* graph_slope.c: gradients against finite differences. */
#include "support/graph_slope.h"

#include "support/small_data.h"

#include "backend/cpu/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

/* The derivative of the loss with respect to *x by finite differences of fourth order. */
static double slope(graph_case *this, double *x, double step)
{
    static const double steps[] = {-2, -1, 1, 2}, weights[] = {1, -8, 8, -1};
    double at = *x, sum = 0;
    for (int i = 0; i < 4; i++) {
        graph_result result;
        *x = at + steps[i] * step;
        graph_case_run(this, sizeof(double), lp_reference_kernels_double, &result);
        sum += weights[i] * graph_case_loss(this, &result);
        graph_result_clear(&result);
    }
    *x = at;
    return sum / (12 * step);
}

/* A long step avoids rounding errors, a short one the kinks of relu. */
static bool agrees(graph_case *this, double *x, double gradient, double *wanted)
{
    for (double step = 1e-4; step > 1e-8; step /= 10) {
        *wanted = slope(this, x, step);
        if (fabs(gradient - *wanted) <= 1e-5 * fmax(1e-3, fmax(fabs(gradient), fabs(*wanted))))
            return true;
    }
    return false;
}

void graph_slope_check(graph_case *this, const char *what, int every)
{
    graph_result result;
    if (small_under_valgrind())
        every *= 7;
    graph_case_run(this, sizeof(double), lp_reference_kernels_double, &result);
    for (int i = 0; i < this->graph.parameter_count; i++) {
        const lp_value *value = this->graph.parameters[i].value;
        if (!value->requires_grad)
            continue;
        if (!value->gradient)
            fail_msg("%s: '%s' got no gradient", what, value->name);
        for (int k = 0; k < value->rows * value->cols; k += every) {
            size_t place = value->offset + (size_t)k;
            double wanted;
            if (!agrees(this, &this->parameters[place], result.gradients[place], &wanted))
                fail_msg("%s: the gradient of '%s', element %d, is %.12g, should be %.12g", what, value->name, k,
                         result.gradients[place], wanted);
        }
    }
    graph_result_clear(&result);
}
