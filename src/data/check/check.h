/* check.h: what the files that look for spoiled data share: check.c for the events, check_split.c for their splits,
 * check_fields.c for their fields. The public call is lapse_dataset_check. */
#ifndef LP_CHECK_H
#define LP_CHECK_H

#include "data/dataset/split.h"

typedef struct lp_checking {
    const lapse_dataset *dataset;
    const lp_split_rule *rule;
    const uint8_t *split; /* of each event */
    lapse_check *check;   /* being filled */
} lp_checking;

/* What a finding is, before its sentence. The severity is ok where count is 0, otherwise a warning where `warn` is true
 * and a note where it is not. */
typedef struct lp_found {
    const char *name, *unit;
    int64_t count, total;
    bool warn;
    const char *advice;
} lp_found;

/* Adds a finding with the sentence that tells it. */
__attribute__((format(printf, 3, 4))) void lp_check_add(lp_checking *c, const lp_found *found, const char *format, ...);

static inline double lp_check_share(int64_t count, int64_t total)
{
    return total > 0 ? (double)count / (double)total : 0;
}

/* The findings about splits, and about fields that give the next event away. False when out of memory. */
bool lp_check_splits(lp_checking *c);
bool lp_check_fields(lp_checking *c);

#endif
