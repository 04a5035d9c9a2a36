/* bench_preset.h: benchmark presets: tasks of known sizes, with events simulated in memory.
 *
 * Speed depends on sizes and lengths, not on the content, so events are random: items with a skewed popularity, gaps
 * over many orders of magnitude, and sequence lengths distributed as in the data that a preset is named after.
 */
#ifndef LP_BENCH_PRESET_H
#define LP_BENCH_PRESET_H

#include "train/train_options.h"
#include "lapse_lab.h"

/* Sizes of the data that a preset simulates. */
typedef struct lp_bench_sizes {
    int64_t sequences, items;
    double shortest, median, mean; /* events per sequence: log-normal above the shortest */
} lp_bench_sizes;

enum { LP_BENCH_OPTIONS = 16 };

typedef struct lp_bench_preset {
    const char *name;                   /* must be the first member: lapse_bench_preset_names */
    const struct lp_bench_preset *base; /* whose sizes and options it inherits; NULL: none */
    lp_bench_sizes sizes;               /* 0 sequences: those of the base */
    struct {
        const char *name, *value;
    } options[LP_BENCH_OPTIONS]; /* training options, after those of the base; the others have their defaults */
} lp_bench_preset;

const lp_bench_sizes *lp_bench_preset_sizes(const lp_bench_preset *preset);

const lp_bench_preset *lp_bench_preset_find(const char *name);

/* Training options: the defaults, then those of the preset, then those that the caller of the benchmark set. */
lapse_status lp_bench_preset_options(const lp_bench_preset *preset, const lapse_bench_options *bench,
                                     lapse_train_options *options, lapse_error *error);

/* Simulates a dataset of these sizes. The vocabulary lists items that never occur, too. Closed by
 * lapse_dataset_close. */
lapse_status lp_bench_data(const lp_bench_preset *preset, int64_t sequences, int64_t items, uint64_t seed,
                           lapse_dataset **dataset, lapse_error *error);

#endif
