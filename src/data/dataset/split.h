/* split.h: which events are learned from, which choose the best model, and which are kept for the final score. */
#ifndef LP_SPLIT_H
#define LP_SPLIT_H

#include "data/dataset/dataset.h"

/* How events come to their split: one row a rule, in split.c. */
typedef struct lp_split_rule {
    bool divides; /* a sequence may have events in several splits, by design */
    lapse_status (*make)(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error);
} lp_split_rule;

/* The rule of this name, or NULL; and the name of a rule. lapse_split_by_names lists them. */
const lp_split_rule *lp_split_rule_find(const char *name);
const char *lp_split_rule_name(const lp_split_rule *rule);

/* The rule of a run that names none: the column where the dataset has one, otherwise what the task usually takes. */
const lp_split_rule *lp_split_rule_default(const lapse_dataset *dataset, const char *task);

/* The split of every event, as lp_split, the same for the same rule, seed and dataset on every machine. *split has
 * event_count bytes and is the caller's (lp_free). An error where nothing would be left to train on or to validate
 * with. */
lapse_status lp_split_make(const lapse_dataset *dataset, const lp_split_rule *rule, uint64_t seed, uint8_t **split,
                           lapse_error *error);

#endif
