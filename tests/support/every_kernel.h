/* every_kernel.h: runs a graph on all kernels: the reference ones in double and in float, each level of the CPU's, and the CUDA
 * device, which is the emulation, or a GPU where the environment variable LAPSE_TEST_DEVICE is cuda. For one test program; cmocka
 * calls come from its file.
 */
#ifndef EVERY_KERNEL_H
#define EVERY_KERNEL_H

#include "backend/cpu/cpu.h"
#include "support/graph_case.h"
#ifdef LAPSE_EMULATED
#include "support/test_device.h"
#endif

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const lp_backend *device; /* NULL: there is no emulation in this build */
static char what[200];           /* the case, for messages */

/* For the setup of a test group: 0, or -1 after a message. */
static int every_kernel_open(void)
{
#ifdef LAPSE_EMULATED
    lapse_error error;
    test_device_choose();
    if (lp_backend_open("cuda", &device, &error) != LAPSE_OK) {
        print_error("%s\n", error.message);
        return -1;
    }
#endif
    return 0;
}

/* On the scale of the largest element, or of 1. */
static void check_matrix(const double *got, const double *wanted, int count, double relative, const char *part)
{
    double largest = 1;
    for (int k = 0; k < count; k++)
        largest = fmax(largest, fabs(wanted[k]));
    for (int k = 0; k < count; k++)
        if (!(fabs(got[k] - wanted[k]) <= relative * largest))
            fail_msg("%s, %s, element %d: %.9g, should be %.9g within %.3g", what, part, k, got[k], wanted[k],
                     relative * largest);
}

typedef void (*checker)(graph_case *this, const graph_result *result, double relative, const void *wanted);

/* Runs the case on all kernels: the plain ones in double and in float, each level of the CPU's, and the CUDA device. */
static void run_everywhere(graph_case *this, checker check, const void *wanted, double relative)
{
    graph_result result;
    size_t length = strlen(what);
    snprintf(what + length, sizeof what - length, ", reference-double");
    graph_case_run(this, sizeof(double), lp_reference_kernels_double, &result);
    check(this, &result, 1e-12, wanted);
    graph_result_clear(&result);
    for (int level = -1; level < 0 || lp_cpu_level_name(level); level++) {
        snprintf(what + length, sizeof what - length, ", %s", level < 0 ? "reference" : lp_cpu_level_name(level));
        graph_case_run(this, sizeof(float), level < 0 ? lp_reference_kernels_float : lp_cpu_level_kernels(level),
                       &result);
        check(this, &result, relative, wanted);
        graph_result_clear(&result);
    }
    for (int room = 0; device && room < 100; room += 60) {
        snprintf(what + length, sizeof what - length, ", cuda with space for %d more", room);
        graph_case_run_on(this, device, room, 1, &result);
        check(this, &result, relative, wanted);
        graph_result_clear(&result);
    }
}

static void check_result(graph_case *this, const graph_result *got, double relative, const void *other)
{
    const graph_result *wanted = other;
    for (int i = 0; i < this->graph.value_count; i++)
        if (wanted->values[i])
            check_matrix(got->values[i], wanted->values[i], graph_case_elements(this, this->graph.values[i]), relative,
                         this->graph.values[i]->name);
    for (int i = 0; i < this->graph.parameter_count; i++) {
        const lp_value *value = this->graph.parameters[i].value;
        check_matrix(got->gradients + value->offset, wanted->gradients + value->offset,
                     graph_case_elements(this, value), relative, value->name);
    }
}

#endif
