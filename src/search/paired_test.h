/* paired_test.h: whether two rows of a sweep differ, from the records of their runs with equal seeds.
 *
 * The statistic is the difference of the rows' means: per seed the mean over cases, then the mean over seeds. Both sources of
 * chance are resampled, with replacement: seeds, and groups of sequences (the pigeonhole bootstrap; docs/compare.md). Equal seeds
 * and sequences of the two rows stay together. With one seed, only the cases vary. Fewer than LP_PAIRED_GROUPS groups are too
 * few: the difference has no interval then. */
#ifndef LP_PAIRED_TEST_H
#define LP_PAIRED_TEST_H

#include "search/run_record.h"

enum { LP_PAIRED_GROUPS = 10 };

/* Numbers are NaN where they cannot be computed: all of them if the runs have no seed in common, or other cases. */
typedef struct lp_paired {
    lapse_mean difference; /* of `row` minus `best`, with a 95 % interval */
    double p;              /* two-sided */
} lp_paired;

/* Records [count] of both rows, seed by seed; a NULL or diverged one is left out with its partner. The result does not depend on
 * threads. */
lapse_status lp_paired_test(const lp_run_record *const *row, const lp_run_record *const *best, int count, int metric,
                            int resamples, int threads, lp_paired *out, lapse_error *error);

#endif
