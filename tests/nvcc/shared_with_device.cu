/* shared_with_device.cu: headers shared by host and device must compile with nvcc: the public header, and the counter-based random
 * numbers, which must be the same function on both sides. The test command compiles it where nvcc is found; it is never run.
 */
#include "lapse.h"
#include "base/random.h"

/* Layouts must agree between C, C++ and the device. */
static_assert(sizeof(lapse_status) == sizeof(int), "a status is an int on both sides");
static_assert(offsetof(lapse_error, message) == sizeof(lapse_status), "an error begins with its status");

__global__ void draw_words(uint64_t seed, uint32_t step, uint64_t count, uint32_t *words /* count x 4 */)
{
    uint64_t element = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (element >= count)
        return;
    lp_random_block block = lp_philox(seed, LP_PURPOSE_DROPOUT, step, element);
    for (int i = 0; i < 4; i++)
        words[4 * element + i] = block.word[i];
}

__global__ void draw_numbers(uint64_t seed, double *numbers /* 4 */)
{
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 0);
    numbers[0] = lp_random_uniform(&random);
    numbers[1] = lp_random_normal(&random);
    numbers[2] = lp_random_exponential(&random);
    numbers[3] = lp_random_below(&random, 10);
}

/* Host code in the same file uses the same function. */
uint32_t lp_shared_with_device_word(uint64_t seed);
uint32_t lp_shared_with_device_word(uint64_t seed)
{
    return lp_philox(seed, LP_PURPOSE_TEST, 0, 0).word[0];
}
