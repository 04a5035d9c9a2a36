/* window.h: windows: which runs of events a model reads, and which events it predicts in each.
 *
 * A window is `count` consecutive events of one sequence. At each position from `from` on, the model predicts the
 * next event, if that is a target. The windows of one list predict every event of their split exactly once, except
 * the first event of a sequence, which has no history.
 *
 * With `censored` the last event of a sequence in the split has a target too, an open one: an event that has not come up to the end of
 * the observation. Its time is known to be later, its type is not known. The last position of a window is a target, so only that can
 * be open.
 *
 * In evaluation windows overlap: every target has at least half a context of history, or all that exists. In training
 * they lie end to end, because that computes every token once; in a sequence longer than the context their offset is
 * random in each epoch, so that events are seen with histories of every length. With last_only both have a window for every
 * target.
 */
#ifndef LP_WINDOW_H
#define LP_WINDOW_H

#include "data/dataset/dataset.h"

typedef struct lp_window {
    int64_t sequence;
    int64_t first; /* event number in the dataset */
    int32_t count; /* events read; events first + 1 .. first + count may be targets, the last one an open one */
    int32_t from;  /* positions before this one only give context */
} lp_window;

typedef struct lp_windows {
    lp_window *windows; /* owned */
    int64_t count, capacity;
    int64_t targets; /* events predicted by all windows, open ones included */
} lp_windows;

/* Which events are targets: those with split[event] == wanted; if wanted is LP_SPLIT_COUNT, every event but those whose
 * split is LP_SPLIT_NONE. */
typedef struct lp_targets {
    const lapse_dataset *dataset;
    const uint8_t *split; /* NULL: all events, where wanted is LP_SPLIT_COUNT */
    lp_split wanted;
    int context;
    bool last_only;    /* each window has one target, after its last position */
    bool last_windows; /* training: only the last window of each sequence */
    bool censored;     /* training: gaps that are open at the end of the observation are right-censored targets */
    double end;        /* with censored: the end of the observation, unix seconds (lp_split_end) */
} lp_targets;

/* Fills list, which must be {0} at first and may be filled again; only the first call for one lp_targets allocates. */
lapse_status lp_windows_evaluation(lp_windows *list, const lp_targets *targets, lapse_error *error);
lapse_status lp_windows_training(lp_windows *list, const lp_targets *targets, uint64_t seed, uint32_t epoch,
                                 lapse_error *error);
void lp_windows_clear(lp_windows *list);

/* Shuffles the windows by seed and epoch. */
void lp_windows_shuffle(lp_windows *list, uint64_t seed, uint32_t epoch);

static inline bool lp_targets_include(const lp_targets *targets, int64_t event)
{
    return lp_split_includes(targets->split, targets->wanted, event);
}

/* Whether a target of a window is an open one; event: its index, if it had come. */
static inline bool lp_target_is_open(const lp_targets *targets, int64_t sequence, int64_t event)
{
    return targets->censored &&
           (event == (int64_t)targets->dataset->start[sequence + 1] || !lp_targets_include(targets, event));
}

#endif
