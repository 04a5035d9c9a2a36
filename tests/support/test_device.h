/* test_device.h: the device of the CUDA tests: the emulation, or a GPU if the environment variable LAPSE_TEST_DEVICE is
 * "cuda". */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether it is the emulation, which takes seconds for millions of pairs. */
static inline bool test_device_emulated(void)
{
    const char *wanted = getenv("LAPSE_TEST_DEVICE");
    return !wanted || strcmp(wanted, "cuda") != 0;
}

/* Makes lp_backend_open("cuda") open that device. */
static inline void test_device_choose(void)
{
    if (test_device_emulated())
        setenv("LAPSE_CUDA_PLUGIN", LAPSE_EMULATED, 1);
}

/* Opens it; NULL where that fails. */
static inline const lp_backend *test_device_open(void)
{
    const lp_backend *device = NULL;
    lapse_error error = {0};
    test_device_choose();
    if (lp_backend_open("cuda", &device, &error) != LAPSE_OK)
        fprintf(stderr, "%s\n", error.message);
    return device && !device->host ? device : NULL;
}

#endif
