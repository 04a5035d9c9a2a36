/* target_events.h: which events are targets: all of them, or those with one action ("action=view"). The others are only
 * context. */
#ifndef LP_TARGET_EVENTS_H
#define LP_TARGET_EVENTS_H

#include "data/dataset/dataset.h"

/* Finds the action of "action=NAME" in the dataset; *action is -1 for "" and "all": every event is a target. An unknown
 * name is an error that lists the known ones. */
lapse_status lp_target_events_find(const lapse_dataset *dataset, const char *target, int32_t *action,
                                   lapse_error *error);

/* The name of the action; NULL: every event is a target. */
const char *lp_target_events_action(const char *target);

/* Sets the split of every event that is not a target to LP_SPLIT_NONE. Where *split is NULL and some events are not targets,
 * it is allocated first, with LP_SPLIT_TEST for all others; the caller frees it with lp_free. */
lapse_status lp_target_events_mask(const lapse_dataset *dataset, const char *target, uint8_t **split,
                                   lapse_error *error);

#endif
