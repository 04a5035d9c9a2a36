/* window.h: which stretches of the sequences a model reads, and which events it is asked for in each.
 *
 * A window is `count` consecutive events of one sequence. At each of them, from place `from` on, the model is asked for
 * the event that follows it. Windows of one list ask for every event of their split exactly once, a sequence's first
 * event excepted, which has no past.
 *
 * In evaluation windows overlap: every asked event has at least half the context before it, or all that exists. In
 * training they lie end to end, because that computes every token once; where they begin in a sequence longer than the
 * context changes from epoch to epoch, so that an event is seen with pasts of every length.
 */
#ifndef LP_WINDOW_H
#define LP_WINDOW_H

#include "data/dataset/dataset.h"

typedef struct lp_window {
    int64_t sequence;
    int64_t first; /* event number in the dataset */
    int32_t count; /* events read; events first+1 .. first+count may be asked for */
    int32_t from;  /* places before this one only give context */
} lp_window;

typedef struct lp_windows {
    lp_window *windows; /* owned */
    int64_t count, capacity;
    int64_t targets; /* events asked for in all */
} lp_windows;

/* Which events are asked for: split[event] is the split each event belongs to; every event if wanted is
 * LP_SPLIT_COUNT. */
typedef struct lp_targets {
    const lapse_dataset *dataset;
    const uint8_t *split;
    lp_split wanted;
    int context;
    bool last_only;    /* evaluation asks each window for one event, after its last place */
    bool last_windows; /* training sees the last `context` places of each sequence alone */
} lp_targets;

/* Fills list, which starts as {0} and may be filled again; for one lp_targets and any epoch only the first filling
 * allocates. */
lapse_status lp_windows_evaluation(lp_windows *list, const lp_targets *targets, lapse_error *error);
lapse_status lp_windows_training(lp_windows *list, const lp_targets *targets, uint64_t seed, uint32_t epoch,
                                 lapse_error *error);
void lp_windows_clear(lp_windows *list);

/* Puts the windows into the random order of this epoch. */
void lp_windows_shuffle(lp_windows *list, uint64_t seed, uint32_t epoch);

static inline bool lp_targets_want(const lp_targets *targets, int64_t event)
{
    return targets->wanted == LP_SPLIT_COUNT || targets->split[event] == (uint8_t)targets->wanted;
}

#endif
