/* device_check.c: see device_check.h. */
#include "support/device_check.h"

#include "backend/cpu/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One matrix of a case: value i, or the gradient of a parameter. NULL: it has no result. */
static const lp_value *matrix_of(const graph_case *this, const graph_result *result, int i, const double **data)
{
    int p = i - this->graph.value_count;
    const lp_value *value = p < 0 ? this->graph.values[i] : this->graph.parameters[p].value;
    *data = p < 0 ? result->values[i] : result->gradients + value->offset;
    return *data ? value : NULL;
}

static double error_of(const double *got, const double *wanted, int count)
{
    double largest = 0.1, most = 0;
    for (int k = 0; k < count; k++) {
        double apart = fabs(got[k] - wanted[k]);
        largest = fmax(largest, fabs(wanted[k]));
        most = apart <= most ? most : apart;
    }
    return most / largest;
}

double device_check_error(const graph_case *this, const graph_result *got, const graph_result *wanted, double allowed,
                          const char *what)
{
    double most = 0;
    for (int i = 0; i < this->graph.value_count + this->graph.parameter_count; i++) {
        const double *a, *b;
        const lp_value *value = matrix_of(this, wanted, i, &b);
        if (!value)
            continue;
        matrix_of(this, got, i, &a);
        double apart = error_of(a, b, graph_case_elements(this, value));
        if (!(apart <= allowed))
            fail_msg("%s, %s%s: error %.3g of the largest element, allowed %.3g", what,
                     i < this->graph.value_count ? "" : "gradient of ", value->name, apart, allowed);
        most = fmax(most, apart);
    }
    return most;
}

void device_check_same_bits(const graph_case *this, const graph_result *a, const graph_result *b, const char *what)
{
    for (int i = 0; i < this->graph.value_count + this->graph.parameter_count; i++) {
        const double *one, *other;
        const lp_value *value = matrix_of(this, a, i, &one);
        if (!value)
            continue;
        matrix_of(this, b, i, &other);
        if (memcmp(one, other, sizeof(double) * (size_t)graph_case_elements(this, value)) != 0)
            fail_msg("%s: %s'%s' differs between two runs", what, i < this->graph.value_count ? "" : "the gradient of ",
                     value->name);
    }
}

void device_check_run_reversed(graph_case *this, const lp_backend *device, int extra_tokens, int times,
                               graph_result *result)
{
    setenv("LAPSE_EMULATE_REVERSE", "1", 1);
    graph_case_run_on(this, device, extra_tokens, times, result);
    unsetenv("LAPSE_EMULATE_REVERSE");
}

void device_check_precisions(graph_case *this, const lp_backend *device, int extra_tokens, int checks, const char *what)
{
    static const struct {
        lp_precision precision;
        const char *name;
        double least, most;
    } rows[] = {{LP_PRECISION_FP32, "fp32", 0, 2e-5},
                {LP_PRECISION_TF32, "tf32", 2e-5, 5e-3},
                {LP_PRECISION_BF16, "bf16", 2e-4, 4e-2}};
    graph_result wanted, got, again;
    graph_case_run(this, sizeof(double), lp_reference_kernels_double, &wanted);
    for (int i = 0; i < 3; i++) {
        char name[256];
        if (!(checks >> i & 1))
            continue;
        snprintf(name, sizeof name, "%s, %s", what, rows[i].name);
        this->precision = rows[i].precision;
        graph_case_run_on(this, device, extra_tokens, 1, &got);
        double apart = device_check_error(this, &got, &wanted, rows[i].most, name);
        if (apart < rows[i].least)
            fail_msg("%s: an error of only %.3g", name, apart);
        if (checks & DEVICE_SAME_BITS) {
            device_check_run_reversed(this, device, extra_tokens, 2, &again);
            device_check_same_bits(this, &got, &again, name);
            graph_result_clear(&again);
        }
        graph_result_clear(&got);
    }
    graph_result_clear(&wanted);
}
