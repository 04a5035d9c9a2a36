/* demo_next.h: the last part of the demo: what happens next to one shopper, in words. */
#ifndef CLI_DEMO_NEXT_H
#define CLI_DEMO_NEXT_H

#include <lapse.h>

/* Draws shoppers of the same law whom no model has seen (through the CSV file `path`), takes the purchase after which
 * time matters most, and prints what the model expects at a few times after it. */
lapse_status cli_demo_next(const lapse_model *model, const lapse_simulate_options *shop, const char *path,
                           lapse_error *error);

#endif
