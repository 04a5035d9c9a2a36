/* split.h: assigns events to the train, validation and test split. */
#ifndef LP_SPLIT_H
#define LP_SPLIT_H

#include "data/dataset/dataset.h"

/* A split rule; split.c has the table. */
typedef struct lp_split_rule {
    bool within_sequences; /* a sequence may have events in several splits, by design */
    bool at_a_time;        /* what of a sequence is held out begins after the same time in all sequences */
    lapse_status (*make)(const lapse_dataset *dataset, uint64_t seed, uint8_t *split, lapse_error *error);
} lp_split_rule;

/* Finds a rule by name (NULL: unknown), and the name of a rule. lapse_split_by_names lists the names. */
const lp_split_rule *lp_split_rule_find(const char *name);
const char *lp_split_rule_name(const lp_split_rule *rule);

/* The default rule: column if the dataset has one, otherwise leave-one-out for recommend and sequence for classify. */
const lp_split_rule *lp_split_rule_default(const lapse_dataset *dataset, const char *task);

/* Computes the split of every event, as lp_split, identical on every machine for the same rule, seed and dataset.
 * *split has event_count bytes; the caller frees it with lp_free. Fails if no event is left for training or
 * validation. */
lapse_status lp_split_make(const lapse_dataset *dataset, const lp_split_rule *rule, uint64_t seed, uint8_t **split,
                           lapse_error *error);

/* The end of the observation of the split `wanted`, train or valid, in unix seconds: up to this time, its sequences have no events in a
 * later split (train, valid, test). Of whole sequences it is the last time of the dataset. Where sequences are divided at a time, as
 * sessions are, it is the first time of a later split. An error where they are divided otherwise, as by leave-one-out. */
lapse_status lp_split_end(const lapse_dataset *dataset, const lp_split_rule *rule, const uint8_t *split,
                          lp_split wanted, double *end, lapse_error *error);

#endif
