/* test_device.h: the device of the CUDA tests: the emulation, or a GPU if the environment variable LAPSE_TEST_DEVICE is
 * "cuda". */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include <stdlib.h>
#include <string.h>

/* Makes lp_backend_open("cuda") open that device. */
static inline void test_device_choose(void)
{
    const char *wanted = getenv("LAPSE_TEST_DEVICE");
    if (!wanted || strcmp(wanted, "cuda") != 0)
        setenv("LAPSE_CUDA_PLUGIN", LAPSE_EMULATED, 1);
}

#endif
