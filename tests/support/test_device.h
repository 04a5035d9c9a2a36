/* test_device.h: the device that tests of the CUDA backend run on: the emulated one, or a real one where the environment variable
 * LAPSE_TEST_DEVICE is cuda. */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include <stdlib.h>
#include <string.h>

/* What opens the device `cuda` from now on gets that one. */
static inline void test_device_choose(void)
{
    const char *wanted = getenv("LAPSE_TEST_DEVICE");
    if (!wanted || strcmp(wanted, "cuda") != 0)
        setenv("LAPSE_CUDA_PLUGIN", LAPSE_EMULATED, 1);
}

#endif
