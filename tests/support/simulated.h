/* simulated.h: simulates the preset "shop" for a test, and imports simulations. Include after cmocka.h. */
#ifndef TESTS_SIMULATED_H
#define TESTS_SIMULATED_H

#include "simulate/simulate.h"
#include "support/small_data.h"
#include "lapse_lab.h"

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

/* The events of a simulation as a dataset. event NULL: the column that the import chooses. */
static inline lapse_dataset *simulated_dataset(const lapse_simulation *simulation, const char *event, int64_t min_count)
{
    lapse_import_options import;
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    lapse_import_options_default(&import);
    import.input = small_path("simulated.csv");
    import.event = event;
    import.min_count = min_count;
    import.threads = 1;
    assert_int_equal(lapse_simulation_save(simulation, import.input, NULL), LAPSE_OK);
    if (lapse_dataset_read(&import, &dataset, NULL, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    return dataset;
}

#endif
