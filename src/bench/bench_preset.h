/* bench_preset.h: tasks of known sizes, with events simulated in memory.
 *
 * Speed depends on sizes and lengths, not on what is learned, so events are drawn by chance: items with a skew, gaps over
 * many lengths of time, and histories whose lengths follow those of the data that a preset is named after.
 */
#ifndef LP_BENCH_PRESET_H
#define LP_BENCH_PRESET_H

#include "data/dataset/dataset.h"

typedef struct lp_bench_preset {
    const char *name;
    int64_t sequences, items;
    double shortest, median, mean; /* events of a sequence: a shortest one and a log-normal rest */
    const char *task, *loss, *windows;
    const char *negatives; /* NULL: those of training by default */
    int dims, blocks, context, batch, periods, harmonics;
    double dropout;
} lp_bench_preset;

/* NULL where there is none of this name. */
const lp_bench_preset *lp_bench_preset_find(const char *name);

/* What training with it is told; everything else stays as it is by default. */
void lp_bench_preset_options(const lp_bench_preset *preset, lapse_train_options *options);

/* So many sequences over so many items. Items that never occur are listed too. Closed by lapse_dataset_close. */
lapse_status lp_bench_data(const lp_bench_preset *preset, int64_t sequences, int64_t items, uint64_t seed,
                           lapse_dataset **dataset, lapse_error *error);

#endif
