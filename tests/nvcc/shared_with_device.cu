/* shared_with_device.cu: what host and device share must compile for the device: the public header's types, and the
 * counter-based randomness, which must be the same function on both sides. Compiled by the test command wherever nvcc is
 * found, never run: it needs no GPU.
 */
#include "lapse.h"
#include "base/random.h"

/* The layout of what crosses from C to C++ and to the device. */
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

/* The host's side of the same file uses the same function. */
uint32_t lp_shared_with_device_word(uint64_t seed);
uint32_t lp_shared_with_device_word(uint64_t seed)
{
    return lp_philox(seed, LP_PURPOSE_TEST, 0, 0).word[0];
}
