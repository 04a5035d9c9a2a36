/* law.h: the events of a dataset in the simulation that it was imported from. */
#ifndef LP_LAW_H
#define LP_LAW_H

#include "data/dataset/dataset.h"
#include "simulate/simulate.h"
#include "lapse_lab.h"

/* Fills a new array, owned by the caller: for each of the dataset's events the same event of the simulation, found by user
 * and time. */
lapse_status lp_law_find_events(const lapse_simulation *simulation, const lapse_dataset *dataset, int64_t **events,
                                lapse_error *error);

/* The user of a sequence of a dataset whose events were found. */
int64_t lp_law_user(const lapse_simulation *simulation, const lapse_dataset *dataset, int64_t sequence);

#endif
