/* check.h: shared by the data-quality and leakage checks: check.c (events), check_split.c (train/validation/test
 * split), check_fields.c (fields). The public function is lapse_dataset_check. */
#ifndef LP_CHECK_H
#define LP_CHECK_H

#include "data/dataset/split.h"
#include "lapse_lab.h"

typedef struct lp_check_context {
    const lapse_dataset *dataset;
    const lp_split_rule *rule;
    const uint8_t *split; /* of each event */
    lapse_check *check;   /* being filled */
} lp_check_context;

/* A finding without its sentence. The severity is ok if count is 0, otherwise warning if `warn` is set, else note. */
typedef struct lp_check_result {
    const char *name, *unit;
    int64_t count, total;
    bool warn;
    const char *advice;
} lp_check_result;

/* Adds a finding with a printf-formatted sentence. */
__attribute__((format(printf, 3, 4))) void lp_check_add(lp_check_context *c, const lp_check_result *found,
                                                        const char *format, ...);

static inline double lp_check_fraction(int64_t count, int64_t total)
{
    return total > 0 ? (double)count / (double)total : 0;
}

/* Checks of the split, and of fields that leak the target. False when out of memory. */
bool lp_check_splits(lp_check_context *c);
bool lp_check_fields(lp_check_context *c);

#endif
