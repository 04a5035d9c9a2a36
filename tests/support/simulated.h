/* simulated.h: simulates the preset "shop" for a test. Include after cmocka.h. */
#ifndef TESTS_SIMULATED_H
#define TESTS_SIMULATED_H

#include "data/simulate/simulate.h"

static inline lapse_simulation *simulate(int64_t sequences, double days, uint64_t seed)
{
    lapse_simulate_options options;
    lapse_simulate_options_default(&options);
    options.sequences = sequences;
    options.days = days;
    options.seed = seed;
    lapse_simulation *simulation = NULL;
    lapse_error error = {0};
    if (lapse_simulate(&options, &simulation, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return simulation;
}

#endif
