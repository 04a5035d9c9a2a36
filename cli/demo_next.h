/* demo_next.h: the last part of the demo: predictions for one shopper at several query times. */
#ifndef CLI_DEMO_NEXT_H
#define CLI_DEMO_NEXT_H

#include <lapse_lab.h>

/* Simulates shoppers of the same process that are not in the training data (through the CSV file `path`), selects the
 * purchase after which the prediction depends most on the time, and prints the predictions at several times after it. */
lapse_status cli_demo_next(const lapse_model *model, const lapse_simulate_options *shop, const char *path,
                           lapse_error *error);

#endif
